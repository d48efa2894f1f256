use super::super::clock::Clock;
use super::*;

/// The operation `sequence` of a lane, which has seen those of `seen`.
fn stamp(number: u64, lane: usize, sequence: u64, seen: &[(usize, u64)]) -> Arc<Stamp> {
    let mut clock = Clock::default();
    seen.iter().for_each(|(lane, number)| clock.set(*lane, *number));
    clock.set(lane, sequence);
    let (label, place) = (Arc::from(""), Arc::from("stream"));
    Arc::new(Stamp { number, entry: "cuTest", kernel: None, label, place, lane, sequence, clock })
}

fn span(start: u64, end: u64) -> Span {
    Span { start, end }
}

fn races(found: &[Race]) -> Vec<(u64, u64, u64, bool)> {
    found.iter().map(|race| (race.span.start, race.span.end, race.earlier.stamp.number, race.both_write)).collect()
}

#[test]
fn two_unordered_writes_race_where_they_overlap() {
    let mut shadow = Shadow::default();
    assert!(shadow.access(span(0, 100), &stamp(1, 1, 1, &[]), true, true).is_empty());
    assert_eq!(races(&shadow.access(span(50, 150), &stamp(2, 2, 1, &[]), true, true)), [(50, 100, 1, true)]);
    assert!(shadow.access(span(0, 50), &stamp(3, 2, 2, &[(1, 1)]), true, true).is_empty(), "it waited");
}

#[test]
fn readers_race_with_writers_only() {
    let mut shadow = Shadow::default();
    assert!(shadow.access(span(0, 10), &stamp(1, 1, 1, &[]), false, true).is_empty());
    assert!(shadow.access(span(0, 10), &stamp(2, 2, 1, &[]), false, true).is_empty());
    let found = shadow.access(span(0, 10), &stamp(3, 3, 1, &[(2, 1)]), true, true);
    assert_eq!(races(&found), [(0, 10, 1, false)], "the second reader was waited for");
}

#[test]
fn what_comes_late_meets_all_that_it_is_not_ordered_with() {
    let mut shadow = Shadow::default();
    // A kernel with the number 1 was launched on lane 1. Before its accesses are known, lane 2 writes twice.
    shadow.access(span(0, 8), &stamp(2, 2, 1, &[]), true, false);
    shadow.access(span(0, 8), &stamp(3, 2, 2, &[(1, 1)]), true, false);
    let found = shadow.access(span(0, 8), &stamp(1, 1, 1, &[]), false, true);
    assert_eq!(races(&found), [(0, 8, 2, false)], "the second write waited for the kernel");
}

#[test]
fn unwritten_is_what_no_write_before_the_reader_wrote() {
    let mut shadow = Shadow::default();
    let (write, reader) = (stamp(1, 1, 1, &[]), stamp(2, 2, 1, &[(1, 1)]));
    shadow.access(span(10, 20), &write, true, true);
    assert_eq!(shadow.unwritten(span(0, 30), &reader), [span(0, 10), span(20, 30)]);
    assert_eq!(shadow.unwritten(span(12, 18), &reader), []);
    shadow.access(span(20, 30), &stamp(3, 3, 1, &[(2, 1)]), true, true);
    assert_eq!(shadow.unwritten(span(20, 30), &reader), [span(20, 30)], "that write came after it");
    shadow.hollow(span(14, 16));
    assert_eq!(shadow.unwritten(span(10, 20), &reader), [span(14, 16)]);
}

#[test]
fn a_write_over_all_leaves_one_segment() {
    let mut shadow = Shadow::default();
    for number in 1..=50 {
        shadow.access(span(number, number + 5), &stamp(number, 1, number, &[]), true, true);
    }
    assert!(shadow.segments.len() > 10);
    shadow.access(span(0, 100), &stamp(60, 1, 60, &[]), true, true);
    assert_eq!(shadow.segments.len(), 1);
    shadow.forget(span(0, 100));
    assert!(shadow.segments.is_empty());
}

/// A generator of small numbers.
struct Chance(u64);

impl Chance {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

struct Done {
    stamp: Arc<Stamp>,
    span: Span,
    writes: bool,
    /// What it touches is told only when that many more operations were asked for: a kernel.
    comes_after: u64,
}

/// A program of operations on a few lanes with waits by chance, each with one access.
fn program(chance: &mut Chance) -> Vec<Done> {
    const LANES: usize = 3;
    let mut clocks = vec![Clock::default(); LANES + 1];
    let mut sequences = [0_u64; LANES + 1];
    let mut done = Vec::new();
    for number in 1..=10 {
        let lane = 1 + chance.below(LANES as u64) as usize;
        if chance.below(3) > 0 {
            let other = clocks[1 + chance.below(LANES as u64) as usize].clone();
            clocks[lane].join(&other);
        }
        sequences[lane] += 1;
        clocks[lane].set(lane, sequences[lane]);
        let seen: Vec<(usize, u64)> = (1..=LANES).map(|of| (of, clocks[lane].at(of))).collect();
        let start = chance.below(40);
        let span = span(start, start + 1 + chance.below(6));
        let comes_after = if chance.below(4) == 0 { number + chance.below(6) } else { 0 };
        let stamp = stamp(number, lane, sequences[lane], &seen);
        done.push(Done { stamp, span, writes: chance.below(2) == 0, comes_after });
    }
    done
}

/// The pairs of numbers that race, earlier first.
fn all_races(done: &[Done]) -> Vec<(u64, u64)> {
    let mut races = Vec::new();
    for (at, later) in done.iter().enumerate() {
        for earlier in &done[..at] {
            let overlap = !later.span.intersection(earlier.span).is_empty();
            if overlap && (later.writes || earlier.writes) && are_unordered(&later.stamp, &earlier.stamp) {
                races.push((earlier.stamp.number, later.stamp.number));
            }
        }
    }
    races
}

/// Beside a comparison of all with all: each race that is found is one, and where there are any, one is found.
#[test]
fn random_programs_are_judged_as_a_comparison_of_all_with_all_does() {
    let (mut chance, mut with_races) = (Chance(1), 0);
    for round in 0..4000 {
        let done = program(&mut chance);
        let expected = all_races(&done);
        let (mut shadow, mut found, mut late) = (Shadow::default(), Vec::new(), Vec::<&Done>::new());
        let mut tell = |one: &Done, pending: &[&Done]| {
            let may_prune = pending.iter().all(|other| other.stamp.number > one.stamp.number);
            for race in shadow.access(one.span, &one.stamp, one.writes, may_prune) {
                let (one, other) = (one.stamp.number, race.earlier.stamp.number);
                found.push((one.min(other), one.max(other)));
            }
        };
        for one in &done {
            if one.comes_after > 0 {
                late.push(one);
            } else {
                tell(one, &late);
            }
            // A kernel runs only when all that is before it has run.
            while let Some(at) = late.iter().position(|kernel| {
                kernel.comes_after <= one.stamp.number
                    && !late
                        .iter()
                        .any(|other| other.stamp.number != kernel.stamp.number && other.stamp.is_before(&kernel.stamp))
            }) {
                let kernel = late.remove(at);
                tell(kernel, &late);
            }
        }
        while !late.is_empty() {
            let kernel = late.remove(0);
            tell(kernel, &late);
        }
        assert!(found.iter().all(|race| expected.contains(race)), "round {round}: {found:?} of {expected:?}");
        assert_eq!(found.is_empty(), expected.is_empty(), "round {round}: of {expected:?}");
        with_races += u32::from(!expected.is_empty());
    }
    assert!((1000..3900).contains(&with_races), "{with_races} of 4000 programs have races");
}
