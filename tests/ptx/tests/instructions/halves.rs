//! f16 and bf16, beside the crate `half`, which rounds what f32 has exactly or by f64.

use half::{bf16, f16};

use crate::eval;
use crate::support::Random;

fn of_f16(value: f64) -> u64 {
    if value.is_nan() { 0x7fff } else { f16::from_f64(value).to_bits().into() }
}

fn of_bf16(value: f64) -> u64 {
    if value.is_nan() { 0x7fff } else { bf16::from_f64(value).to_bits().into() }
}

#[test]
fn sums_and_products_are_rounded_once() {
    let mut random = Random::new(40);
    for round in 0..600 {
        let is_f16 = round % 2 == 0;
        // Of like exponents, that f64 may have all bits of the exact result.
        let any = |random: &mut Random| {
            let bits = random.any();
            if is_f16 { bits & 0xffff } else { (bits & 0x80ff) | (0x3c00 + (random.below(4) << 8)) }
        };
        let [a, b, c] = [(); 3].map(|()| any(&mut random));
        let value = |bits: u64| match is_f16 {
            true => f16::from_bits(bits as u16).to_f64(),
            false => bf16::from_bits(bits as u16).to_f64(),
        };
        let rounded = |value| if is_f16 { of_f16(value) } else { of_bf16(value) };
        let (x, y, z) = (value(a), value(b), value(c));
        let ty = if is_f16 { "f16" } else { "bf16" };
        for (code, expected) in [
            (format!("add.rn.{ty} d, a, b;"), rounded(x + y)),
            (format!("sub.{ty} d, a, b;"), rounded(x - y)),
            (format!("mul.{ty} d, a, b;"), rounded(x * y)),
            (format!("fma.rn.{ty} d, a, b, c;"), rounded(x.mul_add(y, z))),
            (format!("neg.{ty} d, a;"), a ^ 0x8000),
        ] {
            // Both halves of a register, the upper one of other numbers.
            let pair = code.replace(ty, &format!("{ty}x2"));
            let sources = [("b16", a), ("b16", b), ("b16", c)];
            assert_eq!(eval(&code, "b16", &sources), expected, "{code} {a:#x} {b:#x} {c:#x}");
            let one = if is_f16 { 0x3c00 } else { 0x3f80 };
            let sources = [("b32", a << 16 | one), ("b32", b << 16 | one), ("b32", c << 16 | one)];
            assert_eq!(eval(&pair, "b32", &sources) >> 16, expected, "{pair} {a:#x} {b:#x} {c:#x}");
        }
    }
}

#[test]
fn modifiers_clamp_and_keep_what_is_no_number() {
    let rows: [(&str, u64, u64, u64); 9] = [
        ("add.sat.f16 d, a, b;", 0x3c00, 0x3c00, 0x3c00),
        ("add.sat.f16 d, a, b;", 0xbc00, 0, 0),
        ("add.ftz.f16 d, a, b;", 0x0001, 0x0001, 0),
        ("fma.rn.relu.f16 d, a, b, 0x8000;", 0xbc00, 0x3c00, 0),
        ("min.f16 d, a, b;", 0x7e00, 0x3c00, 0x3c00),
        ("max.NaN.f16 d, a, b;", 0x7e00, 0x3c00, 0x7fff),
        ("max.bf16 d, a, b;", 0xbf80, 0x3f80, 0x3f80),
        ("abs.f16 d, a;", 0xbc00, 0, 0x3c00),
        ("abs.bf16 d, a;", 0xbf80, 0, 0x3f80),
    ];
    for (code, a, b, expected) in rows {
        // A constant of 16 bits is a register here: halves have none.
        let code = code.replace(", 0x8000", ", c");
        assert_eq!(eval(&code, "b16", &[("b16", a), ("b16", b), ("b16", 0x8000)]), expected, "{code}");
    }
}
