//! CUDA C compiled at run time, by NVIDIA's nvrtc, which is found at run time. No GPU and no driver is needed for it.
//!
//! | module | what it is |
//! |---|---|
//! | `api` | nvrtc's entry points, called by address |
//! | `library` | which library is looked for, and where |
//! | `source` | [`KernelSource`]: all that decides what a compilation gives |
//! | `ptx` | [`Ptx`]: what it gives |
//! | `compiler` | [`Compiler`]: one compilation |
//! | `cache` | [`CompileCache`]: each compilation once |

mod api;
mod cache;
mod compiler;
mod library;
mod ptx;
mod source;

pub use cache::CompileCache;
pub use compiler::Compiler;
pub use ptx::Ptx;
pub use source::KernelSource;
