//! Kernels that are loaded for a device, and launches of one.

#![allow(unsafe_code, reason = "kernels take addresses")]

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::float_mode::with_flushed_denormals;
use crate::interpreter::for_each_workgroup;
use crate::kernel::{KernelArgument, KernelDim3, KernelFrame, KernelFunction};
use crate::kernels::{KernelArgPackingSpec, KernelLoaderSpec, KernelPayload, KernelSymbol};
use crate::operand::OperandAccess;
use purlin_async::event::Event;
use purlin_async::future::{Future, future_on};
use purlin_base::{Error, StatusOr};
use purlin_device::backend::{
    Access, Command, CommandList, DeviceKernel, KernelCode, KernelCommand, KernelImage, Launch, LaunchDimensions,
    LaunchInfo, Place, Touched,
};
use purlin_device::{Device, LaunchOptions, RawBuffer};

/// A kernel that is loaded for a device: on `cuda` from PTX, a cubin or a `CUfunction`, on platforms whose kernels are
/// functions of the host from a [`KernelFunction`]. Clones share it; the last one unloads it.
///
/// ```
/// # use std::{ffi::c_void, ptr::NonNull, sync::Arc};
/// use purlin::backend::LaunchDimensions;
/// use purlin::program::{
///     KernelFrame, KernelFunction, KernelLoaderSpec, KernelOperand, KernelPayload, KernelSymbol, LoadedKernel,
///     OperandAccess,
/// };
/// use purlin::{Buffer, LaunchOptions, RawBuffer};
/// # let client = purlin::Client::new(&Default::default(), Arc::new(purlin::host::HostBackend::new()))?;
/// # let device = &client.devices()[0];
///
/// /// Doubles an i32.
/// unsafe extern "C" fn double(frame: *const KernelFrame) -> *mut c_void {
///     // SAFETY: the launch has two operands of four bytes.
///     unsafe {
///         let operands = (*frame).args;
///         *(*operands.add(1)).data.cast::<i32>() = 2 * *(*operands).data.cast::<i32>();
///     }
///     std::ptr::null_mut()
/// }
///
/// let address = NonNull::new(double as KernelFunction as *mut c_void).expect("a function has an address");
/// // SAFETY: it is a part of this program, and a kernel of the host.
/// let symbol = unsafe { KernelSymbol::new(address, Arc::new(())) };
/// let payload = KernelPayload::InProcessSymbol { symbol, persistent_name: None };
/// let kernel = LoadedKernel::load(device, &KernelLoaderSpec::new(payload, "double", 2)?)?;
///
/// let operands = [OperandAccess::Read, OperandAccess::Write].map(|access| KernelOperand { access, size_bytes: 4 });
/// let launch = kernel.bind(LaunchDimensions::linear(1, 1), &operands)?;
/// let (space, result) = (device.default_memory_space(), RawBuffer::allocate(&device.default_memory_space(), 4)?);
/// let input = Buffer::from_slice(&[21], &[1], &space)?;
/// let options = LaunchOptions { dependencies: &[input.ready_event()], ..Default::default() };
/// // SAFETY: the kernel accesses its operands alone, and nothing else writes the one or uses the other.
/// let done = unsafe { launch.start(&[&input.raw_alias()?, &result], &options)? };
/// let output = Buffer::from_raw(result, input.shape(), None, &done)?;
/// assert_eq!(output.to_vec::<i32>()?, [42]);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone)]
pub struct LoadedKernel {
    // In this order, because the device's client unloads what is loaded.
    code: Code,
    /// Keeps what was not loaded here, too.
    spec: Arc<KernelLoaderSpec>,
    device: Device,
}

#[derive(Clone)]
enum Code {
    OfDevice(Arc<dyn DeviceKernel>),
    OfHost(KernelSymbol),
}

/// Memory that a launch passes to a kernel by its address.
///
/// ```
/// use purlin::program::{KernelOperand, OperandAccess};
///
/// assert_eq!(KernelOperand { access: OperandAccess::Read, size_bytes: 64 }.size_bytes, 64);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelOperand {
    /// What the kernel does with it.
    pub access: OperandAccess,
    /// How many bytes.
    pub size_bytes: usize,
}

impl LoadedKernel {
    /// Loads the kernel for `device`. Blocks for as long as a compiler takes, if its code is PTX that is not loaded
    /// yet.
    ///
    /// # Errors
    /// `Unimplemented`: code of another platform. As
    /// [`Backend::load_kernel`](purlin_device::backend::Backend::load_kernel): the driver's log is in the message.
    pub fn load(device: &Device, spec: &KernelLoaderSpec) -> StatusOr<Self> {
        let spec = Arc::new(spec.clone());
        let code = match spec.payload() {
            KernelPayload::InProcessSymbol { symbol, .. } if device.kernels_are_host_functions() => {
                Code::OfHost(symbol.clone())
            }
            payload => {
                let parameter_bytes: Vec<usize> = match spec.packing() {
                    Some(packing) => packing.arguments().iter().map(|argument| argument.bytes().len()).collect(),
                    None => vec![size_of::<u64>(); spec.arity() as usize],
                };
                let image = match payload {
                    KernelPayload::Ptx(text) => KernelImage::Ptx(text),
                    KernelPayload::Cubin(bytes) => KernelImage::Cubin(bytes),
                    KernelPayload::InProcessSymbol { symbol, .. } => KernelImage::Loaded(symbol.address()),
                };
                let code = KernelCode { image, name: spec.kernel_name(), parameter_bytes: &parameter_bytes };
                Code::OfDevice(device.load_kernel(&code)?)
            }
        };
        Ok(Self { device: device.clone(), spec, code })
    }

    /// As [`load`](Self::load), on the client's runner.
    #[must_use]
    pub fn load_on_runner(device: &Device, spec: KernelLoaderSpec) -> Future<Self> {
        let loads_for = device.clone();
        future_on(device.runner(), c"load kernel", move || Self::load(&loads_for, &spec))
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What it was loaded from.
    #[must_use]
    pub fn spec(&self) -> &KernelLoaderSpec {
        &self.spec
    }

    /// A launch of this kernel on `operands`, to be started any number of times, each time on memory that is as long.
    /// Arguments are packed here, but for addresses.
    ///
    /// A kernel of the host is called once for each block of the grid, with operands and constants as the operands of
    /// its frame; it does the work of the block's threads.
    ///
    /// # Errors
    /// `InvalidArgument`: dimensions that are 0 or beyond the device's limits, which the message has; a packing that
    /// names an operand that is not there; another number of arguments than the arity.
    pub fn bind(&self, dimensions: LaunchDimensions, operands: &[KernelOperand]) -> StatusOr<Arc<KernelLaunch>> {
        let work = match &self.code {
            Code::OfHost(symbol) => {
                if dimensions.grid.iter().chain(&dimensions.block).any(|&number| number == 0) {
                    return Err(Error::invalid_argument(format!("{self:?}: {dimensions}, and none may be 0")));
                }
                let arguments = self.arguments(operands.len())?;
                Work::OfHost(HostLaunch { symbol: symbol.clone(), dimensions, arguments })
            }
            Code::OfDevice(_) => {
                let places: Vec<Option<Place>> =
                    (0..operands.len()).map(|range| Some(Place::begin_of(range))).collect();
                Work::OfDevice(CommandList::new(vec![self.command(dimensions, operands, &places)?])?)
            }
        };
        Ok(Arc::new(KernelLaunch { work, operands: operands.into(), kernel: self.clone() }))
    }

    /// A command of the device: the kernel on operands that are at `places`, or nowhere if they are empty.
    ///
    /// # Errors
    /// As [`bind`](Self::bind). `Unimplemented`: the kernel is a function of the host.
    pub(crate) fn command(
        &self,
        dimensions: LaunchDimensions,
        operands: &[KernelOperand],
        places: &[Option<Place>],
    ) -> StatusOr<Command> {
        let Code::OfDevice(kernel) = &self.code else {
            return Err(Error::unimplemented(format!(
                "{self:?} is a function of the host, and no command of a device"
            )));
        };
        let mut command = KernelCommand::new(Arc::clone(kernel), dimensions)?;
        for argument in self.arguments(operands.len())? {
            let mut addresses: SmallVec<[(usize, Touched); 1]> = SmallVec::new();
            for relocation in argument.relocations() {
                let number = relocation.argument_index as usize;
                let KernelOperand { access, size_bytes } = operands[number];
                let access = if access.writes() { Access::Write } else { Access::Read };
                if let Some(place) = places[number] {
                    addresses.push((relocation.offset_bytes, Touched { access, place, size_bytes }));
                }
            }
            command = command.with_argument(argument.bytes(), &addresses);
        }
        Ok(Command::Kernel(Box::new(command)))
    }

    /// The arguments of a launch with so many operands, checked.
    fn arguments(&self, operands: usize) -> StatusOr<Vec<KernelArgPackingSpec>> {
        // The addresses do not matter: whether there are enough of them does.
        self.spec.pack(&vec![0; operands], 0)?;
        match self.spec.packing() {
            Some(packing) => Ok(packing.arguments().to_vec()),
            None => (0..self.spec.arity())
                .map(|index| {
                    let mut address = KernelArgPackingSpec::default();
                    address.push_address(index).map(|()| address)
                })
                .collect(),
        }
    }
}

/// `LoadedKernel('scale' on cuda:0)`
impl fmt::Debug for LoadedKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoadedKernel('{}' on {})", self.spec.kernel_name(), self.device)
    }
}

/// A kernel with its arguments, but for addresses.
///
/// See the example of [`LoadedKernel`].
pub struct KernelLaunch {
    // Before the kernel, which it is a launch of.
    work: Work,
    operands: SmallVec<[KernelOperand; 8]>,
    kernel: LoadedKernel,
}

enum Work {
    OfDevice(CommandList),
    OfHost(HostLaunch),
}

/// `KernelLaunch('scale' on cuda:0)`
impl fmt::Debug for KernelLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KernelLaunch('{}' on {})", self.name(), self.kernel.device)
    }
}

impl KernelLaunch {
    /// Starts the kernel on `memory`, one range for each operand, as [`Device::launch`] does.
    ///
    /// # Errors
    /// `InvalidArgument`: another number of ranges than operands, or a range that is shorter than its operand. As
    /// [`Device::launch`].
    ///
    /// # Safety
    /// As [`Device::launch`]: the kernel accesses its operands as it was bound, and no other memory.
    #[track_caller]
    pub unsafe fn start(self: &Arc<Self>, memory: &[&RawBuffer], options: &LaunchOptions<'_>) -> StatusOr<Event> {
        if memory.len() != self.operands.len() {
            let (operands, there) = (self.operands.len(), memory.len());
            let why =
                format!("the kernel '{}' has {operands} operands, and is launched on {there} ranges", self.name());
            return Err(Error::invalid_argument(why));
        }
        let operands = || self.operands.iter().zip(memory);
        if let Some(short) = operands().position(|(operand, range)| range.size_bytes() < operand.size_bytes) {
            let (there, wanted) = (memory[short].size_bytes(), self.operands[short].size_bytes);
            let why = format!("operand {short} of the kernel '{}' has {wanted} bytes, its range {there}", self.name());
            return Err(Error::invalid_argument(why));
        }
        // An operand that is read and written is a range that is written, and one more that is read.
        let mut ranges: SmallVec<[(Access, &RawBuffer); 16]> = operands()
            .map(|(operand, &range)| (if operand.access.writes() { Access::Write } else { Access::Read }, range))
            .collect();
        let read_too = operands().filter(|(operand, _)| operand.access == OperandAccess::ReadWrite);
        ranges.extend(read_too.map(|(_, &range)| (Access::Read, range)));
        let launch: Arc<dyn Launch> = self.clone();
        // SAFETY: the caller's promise.
        unsafe { self.kernel.device.launch(launch, &ranges, options) }
    }
}

impl Launch for KernelLaunch {
    fn name(&self) -> &str {
        self.kernel.spec.kernel_name()
    }

    unsafe fn launch(&self, _info: LaunchInfo, addresses: &[*mut u8]) -> Result<(), Error> {
        match &self.work {
            // SAFETY: the caller's promise.
            Work::OfHost(launch) => unsafe { launch.call(self.name(), &self.operands, addresses) },
            Work::OfDevice(_) => Err(Error::internal(format!("{self:?} is no work of the host"))),
        }
    }

    fn commands(&self, _device: u16) -> Option<&CommandList> {
        match &self.work {
            Work::OfDevice(list) => Some(list),
            Work::OfHost(_) => None,
        }
    }
}

/// A launch of a kernel that is a function of the host.
struct HostLaunch {
    symbol: KernelSymbol,
    dimensions: LaunchDimensions,
    arguments: Vec<KernelArgPackingSpec>,
}

impl HostLaunch {
    /// Calls the function for each block, with denormals as zeros, as programs call it.
    ///
    /// # Errors
    /// `Internal`: it says that it has failed. Later blocks are not called then.
    ///
    /// # Safety
    /// As [`Launch::launch`].
    unsafe fn call(&self, name: &str, operands: &[KernelOperand], addresses: &[*mut u8]) -> Result<(), Error> {
        if addresses.len() < operands.len() {
            return Err(Error::internal(format!("the kernel '{name}' was launched on {} ranges", addresses.len())));
        }
        // SAFETY: whoever made the symbol promised that it is a kernel of the platforms on which it is launched, and
        // for those whose kernels are functions of the host that is this type.
        let function = unsafe { std::mem::transmute::<*const c_void, KernelFunction>(self.symbol.address().as_ptr()) };
        // Constants, with addresses in them.
        let mut constants: Vec<Vec<u8>> = Vec::new();
        let arguments: SmallVec<[KernelArgument; 16]> =
            self.arguments.iter().map(|of| argument(of, operands, addresses, &mut constants)).collect();
        let blocks = self.dimensions.grid.map(u64::from);
        let position = |[x, y, z]: [u64; 3]| KernelDim3 { x, y, z };
        let grid = position(blocks);
        let call = |block: [u64; 3]| {
            let id = position(block);
            let frame = KernelFrame {
                num_workgroups: &raw const grid,
                id: &raw const id,
                num_args: arguments.len(),
                args: arguments.as_ptr(),
            };
            // SAFETY: the caller's promise: the operands are there, for the kernel to access as it was bound.
            if unsafe { function(&raw const frame) }.is_null() {
                return Ok(());
            }
            Err(Error::internal(format!("the kernel '{name}' failed in block {block:?}")))
        };
        with_flushed_denormals(|| for_each_workgroup(blocks, call))
    }
}

/// An argument of the frame: an operand by its address, or constant bytes by theirs.
fn argument(
    argument: &KernelArgPackingSpec,
    operands: &[KernelOperand],
    addresses: &[*mut u8],
    constants: &mut Vec<Vec<u8>>,
) -> KernelArgument {
    match argument.relocations() {
        [one] if argument.bytes().len() == size_of::<u64>() => {
            let range = one.argument_index as usize;
            KernelArgument { data: addresses[range].cast(), size_bytes: operands[range].size_bytes }
        }
        relocations => {
            let mut bytes = argument.bytes().to_vec();
            for relocation in relocations {
                let (at, address) = (relocation.offset_bytes, addresses[relocation.argument_index as usize]);
                let address = address.expose_provenance() as u64;
                bytes[at..at + size_of::<u64>()].copy_from_slice(&address.to_le_bytes());
            }
            constants.push(bytes);
            let kept = constants.last_mut().map_or(ptr::null_mut(), |bytes| bytes.as_mut_ptr());
            KernelArgument { data: kept.cast(), size_bytes: argument.bytes().len() }
        }
    }
}
