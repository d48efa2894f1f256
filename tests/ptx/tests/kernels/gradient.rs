//! `gradient.cu`.

use crate::support::{Arguments, Device, Random, SHAPES, line, module, run};

const PTX: &str = include_str!("../../kernels/gradient.ptx");

/// Of a probability, relative: the argument of ex2 is rounded once, to 24 bits, and is up to 60; of the difference,
/// absolute, a step of 1.
const BOUND: f64 = 5e-6;

#[test]
fn a_row_is_its_probabilities_less_one_at_the_label() {
    let (module, mut random) = (module(PTX), Random::new(4));
    for _ in 0..SHAPES {
        let (rows, columns) = (random.within(1, 9) as usize, random.within(1, 150) as usize);
        let scale = random.below(30) as f32;
        let logits: Vec<f32> = random.units(rows * columns).iter().map(|value| value * scale).collect();
        // One of ten labels is none.
        let label = |_| match random.below(10) {
            0 => columns as u32 + random.below(3) as u32,
            1 => u32::MAX,
            _ => random.below(columns as u64) as u32,
        };
        let labels: Vec<u32> = (0..rows).map(label).collect();
        let device = Device::default();
        let out = device.put_f32(&vec![7.0; rows * columns]);
        let arguments = Arguments::default()
            .pointer(out)
            .pointer(device.put_f32(&logits))
            .pointer(device.put_u32(&labels))
            .u32(rows as u32)
            .u32(columns as u32);
        let warps = random.within(1, 4) as u32;
        run(&module, "cross_entropy_gradient", line((rows as u32).div_ceil(warps), 32 * warps), &arguments, &device);
        for (row, got) in device.f32(out).chunks(columns).enumerate() {
            let (logits, label) = (&logits[row * columns..][..columns], labels[row] as usize);
            if label >= columns {
                assert!(got.iter().all(|&value| value == 7.0), "a row without a label is left alone");
                continue;
            }
            let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let powers: Vec<f64> = logits.iter().map(|value| f64::from(value - largest).exp()).collect();
            let sum: f64 = powers.iter().sum();
            for (column, &got) in got.iter().enumerate() {
                let probability = powers[column] / sum;
                let expected = (probability - f64::from(u8::from(column == label))) / rows as f64;
                let bound = (probability * BOUND + f64::from(f32::EPSILON)) / rows as f64;
                let apart = (f64::from(got) - expected).abs();
                assert!(apart <= bound, "{got} instead of {expected}, {rows} x {columns}");
            }
        }
    }
}
