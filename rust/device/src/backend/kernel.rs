//! Kernels of devices: their code, and what a backend makes of it.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::ptr::NonNull;

use purlin_base::status::Error;

/// The code of a kernel of a device, and what its caller will pass.
///
/// ```
/// use purlin::backend::{KernelCode, KernelImage};
///
/// let code = KernelCode { image: KernelImage::Ptx(".version 8.0 ..."), name: "scale", parameter_bytes: &[8, 8, 4] };
/// assert_eq!(code.to_string(), "the kernel 'scale' of PTX");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct KernelCode<'a> {
    /// The code in which it is.
    pub image: KernelImage<'a>,
    /// Its name there, where compilers of C++ may have mangled it.
    pub name: &'a str,
    /// How many bytes each of its parameters has.
    pub parameter_bytes: &'a [usize],
}

/// In which form code is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum KernelImage<'a> {
    /// PTX, which a driver compiles when it loads it.
    Ptx(&'a str),
    /// Machine code of one chip.
    Cubin(&'a [u8]),
    /// A function that is loaded already, by the driver's handle for it. Its owner keeps it loaded for as long as the
    /// kernel is in use.
    Loaded(NonNull<c_void>),
}

impl fmt::Display for KernelCode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.image {
            KernelImage::Ptx(_) => "PTX",
            KernelImage::Cubin(_) => "a cubin",
            KernelImage::Loaded(_) => "this process",
        };
        write!(f, "the kernel '{}' of {form}", self.name)
    }
}

/// A kernel that a backend has loaded for a device. Dropping the last reference unloads it.
pub trait DeviceKernel: Any + Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Whether the device can launch it so.
    ///
    /// # Errors
    /// `InvalidArgument`, with what was asked for and the device's limit.
    fn check(&self, dimensions: &LaunchDimensions) -> Result<(), Error>;
}

/// How many threads a launch has, and their shared memory.
///
/// ```
/// use purlin::backend::LaunchDimensions;
///
/// let one_for_each = LaunchDimensions::linear(1000, 256);
/// assert_eq!((one_for_each.grid, one_for_each.block), ([4, 1, 1], [256, 1, 1]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchDimensions {
    /// Blocks of threads, the fastest dimension first. None is 0.
    pub grid: [u32; 3],
    /// Threads of a block, the fastest dimension first. None is 0.
    pub block: [u32; 3],
    /// The dynamic shared memory of each block, in bytes.
    pub shared_memory_bytes: u32,
}

impl LaunchDimensions {
    /// At least `threads` threads in one dimension, `block` to a block, at least one block; no dynamic shared memory.
    /// At most `u32::MAX` blocks, which no device has.
    #[must_use]
    pub const fn linear(threads: u64, block: u32) -> Self {
        let blocks = threads.div_ceil(if block == 0 { 1 } else { block as u64 });
        let blocks = if blocks == 0 { 1 } else { blocks };
        let blocks = if blocks > u32::MAX as u64 { u32::MAX } else { blocks as u32 };
        Self { grid: [blocks, 1, 1], block: [block, 1, 1], shared_memory_bytes: 0 }
    }
}

/// `4 x 1 x 1 blocks of 256 x 1 x 1 threads`
impl fmt::Display for LaunchDimensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([x, y, z], [block_x, block_y, block_z]) = (self.grid, self.block);
        write!(f, "{x} x {y} x {z} blocks of {block_x} x {block_y} x {block_z} threads")?;
        match self.shared_memory_bytes {
            0 => Ok(()),
            bytes => write!(f, " with {bytes} bytes of shared memory"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LaunchDimensions;

    #[test]
    fn a_linear_launch_has_a_block_at_least_and_a_thread_for_each() {
        for (threads, block, blocks) in [(0, 256, 1), (1, 256, 1), (256, 256, 1), (257, 256, 2), (5, 0, 5)] {
            let dimensions = LaunchDimensions::linear(threads, block);
            assert_eq!((dimensions.grid, dimensions.block), ([blocks, 1, 1], [block, 1, 1]));
        }
        assert_eq!(LaunchDimensions::linear(u64::MAX, 1).grid[0], u32::MAX);
        let dimensions = LaunchDimensions { shared_memory_bytes: 64, ..LaunchDimensions::linear(300, 128) };
        let text = "3 x 1 x 1 blocks of 128 x 1 x 1 threads with 64 bytes of shared memory";
        assert_eq!(dimensions.to_string(), text);
    }
}
