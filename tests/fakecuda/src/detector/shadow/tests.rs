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
    found.iter().map(|race| (race.span.start, race.span.end, race.earlier.number, race.both_write)).collect()
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
