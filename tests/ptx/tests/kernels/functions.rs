//! `various.cu`: functions of f32 and f64, as the mathematical library computes them.

use crate::support::{Arguments, Device, Random, SHAPES, line, module, run};

const TEXTS: [&str; 2] = [include_str!("../../kernels/various.ptx"), include_str!("../../kernels/various.90.ptx")];

/// How a result is compared: to the bit, or so many times a step of f32 (or of f64) apart, or by a number.
#[derive(Clone, Copy, Debug)]
enum Bound {
    Exact,
    Steps(f64),
    Absolute(f64),
}

/// A sum, or a product, of numbers of 24 bits, towards zero or up or down: of what f64 has, and lost.
fn directed(value: f64, error: f64, up: bool, down: bool) -> f32 {
    let nearest = value as f32;
    let apart = (value - f64::from(nearest)) + error;
    match apart {
        apart if apart > 0.0 && up => nearest.next_up(),
        apart if apart < 0.0 && down => nearest.next_down(),
        _ => nearest,
    }
}

fn added(x: f32, y: f32, towards_zero: bool) -> f32 {
    let (a, b) = (f64::from(x), f64::from(y));
    let sum = a + b;
    let of_b = sum - a;
    let error = (a - (sum - of_b)) + (b - of_b);
    directed(sum, error, towards_zero && sum < 0.0, !towards_zero || sum > 0.0)
}

/// The kernel's function, and how near it must come. CUDA's guide states the errors of its functions in steps.
fn expected(kind: u32, x: f32, y: f32) -> (f64, Bound) {
    let (a, b) = (f64::from(x), f64::from(y));
    match kind {
        0 => (a.sin(), Bound::Steps(2.0)),
        1 => (a.cos(), Bound::Steps(2.0)),
        2 => (a.exp(), Bound::Steps(2.0)),
        3 => (a.abs().ln(), Bound::Steps(1.0)),
        4 => (x.abs().sqrt().into(), Bound::Exact),
        5 => (1.0 / a.abs().sqrt(), Bound::Steps(2.0)),
        6 => ((x / y).into(), Bound::Exact),
        7 => (a.tanh(), Bound::Steps(2.0)),
        8 => (a.abs().powf(b), Bound::Steps(4.0)),
        9 => (libm_erf(a), Bound::Absolute(2e-7)),
        10 => ((x.floor() + y.ceil() + (x * y).trunc() + (x - y).round_ties_even()).into(), Bound::Exact),
        11 => (x.max(y).mul_add(x.copysign(y), x.min(y)).into(), Bound::Exact),
        12 => ((x % y).into(), Bound::Exact),
        13 => ((x.clamp(0.0, 1.0) + (y as i32) as f32).into(), Bound::Exact),
        14 => {
            let product = directed(a * b, 0.0, true, false);
            ((added(x, y, true) - product + added(x, y, false)).into(), Bound::Exact)
        }
        15 => (a.sin() * b.cos() + a.abs().ln(), Bound::Absolute(1e-5)),
        16 => (a.abs().ln_1p() + b.exp_m1() + a.atan(), Bound::Absolute(2e-5)),
        _ => ((1.0 / x + y.abs().sqrt()).into(), Bound::Exact),
    }
}

/// The error function by its series, good to 1e-12 for arguments of up to 4; beyond, it is 1.
fn libm_erf(x: f64) -> f64 {
    if x.abs() > 4.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..100 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

fn check(kind: u32, x: f32, y: f32, got: f32) {
    let (expected, bound) = expected(kind, x, y);
    let what = || format!("kind {kind} of {x:e} and {y:e}: {got:e} instead of {expected:e}, {bound:?}");
    if expected.is_nan() {
        assert!(got.is_nan(), "{}", what());
        return;
    }
    let nearest = expected as f32;
    let is_near = match bound {
        Bound::Exact => f64::from(got) == expected,
        Bound::Steps(steps) => {
            let step = f64::from((nearest.abs().next_up() - nearest.abs()).max(f32::from_bits(1)));
            got == nearest || (f64::from(got) - expected).abs() <= steps * step
        }
        Bound::Absolute(most) => got == nearest || (f64::from(got) - expected).abs() <= most * expected.abs().max(1.0),
    };
    assert!(is_near, "{}", what());
}

#[test]
fn functions_of_f32_are_as_good_as_cuda_says() {
    for text in TEXTS {
        let (module, mut random) = (module(text), Random::new(14));
        for kind in 0..18 {
            for _ in 0..SHAPES / 10 {
                let count = random.within(1, 300) as usize;
                let scale = [1.0, 8.0, 60.0][random.below(3) as usize];
                // Where the fast functions are good, and erf's series.
                let scale = if matches!(kind, 9 | 15 | 16) { 3.0 } else { scale };
                let mut any = |_| random.unit() * scale;
                let (x, y): (Vec<f32>, Vec<f32>) = (0..count).map(|i| (any(i), any(i))).unzip();
                let device = Device::of(&module);
                let out = device.put(&vec![0; 4 * count]);
                let arguments = Arguments::default()
                    .pointer(out)
                    .pointer(device.put_f32(&x))
                    .pointer(device.put_f32(&y))
                    .u32(kind)
                    .u32(count as u32);
                run(&module, "functions", line((count as u32).div_ceil(64), 64), &arguments, &device);
                for (i, got) in device.f32(out).into_iter().enumerate() {
                    check(kind, x[i], y[i], got);
                }
            }
        }
    }
}

/// Any bits, where the result is exact.
#[test]
fn exact_functions_are_so_for_all_kinds_of_numbers() {
    for text in TEXTS {
        let (module, mut random) = (module(text), Random::new(15));
        for kind in [4, 6, 11, 17] {
            let count = 4000;
            let (x, y): (Vec<f32>, Vec<f32>) = (0..count).map(|_| (random.any_f32(), random.any_f32())).unzip();
            let device = Device::of(&module);
            let out = device.put(&vec![0; 4 * count]);
            let arguments = Arguments::default()
                .pointer(out)
                .pointer(device.put_f32(&x))
                .pointer(device.put_f32(&y))
                .u32(kind)
                .u32(count as u32);
            run(&module, "functions", line((count as u32).div_ceil(64), 64), &arguments, &device);
            for (i, got) in device.f32(out).into_iter().enumerate() {
                check(kind, x[i], y[i], got);
            }
        }
    }
}

#[test]
fn functions_of_f64_are_within_two_steps() {
    for text in TEXTS {
        let (module, mut random) = (module(text), Random::new(16));
        for round in 0..SHAPES {
            let (kind, count) = (round as u32 % 6, random.within(1, 200) as usize);
            let scale = [1.0, 30.0, 1e6][random.below(if kind == 0 { 2 } else { 3 }) as usize];
            let x: Vec<f64> =
                (0..count).map(|_| ((random.any() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0) * scale).collect();
            let device = Device::of(&module);
            let out = device.put(&vec![0; 8 * count]);
            let input = device.put_u64(&x.iter().map(|value| value.to_bits()).collect::<Vec<_>>());
            let arguments = Arguments::default().pointer(out).pointer(input).u32(kind).u32(count as u32);
            run(&module, "doubles", line((count as u32).div_ceil(64), 64), &arguments, &device);
            for (i, bits) in device.u64(out).into_iter().enumerate() {
                let (x, got) = (x[i], f64::from_bits(bits));
                let (expected, steps) = match kind {
                    0 => (x.exp(), 2.0),
                    1 => (x.abs().ln(), 2.0),
                    2 => (x.abs().sqrt() / (1.0 + x.abs()), 0.0),
                    3 => (x.sin(), 2.0),
                    4 => (1.0 / x.abs().sqrt(), 2.0),
                    _ => (f64::from(x as f32) + (x as i64) as f64, 0.0),
                };
                let step = expected.abs().next_up() - expected.abs();
                assert!(
                    (got - expected).abs() <= steps * step,
                    "kind {kind} of {x:e}: {got:e} instead of {expected:e}"
                );
            }
        }
    }
}
