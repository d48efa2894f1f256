//! What memory is that somebody else owns, as the driver knows it: by a question for each import, never for memory that
//! is allocated here.

#![allow(unsafe_code, reason = "the driver is called")]

use std::fmt;
use std::sync::Arc;

use purlin_base::{Error, StatusOr};
use purlin_device::backend::{Extent, Memory, MemoryProperties};

use crate::gpu::Gpu;
use crate::memory::Keepers;

/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`, `CU_POINTER_ATTRIBUTE_IS_MANAGED` and `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
const ATTRIBUTES: [u32; 3] = [2, 8, 9];
/// `CU_MEMORYTYPE_HOST` and `CU_MEMORYTYPE_DEVICE`.
const HOST: u32 = 1;
const DEVICE: u32 = 2;

/// What an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// The host does not reach it.
    Gpu(i32),
    /// Page-locked memory of the host.
    Pinned,
    /// Both the host and GPUs reach it; it is of that GPU now, or of none.
    Managed(i32),
    /// The driver does not know it.
    Unknown,
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gpu(ordinal) => write!(f, "memory of GPU {ordinal}"),
            Self::Pinned => f.write_str("page-locked memory of the host"),
            Self::Managed(_) => f.write_str("managed memory"),
            Self::Unknown => f.write_str("memory that CUDA's driver does not know: the host's, or freed"),
        }
    }
}

impl Whose {
    /// What is at `address`.
    ///
    /// # Errors
    /// What the driver says.
    fn of(gpu: &Gpu, address: usize) -> StatusOr<Self> {
        let _current = gpu.enter()?;
        // As wide as the widest answer, whatever the driver takes for a truth value.
        let (mut kind, mut is_managed, mut ordinal) = (0_u32, 0_u32, -2_i32);
        let mut asked = ATTRIBUTES;
        let mut answers = [(&raw mut kind).cast(), (&raw mut is_managed).cast(), (&raw mut ordinal).cast()];
        // SAFETY: the driver writes each answer to its place, which is as large, and 0 for what it does not know; it
        // reads nothing at the address. Both arrays have as many entries as are said.
        let code = unsafe {
            (gpu.api().base.pointer_attributes)(
                ATTRIBUTES.len() as u32,
                asked.as_mut_ptr(),
                answers.as_mut_ptr(),
                address as u64,
            )
        };
        gpu.check(code, || format!("asking what the memory at {address:#x} is"))?;
        Ok(match kind {
            _ if is_managed != 0 => Self::Managed(ordinal),
            HOST => Self::Pinned,
            DEVICE => Self::Gpu(ordinal),
            _ => Self::Unknown,
        })
    }

    fn is_of(self, gpu: &Gpu) -> bool {
        match self {
            Self::Gpu(ordinal) | Self::Managed(ordinal) => usize::try_from(ordinal) == Ok(gpu.ordinal),
            Self::Pinned | Self::Unknown => false,
        }
    }
}

/// That these bytes, at least one, are memory of the GPU: the first and the last of them, since an allocation may be of
/// several pieces.
///
/// # Errors
/// `InvalidArgument`: they are not, and what is there instead. What the driver says.
pub(crate) fn check_of_gpu(gpu: &Gpu, address: usize, size_bytes: usize) -> Result<(), Error> {
    gpu.driver.check_process()?;
    gpu.check_whole()?;
    let refuse = |what: &str, whose: Whose| {
        Err(Error::invalid_argument(format!(
            "cannot import the {size_bytes} bytes at {address:#x} into the space 'device' of GPU {}, which takes memory \
             of that GPU: {what} {whose}",
            gpu.ordinal
        )))
    };
    let first = Whose::of(gpu, address)?;
    if !first.is_of(gpu) {
        return refuse("this is", first);
    }
    let last = Whose::of(gpu, address + size_bytes.saturating_sub(1))?;
    if last.is_of(gpu) { Ok(()) } else { refuse("the first byte is, and the last is", last) }
}

/// That the host reaches these bytes, as far as the driver knows. A GPU that is broken, or that answers nothing, stops
/// no work of the host: then the caller is believed.
///
/// # Errors
/// `InvalidArgument`: it does not, and whose they are.
fn check_of_host(gpu: &Gpu, keepers: &Keepers, kind: &str, address: usize, size_bytes: usize) -> Result<(), Error> {
    let is_asked = gpu.driver.is_here() && gpu.check_whole().is_ok();
    if !is_asked || keepers.pinned.find(address, size_bytes).is_some() {
        return Ok(());
    }
    match Whose::of(gpu, address) {
        Ok(whose @ Whose::Gpu(ordinal)) => Err(Error::invalid_argument(format!(
            "cannot import the {size_bytes} bytes at {address:#x} into the space '{kind}', which takes memory of the \
             host: this is {whose}, and the space 'device' of GPU {ordinal} takes it"
        ))),
        _ => Ok(()),
    }
}

/// Memory of the host of some kind, which takes no memory of a GPU.
pub(crate) struct HostMemory {
    pub(crate) memory: Box<dyn Memory>,
    pub(crate) kind: &'static str,
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) keepers: Arc<Keepers>,
}

impl Memory for HostMemory {
    fn properties(&self) -> MemoryProperties {
        self.memory.properties()
    }

    fn map(&self, size_bytes: usize, alignment_bytes: usize) -> StatusOr<Arc<dyn Extent>> {
        self.memory.map(size_bytes, alignment_bytes)
    }

    fn import(&self, address: usize, size_bytes: usize) -> StatusOr<Option<Arc<dyn Extent>>> {
        check_of_host(&self.gpu, &self.keepers, self.kind, address, size_bytes)?;
        self.memory.import(address, size_bytes)
    }
}
