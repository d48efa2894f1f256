//! `softmax.cu`.

use purlin_ptx::Launch;

use crate::support::{Arguments, Device, Random, SHAPES, module, run};

const TEXTS: [&str; 2] = [include_str!("../../kernels/softmax.ptx"), include_str!("../../kernels/softmax.50.ptx")];

/// Relative: of expf (2 steps of f32), of a sum of at most 300 terms of one sign, and of the division.
const BOUND: f64 = 3e-6;

#[test]
fn rows_become_probabilities() {
    for text in TEXTS {
        let (module, mut random) = (module(text), Random::new(3));
        for _ in 0..SHAPES {
            let (rows, columns) = (random.within(1, 5) as usize, random.within(1, 300) as usize);
            let block = 1 << random.below(8);
            let scale = random.below(40) as f32;
            let values: Vec<f32> = random.units(rows * columns).iter().map(|value| value * scale).collect();
            let device = Device::default();
            let (out, input) = (device.put(&vec![0xee; rows * columns * 4]), device.put_f32(&values));
            let arguments = Arguments::default().pointer(out).pointer(input).u32(columns as u32);
            let launch = Launch { grid: [rows as u32, 1, 1], block: [block, 1, 1], dynamic_shared_bytes: 4 * block };
            run(&module, "softmax_rows", launch, &arguments, &device);
            for (got, row) in device.f32(out).chunks(columns).zip(values.chunks(columns)) {
                let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let powers: Vec<f64> = row.iter().map(|value| f64::from(value - largest).exp()).collect();
                let sum: f64 = powers.iter().sum();
                for (&got, power) in got.iter().zip(powers) {
                    let expected = power / sum;
                    let apart = (f64::from(got) - expected).abs();
                    assert!(apart <= expected * BOUND, "{got} instead of {expected}, {columns} columns by {block}");
                }
            }
        }
    }
}
