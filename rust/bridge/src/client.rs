//! `purlin/client.h`: clients by the name of their platform.

use std::pin::Pin;
use std::sync::Arc;

use cxx::CxxString;
use purlin::backend::{Backend, NullBackend};
use purlin::{Client, ClientOptions, Status, StatusOr};
use purlin_host::HostBackend;
use purlin_sim::{SimBackend, SimOptions};

use crate::device::DeviceRep;
use crate::executor::ThreadPoolRep;
use crate::handle::{self, give_handle, share};
use crate::panic::guard;

/// What a `purlin::Client` points to.
pub struct ClientRep(Arc<Client>);

/// Makes a backend.
type MakeBackend = fn() -> StatusOr<Arc<dyn Backend>>;

/// The backends that this library was built with, by the name that `ClientOptions::platform` gives.
const PLATFORMS: [(&str, MakeBackend); 3] = [
    ("host", || Ok(Arc::new(HostBackend::new()))),
    ("null", || Ok(Arc::new(NullBackend::new()))),
    ("sim", || Ok(Arc::new(SimBackend::new(SimOptions::from_environment()?)))),
];

/// The size itself and the two counts: no version of `ClientOptions` is smaller.
const SMALLEST_OPTIONS_BYTES: usize = 16;
/// No version will be larger; a larger number is a wild pointer or an uninitialised struct.
const LARGEST_OPTIONS_BYTES: usize = 4096;

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/client.h");
        include!("cpp/generated/device.rs.h");
        include!("cpp/generated/executor.rs.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
        #[namespace = "purlin::v0::internal"]
        type DeviceRep = crate::device::DeviceRep;
        #[namespace = "purlin::v0::internal"]
        type ThreadPoolRep = crate::executor::ThreadPoolRep;
    }

    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type ClientRep;

        /// A new client, or null and an error. `struct_size` is the caller's, unchecked.
        fn client_create(
            struct_size: usize,
            device_count: i32,
            worker_count: i32,
            platform: &[u8],
            error: &mut *const StatusRep,
        ) -> *const ClientRep;
        unsafe fn client_retain(client: *const ClientRep);
        unsafe fn client_release(client: *const ClientRep);
        fn client_platform_name(client: &ClientRep) -> &'static str;
        fn client_device_count(client: &ClientRep) -> usize;
        /// The device, or null and an error.
        fn client_lookup_device(client: &ClientRep, id: i32, error: &mut *const StatusRep) -> *const DeviceRep;
        fn client_runner(client: &ClientRep) -> *const ThreadPoolRep;
        /// Appends a few lines.
        fn client_describe(client: &ClientRep, text: Pin<&mut CxxString>);
    }
}

fn client_create(
    struct_size: usize,
    device_count: i32,
    worker_count: i32,
    platform: &[u8],
    error: &mut *const ffi::StatusRep,
) -> *const ClientRep {
    let made = guard(|| {
        check_struct_size(struct_size)?;
        Client::new(&ClientOptions { device_count, worker_count, ..Default::default() }, backend(platform)?)
            .map(ClientRep)
    });
    give_handle(made, error)
}

fn check_struct_size(struct_size: usize) -> Result<(), Status> {
    if (SMALLEST_OPTIONS_BYTES..=LARGEST_OPTIONS_BYTES).contains(&struct_size) {
        return Ok(());
    }
    Err(Status::invalid_argument(format!(
        "ClientOptions::struct_size is {struct_size}; it must be sizeof(ClientOptions), as its constructor sets it \
         ({SMALLEST_OPTIONS_BYTES}..={LARGEST_OPTIONS_BYTES} are accepted)"
    )))
}

fn backend(platform: &[u8]) -> Result<Arc<dyn Backend>, Status> {
    let known = PLATFORMS.iter().find(|(name, _)| name.as_bytes() == platform);
    let Some((_, make)) = known else {
        let names: Vec<String> = PLATFORMS.iter().map(|(name, _)| format!("'{name}'")).collect();
        let (last, others) = names.split_last().expect("there are platforms");
        let names = format!("{} and {last}", others.join(", "));
        let platform = String::from_utf8_lossy(platform);
        return Err(Status::not_found(format!("platform '{platform}' does not exist; there are {}", names)));
    };
    make()
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
    // SAFETY: the caller's promise.
    unsafe { handle::release(client) };
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

fn client_runner(client: &ClientRep) -> *const ThreadPoolRep {
    share(ThreadPoolRep(client.0.runner().clone()))
}

fn client_describe(client: &ClientRep, text: Pin<&mut CxxString>) {
    text.push_str(&client.0.describe());
}
