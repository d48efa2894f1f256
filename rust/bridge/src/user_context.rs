//! `purlin/user_context.h`. Counting, which is called often, and what takes functions or arrays are plain functions.
//!
//! A context crosses as the address of its number, null for none. In the safety sections, "alive" means that C++ holds
//! a reference for the length of the call, and "owned" that it gives its reference up. What is returned is C++'s.

use std::ffi::{c_char, c_void};
use std::pin::Pin;
use std::ptr;

use cxx::CxxString;
use purlin_async::UserContext;
use purlin_async::user_context::{self, Origin};
use purlin_base::Error;
use purlin_base::status;
use purlin_ffi::handle::{self, elements, give_or};
use purlin_ffi::panic::{contain, guard};

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    unsafe extern "C++" {
        include!("purlin/internal/abi.h");

        #[namespace = "purlin::v0::internal"]
        type StatusRep = crate::status::ffi::StatusRep;
    }

    extern "Rust" {
        /// A context with a text; basic if `parent` is null.
        unsafe fn user_context_new(parent: *const u64, origin: &[u8]) -> *const u64;
        /// `outer` asked for `inner`; if one is null, the other.
        unsafe fn user_context_chained(outer: *const u64, inner: *const u64) -> *const u64;
        /// The living context of that number, or a new one; null and an error for 0.
        fn user_context_with_id(id: u64, origin: &[u8], error: &mut *const StatusRep) -> *const u64;
        /// The living context of that number, or null.
        fn user_context_lookup(id: u64) -> *const u64;
        /// Appends the text.
        unsafe fn user_context_debug_string(context: *const u64, text: Pin<&mut CxxString>);
        /// The error with the number of the context.
        unsafe fn user_context_annotate(error: *const StatusRep, context: *const u64) -> *const StatusRep;
        /// The error with that number.
        unsafe fn user_context_annotate_with_id(error: *const StatusRep, id: u64) -> *const StatusRep;
        /// The error with the texts of its contexts.
        unsafe fn user_context_expand(error: *const StatusRep) -> *const StatusRep;
        /// All that are not null; null if there is none.
        unsafe fn user_context_fused(contexts: *const *const u64, count: usize) -> *const u64;
    }
}

/// # Safety
/// `context` is null or owned.
unsafe fn take(context: *const u64) -> Option<UserContext> {
    // SAFETY: owned.
    (!context.is_null()).then(|| unsafe { UserContext::from_raw(context) })
}

/// # Safety
/// `context` is null or alive.
unsafe fn clone_of(context: *const u64) -> Option<UserContext> {
    // SAFETY: alive.
    (!context.is_null()).then(|| unsafe { UserContext::from_borrowed_raw(context) })
}

fn give(context: Option<UserContext>) -> *const u64 {
    context.map_or(ptr::null(), UserContext::into_raw)
}

fn make(parent: Option<UserContext>, origin: Origin) -> *const u64 {
    give(Some(match parent {
        None => UserContext::new(origin),
        Some(parent) => UserContext::annotated(parent, origin),
    }))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// One more reference.
///
/// # Safety
/// `context` is not null and alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_user_context_retain(context: *const u64) {
    // SAFETY: alive; the new reference becomes C++'s.
    let _ = unsafe { UserContext::from_borrowed_raw(context) }.into_raw();
}

/// One reference less.
///
/// # Safety
/// `context` is not null and owned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_user_context_release(context: *const u64) {
    contain("purlin_user_context_release", (), || {
        // SAFETY: owned.
        drop(unsafe { UserContext::from_raw(context) });
    })
}

/// # Safety
/// `parent` is null or owned.
unsafe fn user_context_new(parent: *const u64, origin: &[u8]) -> *const u64 {
    contain("user_context_new", ptr::null(), || {
        // SAFETY: the caller's promise.
        make(unsafe { take(parent) }, text(origin).into())
    })
}

/// A C++ closure that makes a text.
struct Renderer {
    data: *mut c_void,
    /// Gives the text to [`purlin_user_context_rendered`], with `text`.
    render: unsafe extern "C" fn(data: *mut c_void, text: *mut c_void),
    delete: unsafe extern "C" fn(data: *mut c_void),
}

// SAFETY: the contract of an origin in purlin/user_context.h: it is called and destroyed on any thread.
unsafe impl Send for Renderer {}
// SAFETY: as above: each thread that asks for the text calls it.
unsafe impl Sync for Renderer {}

impl Renderer {
    fn text(&self) -> String {
        let mut text = String::new();
        // SAFETY: C++ gave the function together with its data, which lives as long as this.
        unsafe { (self.render)(self.data, (&raw mut text).cast()) };
        text
    }
}

impl Drop for Renderer {
    fn drop(&mut self) {
        // SAFETY: as above; it is no longer called.
        unsafe { (self.delete)(self.data) };
    }
}

/// A context whose text is made when it is asked for; basic if `parent` is null.
///
/// # Safety
/// `parent` is null or owned. `render` may be called from any thread with `data` until `delete` was, once; neither
/// unwinds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_user_context_new_lazy(
    parent: *const u64,
    data: *mut c_void,
    render: unsafe extern "C" fn(data: *mut c_void, text: *mut c_void),
    delete: unsafe extern "C" fn(data: *mut c_void),
) -> *const u64 {
    contain("purlin_user_context_new_lazy", ptr::null(), || {
        let renderer = Renderer { data, render, delete };
        // SAFETY: the caller's promise.
        make(unsafe { take(parent) }, Origin::lazy(move || renderer.text()))
    })
}

/// Where a renderer puts its text.
///
/// # Safety
/// `text` is what the renderer was called with, during that call; `data` points to `size_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_user_context_rendered(text: *mut c_void, data: *const c_char, size_bytes: usize) {
    contain("purlin_user_context_rendered", (), || {
        // SAFETY: Renderer::text() lent its String for the call.
        unsafe { (*text.cast::<String>()).push_str(&String::from_utf8_lossy(elements(data.cast(), size_bytes))) };
    })
}

/// # Safety
/// Both are null or owned.
unsafe fn user_context_chained(outer: *const u64, inner: *const u64) -> *const u64 {
    contain("user_context_chained", ptr::null(), || {
        // SAFETY: the caller's promise.
        give(match unsafe { (take(outer), take(inner)) } {
            (Some(outer), Some(inner)) => Some(UserContext::chained(outer, inner)),
            (outer, inner) => outer.or(inner),
        })
    })
}

/// # Safety
/// `contexts` points to `count` words, each null or alive.
unsafe fn user_context_fused(contexts: *const *const u64, count: usize) -> *const u64 {
    contain("user_context_fused", ptr::null(), || {
        // SAFETY: the caller's promise.
        let contexts = unsafe { elements(contexts, count) };
        // SAFETY: alive.
        give(UserContext::fused(contexts.iter().filter_map(|&context| unsafe { clone_of(context) }).collect()))
    })
}

fn user_context_with_id(id: u64, origin: &[u8], error: &mut *const ffi::StatusRep) -> *const u64 {
    give_or(guard(|| UserContext::with_id(id, text(origin))).map(UserContext::into_raw), ptr::null(), error)
}

fn user_context_lookup(id: u64) -> *const u64 {
    contain("user_context_lookup", ptr::null(), || give(UserContext::lookup(id)))
}

/// Calls `visit` with an owned reference to each living context.
///
/// # Safety
/// `visit` may be called with `data` and does not unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_user_context_lookup_all(
    visit: unsafe extern "C" fn(data: *mut c_void, context: *const u64),
    data: *mut c_void,
) {
    contain("purlin_user_context_lookup_all", (), || {
        for context in UserContext::lookup_all() {
            // SAFETY: the caller's promise.
            unsafe { visit(data, context.into_raw()) };
        }
    })
}

/// # Safety
/// `context` is not null and alive.
unsafe fn user_context_debug_string(context: *const u64, text: Pin<&mut CxxString>) {
    contain("user_context_debug_string", (), || {
        // SAFETY: alive.
        text.push_str(&unsafe { UserContext::from_borrowed_raw(context) }.debug_string());
    })
}

/// # Safety
/// `error` is null or owned, `context` is null or owned.
unsafe fn user_context_annotate(error: *const ffi::StatusRep, context: *const u64) -> *const ffi::StatusRep {
    handle::give(guard(|| {
        // SAFETY: owned.
        let (outcome, context) = unsafe { (status::from_raw(error.cast()), take(context)) };
        outcome.map_err(|error| match context {
            None => error,
            Some(context) => user_context::annotate(error, &context),
        })
    }))
}

/// # Safety
/// `error` is null or owned.
unsafe fn user_context_annotate_with_id(error: *const ffi::StatusRep, id: u64) -> *const ffi::StatusRep {
    handle::give(guard(|| {
        // SAFETY: owned.
        unsafe { status::from_raw(error.cast()) }.map_err(|error| user_context::annotate_with_id(error, id))
    }))
}

/// # Safety
/// `error` is null or owned.
unsafe fn user_context_expand(error: *const ffi::StatusRep) -> *const ffi::StatusRep {
    // SAFETY: owned.
    let Some(error) = (unsafe { Error::from_raw(error.cast()) }) else { return ptr::null() };
    guard(|| Ok(user_context::expand(&error))).unwrap_or(error).into_raw().cast()
}
