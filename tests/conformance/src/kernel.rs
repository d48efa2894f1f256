//! The kernel of cases that launch one: a step of gradient descent with momentum, on three arrays of 64 numbers.

#![allow(unsafe_code, reason = "kernels take addresses, and their callers order what uses memory")]

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use purlin_async::Event;
use purlin_device::backend::LaunchDimensions;
use purlin_device::{Device, LaunchOptions, RawBuffer};
use purlin_program::{
    KernelArgsPackingSpec, KernelFrame, KernelFunction, KernelLaunch, KernelLoaderSpec, KernelOperand, KernelPayload,
    KernelSymbol, LoadedKernel, OperandAccess,
};

/// The numbers of each array.
pub(crate) const COUNT: usize = 64;
/// Those of a block: 8 threads with 4 each.
const PER_BLOCK: usize = 32;
const RATE: f32 = 0.5;
const DECAY: f32 = 0.25;

/// The code of the kernel `momentum(weights, velocity, gradient, rate, decay, count)`, which takes three addresses, two
/// `f32` and a `u32`: `velocity = decay * velocity + gradient; weights -= rate * velocity`, for four numbers a thread.
pub type Momentum = fn() -> KernelPayload;

/// A function of the host, for backends whose kernels are such.
#[must_use]
pub fn momentum_of_host() -> KernelPayload {
    let address = NonNull::new(momentum as KernelFunction as *mut c_void).expect("a function has an address");
    // SAFETY: a function of this program, of the type that the host wants.
    let symbol = unsafe { KernelSymbol::new(address, Arc::new(())) };
    KernelPayload::InProcessSymbol { symbol, persistent_name: None }
}

unsafe extern "C" fn momentum(frame: *const KernelFrame) -> *mut c_void {
    // SAFETY: a Step has arrays of COUNT numbers, and constants of four bytes.
    unsafe {
        let (block, arguments) = ((*(*frame).id).x as usize, (*frame).args);
        let [weights, velocity, gradient] = [0, 1, 2].map(|at| (*arguments.add(at)).data.cast::<f32>());
        let [rate, decay] = [3, 4].map(|at| *(*arguments.add(at)).data.cast::<f32>());
        for at in block * PER_BLOCK..(block + 1) * PER_BLOCK {
            *velocity.add(at) = decay * *velocity.add(at) + *gradient.add(at);
            *weights.add(at) -= rate * *velocity.add(at);
        }
    }
    ptr::null_mut()
}

/// The kernel on arrays of so many numbers.
pub(crate) fn momentum_spec(code: Momentum, rate: f32, decay: f32, count: usize) -> KernelLoaderSpec {
    let count = u32::try_from(count).expect("a few megabytes");
    let mut packing = KernelArgsPackingSpec::default();
    (0..3).for_each(|operand| packing.push_address(operand).expect("there are three"));
    [rate, decay].iter().for_each(|value| packing.push_constant(&value.to_le_bytes()));
    packing.push_constant(&count.to_le_bytes());
    KernelLoaderSpec::new(code(), "momentum", 6).expect("its name is not empty").with_packing(packing)
}

/// The kernel on a device, and its launch.
pub(crate) struct Step(Arc<KernelLaunch>);

impl Step {
    pub(crate) fn new(device: &Device, code: Momentum) -> Self {
        let spec = momentum_spec(code, RATE, DECAY, COUNT);
        let kernel = LoadedKernel::load(device, &spec).expect("the backend takes this code");
        let operand = |access| KernelOperand { access, size_bytes: 4 * COUNT };
        let operands = [OperandAccess::ReadWrite, OperandAccess::ReadWrite, OperandAccess::Read].map(operand);
        let dimensions = LaunchDimensions::linear(COUNT as u64 / 4, PER_BLOCK as u32 / 4);
        Self(kernel.bind(dimensions, &operands).expect("the packing fits"))
    }

    /// On weights, velocity and gradient, on the compute stream of that number.
    pub(crate) fn start(&self, arrays: [&RawBuffer; 3], stream: u8, after: &[Event]) -> Event {
        let options = LaunchOptions { dependencies: after, stream, label: c"step".into(), ..Default::default() };
        // SAFETY: the kernel accesses its operands alone; cases order what uses their memory by events.
        unsafe { self.0.start(&arrays, &options) }.expect("the arrays are as long as the kernel says")
    }
}

/// Weights, velocity and gradient, in the small numbers that every machine computes with exactly.
pub(crate) type Arrays = [Vec<f32>; 3];

pub(crate) fn numbers(seed: usize) -> Vec<f32> {
    (0..COUNT).map(|at| (at * (seed + 1) % 17) as f32 - 8.0).collect()
}

pub(crate) fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// What the kernel does.
pub(crate) fn step([weights, velocity, gradient]: &mut Arrays) {
    for ((weight, velocity), slope) in weights.iter_mut().zip(velocity).zip(gradient) {
        *velocity = DECAY * *velocity + *slope;
        *weight -= RATE * *velocity;
    }
}
