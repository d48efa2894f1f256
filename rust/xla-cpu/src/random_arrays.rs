//! Random numbers, arrays of random layouts, and all of their indices, for tests.

use purlin_array::{DType, Layout, Shape};

use crate::module::Array;

/// A random generator: SplitMix64.
#[derive(Debug)]
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// A number below `count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % count as u64) as usize
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// The numbers below `count`, in a random order.
    pub(crate) fn shuffled(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        (1..count).for_each(|at| order.swap(at, self.below(at + 1)));
        order
    }

    /// An array of a random layout.
    pub(crate) fn array(&mut self, dtype: DType, dims: &[usize]) -> Array {
        let order: Vec<i64> = self.shuffled(dims.len()).into_iter().map(|axis| axis as i64).collect();
        let order = if self.below(2) == 0 { (0..dims.len() as i64).rev().collect() } else { order };
        array_in(dtype, dims, &order)
    }
}

/// An array of that layout.
pub(crate) fn array_in(dtype: DType, dims: &[usize], minor_to_major: &[i64]) -> Array {
    let dims: Vec<i64> = dims.iter().map(|&dim| dim as i64).collect();
    Array { shape: Shape::new(dtype, &dims).unwrap(), layout: Layout::new(minor_to_major).unwrap() }
}

/// Calls `f` with each index, the last dimension first.
pub(crate) fn for_each_index(dims: &[usize], mut f: impl FnMut(&[usize])) {
    let mut index = vec![0; dims.len()];
    for mut number in 0..dims.iter().product() {
        for (at, size) in index.iter_mut().zip(dims).rev() {
            *at = number % size;
            number /= size;
        }
        f(&index);
    }
}

/// The offset of an index, in elements.
pub(crate) fn place(index: &[usize], strides: &[usize]) -> usize {
    index.iter().zip(strides).map(|(at, stride)| at * stride).sum()
}
