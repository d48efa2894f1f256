//! Attributes of functions, and their parameters.

use crate::attribute::{MOST_SHARED_BYTES, MOST_THREADS, SHARED_BYTES};
use crate::boundary::{Answer, Call};
use crate::code::Code;
use crate::kernel::image::chip;
use crate::kernel::module::Function;

/// Numbers of CUfunction_attribute.
mod number {
    pub(super) const MOST_THREADS: u32 = 0;
    pub(super) const SHARED_BYTES: u32 = 1;
    pub(super) const CONSTANT_BYTES: u32 = 2;
    pub(super) const LOCAL_BYTES: u32 = 3;
    pub(super) const REGISTERS: u32 = 4;
    pub(super) const PTX_VERSION: u32 = 5;
    pub(super) const BINARY_VERSION: u32 = 6;
    pub(super) const CACHE_MODE: u32 = 7;
    pub(super) const MOST_DYNAMIC_BYTES: u32 = 8;
    pub(super) const SHARED_CARVEOUT: u32 = 9;
    pub(super) const LAST: u32 = 15;
}

impl Function {
    /// The kernel; its module has it, or there would be no function.
    pub(crate) fn kernel(&self) -> Answer<&purlin_ptx::Kernel> {
        self.ptx.kernel(&self.name).ok_or(Code::NOT_FOUND)
    }

    pub(crate) fn most_threads(&self) -> Answer<u32> {
        Ok(self.kernel()?.max_threads().unwrap_or(MOST_THREADS).min(MOST_THREADS))
    }

    /// The most shared memory that a launch may add.
    pub(crate) fn most_dynamic_bytes(&self) -> Answer<u32> {
        let fixed = u32::try_from(self.kernel()?.static_shared_bytes()).unwrap_or(u32::MAX);
        Ok(self.most_dynamic_bytes.unwrap_or_else(|| SHARED_BYTES.saturating_sub(fixed)))
    }
}

pub(crate) fn attribute(call: &Call, attribute: u32, function: usize) -> Answer<i32> {
    let (major, minor) = call.driver.options.capability;
    let mut state = call.driver.state.lock();
    let function = state.function(call, function)?;
    let kernel = function.kernel()?;
    let value = match attribute {
        number::MOST_THREADS => function.most_threads()?,
        number::SHARED_BYTES => u32::try_from(kernel.static_shared_bytes()).unwrap_or(u32::MAX),
        number::LOCAL_BYTES => u32::try_from(kernel.local_bytes()).unwrap_or(u32::MAX),
        number::REGISTERS => 32,
        // Not `.version`, but the virtual chip of `.target`.
        number::PTX_VERSION => chip(function.ptx.target()).map_or(0, |((major, minor), _)| major * 10 + minor),
        number::BINARY_VERSION => major * 10 + minor,
        number::MOST_DYNAMIC_BYTES => function.most_dynamic_bytes()?,
        number::CONSTANT_BYTES | number::CACHE_MODE => 0,
        number::SHARED_CARVEOUT => return Ok(-1),
        10..=number::LAST => 0,
        _ => return Err(Code::INVALID_VALUE),
    };
    i32::try_from(value).map_err(|_| Code::UNKNOWN)
}

pub(crate) fn set_attribute(call: &Call, attribute: u32, function: usize, value: i32) -> Answer {
    let mut state = call.driver.state.lock();
    let function = state.function(call, function)?;
    match attribute {
        number::MOST_DYNAMIC_BYTES => {
            let fixed = u32::try_from(function.kernel()?.static_shared_bytes()).unwrap_or(u32::MAX);
            let most = MOST_SHARED_BYTES.saturating_sub(fixed);
            let wanted = u32::try_from(value).ok().filter(|wanted| *wanted <= most);
            function.most_dynamic_bytes = Some(wanted.ok_or(Code::INVALID_VALUE)?);
            Ok(())
        }
        number::SHARED_CARVEOUT if (-1..=100).contains(&value) => Ok(()),
        _ => Err(Code::INVALID_VALUE),
    }
}

/// Offset and size of a parameter; INVALID_VALUE behind the last.
pub(crate) fn parameter(call: &Call, function: usize, index: usize) -> Answer<(usize, usize)> {
    let mut state = call.driver.state.lock();
    let kernel = state.function(call, function)?.kernel()?;
    let parameter = kernel.parameters().get(index).ok_or(Code::INVALID_VALUE)?;
    Ok((parameter.offset, parameter.size))
}
