//! What conformance cannot see.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use purlin_array::DType;
use purlin_async::stalls;
use purlin_base::status::{SourceLocation, StatusOr, called_from};

use super::*;
use crate::LIMIT;
use crate::backend::NullBackend;
use crate::client::{Client, ClientOptions};
use crate::memory::AllocOptions;

#[test]
fn a_buffer_is_small() {
    // Bookkeeping of a live buffer: this, the block, each with its counts in a piece of the slab, and 8 bytes in the
    // arena. The crate's own bounds are narrower.
    assert!(size_of::<Array>() <= 104, "{}", size_of::<Array>());
    assert!(size_of::<crate::memory::MemoryBlock>() <= 96, "{}", size_of::<crate::memory::MemoryBlock>());
}

/// Of one client.
fn buffers() -> [Buffer; 2] {
    let client = Client::new(&ClientOptions::default(), Arc::new(NullBackend::new())).unwrap();
    let (shape, space) = (Shape::new(DType::U8, &[4]).unwrap(), client.devices()[0].default_memory_space());
    std::array::from_fn(|_| Buffer::uninitialized(&shape, None, &space, &AllocOptions::default()).unwrap())
}

type End = fn(&Buffer);

/// The reference that keeps the instance is the memory's while the array has that, and else the array's own.
#[test]
fn an_array_counts_a_reference_to_its_space_while_it_has_no_memory() {
    let client = Client::new(&ClientOptions::default(), Arc::new(NullBackend::new())).unwrap();
    let (shape, space) = (Shape::new(DType::U8, &[4]).unwrap(), client.devices()[0].default_memory_space());
    let instance = space.shared_instance();
    let counted = || PinnedArc::strong_count(&instance);
    let make = || Buffer::uninitialized(&shape, None, &space, &AllocOptions::default()).unwrap();
    let donate = |buffer: &Buffer| buffer.donate(c"a kernel").unwrap();
    let before = counted();
    let states: [(&str, &dyn Fn() -> Buffer); 9] = [
        ("with its memory", &make),
        ("without any", &|| Buffer::error(Error::internal("lost"), &shape, &space)),
        ("deleted", &|| {
            let buffer = make();
            buffer.delete();
            buffer.delete();
            buffer
        }),
        ("released", &|| {
            let buffer = make();
            drop(buffer.release());
            assert!(buffer.release().is_none());
            buffer
        }),
        ("donated", &|| {
            let buffer = make();
            drop(donate(&buffer).confirm());
            buffer
        }),
        ("given back", &|| {
            let buffer = make();
            drop(donate(&buffer));
            drop(donate(&buffer));
            buffer
        }),
        ("deleted while it was being donated, and given back", &|| {
            let buffer = make();
            let hold = donate(&buffer);
            buffer.delete();
            drop(hold);
            assert!(buffer.is_deleted());
            buffer
        }),
        ("another one since", &|| make().bitcast(&Shape::new(DType::U32, &[1]).unwrap(), None).unwrap()),
        ("in a list with its donor", &|| {
            let donor = make();
            drop(donor.donate_after(&Event::ready()).unwrap());
            donor
        }),
    ];
    for (state, make) in states {
        let buffer = make();
        assert_eq!(counted() - before, 1, "{state}");
        assert_eq!(buffer.memory_space(), space, "{state}");
        drop(buffer);
        assert_eq!(counted(), before, "{state}");
    }
    let (buffer, hold) = (make(), make());
    let (deleted, taken) = (hold.clone(), donate(&hold));
    drop((deleted, hold));
    // Its own, that of the memory, and `buffer`'s.
    assert_eq!(counted() - before, 3, "being donated");
    drop((taken, buffer));
    assert_eq!(counted(), before);
}

#[test]
fn the_end_of_a_buffer_is_known_by_the_place_that_is_stated_around_it() {
    let layer = SourceLocation::from_static(c"model/layer.cc", 12);
    let ends: [(&str, End); 5] = [
        ("deleted", Buffer::delete),
        ("released", |buffer| drop(buffer.release().unwrap())),
        ("donated", |buffer| drop(buffer.donate(c"a kernel").unwrap().confirm())),
        ("bitcast", |buffer| drop(buffer.bitcast(&Shape::new(DType::U32, &[1]).unwrap(), None).unwrap())),
        ("donated after an event", |buffer| drop(buffer.donate_after(&Event::ready()).unwrap())),
    ];
    for (how, end) in ends {
        let [here, there] = buffers();
        end(&here);
        called_from(layer, || end(&there));
        let [here, there] = [here, there].map(|buffer| buffer.usage_hold().unwrap_err().message().to_owned());
        assert!(there.contains("model/layer.cc:12"), "{how}: {there}");
        assert!(!here.contains("model/layer.cc"), "{how}: {here}");
    }
}

#[test]
fn what_is_made_of_a_buffer_is_known_by_the_place_that_is_stated_around_it() {
    let layer = SourceLocation::from_static(c"model/layer.cc", 34);
    let [source, target] = buffers();
    let copy = called_from(layer, || source.copy_to_memory_space(&source.memory_space())).unwrap();
    let report = source.memory_space().report().to_string();
    assert!(report.contains("'copy' from model/layer.cc:34"), "{report}");
    drop(copy);
    let _copy = called_from(layer, || source.copy_into(&target)).unwrap();
    let why = target.usage_hold().unwrap_err();
    assert!(why.message().contains("model/layer.cc:34"), "{why}");
}

#[test]
fn without_a_stated_place_it_is_the_line_that_calls() {
    let [source, target] = buffers();
    let (_copy, line) = (source.copy_into(&target).unwrap(), line!());
    let why = target.usage_hold().unwrap_err();
    assert!(why.message().contains(&format!("{}:{line}", file!())), "{why}");
}

/// A donation that stands in place, and one that does not because its line is beyond three bytes.
#[test]
fn a_donation_is_known_by_its_place_and_may_be_given_back_or_overtaken() {
    for line in [56, (1 << 24) + 56] {
        let place = SourceLocation::from_static(c"model/layer.cc", line);
        let [kept, deleted] = buffers();
        let said = format!("donated by 'step' at model/layer.cc:{line}");
        for buffer in [&kept, &deleted] {
            let hold = called_from(place, || buffer.donate(c"step")).unwrap();
            assert!(hold.is_ready() && !buffer.is_deleted() && buffer.has_memory());
            let why = [buffer.try_usage_hold().unwrap_err(), buffer.try_donate(c"other").unwrap_err()];
            why.iter().for_each(|why| assert!(why.message().contains(&said), "{why}"));
            assert!(buffer.release().is_none() && !buffer.is_deleted(), "a buffer under donation cannot be released");
            drop(hold);
            assert_eq!(buffer.usage_hold().unwrap().memory().size_bytes(), 4);
        }
        let hold = deleted.donate(c"step").unwrap();
        deleted.delete();
        assert!(deleted.is_deleted() && hold.memory().size_bytes() == 4);
        drop(hold);
        let why = deleted.usage_hold().unwrap_err();
        assert!(why.message().contains("It was deleted at"), "{why}");

        drop(called_from(place, || kept.donate(c"step")).unwrap().confirm());
        kept.delete();
        assert_eq!((kept.hold_counts(), kept.has_memory()), ((0, 0), true));
        let why = [kept.usage_hold().unwrap_err(), kept.donate(c"other").unwrap_err()];
        why.iter().for_each(|why| assert!(why.message().contains(&said), "{why}"));
        assert_eq!(kept.memory_space().stats().bytes_in_use, 0, "no reference is left to the memory of either");
    }
}

#[test]
fn a_thread_that_waits_for_a_donation_gets_the_buffer_that_is_given_back() {
    let [buffer, _other] = buffers();
    let hold = buffer.donate(c"step").unwrap();
    let waiter = buffer.clone();
    let waits = std::thread::spawn(move || waiter.usage_hold().map(|hold| hold.memory().size_bytes()));
    drop(hold);
    assert_eq!(waits.join().unwrap().unwrap(), 4);
}

/// Two copies into one another's sources would wait for each other for ever if each had its own source first, or its
/// own target.
#[test]
fn a_copy_takes_its_buffers_in_one_order_whichever_of_them_is_the_source() {
    for upwards in [true, false] {
        let mut pair = buffers();
        pair.sort_by_key(Buffer::identity);
        let [first, second] = &pair;
        let in_the_way = first.donate(c"step").unwrap();
        let (source, target) = if upwards { (first.clone(), second.clone()) } else { (second.clone(), first.clone()) };
        let copies = move || source.copy_into(&target).map(drop);
        let copying = thread::Builder::new().name("copies".to_owned()).spawn(copies).unwrap();
        let begun = Instant::now();
        loop {
            let report = stalls(Duration::ZERO);
            if report.threads.iter().any(|thread| thread.name == "copies") {
                break;
            }
            assert!(begun.elapsed() < LIMIT, "the copy does not wait for the donation:\n{report}");
            thread::yield_now();
        }
        let free = second.try_donate(c"test").expect("a copy that waits for one buffer has the other one already");
        drop(free);
        drop(in_the_way);
        copying.join().unwrap().unwrap();
    }
}

#[test]
fn what_is_asked_for_without_waiting_does_not_wait() {
    let [used, donated] = buffers();
    let (in_use, donation) = (used.usage_hold().unwrap(), donated.donate(c"step").unwrap());
    type Ask = fn(&Buffer) -> StatusOr<()>;
    let asks: [(&str, Ask); 4] = [
        ("try_donate", |buffer| buffer.try_donate(c"other").map(drop)),
        ("borrowed_donation_hold", |buffer| buffer.borrowed_donation_hold(c"other", false).map(drop)),
        ("try_usage_hold", |buffer| buffer.try_usage_hold().map(drop)),
        ("borrowed_usage_hold", |buffer| buffer.borrowed_usage_hold(false).map(drop)),
    ];
    for (what, ask) in asks {
        for (buffer, why) in [(&used, "1 usage holds are in the way"), (&donated, "being donated by 'step'")] {
            let ((tells, told), asked) = (mpsc::channel(), buffer.clone());
            thread::spawn(move || _ = tells.send(ask(&asked)));
            let answer = told.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("{what} waits, although {why}"));
            match answer {
                Ok(()) => assert!(what.contains("usage") && buffer.hold_counts().0 == 1, "{what}, although {why}"),
                Err(error) => assert!(error.message().contains(why), "{what}: {error}"),
            }
        }
    }
    drop((in_use, donation));
}
