//! Each defect, planted, is found with both places; the program without it is silent. Whatever the seed.

#![allow(unsafe_code, reason = "host memory is given by address")]

mod fixture;

use purlin_array::{DType, Shape};
use purlin_async::{EventPromise, when_all};
use purlin_base::StatusCode;
use purlin_device::{Buffer, RawBuffer};
use purlin_sim::{Defect, FREED_BYTE, FRESH_BYTE, Party, SimOptions};

use fixture::{Simulated, copy, host, read, seeded, simulated, write};

const SEEDS: std::ops::Range<u64> = 0..20;

/// Runs `program` with every seed; what was found must be `expected`.
fn finds(expected: &[Defect], program: impl Fn(&Simulated)) {
    for seed in SEEDS {
        let simulated = seeded(seed);
        program(&simulated);
        simulated.driver.run_until_idle();
        let found: Vec<Defect> = simulated.backend.reports().iter().map(|report| report.defect).collect();
        assert_eq!(found, expected, "seed {seed}: {}", simulated.reports().join("\n"));
    }
}

#[test]
fn two_writes_without_an_event_are_found() {
    finds(&[Defect::UnorderedWrites], |simulated| {
        let buffer = simulated.allocate(64);
        let _first = write(&buffer, 1, &[]);
        let _second = write(&buffer.slice(60, 4).unwrap(), 2, &[]);
    });
}

#[test]
fn a_read_that_does_not_wait_for_the_write_is_found() {
    finds(&[Defect::UnorderedReadAndWrite], |simulated| {
        let buffer = simulated.filled(64, 1);
        let _written = write(&buffer, 2, &[]);
        let _read = read(&buffer, &[]);
    });
}

#[test]
fn a_write_that_does_not_wait_for_the_reader_is_found() {
    finds(&[Defect::UnorderedReadAndWrite], |simulated| {
        let (buffer, other) = (simulated.filled(64, 1), simulated.allocate(64));
        let _read = copy(&buffer, &other, &[]);
        let _written = write(&buffer, 2, &[]);
    });
}

#[test]
fn a_report_names_both_places() {
    let simulated = seeded(1);
    let buffer = simulated.filled(64, 1);
    let asked_ns = simulated.backend.now_ns();
    let _written = write(&buffer.slice(0, 32).unwrap(), 2, &[]);
    let _read = read(&buffer.slice(16, 48).unwrap(), &[]);
    let [report] = &simulated.backend.reports()[..] else { panic!("{:?}", simulated.reports()) };
    assert_eq!((report.address, report.size_bytes), (buffer.device_pointer().unwrap() + 16, 16));
    let party = |number, what: &str, writes| Party::Copy { number, what: what.to_owned(), writes, asked_ns };
    assert_eq!(report.earlier, party(1, "copy of 32 bytes from host to sim:0/device", true));
    assert_eq!(report.later, party(2, "copy of 48 bytes from sim:0/device to host", false));
    let text = report.to_string();
    for part in ["unordered read and write of 16 bytes", "copy #1", "copy #2", "no event orders"] {
        assert!(text.contains(part), "'{part}' is missing in: {text}");
    }
}

#[test]
fn events_order_whatever_way_they_take() {
    finds(&[], |simulated| {
        let (buffer, other) = (simulated.filled(64, 1), simulated.filled(64, 1));
        let read_first = read(&buffer, &[]).1;
        // Directly.
        let written = write(&buffer, 2, &[read_first]);
        // Through a copy of something else.
        let elsewhere = write(&other, 3, &[written]);
        let (_, read_again) = read(&buffer, std::slice::from_ref(&elsewhere));
        // Through a join.
        let joined = when_all(&[read_again, elsewhere]);
        let written = write(&buffer, 4, &[joined]);
        // Through a promise that a waiter sets.
        let promise = EventPromise::new(c"passed on");
        let passed_on = promise.event();
        written.on_ready(move |_| _ = promise.set_ready());
        let written = write(&buffer, 5, &[passed_on]);
        // Asked for by a waiter.
        let later = buffer.clone();
        written.on_ready(move |_| drop(write(&later, 6, &[])));
        simulated.driver.run_until_idle();
        // Seen by the caller.
        let _ = write(&buffer, 7, &[]);
    });
}

#[test]
fn readers_need_no_order_among_themselves() {
    finds(&[], |simulated| {
        let buffer = simulated.filled(64, 1);
        let readers = [read(&buffer, &[]).1, read(&buffer, &[]).1, copy(&buffer, &simulated.allocate(64), &[])];
        let _ = write(&buffer, 2, &readers);
    });
}

#[test]
fn a_gate_that_another_copy_opens_orders() {
    finds(&[], |simulated| {
        let buffer = simulated.filled(64, 1);
        let gate = EventPromise::new(c"gate");
        let _ = read(&buffer, &[gate.event()]);
        write(&buffer, 2, &[]).on_ready(move |_| _ = gate.set_ready());
    });
}

#[test]
fn half_an_order_is_none() {
    // The second reader is not waited for.
    finds(&[Defect::UnorderedReadAndWrite], |simulated| {
        let buffer = simulated.filled(64, 1);
        let (waited_for, _forgotten) = (read(&buffer, &[]).1, read(&buffer, &[]).1);
        let _ = write(&buffer, 2, &[waited_for]);
    });
}

#[test]
fn host_memory_is_watched_too() {
    finds(&[Defect::UnorderedReadAndWrite], |simulated| {
        let (from, to) = (simulated.filled(64, 1), simulated.allocate(64));
        let bytes = host(64, 0);
        // SAFETY: the bytes live for ever; the disorder is what is tested, on one thread.
        let _events = unsafe {
            [from.copy_to_host(bytes.as_mut_ptr(), 0, 64, &[]), to.copy_from_host(bytes.as_ptr(), 0, 64, &[])]
        };
    });
}

#[test]
fn unwritten_bytes_that_reach_the_host_are_found() {
    finds(&[Defect::ReadBeforeWrite], |simulated| {
        let buffer = simulated.allocate(64);
        let written = write(&buffer.slice(0, 63).unwrap(), 1, &[]);
        let (bytes, _) = read(&buffer, &[written]);
        simulated.driver.run_until_idle();
        assert_eq!((bytes[62], bytes[63]), (1, FRESH_BYTE));
        let [report] = &simulated.backend.reports()[..] else { panic!("{:?}", simulated.reports()) };
        assert_eq!(report.size_bytes, 1);
        assert!(matches!(report.earlier, Party::Allocation { number: 0, .. }), "{report}");
    });
}

#[test]
fn unwritten_bytes_are_followed_through_copies() {
    finds(&[Defect::ReadBeforeWrite], |simulated| {
        let chain = [simulated.allocate(64), simulated.allocate(64), simulated.filled(64, 1)];
        let there = copy(&chain[0], &chain[1], &[]);
        let further = copy(&chain[1], &chain[2], &[there]);
        let _ = read(&chain[2], &[further]);
    });
    // Those that are overwritten or left where they are do no harm.
    finds(&[], |simulated| {
        let chain = [simulated.allocate(64), simulated.filled(64, 1)];
        let there = copy(&chain[0], &chain[1], &[]);
        let written = write(&chain[1], 2, &[there]);
        let _ = read(&chain[1], &[written]);
    });
}

#[test]
fn memory_used_again_is_unwritten_again() {
    finds(&[Defect::ReadBeforeWrite], |simulated| {
        let first = simulated.filled(64, 7);
        let address = first.device_pointer().unwrap();
        drop(first);
        let second = simulated.allocate(64);
        assert_eq!(second.device_pointer().unwrap(), address, "otherwise this proves nothing");
        assert_eq!(simulated.read(&second), [FRESH_BYTE; 64]);
    });
}

#[test]
fn memory_that_the_host_reaches_may_be_written_by_it() {
    finds(&[], |simulated| {
        let pinned = simulated.client.devices()[0].memory_spaces()[1].clone();
        let buffer = RawBuffer::allocate(&pinned, 64).unwrap();
        // SAFETY: the buffer is as long, and nothing else uses it.
        unsafe { buffer.host_pointer().expect("the host reaches it").as_ptr().write_bytes(3, 64) };
        assert_eq!(simulated.read(&buffer), [3; 64]);
    });
}

#[test]
fn a_host_end_in_freed_memory_is_found() {
    let pinned =
        |simulated: &Simulated| RawBuffer::allocate(&simulated.client.devices()[0].memory_spaces()[1], 64).unwrap();
    // Freed while the copy waits for its turn.
    finds(&[Defect::FreedInUse, Defect::UseAfterFree], |simulated| {
        let (buffer, staging) = (simulated.filled(64, 1), pinned(simulated));
        // SAFETY: the arena keeps the memory mapped; that it is given back too early is what is tested.
        let _event = unsafe { buffer.copy_from_host(staging.host_pointer().unwrap().as_ptr(), 0, 64, &[]) };
        drop(staging);
        assert_eq!(simulated.read(&buffer), [FREED_BYTE; 64]);
    });
    // Kept until the event.
    finds(&[], |simulated| {
        let (buffer, staging) = (simulated.filled(64, 1), pinned(simulated));
        // SAFETY: the staging buffer lives until the event.
        let event = unsafe { buffer.copy_from_host(staging.host_pointer().unwrap().as_ptr(), 0, 64, &[]) };
        staging.retain_until(&event);
    });
}

/// An array of 64 bytes of ones.
fn array(simulated: &Simulated) -> Buffer {
    Buffer::from_slice(&[1_u8; 64], &[64], &simulated.space).unwrap()
}

#[test]
fn a_donee_that_does_not_wait_for_the_readers_is_found() {
    finds(&[Defect::UnorderedReadAndWrite], |simulated| {
        let old = array(simulated);
        let copied = old.copy_to_memory_space(&simulated.space).unwrap();
        let memory = old.donate(c"impatient").unwrap().confirm();
        let _ = write(&memory, 2, &[]);
        drop(copied);
    });
    finds(&[], |simulated| {
        let old = array(simulated);
        let copied = old.copy_to_memory_space(&simulated.space).unwrap();
        let donation = old.donate(c"patient").unwrap();
        let free = donation.free_event();
        let _ = write(&donation.confirm(), 2, &[free]);
        drop(copied);
    });
}

#[test]
fn a_write_by_the_donor_is_found() {
    finds(&[Defect::UnorderedWrites], |simulated| {
        let old = array(simulated);
        // Kept past the donation, and written through, by a raw alias.
        let kept = old.raw_alias().unwrap();
        let donation = old.donate(c"donee").unwrap();
        let free = donation.free_event();
        let memory = donation.confirm();
        let _ = write(&memory, 2, &[free]);
        let _ = write(&kept, 3, &[]);
    });
}

#[test]
fn arrays_in_all_their_ways_are_silent() {
    finds(&[], |simulated| {
        let other = simulated.client.devices()[1].default_memory_space();
        let first = array(simulated);
        let second = first.copy_to_memory_space(&other).unwrap();
        let third = second.copy_to_memory_space(&simulated.space).unwrap();
        let fourth = third.copy_into(&first).unwrap();
        let cast = fourth.bitcast(&Shape::new(DType::U8, &[8, 8]).unwrap(), None).unwrap();
        simulated.driver.run_until_idle();
        assert_eq!(cast.to_vec::<u8>().unwrap(), [1; 64]);
    });
}

#[test]
fn what_is_objected_to_can_fail() {
    let simulated = simulated(SimOptions { fail_on_report: true, ..Default::default() });
    let buffer = simulated.filled(64, 1);
    let first = write(&buffer, 2, &[]);
    let second = write(&buffer, 3, &[]);
    let behind = read(&buffer, &[first.clone(), second.clone()]).1;
    simulated.driver.run_until_idle();
    assert_eq!(first.wait(), Ok(()));
    let error = second.wait().unwrap_err();
    assert_eq!(error.code(), StatusCode::FailedPrecondition);
    assert!(error.message().contains("copy #1") && error.message().contains("copy #2"), "{error}");
    assert_eq!(behind.wait().unwrap_err(), error, "what waits for it fails like it");
    assert_eq!(simulated.read(&buffer), [2; 64]);

    let unwritten = read(&simulated.allocate(8), &[]).1;
    simulated.driver.run_until_idle();
    assert_eq!(unwritten.wait().unwrap_err().code(), StatusCode::FailedPrecondition);
    assert_eq!(simulated.reports().len(), 2);
}
