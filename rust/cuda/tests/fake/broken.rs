//! What a GPU that breaks does to its own work, and to that of others.

#![allow(unsafe_code, reason = "copies are made by address")]

use purlin::{
    Buffer, DType, Error, Event, EventPromise, HostBufferSemantics, RawBuffer, Shape, SourceLocation, StatusCode,
};
use purlin_base::status::called_from;
use purlin_fakecuda::{Options, process};

use crate::support::*;

const BYTES: usize = 4096;

/// Work that is enqueued on each of three GPUs while none of it begins.
struct Work {
    /// Of GPU 0, in the order of the calls; the first is of 100 bytes.
    on_first: Vec<Event>,
    /// Of GPU 2, behind work of GPU 0.
    behind_first: Event,
    /// Of GPU 1 and of the host.
    elsewhere: Vec<Event>,
    /// What those have written.
    written: Vec<RawBuffer>,
    /// Memory of GPU 0 and 1, for later.
    later: [RawBuffer; 3],
    /// As errors name the first operation of GPU 0.
    first: String,
    _kept: Vec<RawBuffer>,
}

fn enqueue(session: &Session) -> Work {
    let block = |device, kind| session.block(device, kind, BYTES);
    let (short, pinned) = (session.block(0, "pinned_host", 100), block(0, "pinned_host"));
    let later = [block(0, "device"), block(1, "device"), block(1, "pinned_host")];
    let (first, second, third) = (block(0, "device"), block(0, "device"), block(2, "device"));
    let (source, other, back) = (block(1, "pinned_host"), block(1, "device"), block(1, "pinned_host"));
    let (plain, of_host) = (block(1, "unpinned_host"), block(1, "unpinned_host"));
    let away = block(0, "unpinned_host");
    for block in [&source, &plain, &pinned] {
        write(block, &pattern(BYTES, 5)).unwrap();
    }
    write(&short, &pattern(100, 5)).unwrap();
    session.driver.control.hold(true);
    let (up, line) = (copy(&short, &first, &[]), line!());
    let whole = copy(&pinned, &second, std::slice::from_ref(&up));
    let within = copy(&second, &first, std::slice::from_ref(&whole));
    let down = copy(&first, &pinned, std::slice::from_ref(&within));
    let pageable = copy(&first, &away, std::slice::from_ref(&within));
    let behind_first = copy(&source, &third, std::slice::from_ref(&within));
    let there = copy(&source, &other, &[]);
    let here = copy(&other, &back, std::slice::from_ref(&there));
    let by_host = copy(&plain, &of_host, &[]);
    let (ends, place) = ("from cuda:0/pinned_host to cuda:0/device", format!("{}:{line}", file!()));
    Work {
        first: format!("copy of 100 bytes {ends} ('copy', asked for at {place})"),
        on_first: vec![up, whole, within, down, pageable],
        behind_first,
        elsewhere: vec![there, here, by_host],
        written: vec![back, of_host],
        later,
        _kept: vec![short, pinned, first, second, third, source, other, plain, away],
    }
}

/// The one error of GPU 0.
#[track_caller]
fn is_reason(error: &Error, code: u32, oldest: &str) {
    for words in ["GPU 0 is broken until this process ends", oldest, &format!("{code}")] {
        assert!(error.message().contains(words), "'{words}' in: {error}");
    }
}

/// What is true once GPU 0 has broken while `work` was pending.
fn only_the_first_is_broken(session: &Session, work: &Work, code: u32) {
    let reason = outcome(&work.on_first[0]).unwrap_err();
    is_reason(&reason, code, &format!("the oldest operation in flight was the {}", work.first));
    for event in &work.on_first {
        assert_eq!(outcome(event).unwrap_err(), reason);
    }
    assert_eq!(outcome(&work.behind_first).unwrap_err(), reason, "what was done behind it was done with nothing");
    work.elsewhere.iter().for_each(|event| outcome(event).unwrap());
    for block in &work.written {
        assert_eq!(read(block).unwrap(), pattern(BYTES, 5));
    }
    session.driver.control.set_faults("");
    // Later calls fail at once, and others go on.
    let [first, other, pinned] = &work.later;
    session.driver.control.reset_calls();
    assert_eq!(write(first, &[1; BYTES]).unwrap_err(), reason);
    assert_eq!(outcome(&copy(other, first, &[])).unwrap_err(), reason);
    let calls = session.calls(&["cuCtxGetCurrent", "cuCtxSetCurrent"]);
    assert!(calls.is_empty(), "calls for a broken GPU: {calls:?}");
    let no_memory = block(&session.client, 0, "device", 64 << 20).unwrap_err();
    assert!(no_memory.message().contains("is broken until this process ends"), "{no_memory}");
    write(other, &pattern(BYTES, 9)).unwrap();
    outcome(&copy(other, pinned, &[])).unwrap();
    assert_eq!(read(pinned).unwrap(), pattern(BYTES, 9));
    drop(session.block(1, "device", 64 << 20));
    // Memory of the host is mapped for the GPUs that go on.
    let host = session.block(1, "unpinned_host", BYTES);
    let mapping = session.client.dma_map(host.host_pointer().unwrap().as_ptr().cast_const(), BYTES).unwrap();
    write(&host, &pattern(BYTES, 3)).unwrap();
    outcome(&copy(&host, other, &[])).unwrap();
    assert_eq!(read(other).unwrap(), pattern(BYTES, 3));
    drop(mapping);
}

fn breaks(how: impl FnOnce(&Session), then: impl FnOnce(&Session), code: u32) {
    let session = Session::new(3);
    how(&session);
    let work = enqueue(&session);
    then(&session);
    session.driver.control.hold(false);
    only_the_first_is_broken(&session, &work, code);
    drop(work);
    session.end_broken();
}

fn options() -> Options {
    Options { devices: 3, ..Options::default() }
}

#[test]
fn an_asynchronous_fault_fails_all_that_is_pending_there() {
    process::run("broken::an_asynchronous_fault_fails_all_that_is_pending_there", &options(), || {
        for code in [214, 700, 710, 719, 9999] {
            forked(&format!("an asynchronous {code}"), || {
                // The preparations make no copy to a device.
                let fault = format!("cuMemcpyHtoDAsync_v2:1:{code}:async");
                breaks(|session| session.driver.control.set_faults(&fault), |_| (), code);
            });
        }
    });
}

#[test]
fn a_device_that_falls_off_fails_all_that_is_pending_there() {
    process::run("broken::a_device_that_falls_off_fails_all_that_is_pending_there", &options(), || {
        for code in [46, 700, 710, 719, 999, 4711] {
            let fall = |session: &Session| session.driver.control.break_device(0, code);
            forked(&format!("fallen off with {code}"), || breaks(|_| (), fall, code));
        }
    });
}

#[test]
fn a_call_that_breaks_the_device_is_refused_with_the_reason() {
    process::run("broken::a_call_that_breaks_the_device_is_refused_with_the_reason", &options(), || {
        for code in [700, 715, 4711] {
            forked(&format!("a sticky {code}"), || {
                Session::with(2, |session| {
                    let (from, to) = (session.block(0, "pinned_host", 64), session.block(0, "device", 64));
                    session.driver.control.set_faults(&format!("cuMemcpyHtoDAsync_v2:1:{code}:sticky"));
                    let error = outcome(&copy(&from, &to, &[])).unwrap_err();
                    is_reason(&error, code, "nothing was in flight");
                    let expected = if code == 4711 { StatusCode::Unknown } else { StatusCode::Internal };
                    assert_eq!(error.code(), expected, "{error}");
                    assert_eq!(outcome(&copy(&to, &from, &[])).unwrap_err(), error);
                });
            });
        }
    });
}

/// What the reason says of the oldest operation when GPU 0 breaks while it, and then others, are in flight.
fn oldest_in_flight(begin: impl FnOnce(&Session) -> Event) -> String {
    let session = Session::new(1);
    let others = [session.block(0, "pinned_host", 64), session.block(0, "device", 64)];
    // Memory for whatever begins, which the driver would keep waiting for.
    drop(session.block(0, "device", 16 << 20));
    session.driver.control.hold(true);
    let oldest = begin(&session);
    let later = copy(&others[0], &others[1], &[]);
    session.driver.control.break_device(0, 719);
    session.driver.control.hold(false);
    let reason = outcome(&oldest).unwrap_err();
    assert_eq!(outcome(&later).unwrap_err(), reason);
    drop((others, oldest, later));
    session.end_broken();
    let said = "the oldest operation in flight was the ";
    reason.message().split_once(said).unwrap_or_else(|| panic!("no '{said}' in: {reason}")).1.to_owned()
}

#[test]
fn the_reason_says_who_asked_for_the_oldest_operation() {
    process::run("broken::the_reason_says_who_asked_for_the_oldest_operation", &Options::default(), || {
        let here = |line: u32| format!("('copy', asked for at {}:{line})", file!());
        let mut line = 0;
        forked("a copy between spaces that waited for an event", || {
            let oldest = oldest_in_flight(|session| {
                let (from, to) = (session.block(0, "pinned_host", 200), session.block(0, "device", 200));
                let gate = EventPromise::new(c"gate");
                let copied = copy(&from, &to, &[gate.event()]);
                line = line!() - 1;
                // Enqueued here, and asked for there.
                gate.set_ready();
                copied
            });
            let ends = "copy of 200 bytes from cuda:0/pinned_host to cuda:0/device";
            assert_eq!(oldest, format!("{ends} {}", here(line)));
        });
        forked("a copy of an array", || {
            let oldest = oldest_in_flight(|session| {
                let memory = session.block(0, "device", 4);
                let shape = Shape::new(DType::U8, &[4]).unwrap();
                let array = Buffer::from_raw(memory, &shape, None, &Event::ready()).unwrap();
                let copied = array.copy_to_device(&session.client.devices()[0]).unwrap();
                line = line!() - 1;
                copied.ready_event()
            });
            assert_eq!(oldest, format!("copy of 4 bytes from cuda:0/device to cuda:0/device {}", here(line)));
        });
        forked("an array of the host's in parts, of which the first are in flight", || {
            let bytes = vec![1_u8; 9 << 20];
            let oldest = oldest_in_flight(|session| {
                let space = session.client.devices()[0].default_memory_space();
                let semantics = HostBufferSemantics::ImmutableUntilTransferCompletes;
                let dims = [bytes.len() as i64];
                // SAFETY: the bytes stay until the event.
                let made =
                    unsafe { Buffer::from_host(bytes.as_ptr(), bytes.len(), DType::U8, &dims, &space, semantics) };
                line = line!() - 1;
                until(|| "no part is enqueued".to_owned(), || session.driver.control.calls("cuMemcpyHtoDAsync_v2") > 0);
                made.unwrap().ready_event()
            });
            let ends = format!("copy of {} bytes from host to cuda:0/device", bytes.len());
            assert_eq!(oldest, format!("{ends} {}", here(line)));
        });
        forked("a read that code of C++ asks for", || {
            let mut bytes = [0_u8; 32];
            let oldest = oldest_in_flight(|session| {
                let memory = session.block(0, "device", 32);
                session.driver.control.hold(false);
                write(&memory, &[0; 32]).unwrap();
                session.driver.control.hold(true);
                let layer = SourceLocation::from_static(c"model/layer.cc", 12);
                // SAFETY: the bytes stay until the event.
                called_from(layer, || unsafe { memory.copy_to_host(bytes.as_mut_ptr(), 0, 32, &[]) })
            });
            assert_eq!(oldest, "copy of 32 bytes from cuda:0/device to host ('copy', asked for at model/layer.cc:12)");
        });
    });
}
