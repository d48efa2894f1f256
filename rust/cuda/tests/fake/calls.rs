//! How often the driver is called for an operation: exactly, when all is warm.

#![allow(unsafe_code, reason = "copies are made by address")]

use std::collections::BTreeMap;

use purlin::{Event, LaunchOptions};
use purlin_fakecuda::{Options, process};

use crate::graphs::{launch, twenty};
use crate::launches::{fill, start};
use crate::stranger::Stranger;
use crate::support::*;

/// Making a context current takes these, once for an operation of a thread that has none; see [`context_calls`].
const CONTEXT: [&str; 2] = ["cuCtxGetCurrent", "cuCtxSetCurrent"];
/// Of the poller, which asks as often as it takes.
const POLLING: &str = "cuEventQuery";
pub(crate) const BUT: [&str; 3] = [CONTEXT[0], CONTEXT[1], POLLING];

pub(crate) fn counted(calls: &[(&'static str, u64)]) -> BTreeMap<&'static str, u64> {
    calls.iter().copied().collect()
}

/// Every event, chunk and thread is there: four copies each way have been made, and the poller sleeps.
pub(crate) fn warm(session: &Session) {
    for kind in ["pinned_host", "unpinned_host"] {
        let (host, device) = (session.block(0, kind, 4096), session.block(0, "device", 4096));
        let other = session.block(0, "device", 4096);
        // All at once, so that each has an event, and there are more than any test has at a time.
        let held = Held::new(&session.driver);
        let mut down = None;
        for _ in 0..4 {
            let up = copy(&host, &device, down.as_slice());
            let within = copy(&device, &other, &[up]);
            down = Some(copy(&other, &host, &[within]));
        }
        drop(held);
        outcome(&down.unwrap()).unwrap();
    }
    quiet(session);
}

/// Nothing but these was called since the last reset, each so often: as [`Session::called`], with what is made current
/// and asked left out.
#[track_caller]
pub(crate) fn are_counted(session: &Session, expected: &[(&'static str, u64)]) {
    if session.driver.control.is_fake() {
        assert_eq!(session.calls(&BUT), counted(expected));
    }
}

/// Waits until the poller has nothing to ask: an event is ready after the poller has asked for the last time. Only the
/// fake driver tells.
pub(crate) fn quiet(session: &Session) {
    if !session.driver.control.is_fake() {
        return;
    }
    let mut before = session.calls(&[]);
    until(
        || "the driver is called all the time".to_owned(),
        || {
            let now = session.calls(&[]);
            now == std::mem::replace(&mut before, now.clone())
        },
    );
    session.driver.control.reset_calls();
}

#[test]
fn warm_memory_takes_no_call() {
    process::run("calls::warm_memory_takes_no_call", &Options::default(), || {
        Session::with(1, |session| {
            warm(session);
            for kind in ["device", "pinned_host", "unpinned_host"] {
                for bytes in [1, 4096, 1 << 20] {
                    drop(session.block(0, kind, bytes));
                    quiet(session);
                    drop(session.block(0, kind, bytes));
                    assert_eq!(session.calls(&[]), counted(&[]), "{bytes} bytes of {kind}");
                }
            }
        });
    });
}

#[test]
fn asking_and_waiting_for_what_is_over_takes_no_call() {
    process::run("calls::asking_and_waiting_for_what_is_over_takes_no_call", &Options::default(), || {
        Session::with(1, |session| {
            warm(session);
            let (from, to) = (session.block(0, "pinned_host", 4096), session.block(0, "device", 4096));
            let event = copy(&from, &to, &[]);
            outcome(&event).unwrap();
            quiet(session);
            assert!(event.is_ready());
            event.wait().unwrap();
            assert_eq!(session.calls(&[]), counted(&[]));
            // It is no wait between streams, either.
            outcome(&copy(&to, &from, &[event])).unwrap();
            assert_eq!(session.calls(&BUT), counted(&[("cuMemcpyDtoHAsync_v2", 1), ("cuEventRecord", 1)]));
        });
    });
}

#[test]
fn a_pinned_copy_is_a_copy_and_a_record() {
    process::run("calls::a_pinned_copy_is_a_copy_and_a_record", &Options::default(), || {
        Session::with(1, |session| {
            warm(session);
            let (host, device) = (session.block(0, "pinned_host", 1 << 20), session.block(0, "device", 1 << 20));
            quiet(session);
            outcome(&copy(&host, &device, &[])).unwrap();
            assert_eq!(session.calls(&BUT), counted(&[("cuMemcpyHtoDAsync_v2", 1), ("cuEventRecord", 1)]));
            context_calls(session, 1);
            quiet(session);
            outcome(&copy(&device, &host, &[])).unwrap();
            assert_eq!(session.calls(&BUT), counted(&[("cuMemcpyDtoHAsync_v2", 1), ("cuEventRecord", 1)]));
            context_calls(session, 1);
        });
    });
}

/// This thread has no context of its own: each operation asks for it, makes ours current, and puts it back.
#[track_caller]
fn context_calls(session: &Session, operations: u64) {
    let calls = CONTEXT.map(|name| session.driver.control.calls(name));
    assert_eq!(calls, [operations, 2 * operations], "context calls of {operations} operations");
}

/// A thread where the GPU's context is current, as it is where CUDA's runtime was used, has nothing to set or put back.
#[test]
fn an_operation_of_a_thread_that_has_the_context_sets_none() {
    process::run("calls::an_operation_of_a_thread_that_has_the_context_sets_none", &Options::default(), || {
        Session::with(1, |session| {
            let caller = Stranger::on(0);
            warm(session);
            let fill = fill(&session.client.devices()[0], 7, 4096).unwrap();
            let (list, block) = (twenty(), session.block(0, "device", 4096));
            let pinned = session.block(0, "pinned_host", 4096);
            (0..2).for_each(|_| outcome(&launch(session, &list, &block, &[])).unwrap());
            caller.enter();
            let operations: [(&str, &dyn Fn() -> Event); 3] = [
                ("cuMemcpyHtoDAsync_v2", &|| copy(&pinned, &block, &[])),
                ("cuLaunchKernel", &|| start(&fill, &[&block], &LaunchOptions::default()).unwrap()),
                ("cuGraphLaunch", &|| launch(session, &list, &block, &[])),
            ];
            for (call, operation) in operations {
                quiet(session);
                outcome(&operation()).unwrap();
                let expected = [(call, 1), ("cuEventRecord", 1), ("cuCtxGetCurrent", 1)];
                assert_eq!(session.calls(&[POLLING]), counted(&expected), "{call}");
            }
            caller.leave();
        });
    });
}

#[test]
fn a_small_pageable_copy_is_a_copy_and_a_record() {
    process::run("calls::a_small_pageable_copy_is_a_copy_and_a_record", &Options::default(), || {
        Session::with(1, |session| {
            warm(session);
            let device = session.block(0, "device", 4096);
            quiet(session);
            let bytes = pattern(4096, 1);
            write(&device, &bytes).unwrap();
            assert_eq!(session.calls(&BUT), counted(&[("cuMemcpyHtoDAsync_v2", 1), ("cuEventRecord", 1)]));
            quiet(session);
            assert_eq!(read(&device).unwrap(), bytes);
            assert_eq!(session.calls(&BUT), counted(&[("cuMemcpyDtoHAsync_v2", 1), ("cuEventRecord", 1)]));
        });
    });
}

#[test]
fn a_chain_is_three_copies_three_records_and_two_waits() {
    process::run("calls::a_chain_is_three_copies_three_records_and_two_waits", &Options::default(), || {
        Session::with(1, |session| {
            warm(session);
            let (host, back) = (session.block(0, "pinned_host", 4096), session.block(0, "pinned_host", 4096));
            let (first, second) = (session.block(0, "device", 4096), session.block(0, "device", 4096));
            write(&host, &pattern(4096, 3)).unwrap();
            quiet(session);
            session.driver.control.hold(true);
            let up = copy(&host, &first, &[]);
            let within = copy(&first, &second, std::slice::from_ref(&up));
            let down = copy(&second, &back, &[up, within]);
            session.driver.control.hold(false);
            outcome(&down).unwrap();
            let expected = [
                ("cuMemcpyHtoDAsync_v2", 1),
                ("cuMemcpyDtoDAsync_v2", 1),
                ("cuMemcpyDtoHAsync_v2", 1),
                ("cuEventRecord", 3),
                // The last copy waits for the one before, which has waited for the first.
                ("cuStreamWaitEvent", 2),
            ];
            assert_eq!(session.calls(&BUT), counted(&expected));
            context_calls(session, 3);
            assert_eq!(read(&back).unwrap(), pattern(4096, 3));
        });
    });
}

#[test]
fn a_wait_that_an_earlier_one_covers_is_left_out() {
    process::run("calls::a_wait_that_an_earlier_one_covers_is_left_out", &Options::default(), || {
        Session::with(1, |session| {
            warm(session);
            let host: Vec<_> = (0..4).map(|_| session.block(0, "pinned_host", 64)).collect();
            let device: Vec<_> = (0..4).map(|_| session.block(0, "device", 64)).collect();
            let back: Vec<_> = (0..4).map(|_| session.block(0, "pinned_host", 64)).collect();
            quiet(session);
            session.driver.control.hold(true);
            let ups: Vec<Event> = host.iter().zip(&device).map(|(host, device)| copy(host, device, &[])).collect();
            // The last upload is behind the others on their stream, and so is what waits for it.
            let downs: Vec<Event> = device
                .iter()
                .zip(&back)
                .map(|(device, back)| copy(device, back, std::slice::from_ref(&ups[3])))
                .collect();
            let again: Vec<Event> = device
                .iter()
                .zip(&back)
                .zip(&ups)
                .map(|((device, back), up)| {
                    // Behind an earlier upload, and behind copies of the same stream.
                    copy(device, back, &[vec![up.clone()], downs.clone()].concat())
                })
                .collect();
            session.driver.control.hold(false);
            again.iter().for_each(|event| outcome(event).unwrap());
            let expected = [
                ("cuMemcpyHtoDAsync_v2", 4),
                ("cuMemcpyDtoHAsync_v2", 8),
                ("cuEventRecord", 12),
                ("cuStreamWaitEvent", 1),
            ];
            assert_eq!(session.calls(&[&BUT[..], &["cuEventCreate"]].concat()), counted(&expected));
        });
    });
}

#[test]
fn an_overlapping_copy_takes_few_calls_however_near_its_ends_are() {
    let name = "calls::an_overlapping_copy_takes_few_calls_however_near_its_ends_are";
    for without_pools in [false, true] {
        process::run(name, &Options { without_pools, ..Options::default() }, || {
            Session::with(1, |session| {
                const BYTES: usize = 9 << 20;
                let block = session.block(0, "device", BYTES + 5);
                for (from, to) in [(0, 5), (5, 0), (0, 0)] {
                    let sent = pattern(BYTES + 5, from + 2 * to);
                    write(&block, &sent).unwrap();
                    quiet(session);
                    // SAFETY: nothing else uses the block.
                    outcome(&unsafe { block.copy_range_to(from, &block, to, BYTES, &[]) }).unwrap();
                    let calls = ["cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoDAsync_v2"];
                    let calls = calls.map(|name| session.driver.control.calls(name));
                    assert_eq!(calls, [3, 3, 0]);
                    let mut moved = sent.clone();
                    moved.copy_within(from..from + BYTES, to);
                    assert!(read(&block).unwrap() == moved, "from {from} to {to}");
                }
            });
        });
    }
}
