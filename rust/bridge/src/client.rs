//! `purlin/client.h`: clients by the name of their platform. Making one is a plain function, because its options own
//! closures.

use std::ffi::c_char;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;

use cxx::CxxString;
use purlin_base::Error;
use purlin_base::status::StatusRep;
use purlin_device::backend::Backend;
use purlin_device::platform::PlatformOptions;
use purlin_device::{Client, ClientOptions};
use purlin_ffi::handle::{self, elements, give, give_handle, give_or, share};
use purlin_ffi::panic::{contain, guard};
use purlin_ffi::struct_size;

use crate::device::DeviceRep;
use crate::executor::{ThreadPoolRep, shutdown_options};
use crate::host_memory_allocator::ForeignAllocator;
use crate::memory_hook::ForeignMemoryHook;

/// What a `purlin::Client` points to.
pub struct ClientRep(pub(crate) Arc<Client>);

/// The size itself and the two counts: no version of `ClientOptions` is smaller.
const SMALLEST_OPTIONS_BYTES: usize = 24;

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");
        include!("purlin-bridge/src/device.rs.h");
        include!("purlin-bridge/src/executor.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type DeviceRep = crate::device::DeviceRep;
        #[namespace = "purlin::v0::internal"]
        type ThreadPoolRep = crate::executor::ThreadPoolRep;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        #[derive(ExternType)]
        type ClientRep;

        unsafe fn client_retain(client: *const ClientRep);
        unsafe fn client_release(client: *const ClientRep);
        fn client_platform_name(client: &ClientRep) -> &'static str;
        fn client_device_count(client: &ClientRep) -> usize;
        /// The device, or null and an error.
        fn client_lookup_device(client: &ClientRep, id: i32, error: &mut *const StatusRep) -> *const DeviceRep;
        /// The number, or 0 and an error.
        fn client_process_index(client: &ClientRep, error: &mut *const StatusRep) -> i32;
        /// The ids, replica by replica; none, and an error.
        fn client_default_device_assignment(
            client: &ClientRep,
            replica_count: usize,
            partition_count: usize,
            error: &mut *const StatusRep,
        ) -> Vec<i32>;
        fn client_runner(client: &ClientRep) -> *const ThreadPoolRep;
        /// Ends the client's work. A negative `timeout_ns` is none. Null, or an error, C++'s. Blocks.
        fn client_shutdown(client: &ClientRep, mode: u32, timeout_ns: i64) -> *const StatusRep;
        /// Appends a few lines.
        fn client_describe(client: &ClientRep, text: Pin<&mut CxxString>);
    }
}

/// A `purlin::ClientOptions`. Borrowed, but for what is owned.
#[repr(C)]
pub struct RawClientOptions {
    /// The caller's, unchecked.
    struct_size: usize,
    /// `platform_size_bytes` bytes.
    platform: *const c_char,
    platform_size_bytes: usize,
    memory_limit_bytes: usize,
    device_count: usize,
    worker_count: usize,
    check_frozen_memory: bool,
    virtual_devices: bool,
    has_process_index: bool,
    process_index: i32,
    shuts_down_at_end: bool,
    /// Unchecked; counts if `shuts_down_at_end`, as does `timeout_ns`.
    shutdown_mode: u32,
    timeout_ns: i64,
    /// Owned.
    on_out_of_memory: ForeignMemoryHook,
    /// Owned.
    host_memory_allocator: ForeignAllocator,
}

/// A new client, C++'s, or null and an error. Takes over what the options own, either way.
///
/// # Safety
/// The options are what their struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_client_create(
    options: RawClientOptions,
    error: &mut *const StatusRep,
) -> *const ClientRep {
    let made = guard(|| {
        struct_size::check("ClientOptions", options.struct_size, SMALLEST_OPTIONS_BYTES)?;
        // SAFETY: the caller's promise.
        let platform = unsafe { elements::<u8>(options.platform.cast(), options.platform_size_bytes) };
        let backend = backend(platform, options.virtual_devices, options.host_memory_allocator.exists())?;
        let RawClientOptions { device_count, worker_count, memory_limit_bytes, check_frozen_memory, .. } = options;
        let on_out_of_memory = options.on_out_of_memory.into_hook();
        let options = ClientOptions {
            device_count,
            worker_count,
            memory_limit_bytes,
            on_out_of_memory,
            check_frozen_memory,
            process_index: options.has_process_index.then_some(options.process_index),
            shutdown_at_end: options
                .shuts_down_at_end
                .then(|| shutdown_options(options.shutdown_mode, options.timeout_ns))
                .transpose()?,
        };
        Client::new(&options, backend).map(ClientRep)
    });
    give_handle(made, error)
}

fn client_shutdown(client: &ClientRep, mode: u32, timeout_ns: i64) -> *const ffi::StatusRep {
    give(guard(|| client.0.shutdown(shutdown_options(mode, timeout_ns)?)))
}

/// The backend of that platform, with virtual devices or without, on `allocator` if there is one.
fn backend(
    platform: &[u8],
    virtual_devices: bool,
    allocator: Option<ForeignAllocator>,
) -> Result<Arc<dyn Backend>, Error> {
    let mut options = PlatformOptions::default().with_virtual_devices(virtual_devices);
    if let Some(allocator) = allocator {
        options = options.with_host_memory_allocator(Arc::new(allocator));
    }
    purlin::platforms().open(&String::from_utf8_lossy(platform), &options)
}

/// # Safety
/// C++ holds a reference.
unsafe fn client_retain(client: *const ClientRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(client) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn client_release(client: *const ClientRep) {
    contain("client_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(client) };
    })
}

fn client_platform_name(client: &ClientRep) -> &'static str {
    client.0.platform_name()
}

fn client_device_count(client: &ClientRep) -> usize {
    client.0.devices().len()
}

fn client_lookup_device(client: &ClientRep, id: i32, error: &mut *const ffi::StatusRep) -> *const DeviceRep {
    give_handle(guard(|| client.0.lookup_device(id).map(DeviceRep)), error)
}

fn client_process_index(client: &ClientRep, error: &mut *const ffi::StatusRep) -> i32 {
    give_or(guard(|| client.0.process_index()), 0, error)
}

fn client_default_device_assignment(
    client: &ClientRep,
    replica_count: usize,
    partition_count: usize,
    error: &mut *const ffi::StatusRep,
) -> Vec<i32> {
    let assigned = guard(|| Ok(client.0.default_device_assignment(replica_count, partition_count)?.concat()));
    give_or(assigned, vec![], error)
}

fn client_runner(client: &ClientRep) -> *const ThreadPoolRep {
    contain("client_runner", ptr::null(), || share(ThreadPoolRep(client.0.runner().clone())))
}

fn client_describe(client: &ClientRep, text: Pin<&mut CxxString>) {
    contain("client_describe", (), || {
        text.push_str(&client.0.describe());
    })
}
