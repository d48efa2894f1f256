//! `pack.cu`.

use crate::support::{Arguments, Device, Random, SHAPES, line, module, run};

const PTX: &str = include_str!("../../kernels/pack.ptx");

/// An array of strange strides within its memory.
struct Strided {
    dims: Vec<u64>,
    strides: Vec<i64>,
    /// Of the element whose indices are 0.
    start: i64,
    size_bytes: usize,
    count: u64,
}

impl Strided {
    /// `overlaps`: elements may lie on each other, as they do when an array is broadcast.
    fn new(random: &mut Random, element: i64, overlaps: bool) -> Self {
        let rank = random.below(9) as usize;
        let dims: Vec<u64> = (0..rank).map(|_| random.within(1, if rank > 4 { 3 } else { 9 })).collect();
        let mut order: Vec<usize> = (0..rank).collect();
        for last in (1..rank).rev() {
            order.swap(last, random.below(last as u64 + 1) as usize);
        }
        let (mut strides, mut extent) = (vec![0; rank], element);
        for d in order {
            let gap = if random.below(3) == 0 { random.below(4) as i64 * element } else { 0 };
            strides[d] = match random.below(6) {
                0 if overlaps => 0,
                1 => -(extent + gap),
                _ => extent + gap,
            };
            extent += strides[d].abs() * (dims[d] as i64 - 1);
        }
        let below: i64 = dims.iter().zip(&strides).map(|(&dim, &stride)| (dim as i64 - 1) * stride.min(0)).sum();
        let count = dims.iter().product();
        Self { dims, strides, start: -below, size_bytes: extent as usize, count }
    }

    fn offset(&self, mut index: u64) -> usize {
        let mut offset = self.start;
        for (dim, stride) in self.dims.iter().zip(&self.strides).rev() {
            offset += (index % dim) as i64 * stride;
            index /= dim;
        }
        offset as usize
    }

    /// As the kernel has it.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for d in 0..8 {
            bytes.extend(self.dims.get(d).unwrap_or(&77).to_le_bytes());
        }
        for d in 0..8 {
            bytes.extend(self.strides.get(d).unwrap_or(&-77).to_le_bytes());
        }
        bytes.extend((self.dims.len() as u64).to_le_bytes());
        bytes
    }
}

#[test]
fn strided_arrays_become_dense_and_strided_again() {
    let (module, mut random) = (module(PTX), Random::new(2));
    for round in 0..2 * SHAPES {
        let element = 1 << (round % 5);
        let packs = round % 2 == 0;
        let array = Strided::new(&mut random, element as i64, packs);
        let device = Device::default();
        let (old, dense) = (random.bytes(array.size_bytes), random.bytes(array.count as usize * element));
        let (strided_at, dense_at) = (device.put(&old), device.put(&dense));
        let at = strided_at.0 + array.start as u64;
        let (to, from) = if packs { (dense_at.0, at) } else { (at, dense_at.0) };
        let arguments = Arguments::default().u64(to).u64(from).aligned(&array.bytes(), 8).u64(array.count);
        let block = random.within(1, 256);
        let launch = line(array.count.div_ceil(block) as u32, block as u32);
        let verb = if packs { "pack" } else { "unpack" };
        run(&module, &format!("{verb}_{element}"), launch, &arguments, &device);
        let (mut expected_strided, mut expected_dense) = (old, dense);
        for index in 0..array.count as usize {
            let strided = &mut expected_strided[array.offset(index as u64)..][..element];
            let dense = &mut expected_dense[index * element..][..element];
            if packs { dense.copy_from_slice(strided) } else { strided.copy_from_slice(dense) }
        }
        let what = format!("{verb} of {element} bytes, {:?} by {:?}", array.dims, array.strides);
        assert!(device.bytes(dense_at) == expected_dense, "{what}");
        assert!(device.bytes(strided_at) == expected_strided, "{what}");
    }
}
