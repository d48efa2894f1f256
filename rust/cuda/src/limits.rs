//! How large a launch may be.

#![allow(unsafe_code, reason = "the driver is called")]

use std::ffi::c_int;

use cudarc::driver::sys::CUfunction;
use purlin_device::backend::LaunchDimensions;

use crate::api::ResultCode;
use crate::gpu::Gpu;

/// Numbers of attributes of devices: `MAX_BLOCK_DIM_X` and those behind it, `MAX_GRID_DIM_X` and those behind it, and
/// `MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`.
const BLOCK: [u32; 3] = [2, 3, 4];
const GRID: [u32; 3] = [5, 6, 7];
const SHARED_BYTES: u32 = 97;
/// Numbers of attributes of functions: `MAX_THREADS_PER_BLOCK`, `SHARED_SIZE_BYTES`, and
/// `MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const THREADS: u32 = 0;
const STATIC_BYTES: u32 = 1;
const DYNAMIC_BYTES: u32 = 8;

/// The limits of a kernel on a GPU.
#[derive(Debug)]
pub(crate) struct Limits {
    grid: [u32; 3],
    block: [u32; 3],
    threads: u32,
    dynamic_shared_bytes: u32,
}

impl Limits {
    /// Those of `function`, which is allowed as much shared memory as the GPU has for a block. The context is current.
    ///
    /// # Errors
    /// What the driver says.
    pub(crate) fn of(gpu: &Gpu, function: CUfunction) -> Result<Self, ResultCode> {
        let base = &gpu.api().base;
        let ask = |number: u32| {
            let mut value = 0;
            // SAFETY: the driver writes a number.
            match unsafe { (base.function_attribute)(&mut value, number, function) } {
                0 => Ok(u32::try_from(value).unwrap_or(0)),
                code => Err(code),
            }
        };
        let of_gpu = |number: u32| gpu.attribute(number).and_then(|value| u32::try_from(value).ok());
        // A driver that does not say has no limit here, and refuses the launch.
        let three = |numbers: [u32; 3]| numbers.map(|number| of_gpu(number).unwrap_or(u32::MAX));
        let threads = ask(THREADS)?;
        let mut dynamic_shared_bytes = ask(DYNAMIC_BYTES)?;
        let most = of_gpu(SHARED_BYTES).unwrap_or(0).saturating_sub(ask(STATIC_BYTES)?);
        if most > dynamic_shared_bytes {
            // SAFETY: the function is there.
            match unsafe { (base.set_function_attribute)(function, DYNAMIC_BYTES, most as c_int) } {
                0 => dynamic_shared_bytes = most,
                code => return Err(code),
            }
        }
        Ok(Self { grid: three(GRID), block: three(BLOCK), threads, dynamic_shared_bytes })
    }

    /// # Errors
    /// What is too large, or nothing, and the limit.
    pub(crate) fn check(&self, dimensions: &LaunchDimensions) -> Result<(), String> {
        let LaunchDimensions { grid, block, shared_memory_bytes } = *dimensions;
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            for (what, wanted, most) in
                [("blocks", grid[axis], self.grid[axis]), ("threads", block[axis], self.block[axis])]
            {
                if wanted == 0 || wanted > most {
                    return Err(format!("{wanted} {what} in {name}, and 1 to {most} are possible"));
                }
            }
        }
        let threads = block.iter().map(|&threads| u64::from(threads)).product::<u64>();
        if threads > u64::from(self.threads) {
            return Err(format!("{threads} threads in a block, and {} are possible", self.threads));
        }
        if shared_memory_bytes > self.dynamic_shared_bytes {
            let most = self.dynamic_shared_bytes;
            return Err(format!("{shared_memory_bytes} bytes of dynamic shared memory, and {most} are possible"));
        }
        Ok(())
    }
}
