//! Bytes through host memory that is lent piece by piece.

#![allow(unsafe_code, reason = "device memory is read and written by address")]

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use purlin_array::{DType, Shape};
use purlin_async::{CancelSource, CancelToken, Event, EventPromise, UserContext, UserContextScope};
use purlin_base::{Error, StatusCode, StatusOr};
use purlin_device::{
    AllocOptions, Buffer, MemorySpace, RawBuffer, StagedPiece, StagingCopier, StagingOptions, StagingPool, StagingSink,
};

use crate::fixture::{Fixture, LARGE_BYTES, assert_cycle, assert_error, filled, on_threads, pattern, read};

/// Memory of device 0 that the host reaches.
fn host_space(fixture: &Fixture) -> MemorySpace {
    let spaces = fixture.device(0).memory_spaces();
    spaces.iter().find(|space| space.kind() == "pinned_host").unwrap_or(&spaces[0]).clone()
}

fn pool(fixture: &Fixture, lease_bytes: usize, lease_count: usize) -> StagingPool {
    let options = StagingOptions { lease_bytes, lease_count, ..Default::default() };
    StagingPool::new(&host_space(fixture), &options).unwrap()
}

/// What a read was called with.
struct PieceLog(Receiver<StatusOr<StagedPiece>>);

impl PieceLog {
    fn of(copier: &StagingCopier, source: &RawBuffer, dependencies: &[Event]) -> (Event, Self) {
        let (sender, receiver) = channel();
        // SAFETY: no case writes its source while it is read.
        let event = unsafe { copier.read(source, dependencies, move |piece| sender.send(piece).unwrap()) };
        (event, Self(receiver))
    }

    /// The bytes of all pieces, once the callback is gone; each piece begins where the one before ended.
    fn all(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut has_ended = false;
        for piece in self.0 {
            let piece = piece.unwrap();
            assert!(!has_ended, "nothing comes after the last piece");
            assert_eq!((piece.offset_bytes(), piece.bytes().len()), (bytes.len(), piece.size_bytes()));
            bytes.extend_from_slice(piece.bytes());
            has_ended = piece.is_last();
        }
        assert!(has_ended || bytes.is_empty());
        bytes
    }

    /// The one error, and nothing else.
    #[track_caller]
    fn error(self) -> Error {
        let mut told: Vec<_> = self.0.into_iter().collect();
        assert_eq!(told.len(), 1, "{told:?}");
        told.remove(0).unwrap_err()
    }
}

pub(crate) fn leases_are_lent_and_come_back(fixture: &Fixture) {
    let pool = pool(fixture, 100, 2);
    let (mut one, two) = (pool.acquire(&CancelToken::default()).unwrap(), pool.try_acquire().unwrap());
    assert_error(&pool.try_acquire().unwrap_err(), StatusCode::Unavailable, &["staging", "0 of 2"]);
    assert_eq!((pool.free_count(), pool.lease_count(), pool.lease_bytes()), (0, 2, 100));
    one.bytes_mut().fill(7);
    assert!(two.bytes() == [0; 100] && one.bytes() == [7; 100], "leases do not overlap");

    let (sender, receiver) = channel();
    pool.acquire_then(&CancelToken::default(), move |lease| sender.send(lease).unwrap());
    let gone = CancelSource::new(c"gone");
    let cancelled = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&cancelled);
    pool.acquire_then(&gone.token(), move |lease| *seen.lock().unwrap() = Some(lease.map(|_| ())));
    gone.cancel(Error::aborted("enough"));
    assert_error(&cancelled.lock().unwrap().take().unwrap().unwrap_err(), StatusCode::Cancelled, &["enough"]);
    assert!(receiver.try_recv().is_err(), "there is none yet");
    drop(one);
    let one = receiver.recv().unwrap().unwrap();
    assert_eq!(one.memory().size_bytes(), 100);
    drop((one, two));
    assert_eq!(pool.free_count(), 2);
    assert_eq!(host_space(fixture).stats().num_allocs, 1, "all leases are one allocation");
}

pub(crate) fn leases_of_odd_sizes_are_aligned_and_do_not_touch(fixture: &Fixture) {
    let alignment_bytes = host_space(fixture).alignment_bytes();
    for lease_bytes in [1, 3, 63, 65, 100, 4097] {
        let pool = pool(fixture, lease_bytes, 5);
        for _round in 0..2 {
            let mut leases: Vec<_> = (0..5).map(|_| pool.try_acquire().unwrap()).collect();
            for (number, lease) in (1_u8..).zip(&mut leases) {
                lease.bytes_mut().fill(number);
            }
            for (number, lease) in (1_u8..).zip(&leases) {
                assert!(lease.bytes() == vec![number; lease_bytes], "lease {number} of {lease_bytes} bytes");
                assert_eq!(lease.bytes().as_ptr().addr() % alignment_bytes, 0, "lease {number} of {lease_bytes} bytes");
                assert_eq!(lease.memory().size_bytes(), lease_bytes);
            }
        }
    }
}

pub(crate) fn a_pool_of_nothing_is_refused(fixture: &Fixture) {
    for (lease_bytes, lease_count) in [(0, 4), (4, 0), (usize::MAX, 1), (1 << 40, 1 << 40)] {
        let options = StagingOptions { lease_bytes, lease_count, ..Default::default() };
        let error = StagingPool::new(&host_space(fixture), &options).unwrap_err();
        assert_error(&error, StatusCode::InvalidArgument, &[&format!("{lease_count} leases of {lease_bytes} bytes")]);
    }
    let options = StagingOptions { lease_bytes: 1 << 40, lease_count: 1 << 20, ..Default::default() };
    assert_error(&StagingPool::new(&host_space(fixture), &options).unwrap_err(), StatusCode::ResourceExhausted, &[]);
}

pub(crate) fn pieces_come_in_order_and_whole(fixture: &Fixture) {
    for (size_bytes, lease_bytes) in [(1000, 100), (1001, 100), (99, 100), (100, 100), (LARGE_BYTES, 70_000)] {
        let bytes = pattern(size_bytes, 1);
        let source = fixture.filled(&bytes);
        let copier = StagingCopier::new(&pool(fixture, lease_bytes, 3));
        let received = Arc::new(Mutex::new(Vec::new()));
        let out = Arc::clone(&received);
        let on_piece = move |piece: StatusOr<StagedPiece>| {
            let (piece, mut out) = (piece.unwrap(), out.lock().unwrap());
            assert_eq!(
                (piece.offset_bytes(), piece.is_last()),
                (out.len(), out.len() + piece.size_bytes() == size_bytes)
            );
            out.extend_from_slice(piece.bytes());
        };
        // SAFETY: nothing writes the source.
        unsafe { copier.read(&source, &[], on_piece) }.wait().unwrap();
        assert_eq!(Arc::try_unwrap(received).expect("the callback is gone").into_inner().unwrap(), bytes);
    }
}

pub(crate) fn reads_are_told_in_the_order_in_which_they_were_asked_for(fixture: &Fixture) {
    let (copier, order) = (StagingCopier::new(&pool(fixture, 64, 8)), Arc::new(Mutex::new(Vec::new())));
    let source = fixture.filled(&pattern(128, 1));
    let gates: Vec<_> = (0..3).map(|_| EventPromise::new(c"gate")).collect();
    let ends: Vec<Event> = gates
        .iter()
        .enumerate()
        .map(|(index, gate)| {
            let order = Arc::clone(&order);
            let on_piece =
                move |piece: StatusOr<StagedPiece>| order.lock().unwrap().push((index, piece.unwrap().offset_bytes()));
            // SAFETY: nothing writes the source.
            unsafe { copier.read(&source, &[gate.event()], on_piece) }
        })
        .collect();
    for gate in gates.into_iter().rev() {
        assert!(order.lock().unwrap().is_empty());
        gate.set_ready();
    }
    for end in ends {
        end.wait().unwrap();
    }
    assert_eq!(*order.lock().unwrap(), [(0, 0), (0, 64), (1, 0), (1, 64), (2, 0), (2, 64)]);
}

pub(crate) fn no_more_is_under_way_than_there_are_leases(fixture: &Fixture) {
    let pool = pool(fixture, 10, 3);
    let copier = StagingCopier::new(&pool);
    let (event, told) = PieceLog::of(&copier, &fixture.filled(&pattern(100, 1)), &[]);
    let mut kept: Vec<StagedPiece> = (0..3).map(|_| told.0.recv().unwrap().unwrap()).collect();
    assert!(pool.free_count() == 0 && told.0.try_recv().is_err(), "the rest waits for leases");
    let other = fixture.filled(&pattern(10, 2));
    let (other_event, other_told) = PieceLog::of(&copier, &other, &[]);
    let mut bytes = Vec::new();
    while !kept.is_empty() {
        bytes.extend_from_slice(kept.remove(0).bytes());
        if bytes.len() + 10 * kept.len() < 100 {
            kept.push(told.0.recv().unwrap().unwrap());
        }
    }
    assert_eq!(bytes, pattern(100, 1));
    event.wait().unwrap();
    other_event.wait().unwrap();
    assert_eq!(other_told.all(), pattern(10, 2));
    assert_eq!(pool.free_count(), 3);
}

pub(crate) fn a_read_of_nothing_takes_its_turn(fixture: &Fixture) {
    let copier = StagingCopier::new(&pool(fixture, 10, 1));
    let (nothing, gate) = (fixture.allocate(0), EventPromise::new(c"gate"));
    let (first, told) = PieceLog::of(&copier, &fixture.filled(&pattern(30, 1)), &[gate.event()]);
    let (second, told_of_nothing) = PieceLog::of(&copier, &nothing, &[]);
    assert!(!first.is_ready() && !second.is_ready());
    gate.set_ready();
    assert_eq!(told.all(), pattern(30, 1));
    assert_eq!((first.wait(), second.wait()), (Ok(()), Ok(())));
    assert_eq!(told_of_nothing.all(), []);
}

pub(crate) fn a_failed_dependency_ends_its_read_alone(fixture: &Fixture) {
    let pool = pool(fixture, 10, 2);
    let copier = StagingCopier::new(&pool);
    let source = fixture.filled(&pattern(100, 1));
    let gate = EventPromise::new(c"gate");
    let (failing, told) = PieceLog::of(&copier, &source, &[gate.event()]);
    let (going, told_others) = PieceLog::of(&copier, &source, &[]);
    gate.set_error(Error::data_loss("upstream"));
    assert_eq!(
        (failing.wait().unwrap_err(), told.error()),
        (Error::data_loss("upstream"), Error::data_loss("upstream"))
    );
    assert_eq!(told_others.all(), pattern(100, 1));
    assert_eq!((going.wait(), pool.free_count()), (Ok(()), 2));

    let foreign = filled(&fixture.other_client.devices()[0].default_memory_space(), &[1, 2, 3]);
    let (event, told) = PieceLog::of(&copier, &foreign, &[]);
    assert_error(&event.wait().unwrap_err(), StatusCode::InvalidArgument, &["client"]);
    assert_eq!(told.error().code(), StatusCode::InvalidArgument);
}

pub(crate) fn a_read_that_what_it_waits_for_waits_for_fails(fixture: &Fixture) {
    let copier = StagingCopier::new(&pool(fixture, 64, 2));
    let gate = EventPromise::new(c"gate");
    let waited_for = gate.event();
    let (read, told) = PieceLog::of(&copier, &fixture.filled(&[1; 64]), std::slice::from_ref(&waited_for));
    gate.forward(&read);
    assert_cycle(&waited_for.error().unwrap());
    assert_cycle(&told.error());
    assert_cycle(&read.wait().unwrap_err());

    let (source, promise) = RawBuffer::channel(&fixture.space(), 64, &AllocOptions::default());
    let (read, told) = PieceLog::of(&copier, &source, &[]);
    let options = AllocOptions { after: Some(read.clone()), ..Default::default() };
    let later = RawBuffer::allocate_with(&fixture.space(), 64, &options).unwrap();
    promise.fulfil(&later).map_err(|(error, _)| error).unwrap();
    assert_cycle(&source.allocation_event().error().unwrap());
    assert_cycle(&told.error());
    assert_cycle(&later.allocation_event().wait().unwrap_err());
}

pub(crate) fn a_sink_for_memory_that_comes_after_it_fails(fixture: &Fixture) {
    let (destination, promise) = RawBuffer::channel(&fixture.space(), 64, &AllocOptions::default());
    let (sink, whole) = StagingSink::new(&destination);
    put(&sink, &pool(fixture, 64, 1), &[1; 64], 0, 64).unwrap();
    let options = AllocOptions { after: Some(whole.clone()), ..Default::default() };
    let later = RawBuffer::allocate_with(&fixture.space(), 64, &options).unwrap();
    promise.fulfil(&later).map_err(|(error, _)| error).unwrap();
    assert_cycle(&destination.allocation_event().error().unwrap());
    assert_cycle(&whole.wait().unwrap_err());
}

pub(crate) fn who_is_told_may_panic(fixture: &Fixture) {
    let pool = pool(fixture, 10, 2);
    let copier = StagingCopier::new(&pool);
    let source = fixture.filled(&pattern(100, 1));
    let mut count = 0;
    let on_piece = move |_piece| {
        count += 1;
        assert!(count < 3, "expected by a case");
    };
    // SAFETY: nothing writes the source.
    let event = unsafe { copier.read(&source, &[], on_piece) };
    assert_error(&event.wait().unwrap_err(), StatusCode::Internal, &["panicked"]);
    let (event, told) = PieceLog::of(&copier, &source, &[]);
    assert_eq!((told.all(), event.wait()), (pattern(100, 1), Ok(())));
    assert_eq!(pool.free_count(), 2);
}

pub(crate) fn a_read_that_ended_early_leaves_its_source_alone(fixture: &Fixture) {
    let pool = pool(fixture, LARGE_BYTES, 6);
    let copier = StagingCopier::new(&pool);
    let source = fixture.filled(&pattern(8 * LARGE_BYTES, 1));
    // SAFETY: nothing writes the source.
    let event = unsafe { copier.read(&source, &[], |_piece| panic!("expected by a case")) };
    drop(source);
    assert_error(&event.wait().unwrap_err(), StatusCode::Internal, &["panicked"]);
    assert_eq!(fixture.space().stats().bytes_in_use, 0, "no copy of it is under way");

    // Its pieces wait for a lease, which is never given back; no code waits for that.
    let shape = Shape::new(DType::U8, &[2 * LARGE_BYTES as i64]).unwrap();
    let buffer = Buffer::from_raw(fixture.allocate(2 * LARGE_BYTES), &shape, None, &Event::ready()).unwrap();
    let _others: Vec<_> = (1..6).map(|_| pool.acquire(&CancelToken::default()).unwrap()).collect();
    let (sender, kept) = channel();
    let on_piece = move |piece| {
        sender.send(piece).unwrap();
        panic!("expected by a case, with its lease kept")
    };
    let event = copier.read_buffer(&buffer, on_piece).unwrap();
    assert_error(&event.wait().unwrap_err(), StatusCode::Internal, &["panicked"]);
    assert!(buffer.try_donate(c"donee").is_ok(), "it is not held");
    assert!(kept.recv().unwrap().is_ok());
}

pub(crate) fn a_copier_that_goes_tells_everybody(fixture: &Fixture) {
    let pool = pool(fixture, 10, 2);
    let copier = StagingCopier::new(&pool);
    let source = fixture.filled(&pattern(100, 1));
    let gate = EventPromise::new(c"gate");
    let (begun, told) = PieceLog::of(&copier, &source, &[gate.event()]);
    let (waiting, told_waiting) = PieceLog::of(&copier, &source, &[]);
    drop(copier);
    assert!(!begun.is_ready(), "its first pieces are begun, and wait for the gate");
    gate.set_ready();
    assert_eq!(begun.wait().unwrap_err().code(), StatusCode::Cancelled);
    assert_eq!(waiting.wait().unwrap_err().code(), StatusCode::Cancelled);
    assert_eq!(told_waiting.error().code(), StatusCode::Cancelled);
    let told: Vec<_> = told.0.into_iter().map(|piece| piece.map(|piece| piece.offset_bytes())).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[..2] == [Ok(0), Ok(10)] && told[2].as_ref().is_err_and(|error| error.code() == StatusCode::Cancelled));
    assert_eq!(pool.free_count(), 2);
}

pub(crate) fn a_buffer_is_not_donated_while_it_is_read(fixture: &Fixture) {
    let copier = StagingCopier::new(&pool(fixture, 10, 1));
    let bytes = pattern(30, 4);
    let gate = EventPromise::new(c"gate");
    let shape = Shape::new(DType::U8, &[30]).unwrap();
    let buffer = Buffer::from_raw(fixture.filled(&bytes), &shape, None, &gate.event()).unwrap();
    let (sender, receiver) = channel();
    let event = copier.read_buffer(&buffer, move |piece| sender.send(piece).unwrap()).unwrap();
    assert!(buffer.try_donate(c"donee").is_err(), "it is held");
    gate.set_ready();
    assert_eq!(PieceLog(receiver).all(), bytes);
    event.wait().unwrap();
    let hold = buffer.try_donate(c"donee").unwrap();
    assert_eq!(hold.free_event().wait(), Ok(()));
    drop(hold.confirm());
    assert!(copier.read_buffer(&buffer, |_piece| unreachable!("there is nothing to read")).is_err());
}

pub(crate) fn who_is_told_may_read_again(fixture: &Fixture) {
    let pool = pool(fixture, 10, 2);
    let copier = Arc::new(StagingCopier::new(&pool));
    let source = fixture.filled(&pattern(10, 5));
    let (sender, receiver) = channel();
    fn again(copier: &Arc<StagingCopier>, source: &RawBuffer, left: usize, done: std::sync::mpsc::Sender<Event>) {
        let (next, from, sender) = (Arc::clone(copier), source.clone(), done.clone());
        let on_piece = move |piece: StatusOr<StagedPiece>| {
            drop(piece.unwrap());
            if left > 0 {
                again(&next, &from, left - 1, sender.clone());
            }
        };
        // SAFETY: nothing writes the source.
        let event = unsafe { copier.read(source, &[], on_piece) };
        let _ = done.send(event);
    }
    again(&copier, &source, 500, sender);
    let events: Vec<Event> = receiver.into_iter().collect();
    assert_eq!(events.len(), 501);
    for event in events {
        event.wait().unwrap();
    }
    assert_eq!(pool.free_count(), 2);
}

pub(crate) fn a_read_is_told_in_the_context_in_which_it_was_asked_for(fixture: &Fixture) {
    let pool = pool(fixture, 10, 1);
    let copier = StagingCopier::new(&pool);
    let (source, gate) = (fixture.filled(&pattern(20, 1)), EventPromise::new(c"gate"));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let ask = |name: &'static str, dependencies: &[Event]| {
        let seen = Arc::clone(&seen);
        let on_piece = move |_piece| {
            let context = UserContext::current().map_or_else(String::new, |context| context.debug_string());
            seen.lock().unwrap().push((name, context));
        };
        // SAFETY: nothing writes the source.
        unsafe { copier.read(&source, dependencies, on_piece) }
    };
    let reads = {
        let one = {
            let _scope = UserContextScope::new(UserContext::new("asker"));
            ask("first", &[gate.event()])
        };
        // Its pieces wait for the one lease, which is given back in the context of the other read.
        [one, ask("second", &[])]
    };
    {
        let _scope = UserContextScope::new(UserContext::new("another"));
        gate.set_ready();
        reads.iter().for_each(|read| read.wait().unwrap());
        assert_eq!(UserContext::current().map(|context| context.debug_string()).as_deref(), Some("another"));
    }
    let expected = [("first", "asker"), ("first", "asker"), ("second", ""), ("second", "")];
    let seen = seen.lock().unwrap();
    assert!(seen.iter().map(|(name, context)| (*name, context.as_str())).eq(expected), "{seen:?}");
}

/// Puts the bytes `[first, last)` of `bytes` where they belong.
fn put(sink: &StagingSink, pool: &StagingPool, bytes: &[u8], first: usize, last: usize) -> Result<(), Error> {
    let mut lease = pool.acquire(&CancelToken::default()).unwrap();
    lease.bytes_mut()[..last - first].copy_from_slice(&bytes[first..last]);
    sink.put(first, last - first, lease)
}

pub(crate) fn pieces_make_a_whole_in_any_order(fixture: &Fixture) {
    for size_bytes in [100, LARGE_BYTES] {
        let (pool, bytes) = (pool(fixture, size_bytes / 2, 2), pattern(size_bytes, 6));
        let destination = fixture.allocate(size_bytes);
        let (sink, whole) = StagingSink::new(&destination);
        let (third, half) = (size_bytes / 3, size_bytes / 2);
        put(&sink, &pool, &bytes, half, size_bytes - 1).unwrap();
        put(&sink, &pool, &bytes, 0, third).unwrap();
        put(&sink, &pool, &bytes, third, third).unwrap();
        put(&sink, &pool, &bytes, third, half).unwrap();
        assert!(!whole.is_ready() && sink.begun_bytes() == size_bytes - 1);
        put(&sink, &pool, &bytes, size_bytes - 1, size_bytes).unwrap();
        drop(sink);
        whole.wait().unwrap();
        assert!(read(&destination) == bytes);
        assert_eq!(pool.free_count(), 2);
    }
    let (_sink, nothing) = StagingSink::new(&fixture.allocate(0));
    assert_eq!(nothing.wait(), Ok(()));
}

pub(crate) fn a_byte_has_one_piece(fixture: &Fixture) {
    let (pool, bytes) = (pool(fixture, 60, 1), pattern(100, 7));
    let destination = fixture.allocate(100);
    let (sink, whole) = StagingSink::new(&destination);
    put(&sink, &pool, &bytes, 10, 50).unwrap();
    let error = put(&sink, &pool, &bytes, 40, 60).unwrap_err();
    assert_error(&error, StatusCode::InvalidArgument, &["[40, 60)", "[40, 50) had one"]);
    let lease = || pool.acquire(&CancelToken::default()).unwrap();
    assert_error(&sink.put(90, 11, lease()).unwrap_err(), StatusCode::OutOfRange, &["90", "11", "100"]);
    assert_error(&sink.put(0, 61, lease()).unwrap_err(), StatusCode::OutOfRange, &["61", "60"]);
    assert_error(&sink.put(usize::MAX, 2, lease()).unwrap_err(), StatusCode::OutOfRange, &[]);
    assert_eq!((sink.begun_bytes(), pool.free_count()), (40, 1));
    put(&sink, &pool, &bytes, 50, 100).unwrap();
    put(&sink, &pool, &bytes, 0, 10).unwrap();
    whole.wait().unwrap();
    assert_eq!(read(&destination), bytes);
    assert_eq!(put(&sink, &pool, &bytes, 0, 1).unwrap_err().code(), StatusCode::InvalidArgument);
}

pub(crate) fn a_poisoned_sink_writes_no_more(fixture: &Fixture) {
    let (pool, bytes) = (pool(fixture, LARGE_BYTES, 1), pattern(LARGE_BYTES, 8));
    let destination = fixture.filled(&vec![0; 2 * LARGE_BYTES]);
    let (sink, whole) = StagingSink::new(&destination);
    let occupied = fixture.occupy_runner();
    put(&sink, &pool, &bytes, 0, LARGE_BYTES).unwrap();
    sink.poison(&Error::unavailable("the peer is gone"));
    sink.poison(&Error::aborted("later"));
    drop(occupied);
    let error = put(&sink, &pool, &bytes, 0, 0).unwrap_err();
    assert_eq!(error.message(), "the peer is gone");
    assert_eq!(whole.wait().unwrap_err(), error);
    assert!(read(&destination)[LARGE_BYTES..].iter().all(|&byte| byte == 0));
    assert_eq!(pool.free_count(), 1, "the piece under way was over before the event");
}

pub(crate) fn a_sink_that_goes_fails(fixture: &Fixture) {
    let pool = pool(fixture, 10, 1);
    let (sink, whole) = StagingSink::new(&fixture.allocate(30));
    put(&sink, &pool, &pattern(30, 9), 0, 10).unwrap();
    drop(sink);
    assert_error(&whole.wait().unwrap_err(), StatusCode::Cancelled, &["10 of 30 bytes"]);
    assert_eq!(pool.free_count(), 1);
}

pub(crate) fn bytes_pass_through_both_from_many_threads(fixture: &Fixture) {
    let pool = pool(fixture, 10_000, 4);
    let copier = StagingCopier::new(&pool);
    on_threads(4, |index| {
        let bytes = pattern(LARGE_BYTES / 4 + index, index as u8);
        let source = fixture.filled(&bytes);
        let destination = RawBuffer::allocate(&fixture.device(1).default_memory_space(), bytes.len()).unwrap();
        let (sink, whole) = StagingSink::new(&destination);
        let on_piece = move |piece: StatusOr<StagedPiece>| {
            let piece = piece.unwrap();
            let (offset_bytes, size_bytes) = (piece.offset_bytes(), piece.size_bytes());
            sink.put(offset_bytes, size_bytes, piece.into_lease()).unwrap();
        };
        // SAFETY: nothing writes the source.
        unsafe { copier.read(&source, &[], on_piece) }.wait().unwrap();
        whole.wait().unwrap();
        assert!(read(&destination) == bytes);
    });
    assert_eq!(pool.free_count(), 4);
}
