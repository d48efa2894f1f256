//! Kernels of the host, by the way of kernels of devices.

#![allow(unsafe_code, reason = "kernels take addresses")]

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use purlin::backend::{Backend, LaunchDimensions};
use purlin::program::{
    KernelArgsPackingSpec, KernelFrame, KernelFunction, KernelLoaderSpec, KernelOperand, KernelPayload, KernelSymbol,
    LoadedKernel, OperandAccess,
};
use purlin::{Client, ClientOptions, Device, Error, LaunchOptions, RawBuffer, StatusCode};

/// Adds the block's number and a constant to the word of the block; fails in block 9.
unsafe extern "C" fn add(frame: *const KernelFrame) -> *mut c_void {
    // SAFETY: the launches below have words for their blocks, and a constant of four bytes.
    unsafe {
        let (block, arguments) = ((*(*frame).id).x, (*frame).args);
        if block == 9 {
            return frame.cast_mut().cast();
        }
        let (word, constant) =
            ((*arguments).data.cast::<u32>().add(block as usize), *(*arguments.add(1)).data.cast::<u32>());
        *word += block as u32 + constant + (*arguments).size_bytes as u32;
    }
    ptr::null_mut()
}

fn spec() -> KernelLoaderSpec {
    let address = NonNull::new(add as KernelFunction as *mut c_void).expect("a function has an address");
    // SAFETY: a function of this program, of the type that the host wants.
    let symbol = unsafe { KernelSymbol::new(address, Arc::new(())) };
    let mut packing = KernelArgsPackingSpec::default();
    packing.push_address(0).unwrap();
    packing.push_constant(&100_u32.to_le_bytes());
    let payload = KernelPayload::InProcessSymbol { symbol, persistent_name: None };
    KernelLoaderSpec::new(payload, "add", 2).unwrap().with_packing(packing)
}

fn clients() -> Vec<Arc<Client>> {
    let backends: [Arc<dyn Backend>; 2] =
        [Arc::new(purlin_host::HostBackend::new()), Arc::new(purlin_sim::SimBackend::new(Default::default()))];
    backends.map(|backend| Client::new(&ClientOptions::default(), backend).unwrap()).into()
}

/// The words after a launch with so many blocks, each of which was 1 before.
fn launched(device: &Device, blocks: u64) -> Result<Vec<u32>, Error> {
    let operand = KernelOperand { access: OperandAccess::ReadWrite, size_bytes: 40 };
    let launch = LoadedKernel::load(device, &spec())?.bind(LaunchDimensions::linear(blocks, 1), &[operand])?;
    let memory = RawBuffer::allocate(&device.default_memory_space(), 40)?;
    let words = [1_u32; 10];
    // SAFETY: the words stay until the event, and nothing else uses the memory.
    unsafe { memory.copy_from_host(words.as_ptr().cast(), 0, 40, &[]) }.wait()?;
    // SAFETY: the kernel accesses its operand, and nothing else does.
    let done = unsafe { launch.start(&[&memory], &LaunchOptions::default()) }?;
    done.wait()?;
    let mut words = vec![0_u32; 10];
    // SAFETY: the words stay until the event.
    unsafe { memory.copy_to_host(words.as_mut_ptr().cast(), 0, 40, &[]) }.wait()?;
    Ok(words)
}

#[test]
fn a_function_is_called_for_each_block_with_operands_and_constants() {
    for client in clients() {
        let words = launched(&client.devices()[0], 3).unwrap();
        assert_eq!(words, [141, 142, 143, 1, 1, 1, 1, 1, 1, 1], "on {}", client.platform_name());
    }
}

#[test]
fn a_function_that_fails_fails_the_launch() {
    for client in clients() {
        let error = launched(&client.devices()[0], 10).unwrap_err();
        assert!(error.message().contains("the kernel 'add' failed in block [9, 0, 0]"), "{error}");
    }
}

#[test]
fn a_launch_has_the_operands_that_its_packing_names() {
    let client = &clients()[0];
    let kernel = LoadedKernel::load(&client.devices()[0], &spec()).unwrap();
    let error = kernel.bind(LaunchDimensions::linear(1, 1), &[]).unwrap_err();
    assert!(error.message().contains("argument_index is 0, and 0 addresses were given"), "{error}");
    assert_eq!(format!("{kernel:?}"), "LoadedKernel('add' on host:0)");
    let operand = KernelOperand { access: OperandAccess::ReadWrite, size_bytes: 40 };
    let launch = kernel.bind(LaunchDimensions::linear(1, 1), &[operand]).unwrap();
    assert_eq!(format!("{launch:?}"), "KernelLaunch('add' on host:0)");
    // SAFETY: nothing is launched.
    let error = unsafe { launch.start(&[], &LaunchOptions::default()) }.unwrap_err();
    assert_eq!(error.message(), "the kernel 'add' has 1 operands, and is launched on 0 ranges");
    let short = RawBuffer::allocate(&client.devices()[0].default_memory_space(), 39).unwrap();
    // SAFETY: nothing is launched.
    let error = unsafe { launch.start(&[&short], &LaunchOptions::default()) }.unwrap_err();
    assert_eq!(error.message(), "operand 0 of the kernel 'add' has 40 bytes, its range 39");
}

#[test]
fn code_of_another_platform_is_refused() {
    for client in clients() {
        let ptx = KernelLoaderSpec::new(KernelPayload::Ptx(".version 8.0".into()), "fill", 0).unwrap();
        let error = LoadedKernel::load(&client.devices()[0], &ptx).unwrap_err();
        assert_eq!(error.code(), StatusCode::Unimplemented);
        let expected = format!(
            "the platform {} cannot load the kernel 'fill' of PTX: its kernels are functions of the host",
            client.platform_name()
        );
        assert_eq!(error.message(), expected);
    }
}
