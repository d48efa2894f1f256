//! `purlin/compile_cache.h`. What takes a source, an executor or a closure of C++'s is a plain function.

use std::ptr;

use purlin::cuda::{CompileCache, Compiler};
use purlin_ffi::handle::{self, own, share};
use purlin_ffi::panic::{contain, guard};

use crate::callback::Callback;
use crate::cuda::{PtxRep, RawKernelSource};
use crate::foreign_executor::ForeignExecutor;

/// What a `purlin::CompileCache` points to.
pub struct CompileCacheRep(CompileCache);

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    extern "Rust" {
        #[namespace = "purlin::v0::internal"]
        type CompileCacheRep;

        /// An empty cache, with one reference, C++'s.
        fn compile_cache_new() -> *const CompileCacheRep;
        unsafe fn compile_cache_retain(cache: *const CompileCacheRep);
        unsafe fn compile_cache_release(cache: *const CompileCacheRep);
        fn compile_cache_forget_errors(cache: &CompileCacheRep);
        fn compile_cache_clear(cache: &CompileCacheRep);
        /// How many are known or on their way.
        fn compile_cache_size(cache: &CompileCacheRep) -> usize;
    }
}

/// Calls `done` with an error, or with a `PtxRep`, C++'s, once the source is compiled, by a task of the executor or
/// before.
///
/// # Safety
/// `source`, `executor` and `done` are what their structs say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_compile_cache_get(
    cache: &CompileCacheRep,
    source: &RawKernelSource,
    executor: ForeignExecutor,
    done: Callback,
) {
    contain("purlin_compile_cache_get", (), || {
        let asked = guard(|| {
            // SAFETY: the caller's promise.
            let source = unsafe { source.get() }?;
            Ok(cache.0.get_or_compile(&Compiler::find()?, &source, &executor))
        });
        match asked {
            Ok(compiled) => compiled.on_ready(move |compiled| match compiled {
                Ok(ptx) => done.call(Ok(()), own(PtxRep(ptx.clone())).cast()),
                Err(error) => done.call(Err(error.clone()), ptr::null()),
            }),
            Err(error) => done.call(Err(error), ptr::null()),
        }
    })
}

/// False if nothing was known of it.
///
/// # Safety
/// `source` is what its struct says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn purlin_compile_cache_forget(cache: &CompileCacheRep, source: &RawKernelSource) -> bool {
    contain("purlin_compile_cache_forget", false, || {
        // SAFETY: the caller's promise.
        let source = unsafe { source.get() };
        source.and_then(|source| Ok(cache.0.forget(&Compiler::find()?, &source))).unwrap_or(false)
    })
}

fn compile_cache_new() -> *const CompileCacheRep {
    contain("compile_cache_new", ptr::null(), || share(CompileCacheRep(CompileCache::new())))
}

/// # Safety
/// C++ holds a reference.
unsafe fn compile_cache_retain(cache: *const CompileCacheRep) {
    // SAFETY: the caller's promise.
    unsafe { handle::retain(cache) };
}

/// # Safety
/// C++ gives its reference up.
unsafe fn compile_cache_release(cache: *const CompileCacheRep) {
    contain("compile_cache_release", (), || {
        // SAFETY: the caller's promise.
        unsafe { handle::release(cache) };
    })
}

fn compile_cache_forget_errors(cache: &CompileCacheRep) {
    contain("compile_cache_forget_errors", (), || cache.0.forget_errors());
}

fn compile_cache_clear(cache: &CompileCacheRep) {
    contain("compile_cache_clear", (), || cache.0.clear());
}

fn compile_cache_size(cache: &CompileCacheRep) -> usize {
    contain("compile_cache_size", 0, || cache.0.len())
}
