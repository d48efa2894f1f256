//! Shapes, and what the elements of arrays are.

use std::sync::Arc;

use super::family::Formula;

/// Bytes of an element, and dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeOf {
    /// As C++ and Rust are to name the type.
    pub dtype: &'static str,
    /// Of an element.
    pub width: usize,
    /// Outermost first.
    pub dims: &'static [usize],
}

const fn shape(dtype: &'static str, width: usize, dims: &'static [usize]) -> ShapeOf {
    ShapeOf { dtype, width, dims }
}

/// The shapes that there are; four of the same size, two too large for a copy inside a call, and the token.
pub const SHAPES: [ShapeOf; 9] = [
    shape("u8", 1, &[4]),
    shape("u8", 1, &[8]),
    shape("f32", 4, &[2]),
    shape("u8", 1, &[2, 4]),
    shape("s16", 2, &[2, 2]),
    shape("u8", 1, &[0]),
    shape("u8", 1, &[70000]),
    shape("u8", 1, &[250, 280]),
    shape("token", 0, &[]),
];

/// The last of [`SHAPES`].
pub const TOKEN: usize = 8;

/// Which shape an argument in 0..14 chooses: a large one by one in seven.
#[must_use]
pub fn shape_of(arg: u8) -> usize {
    usize::from(if arg < 12 { arg % 6 } else { arg - 6 })
}

impl ShapeOf {
    /// Of all elements.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.width * self.dims.iter().product::<usize>()
    }

    /// Whether it has an order of elements other than the row-major one.
    #[must_use]
    pub fn can_turn(&self) -> bool {
        self.dims.len() == 2
    }
}

/// Bytes `0..size` of the pattern that a seed stands for.
#[must_use]
pub fn pattern(seed: u8, size: usize) -> Vec<u8> {
    (0..size).map(|i| (usize::from(seed) * 31 + i * 7 + (i >> 8) * 13) as u8).collect()
}

/// Row-major elements in column-major order, or the other way round, which is the same with the dimensions exchanged.
#[must_use]
pub fn turned(bytes: &[u8], rows: usize, columns: usize, width: usize) -> Vec<u8> {
    let mut out = vec![0; bytes.len()];
    for row in 0..rows {
        for column in 0..columns {
            let (from, to) = ((row * columns + column) * width, (column * rows + row) * width);
            out[to..to + width].copy_from_slice(&bytes[from..from + width]);
        }
    }
    out
}

/// FNV-1a of 32 bits.
#[must_use]
pub fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811C_9DC5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// What an array's bytes on the device are.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Bytes(Arc<[u8]>),
    /// They have not been written.
    Unwritten,
    /// They have not been provided yet.
    Owed,
    /// Those of another one, by index.
    Same(usize),
    /// What a program makes of others, by index.
    Computed(Formula, Vec<usize>),
}
