//! A run by the plugin that compiles, over views of our arrays; its results become ours without a copy.
//!
//! Each array has its view, or is a result of that plugin's, so nothing is made twice. The plugin does not know what
//! our arrays wait for, so a run waits here until its arguments are there, unless they are its own results. It holds
//! its arguments until it has completed, so they are not donated meanwhile.

use std::ptr;
use std::sync::Arc;

use purlin_array::DType;
use purlin_async::Event;
use purlin_base::{Error, StatusOr};
use purlin_device::{Buffer, DonationHold, Mutability, RawBuffer, UsageHold};
use purlin_pjrt::abi::arguments;
use purlin_pjrt::event::take;
use purlin_pjrt_abi::{
    self as abi, BufferGetMemoryLayoutArgs, BufferReadyEventArgs, BufferUnsafePointerArgs, LoadedExecutableExecuteArgs,
};
use smallvec::SmallVec;

use super::Compiled;
use super::run::Run;
use crate::buffer::{self, BufferObject};
use crate::compiler::Face;
use crate::{event, ffi, read};

/// What a run has of an argument.
enum Hold {
    /// It never had memory, and has failed.
    Nothing,
    Use(UsageHold),
    Donation(DonationHold),
}

impl Hold {
    fn memory(&self) -> Option<&RawBuffer> {
        match self {
            Self::Nothing => None,
            Self::Use(hold) => Some(hold.memory()),
            Self::Donation(hold) => Some(hold.memory()),
        }
    }
}

/// Runs it. Results go to `lists`, and events, where they are wanted, to `events`.
///
/// # Errors
/// `InvalidArgument`: an argument is gone, or given twice. `FailedPrecondition`: this is a child made by
/// `fork`. What the plugin says. Then every argument is as it was.
///
/// # Safety
/// `lists` have room for the results of each device, and `events` is null or has room for one of each.
pub(super) unsafe fn run(
    compiled: &Arc<Compiled>,
    run: &Run<'_>,
    lists: &[*mut *mut abi::Buffer],
    events: *mut *mut abi::Event,
) -> Result<(), Error> {
    let compiler = &compiled.compiler;
    compiler.check_here()?;
    let mut holds: SmallVec<[Hold; 8]> = SmallVec::new();
    // An argument may be deleted by another thread meanwhile.
    let mut kept: SmallVec<[Face; 8]> = SmallVec::new();
    let mut theirs: SmallVec<[SmallVec<[*mut abi::Buffer; 8]>; 1]> = SmallVec::new();
    let mut keeps: SmallVec<[i64; 4]> = run.keeps.iter().map(|&index| index as i64).collect();
    for list in &run.arguments {
        let mut buffers = SmallVec::new();
        for (index, argument) in list.iter().enumerate() {
            // Memory that other code refers to is copied by the plugin, and deleted here all the same.
            let is_referred_to = argument.array.hold_counts().1 > 0;
            if run.gives(compiled, index) && is_referred_to && !keeps.contains(&(index as i64)) {
                keeps.push(index as i64);
            }
            let is_donated = run.gives(compiled, index) && !is_referred_to;
            let (hold, face) = prepared(compiled, argument, is_donated)
                .map_err(|error| error.prefixed(format_args!("argument {index}, {:?}", argument.array)))?;
            holds.push(hold);
            buffers.push(face.buffer());
            kept.push(face);
        }
        theirs.push(buffers);
    }
    let count = theirs.len();
    let context = ffi::Lent::of(&compiler.plugin, run.context)?;
    let mut options = abi::ExecuteOptions {
        context: context.address(),
        non_donatable_input_indices: keeps.as_ptr(),
        num_non_donatable_input_indices: keeps.len(),
        ..run.options
    };
    let argument_lists: SmallVec<[*const *mut abi::Buffer; 1]> = theirs.iter().map(|list| list.as_ptr()).collect();
    let mut results: SmallVec<[Vec<*mut abi::Buffer>; 1]> =
        (0..count).map(|_| vec![ptr::null_mut(); compiled.output_count()]).collect();
    let output_lists: SmallVec<[*mut *mut abi::Buffer; 1]> = results.iter_mut().map(|list| list.as_mut_ptr()).collect();
    let mut completed: SmallVec<[*mut abi::Event; 1]> = SmallVec::from_elem(ptr::null_mut(), count);
    let device = match run.device {
        Some(device) => compiler.device(usize::try_from(device.device.id()).unwrap_or(usize::MAX)),
        None => ptr::null_mut(),
    };
    let mut args = LoadedExecutableExecuteArgs {
        executable: compiled.loaded,
        options: &raw mut options,
        argument_lists: argument_lists.as_ptr(),
        num_devices: count,
        num_args: theirs.first().map_or(0, SmallVec::len),
        output_lists: output_lists.as_ptr(),
        device_complete_events: completed.as_mut_ptr(),
        execute_device: device,
        ..arguments()
    };
    // SAFETY: all that is pointed to lives until the call returns; the arguments are held.
    unsafe { compiler.plugin.call(&mut args) }?;
    // SAFETY: the events are ours.
    let done: SmallVec<[Event; 1]> =
        completed.iter().map(|&event| unsafe { take(compiler.plugin.api(), event.cast(), true) }).collect();
    context.end_after(&done);
    compiled.end_donated(run);
    let per_device = holds.len() / count.max(1);
    for (at, hold) in holds.into_iter().enumerate() {
        match hold {
            Hold::Nothing => (),
            Hold::Use(hold) => hold.release_after(done[at / per_device.max(1)].clone()),
            Hold::Donation(hold) => drop(hold.confirm()),
        }
    }
    // SAFETY: the results are ours.
    let own = |list: Vec<*mut abi::Buffer>| unsafe {
        list.into_iter().map(|result| Face::of_result(compiler, result)).collect::<Vec<_>>()
    };
    let faces: SmallVec<[Vec<Face>; 1]> = results.into_iter().map(own).collect();
    let mut arrays: SmallVec<[Vec<Buffer>; 1]> = SmallVec::new();
    for (at, faces) in faces.iter().enumerate() {
        let list = faces.iter().enumerate().map(|(index, face)| imported(compiled, run, at, index, face));
        arrays.push(list.collect::<StatusOr<_>>()?);
    }
    for (at, (arrays, faces)) in arrays.into_iter().zip(faces).enumerate() {
        for (index, (array, face)) in arrays.into_iter().zip(faces).enumerate() {
            // SAFETY: the caller has room.
            unsafe { lists[at].add(index).write(buffer::give_with_face(array, &compiled.platform, face)) };
        }
        if !events.is_null() {
            // SAFETY: the caller has room.
            unsafe { events.add(at).write(event::give(done[at].clone())) };
        }
    }
    Ok(())
}

/// Holds an argument, and finds the plugin's object for it.
fn prepared(compiled: &Compiled, argument: &BufferObject, is_donated: bool) -> StatusOr<(Hold, Face)> {
    let array = &argument.array;
    let hold = match is_donated && array.has_memory() {
        true => Hold::Donation(array.donate(compiled.label)?),
        false if array.has_memory() => Hold::Use(array.usage_hold()?),
        false if array.is_deleted() => {
            return Err(array.usage_hold().err().unwrap_or_else(|| Error::internal("deleted")));
        }
        // The plugin is told that it has failed.
        false => Hold::Nothing,
    };
    if let Hold::Donation(hold) = &hold {
        // The plugin may write it at once.
        hold.free_event().wait()?;
    }
    let face = argument.face_or(|| {
        // Whether it fails is not asked: then the view is one of an error.
        let _ = array.ready_event().wait();
        Face::of_array(&compiled.compiler, array, hold.memory())
    })?;
    Ok((hold, face))
}

/// A result of the plugin's, on a device, as one of our arrays.
fn imported(compiled: &Compiled, run: &Run<'_>, at: usize, index: usize, face: &Face) -> StatusOr<Buffer> {
    let plugin = &compiled.compiler.plugin;
    let (shape, kind) = &compiled.outputs[index];
    let buffer = face.buffer();
    let device = match run.device {
        Some(device) => device.device.clone(),
        None => {
            // SAFETY: of the client's platform.
            unsafe { crate::handle::lent::<LoadedExecutableExecuteArgs, _>(compiled.devices[at]) }?.device.clone()
        }
    };
    let space = device.memory_space(kind)?;
    let mut found = BufferReadyEventArgs { buffer, ..arguments() };
    // SAFETY: the result is alive; its event is ours.
    let ready = unsafe {
        plugin.call(&mut found)?;
        take(plugin.api(), found.event.cast(), true)
    };
    if shape.dtype() == DType::Token {
        // It has neither layout nor address, and the plugin aborts if it is asked.
        return Buffer::token(&space, &ready);
    }
    // SAFETY: the result is alive.
    let (layout, address) = unsafe {
        let mut layout = BufferGetMemoryLayoutArgs { buffer, layout: arguments(), ..arguments() };
        plugin.call(&mut layout)?;
        let layout = read::layout(&raw const layout.layout, shape)?;
        let mut pointer = BufferUnsafePointerArgs { buffer, ..arguments() };
        let address = match shape.on_device_size_bytes() {
            0 => Ok(0),
            _ => plugin.call(&mut pointer).map(|()| pointer.buffer_pointer),
        };
        (layout, address)
    };
    match address {
        Ok(0) => {
            let memory = RawBuffer::allocate(&space, shape.on_device_size_bytes())?;
            Buffer::from_raw(memory, shape, layout.as_ref(), &ready)
        }
        Ok(address) => {
            let kept = face.stock();
            let release = Box::new(move || drop(kept)) as Box<dyn FnOnce() + Send + Sync>;
            let first = ptr::with_exposed_provenance_mut(address);
            let size = shape.on_device_size_bytes();
            // SAFETY: the plugin's memory, which stays as long as its object.
            let memory = unsafe { RawBuffer::import(&space, first, size, Mutability::Mutable, Some(release)) }?;
            Buffer::from_raw(memory, shape, layout.as_ref(), &ready)
        }
        Err(why) => Ok(Buffer::error(ready.error().unwrap_or(why), shape, &space)),
    }
}
