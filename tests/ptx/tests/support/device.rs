//! A device's memory: allocations far apart, so that whatever is outside of them is found.

use std::cell::RefCell;
use std::collections::BTreeMap;

use purlin_ptx::{Fault, Memory, Module};

/// Where the first allocation is.
const FIRST: u64 = 0x7000_0000_0000;
/// Between the beginnings of allocations that are next to each other.
const APART: u64 = 1 << 32;

/// An address on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointer(pub(crate) u64);

/// See the module.
#[derive(Default)]
pub(crate) struct Device {
    allocations: RefCell<BTreeMap<u64, Vec<u8>>>,
    globals: BTreeMap<String, u64>,
}

impl Device {
    /// With the variables of a module.
    pub(crate) fn of(module: &Module) -> Self {
        let mut device = Self::default();
        for global in module.globals() {
            let mut bytes = global.initial().to_vec();
            bytes.resize(global.size(), 0);
            let Pointer(address) = device.put(&bytes);
            device.globals.insert(global.name().to_owned(), address);
        }
        device
    }

    pub(crate) fn global(&self, name: &str) -> Option<u64> {
        self.globals.get(name).copied()
    }

    /// New memory with these bytes.
    pub(crate) fn put(&self, bytes: &[u8]) -> Pointer {
        let mut allocations = self.allocations.borrow_mut();
        let address = FIRST + allocations.len() as u64 * APART;
        allocations.insert(address, bytes.to_vec());
        Pointer(address)
    }

    pub(crate) fn put_f32(&self, values: &[f32]) -> Pointer {
        self.put(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
    }

    pub(crate) fn put_u32(&self, values: &[u32]) -> Pointer {
        self.put(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
    }

    pub(crate) fn put_u64(&self, values: &[u64]) -> Pointer {
        self.put(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
    }

    pub(crate) fn put_u16(&self, values: &[u16]) -> Pointer {
        self.put(&values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>())
    }

    pub(crate) fn bytes(&self, pointer: Pointer) -> Vec<u8> {
        self.allocations.borrow()[&pointer.0].clone()
    }

    pub(crate) fn u16(&self, pointer: Pointer) -> Vec<u16> {
        self.bytes(pointer).chunks_exact(2).map(|bytes| u16::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    pub(crate) fn u32(&self, pointer: Pointer) -> Vec<u32> {
        self.bytes(pointer).chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    pub(crate) fn u64(&self, pointer: Pointer) -> Vec<u64> {
        self.bytes(pointer).chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    pub(crate) fn f32(&self, pointer: Pointer) -> Vec<f32> {
        self.u32(pointer).into_iter().map(f32::from_bits).collect()
    }

    fn with<T>(&self, address: u64, len: usize, f: impl FnOnce(&mut [u8]) -> T) -> Result<T, Fault> {
        let mut allocations = self.allocations.borrow_mut();
        let (&start, bytes) =
            allocations.range_mut(..=address).next_back().ok_or_else(|| Fault("nothing is there".to_owned()))?;
        let (offset, size) = ((address - start) as usize, bytes.len());
        let part = bytes.get_mut(offset..).and_then(|rest| rest.get_mut(..len));
        part.map(f).ok_or_else(|| Fault(format!("{offset} bytes into an allocation of {size}")))
    }
}

impl Memory for Device {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        self.with(address, into.len(), |bytes| into.copy_from_slice(bytes))
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.with(address, bytes.len(), |there| there.copy_from_slice(bytes))
    }

    fn update(&self, address: u64, len: usize, f: &mut dyn FnMut(&mut [u8])) -> Result<(), Fault> {
        self.with(address, len, f)
    }
}
