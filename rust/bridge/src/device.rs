//! `purlin/device.h`: handles to devices and memory spaces.

use std::pin::Pin;
use std::ptr;

use cxx::CxxString;
use purlin_device::backend::{AttributeValue, DeviceAttribute};
use purlin_device::{Device, MemorySpace};
use purlin_ffi::handle::{self, give_handle, share};
use purlin_ffi::panic::{contain, guard};

/// What a `purlin::Device` points to.
pub struct DeviceRep(pub(crate) Device);

/// What a `purlin::MemorySpace` points to.
pub struct MemorySpaceRep(pub(crate) MemorySpace);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    /// `purlin::MemoryStats`.
    #[derive(Default)]
    struct MemoryStats {
        bytes_in_use: u64,
        peak_bytes_in_use: u64,
        num_allocs: u64,
        largest_alloc_size: u64,
        /// 0: no limit.
        bytes_limit: u64,
        pool_bytes: u64,
        largest_free_block_bytes: u64,
    }

    /// Which field of a [`RawAttribute`] counts.
    enum AttributeKind {
        Text,
        Boolean,
        Integer,
        Integers,
        Real,
    }

    /// `purlin::DeviceAttribute`.
    struct RawAttribute {
        name: String,
        kind: AttributeKind,
        text: String,
        boolean: bool,
        integer: i64,
        integers: Vec<i64>,
        real: f32,
    }

    unsafe extern "C++" {
        include!("purlin/internal/abi.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        #[derive(ExternType)]
        type DeviceRep;
        #[namespace = "purlin::v0::internal"]
        #[derive(ExternType)]
        type MemorySpaceRep;

        unsafe fn device_retain(device: *const DeviceRep);
        unsafe fn device_release(device: *const DeviceRep);
        fn device_id(device: &DeviceRep) -> i32;
        fn device_kind(device: &DeviceRep) -> &str;
        fn device_local_hardware_id(device: &DeviceRep) -> i32;
        fn device_attributes(device: &DeviceRep) -> Vec<RawAttribute>;
        fn device_memory_space_count(device: &DeviceRep) -> usize;
        /// Space `index` of `device_memory_space_count`.
        fn device_memory_space_at(device: &DeviceRep, index: usize) -> *const MemorySpaceRep;
        fn device_default_memory_space(device: &DeviceRep) -> *const MemorySpaceRep;
        /// The space of that kind, or null and an error.
        fn device_memory_space(device: &DeviceRep, kind: &[u8], error: &mut *const StatusRep) -> *const MemorySpaceRep;
        fn device_to_string(device: &DeviceRep, text: Pin<&mut CxxString>);
        fn device_equal(a: &DeviceRep, b: &DeviceRep) -> bool;

        unsafe fn memory_space_retain(space: *const MemorySpaceRep);
        unsafe fn memory_space_release(space: *const MemorySpaceRep);
        fn memory_space_id(space: &MemorySpaceRep) -> i32;
        fn memory_space_kind(space: &MemorySpaceRep) -> &'static str;
        fn memory_space_device(space: &MemorySpaceRep) -> *const DeviceRep;
        fn memory_space_stats(space: &MemorySpaceRep) -> MemoryStats;
        fn memory_space_alignment_bytes(space: &MemorySpaceRep) -> usize;
        fn memory_space_trim(space: &MemorySpaceRep);
        fn memory_space_clear_peak(space: &MemorySpaceRep);
        fn memory_space_to_string(space: &MemorySpaceRep, text: Pin<&mut CxxString>);
        fn memory_space_equal(a: &MemorySpaceRep, b: &MemorySpaceRep) -> bool;
    }
}

/// # Safety
/// C++ holds a reference.
unsafe fn device_retain(device: *const DeviceRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(device) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn device_release(device: *const DeviceRep) {
    contain("device_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(device) };
    })
}

fn device_id(device: &DeviceRep) -> i32 {
    device.0.id()
}

fn device_kind(device: &DeviceRep) -> &str {
    device.0.kind()
}

fn device_local_hardware_id(device: &DeviceRep) -> i32 {
    contain("device_local_hardware_id", -1, || device.0.local_hardware_id())
}

fn device_attributes(device: &DeviceRep) -> Vec<ffi::RawAttribute> {
    contain("device_attributes", Vec::new(), || device.0.attributes().iter().map(raw_attribute).collect())
}

fn raw_attribute(DeviceAttribute { name, value }: &DeviceAttribute) -> ffi::RawAttribute {
    let mut raw = ffi::RawAttribute {
        name: name.clone().into_owned(),
        kind: ffi::AttributeKind::Text,
        text: String::new(),
        boolean: false,
        integer: 0,
        integers: Vec::new(),
        real: 0.0,
    };
    match value {
        AttributeValue::Boolean(answer) => (raw.kind, raw.boolean) = (ffi::AttributeKind::Boolean, *answer),
        AttributeValue::Integer(number) => (raw.kind, raw.integer) = (ffi::AttributeKind::Integer, *number),
        AttributeValue::Integers(numbers) => (raw.kind, raw.integers) = (ffi::AttributeKind::Integers, numbers.clone()),
        AttributeValue::Float(number) => (raw.kind, raw.real) = (ffi::AttributeKind::Real, *number),
        // Also what later versions have.
        other => raw.text = other.to_string(),
    }
    raw
}

fn device_memory_space_count(device: &DeviceRep) -> usize {
    device.0.memory_spaces().len()
}

fn device_memory_space_at(device: &DeviceRep, index: usize) -> *const MemorySpaceRep {
    contain("device_memory_space_at", ptr::null(), || {
        share(MemorySpaceRep(device.0.memory_spaces().swap_remove(index)))
    })
}

fn device_default_memory_space(device: &DeviceRep) -> *const MemorySpaceRep {
    contain("device_default_memory_space", ptr::null(), || share(MemorySpaceRep(device.0.default_memory_space())))
}

fn device_memory_space(device: &DeviceRep, kind: &[u8], error: &mut *const ffi::StatusRep) -> *const MemorySpaceRep {
    // Kinds are ASCII, so a replaced byte only makes the kind as unknown as it was.
    give_handle(guard(|| device.0.memory_space(&String::from_utf8_lossy(kind)).map(MemorySpaceRep)), error)
}

fn device_to_string(device: &DeviceRep, text: Pin<&mut CxxString>) {
    contain("device_to_string", (), || {
        text.push_str(&device.0.to_string());
    })
}

fn device_equal(a: &DeviceRep, b: &DeviceRep) -> bool {
    a.0 == b.0
}

/// # Safety
/// C++ holds a reference.
unsafe fn memory_space_retain(space: *const MemorySpaceRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(space) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn memory_space_release(space: *const MemorySpaceRep) {
    contain("memory_space_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(space) };
    })
}

fn memory_space_id(space: &MemorySpaceRep) -> i32 {
    space.0.id()
}

fn memory_space_kind(space: &MemorySpaceRep) -> &'static str {
    space.0.kind()
}

fn memory_space_device(space: &MemorySpaceRep) -> *const DeviceRep {
    contain("memory_space_device", ptr::null(), || share(DeviceRep(space.0.device())))
}

fn memory_space_stats(space: &MemorySpaceRep) -> ffi::MemoryStats {
    contain("memory_space_stats", ffi::MemoryStats::default(), || {
        let purlin_device::MemoryStats {
            bytes_in_use,
            peak_bytes_in_use,
            num_allocs,
            largest_alloc_size,
            bytes_limit,
            pool_bytes,
            largest_free_block_bytes,
            ..
        } = space.0.stats();
        ffi::MemoryStats {
            bytes_in_use,
            peak_bytes_in_use,
            num_allocs,
            largest_alloc_size,
            bytes_limit: bytes_limit.unwrap_or(0),
            pool_bytes,
            largest_free_block_bytes,
        }
    })
}

fn memory_space_alignment_bytes(space: &MemorySpaceRep) -> usize {
    space.0.alignment_bytes()
}

fn memory_space_trim(space: &MemorySpaceRep) {
    contain("memory_space_trim", (), || {
        space.0.trim();
    })
}

fn memory_space_clear_peak(space: &MemorySpaceRep) {
    contain("memory_space_clear_peak", (), || {
        space.0.clear_peak();
    })
}

fn memory_space_to_string(space: &MemorySpaceRep, text: Pin<&mut CxxString>) {
    contain("memory_space_to_string", (), || {
        text.push_str(&space.0.to_string());
    })
}

fn memory_space_equal(a: &MemorySpaceRep, b: &MemorySpaceRep) -> bool {
    a.0 == b.0
}
