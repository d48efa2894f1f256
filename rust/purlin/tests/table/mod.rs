//! What the tests of tables share: tests/behaviours/*.tsv, whose rows both languages run.

use purlin::{Error, StatusCode};

/// What becomes of a promise, or what a function answers.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Outcome {
    Drop,
    /// OK or an error.
    Set(StatusCode),
}

/// The outcome that a cell names.
pub(crate) fn outcome(cell: &str) -> Outcome {
    match cell {
        "ok" => Outcome::Set(StatusCode::Ok),
        "drop" => Outcome::Drop,
        name => Outcome::Set(code(name)),
    }
}

/// The code whose name a cell has.
pub(crate) fn code(name: &str) -> StatusCode {
    let known = (0..17).map(StatusCode::from_raw).find(|code| code.name() == name);
    known.unwrap_or_else(|| panic!("no code '{name}'"))
}

/// The rows of a table, without comments and the heading: `at_least` rows of `COLUMNS` cells.
pub(crate) fn rows<const COLUMNS: usize>(table: &'static str, at_least: usize) -> Vec<[&'static str; COLUMNS]> {
    let cells = |line: &'static str| {
        let cells = line.split('\t').collect::<Vec<_>>();
        cells.try_into().unwrap_or_else(|_| panic!("not {COLUMNS} columns: {line}"))
    };
    let rows: Vec<_> = table.lines().filter(|line| !line.starts_with('#')).skip(1).map(cells).collect();
    assert!(rows.len() >= at_least, "the table has {} rows", rows.len());
    rows
}

/// The code is that of the outcome, and `cell` has the message itself, or '~' and a part of it; nothing for OK.
pub(crate) fn check_outcome(what: &str, outcome: &Result<(), Error>, code: StatusCode, cell: &str) {
    let (said, message) =
        outcome.as_ref().map_or_else(|error| (error.code(), error.message()), |()| (StatusCode::Ok, ""));
    assert_eq!(said, code, "{what}: {outcome:?}");
    match cell.strip_prefix('~') {
        Some(part) => assert!(message.contains(part), "{what}: {message}"),
        None => assert_eq!(message, cell, "{what}"),
    }
}
