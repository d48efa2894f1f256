//! The table of verbs, tests/behaviours/verbs.tsv, with every verb that makes a value or a future of another.
//! tests/cpp/verb_table_test.cc runs the same rows in C++.

mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use purlin::{
    AsyncValue, Error, Event, Executor, Future, InlineExecutor, Promise, SourceLocation, StatusCode, StatusOr, Task,
};
use table::{Outcome, code, outcome};

const TABLE: &str = include_str!("../../../tests/behaviours/verbs.tsv");
const PAYLOAD: &str = "purlin.test/party";

struct Row {
    name: &'static str,
    kind: &'static str,
    source: Outcome,
    when: &'static str,
    executor: &'static str,
    /// `None`: the function is not called.
    function: Option<Outcome>,
    code: StatusCode,
    message: &'static str,
    from: &'static str,
}

fn row(cells: [&'static str; 9]) -> Row {
    let [name, kind, source, when, executor, function, result, message, from] = cells;
    let (source, function) = (outcome(source), (function != "-").then(|| outcome(function)));
    Row { name, kind, source, when, executor, function, code: code(result), message, from }
}

fn rows() -> Vec<Row> {
    table::rows(TABLE, 10).into_iter().map(row).collect()
}

/// The error of `party`, with a payload and a place of its own.
fn error_of(party: &'static str, code: StatusCode) -> Error {
    let mut error = Error::with_location(code, party, SourceLocation::from_static(c"party", 7));
    error.set_payload(PAYLOAD, party.as_bytes());
    error
}

/// Refuses every task.
struct Full;

impl Executor for Full {
    fn execute(&self, _task: Task) -> Result<(), Error> {
        Err(Error::resource_exhausted("full"))
    }
}

/// One run of a row: the function, which notes that it was called.
#[derive(Clone)]
struct Function {
    calls: Arc<AtomicUsize>,
    answer: Option<Outcome>,
}

impl Function {
    fn called(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// What a function answers that may fail.
    fn result(&self, value: i32) -> StatusOr<i32> {
        self.called();
        match self.answer {
            Some(Outcome::Set(StatusCode::Ok)) => Ok(value + 1),
            Some(Outcome::Set(code)) => Err(error_of("function", code)),
            other => panic!("not to be called, or not to be dropped: {}", other.is_some()),
        }
    }

    /// What a function answers that makes a future.
    fn future(&self, value: i32) -> Future<i32> {
        if self.answer == Some(Outcome::Drop) {
            self.called();
            return Promise::new(c"function").future();
        }
        Future::from_result(self.result(value))
    }
}

/// The verb `method` of `source` on the row's executor.
macro_rules! on_executor {
    ($row:expr, $source:expr, $method:ident, $call:expr) => {
        match $row.executor {
            "runs" => $source.$method(&Arc::new(InlineExecutor), $call),
            _ => $source.$method(&Arc::new(Full), $call),
        }
    };
}

/// What a verb has made: its event and, once that is terminal, its value.
struct Made {
    event: Event,
    value: Box<dyn Fn() -> Option<i32>>,
}

impl From<AsyncValue<i32>> for Made {
    fn from(value: AsyncValue<i32>) -> Self {
        Self { event: value.as_event().clone(), value: Box::new(move || value.get().copied()) }
    }
}

impl From<Future<i32>> for Made {
    fn from(future: Future<i32>) -> Self {
        Self { event: future.ready_event(), value: Box::new(move || future.get().copied()) }
    }
}

/// Every verb of values that the row holds for, by name.
fn of_value(row: &Row, source: &AsyncValue<i32>, f: &Function) -> Vec<(&'static str, Made)> {
    let (first, second, third) = (f.clone(), f.clone(), f.clone());
    let has_executor = row.executor != "none";
    let mut made: Vec<(&'static str, Made)> = Vec::new();
    if row.kind == "all" {
        let call = move |value: &i32| first.result(*value).unwrap();
        made.push(if has_executor {
            ("map_on", on_executor!(row, source, map_on, call).into())
        } else {
            ("map", source.map(call).into())
        });
    }
    if row.kind != "flat" {
        let call = move |value: &i32| second.result(*value);
        made.push(if has_executor {
            ("try_map_on", on_executor!(row, source, try_map_on, call).into())
        } else {
            ("try_map", source.try_map(call).into())
        });
    }
    // A value has no promise that could be dropped.
    if !has_executor && row.function != Some(Outcome::Drop) {
        let call =
            move |value: &i32| third.result(*value).map_or_else(AsyncValue::new_error, AsyncValue::new_available);
        made.push(("flat_map", source.flat_map(call).into()));
    }
    made
}

/// As [`of_value`], of futures.
fn of_future(row: &Row, source: &Future<i32>, f: &Function) -> Vec<(&'static str, Made)> {
    let (first, always, second, third) = (f.clone(), f.clone(), f.clone(), f.clone());
    let has_executor = row.executor != "none";
    let mut made: Vec<(&'static str, Made)> = Vec::new();
    if row.kind == "all" {
        let call = move |value: &i32| first.result(*value).unwrap();
        if has_executor {
            made.push(("Future::map_on", on_executor!(row, source, map_on, call).into()));
        } else {
            made.push(("Future::map", source.map(call).into()));
            made.push(("Future::map_always", source.map_always(move |value| always.result(*value).unwrap()).into()));
        }
    }
    if row.kind != "flat" {
        let call = move |value: &i32| second.result(*value);
        made.push(if has_executor {
            ("Future::try_map_on", on_executor!(row, source, try_map_on, call).into())
        } else {
            ("Future::try_map", source.try_map(call).into())
        });
    }
    if !has_executor {
        made.push(("Future::flat_map", source.flat_map(move |value| third.future(*value)).into()));
    }
    made
}

fn check(row: &Row, verb: &str, when: &str, made: &Made) {
    let what = format!("{}: {verb}, {when}", row.name);
    assert!(made.event.is_ready(), "{what}: pending");
    let outcome = made.event.wait();
    table::check_outcome(&what, &outcome, row.code, row.message);
    assert_eq!((made.value)(), (row.code == StatusCode::Ok).then_some(42), "{what}");
    if row.from != "-" {
        let error = outcome.unwrap_err();
        assert_eq!(error.payload(PAYLOAD), Some(row.from.as_bytes()), "{what}");
        assert_eq!(error.location().to_string(), "party:7", "{what}");
    }
}

fn times(row: &Row) -> Vec<&'static str> {
    ["before", "after"].into_iter().filter(|when| ["any", *when].contains(&row.when)).collect()
}

fn function(row: &Row) -> Function {
    Function { calls: Arc::default(), answer: row.function.or(Some(Outcome::Set(StatusCode::Ok))) }
}

fn check_calls(row: &Row, f: &Function, verbs: usize, when: &str) {
    let refused = row.executor == "refuses";
    let expected = if row.function.is_none() || refused { 0 } else { verbs };
    assert_eq!(f.calls.load(Ordering::Relaxed), expected, "{}, {when}: calls of {verbs} verbs", row.name);
}

#[test]
fn values_follow_the_table() {
    let mut shown = 0;
    for row in rows().iter().filter(|row| row.source != Outcome::Drop) {
        for when in times(row) {
            let Outcome::Set(code) = row.source else { unreachable!("filtered") };
            let source = AsyncValue::new_unconstructed(c"source");
            let set = || match code {
                StatusCode::Ok => assert_eq!(source.emplace(41), Ok(())),
                code => assert!(source.set_error(error_of("source", code))),
            };
            if when == "before" {
                set();
            }
            let f = function(row);
            let made = of_value(row, &source, &f);
            if when == "after" {
                set();
            }
            made.iter().for_each(|(verb, made)| check(row, verb, when, made));
            check_calls(row, &f, made.len(), when);
            shown += made.len();
        }
    }
    assert!(shown >= 30, "only {shown} times a verb of a row");
}

#[test]
fn futures_follow_the_table() {
    let mut shown = 0;
    for row in rows() {
        for when in times(&row) {
            let promise = Promise::new(c"source");
            let source = promise.future();
            let set = || match row.source {
                Outcome::Drop => drop(promise),
                Outcome::Set(StatusCode::Ok) => assert!(promise.set(Ok(41)).is_ok()),
                Outcome::Set(code) => assert!(promise.set(Err(error_of("source", code))).is_ok()),
            };
            let f = function(&row);
            let made = if when == "before" {
                set();
                of_future(&row, &source, &f)
            } else {
                let made = of_future(&row, &source, &f);
                set();
                made
            };
            made.iter().for_each(|(verb, made)| check(&row, verb, when, made));
            check_calls(&row, &f, made.len(), when);
            shown += made.len();
        }
    }
    assert!(shown >= 40, "only {shown} times a verb of a row");
}
