//! Joins of the backend's own operations are waits between streams: what comes behind them is enqueued while they are
//! pending, and a donee's work behind the uses of what it was given.

#![allow(unsafe_code, reason = "copies are made by address")]

use purlin::program::ExecuteOptions;
use purlin::{Buffer, Error, Event, EventPromise, StatusCode, after_all, when_all};
use purlin_fakecuda::{Options, process};

use crate::programs::{arguments, data, load, momentum};
use crate::support::*;

const BYTES: usize = 4096;

#[test]
fn a_copy_behind_a_join_is_enqueued_while_the_join_is_pending() {
    let name = "joins::a_copy_behind_a_join_is_enqueued_while_the_join_is_pending";
    process::run(name, &Options { devices: 2, ..Options::default() }, || {
        Session::with(2, |session| {
            let host = [0, 1].map(|device| session.block(device, "pinned_host", BYTES));
            let on_gpu = [0, 1].map(|device| session.block(device, "device", BYTES));
            let (middle, back) = (session.block(0, "device", BYTES), session.block(0, "pinned_host", BYTES));
            host.iter().zip([1, 2]).for_each(|(block, seed)| write(block, &pattern(BYTES, seed)).unwrap());
            let held = Held::new(&session.driver);
            session.driver.control.reset_calls();
            let ups: Vec<Event> = host.iter().zip(&on_gpu).map(|(from, to)| copy(from, to, &[])).collect();
            let peer = copy(&on_gpu[1], &middle, &[when_all(&ups)]);
            // A join of joins, one of which ignores errors.
            let all = when_all(&[after_all(&[peer.clone(), ups[0].clone()]), ups[1].clone()]);
            let down = copy(&middle, &back, &[all]);
            // Nothing but the join's first part orders the two copies of pinned memory.
            let again = copy(&back, &on_gpu[0], &[when_all(&[down.clone(), ups[0].clone()])]);
            let ends = ["cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2"];
            session.called(&[(ends[0], 1), (ends[1], 3)], "the last of the chain are enqueued");
            held.keeps([&down]);
            drop(held);
            outcome(&again).unwrap();
            assert_eq!(read(&on_gpu[0]).unwrap(), pattern(BYTES, 2));
            assert_eq!(read(&back).unwrap(), pattern(BYTES, 2));
        });
    });
}

#[test]
fn operations_that_are_held_are_enqueued_together_with_what_joins_them() {
    let name = "joins::operations_that_are_held_are_enqueued_together_with_what_joins_them";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let host = [1, 2].map(|_| session.block(0, "pinned_host", BYTES));
            let on_gpu = [1, 2].map(|_| session.block(0, "device", BYTES));
            let back = session.block(0, "pinned_host", BYTES);
            write(&host[1], &pattern(BYTES, 3)).unwrap();
            let held = Held::new(&session.driver);
            session.driver.control.reset_calls();
            let promise = EventPromise::new(c"input");
            let ups = [0, 1].map(|at| copy(&host[at], &on_gpu[at], &[promise.event()]));
            let joins = [when_all(&ups), after_all(&ups)];
            let down = copy(&on_gpu[1], &back, &[when_all(&joins)]);
            // Nothing but the join orders the two copies of pinned memory.
            let again = copy(&back, &on_gpu[0], &[when_all(&[down, ups[0].clone()])]);
            let ends = ["cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2"];
            session.called(&ends.map(|entry| (entry, 0)), "the input is not there");
            promise.set_ready();
            session.called(&[(ends[0], 1), (ends[1], 3)], "enqueued, although nothing is over");
            drop(held);
            outcome(&again).unwrap();
            assert_eq!(read(&on_gpu[0]).unwrap(), pattern(BYTES, 3));
            assert_eq!(read(&back).unwrap(), pattern(BYTES, 3));
        });
    });
}

#[test]
fn a_failure_in_a_join_keeps_from_happening_what_comes_behind_it() {
    process::run("joins::a_failure_in_a_join_keeps_from_happening_what_comes_behind_it", &Options::default(), || {
        Session::with(1, |session| {
            let (host, other) = (session.block(0, "pinned_host", BYTES), session.block(0, "pinned_host", BYTES));
            let (device, back) = (session.block(0, "device", BYTES), session.block(0, "pinned_host", BYTES));
            let (before, after) = (pattern(BYTES, 1), pattern(BYTES, 2));
            write(&device, &before).unwrap();
            write(&host, &after).unwrap();
            for fails_first in [true, false] {
                let held = Held::new(&session.driver);
                let (failing, promise) = (EventPromise::new(c"failing"), EventPromise::new(c"input"));
                let (up, never) = (copy(&host, &other, &[]), copy(&host, &back, &[failing.event()]));
                if fails_first {
                    failing.set_error(Error::not_found("no such input"));
                }
                let joined = when_all(&[up, never]);
                let behind = copy(&host, &device, &[joined.clone(), promise.event()]);
                let ignoring = copy(&device, &back, &[after_all(&[joined]), behind.clone()]);
                failing.set_error(Error::not_found("no such input"));
                promise.set_ready();
                drop(held);
                for event in [behind, ignoring] {
                    assert_eq!(outcome(&event).unwrap_err().code(), StatusCode::NotFound, "first: {fails_first}");
                }
                assert_eq!(read(&device).unwrap(), before, "nothing was copied");
            }
        });
    });
}

#[test]
fn a_donee_is_enqueued_behind_the_uses_of_what_it_was_given() {
    process::run("joins::a_donee_is_enqueued_behind_the_uses_of_what_it_was_given", &Options::default(), || {
        Session::with(1, |session| {
            let device = &session.client.devices()[0];
            let array = |seed| {
                let values: Vec<u8> = pattern(BYTES, seed);
                let array = Buffer::from_slice(&values, &[BYTES as i64], &device.default_memory_space()).unwrap();
                outcome(&array.ready_event()).unwrap();
                array
            };
            let (old, new, back) = (array(1), array(2), session.block(0, "pinned_host", BYTES));
            let held = Held::new(&session.driver);
            session.driver.control.reset_calls();
            let hold = old.usage_hold().unwrap();
            let read_back = copy(hold.memory(), &back, &[]);
            hold.release_after_operation(&read_back);
            let copied = new.copy_into(&old).unwrap();
            let moved = ["cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuStreamWaitEvent"];
            session.called(&moved.map(|entry| (entry, 1)), "the copy waits on its stream");
            // The same by hand, with a hold of its own.
            let hold = copied.donate(c"by hand").unwrap();
            let free = hold.free_event();
            let memory = hold.confirm();
            let again = copy(&back, &memory, std::slice::from_ref(&free));
            session.called(&[("cuMemcpyHtoDAsync_v2", 1)], "the donee's copy waits on its stream");
            held.keeps([&read_back, &again]);
            drop(held);
            outcome(&again).unwrap();
            assert_eq!(read(&back).unwrap(), pattern(BYTES, 1));
            assert_eq!(read(&memory).unwrap(), pattern(BYTES, 1));
        });
    });
}

#[test]
fn steps_that_donate_to_one_another_are_enqueued_without_the_host() {
    process::run("joins::steps_that_donate_to_one_another_are_enqueued_without_the_host", &Options::default(), || {
        Session::with(1, |session| {
            const STEPS: u64 = 4;
            let device = &session.client.devices()[0];
            let program = load(momentum(), std::slice::from_ref(device)).unwrap();
            let [mut weights, mut velocity, gradient]: [Buffer; 3] = arguments(device);
            // Loaded, and all memory is there.
            let first = program.execute(&[&weights, &velocity, &gradient], &ExecuteOptions::default()).unwrap();
            outcome(&first.done).unwrap();
            (weights, velocity) = (first.outputs[0].clone(), first.outputs[1].clone());
            let held = Held::new(&session.driver);
            session.driver.control.reset_calls();
            for _ in 0..STEPS {
                // A copy reads what the step overwrites.
                let reader = weights.copy_to_memory_space(&device.memory_space("pinned_host").unwrap()).unwrap();
                let step = program.execute(&[&weights, &velocity, &gradient], &ExecuteOptions::default()).unwrap();
                held.keeps([&step.done, &reader.ready_event()]);
                (weights, velocity) = (step.outputs[0].clone(), step.outputs[1].clone());
            }
            // Each is two launches, or a graph of them.
            if session.driver.control.is_fake() {
                let [kernels, graphs] =
                    ["cuLaunchKernel", "cuGraphLaunch"].map(|entry| session.driver.control.calls(entry));
                assert_eq!(kernels / 2 + graphs, STEPS, "all steps are enqueued");
            }
            drop(held);
            let (mut expected, mut speed) = (data(0), data(1));
            for _ in 0..2 * (STEPS + 1) {
                for ((value, speed), slope) in expected.iter_mut().zip(&mut speed).zip(data(2)) {
                    *speed = 0.25 * *speed + slope;
                    *value -= 0.5 * *speed;
                }
            }
            assert_eq!(weights.to_vec::<f32>().unwrap(), expected);
        });
    });
}

/// The upload is ended by the thread to which the driver says no, after that has told what waits for it to be enqueued.
#[test]
fn what_waits_for_an_upload_that_is_refused_and_for_a_copy_on_its_way_keeps_no_thread_busy() {
    let name = "joins::what_waits_for_an_upload_that_is_refused_and_for_a_copy_on_its_way_keeps_no_thread_busy";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            /// Several parts, which tasks fill.
            const LARGE: usize = 8 << 20;
            let (ordinary, on_gpu) = (session.block(0, "unpinned_host", LARGE), session.block(0, "device", LARGE));
            let [from, to] = [1, 2].map(|_| session.block(0, "device", BYTES));
            let back = session.block(0, "pinned_host", BYTES);
            write(&from, &pattern(BYTES, 1)).unwrap();
            session.driver.control.set_faults("cuMemcpyHtoDAsync_v2:0:1");
            let (held, gate) = (Held::new(&session.driver), EventPromise::new(c"gate"));
            let within = copy(&from, &to, &[]);
            let up = copy(&ordinary, &on_gpu, &[gate.event()]);
            let fails = copy(&to, &back, &[when_all(&[within.clone(), up.clone()])]);
            let ignores =
                copy(&to, &back, &[after_all(&[within, up.clone()]), fails.clone()].map(|event| after_all(&[event])));
            gate.set_ready();
            let refused = outcome(&up).unwrap_err();
            drop(held);
            assert_eq!(outcome(&fails), Err(refused));
            outcome(&ignores).unwrap();
            assert_eq!(read(&back).unwrap(), pattern(BYTES, 1));
        });
    });
}
