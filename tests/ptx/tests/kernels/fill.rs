//! `fill.cu`.

use crate::support::{Arguments, Device, Random, SHAPES, line, module, run};

const PTX: &str = include_str!("../../kernels/fill.ptx");

#[test]
fn every_width_is_filled_to_the_end_and_no_further() {
    let (module, mut random) = (module(PTX), Random::new(1));
    for round in 0..SHAPES {
        let size = 1 << (round % 4);
        let (count, before) = (random.below(3000) as usize, random.below(4) as usize * size);
        let value = random.any();
        let device = Device::default();
        let old = random.bytes(before + count * size + 64);
        let memory = device.put(&old);
        let pattern = &value.to_le_bytes()[..size];
        let arguments = Arguments::default().u64(memory.0 + before as u64).aligned(pattern, size).u64(count as u64);
        let launch = line(random.within(1, 8) as u32, random.within(1, 128) as u32);
        run(&module, &format!("fill_{}", 8 * size), launch, &arguments, &device);
        let mut expected = old;
        for element in expected[before..before + count * size].chunks_exact_mut(size) {
            element.copy_from_slice(pattern);
        }
        assert!(device.bytes(memory) == expected, "{count} of {size} bytes at {before}, {launch:?}");
    }
}
