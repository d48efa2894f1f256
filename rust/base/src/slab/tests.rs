use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread;

use super::*;

#[test]
fn blocks_are_distinct_and_come_back() {
    let blocks: Vec<_> = (0..1000).map(|_| allocate(Class::Node)).collect();
    assert_eq!(blocks.iter().collect::<BTreeSet<_>>().len(), blocks.len());
    for &block in &blocks {
        assert_eq!(block.addr() % 64, 0);
        // SAFETY: from allocate(), once each.
        unsafe { free(Class::Node, block) };
    }
    let again = allocate(Class::Node);
    assert!(blocks.contains(&again), "a freed block is used again");
    // SAFETY: from allocate().
    unsafe { free(Class::Node, again) };
}

#[test]
fn blocks_may_be_freed_by_another_thread_that_ends() {
    let (give, take) = mpsc::channel::<usize>();
    let freer = thread::spawn(move || {
        for block in take {
            // SAFETY: from allocate() on the other thread, sent once.
            unsafe { free(Class::WideCell, ptr::with_exposed_provenance_mut(block)) };
        }
    });
    let mut known = BTreeSet::new();
    for _ in 0..10 * LIMIT {
        let block = allocate(Class::WideCell);
        known.insert(block.addr());
        // SAFETY: ours; a free cell is in a terminal state.
        unsafe { mark_free(block) };
        give.send(block.expose_provenance()).unwrap();
    }
    drop(give);
    freer.join().unwrap();
    let mut seen = BTreeSet::new();
    for_each_cell(|cell| _ = seen.insert(cell.addr()));
    assert!(known.is_subset(&seen), "every cell is known, free or not");
}

#[test]
fn a_large_cell_is_known_while_it_lives() {
    let cell = allocate_large(1000, 256);
    let known = || {
        let mut found = false;
        for_each_cell(|known| found |= ptr::eq(known, cell));
        found
    };
    assert!(known());
    // SAFETY: from allocate_large(), same numbers.
    unsafe { free_large(cell, 1000, 256) };
    assert!(!known());
}

/// A value of every size about the edges of the classes, over-aligned or not: no byte is another value's.
#[test]
fn values_of_every_size_have_memory_of_their_own() {
    fn both<T: Copy + PartialEq + std::fmt::Debug>(one: T, other: T) {
        let values = [allocate_for::<T>(), allocate_for::<T>()];
        // SAFETY: both are memory for a T, written before it is read, and freed once.
        unsafe {
            values[0].write(one);
            values[1].write(other);
            assert!(values.iter().all(|value| value.is_aligned()));
            assert_eq!((values[0].read(), values[1].read()), (one, other));
            values.into_iter().for_each(|value| free_for(value));
        }
    }
    #[derive(Clone, Copy, PartialEq, Debug)]
    #[repr(align(128))]
    struct Aligned([u8; 128]);
    both((), ());
    both([1_u8; 1], [2; 1]);
    both([1_u8; 31], [2; 31]);
    both([1_u8; 32], [2; 32]);
    both([1_u8; 64], [2; 64]);
    both([1_u8; 65], [2; 65]);
    both([1_u8; 128], [2; 128]);
    both([1_u8; 129], [2; 129]);
    both(Aligned([1; 128]), Aligned([2; 128]));
    let class = |bytes: usize, align: usize| Class::of(Layout::from_size_align(bytes, align).unwrap());
    assert_eq!((class(31, 8), class(32, 8), class(64, 64)), (None, Some(Class::Node), Some(Class::Node)));
    assert_eq!((class(65, 8), class(128, 64)), (Some(Class::WideNode), Some(Class::WideNode)));
    assert_eq!((class(129, 8), class(128, 128)), (None, None), "too large, and aligned to more than a block is");
}
