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
