//! Runs: operands, errors, futures, scratch memory, threads, and what a handler asks about its run.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

use super::super::abi::{
    ContextGet, DeviceOrdinalGet, FutureCreate, FutureSetAvailable, FutureSetError, HandlerRegister, MemoryAllocate,
    MemoryFree, PoolSchedule, PoolThreads, RunIdGet, StreamGet, TypeRegister,
};
use super::super::{FfiUserData, ffi_api};
use super::*;
use crate::proto::samples::{ShapeProto, ShapeSliceProto, ThunkKind};

unsafe extern "C-unwind" fn doubles(frame: *mut c_void) -> Returned {
    let Some((frame, api)) = entered(frame) else { return ptr::null_mut() };
    checked(api, || {
        // SAFETY: the host gives as many buffers as it says.
        let buffers = unsafe { [&**frame.arguments.buffers, &**frame.results.buffers] };
        for buffer in buffers {
            // SAFETY: a buffer has as many dimensions as its rank says.
            let dims = unsafe { std::slice::from_raw_parts(buffer.dims, buffer.rank as usize) };
            same((buffer.struct_size, buffer.dtype, dims), (48, 11, &[4_i64][..]))?;
        }
        // SAFETY: as above.
        same(unsafe { (*frame.arguments.kinds, *frame.results.kinds) }, (1, 1))?;
        let (from, to) = operands(frame);
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from * 2.0);
        Ok(())
    })
}

#[test]
fn a_handler_reads_arguments_and_writes_results() {
    assert_eq!(run(doubles, "").unwrap(), [2.0, 4.0, 6.0, 8.0]);
    let loaded = Loaded::new(registered("target", FfiBundle::of(doubles)), "");
    let waits = ExecuteOptions { caller_waits: true, ..Default::default() };
    assert_eq!(loaded.run(&waits).unwrap(), [2.0, 4.0, 6.0, 8.0]);
}

unsafe extern "C-unwind" fn takes_a_token(frame: *mut c_void) -> Returned {
    let Some((frame, api)) = entered(frame) else { return ptr::null_mut() };
    checked(api, || {
        // SAFETY: the host gives as many buffers as it says.
        let (token, array) = unsafe { (&**frame.arguments.buffers, &**frame.arguments.buffers.add(1)) };
        same((frame.arguments.count, token.dtype, token.rank, token.data.is_null()), (2, 17, 0, true))?;
        same((array.dtype, array.rank), (11, 1))?;
        // SAFETY: the result is f32[4].
        unsafe { (**frame.results.buffers).data.cast::<[f32; 4]>().write([5.0; 4]) };
        Ok(())
    })
}

#[test]
fn a_token_has_a_type_and_no_address() {
    let mut result = result(objects().remove(0));
    result.thunks = custom_call("target", 4, b"");
    let Some(ThunkKind::CustomCall(call)) = &mut result.thunks.as_mut().unwrap().thunks[0].thunk else {
        panic!("a custom call is first")
    };
    let token = ShapeProto { element_type: 17, ..Default::default() };
    let token = ShapeSliceProto { shape: Some(token), slice: None };
    call.buffers.as_mut().unwrap().arguments.insert(0, token);
    let handlers = registered("target", FfiBundle::of(takes_a_token));
    let options = LoadOptions { trust_code: true, handlers, ..Default::default() };
    let loaded = Loaded::of(load_program(&plugin(&result), &options).unwrap());
    assert_eq!(loaded.run(&ExecuteOptions::default()).unwrap(), [5.0; 4]);
}

unsafe extern "C-unwind" fn fails(frame: *mut c_void) -> Returned {
    let Some((_, api)) = entered(frame) else { return ptr::null_mut() };
    failed(api, 11, c"the factor is inf")
}

unsafe extern "C-unwind" fn fails_with_the_code_ok(frame: *mut c_void) -> Returned {
    let Some((_, api)) = entered(frame) else { return ptr::null_mut() };
    failed(api, 0, c"")
}

unsafe extern "C-unwind" fn panics(frame: *mut c_void) -> Returned {
    if entered(frame).is_none() {
        return ptr::null_mut();
    }
    panic!("number {}", 7)
}

#[test]
fn errors_and_panics_fail_the_run_with_the_place_of_the_command() {
    let (code, text) = message(run(fails, ""));
    assert_eq!(code, StatusCode::OutOfRange);
    assert_eq!(text, "command 0 (library 'target') of 'sample': the factor is inf");
    assert_eq!(message(run(fails_with_the_code_ok, "")).0, StatusCode::Unknown);
    let (code, text) = message(run(panics, ""));
    assert_eq!((code, text.ends_with("the handler panicked: number 7")), (StatusCode::Internal, true), "{text}");
}

fn future(api: &Api) -> *mut c_void {
    let mut create = arguments::<FutureCreate>(16);
    // SAFETY: the struct is what the function takes.
    assert!(unsafe { (api.future_create)(&mut create) }.is_null());
    create.future
}

fn complete(api: &Api, future: *mut c_void, error: *mut c_void) {
    let (mut ready, mut failed) = (arguments::<FutureSetAvailable>(24), arguments::<FutureSetError>(32));
    (ready.future, failed.future, failed.error) = (future, future, error);
    // SAFETY: the future is completed once.
    let returned = unsafe {
        if error.is_null() { (api.future_set_available)(&mut ready) } else { (api.future_set_error)(&mut failed) }
    };
    assert!(returned.is_null());
}

/// An address that another thread uses.
struct Sent<T>(T);
// SAFETY: the host keeps the frame's memory until the future is complete.
unsafe impl<T> Send for Sent<T> {}

impl<T> Sent<T> {
    fn into_inner(self) -> T {
        self.0
    }
}

/// Computes on a thread of its own, and fails there if an attribute is given.
unsafe extern "C-unwind" fn later(frame: *mut c_void) -> Returned {
    let Some((frame, api)) = entered(frame) else { return ptr::null_mut() };
    frame.future = future(api);
    let sent = Sent((operands(frame), frame.future, frame.attributes.count));
    // SAFETY: the table lives as long as the process.
    let api = unsafe { &*ffi_api().cast::<Api>() };
    thread::spawn(move || {
        let ((from, to), future, fails) = sent.into_inner();
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from + 1.0);
        let error = if fails > 0 { failed(api, 8, c"too late") } else { ptr::null_mut() };
        complete(api, future, error);
    });
    ptr::null_mut()
}

unsafe extern "C-unwind" fn at_once(frame: *mut c_void) -> Returned {
    let Some((frame, api)) = entered(frame) else { return ptr::null_mut() };
    frame.future = future(api);
    let (from, to) = operands(frame);
    to.copy_from_slice(from);
    complete(api, frame.future, ptr::null_mut());
    ptr::null_mut()
}

#[test]
fn a_command_completes_with_its_future() {
    assert_eq!(run(later, "").unwrap(), [2.0, 3.0, 4.0, 5.0]);
    assert_eq!(run(at_once, "").unwrap(), [1.0, 2.0, 3.0, 4.0]);
    let (code, text) = message(run(later, "{fail = true}"));
    let expected = "command 0 (library 'target') of 'sample': too late";
    assert_eq!((code, text.as_str()), (StatusCode::ResourceExhausted, expected));
}

/// Waits for the future's turn: the task that completes it is queued behind the runs that wait, so the pool must go on.
unsafe extern "C-unwind" fn on_the_pool(frame: *mut c_void) -> Returned {
    unsafe extern "C-unwind" fn task(data: *mut c_void) {
        // SAFETY: the handler has given these to the one task.
        let work = unsafe { Box::from_raw(data.cast::<(*mut c_void, &'static [f32], &'static mut [f32])>()) };
        let (future, from, to) = *work;
        to.copy_from_slice(from);
        // SAFETY: the table lives as long as the process.
        complete(unsafe { &*ffi_api().cast::<Api>() }, future, ptr::null_mut());
    }
    let Some((frame, api)) = entered(frame) else { return ptr::null_mut() };
    frame.future = future(api);
    let (from, to) = operands(frame);
    let mut schedule = arguments::<PoolSchedule>(40);
    schedule.context = frame.context;
    schedule.task = Some(task);
    schedule.data = Box::into_raw(Box::new((frame.future, from, to))).cast();
    // SAFETY: the struct is what the function takes.
    unsafe { (api.pool_schedule)(&mut schedule) }
}

#[test]
fn futures_that_wait_for_tasks_of_the_same_pool_complete() {
    let loaded = Loaded::new(registered("target", FfiBundle::of(on_the_pool)), "");
    let memory = loaded.client.devices()[1].default_memory_space();
    let argument = Buffer::from_slice(&[1_f32, 2.0, 3.0, 4.0], &[4], &memory).unwrap();
    let start = || loaded.executable.execute(&[&argument], &ExecuteOptions::default()).unwrap();
    let executions: Vec<_> = (0..16).map(|_| start()).collect();
    for execution in executions {
        execution.done.wait().unwrap();
        assert_eq!(execution.outputs[0].to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    }
}

unsafe extern "C-unwind" fn schedules(frame: *mut c_void) -> Returned {
    struct Work {
        count: AtomicUsize,
        done: mpsc::Sender<()>,
    }
    unsafe extern "C-unwind" fn task(data: *mut c_void) {
        // SAFETY: the handler waits for all tasks.
        let work = unsafe { &*data.cast::<Work>() };
        let done = work.done.clone();
        // Denormal numbers are zero, as in the threads of XLA.
        let tiny = std::hint::black_box(f32::MIN_POSITIVE) * std::hint::black_box(0.5);
        work.count.fetch_add(usize::from(tiny == 0.0), SeqCst);
        done.send(()).unwrap();
    }
    unsafe extern "C-unwind" fn bad_task(_data: *mut c_void) {
        panic!("a task")
    }
    let Some((frame, api)) = entered(frame) else { return ptr::null_mut() };
    checked(api, || {
        let mut count = 0;
        let mut threads = arguments::<PoolThreads>(32);
        (threads.context, threads.count) = (frame.context, &mut count);
        // SAFETY: the struct is what the function takes.
        same(text(api, unsafe { (api.pool_threads)(&mut threads) }), None)?;
        same(count, 2)?;
        let (sender, receiver) = mpsc::channel();
        let work = Work { count: AtomicUsize::new(0), done: sender };
        for number in 0..101 {
            let mut schedule = arguments::<PoolSchedule>(40);
            schedule.context = frame.context;
            schedule.task = Some(if number == 0 { bad_task } else { task });
            schedule.data = ptr::from_ref(&work).cast_mut().cast();
            // SAFETY: as above; the work lives until all tasks have run.
            same(text(api, unsafe { (api.pool_schedule)(&mut schedule) }), None)?;
        }
        (0..100).for_each(|_| receiver.recv().unwrap());
        operands(frame).1.fill(work.count.load(SeqCst) as f32);
        Ok(())
    })
}

#[test]
fn scheduled_tasks_run_once_on_the_clients_pool() {
    assert_eq!(run(schedules, "").unwrap(), [100.0; 4]);
}

unsafe extern "C-unwind" fn allocates(frame: *mut c_void) -> Returned {
    let Some((frame, api)) = entered(frame) else { return ptr::null_mut() };
    checked(api, || {
        let allocate = |size_bytes, alignment| {
            let mut allocate = arguments::<MemoryAllocate>(48);
            (allocate.context, allocate.size_bytes, allocate.alignment) = (frame.context, size_bytes, alignment);
            // SAFETY: the struct is what the function takes.
            text(api, unsafe { (api.memory_allocate)(&mut allocate) }).map_or(Ok(allocate.data), Err)
        };
        let free = |size_bytes, data| {
            let mut free = arguments::<MemoryFree>(40);
            (free.context, free.size_bytes, free.data) = (frame.context, size_bytes, data);
            // SAFETY: as above.
            text(api, unsafe { (api.memory_free)(&mut free) })
        };
        let kept = allocate(100, 256)?;
        same(kept.addr() % 256, 0)?;
        // SAFETY: the memory has this size.
        unsafe { kept.cast::<u8>().write_bytes(7, 100) };
        let block = allocate(64, 1)?;
        same(free(64, block), None)?;
        same(free(64, block), Some(format!("this call has no 64 bytes at {block:p}")))?;
        same(free(99, kept), Some(format!("this call has no 99 bytes at {kept:p}")))?;
        same(allocate(8, 3), Err("8 bytes aligned to 3".to_owned()))?;
        same(
            allocate(isize::MAX as usize - 64, 1),
            Err(format!("no {} bytes for an XLA FFI handler", isize::MAX - 64)),
        )?;
        same(free(0, allocate(0, 8)?), None)?;
        operands(frame).1.fill(1.0);
        Ok(())
    })
}

#[test]
fn scratch_memory_is_aligned_and_freed_at_the_end_of_the_call() {
    assert_eq!(run(allocates, "").unwrap(), [1.0; 4]);
}

const DATA: i64 = 77;

unsafe extern "C-unwind" fn asks(frame: *mut c_void) -> Returned {
    let Some((frame, api)) = entered(frame) else { return ptr::null_mut() };
    checked(api, || {
        let context = frame.context;
        let (mut run, mut device) = (arguments::<RunIdGet>(32), arguments::<DeviceOrdinalGet>(28));
        (run.context, device.context) = (context, context);
        let user = |id| {
            let (mut user, id) = (arguments::<ContextGet>(40), TypeId { number: id });
            (user.context, user.id) = (context, &id);
            // SAFETY: the struct is what the function takes.
            text(api, unsafe { (api.context_get)(&mut user) }).map_or(Ok(user.data), Err)
        };
        let mut stream = arguments::<StreamGet>(32);
        stream.context = context;
        // SAFETY: as above; the data of the run is a number.
        let number = unsafe {
            same(text(api, (api.run_id_get)(&mut run)), None)?;
            same(text(api, (api.device_ordinal_get)(&mut device)), None)?;
            let no_stream = text(api, (api.stream_get)(&mut stream));
            same(no_stream.as_deref(), Some("there is no stream: the handler runs on the host"))?;
            *user(DATA)?.cast::<f32>()
        };
        same(user(78), Err("the context of the run has no user data of type 78 (FfiUserData)".to_owned()))?;
        let to = operands(frame).1;
        to.copy_from_slice(&[run.run_id as f32, device.ordinal as f32, number, 0.0]);
        Ok(())
    })
}

#[test]
fn a_handler_asks_for_run_device_and_user_data() {
    let loaded = Loaded::new(registered("target", FfiBundle::of(asks)), "");
    let number = Arc::new(2.5_f32);
    let mut data = FfiUserData::default();
    // SAFETY: the owner of the number is given, too.
    unsafe { data.insert(DATA, Arc::as_ptr(&number).cast_mut().cast(), number) };
    let options = ExecuteOptions { launch_id: 9, context: Some(Arc::new(data)), ..Default::default() };
    assert_eq!(loaded.run(&options).unwrap(), [9.0, 1.0, 2.5, 0.0]);
    let (code, text) = message(loaded.run(&ExecuteOptions::default()));
    assert_eq!((code, text.contains("no user data of type 77")), (StatusCode::Aborted, true), "{text}");
}

unsafe extern "C-unwind" fn has_no_run(frame: *mut c_void) -> Returned {
    let Some((frame, api)) = entered(frame) else { return ptr::null_mut() };
    checked(api, || {
        let (mut device, mut allocate) = (arguments::<DeviceOrdinalGet>(28), arguments::<MemoryAllocate>(48));
        (device.context, allocate.context) = (frame.context, frame.context);
        // SAFETY: the structs are what the functions take.
        let texts = unsafe { [(api.device_ordinal_get)(&mut device), (api.memory_allocate)(&mut allocate)] };
        let [device, memory] = texts.map(|error| text(api, error).unwrap());
        same(device.as_str(), "the stage 'instantiate' has no device")?;
        same(memory.as_str(), "the stage 'instantiate' has no memory of a device")
    })
}

#[test]
fn the_stage_instantiate_has_no_run() {
    let bundle = FfiBundle { instantiate: Some(has_no_run), ..FfiBundle::of(doubles) };
    load(registered("target", bundle), "").unwrap();
}

#[test]
fn structs_that_are_too_small_and_null_are_refused() {
    // SAFETY: the table lives as long as the process.
    let api = unsafe { &*ffi_api().cast::<Api>() };
    let mut small = arguments::<RunIdGet>(24);
    let mut no_context = arguments::<RunIdGet>(32);
    let mut register = arguments::<HandlerRegister>(84);
    let mut no_id = arguments::<TypeRegister>(40);
    let mut no_future = arguments::<FutureSetAvailable>(24);
    // SAFETY: the structs have the sizes that they say, or more.
    let texts = unsafe {
        [
            (api.run_id_get)(&mut small),
            (api.run_id_get)(ptr::null_mut()),
            (api.run_id_get)(&mut no_context),
            (api.handler_register)(&mut register),
            (api.type_register)(&mut no_id),
            (api.future_set_available)(&mut no_future),
        ]
    };
    let texts = texts.map(|error| text(api, error).unwrap());
    assert_eq!(texts[0], "XLA FFI: run_id_get: its arguments have 24 bytes, and not 32 or more");
    assert_eq!(texts[1], "XLA FFI: run_id_get: its arguments have 0 bytes, and not 32 or more");
    assert_eq!(texts[2], "the context is null");
    assert!(texts[3].contains("handlers are given to a load (FfiHandlers)"), "{}", texts[3]);
    assert_eq!((texts[4].as_str(), texts[5].as_str()), ("the type id is null", "the future is null"));
}
