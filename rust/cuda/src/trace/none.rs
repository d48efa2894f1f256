//! What models have instead: nothing is traced.

use cudarc::driver::sys::CUstream;

use crate::driver::Driver;
use crate::gpu::Gpu;
use crate::operation_name::OperationName;
use crate::stream::{Content, Role};

pub(crate) struct Tracer;

pub(crate) enum Times {}

impl Tracer {
    pub(crate) fn new(_driver: &'static Driver, _index: usize) -> Self {
        Self
    }

    pub(crate) fn times(&self, _content: Content<'_>) -> Option<Times> {
        None
    }

    pub(crate) fn tell(&self, _gpu: &Gpu, _role: Role, _name: &OperationName, times: Times) {
        match times {}
    }

    pub(crate) fn destroy(&self, _gpu: &Gpu) {}
}

impl Times {
    pub(crate) fn begin(&self, _gpu: &Gpu, _stream: CUstream) -> bool {
        match *self {}
    }

    pub(crate) fn end(&self, _gpu: &Gpu, _stream: CUstream) -> bool {
        match *self {}
    }
}
