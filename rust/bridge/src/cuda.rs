//! `purlin/cuda.h`. Compiling is a plain function, because a source has arrays of texts.

use purlin::cuda::{Compiler, CudaBackend, KernelSource, Ptx};
use purlin::program::ComputeCapability;
use purlin_base::status::StatusRep;
use purlin_base::{Error, StatusOr};
use purlin_device::backend::{ForeignEvent, ForeignStream};
use purlin_ffi::handle::{elements, give, give_or, give_owned, owned};
use purlin_ffi::panic::{contain, guard, guard_at};
use purlin_ffi::words::{Bytes, borrowed, give_event, text_of};

use crate::device::DeviceRep;
use crate::source_location::Place;

/// What C++ has of a compilation until it has copied it.
pub struct PtxRep(pub(crate) Ptx);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/device.rs.h");

        #[namespace = "purlin::v0::internal"]
        type EventHeader = crate::abi::ffi::EventHeader;
        #[namespace = "purlin::v0::internal"]
        type DeviceRep = crate::device::DeviceRep;
        #[namespace = "purlin::v0"]
        type SourceLocation = crate::source_location::Place;
        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type PtxRep;

        /// Null, or an error, C++'s. Blocks.
        fn cuda_availability() -> *const StatusRep;
        /// An event, C++'s.
        unsafe fn cuda_event_of_stream(
            device: &DeviceRep,
            stream: usize,
            location: &SourceLocation,
        ) -> *mut EventHeader;
        /// An event, C++'s.
        unsafe fn cuda_event_of_event(device: &DeviceRep, event: usize, location: &SourceLocation) -> *mut EventHeader;
        /// Null, or an error, C++'s. May block on the event, the one at that place.
        unsafe fn cuda_have_stream_wait(
            device: &DeviceRep,
            stream: usize,
            event: *const *mut EventHeader,
        ) -> *const StatusRep;
        /// A handle, or 0 and an error.
        fn cuda_compute_stream(device: &DeviceRep, number: u8, error: &mut *const StatusRep) -> usize;
        fn ptx_text(ptx: &PtxRep) -> &str;
        fn ptx_log(ptx: &PtxRep) -> &str;
        /// Empty if the source had no such expression.
        unsafe fn ptx_lowered_name<'a>(ptx: &'a PtxRep, expression: &[u8]) -> &'a str;
        unsafe fn ptx_release(ptx: *mut PtxRep);
    }
}

/// A `purlin::KernelSource`. Borrowed.
#[repr(C)]
pub struct RawKernelSource {
    name: Bytes,
    text: Bytes,
    target: Bytes,
    options: *const Bytes,
    option_count: usize,
    /// Name and text of each.
    headers: *const Bytes,
    /// Twice the number of headers.
    header_count: usize,
    name_expressions: *const Bytes,
    name_expression_count: usize,
}

impl RawKernelSource {
    /// # Errors
    /// `InvalidArgument`: what no source can be.
    ///
    /// # Safety
    /// The fields are what the struct says.
    pub(crate) unsafe fn get(&self) -> StatusOr<KernelSource> {
        // SAFETY: the caller's promise.
        let text = |bytes: &Bytes| text_of(unsafe { elements(bytes.data.cast::<u8>(), bytes.size_bytes) });
        // SAFETY: the caller's promise.
        let (options, headers, expressions) = unsafe {
            (
                elements(self.options, self.option_count),
                elements(self.headers, self.header_count),
                elements(self.name_expressions, self.name_expression_count),
            )
        };
        let name = text(&self.name)?;
        let within = |error: Error| error.prefixed(name);
        let target: ComputeCapability = text(&self.target).map_err(within)?.parse().map_err(within)?;
        let mut source = KernelSource::new(name, text(&self.text).map_err(within)?, target)?;
        for option in options {
            source = source.with_option(text(option).map_err(within)?)?;
        }
        for header in headers.chunks_exact(2) {
            source = source.with_header(text(&header[0]).map_err(within)?, text(&header[1]).map_err(within)?)?;
        }
        for expression in expressions {
            source = source.with_name_expression(text(expression).map_err(within)?)?;
        }
        Ok(source)
    }
}

/// What a source is compiled to, C++'s, or null and an error.
///
/// # Safety
/// `source` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_cuda_compile(source: &RawKernelSource, error: &mut *const StatusRep) -> *mut PtxRep {
    let compiled = guard(|| {
        // SAFETY: the caller's promise.
        let source = unsafe { source.get() }?;
        Compiler::find()?.compile(&source)
    });
    give_owned(compiled.map(PtxRep), error)
}

fn cuda_availability() -> *const ffi::StatusRep {
    give(guard(|| CudaBackend::new().map(drop)))
}

/// # Safety
/// The handle is what [`ForeignStream::new`] wants; `location` is what its struct says.
unsafe fn cuda_event_of_stream(device: &DeviceRep, stream: usize, location: &Place) -> *mut ffi::EventHeader {
    give_event(|| {
        // SAFETY: the caller's promises.
        unsafe { guard_at(location.0, || Ok(device.0.foreign_event(ForeignStream::new(stream).into()))) }
    })
    .cast()
}

/// # Safety
/// The handle is what [`ForeignEvent::new`] wants; `location` is what its struct says.
unsafe fn cuda_event_of_event(device: &DeviceRep, event: usize, location: &Place) -> *mut ffi::EventHeader {
    give_event(|| {
        // SAFETY: the caller's promises.
        unsafe { guard_at(location.0, || Ok(device.0.foreign_event(ForeignEvent::new(event).into()))) }
    })
    .cast()
}

/// # Safety
/// The handle is what [`ForeignStream::new`] wants; the event is alive.
unsafe fn cuda_have_stream_wait(
    device: &DeviceRep,
    stream: usize,
    event: *const *mut ffi::EventHeader,
) -> *const ffi::StatusRep {
    give(guard(|| {
        // SAFETY: the caller's promises.
        let (stream, event) = unsafe { (ForeignStream::new(stream), borrowed(event.cast(), 1)) };
        device.0.have_stream_wait(stream, &event[0])
    }))
}

fn cuda_compute_stream(device: &DeviceRep, number: u8, error: &mut *const ffi::StatusRep) -> usize {
    give_or(guard(|| device.0.launch_stream(number)), 0, error)
}

fn ptx_text(ptx: &PtxRep) -> &str {
    ptx.0.text()
}

fn ptx_log(ptx: &PtxRep) -> &str {
    ptx.0.log()
}

/// # Safety
/// C++ reads the answer for no longer than it has `ptx`.
unsafe fn ptx_lowered_name<'a>(ptx: &'a PtxRep, expression: &[u8]) -> &'a str {
    contain("ptx_lowered_name", "", || {
        let expression = text_of(expression);
        expression.ok().and_then(|expression| ptx.0.lowered_name(expression)).unwrap_or_default()
    })
}

/// # Safety
/// `ptx` came from `purlin_cuda_compile`, and C++ gives it up.
unsafe fn ptx_release(ptx: *mut PtxRep) {
    contain("ptx_release", (), || {
        // SAFETY: the caller's promise.
        drop(unsafe { owned(ptx) });
    })
}
