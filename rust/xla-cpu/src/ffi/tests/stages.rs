//! Stages and states.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::super::abi::{State, StateOfTwo};
use super::super::register_ffi_type;
use super::*;

/// Sets a state of type `id` in `stage`: null, or the text of the error.
fn set(frame: &CallFrame, api: &Api, stage: Stage, id: i64, object: *mut c_void) -> Returned {
    let mut set = arguments::<State>(48);
    let id = TypeId { number: id };
    (set.context, set.stage, set.id, set.state) = (frame.context, stage as c_int, &id, object);
    // SAFETY: the struct is what the function takes.
    unsafe { (api.state_set)(&mut set) }
}

fn get(frame: &CallFrame, api: &Api, stage: Stage, id: i64) -> Result<*mut c_void, String> {
    let mut get = arguments::<State>(48);
    let id = TypeId { number: id };
    (get.context, get.stage, get.id) = (frame.context, stage as c_int, &id);
    // SAFETY: the struct is what the function takes.
    text(api, unsafe { (api.state_get)(&mut get) }).map_or(Ok(get.state), Err)
}

const COUNTER: i64 = 1 << 30;
static DELETED: AtomicUsize = AtomicUsize::new(0);
static INSTANTIATED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C-unwind" fn delete(object: *mut c_void) {
    // SAFETY: all states of this type are boxes of counters.
    drop(unsafe { Box::from_raw(object.cast::<AtomicUsize>()) });
    DELETED.fetch_add(1, SeqCst);
}

fn counter() -> *mut c_void {
    Box::into_raw(Box::new(AtomicUsize::new(0))).cast()
}

unsafe extern "C-unwind" fn instantiate(frame: *mut c_void) -> Returned {
    let Some((frame, api)) = entered(frame) else { return ptr::null_mut() };
    assert_eq!((frame.stage, frame.arguments.count, frame.results.count, frame.attributes.count), (0, 0, 0, 1));
    INSTANTIATED.fetch_add(1, SeqCst);
    let first = set(frame, api, Stage::Instantiate, COUNTER, counter());
    if !first.is_null() {
        return first;
    }
    checked(api, || {
        // The host takes no object that it refuses.
        let second = text(api, set(frame, api, Stage::Instantiate, COUNTER, ptr::null_mut()));
        same(second, Some(format!("a state of type {COUNTER}, and there is one of type {COUNTER}")))
    })
}

unsafe extern "C-unwind" fn prepare(frame: *mut c_void) -> Returned {
    let Some((frame, api)) = entered(frame) else { return ptr::null_mut() };
    assert_eq!((frame.stage, frame.arguments.count, frame.results.count), (1, 1, 1));
    set(frame, api, Stage::Prepare, COUNTER, counter())
}

unsafe extern "C-unwind" fn initialize(frame: *mut c_void) -> Returned {
    let Some((frame, api)) = entered(frame) else { return ptr::null_mut() };
    checked(api, || {
        same(frame.stage, 2)?;
        get(frame, api, Stage::Prepare, COUNTER)?;
        let missing = get(frame, api, Stage::Initialize, COUNTER).unwrap_err();
        same(missing, format!("there is no state, and one of type {COUNTER} is asked for"))
    })
}

unsafe extern "C-unwind" fn execute(frame: *mut c_void) -> Returned {
    let Some((frame, api)) = entered(frame) else { return ptr::null_mut() };
    checked(api, || {
        let state = get(frame, api, Stage::Instantiate, COUNTER)?;
        // SAFETY: the state is a counter, and lives as long as the program.
        let run = unsafe { &*state.cast::<AtomicUsize>() }.fetch_add(1, SeqCst);
        operands(frame).1.fill(run as f32);
        let other = get(frame, api, Stage::Instantiate, 7).unwrap_err();
        same(other, format!("the state is of type {COUNTER}, and not 7"))?;
        let mut old = arguments::<StateOfTwo>(40);
        let id = TypeId { number: COUNTER };
        (old.context, old.id) = (frame.context, &id);
        // SAFETY: the function takes the shorter struct of version 0.2, too.
        same(text(api, unsafe { (api.state_get)((&raw mut old).cast()) }), None)?;
        same(old.state, state)?;
        let late = text(api, set(frame, api, Stage::Instantiate, COUNTER, state));
        same(late.as_deref(), Some("the state of stage 0 cannot be set in stage 'execute'"))?;
        same(text(api, set(frame, api, Stage::Execute, COUNTER, state)).as_deref(), Some("stage 3 has no state"))
    })
}

#[test]
fn stages_run_in_their_order_and_states_are_deleted_at_their_ends() {
    // SAFETY: the deleter is that of the states that this test sets.
    assert_eq!(unsafe { register_ffi_type("counter of a test", COUNTER, Some(delete)) }.unwrap(), COUNTER);
    let owner = Arc::new(());
    let bundle =
        FfiBundle { instantiate: Some(instantiate), prepare: Some(prepare), initialize: Some(initialize), execute };
    let loaded = Loaded::new(with_owner("target", bundle, owner.clone()), "{a = 1}");
    assert_eq!((INSTANTIATED.load(SeqCst), DELETED.load(SeqCst)), (1, 0));
    for number in 0..3 {
        assert_eq!(loaded.run(&ExecuteOptions::default()).unwrap(), [number as f32; 4]);
        assert_eq!(DELETED.load(SeqCst), number + 1, "the state of the stage 'prepare'");
    }
    assert_eq!((INSTANTIATED.load(SeqCst), Arc::strong_count(&owner)), (1, 2), "a program keeps the owner");
    drop(loaded);
    assert_eq!((DELETED.load(SeqCst), Arc::strong_count(&owner)), (4, 1), "the state, then the owner");
}

unsafe extern "C-unwind" fn refuses_to_instantiate(frame: *mut c_void) -> Returned {
    let Some((frame, api)) = entered(frame) else { return ptr::null_mut() };
    let unknown = text(api, set(frame, api, Stage::Instantiate, 12345, ptr::null_mut())).unwrap();
    failed(api, 9, &CString::new(format!("no, and {unknown}")).unwrap())
}

#[test]
fn a_handler_that_cannot_instantiate_refuses_the_load() {
    let bundle = FfiBundle { instantiate: Some(refuses_to_instantiate), ..FfiBundle::of(nothing) };
    let (code, text) = message(load(registered("target", bundle), ""));
    assert_eq!(code, StatusCode::FailedPrecondition);
    let why = "program 'sample', custom call target 'target': in the stage 'instantiate': no, and a state of type 12345, \
               which is not registered";
    assert_eq!(text, why);
}

unsafe extern "C-unwind" fn cannot_prepare(frame: *mut c_void) -> Returned {
    let Some((_, api)) = entered(frame) else { return ptr::null_mut() };
    failed(api, 14, c"later")
}

#[test]
fn a_stage_before_execute_fails_the_run() {
    let bundle = FfiBundle { prepare: Some(cannot_prepare), ..FfiBundle::of(nothing) };
    let loaded = Loaded::new(registered("target", bundle), "");
    let (code, text) = message(loaded.run(&ExecuteOptions::default()));
    assert_eq!(code, StatusCode::Unavailable);
    assert!(text.contains("in the stage 'prepare': later"), "{text}");
}
