//! `cvt`.

use half::{bf16, f16};

use crate::support::Random;
use crate::{eval, f};

#[test]
fn whole_numbers_become_others() {
    let rows: [(&str, &str, u64, u64); 12] = [
        ("cvt.s64.s32 d, a;", "b64", 0x8000_0000, 0xffff_ffff_8000_0000),
        ("cvt.u64.u32 d, a;", "b64", 0x8000_0000, 0x8000_0000),
        ("cvt.s32.s8 d, a;", "b32", 0x1280, 0xffff_ff80),
        ("cvt.s32.u8 d, a;", "b32", 0x1280, 0x80),
        ("cvt.u16.u32 d, a;", "b16", 0x1234_5678, 0x5678),
        ("cvt.u8.u32 d, a;", "b16", 0x1234_5678, 0x78),
        ("cvt.s8.s32 d, a;", "b32", 0xf0, 0xffff_fff0),
        ("cvt.sat.u8.s32 d, a;", "b16", 0xffff_ff00, 0),
        ("cvt.sat.s16.s32 d, a;", "b16", 0x7fff_ffff, 0x7fff),
        ("cvt.sat.u32.s32 d, a;", "b32", 0x8000_0000, 0),
        ("cvt.rn.f32.s32 d, a;", "f32", 0xffff_ffff, 0xbf80_0000),
        ("cvt.rz.f32.u32 d, a;", "f32", 0xffff_ffff, 0x4f7f_ffff),
    ];
    for (code, ty, a, expected) in rows {
        assert_eq!(eval(code, ty, &[("b32", a)]), expected, "{code} {a:#x}");
    }
}

#[test]
fn floats_become_what_casts_make_of_them() {
    let mut random = Random::new(50);
    for _ in 0..150 {
        let value = if random.below(2) == 0 { random.any_f32() } else { random.unit() * 1e6 };
        let whole = |d: u64, nan: u64| if value.is_nan() { nan } else { d };
        for (code, ty, expected) in [
            ("cvt.rzi.s32.f32 d, a;", "b32", u64::from(value as i32 as u32)),
            ("cvt.rzi.u32.f32 d, a;", "b32", u64::from(value as u32)),
            ("cvt.rzi.s64.f32 d, a;", "b64", whole(value as i64 as u64, 1 << 63)),
            ("cvt.rzi.u64.f32 d, a;", "b64", whole(value as u64, 1 << 63)),
            ("cvt.rzi.u16.f32 d, a;", "b16", u64::from(value as u16)),
            ("cvt.rni.s32.f32 d, a;", "b32", u64::from(value.round_ties_even() as i32 as u32)),
            ("cvt.rmi.s32.f32 d, a;", "b32", u64::from(value.floor() as i32 as u32)),
            ("cvt.rpi.s32.f32 d, a;", "b32", u64::from(value.ceil() as i32 as u32)),
            ("cvt.rpi.f32.f32 d, a;", "f32", whole(f(value.ceil()), 0x7fff_ffff)),
            ("cvt.f64.f32 d, a;", "f64", whole(f64::from(value).to_bits(), 0x7ff8_0000_0000_0000)),
            ("cvt.rn.f16.f32 d, a;", "b16", whole(f16::from_f32(value).to_bits().into(), 0x7fff)),
            ("cvt.rn.bf16.f32 d, a;", "b16", whole(bf16::from_f32(value).to_bits().into(), 0x7fff)),
        ] {
            assert_eq!(eval(code, ty, &[("f32", f(value))]), expected, "{code} {value:e}");
        }
        let long = random.any() >> random.below(64);
        for (code, ty, expected) in [
            ("cvt.rn.f32.u64 d, a;", "f32", f(long as f32)),
            ("cvt.rn.f32.s64 d, a;", "f32", f(long as i64 as f32)),
            ("cvt.rn.f64.u64 d, a;", "f64", (long as f64).to_bits()),
            ("cvt.rn.f64.s64 d, a;", "f64", (long as i64 as f64).to_bits()),
        ] {
            assert_eq!(eval(code, ty, &[("b64", long)]), expected, "{code} {long:#x}");
        }
        let double = f64::from_bits(random.any());
        let nearest = if double.is_nan() { 0x7fff_ffff } else { f(double as f32) };
        assert_eq!(eval("cvt.rn.f32.f64 d, a;", "f32", &[("f64", double.to_bits())]), nearest, "{double:e}");
    }
}

#[test]
fn roundings_and_clamps_of_small_formats() {
    let rows: [(&str, &str, &str, u64, u64); 13] = [
        ("cvt.rz.f16.f32 d, a;", "b16", "f32", f(65535.0), 0x7bff),
        ("cvt.rp.f32.f64 d, a;", "f32", "f64", 1e-300_f64.to_bits(), 1),
        ("cvt.rm.f32.f64 d, a;", "f32", "f64", 1e300_f64.to_bits(), f(f32::MAX)),
        ("cvt.f32.f16 d, a;", "f32", "b16", 0x3555, f(0.333_251_95)),
        ("cvt.f32.bf16 d, a;", "f32", "b16", 0x3f81, 0x3f81_0000),
        ("cvt.ftz.f32.f16 d, a;", "f32", "b16", 0x0001, f(2.0_f32.powi(-24))),
        ("cvt.rn.relu.f16.f32 d, a;", "b16", "f32", f(-1.0), 0),
        ("cvt.sat.f32.f32 d, a;", "f32", "f32", f(-3.0), 0),
        ("cvt.rn.ftz.sat.f32.f64 d, a;", "f32", "f64", 2.0_f64.to_bits(), f(1.0)),
        ("cvt.rna.tf32.f32 d, a;", "b32", "f32", 0x3f80_1000, 0x3f80_2000),
        ("cvt.rn.tf32.f32 d, a;", "b32", "f32", 0x3f80_1000, 0x3f80_0000),
        ("cvt.rzi.s32.f16 d, a;", "b32", "b16", 0xc500, 0xffff_fffb),
        ("cvt.rn.f16.u32 d, a;", "b16", "b32", 2049, 0x6800),
    ];
    for (code, ty, from, a, expected) in rows {
        assert_eq!(eval(code, ty, &[(from, a)]), expected, "{code} {a:#x}");
    }
    let two = [("f32", f(1.0)), ("f32", f(-2.0))];
    assert_eq!(eval("cvt.rn.f16x2.f32 d, a, b;", "b32", &two), 0x3c00_c000);
    assert_eq!(eval("cvt.rn.bf16x2.f32 d, a, b;", "b32", &two), 0x3f80_c000);
    assert_eq!(eval("cvt.rn.relu.f16x2.f32 d, a, b;", "b32", &two), 0x3c00_0000);
}

#[test]
fn pairs_of_eight_bits_are_narrowed_and_widened() {
    let two = [("f32", f(1.0)), ("f32", f(-448.0))];
    assert_eq!(eval("cvt.rn.satfinite.e4m3x2.f32 d, a, b;", "b16", &two), 0x38fe);
    assert_eq!(eval("cvt.rn.satfinite.e5m2x2.f32 d, a, b;", "b16", &two), 0x3cdf);
    assert_eq!(eval("cvt.rn.satfinite.relu.e4m3x2.f32 d, a, b;", "b16", &two), 0x3800);
    assert_eq!(eval("cvt.rn.satfinite.e4m3x2.f16x2 d, a;", "b16", &[("b32", 0x3c00_fc00)]), 0x38fe);
    for (format, one) in [("e4m3x2", 0x38), ("e5m2x2", 0x3c)] {
        for bits in 0..=0xff_u64 {
            let half = eval(&format!("cvt.rn.f16x2.{format} d, a;"), "b32", &[("b16", bits << 8 | one)]);
            assert_eq!(half & 0xffff, 0x3c00);
            let back = eval(&format!("cvt.rn.satfinite.{format}.f16x2 d, a;"), "b16", &[("b32", half)]);
            let is_finite = f16::from_bits((half >> 16) as u16).is_finite();
            assert!(!is_finite || back == (bits << 8 | one), "{format} {bits:#x}");
        }
    }
}
