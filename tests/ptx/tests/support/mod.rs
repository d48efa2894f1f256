//! What the tests have in common: random numbers, a device's memory, and launching kernels.
#![allow(dead_code, reason = "each test program uses a part of it")]

mod device;
mod random;

pub(crate) use device::{Device, Pointer};
pub(crate) use random::Random;

use std::sync::atomic::AtomicBool;

use purlin_ptx::{Launch, Module, Trap};

/// How many random shapes each kernel is run with.
pub(crate) const SHAPES: usize = 200;

/// A module that has to be understood.
pub(crate) fn module(text: &str) -> Module {
    Module::parse(text).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// A module of this body of a kernel `k`, with the parameters of `head`, and what stands before it.
pub(crate) fn text_of(before: &str, head: &str, body: &str) -> String {
    format!(".version 8.2\n.target sm_90\n.address_size 64\n{before}\n.visible .entry k({head})\n{{\n{body}\n}}\n")
}

/// Arguments, one after the other, each at a multiple of its size.
#[derive(Default)]
pub(crate) struct Arguments(pub(crate) Vec<u8>);

impl Arguments {
    pub(crate) fn with<const N: usize>(self, bytes: [u8; N]) -> Self {
        self.aligned(&bytes, N)
    }

    pub(crate) fn aligned(mut self, bytes: &[u8], align: usize) -> Self {
        self.0.resize(self.0.len().next_multiple_of(align), 0);
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.with(value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.with(value.to_le_bytes())
    }

    pub(crate) fn f32(self, value: f32) -> Self {
        self.with(value.to_le_bytes())
    }

    pub(crate) fn pointer(self, pointer: Pointer) -> Self {
        self.u64(pointer.0)
    }
}

/// A grid and a block of one dimension each.
pub(crate) fn line(grid: u32, block: u32) -> Launch {
    Launch { grid: [grid, 1, 1], block: [block, 1, 1], dynamic_shared_bytes: 0 }
}

/// Runs a kernel, whose module has placed its variables on the device.
pub(crate) fn try_run(
    module: &Module,
    name: &str,
    launch: Launch,
    arguments: &Arguments,
    device: &Device,
) -> Result<(), Trap> {
    let kernel = module.kernel(name).unwrap_or_else(|| panic!("there is no kernel {name}"));
    let stop = AtomicBool::new(false);
    kernel.run(&launch, &arguments.0, &|name| device.global(name), device, &stop)
}

/// As above; it comes to its end.
pub(crate) fn run(module: &Module, name: &str, launch: Launch, arguments: &Arguments, device: &Device) {
    try_run(module, name, launch, arguments, device).unwrap_or_else(|trap| panic!("{trap}"));
}
