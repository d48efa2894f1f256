//! `libpjrt_purlin.so`: Purlin as a plugin of PJRT, which stock JAX loads.
//!
//! Arrays are Purlin's buffers, and events Purlin's events. XLA compiles: the plugin opens another one, XLA's own for
//! CPUs, when a program is first compiled. Purlin runs what that made, where it can, and hands the rest to it.
//!
//! | module | what it is |
//! |---|---|
//! | `handle` | objects that C knows by address |
//! | `answer` | how a function is called: sizes, panics, errors |
//! | `read`, `text` | what C passes, and what is lent to it |
//! | `error`, `event`, `plugin` | the functions of errors, of events, of the plugin itself |
//! | `options` | what a client is made with |
//! | `platform` | what all objects of a client share |
//! | `memory`, `device`, `topology`, `client` | the objects that a client lends, and itself |
//! | `buffer`, `buffer_create`, `buffer_copy`, `transfer` | arrays |
//! | `compiler` | the plugin that compiles |
//! | `executable` | programs |
//! | `layouts`, `shardings`, `ffi`, `memory_descriptions` | the extensions |
//! | `api` | the table |
//!
//! Each function is an `impl Answer` for its arguments, beside the object that it is about. `docs/pjrt-api.md` says
//! what each takes and gives; `docs/jax.md` is for users.

mod answer;
mod api;
mod buffer;
mod buffer_copy;
mod buffer_create;
mod client;
mod compiler;
mod device;
mod diagnosis;
mod error;
mod event;
mod executable;
mod ffi;
mod handle;
mod layouts;
mod memory;
mod memory_descriptions;
mod options;
mod platform;
mod plugin;
mod read;
mod shardings;
#[cfg(test)]
mod tests;
mod text;
mod topology;
mod transfer;

use std::ptr;

use purlin_ffi::panic::contain;
use purlin_pjrt_abi::Api;

/// PJRT's table of this plugin, for the life of the process. The one name that the library exports.
#[unsafe(no_mangle)]
pub extern "C" fn GetPjrtApi() -> *const Api {
    contain("GetPjrtApi", ptr::null(), api::table)
}
