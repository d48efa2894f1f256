//! f32 and f64.

use crate::support::Random;
use crate::{eval, f};

const NAN: u64 = 0x7fff_ffff;
const INFINITY: f32 = f32::INFINITY;

#[test]
fn operations_are_rounded_once() {
    let mut random = Random::new(30);
    for _ in 0..100 {
        let (a, b, c) = (random.any_f32(), random.any_f32(), random.any_f32());
        let bits = |value: f32| if value.is_nan() { NAN } else { f(value) };
        let sources = [("f32", f(a)), ("f32", f(b)), ("f32", f(c))];
        for (code, expected) in [
            ("add.f32 d, a, b;", a + b),
            ("sub.rn.f32 d, a, b;", a - b),
            ("mul.f32 d, a, b;", a * b),
            ("fma.rn.f32 d, a, b, c;", a.mul_add(b, c)),
            ("mad.rn.f32 d, a, b, c;", a.mul_add(b, c)),
            ("div.rn.f32 d, a, b;", a / b),
            ("div.full.f32 d, a, b;", a / b),
            ("rcp.rn.f32 d, a;", 1.0 / a),
            ("sqrt.rn.f32 d, a;", a.sqrt()),
        ] {
            assert_eq!(eval(code, "f32", &sources), bits(expected), "{code} {a:e} {b:e} {c:e}");
        }
        let (a, b, c) = (f64::from(a), f64::from_bits(random.any()), f64::from_bits(random.any()));
        let bits = |value: f64| if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() };
        let sources = [("f64", a.to_bits()), ("f64", b.to_bits()), ("f64", c.to_bits())];
        for (code, expected) in [
            ("add.f64 d, a, b;", a + b),
            ("sub.f64 d, a, b;", a - b),
            ("mul.rn.f64 d, a, b;", a * b),
            ("fma.rn.f64 d, a, b, c;", a.mul_add(b, c)),
            ("div.rn.f64 d, a, b;", a / b),
            ("rcp.rn.f64 d, a;", 1.0 / a),
            ("sqrt.rn.f64 d, a;", a.sqrt()),
        ] {
            assert_eq!(eval(code, "f64", &sources), bits(expected), "{code} {a:e} {b:e} {c:e}");
        }
    }
}

#[test]
fn modifiers_flush_clamp_and_round() {
    let tiny = f32::from_bits(1);
    let rows: [(&str, f32, f32, u64); 22] = [
        ("add.ftz.f32 d, a, b;", tiny, tiny, 0),
        ("add.f32 d, a, b;", tiny, tiny, 2),
        ("mul.ftz.f32 d, a, b;", -tiny, 1.0, 0x8000_0000),
        ("add.sat.f32 d, a, b;", 0.75, 0.75, f(1.0)),
        ("add.sat.f32 d, a, b;", -0.75, 0.25, 0),
        ("add.sat.f32 d, a, b;", INFINITY, -INFINITY, 0),
        ("add.rz.f32 d, a, b;", 1.0, tiny, f(1.0)),
        ("add.rp.f32 d, a, b;", 1.0, tiny, f(1.0 + f32::EPSILON)),
        ("add.rm.f32 d, a, b;", 1.0, -tiny, f(1.0 - f32::EPSILON / 2.0)),
        ("mul.rp.f32 d, a, b;", f32::MAX, 2.0, f(INFINITY)),
        ("mul.rz.f32 d, a, b;", f32::MAX, 2.0, f(f32::MAX)),
        ("div.rm.f32 d, a, b;", 1.0, 3.0, f(0.333_333_3)),
        ("sqrt.rp.f32 d, a;", 2.0, 0.0, f(1.414_213_7)),
        ("rcp.rz.f32 d, a;", 3.0, 0.0, f(0.333_333_3)),
        ("min.f32 d, a, b;", f32::NAN, 1.0, f(1.0)),
        ("max.NaN.f32 d, a, b;", f32::NAN, 1.0, NAN),
        ("min.f32 d, a, b;", 0.0, -0.0, f(-0.0)),
        ("max.ftz.f32 d, a, b;", tiny, -1.0, 0),
        ("abs.ftz.f32 d, a;", -tiny, 0.0, 0),
        ("neg.f32 d, a;", 1.5, 0.0, f(-1.5)),
        ("copysign.f32 d, a, b;", -1.0, 7.0, f(-7.0)),
        ("fma.rz.ftz.sat.f32 d, a, b, 0f3f800000;", 3.0, 1.0, f(1.0)),
    ];
    for (code, a, b, expected) in rows {
        assert_eq!(eval(code, "f32", &[("f32", f(a)), ("f32", f(b))]), expected, "{code} {a:e} {b:e}");
    }
}

#[test]
fn approximations_have_their_special_values() {
    let rows: [(&str, f32, f32); 18] = [
        ("ex2.approx.f32", 10.0, 1024.0),
        ("ex2.approx.ftz.f32", -140.0, 0.0),
        ("ex2.approx.f32", -INFINITY, 0.0),
        ("lg2.approx.f32", 8.0, 3.0),
        ("lg2.approx.f32", 0.0, -INFINITY),
        ("lg2.approx.ftz.f32", 1e-40, -INFINITY),
        ("rcp.approx.ftz.f32", 4.0, 0.25),
        ("rcp.approx.f32", -0.0, -INFINITY),
        ("rsqrt.approx.f32", 16.0, 0.25),
        ("rsqrt.approx.f32", 0.0, INFINITY),
        ("sqrt.approx.f32", 9.0, 3.0),
        ("sin.approx.f32", 0.0, 0.0),
        ("cos.approx.ftz.f32", 0.0, 1.0),
        ("tanh.approx.f32", 100.0, 1.0),
        ("tanh.approx.f32", -INFINITY, -1.0),
        ("sqrt.approx.ftz.f32", 1e-40, 0.0),
        ("ex2.approx.f32", 0.5, std::f32::consts::SQRT_2),
        ("lg2.approx.f32", 3.0, 1.584_962_5),
    ];
    for (instruction, a, expected) in rows {
        let got = eval(&format!("{instruction} d, a;"), "f32", &[("f32", f(a))]);
        assert_eq!(got, f(expected), "{instruction} of {a:e}");
    }
    for instruction in ["lg2.approx.f32", "rsqrt.approx.f32", "sqrt.approx.f32"] {
        assert_eq!(eval(&format!("{instruction} d, a;"), "f32", &[("f32", f(-1.0))]), NAN, "{instruction} of -1");
    }
    // Twenty bits, as the hardware has them.
    assert_eq!(eval("rcp.approx.ftz.f64 d, a;", "f64", &[("f64", 3.0_f64.to_bits())]), 0x3fd5_5555_0000_0000);
    assert_eq!(eval("rsqrt.approx.ftz.f64 d, a;", "f64", &[("f64", 4.0_f64.to_bits())]), 0.5_f64.to_bits());
}

#[test]
fn constants_are_written_in_all_ways() {
    assert_eq!(eval("mov.f32 d, 0f3FC00000;", "f32", &[]), f(1.5));
    assert_eq!(eval("mov.f32 d, -1.5;", "f32", &[]), f(-1.5));
    assert_eq!(eval("mov.f32 d, 1.5e1;", "f32", &[]), f(15.0));
    assert_eq!(eval("mov.f64 d, 0d3FF8000000000000;", "f64", &[]), 1.5_f64.to_bits());
    assert_eq!(eval("mov.b32 d, 0f3FC00000;", "b32", &[]), f(1.5));
    assert_eq!(eval("mov.u32 d, 0x10;", "b32", &[]), 16);
    assert_eq!(eval("mov.u32 d, 010;", "b32", &[]), 8);
    assert_eq!(eval("mov.u32 d, 0b101U;", "b32", &[]), 5);
    assert_eq!(eval("mov.s16 d, -1;", "b16", &[]), 0xffff);
    assert_eq!(eval("mov.u64 d, 18446744073709551615;", "b64", &[]), u64::MAX);
    assert_eq!(eval("mov.u32 d, WARP_SZ;", "b32", &[]), 32);
}
