//! Modules, functions and launches.

#![allow(unsafe_code, reason = "symbols have names that others could have")]
#![allow(non_snake_case, reason = "the names of the symbols")]

use std::ffi::{c_char, c_int, c_uint, c_void};

use purlin_ptx::Launch;

use crate::boundary::{In, Out, call, call_or_nothing};
use crate::entry::Entry;
use crate::kernel::call::{self as launch, Arguments};
use crate::kernel::function;
use crate::kernel::module::{self, Log};

#[unsafe(no_mangle)]
extern "C" fn cuModuleLoadDataEx(
    module: Out<usize>,
    image: In<c_char>,
    count: c_uint,
    options: In<c_uint>,
    values: *mut usize,
) -> u32 {
    call(Entry::cuModuleLoadDataEx, |call| {
        module.required()?;
        module.set(module::load(call, image, Log::of_options(count, options, values)?)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleLoadData(module: Out<usize>, image: In<c_char>) -> u32 {
    call(Entry::cuModuleLoadData, |call| {
        module.required()?;
        module.set(module::load(call, image, Log::default())?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleUnload(module: usize) -> u32 {
    call(Entry::cuModuleUnload, |call| module::unload(call, module))
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleGetFunction(function: Out<usize>, module: usize, name: In<c_char>) -> u32 {
    call(Entry::cuModuleGetFunction, |call| {
        function.required()?;
        function.set(module::function(call, module, &name.text()?)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuModuleGetGlobal_v2(address: Out<u64>, size_bytes: Out<usize>, module: usize, name: In<c_char>) -> u32 {
    call(Entry::cuModuleGetGlobal_v2, |call| {
        // Where there is none, driver 580 leaves no address.
        address.set_if_wanted(0);
        let global = module::global(call, module, &name.text()?)?;
        address.set_if_wanted(global.0);
        size_bytes.set_if_wanted(global.1);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncGetAttribute(value: Out<c_int>, number: c_uint, function: usize) -> u32 {
    call(Entry::cuFuncGetAttribute, |call| value.set(function::attribute(call, number, function)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncSetAttribute(function: usize, number: c_uint, value: c_int) -> u32 {
    call(Entry::cuFuncSetAttribute, |call| function::set_attribute(call, number, function, value))
}

#[unsafe(no_mangle)]
extern "C" fn cuFuncGetParamInfo(function: usize, index: usize, offset: Out<usize>, size_bytes: Out<usize>) -> u32 {
    call(Entry::cuFuncGetParamInfo, |call| {
        let parameter = function::parameter(call, function, index)?;
        offset.set(parameter.0)?;
        size_bytes.set_if_wanted(parameter.1);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuLaunchKernel(
    function: usize,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    dynamic_shared_bytes: c_uint,
    stream: usize,
    each: In<*const u8>,
    extra: In<*mut c_void>,
) -> u32 {
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    let shape = Launch { grid, block, dynamic_shared_bytes };
    call_or_nothing(Entry::cuLaunchKernel, |call| {
        launch::launch(call, function, shape, Arguments { each, extra }, stream)
    })
}
