//! Kernels: modules of PTX, functions, launches. The text is interpreted (tests/ptx), on the stream's thread; what a
//! kernel read and wrote is shown to the detector when it is over, with the clock of its launch.

pub(crate) mod call;
pub(crate) mod function;
pub(crate) mod image;
pub(crate) mod launch;
mod memory;
pub(crate) mod module;
pub(crate) mod touched;
