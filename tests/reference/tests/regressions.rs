//! Sequences on which the library differed from the model once, each with what was wrong. They are also in the corpus,
//! so that C++ does them too.

use std::time::Duration;

use purlin_reference::op::{OP_BYTES, Op};
use purlin_reference::{Backend, Corpus, RustSubject, compare};

fn check(name: &str, lines: &[&str]) {
    let ops = lines.iter().map(|line| Op::parse(line).unwrap_or_else(|| panic!("'{line}' is no operation")));
    let bytes: Vec<u8> = ops.clone().flat_map(|op| op.bytes().expect("has bytes")).collect();
    assert_eq!(Op::sequence(&bytes), ops.collect::<Vec<_>>());
    assert_eq!(bytes.len(), lines.len() * OP_BYTES);
    let file = format!("found-{name}.ops");
    let kept = Corpus::here()
        .load()
        .expect("the corpus can be read")
        .into_iter()
        .any(|kept| kept == (file.clone(), bytes.clone()));
    if !kept {
        let path = Corpus::here().write(&file, &bytes).expect("the corpus can be written");
        panic!("{} was missing or another sequence; it is written now", path.display());
    }
    let mut subject = RustSubject::new();
    for backend in [Backend::Host, Backend::Sim(1), Backend::Sim(2)] {
        let report = compare(&mut subject, backend, &bytes, None, Duration::from_secs(30));
        let report = report.unwrap_or_else(|difference| panic!("{difference}"));
        assert_eq!(report.operations as usize, lines.len() + 2, "the model left something out");
    }
}

/// It waited for itself, and so did all its users.
#[test]
fn a_channel_is_not_fulfilled_with_itself() {
    check("channel-of-itself", &["channel 0 0 1 0", "fulfil 0 0", "read 0 0", "look"]);
    check(
        "channel-of-its-donee",
        &["channel 0 0 1 0", "donate_after 0 1 0", "fulfil 0 1", "look", "fail 0 1 5", "look"],
    );
    let circle = ["channel 0 0 1 0", "channel 1 1 1 0", "fulfil 0 1", "fulfil 1 0", "look"];
    check("channels-in-a-circle", &circle);
}

/// A donee that had got the channel's memory before it was fulfilled was not given the uses of what it was fulfilled
/// with.
#[test]
fn the_uses_of_what_a_channel_is_fulfilled_with_are_waited_for_by_whoever_has_its_memory() {
    let source = ["from_host 0 1 0 9", "new_event 0", "usage 0 0", "release_usage_after 0 0", "channel 1 0 1 0"];
    check(
        "uses-under-a-donation",
        &[&source[..], &["donate 0 1", "fulfil 0 0", "look", "confirm 0 0", "make_of 0 2 1 7", "look"]].concat(),
    );
    check(
        "uses-after-a-donation",
        &[&source[..], &["donate_after 1 2 1", "fulfil 0 0", "donate 0 2", "look"]].concat(),
    );
}

/// The new owner was notified that the memory is free.
#[test]
fn a_released_buffer_is_free_after_its_usage_holds() {
    let begin = ["from_host 0 1 0 9", "usage 0 0", "release 0 0", "look", "new_event 0", "make_of 0 1 1 7", "read 1 1"];
    check("released-under-usage", &[&begin[..], &["look", "release_usage 0", "look"]].concat());
    check(
        "released-under-a-later-use",
        &[&begin[..], &["release_usage_after 0 0", "look", "set_ready 0", "look"]].concat(),
    );
    check("released-under-a-read", &[&begin[..], &["read_hold 0 0", "look"]].concat());
}

/// Holds of the new one failed with OK.
#[test]
fn what_a_failed_buffer_becomes_has_failed_too() {
    check(
        "donated-without-memory",
        &["new_event 0", "create_error 0 1 1 3", "donate_after 0 1 0", "try_usage 0 1", "look"],
    );
}

/// It was taken, if the buffer itself had gone.
#[test]
fn a_channel_takes_its_own_layout_only() {
    let lines = [
        "channel 0 0 3 1",
        "donate_after 0 1 0",
        "drop_buffer 0",
        "from_host 2 3 0 9",
        "fulfil 0 2",
        "read 1 0",
        "look",
    ];
    check("channel-of-another-layout", &lines);
}
