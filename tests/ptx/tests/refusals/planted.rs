//! Defects in kernels that would be right without them, each of which is seen.

use purlin_ptx::{Launch, Trap};

use crate::support::{Arguments, Device, Random, line, module, try_run};

const FILL: &str = include_str!("../../kernels/fill.ptx");
const SOFTMAX: &str = include_str!("../../kernels/softmax.ptx");
const REDUCE: &str = include_str!("../../kernels/reduce.ptx");
const MATMUL: &str = include_str!("../../kernels/matmul.ptx");

/// The softmax of two rows, whose largest numbers are not the first ones, by 64 threads; or the trap.
fn softmax(text: &str, shared_bytes: u32) -> Result<Vec<f32>, Trap> {
    let (module, device) = (module(text), Device::default());
    let values: Vec<f32> = (0..200).map(|i| (i % 97) as f32 / 8.0 - 5.0).collect();
    let (out, input) = (device.put(&[0; 4 * 200]), device.put_f32(&values));
    let launch = Launch { grid: [2, 1, 1], block: [64, 1, 1], dynamic_shared_bytes: shared_bytes };
    let arguments = Arguments::default().pointer(out).pointer(input).u32(100);
    try_run(&module, "softmax_rows", launch, &arguments, &device)?;
    Ok(device.f32(out))
}

/// The text without its `number`-th barrier.
fn without_barrier(text: &str, number: usize) -> String {
    let at = text.match_indices("bar.sync").nth(number).unwrap().0;
    let end = at + text[at..].find(';').unwrap() + 1;
    format!("{}{}", &text[..at], &text[end..])
}

#[test]
fn every_barrier_of_a_reduction_is_needed() {
    let right = softmax(SOFTMAX, 256).unwrap();
    let sums = right.chunks(100).map(|row| row.iter().sum::<f32>());
    assert!(sums.into_iter().all(|sum| (sum - 1.0).abs() < 1e-5), "{right:?}");
    for number in 0..SOFTMAX.matches("bar.sync").count() {
        let raced = softmax(&without_barrier(SOFTMAX, number), 256);
        assert!(matches!(raced, Err(Trap::Race { .. })), "barrier {number}: {raced:?}");
    }
}

#[test]
fn every_barrier_of_a_product_is_needed() {
    let product = |text: &str| {
        let (module, device) = (module(text), Device::default());
        let mut random = Random::new(70);
        let (a, b) = (device.put_f32(&random.units(16 * 40)), device.put_f32(&random.units(40 * 16)));
        let out = device.put(&[0; 4 * 256]);
        let arguments = Arguments::default().pointer(out).pointer(a).pointer(b).u32(16).u32(16).u32(40);
        let launch = Launch { grid: [1; 3], block: [16, 16, 1], dynamic_shared_bytes: 0 };
        try_run(&module, "matmul", launch, &arguments, &device)
    };
    assert_eq!(product(MATMUL), Ok(()));
    for number in 0..MATMUL.matches("bar.sync").count() {
        let raced = product(&without_barrier(MATMUL, number));
        assert!(matches!(raced, Err(Trap::Race { .. })), "barrier {number}: {raced:?}");
    }
}

#[test]
fn the_barrier_between_warps_of_a_sum_is_needed() {
    let sum = |text: &str| {
        let (module, device) = (module(text), Device::default());
        let (out, input) = (device.put_f32(&[0.0]), device.put_f32(&[1.0; 500]));
        let arguments = Arguments::default().pointer(out).pointer(input).u32(500);
        try_run(&module, "sum", line(2, 96), &arguments, &device)
    };
    assert_eq!(sum(REDUCE), Ok(()));
    let raced = sum(&without_barrier(REDUCE, 0));
    assert!(matches!(raced, Err(Trap::Race { .. })), "{raced:?}");
}

#[test]
fn too_little_shared_memory_is_found() {
    let trap = softmax(SOFTMAX, 252).unwrap_err();
    assert!(trap.to_string().ends_with("writes 4 bytes at 0xfc: there are 252 bytes of shared memory"), "{trap}");
}

#[test]
fn an_end_that_is_off_by_one_is_found() {
    let fill = |text: &str| {
        let (module, device) = (module(text), Device::default());
        let memory = device.put(&[0; 400]);
        let arguments = Arguments::default().pointer(memory).u32(7).u64(100);
        try_run(&module, "fill_32", line(4, 32), &arguments, &device)
    };
    assert_eq!(fill(FILL), Ok(()));
    // `i <= count` instead of `i < count`.
    let planted = FILL.replace("setp.ge.u64", "setp.gt.u64").replace("setp.lt.u64", "setp.le.u64");
    let trap = fill(&planted).unwrap_err().to_string();
    assert!(trap.ends_with("writes 4 bytes at 0x700000000190: 400 bytes into an allocation of 400"), "{trap}");
}

#[test]
fn a_thread_that_leaves_before_a_barrier_is_found() {
    let planted = SOFTMAX.replacen("bar.sync", "setp.eq.s32 %p1, %tid_planted, 5;\n@%p1 exit;\nbar.sync", 1);
    let planted = planted.replacen("ld.param", ".reg .b32 %tid_planted;\nmov.u32 %tid_planted, %tid.x;\nld.param", 1);
    let trap = softmax(&planted, 256).unwrap_err();
    assert!(matches!(trap, Trap::Barrier { .. }), "{trap}");
    assert!(trap.to_string().contains("thread (5, 0, 0) left"), "{trap}");
}
