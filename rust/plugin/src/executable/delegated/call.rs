//! The call of the plugin that compiles, with arguments that are there, and its results as our arrays.

use std::ptr;
use std::sync::Arc;

use purlin_array::DType;
use purlin_async::Event;
use purlin_async::event::EventState;
use purlin_base::StatusOr;
use purlin_device::{Buffer, Device, Mutability, RawBuffer};
use purlin_pjrt::abi::arguments;
use purlin_pjrt::event::take;
use purlin_pjrt_abi::{
    self as abi, BufferGetMemoryLayoutArgs, BufferReadyEventArgs, BufferUnsafePointerArgs, LoadedExecutableExecuteArgs,
};
use smallvec::SmallVec;

use super::{Given, space_of};
use crate::compiler::Face;
use crate::executable::Compiled;
use crate::{ffi, layouts, read};

/// Of each device the results, with what the plugin knows them as, and an event for its completion.
pub(super) type Finished = SmallVec<[(Vec<(Buffer, Option<Face>)>, Event); 1]>;

/// All that a run needs, owned.
pub(super) struct Call {
    pub(super) compiled: Arc<Compiled>,
    pub(super) arguments: SmallVec<[SmallVec<[Given; 8]>; 1]>,
    /// Arguments that are not donated.
    pub(super) keeps: SmallVec<[i64; 4]>,
    pub(super) devices: SmallVec<[Device; 1]>,
    /// Whether the caller has chosen the device.
    pub(super) is_portable: bool,
    pub(super) launch_id: i32,
    pub(super) context: ffi::Lent,
}

impl Call {
    /// Calls the plugin. All arguments are ready, or known to the plugin.
    ///
    /// # Errors
    /// What the plugin says. Then every argument is as it was.
    pub(super) fn now(self) -> StatusOr<Finished> {
        let Self { compiled, arguments: given, keeps, devices, is_portable, launch_id, context } = self;
        let compiler = &compiled.compiler;
        // An argument may be deleted by another thread meanwhile.
        let mut kept: SmallVec<[Face; 8]> = SmallVec::new();
        let mut theirs: SmallVec<[SmallVec<[*mut abi::Buffer; 8]>; 1]> = SmallVec::new();
        for list in &given {
            let mut buffers = SmallVec::new();
            for Given { array, hold, face, .. } in list {
                let face = match face {
                    Some(face) => face.clone(),
                    None => Face::of_array(compiler, array, hold.memory())?,
                };
                buffers.push(face.buffer());
                kept.push(face);
            }
            theirs.push(buffers);
        }
        let count = theirs.len();
        let mut options = abi::ExecuteOptions {
            launch_id,
            context: context.address(),
            non_donatable_input_indices: keeps.as_ptr(),
            num_non_donatable_input_indices: keeps.len(),
            ..arguments()
        };
        let argument_lists: SmallVec<[*const *mut abi::Buffer; 1]> = theirs.iter().map(|list| list.as_ptr()).collect();
        let mut results: SmallVec<[Vec<*mut abi::Buffer>; 1]> =
            (0..count).map(|_| vec![ptr::null_mut(); compiled.output_count()]).collect();
        let output_lists: SmallVec<[*mut *mut abi::Buffer; 1]> =
            results.iter_mut().map(|list| list.as_mut_ptr()).collect();
        let mut completed: SmallVec<[*mut abi::Event; 1]> = SmallVec::from_elem(ptr::null_mut(), count);
        let execute_device = match is_portable {
            true => compiler.device(usize::try_from(devices[0].id()).unwrap_or(usize::MAX)),
            false => ptr::null_mut(),
        };
        let mut args = LoadedExecutableExecuteArgs {
            executable: compiled.loaded,
            options: &raw mut options,
            argument_lists: argument_lists.as_ptr(),
            num_devices: count,
            num_args: theirs.first().map_or(0, SmallVec::len),
            output_lists: output_lists.as_ptr(),
            device_complete_events: completed.as_mut_ptr(),
            execute_device,
            ..arguments()
        };
        // SAFETY: all that is pointed to lives until the call returns; the arguments are held.
        unsafe { compiler.plugin.call(&mut args) }?;
        // SAFETY: the events are ours.
        let done: SmallVec<[Event; 1]> =
            completed.iter().map(|&event| unsafe { take(compiler.plugin.api(), event.cast(), true) }).collect();
        context.end_after(&done);
        for (list, done) in given.into_iter().zip(&done) {
            list.into_iter().for_each(|given| drop(given.hold.end(done)));
        }
        // SAFETY: the results are ours.
        let own = |list: Vec<*mut abi::Buffer>| unsafe {
            list.into_iter().map(|result| Face::of_result(compiler, result)).collect::<Vec<_>>()
        };
        // All of them first, so that each ends if one cannot become ours.
        let faces: SmallVec<[Vec<Face>; 1]> = results.into_iter().map(own).collect();
        let mut finished = Finished::new();
        for ((device, faces), done) in devices.iter().zip(faces).zip(done) {
            let list = faces.into_iter().enumerate();
            let list = list.map(|(index, face)| Ok((imported(&compiled, device, index, &face, &done)?, Some(face))));
            finished.push((list.collect::<StatusOr<_>>()?, done));
        }
        Ok(finished)
    }
}

/// A result of the plugin's, on a device whose part of the run is over at `done`, as one of our arrays.
fn imported(compiled: &Compiled, device: &Device, index: usize, face: &Face, done: &Event) -> StatusOr<Buffer> {
    let plugin = &compiled.compiler.plugin;
    let (shape, _) = &compiled.outputs[index];
    let buffer = face.buffer();
    let space = space_of(compiled, device, index)?;
    let ready = if done.state() == EventState::Ready {
        // Its results are ready, too.
        Event::ready()
    } else {
        let mut found = BufferReadyEventArgs { buffer, ..arguments() };
        // SAFETY: the result is alive; its event is ours.
        unsafe {
            plugin.call(&mut found)?;
            take(plugin.api(), found.event.cast(), true)
        }
    };
    if shape.dtype() == DType::Token {
        // It has neither layout nor address, and the plugin aborts if it is asked.
        return Buffer::token(&space, &ready);
    }
    let asked;
    let layout = match layouts::of_output(compiled, index) {
        Ok(layout) => layout,
        // The plugin does not know it before there is a result.
        Err(_) => {
            let mut found = BufferGetMemoryLayoutArgs { buffer, layout: arguments(), ..arguments() };
            // SAFETY: the result is alive.
            asked = unsafe {
                plugin.call(&mut found)?;
                read::layout(&raw const found.layout, shape)?
            };
            asked.as_ref()
        }
    };
    let mut pointer = BufferUnsafePointerArgs { buffer, ..arguments() };
    let address = match shape.on_device_size_bytes() {
        0 => Ok(0),
        // SAFETY: the result is alive.
        _ => unsafe { plugin.call(&mut pointer) }.map(|()| pointer.buffer_pointer),
    };
    match address {
        Ok(0) => {
            let memory = RawBuffer::allocate(&space, shape.on_device_size_bytes())?;
            Buffer::from_raw(memory, shape, layout, &ready)
        }
        Ok(address) => {
            let kept = face.stock();
            let release = Box::new(move || drop(kept)) as Box<dyn FnOnce() + Send + Sync>;
            let first = ptr::with_exposed_provenance_mut(address);
            let size = shape.on_device_size_bytes();
            // SAFETY: the plugin's memory, which stays as long as its object.
            let memory = unsafe { RawBuffer::import(&space, first, size, Mutability::Mutable, Some(release)) }?;
            Buffer::from_raw(memory, shape, layout, &ready)
        }
        Err(why) => Ok(Buffer::error(ready.error().unwrap_or(why), shape, &space)),
    }
}
