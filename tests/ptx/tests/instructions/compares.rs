//! Comparisons and choices.

use std::cmp::Ordering;

use crate::eval;
use crate::support::Random;

/// Whether a comparison holds of two in this order; `None`: one is no number.
fn holds(comparison: &str, order: Option<Ordering>) -> bool {
    let ordered = match &comparison[..2] {
        "eq" => order == Some(Ordering::Equal),
        "ne" => order.is_some_and(Ordering::is_ne),
        "lt" | "lo" => order.is_some_and(Ordering::is_lt),
        "le" | "ls" => order.is_some_and(Ordering::is_le),
        "gt" | "hi" => order.is_some_and(Ordering::is_gt),
        _ => order.is_some_and(Ordering::is_ge),
    };
    match comparison {
        "num" => order.is_some(),
        "nan" => order.is_none(),
        _ => ordered || comparison.len() == 3 && order.is_none(),
    }
}

#[test]
fn numbers_are_compared_by_their_type() {
    let mut random = Random::new(60);
    for ty in ["u16", "s16", "u32", "s32", "u64", "s64", "b32", "b64", "f32", "f64"] {
        let width = crate::width(ty);
        let names = match ty.as_bytes()[0] {
            b'b' => "eq ne",
            b's' => "eq ne lt le gt ge",
            b'u' => "eq ne lt le gt ge lo ls hi hs",
            _ => "eq ne lt le gt ge equ neu ltu leu gtu geu num nan",
        };
        for comparison in names.split(' ') {
            for round in 0..30 {
                let any = |random: &mut Random| match (ty, random.below(8)) {
                    ("f32", 0) => u64::from(f32::NAN.to_bits()),
                    ("f64", 0) => f64::NAN.to_bits(),
                    _ => random.any() >> (64 - width),
                };
                let a = any(&mut random);
                let b = if round % 4 == 0 { a } else { any(&mut random) };
                let order = match ty {
                    "f32" => f32::from_bits(a as u32).partial_cmp(&f32::from_bits(b as u32)),
                    "f64" => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
                    _ if ty.starts_with('s') => {
                        let signed = |value: u64| (value << (64 - width)) as i64;
                        Some(signed(a).cmp(&signed(b)))
                    }
                    _ => Some(a.cmp(&b)),
                };
                let got = eval(&format!("setp.{comparison}.{ty} d, a, b;"), "pred", &[(ty, a), (ty, b)]);
                assert_eq!(got == 1, holds(comparison, order), "setp.{comparison}.{ty} of {a:#x} and {b:#x}");
            }
        }
    }
}

#[test]
fn comparisons_are_combined_with_predicates() {
    for (combine, negated, with) in
        ["and", "or", "xor"].iter().flat_map(|c| [(c, "", 0), (c, "", 1), (c, "!", 0), (c, "!", 1)])
    {
        for (a, b) in [(1, 2), (2, 1)] {
            let (less, c) = (a < b, (with == 1) != (negated == "!"));
            let apply = |found: bool| match *combine {
                "and" => found && c,
                "or" => found || c,
                _ => found != c,
            };
            let code = format!("setp.lt.{combine}.u32 d|q, a, b, {negated}c;");
            let sources = [("u32", a), ("u32", b), ("pred", with)];
            assert_eq!(eval(&code, "pred", &sources) == 1, apply(less), "{code} {a} {b} {with}");
            let other = format!("setp.lt.{combine}.u32 _|d, a, b, {negated}c;");
            assert_eq!(eval(&other, "pred", &sources) == 1, apply(!less), "{other} {a} {b} {with}");
        }
    }
}

#[test]
fn values_are_chosen_and_classified() {
    let pair = [("b32", 5), ("b32", 6), ("pred", 1)];
    assert_eq!(eval("selp.b32 d, a, b, c;", "b32", &pair), 5);
    assert_eq!(eval("selp.b32 d, a, b, c;", "b32", &[("b32", 5), ("b32", 6), ("pred", 0)]), 6);
    assert_eq!(eval("set.lt.u32.u32 d, a, b;", "b32", &pair), 0xffff_ffff);
    assert_eq!(eval("set.lt.f32.s32 d, a, b;", "b32", &pair), 0x3f80_0000);
    assert_eq!(eval("set.gt.u32.u32 d, a, b;", "b32", &pair), 0);
    assert_eq!(eval("and.pred d, a, b;", "pred", &[("pred", 1), ("pred", 1)]), 1);
    assert_eq!(eval("not.pred d, a;", "pred", &[("pred", 1)]), 0);
    assert_eq!(eval("mov.pred d, -1;", "pred", &[]), 1);
    let kinds: [(&str, u64, u64); 7] = [
        ("finite", 0x3f80_0000, 1),
        ("infinite", 0xff80_0000, 1),
        ("number", 0x7fc0_0000, 0),
        ("notanumber", 0x7fc0_0000, 1),
        ("normal", 0x0000_0001, 0),
        ("subnormal", 0x8000_0001, 1),
        ("normal", 0x3f80_0000, 1),
    ];
    for (kind, a, expected) in kinds {
        assert_eq!(eval(&format!("testp.{kind}.f32 d, a;"), "pred", &[("f32", a)]), expected, "{kind} {a:#x}");
    }
}
