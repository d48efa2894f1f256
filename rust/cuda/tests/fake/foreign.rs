//! Work of others in this process, in order with a client's: their streams and events as events, and a client's events
//! before their streams. No thread waits, and what is missing the detector knows.

use std::thread;
use std::time::Duration;

use purlin::backend::{ForeignEvent, ForeignStream, ForeignWork};
use purlin::{Device, Error, Event, EventPromise, RawBuffer, ShutdownMode, ShutdownOptions, StatusCode, when_all};
use purlin_fakecuda::{Driver, Options, process};

use crate::beside::Endless;
use crate::launches::FILL;
use crate::stranger::Stranger;
use crate::support::*;

const BYTES: usize = 4096;
/// The legacy default stream, by both of its handles, and that of the thread.
const DEFAULTS: [usize; 3] = [0, 1, 2];

#[allow(unsafe_code, reason = "handles of others are believed")]
pub(crate) fn stream(handle: usize) -> ForeignStream {
    // SAFETY: tests pass handles of streams that are there, or that the fake driver knows not to be.
    unsafe { ForeignStream::new(handle) }
}

#[allow(unsafe_code, reason = "handles of others are believed")]
pub(crate) fn event(handle: usize) -> ForeignEvent {
    // SAFETY: as in stream().
    unsafe { ForeignEvent::new(handle) }
}

pub(crate) fn device(session: &Session) -> Device {
    session.client.devices().swap_remove(0)
}

pub(crate) fn address(block: &RawBuffer) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(block.device_pointer().unwrap())
}

/// No thread has waited for the driver since the calls were counted.
#[track_caller]
fn no_thread_has_waited(session: &Session) {
    let waits = ["cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"];
    session.called(&waits.map(|entry| (entry, 0)), "no thread waits");
}

/// A block of the GPU, and one of the host to copy it to.
fn blocks(session: &Session) -> [RawBuffer; 2] {
    ["device", "pinned_host"].map(|kind| session.block(0, kind, BYTES))
}

/// Why it was refused, with what the message has to say.
#[track_caller]
fn refused(outcome: Result<(), Error>, code: StatusCode, words: &[&str]) {
    let error = outcome.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    words.iter().for_each(|words| assert!(error.message().contains(words), "'{words}' in: {error}"));
}

/// A copy behind what `work` makes of the stranger's stream, on which the block is filled.
fn is_copied_behind(session: &Session, stranger: &Stranger, theirs: usize, work: impl FnOnce() -> ForeignWork) {
    let (device, [block, back]) = (device(session), blocks(session));
    let held = Held::new(&session.driver);
    stranger.set(theirs, address(&block), 7, BYTES);
    session.driver.control.reset_calls();
    let filled = device.foreign_event(work());
    let down = copy(&block, &back, std::slice::from_ref(&filled));
    session.called(&[("cuMemcpyDtoHAsync_v2", 1)], &format!("enqueued while the stream {theirs} works"));
    held.keeps([&filled, &down]);
    no_thread_has_waited(session);
    drop(held);
    outcome(&down).unwrap();
    outcome(&filled).unwrap();
    assert_eq!(read(&back).unwrap(), [7; BYTES], "stream {theirs}");
}

#[test]
fn a_copy_waits_for_streams_of_others_on_the_gpu_alone() {
    process::run("foreign::a_copy_waits_for_streams_of_others_on_the_gpu_alone", &Options::default(), || {
        Session::with(1, |session| {
            let stranger = Stranger::on(0);
            let made = stranger.make_stream();
            for theirs in DEFAULTS.into_iter().chain([made]) {
                is_copied_behind(session, &stranger, theirs, || stream(theirs).into());
            }
            // Destroyed while it works.
            let (device, [block, back]) = (device(session), blocks(session));
            let held = Held::new(&session.driver);
            stranger.set(made, address(&block), 9, BYTES);
            let down = copy(&block, &back, &[device.foreign_event(stream(made).into())]);
            stranger.destroy_stream(made);
            drop(held);
            outcome(&down).unwrap();
            assert_eq!(read(&back).unwrap(), [9; BYTES]);
        });
    });
}

#[test]
fn a_copy_waits_for_the_latest_record_of_an_event_whatever_becomes_of_that() {
    let name = "foreign::a_copy_waits_for_the_latest_record_of_an_event_whatever_becomes_of_that";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let stranger = Stranger::on(0);
            let (theirs, recorded, never) = (stranger.make_stream(), stranger.make_event(), stranger.make_event());
            let record = || {
                stranger.record(recorded, theirs);
                event(recorded).into()
            };
            is_copied_behind(session, &stranger, theirs, record);
            // Recorded anew at once, behind what does not end, and destroyed.
            let endless = Endless::new(&session.driver);
            let block = stranger.allocate(8);
            let module = is_copied_before(session, &stranger, theirs, recorded, block);
            stranger.destroy_event(recorded);
            outcome(&device(session).foreign_event(event(never).into())).unwrap();
            drop(endless);
            stranger.synchronise(theirs);
            stranger.unload(module);
            stranger.destroy_event(never);
            stranger.destroy_stream(theirs);
            stranger.free(block);
        });
    });
}

/// A copy behind a record, which happens although the event is recorded behind an endless kernel afterwards. Its
/// module.
fn is_copied_before(session: &Session, stranger: &Stranger, theirs: usize, recorded: usize, at: *mut u8) -> usize {
    let [block, back] = blocks(session);
    stranger.set(theirs, address(&block), 8, BYTES);
    stranger.record(recorded, theirs);
    let filled = device(session).foreign_event(event(recorded).into());
    let module = stranger.fill_on(theirs, FILL, at);
    stranger.record(recorded, theirs);
    outcome(&copy(&block, &back, &[filled])).unwrap();
    assert_eq!(read(&back).unwrap(), [8; BYTES]);
    module
}

/// The thread's default stream is that of the thread that calls.
#[test]
fn each_thread_has_its_own_default_stream() {
    process::run("foreign::each_thread_has_its_own_default_stream", &Options::default(), || {
        Session::with(1, |session| {
            let (stranger, device) = (Stranger::on(0), device(session));
            let endless = Endless::new(&session.driver);
            let theirs = stranger.allocate(8);
            let module = stranger.fill_on(2, FILL, theirs);
            let here = device.foreign_event(stream(2).into());
            let there = thread::scope(|scope| scope.spawn(|| device.foreign_event(stream(2).into())).join().unwrap());
            outcome(&there).unwrap();
            assert!(!here.is_ready(), "this thread's stream does not end");
            drop(endless);
            outcome(&here).unwrap();
            stranger.unload(module);
            stranger.free(theirs);
        });
    });
}

#[test]
fn imports_are_in_no_order_and_use_the_same_streams_again() {
    process::run("foreign::imports_are_in_no_order_and_use_the_same_streams_again", &Options::default(), || {
        Session::with(1, |session| {
            let (stranger, device) = (Stranger::on(0), device(session));
            let [stuck, free] = [0, 1].map(|_| stranger.make_stream());
            let endless = Endless::new(&session.driver);
            let theirs = stranger.allocate(8);
            let module = stranger.fill_on(stuck, FILL, theirs);
            session.driver.control.reset_calls();
            let pending: Vec<Event> = (0..3).map(|_| device.foreign_event(stream(stuck).into())).collect();
            let [block, back] = blocks(session);
            for byte in 0..20 {
                stranger.set(free, address(&block), byte, BYTES);
                let filled = device.foreign_event(stream(free).into());
                // What follows on their stream is behind the copy, which is behind what was there before.
                let down = copy(&block, &back, std::slice::from_ref(&filled));
                device.have_stream_wait(stream(free), &down).unwrap();
                outcome(&down).unwrap();
                outcome(&filled).unwrap();
                assert_eq!(read(&back).unwrap(), [byte; BYTES]);
            }
            let joined = when_all(&pending);
            assert!(pending.iter().all(|event| !event.is_ready()) && !joined.is_ready());
            let made = session.driver.control.calls("cuStreamCreate");
            assert!((4..=5).contains(&made), "{made} streams for four imports at once");
            drop(endless);
            outcome(&joined).unwrap();
            stranger.synchronise(stuck);
            stranger.unload(module);
            [stuck, free].into_iter().for_each(|made| stranger.destroy_stream(made));
            stranger.free(theirs);
        });
    });
}

#[test]
fn streams_of_others_wait_for_copies_on_the_gpu_alone() {
    process::run("foreign::streams_of_others_wait_for_copies_on_the_gpu_alone", &Options::default(), || {
        Session::with(1, |session| {
            let (stranger, device) = (Stranger::on(0), device(session));
            let made = stranger.make_stream();
            for theirs in DEFAULTS.into_iter().chain([made]) {
                let ([block, back], host) = (blocks(session), session.block(0, "pinned_host", BYTES));
                let held = Held::new(&session.driver);
                session.driver.control.reset_calls();
                let up = copy(&host, &block, &[]);
                // One event, and a join.
                device.have_stream_wait(stream(theirs), &up).unwrap();
                stranger.set(theirs, address(&block), 5, BYTES / 2);
                let within = copy(&back, &host, &[]);
                device.have_stream_wait(stream(theirs), &when_all(&[up.clone(), within.clone()])).unwrap();
                stranger.set(theirs, address(&block), 5, BYTES);
                held.keeps([&up]);
                no_thread_has_waited(session);
                let down = copy(&block, &back, &[device.foreign_event(stream(theirs).into()), within]);
                drop(held);
                outcome(&down).unwrap();
                assert_eq!(read(&back).unwrap(), [5; BYTES], "stream {theirs}");
            }
            stranger.destroy_stream(made);
        });
    });
}

/// What is not enqueued, and what no GPU does, the caller waits for.
#[test]
fn what_is_held_and_what_the_host_does_is_waited_for() {
    process::run("foreign::what_is_held_and_what_the_host_does_is_waited_for", &Options::default(), || {
        Session::with(1, |session| {
            let (stranger, device) = (Stranger::on(0), device(session));
            let theirs = stranger.make_stream();
            let ([block, back], host) = (blocks(session), session.block(0, "pinned_host", BYTES));
            write(&host, &pattern(BYTES, 1)).unwrap();
            let (promise, of_host) = (EventPromise::new(c"input"), EventPromise::new(c"of the host"));
            let held = copy(&host, &block, &[promise.event()]);
            let joined = when_all(&[held.clone(), of_host.event()]);
            thread::scope(|scope| {
                let waits = scope.spawn(|| {
                    device.have_stream_wait(stream(theirs), &held)?;
                    stranger.set(theirs, address(&block), 6, BYTES);
                    device.have_stream_wait(stream(theirs), &joined)
                });
                promise.set_ready();
                of_host.set_ready();
                waits.join().unwrap().unwrap();
            });
            outcome(&copy(&block, &back, &[device.foreign_event(stream(theirs).into())])).unwrap();
            assert_eq!(read(&back).unwrap(), [6; BYTES]);
            stranger.destroy_stream(theirs);
        });
    });
}

#[test]
fn an_error_is_answered_and_nothing_is_enqueued() {
    process::run("foreign::an_error_is_answered_and_nothing_is_enqueued", &Options::default(), || {
        Session::with(1, |session| {
            let (device, [block, back]) = (device(session), blocks(session));
            let planned = Error::aborted("planned");
            let promise = EventPromise::new(c"input");
            let held = copy(&back, &block, &[promise.event()]);
            let joined = when_all(std::slice::from_ref(&held));
            session.driver.control.reset_calls();
            thread::scope(|scope| {
                let waits = scope.spawn(|| {
                    let wait = |event: &Event| device.have_stream_wait(stream(0), event);
                    [wait(&held), wait(&joined)]
                });
                promise.set_error(planned.clone());
                waits.join().unwrap().into_iter().for_each(|waited| assert_eq!(waited.unwrap_err(), planned));
            });
            let failed = Event::from_error(planned.clone());
            for event in [failed.clone(), when_all(&[failed, held])] {
                assert_eq!(device.have_stream_wait(stream(0), &event).unwrap_err(), planned);
            }
            device.have_stream_wait(stream(0), &Event::ready()).unwrap();
            session.called(&[("cuStreamWaitEvent", 0)], "nothing is enqueued");
        });
    });
}

#[test]
fn handles_that_the_driver_does_not_know_are_refused() {
    let options = Options { devices: 2, ..Options::default() };
    process::run("foreign::handles_that_the_driver_does_not_know_are_refused", &options, || {
        Session::with(2, |session| {
            let (device, there) = (device(session), Stranger::on(1));
            let (of_other, [block, back]) = (there.make_stream(), blocks(session));
            let wrong = StatusCode::InvalidArgument;
            let import = |work: ForeignWork| outcome(&device.foreign_event(work));
            refused(import(stream(0xbad0).into()), wrong, &["import of the stream 0xbad0", "INVALID_HANDLE"]);
            refused(import(event(0xbad0).into()), wrong, &["import of the event 0xbad0", "INVALID_HANDLE"]);
            refused(import(event(0).into()), wrong, &["the event 0x0"]);
            let name = format!("the stream {of_other:#x}");
            refused(import(stream(of_other).into()), wrong, &[&name, "foreign.rs"]);
            let reports = session.driver.control.take_reports();
            assert_eq!(reports.len(), 1, "the context of another GPU: {reports:?}");
            let held = Held::new(&session.driver);
            let up = copy(&back, &block, &[]);
            refused(device.have_stream_wait(stream(0xbad0), &up), wrong, &["the stream 0xbad0", "'copy'"]);
            // A stream of another GPU may wait, and an event of one be waited for.
            device.have_stream_wait(stream(of_other), &up).unwrap();
            let recorded = there.make_event();
            there.record(recorded, of_other);
            let both = device.foreign_event(event(recorded).into());
            drop(held);
            outcome(&both).unwrap();
            outcome(&up).unwrap();
            there.destroy_event(recorded);
            there.destroy_stream(of_other);
        });
    });
}

#[test]
fn a_capture_of_others_takes_nothing_in() {
    process::run("foreign::a_capture_of_others_takes_nothing_in", &Options::default(), || {
        Session::with(1, |session| {
            let (stranger, device, [block, back]) = (Stranger::on(0), device(session), blocks(session));
            let (theirs, recorded) = (stranger.make_stream(), stranger.make_event());
            let early = StatusCode::FailedPrecondition;
            let held = Held::new(&session.driver);
            let up = copy(&back, &block, &[]);
            stranger.begin_capture(theirs);
            refused(outcome(&device.foreign_event(stream(theirs).into())), early, &["is being captured"]);
            // What is over is not waited for, captured or not.
            if session.driver.control.is_fake() {
                refused(device.have_stream_wait(stream(theirs), &up), early, &["is being captured"]);
            }
            assert_eq!(stranger.end_capture(theirs), 0, "the capture is whole");
            // An event of a capture draws a stream into it: that is seen, and the stream is given up.
            stranger.begin_capture(theirs);
            stranger.record(recorded, theirs);
            refused(outcome(&device.foreign_event(event(recorded).into())), early, &["the event"]);
            stranger.end_capture(theirs);
            drop(held);
            outcome(&up).unwrap();
            outcome(&device.foreign_event(stream(theirs).into())).unwrap();
            stranger.destroy_event(recorded);
            stranger.destroy_stream(theirs);
        });
    });
}

/// The work of others is over, and goes; nothing is left, and the detector is silent.
#[track_caller]
fn gone(driver: &Driver, stranger: Stranger, module: usize, theirs: *mut u8) {
    stranger.unload(module);
    stranger.free(theirs);
    drop(stranger);
    nothing_is_left(driver);
    nothing_is_promised("");
    driver.control.no_reports();
}

/// The client's end does not wait for others longer than it was told to.
#[test]
fn a_client_ends_while_others_work() {
    process::run("foreign::a_client_ends_while_others_work", &Options::default(), || {
        for (mode, timeout, code) in [
            (ShutdownMode::CancelPending, None, StatusCode::Cancelled),
            (ShutdownMode::Drain, Some(Duration::ZERO), StatusCode::DeadlineExceeded),
        ] {
            let session = Session::new(1);
            let (stranger, device) = (Stranger::on(0), device(&session));
            session.driver.control.set_endless("fill_64");
            let theirs = stranger.allocate(8);
            let module = stranger.fill(FILL, theirs);
            let pending = device.foreign_event(stream(0).into());
            let ended = session.client.shutdown(ShutdownOptions { mode, timeout });
            assert_eq!(ended.is_err(), timeout.is_some(), "{ended:?}");
            refused(outcome(&pending), code, &["work of others"]);
            let late = outcome(&device.foreign_event(stream(0).into()));
            refused(late, StatusCode::FailedPrecondition, &["shut down"]);
            drop((pending, device));
            // All of the client goes, and its threads, while their work goes on.
            let Session { driver, client } = session;
            drop(client);
            until(|| format!("threads {:?}", threads()), || threads().is_empty());
            assert!(!stranger.is_idle());
            driver.control.set_endless("");
            gone(&driver, stranger, module, theirs);
        }
    });
}

#[test]
fn what_is_pending_happens_when_the_last_handle_is_gone() {
    process::run("foreign::what_is_pending_happens_when_the_last_handle_is_gone", &Options::default(), || {
        let (Session { driver, client }, stranger) = (Session::new(1), Stranger::on(0));
        let (theirs, endless) = (stranger.allocate(8), Endless::new(&driver));
        let module = stranger.fill(FILL, theirs);
        let pending = client.devices()[0].foreign_event(stream(0).into());
        drop(client);
        assert!(!pending.is_ready());
        drop(endless);
        outcome(&pending).unwrap();
        gone(&driver, stranger, module, theirs);
    });
}

#[test]
fn a_gpu_that_breaks_fails_what_stands_for_others() {
    process::run("foreign::a_gpu_that_breaks_fails_what_stands_for_others", &Options::default(), || {
        let session = Session::new(1);
        let (device, [block, back]) = (device(&session), blocks(&session));
        let held = Held::new(&session.driver);
        let copied = copy(&back, &block, &[]);
        let pending = device.foreign_event(stream(device.launch_stream(1).unwrap()).into());
        session.driver.control.break_device(0, 700);
        drop(held);
        let words = ["GPU 0 is broken until this process ends", "700"];
        refused(outcome(&pending), StatusCode::Internal, &words);
        refused(outcome(&copied), StatusCode::Internal, &words);
        refused(outcome(&device.foreign_event(stream(0).into())), StatusCode::Internal, &words);
        refused(device.have_stream_wait(stream(0), &copied), StatusCode::Internal, &words);
        drop((device, block, back, pending, copied));
        session.end_broken();
    });
}

#[test]
fn launches_have_streams_for_others() {
    process::run("foreign::launches_have_streams_for_others", &Options::default(), || {
        Session::with(1, |session| {
            let (stranger, device, [block, back]) = (Stranger::on(0), device(session), blocks(session));
            let mut handles: Vec<usize> = (0..4).map(|number| device.launch_stream(number).unwrap()).collect();
            assert_eq!(device.launch_stream(200), Ok(handles[0]), "a number without a stream means the first");
            for &ours in &handles {
                // Work of others there is in order like any other.
                stranger.set(ours, address(&block), 3, BYTES);
                let filled = device.foreign_event(stream(ours).into());
                outcome(&copy(&block, &back, &[filled])).unwrap();
                assert_eq!(read(&back).unwrap(), [3; BYTES]);
            }
            handles.sort_unstable();
            handles.dedup();
            assert_eq!(handles.len(), 4);
        });
    });
}
