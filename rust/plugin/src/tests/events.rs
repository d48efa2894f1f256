//! Events that the caller makes, waits for and completes.

use std::ffi::c_void;
use std::ptr;
use std::sync::mpsc::{self, Sender};
use std::thread;

use purlin_base::{Error, StatusCode};
use purlin_pjrt::abi::{PjrtError, arguments};
use purlin_pjrt_abi as abi;

use super::{call, end_event, plugin, refusal};

/// An address that other threads may use.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);
// SAFETY: of an object of the plugin's, which threads share.
unsafe impl<T> Send for Shared<T> {}

fn create() -> *mut abi::Event {
    let mut args: abi::EventCreateArgs = arguments();
    call(&mut args).unwrap();
    args.event
}

fn set(event: *mut abi::Event, code: i32, message: &str) -> Result<(), Error> {
    call(&mut abi::EventSetArgs {
        event,
        error_code: code,
        error_message: message.as_ptr().cast(),
        error_message_size: message.len(),
        ..arguments()
    })
}

fn is_ready(event: *mut abi::Event) -> bool {
    let mut args = abi::EventIsReadyArgs { event, ..arguments() };
    call(&mut args).unwrap();
    args.is_ready != 0
}

type Told = Sender<Option<Error>>;

unsafe extern "C" fn tell(error: *mut PjrtError, sender: *mut c_void) {
    // SAFETY: from on_ready(), called once.
    let sender = unsafe { Box::from_raw(sender.cast::<Told>()) };
    sender.send(plugin().taken(error)).unwrap();
}

/// What `event` calls back with.
fn on_ready(event: *mut abi::Event) -> mpsc::Receiver<Option<Error>> {
    let (sender, receiver) = mpsc::channel();
    let user_arg = Box::into_raw(Box::new(sender)).cast();
    call(&mut abi::EventOnReadyArgs { event, callback: Some(tell), user_arg, ..arguments() }).unwrap();
    receiver
}

#[test]
fn an_event_is_completed_once_and_calls_back() {
    let event = create();
    assert!(!is_ready(event));
    let (code, text) = refusal(&mut abi::EventErrorArgs { event, ..arguments() });
    assert_eq!(code, StatusCode::FailedPrecondition);
    assert!(text.contains("is pending"), "{text}");
    let told = on_ready(event);
    assert!(told.try_recv().is_err());
    set(event, 0, "").unwrap();
    assert_eq!(told.recv().unwrap(), None);
    assert!(is_ready(event));
    call(&mut abi::EventErrorArgs { event, ..arguments() }).unwrap();
    assert_eq!(on_ready(event).recv().unwrap(), None, "also later");
    assert_eq!(set(event, 0, "").unwrap_err().code(), StatusCode::FailedPrecondition);
    assert_eq!(end_event(event), None);
}

#[test]
fn an_error_goes_to_every_waiter() {
    let event = create();
    let told = on_ready(event);
    let waiting = Shared(event);
    let waiter = thread::spawn(move || {
        let event = { waiting }.0;
        call(&mut abi::EventAwaitArgs { event, ..arguments() })
    });
    set(event, abi::error_code::DATA_LOSS, "lost").unwrap();
    for error in [told.recv().unwrap().unwrap(), waiter.join().unwrap().unwrap_err(), end_event(event).unwrap()] {
        assert_eq!((error.code(), error.message()), (StatusCode::DataLoss, "lost"));
    }
}

#[test]
fn an_event_that_is_destroyed_unset_fails_for_its_waiters() {
    let event = create();
    let told = on_ready(event);
    call(&mut abi::EventDestroyArgs { event, ..arguments() }).unwrap();
    let error = told.recv().unwrap().unwrap();
    assert_eq!(error.code(), StatusCode::Internal);
    assert!(error.message().contains("PJRT_Event_Create"), "{error}");
}

#[test]
fn an_error_says_its_code_message_and_payloads() {
    let event = create();
    set(event, 99, "strange").unwrap();
    assert_eq!(end_event(event).unwrap().code(), StatusCode::Unknown);
    let mut args = abi::ErrorGetCodeArgs { error: ptr::null(), ..arguments() };
    assert_eq!(refusal(&mut args).0, StatusCode::InvalidArgument);
}
