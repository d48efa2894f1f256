//! Copies of which each waits for the one before.

use purlin_async::{Event, when_all};
use purlin_device::RawBuffer;

use super::{Program, SIZE_BYTES, assert_bytes, blocks, copy, memory, read, three_spaces};
use crate::fixture::{Fixture, pattern};

pub(crate) fn a_chain_ends_with_the_first_bytes(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 16), Program::default());
    let mut last = program.write(&blocks[0], pattern(SIZE_BYTES, 1), &[]);
    for pair in blocks.windows(2) {
        last = copy(&pair[0], &pair[1], &[&last]);
    }
    assert_bytes(read(&blocks[15], &[&last]), 1);
}

pub(crate) fn a_chain_goes_through_every_space(fixture: &Fixture) {
    let (mut at, mut program) = (memory(&fixture.space()), Program::default());
    let mut last = program.write(&at, pattern(SIZE_BYTES, 2), &[]);
    for space in fixture.spaces() {
        let next = memory(&space);
        last = copy(&at, &next, &[&last]);
        at = next;
    }
    assert_bytes(read(&at, &[&last]), 2);
}

pub(crate) fn a_chain_goes_round_the_devices(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let mut at = memory(&spaces[0]);
    let mut last = program.write(&at, pattern(SIZE_BYTES, 3), &[]);
    for link in 1..=12 {
        let next = memory(&spaces[link % 3]);
        last = copy(&at, &next, &[&last]);
        at = next;
    }
    assert_bytes(read(&at, &[&last]), 3);
}

pub(crate) fn chains_side_by_side_do_not_mix(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let ends: Vec<(RawBuffer, Event, u8)> = (0..6)
        .map(|seed| {
            let mut at = memory(&spaces[usize::from(seed) % 3]);
            let mut last = program.write(&at, pattern(SIZE_BYTES, seed), &[]);
            for _ in 0..4 {
                let next = memory(&at.memory_space());
                last = copy(&at, &next, &[&last]);
                at = next;
            }
            (at, last, seed)
        })
        .collect();
    for (end, last, seed) in ends {
        assert_bytes(read(&end, &[&last]), seed);
    }
}

pub(crate) fn two_blocks_are_swapped_by_way_of_a_third(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 3), Program::default());
    let first = program.write(&blocks[0], pattern(SIZE_BYTES, 1), &[]);
    let second = program.write(&blocks[1], pattern(SIZE_BYTES, 2), &[]);
    let mut last = when_all(&[first, second]);
    for _ in 0..5 {
        for (from, to) in [(0, 2), (1, 0), (2, 1)] {
            last = copy(&blocks[from], &blocks[to], &[&last]);
        }
    }
    assert_bytes(read(&blocks[0], &[&last]), 2);
    assert_bytes(read(&blocks[1], &[&last]), 1);
}

pub(crate) fn blocks_of_three_devices_rotate(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let (blocks, spare) = (spaces.each_ref().map(memory), memory(&spaces[0]));
    let written: Vec<Event> =
        (0..3).map(|seed| program.write(&blocks[usize::from(seed)], pattern(SIZE_BYTES, seed), &[])).collect();
    let mut last = when_all(&written);
    for _ in 0..4 {
        for (from, to) in
            [(&blocks[2], &spare), (&blocks[1], &blocks[2]), (&blocks[0], &blocks[1]), (&spare, &blocks[0])]
        {
            last = copy(from, to, &[&last]);
        }
    }
    for (block, seed) in blocks.iter().zip([2, 0, 1]) {
        assert_bytes(read(block, &[&last]), seed);
    }
}

pub(crate) fn overlapping_ranges_move_step_by_step(fixture: &Fixture) {
    const STEPS: usize = 12;
    let block = RawBuffer::allocate(&fixture.space(), SIZE_BYTES + STEPS).unwrap();
    let mut program = Program::default();
    let mut last = program.write(&block, pattern(SIZE_BYTES, 8), &[]);
    for at in 0..STEPS {
        let (from, to) = (block.slice(at, SIZE_BYTES).unwrap(), block.slice(at + 1, SIZE_BYTES).unwrap());
        last = copy(&from, &to, &[&last]);
    }
    assert_bytes(read(&block.slice(STEPS, SIZE_BYTES).unwrap(), &[&last]), 8);
}

pub(crate) fn a_chain_goes_up_and_down_through_the_same_blocks(fixture: &Fixture) {
    let host = memory(&fixture.device(0).memory_space("pinned_host").unwrap());
    let (blocks, mut program) = (blocks(fixture, 2), Program::default());
    let mut last = program.write(&blocks[0], pattern(SIZE_BYTES, 40), &[]);
    for _ in 0..6 {
        let within = copy(&blocks[0], &blocks[1], &[&last]);
        let down = copy(&blocks[1], &host, &[&within]);
        last = copy(&host, &blocks[0], &[&down]);
    }
    assert_bytes(read(&blocks[0], &[&last]), 40);
}

pub(crate) fn rounds_of_a_chain_each_have_their_own_bytes(fixture: &Fixture) {
    let host = fixture.device(0).memory_space("pinned_host").unwrap();
    let (blocks, mut program) = (blocks(fixture, 2), Program::default());
    let (mut last, mut rounds) = (Event::ready(), Vec::new());
    for seed in 0..8 {
        let up = program.write(&blocks[0], pattern(SIZE_BYTES, seed), &[&last]);
        let within = copy(&blocks[0], &blocks[1], &[&up]);
        let down = memory(&host);
        last = copy(&blocks[1], &down, &[&within]);
        rounds.push((down, last.clone(), seed));
    }
    for (down, last, seed) in rounds {
        assert_bytes(read(&down, &[&last]), seed);
    }
}

pub(crate) fn two_chains_cross_again_and_again(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let mut at = [memory(&spaces[0]), memory(&spaces[1])];
    let mut last = [0, 1].map(|seed| program.write(&at[usize::from(seed)], pattern(SIZE_BYTES, seed), &[]));
    for link in 0..6 {
        let next = [memory(&spaces[(link + 1) % 3]), memory(&spaces[(link + 2) % 3])];
        // Each begins where the other ended.
        last = [copy(&at[1], &next[0], &[&last[1]]), copy(&at[0], &next[1], &[&last[0]])];
        at = next;
    }
    for seed in [0, 1] {
        assert_bytes(read(&at[usize::from(seed)], &[&last[usize::from(seed)]]), seed);
    }
}

pub(crate) fn a_chain_goes_on_behind_what_is_over(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 8), Program::default());
    let mut last = program.write(&blocks[0], pattern(SIZE_BYTES, 41), &[]);
    let mut passed = Vec::new();
    for pair in blocks.windows(2) {
        let next = copy(&pair[0], &pair[1], &passed.iter().chain([&last]).collect::<Vec<_>>());
        passed.push(last);
        last = next;
    }
    assert_bytes(read(&blocks[7], &[&last]), 41);
}

pub(crate) fn order_passes_through_copies_that_only_read(fixture: &Fixture) {
    let (spaces, mut program) = (three_spaces(fixture), Program::default());
    let pinned = fixture.device(0).memory_space("pinned_host").unwrap();
    let (block, mut last, mut versions) = (memory(&spaces[0]), Event::ready(), Vec::new());
    let [here, there, _] = &spaces;
    let orders = [[&pinned, there, here], [&pinned, here, there], [there, &pinned, here]];
    let more = [[there, here, &pinned], [here, &pinned, there], [here, there, &pinned]];
    for (order, seed) in orders.iter().chain(&more).zip(0..) {
        last = program.write(&block, pattern(SIZE_BYTES, seed), &[&last]);
        // Each waits for the reader before it alone, which has waited for the write.
        for space in order {
            let to = memory(space);
            last = copy(&block, &to, &[&last]);
            versions.push((to, last.clone(), seed));
        }
    }
    for (to, copied, seed) in versions {
        assert_bytes(read(&to, &[&copied]), seed);
    }
}

pub(crate) fn copies_that_waited_for_much_of_one_kind_wait_for_little_of_another(fixture: &Fixture) {
    let (blocks, mut program) = (blocks(fixture, 2), Program::default());
    let pinned = fixture.device(0).memory_space("pinned_host").unwrap();
    let mut down = program.write(&blocks[0], pattern(SIZE_BYTES, 44), &[]);
    for _ in 0..24 {
        down = copy(&blocks[0], &memory(&pinned), &[&down]);
    }
    let mut within = copy(&blocks[0], &blocks[1], &[&down]);
    let mut ends = Vec::new();
    for seed in 0..8 {
        let block = memory(&fixture.space());
        // Only this is what the copy waits for: the one before it is in its own stream.
        let written = program.write(&block, pattern(SIZE_BYTES, seed), &[&down]);
        let to = memory(&fixture.space());
        within = copy(&block, &to, &[&within, &written]);
        ends.push((to, within.clone(), seed));
    }
    for (to, copied, seed) in ends {
        assert_bytes(read(&to, &[&copied]), seed);
    }
}
