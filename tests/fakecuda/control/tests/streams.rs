//! Streams, events and host functions: what is ordered with what.

#[macro_use]
mod support;

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use support::*;

#[test]
fn bytes_go_through_streams_by_events_alone() {
    process::run("bytes_go_through_streams_by_events_alone", &Options::default(), || {
        let gpu = Session::new();
        let (up, middle, down) = (gpu.stream(NON_BLOCKING), gpu.stream(NON_BLOCKING), gpu.stream(NON_BLOCKING));
        let (from, to) = (gpu.pinned(1 << 17), gpu.pinned(1 << 17));
        let (first, second) = (gpu.allocate(1 << 17), gpu.allocate(1 << 17));
        for round in 0..20 {
            from.set(round);
            from.to_device(first, up);
            gpu.order(up, middle);
            gpu.d2d(second, first, 1 << 17, middle);
            gpu.order(middle, down);
            to.read_from(second, down);
            gpu.sync(down);
            assert!(to.get().iter().all(|byte| *byte == round));
        }
        gpu.free(first);
        gpu.free(second);
        from.free();
        to.free();
        [up, middle, down].into_iter().for_each(|stream| ok!(gpu, cuStreamDestroy_v2(stream)));
        gpu.end();
    });
}

#[test]
fn an_event_is_what_its_stream_had_at_the_record() {
    process::run("an_event_is_what_its_stream_had_at_the_record", &Options::default(), || {
        let gpu = Session::new();
        let (stream, other, event) = (gpu.stream(NON_BLOCKING), gpu.stream(NON_BLOCKING), gpu.event());
        assert_eq!(cu!(gpu, cuEventQuery(event)), 0, "one that was never recorded is complete");
        ok!(gpu, cuEventSynchronize(event));
        gpu.wait(other, event);
        let memory = gpu.allocate(16);
        gpu.control.hold(true);
        gpu.record(event, stream);
        gpu.fill(memory, 1, 16, stream);
        assert_eq!(cu!(gpu, cuEventQuery(event)), NOT_READY);
        assert_eq!(cu!(gpu, cuStreamQuery(stream)), NOT_READY);
        gpu.wait(other, event);
        // Recorded again, the event is younger; the wait is for the older record.
        gpu.record(event, stream);
        gpu.control.hold(false);
        ok!(gpu, cuEventSynchronize(event));
        gpu.sync(other);
        gpu.sync(stream);
        assert_eq!(cu!(gpu, cuStreamQuery(stream)), 0);
        gpu.free(memory);
        ok!(gpu, cuEventDestroy_v2(event));
        assert_eq!(cu!(gpu, cuEventQuery(event)), 400);
        [stream, other].into_iter().for_each(|stream| ok!(gpu, cuStreamDestroy_v2(stream)));
        assert_eq!(cu!(gpu, cuStreamQuery(stream)), 400);
        gpu.end();
    });
}

#[test]
fn the_legacy_stream_is_ordered_with_blocking_ones_both_ways() {
    process::run("the_legacy_stream_is_ordered_with_blocking_ones_both_ways", &Options::default(), || {
        let gpu = Session::new();
        let (blocking, free) = (gpu.stream(BLOCKING), gpu.stream(NON_BLOCKING));
        let memory = gpu.allocate(64);
        gpu.fill(memory, 1, 64, blocking);
        gpu.fill(memory, 2, 64, 0);
        gpu.fill(memory, 3, 64, blocking);
        assert_eq!(gpu.read(memory, 64, 1), [3; 64], "1 is the legacy stream, too");
        gpu.fill(memory, 4, 64, 2);
        gpu.fill(memory, 5, 64, 0);
        assert_eq!(gpu.read(memory, 64, 2), [5; 64], "the thread's default stream is a blocking one");
        gpu.control.no_reports();
        gpu.control.hold(true);
        gpu.fill(memory, 6, 64, blocking);
        assert_eq!(cu!(gpu, cuStreamQuery(0)), NOT_READY);
        assert_eq!(cu!(gpu, cuStreamQuery(free)), 0);
        gpu.control.hold(false);
        gpu.sync(blocking);
        gpu.control.hold(true);
        gpu.fill(memory, 6, 64, 0);
        assert_eq!(cu!(gpu, cuStreamQuery(blocking)), 0, "its own work is over");
        gpu.fill(memory, 7, 64, free);
        gpu.control.hold(false);
        let reports = gpu.control.take_reports();
        assert_eq!(reports.len(), 1, "{reports:#?}");
        gpu.free(memory);
        [blocking, free].into_iter().for_each(|stream| ok!(gpu, cuStreamDestroy_v2(stream)));
        gpu.end();
    });
}

#[test]
fn a_stream_with_a_priority_is_a_stream_of_its_flags() {
    process::run("a_stream_with_a_priority_is_a_stream_of_its_flags", &Options::default(), || {
        let gpu = Session::new();
        let (mut least, mut greatest) = (9, 9);
        ok!(gpu, cuCtxGetStreamPriorityRange(&mut least, &mut greatest));
        assert!(greatest < least, "less is more urgent: {greatest}..{least}");
        let memory = gpu.allocate(64);
        // What is out of range is moved into it.
        for priority in [least, greatest, -3, 7, -100, i32::MIN, i32::MAX] {
            for flags in [BLOCKING, NON_BLOCKING] {
                let mut stream = 0;
                ok!(gpu, cuStreamCreateWithPriority(&mut stream, flags, priority));
                let mut context = 0;
                ok!(gpu, cuStreamGetCtx(stream, &mut context));
                assert_eq!((context, gpu.control.ledger("streams")), (gpu.contexts[0], 1));
                gpu.fill(memory, 1, 64, stream);
                gpu.sync(stream);
                gpu.control.hold(true);
                gpu.fill(memory, 2, 64, stream);
                // The legacy stream is behind blocking ones alone.
                let expected = if flags == BLOCKING { NOT_READY } else { 0 };
                assert_eq!(cu!(gpu, cuStreamQuery(0)), expected, "flags {flags}, priority {priority}");
                gpu.control.hold(false);
                assert_eq!(gpu.read(memory, 64, stream), [2; 64]);
                ok!(gpu, cuStreamDestroy_v2(stream));
            }
        }
        let mut stream = 0;
        assert_eq!(cu!(gpu, cuStreamCreateWithPriority(&mut stream, 2, greatest)), 1, "flags that nobody knows");
        assert_eq!(cu!(gpu, cuStreamCreateWithPriority(ptr::null_mut(), NON_BLOCKING, greatest)), 1);
        ok!(gpu, cuCtxSetCurrent(0));
        assert_eq!(cu!(gpu, cuStreamCreateWithPriority(&mut stream, NON_BLOCKING, greatest)), 201, "in no context");
        assert_eq!((stream, gpu.control.ledger("streams")), (0, 0));
        gpu.make_current(0);
        gpu.free(memory);
        gpu.end();
    });
}

static RAN: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(data: *mut c_void) {
    RAN.fetch_add(u32::try_from(data.addr()).unwrap(), Ordering::Relaxed);
}

#[test]
fn what_a_thread_saw_is_before_all_that_follows() {
    process::run("what_a_thread_saw_is_before_all_that_follows", &Options::default(), || {
        let gpu = Session::new();
        let (first, second, event) = (gpu.stream(NON_BLOCKING), gpu.stream(NON_BLOCKING), gpu.event());
        let memory = gpu.allocate(64);
        let until_it_is_over = |query: &dyn Fn() -> u32| {
            while query() == NOT_READY {
                std::thread::yield_now();
            }
        };
        let ways: [&dyn Fn(); 5] = [
            &|| until_it_is_over(&|| cu!(gpu, cuEventQuery(event))),
            &|| until_it_is_over(&|| cu!(gpu, cuStreamQuery(first))),
            &|| ok!(gpu, cuEventSynchronize(event)),
            &|| gpu.sync(first),
            &|| gpu.sync_all(),
        ];
        for (number, sees) in ways.into_iter().enumerate() {
            gpu.fill(memory, 1, 64, first);
            gpu.record(event, first);
            sees();
            gpu.fill(memory, 2, 64, second);
            gpu.sync(second);
            assert_eq!(gpu.control.reports(), [""; 0], "way {number}");
        }
        gpu.free(memory);
        ok!(gpu, cuEventDestroy_v2(event));
        [first, second].into_iter().for_each(|stream| ok!(gpu, cuStreamDestroy_v2(stream)));
        gpu.end();
    });
}

#[test]
fn host_functions_run_in_their_place() {
    process::run("host_functions_run_in_their_place", &Options::default(), || {
        let gpu = Session::new();
        let stream = gpu.stream(NON_BLOCKING);
        for data in 1..=4 {
            ok!(gpu, cuLaunchHostFunc(stream, Some(count), ptr::without_provenance_mut(data)));
        }
        gpu.sync(stream);
        assert_eq!(RAN.load(Ordering::Relaxed), 10);
        assert_eq!(cu!(gpu, cuLaunchHostFunc(stream, None, ptr::null_mut())), 1);
        ok!(gpu, cuStreamDestroy_v2(stream));
        gpu.end();
    });
}

#[test]
fn a_destroyed_stream_ends_its_work() {
    process::run("a_destroyed_stream_ends_its_work", &Options::default(), || {
        let gpu = Session::new();
        let (stream, event) = (gpu.stream(NON_BLOCKING), gpu.event());
        let memory = gpu.allocate(8);
        gpu.control.hold(true);
        gpu.fill(memory, 9, 8, stream);
        gpu.record(event, stream);
        ok!(gpu, cuStreamDestroy_v2(stream));
        assert_eq!(cu!(gpu, cuEventQuery(event)), NOT_READY);
        gpu.control.hold(false);
        ok!(gpu, cuEventSynchronize(event));
        assert_eq!(gpu.read(memory, 8, 0), [9; 8]);
        gpu.free(memory);
        ok!(gpu, cuEventDestroy_v2(event));
        gpu.end();
    });
}

#[test]
fn times_go_up() {
    process::run("times_go_up", &Options::default(), || {
        let gpu = Session::new();
        let stream = gpu.stream(NON_BLOCKING);
        let (mut first, mut second, mut between) = (0, 0, -1.0);
        ok!(gpu, cuEventCreate(&mut first, 0));
        ok!(gpu, cuEventCreate(&mut second, 0));
        assert_eq!(cu!(gpu, cuEventElapsedTime_v2(&mut between, first, second)), 400, "neither was recorded");
        gpu.record(first, stream);
        gpu.control.hold(true);
        gpu.record(second, stream);
        assert_eq!(cu!(gpu, cuEventElapsedTime_v2(&mut between, first, second)), NOT_READY);
        gpu.control.hold(false);
        gpu.sync(stream);
        ok!(gpu, cuEventElapsedTime(&mut between, first, second));
        assert!(between >= 0.0);
        [first, second].into_iter().for_each(|event| ok!(gpu, cuEventDestroy_v2(event)));
        ok!(gpu, cuStreamDestroy_v2(stream));
        gpu.end();
    });
}
