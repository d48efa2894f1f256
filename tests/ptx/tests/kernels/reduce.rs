//! `reduce.cu`.

use crate::support::{Arguments, Device, Random, SHAPES, line, module, run};

const TEXTS: [&str; 3] = [
    include_str!("../../kernels/reduce.ptx"),
    include_str!("../../kernels/reduce.50.ptx"),
    include_str!("../../kernels/reduce.80.ptx"),
];

/// The sum, as the kernel has it: by threads, by lanes, by warps, by blocks.
fn sum(values: &[f32], blocks: usize, block: usize) -> f32 {
    let lanes = |mut lanes: Vec<f32>| {
        for offset in [16, 8, 4, 2, 1] {
            // A lane without another to its right adds its own value.
            lanes = (0..32)
                .map(|lane| lanes[lane] + lanes[if lane + offset < 32 { lane + offset } else { lane }])
                .collect();
        }
        lanes[0]
    };
    (0..blocks).fold(0.0, |total, index| {
        let thread =
            |thread: usize| values.iter().skip(index * block + thread).step_by(blocks * block).fold(0.0, |a, b| a + b);
        let warps = (0..block / 32).map(|warp| lanes((0..32).map(|lane| thread(warp * 32 + lane)).collect()));
        let mut partial: Vec<f32> = warps.collect();
        partial.resize(32, 0.0);
        total + lanes(partial)
    })
}

#[test]
fn sums_are_equal_to_the_bit() {
    for text in TEXTS {
        let (module, mut random) = (module(text), Random::new(7));
        for _ in 0..SHAPES {
            let count = random.below(3000) as usize;
            let values = random.units(count);
            let (blocks, warps) = (random.within(1, 5) as u32, random.within(1, 8) as u32);
            let device = Device::default();
            let out = device.put_f32(&[0.0]);
            let arguments = Arguments::default().pointer(out).pointer(device.put_f32(&values)).u32(values.len() as u32);
            run(&module, "sum", line(blocks, 32 * warps), &arguments, &device);
            let expected = sum(&values, blocks as usize, 32 * warps as usize);
            assert_eq!(device.u32(out)[0], expected.to_bits(), "{} by {blocks} x {warps}", values.len());
        }
    }
}

#[test]
fn facts_of_whole_numbers_are_exact() {
    for text in TEXTS {
        let (module, mut random) = (module(text), Random::new(8));
        for _ in 0..SHAPES {
            let bits = random.within(1, 31);
            let values: Vec<i32> = (0..random.within(1, 1500)).map(|_| (random.any() as i32) >> bits).collect();
            let device = Device::default();
            let mut before = [0; 12];
            before[4] = i32::MAX as u32;
            before[5] = i32::MIN as u32;
            before[7] = u32::MAX;
            let out = device.put_u32(&before);
            let input = device.put_u32(&values.iter().map(|&value| value as u32).collect::<Vec<_>>());
            let arguments = Arguments::default().pointer(out).pointer(input).u32(values.len() as u32);
            let launch = line(random.within(1, 4) as u32, 32 * random.within(1, 6) as u32);
            run(&module, "facts", launch, &arguments, &device);
            let got = device.u32(out);
            let long = |at: usize| u64::from(got[at]) | u64::from(got[at + 1]) << 32;
            let sum: i64 = values.iter().map(|&value| i64::from(value)).sum();
            assert_eq!(long(0) as i64, sum);
            assert_eq!(long(2), values.iter().filter(|&&value| value % 2 == 0).count() as u64);
            assert_eq!(got[4] as i32, *values.iter().min().unwrap());
            assert_eq!(got[5] as i32, *values.iter().max().unwrap());
            assert_eq!(got[6] as i32, values.iter().fold(0, |all, value| all | value));
            assert_eq!(got[7] as i32, values.iter().fold(-1, |all, value| all & value));
            assert_eq!(f64::from_bits(long(8)), sum as f64 / values.len() as f64);
            assert_eq!(got[10], 0, "the last block has set the count back");
        }
    }
}

#[test]
fn the_largest_is_found_by_compare_and_swap() {
    for text in TEXTS {
        let (module, mut random) = (module(text), Random::new(9));
        for _ in 0..SHAPES {
            let count = random.within(1, 500) as usize;
            let values: Vec<f64> = (0..count).map(|_| f64::from(random.unit())).collect();
            let device = Device::default();
            let out = device.put_u64(&[f64::NEG_INFINITY.to_bits()]);
            let input = device.put_u64(&values.iter().map(|value| value.to_bits()).collect::<Vec<_>>());
            let arguments = Arguments::default().pointer(out).pointer(input).u32(count as u32);
            run(&module, "largest_double", line((count as u32).div_ceil(64), 64), &arguments, &device);
            let expected = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert_eq!(f64::from_bits(device.u64(out)[0]), expected);
        }
    }
}
