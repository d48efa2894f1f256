//! `examples/cpp/digits/kernels.cu`.

use crate::support::{Arguments, Device, Random, SHAPES, line, module, run};

const PTX: &str = include_str!("../../../../examples/cpp/digits/kernels.ptx");
const SIDE: usize = 8;
const PIXELS: usize = SIDE * SIDE;
const CLASSES: usize = 10;
const FEATURES: usize = PIXELS + 2 * SIDE * (SIDE - 1) + 2 * (SIDE - 1) * (SIDE - 1) + 1;
/// Sums of 275 products, and of up to nine rows, in single precision.
const BOUND: f64 = 1e-4;

/// Pixels and labels of so many images, and the images as they lie in memory.
fn images(random: &mut Random, rows: usize) -> (Vec<Vec<f32>>, Vec<usize>, Vec<f32>) {
    let pixels: Vec<Vec<f32>> =
        (0..rows).map(|_| (0..PIXELS).map(|_| random.below(17) as f32 / 16.0).collect()).collect();
    let labels: Vec<usize> = (0..rows).map(|_| random.below(CLASSES as u64) as usize).collect();
    let words = pixels.iter().zip(&labels);
    let memory = words.flat_map(|(pixels, &label)| [&pixels[..], &[f32::from_bits(label as u32)]].concat()).collect();
    (pixels, labels, memory)
}

/// Pixels, their products with neighbours, row by row, and a one.
fn features(pixels: &[f32]) -> Vec<f64> {
    let mut features = pixels.to_vec();
    for y in 0..SIDE {
        let at = |y: usize, x: usize| pixels[y * SIDE + x];
        features.extend((0..SIDE - 1).map(|x| at(y, x) * at(y, x + 1)));
        if y + 1 < SIDE {
            features.extend((0..SIDE).map(|x| at(y, x) * at(y + 1, x)));
            features.extend((0..SIDE - 1).map(|x| at(y, x) * at(y + 1, x + 1)));
            features.extend((0..SIDE - 1).map(|x| at(y, x + 1) * at(y + 1, x)));
        }
    }
    features.push(1.0);
    assert_eq!(features.len(), FEATURES);
    features.into_iter().map(f64::from).collect()
}

#[track_caller]
fn are_near(got: &[f32], expected: &[f64], what: &str) {
    assert_eq!(got.len(), expected.len());
    for (at, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        let apart = (f64::from(got) - expected).abs();
        assert!(apart <= BOUND * expected.abs().max(1.0), "{what} {at}: {got} instead of {expected}");
    }
}

#[test]
fn errors_and_gradient_are_those_of_softmax() {
    let (module, mut random) = (module(PTX), Random::new(11));
    // An image takes some ten thousand instructions.
    for _ in 0..SHAPES / 10 {
        let rows = random.within(1, 9) as usize;
        let (pixels, labels, memory) = images(&mut random, rows);
        let weights = random.units(FEATURES * CLASSES);
        let device = Device::default();
        let (errors, gradient) =
            (device.put_f32(&vec![7.0; rows * CLASSES]), device.put_f32(&vec![7.0; weights.len()]));
        let (examples, times) = (device.put_f32(&memory), device.put_u32(&[0; 6]));
        let there = device.put_f32(&weights);
        let arguments = Arguments::default().pointer(errors).pointer(there).pointer(examples).pointer(times);
        let threads = random.within(CLASSES as u64, 70) as u32;
        run(&module, "digits_errors", line(rows as u32, threads), &arguments, &device);
        let arguments =
            Arguments::default().pointer(gradient).pointer(errors).pointer(examples).pointer(times).u32(rows as u32);
        let block = random.within(32, 300) as u32;
        run(&module, "digits_gradient", line((FEATURES as u32).div_ceil(block), block), &arguments, &device);

        let features: Vec<Vec<f64>> = pixels.iter().map(|pixels| features(pixels)).collect();
        let mut of_rows = Vec::new();
        for (features, &label) in features.iter().zip(&labels) {
            let score = |class: usize| -> f64 {
                features.iter().enumerate().map(|(i, value)| value * f64::from(weights[i * CLASSES + class])).sum()
            };
            let scores: Vec<f64> = (0..CLASSES).map(score).collect();
            let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = scores.iter().map(|score| (score - highest).exp()).collect();
            let sum: f64 = powers.iter().sum();
            let error = |(class, power): (usize, &f64)| power / sum - f64::from(u8::from(class == label));
            of_rows.extend(powers.iter().enumerate().map(error));
        }
        are_near(&device.f32(errors), &of_rows, "the error");
        let sum = |at: usize| -> f64 {
            let (i, class) = (at / CLASSES, at % CLASSES);
            features.iter().enumerate().map(|(row, features)| features[i] * of_rows[row * CLASSES + class]).sum()
        };
        are_near(&device.f32(gradient), &(0..FEATURES * CLASSES).map(sum).collect::<Vec<_>>(), "the gradient");
        let times = device.u32(times);
        assert!(times[2..4] != [0, 0] && times[4] == 0, "the device was busy, and its last block has ended: {times:?}");
    }
}

#[test]
fn an_update_adds_the_gradients_of_all_devices() {
    let (module, mut random) = (module(PTX), Random::new(12));
    let count = FEATURES * CLASSES;
    for _ in 0..SHAPES / 10 {
        let devices = random.within(1, 5) as usize;
        let [weights, velocity, gradients] = [count, count, devices * count].map(|count| random.units(count));
        let (scale, momentum) = (random.units(1)[0], random.units(1)[0]);
        let device = Device::default();
        let (w, v, g) = (device.put_f32(&weights), device.put_f32(&velocity), device.put_f32(&gradients));
        let arguments =
            Arguments::default().pointer(w).pointer(v).pointer(g).u32(devices as u32).f32(scale).f32(momentum);
        let block = random.within(32, 300) as u32;
        run(&module, "digits_update", line((count as u32).div_ceil(block), block), &arguments, &device);
        let speed = |at: usize| {
            let sum: f64 = (0..devices).map(|device| f64::from(gradients[device * count + at])).sum();
            f64::from(momentum) * f64::from(velocity[at]) - f64::from(scale) * sum
        };
        are_near(&device.f32(v), &(0..count).map(speed).collect::<Vec<_>>(), "the velocity");
        let moved = |at: usize| f64::from(weights[at]) + speed(at);
        are_near(&device.f32(w), &(0..count).map(moved).collect::<Vec<_>>(), "the weight");
    }
}
