//! Holds against one another, against donation and against the end. The memory is a cell that loom watches: the owner
//! of a hold touches it as that hold allows.

#![allow(unsafe_code, reason = "memory that loom watches is reached by address")]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::state::{BufferState, Ending, Patience, Taken};
use purlin_async::event::{Event, EventPromise, after_all};
use purlin_base::label::Label;
use purlin_base::status::{Error, SourceLocation};
use purlin_base::sync::{UnsafeCell, explore};

/// Memory of one word.
struct Word(UnsafeCell<u32>);

// SAFETY: what the models are about: holds order readers and writers.
unsafe impl Sync for Word {}

type Memory = Arc<Word>;
type Buffer = Arc<BufferState<Memory>>;

fn buffer() -> (Buffer, Memory) {
    let memory = Arc::new(Word(UnsafeCell::new(1)));
    (Arc::new(BufferState::new(Some(memory.clone()))), memory)
}

/// Reads while it holds; returns the result.
fn read(buffer: &Buffer, patience: Patience<'_>) -> Result<u32, Error> {
    let memory = buffer.hold(patience)?.expect("it has memory");
    // SAFETY: what the model checks: no thread writes while there is a usage hold.
    let word = memory.0.with(|word| unsafe { *word });
    buffer.let_go(Event::ready());
    Ok(word)
}

/// Writes while it has the memory for itself; whether it got it.
fn write(buffer: &Buffer, confirm: bool) -> bool {
    let Ok(taken) =
        buffer.donate(Ending::donated(Label::default(), SourceLocation::UNKNOWN), Patience::Wait(&|| Ok(())))
    else {
        return false;
    };
    // SAFETY: what the model checks: no other thread has a hold while there is a donation hold.
    taken.memory.0.with_mut(|word| unsafe { *word += 1 });
    let given_back = (!confirm).then_some(taken.memory);
    drop(buffer.end_donation(given_back));
    true
}

fn delete(buffer: &Buffer) {
    drop(buffer.end(Ending::deleted(SourceLocation::UNKNOWN)));
}

#[test]
fn usage_and_donation_exclude_one_another() {
    explore("usage against donation", 3, || {
        let (buffer, _memory) = buffer();
        let other = buffer.clone();
        let donor = thread::spawn(move || assert!(write(&other, true)));
        match read(&buffer, Patience::Wait(&|| Ok(()))) {
            Ok(word) => assert_eq!(word, 1),
            Err(error) => assert!(error.message().contains("deleted or donated"), "{error}"),
        }
        donor.join().unwrap();
        assert!(buffer.is_gone());
    });
}

#[test]
fn a_donation_that_is_given_back_wakes_who_waits() {
    explore("usage against a donation given back", 3, || {
        let (buffer, _memory) = buffer();
        let other = buffer.clone();
        let donor = thread::spawn(move || assert!(write(&other, false)));
        assert!((1..=2).contains(&read(&buffer, Patience::Wait(&|| Ok(()))).unwrap()));
        donor.join().unwrap();
        assert_eq!((buffer.is_gone(), buffer.counts()), (false, (0, 0)));
    });
}

#[test]
fn of_two_donations_one_wins() {
    explore("donation against donation", 3, || {
        let (buffer, memory) = buffer();
        let other = buffer.clone();
        let donor = thread::spawn(move || write(&other, true));
        let won = [write(&buffer, true), donor.join().unwrap()];
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
        // SAFETY: both threads are through.
        assert_eq!(memory.0.with(|word| unsafe { *word }), 2);
        drop(buffer);
        assert_eq!(Arc::strong_count(&memory), 1, "nobody else has the memory");
    });
}

#[test]
fn an_impatient_user_and_a_donor_never_both_have_the_memory() {
    explore("impatient usage against donation, twice", 2, || {
        let (buffer, _memory) = buffer();
        let other = buffer.clone();
        let donor = thread::spawn(move || _ = (write(&other, false), write(&other, true)));
        let _ = read(&buffer, Patience::Fail);
        donor.join().unwrap();
        assert!(buffer.is_gone());
    });
}

#[test]
fn a_pending_read_keeps_what_is_deleted() {
    explore("delete against a pending read", 3, || {
        let (buffer, memory) = buffer();
        let other = buffer.clone();
        let deleter = thread::spawn(move || delete(&other));
        if let Ok(held) = buffer.hold(Patience::Wait(&|| Ok(()))) {
            let held = held.expect("it has memory");
            let promise = EventPromise::new(c"read");
            buffer.let_go(promise.event());
            // SAFETY: no thread writes.
            assert_eq!(held.0.with(|word| unsafe { *word }), 1);
            promise.set_ready();
        }
        deleter.join().unwrap();
        assert!(buffer.is_gone());
        assert_eq!(Arc::strong_count(&memory), 1, "the last to use it was the last to have it");
    });
}

#[test]
fn a_delete_under_a_donation_takes_effect_once() {
    explore("delete against a donation given back", 3, || {
        let (buffer, memory) = buffer();
        let other = buffer.clone();
        let donor = thread::spawn(move || _ = write(&other, false));
        delete(&buffer);
        donor.join().unwrap();
        assert!(buffer.is_gone());
        assert_eq!(Arc::strong_count(&memory), 1);
    });
}

#[test]
fn who_gets_a_released_buffer_waits_for_the_last_use() {
    explore("release against two usage holds", 2, || {
        let (buffer, _memory) = buffer();
        let users = [false, true].map(|is_long| {
            let (buffer, held) =
                (buffer.clone(), buffer.hold(Patience::Wait(&|| Ok(()))).unwrap().expect("it has memory"));
            thread::spawn(move || {
                let promise = EventPromise::new(c"use");
                if is_long {
                    // What it has started continues after its hold.
                    buffer.let_go(promise.event());
                }
                // SAFETY: what the model checks: no thread writes while there is a hold, or a use that one has left.
                assert_eq!(held.0.with(|word| unsafe { *word }), 1);
                promise.set_ready();
                if !is_long {
                    buffer.let_go(Event::ready());
                }
            })
        });
        let Taken { memory, uses } = buffer.end(Ending::released(SourceLocation::UNKNOWN)).expect("it is there");
        let free = after_all(&uses);
        // SAFETY: what the model checks: all of them are done.
        free.on_ready(move |_| memory.0.with_mut(|word| unsafe { *word += 1 }));
        for user in users {
            user.join().unwrap();
        }
        assert!(free.is_ready() && buffer.is_gone());
    });
}

#[test]
fn the_last_reference_may_go_on_a_worker() {
    explore("the last reference on a worker", 3, || {
        let (buffer, memory) = buffer();
        let used = Arc::new(AtomicUsize::new(0));
        let (worker_buffer, worker_used) = (buffer.clone(), used.clone());
        // What a worker does for a copy: it holds, it works, it is the last to go.
        let worker = thread::spawn(move || {
            if read(&worker_buffer, Patience::Wait(&|| Ok(()))).is_ok() {
                worker_used.fetch_add(1, Ordering::Relaxed);
            }
        });
        drop(buffer);
        worker.join().unwrap();
        assert_eq!((used.load(Ordering::Relaxed), Arc::strong_count(&memory)), (1, 1));
    });
}
