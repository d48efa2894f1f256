//! Whole numbers.

use crate::eval;
use crate::support::Random;

/// A number of so many bits, with or without a sign.
fn number(bits: u64, width: u32, is_signed: bool) -> i128 {
    let value = i128::from(bits & (u64::MAX >> (64 - width)));
    if is_signed && value >> (width - 1) == 1 { value - (1 << width) } else { value }
}

/// What an operation gives, before it is cut to its width.
fn model(operation: &str, width: u32, a: i128, b: i128, c: i128) -> Option<i128> {
    Some(match operation {
        "add" => a + b,
        "sub" => a - b,
        "mul.lo" | "mul.wide" => a.wrapping_mul(b),
        "mul.hi" => a.wrapping_mul(b) >> width,
        "mad.lo" | "mad.wide" => a.wrapping_mul(b).wrapping_add(c),
        "mad.hi" => (a.wrapping_mul(b) >> width) + c,
        "div" => a.checked_div(b)?,
        "rem" => a.checked_rem(b)?,
        "min" => a.min(b),
        "max" => a.max(b),
        "sad" => (a - b).abs() + c,
        "abs" => a.abs(),
        "neg" => -a,
        _ => return None,
    })
}

#[test]
fn arithmetic_is_that_of_whole_numbers_cut_to_their_width() {
    let mut random = Random::new(20);
    let operations = "add sub mul.lo mul.hi mul.wide mad.lo mad.hi mad.wide div rem min max sad abs neg";
    for operation in operations.split(' ') {
        for ty in ["u16", "s16", "u32", "s32", "u64", "s64"] {
            let (width, is_signed) = (crate::width(ty), ty.starts_with('s'));
            let is_wide = operation.ends_with("wide");
            if is_wide && width == 64 || matches!(operation, "abs" | "neg") && !is_signed {
                continue;
            }
            for _ in 0..30 {
                let mut any = || random.any() >> random.below(64);
                let (a, b, c) = (any(), any(), any());
                let result = if is_wide { 2 * width } else { width };
                let (x, y) = (number(a, width, is_signed), number(b, width, is_signed));
                let Some(expected) = model(operation, width, x, y, number(c, result, is_signed)) else { continue };
                let operands = match operation {
                    "abs" | "neg" => "d, a",
                    "mad.lo" | "mad.hi" | "mad.wide" | "sad" => "d, a, b, c",
                    _ => "d, a, b",
                };
                let third = if is_wide { format!("b{result}") } else { ty.to_owned() };
                let sources = [(ty, a), (ty, b), (third.as_str(), c)];
                let got = eval(&format!("{operation}.{ty} {operands};"), &format!("b{result}"), &sources);
                let expected = expected as u64 & (u64::MAX >> (64 - result));
                assert_eq!(got, expected, "{operation}.{ty} of {a:#x}, {b:#x}, {c:#x}");
            }
        }
    }
}

#[test]
fn shifts_beyond_the_width_lose_everything_but_the_sign() {
    let rows = [
        ("shl.b32", 0x8000_0001_u64, 1, 2),
        ("shl.b32", 1, 32, 0),
        ("shl.b16", 0xffff, 4, 0xfff0),
        ("shr.u32", 0x8000_0000, 31, 1),
        ("shr.u32", 0x8000_0000, 32, 0),
        ("shr.s32", 0x8000_0000, 4, 0xf800_0000),
        ("shr.s32", 0x8000_0000, 1000, 0xffff_ffff),
        ("shr.b32", 0x8000_0000, 4, 0x0800_0000),
        ("shr.s16", 0x8000, 20, 0xffff),
        ("shl.b64", 1, 63, 1 << 63),
        ("shr.s64", 1 << 63, 64, u64::MAX),
    ];
    for (instruction, a, by, expected) in rows {
        let ty = format!("b{}", crate::width(instruction));
        let got = eval(&format!("{instruction} d, a, b;"), &ty, &[(&ty, a), ("b32", by)]);
        assert_eq!(got, expected, "{instruction} of {a:#x} by {by}");
    }
}

#[test]
fn bits_are_combined_counted_and_moved() {
    let rows: [(&str, &str, [u64; 3], u64); 28] = [
        ("and.b32 d, a, b;", "b32", [0xff00, 0x0ff0, 0], 0x0f00),
        ("or.b16 d, a, b;", "b16", [0xff00, 0x0ff0, 0], 0xfff0),
        ("xor.b64 d, a, b;", "b64", [u64::MAX, 0x0ff0, 0], !0x0ff0),
        ("not.b16 d, a;", "b16", [0x00ff, 0, 0], 0xff00),
        ("cnot.b32 d, a;", "b32", [0, 0, 0], 1),
        ("cnot.b32 d, a;", "b32", [5, 0, 0], 0),
        ("popc.b32 d, a;", "b32", [0xf0f0, 0, 0], 8),
        ("clz.b32 d, a;", "b32", [0x0000_ffff, 0, 0], 16),
        ("clz.b32 d, a;", "b32", [0, 0, 0], 32),
        ("brev.b32 d, a;", "b32", [1, 0, 0], 0x8000_0000),
        ("bfind.u32 d, a;", "b32", [0x0000_8000, 0, 0], 15),
        ("bfind.shiftamt.s32 d, a;", "b32", [0xffff_0000, 0, 0], 16),
        ("bfe.u32 d, a, b, c;", "b32", [0xabcd_ef01, 8, 12], 0xdef),
        ("bfe.s32 d, a, b, c;", "b32", [0x0000_0800, 8, 4], 0xffff_fff8),
        ("bfe.u64 d, a, 60, 8;", "b64", [0xf000_0000_0000_0000, 0, 0], 0xf),
        ("bfi.b32 d, a, b, 4, 8;", "b32", [0xab, 0xffff_ffff, 0], 0xffff_fabf),
        ("bfi.b32 d, a, b, c, 8;", "b32", [0xab, 0, 28], 0xb000_0000),
        ("shf.l.wrap.b32 d, a, b, c;", "b32", [0xaaaa_0001, 0x5555_0000, 36], 0x5550_000a),
        ("shf.r.clamp.b32 d, a, b, c;", "b32", [0x1234_5678, 0x9abc_def0, 40], 0x9abc_def0),
        ("shf.r.wrap.b32 d, a, b, c;", "b32", [0x1234_5678, 0x9abc_def0, 8], 0xf012_3456),
        ("lop3.b32 d, a, b, c, 0xE8;", "b32", [0b0011, 0b0101, 0b0110], 0b0111),
        ("prmt.b32 d, a, b, 0x7531;", "b32", [0x3322_1100, 0x7766_5544, 0], 0x7755_3311),
        ("prmt.b32.f4e d, a, b, c;", "b32", [0x3322_1100, 0x7766_5544, 3], 0x6655_4433),
        ("dp4a.u32.u32 d, a, b, c;", "b32", [0x0102_0304, 0x0506_0708, 10], 5 + 12 + 21 + 32 + 10),
        ("dp4a.s32.u32 d, a, b, c;", "b32", [0xff00_0000, 0x0200_0000, 1], 0xffff_ffff),
        ("add.sat.s32 d, a, b;", "b32", [0x7fff_ffff, 1, 0], 0x7fff_ffff),
        ("sub.sat.s32 d, a, b;", "b32", [0x8000_0000, 1, 0], 0x8000_0000),
        ("slct.u32.s32 d, a, b, c;", "b32", [1, 2, 0xffff_ffff], 2),
    ];
    for (code, ty, [a, b, c], expected) in rows {
        assert_eq!(eval(code, ty, &[(ty, a), (ty, b), ("b32", c)]), expected, "{code} {a:#x} {b:#x} {c:#x}");
    }
}

#[test]
fn long_numbers_are_made_of_carries() {
    let mut random = Random::new(21);
    for _ in 0..200 {
        let (a, b) = (random.any() >> random.below(64), random.any() >> random.below(64));
        let split = "mov.b64 {la, ha}, a;\nmov.b64 {lb, hb}, b;\n";
        let registers = ".reg .b32 la, ha, lb, hb, ld, hd, t0, t1, t2;\n";
        let sources = [("b64", a), ("b64", b)];
        for (low, high, expected) in
            [("add.cc.u32", "addc.u32", a.wrapping_add(b)), ("sub.cc.u32", "subc.u32", a.wrapping_sub(b))]
        {
            let code = format!("{registers}{split}{low} ld, la, lb;\n{high} hd, ha, hb;\nmov.b64 d, {{ld, hd}};");
            assert_eq!(eval(&code, "b64", &sources), expected, "{low} {a:#x} {b:#x}");
        }
        // The upper half of a product of 64 bits, as the compiler writes it.
        let product = "mul.hi.u32 t0, la, lb;
            mad.lo.cc.u32 t0, la, hb, t0;
            madc.hi.u32 t1, la, hb, 0;
            mad.lo.cc.u32 t0, ha, lb, t0;
            madc.hi.cc.u32 t1, ha, lb, t1;
            addc.u32 t2, 0, 0;
            mad.lo.cc.u32 ld, ha, hb, t1;
            madc.hi.u32 hd, ha, hb, t2;
            mov.b64 d, {ld, hd};";
        let expected = ((u128::from(a) * u128::from(b)) >> 64) as u64;
        assert_eq!(eval(&format!("{registers}{split}{product}"), "b64", &sources), expected, "{a:#x} {b:#x}");
        let borrowed = format!("{registers}sub.cc.u64 d, a, b;\nsubc.u64 d, 0, 0;");
        assert_eq!(eval(&borrowed, "b64", &sources), if a < b { u64::MAX } else { 0 });
    }
}
