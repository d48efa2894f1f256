//! Random programs of copies, fills, kernels, waits and synchronisations, judged by the detector and by a comparison of
//! all operations with all: both say the same, whatever the delays.

#[macro_use]
mod support;

use support::*;

const LANES: usize = 3;
const UNIT: u64 = 64;

/// A generator of small numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn lane(&mut self) -> usize {
        usize::try_from(self.below(LANES as u64)).unwrap()
    }
}

/// A number of units from a unit on.
type Range = (u64, u64);

#[derive(Clone, Copy, Debug)]
enum Step {
    Fill(usize, Range),
    Copy(usize, Range, Range),
    Kernel(usize, Range, Range),
    Order(usize, usize),
    Sync(usize),
}

fn program(chance: &mut Chance) -> Vec<Step> {
    let step = |chance: &mut Chance| {
        let (lane, length) = (chance.lane(), 1 + chance.below(3));
        let mut range = || (chance.below(60), length);
        let (to, from) = (range(), range());
        match chance.below(12) {
            0..=2 => Step::Fill(lane, to),
            // A copy does not overlap itself.
            3..=4 if to.0.abs_diff(from.0) >= length => Step::Copy(lane, to, from),
            3..=6 => Step::Kernel(lane, to, from),
            7..=10 => Step::Order(lane, chance.lane()),
            _ => Step::Sync(lane),
        }
    };
    (0..11).map(|_| step(chance)).collect()
}

/// An operation: its lane, its number there, what it has seen of each lane, what it touches and how.
type Done = (usize, u64, [u64; LANES], Vec<(Range, bool)>);

/// Whether any two operations race.
fn races(program: &[Step]) -> bool {
    let (mut clocks, mut host) = ([[0_u64; LANES]; LANES], [0_u64; LANES]);
    let mut done: Vec<Done> = Vec::new();
    let join = |one: &mut [u64; LANES], other: [u64; LANES]| {
        one.iter_mut().zip(other).for_each(|(one, other)| *one = (*one).max(other));
    };
    for step in program {
        let (lane, touched) = match *step {
            Step::Fill(lane, to) => (lane, vec![(to, true)]),
            Step::Copy(lane, to, from) | Step::Kernel(lane, to, from) => (lane, vec![(to, true), (from, false)]),
            Step::Order(first, then) => {
                let seen = clocks[first];
                join(&mut clocks[then], seen);
                continue;
            }
            Step::Sync(lane) => {
                join(&mut host, clocks[lane]);
                continue;
            }
        };
        let clock = &mut clocks[lane];
        join(clock, host);
        clock[lane] += 1;
        done.push((lane, clock[lane], *clock, touched));
    }
    let overlap = |(one, size): Range, (other, other_size): Range| one < other + other_size && other < one + size;
    let meet = |one: &Done, other: &Done| {
        let pairs = one.3.iter().flat_map(|one| other.3.iter().map(move |other| (one, other)));
        let mut clashes = pairs.filter(|(one, other)| (one.1 || other.1) && overlap(one.0, other.0));
        clashes.next().is_some()
    };
    let is_ordered = |one: &Done, other: &Done| other.2[one.0] >= one.1 || one.2[other.0] >= other.1;
    done.iter()
        .enumerate()
        .any(|(at, later)| done[..at].iter().any(|earlier| meet(later, earlier) && !is_ordered(earlier, later)))
}

fn run(gpu: &Session, program: &[Step], memory: u64, kernel: usize, streams: &[usize]) {
    let at = |range: Range| memory + range.0 * UNIT;
    let size = |range: Range| usize::try_from(range.1 * UNIT).unwrap();
    for step in program {
        match *step {
            Step::Fill(lane, to) => gpu.fill(at(to), 1, size(to), streams[lane]),
            Step::Copy(lane, to, from) => gpu.d2d(at(to), at(from), size(to), streams[lane]),
            Step::Kernel(lane, to, from) => {
                let threads = u32::try_from(size(to) / 4).unwrap();
                gpu.launch(kernel, 1, threads, streams[lane], &[at(to), at(from)]);
            }
            Step::Order(first, then) => gpu.order(streams[first], streams[then]),
            Step::Sync(lane) => gpu.sync(streams[lane]),
        }
    }
    gpu.sync_all();
}

#[test]
fn the_detector_and_a_comparison_of_all_with_all_agree() {
    process::run("the_detector_and_a_comparison_of_all_with_all_agree", &Options::default(), || {
        let gpu = Session::new();
        let module = gpu.module(TEXT);
        let kernel = gpu.function(module, "add_one");
        let memory = gpu.allocate(64 * 64);
        gpu.fill(memory, 0, 64 * 64, 0);
        gpu.sync_all();
        let streams: Vec<usize> = (0..LANES).map(|_| gpu.stream(NON_BLOCKING)).collect();
        let (mut chance, mut racy) = (Chance(7), 0);
        for round in 0..300 {
            let program = program(&mut chance);
            let expected = races(&program);
            racy += u32::from(expected);
            for seed in 0..3 {
                gpu.control.set_delays(round * 3 + seed, seed * 60);
                run(&gpu, &program, memory, kernel, &streams);
                let reports = gpu.control.take_reports();
                assert_eq!(!reports.is_empty(), expected, "round {round}, seed {seed}: {program:#?}\n{reports:#?}");
            }
        }
        println!("{racy} of 300 programs have races");
        assert!((60..240).contains(&racy), "{racy} of 300 programs have races");
        streams.into_iter().for_each(|stream| ok!(gpu, cuStreamDestroy_v2(stream)));
        ok!(gpu, cuModuleUnload(module));
        gpu.free(memory);
        gpu.end();
    });
}
