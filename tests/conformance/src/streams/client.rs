//! Clients of one backend, and of another, that pass bytes to each other: each has streams of its own, or shares them.

use std::sync::Arc;

use purlin_async::Event;
use purlin_device::{Client, RawBuffer};

use super::{Program, SIZE_BYTES, assert_bytes, copy, memory, read};
use crate::fixture::{Fixture, pattern};

/// A block of a device of the client.
fn block_of(client: &Client, device: usize) -> RawBuffer {
    memory(&client.devices()[device % client.devices().len()].default_memory_space())
}

pub(crate) fn bytes_go_from_client_to_client_through_the_host(fixture: &Fixture) {
    let clients = [Arc::clone(&fixture.client), Arc::clone(&fixture.other_client), fixture.own_client()];
    let mut program = Program::default();
    let first = block_of(&clients[0], 0);
    let written = program.write(&first, pattern(SIZE_BYTES, 20), &[]);
    let mut last = read(&first, &[&written]);
    for link in 1..10 {
        let block = block_of(&clients[link % 3], link);
        // The bytes that the last one reads, once it has.
        last = last.sent_on(&block, &[]);
        let written = last.event().clone();
        let next = read(&block, &[&written]);
        program.keep(last);
        last = next;
    }
    assert_bytes(last, 20);
}

pub(crate) fn clients_do_not_mix_their_chains(fixture: &Fixture) {
    let clients = [Arc::clone(&fixture.client), Arc::clone(&fixture.other_client), fixture.own_client()];
    let (mut program, mut ends) = (Program::default(), Vec::new());
    for seed in 0..9_u8 {
        let at = usize::from(seed);
        let blocks: Vec<RawBuffer> = (0..4).map(|link| block_of(&clients[at % 3], at / 3 + link)).collect();
        let mut last = program.write(&blocks[0], pattern(SIZE_BYTES, seed), &[]);
        for pair in blocks.windows(2) {
            last = copy(&pair[0], &pair[1], &[&last]);
        }
        ends.push((read(&blocks[3], &[&last]), seed));
    }
    for (end, seed) in ends {
        assert_bytes(end, seed);
    }
}

pub(crate) fn a_client_waits_for_anothers_events(fixture: &Fixture) {
    let clients = [Arc::clone(&fixture.client), Arc::clone(&fixture.other_client), fixture.own_client()];
    let (mut program, mut versions, mut last) = (Program::default(), Vec::new(), Event::ready());
    let blocks = [0, 1, 2].map(|at| block_of(&clients[at], at));
    for seed in 0..9 {
        let block = &blocks[usize::from(seed) % 3];
        // In turn: each client's write waits for the read of the one before it.
        let written = program.write(block, pattern(SIZE_BYTES, seed), &[&last]);
        let version = read(block, &[&written]);
        last = version.event().clone();
        versions.push((version, seed));
    }
    for (version, seed) in versions {
        assert_bytes(version, seed);
    }
}
