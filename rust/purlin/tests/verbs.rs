//! The table of verbs, tests/behaviours/verbs.tsv, with every verb of values and futures, from every kind of source.
//! tests/cpp/verb_table_test.cc runs the same rows in C++.

mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use purlin::{
    AsyncValue, Error, Event, Executor, Future, InlineExecutor, Promise, SharedPromise, SourceLocation, StatusCode,
    StatusOr, Task, future_on, spawn, try_spawn,
};
use table::{Outcome, code, outcome};

const TABLE: &str = include_str!("../../../tests/behaviours/verbs.tsv");
const PAYLOAD: &str = "purlin.test/party";

struct Row {
    name: &'static str,
    kind: &'static str,
    /// `None`: the verb has no source.
    source: Option<Outcome>,
    when: &'static str,
    executor: &'static str,
    /// `None`: the function is not called, or there is none.
    function: Option<Outcome>,
    code: StatusCode,
    message: &'static str,
    from: &'static str,
}

fn row(cells: [&'static str; 9]) -> Row {
    let [name, kind, source, when, executor, function, result, message, from] = cells;
    let [source, function] = [source, function].map(|cell| (cell != "-").then(|| outcome(cell)));
    Row { name, kind, source, when, executor, function, code: code(result), message, from }
}

fn rows() -> Vec<Row> {
    table::rows(TABLE, 30).into_iter().map(row).collect()
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

    /// What an observer makes of what it is given.
    fn seen(&self, given: Result<&i32, &Error>) -> StatusOr<i32> {
        self.called();
        given.map(|value| value + 1).map_err(Error::clone)
    }

    /// What a function answers that makes a value, which has no promise that could be dropped.
    fn value(&self, value: i32) -> AsyncValue<i32> {
        self.result(value).map_or_else(AsyncValue::new_error, AsyncValue::new_available)
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

type Verbs = Vec<(&'static str, Made)>;

/// What an observer was given, which `attach` attaches.
fn observed(f: &Function, attach: impl FnOnce(Box<dyn FnOnce(Result<&i32, &Error>) + Send>)) -> Made {
    let (seen, f) = (Promise::new(c"observer"), f.clone());
    let made = seen.future().into();
    attach(Box::new(move |given| seen.set(f.seen(given)).unwrap()));
    made
}

/// Every verb of values that the row holds for, by name.
fn of_value(row: &Row, source: &AsyncValue<i32>, f: &Function) -> Verbs {
    let (first, second, third) = (f.clone(), f.clone(), f.clone());
    let has_executor = row.executor != "none";
    let mut made = Verbs::new();
    if row.kind == "observe" {
        made.push(if has_executor {
            ("and_then_on", observed(f, |observer| on_executor!(row, source, and_then_on, observer)))
        } else {
            ("and_then", observed(f, |observer| source.and_then(observer)))
        });
    }
    if row.kind == "all" {
        let call = move |value: &i32| first.result(*value).unwrap();
        made.push(if has_executor {
            ("map_on", on_executor!(row, source, map_on, call).into())
        } else {
            ("map", source.map(call).into())
        });
    }
    if ["all", "fallible"].contains(&row.kind) {
        let call = move |value: &i32| second.result(*value);
        made.push(if has_executor {
            ("try_map_on", on_executor!(row, source, try_map_on, call).into())
        } else {
            ("try_map", source.try_map(call).into())
        });
    }
    // A value has no promise that could be dropped.
    if ["all", "fallible", "flat"].contains(&row.kind) && row.function != Some(Outcome::Drop) {
        let call = move |value: &i32| third.value(*value);
        made.push(if has_executor {
            ("flat_map_on", on_executor!(row, source, flat_map_on, call).into())
        } else {
            ("flat_map", source.flat_map(call).into())
        });
    }
    made
}

/// As [`of_value`], of futures.
fn of_future(row: &Row, source: &Future<i32>, f: &Function) -> Verbs {
    let (first, always, second, third) = (f.clone(), f.clone(), f.clone(), f.clone());
    let has_executor = row.executor != "none";
    let mut made = Verbs::new();
    match row.kind {
        "pass" => {
            made.push(("Future::map_to", source.map_to(42).into()));
            let nested = source.map(|value| Future::ready(value + 1));
            made.push(("Future::flatten", nested.flatten().into()));
            return made;
        }
        "detach" => {
            let detached = match row.executor {
                "runs" => source.detach(&Arc::new(InlineExecutor)),
                _ => source.detach(&Arc::new(Full)),
            };
            let event = detached.ready_event();
            made.push((
                "Future::detach",
                Made { event, value: Box::new(move || detached.wait().ok().map(|got| got + 1)) },
            ));
            return made;
        }
        "observe" => {
            made.push(if has_executor {
                ("Future::on_ready_on", observed(f, |observer| on_executor!(row, source, on_ready_on, observer)))
            } else {
                ("Future::on_ready", observed(f, |observer| source.on_ready(observer)))
            });
            return made;
        }
        _ => {}
    }
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
    let call = move |value: &i32| third.future(*value);
    made.push(if has_executor {
        ("Future::flat_map_on", on_executor!(row, source, flat_map_on, call).into())
    } else {
        ("Future::flat_map", source.flat_map(call).into())
    });
    made
}

/// Every verb without a source.
fn of_tasks(row: &Row, f: &Function) -> Verbs {
    let executor: Arc<dyn Executor> = if row.executor == "runs" { Arc::new(InlineExecutor) } else { Arc::new(Full) };
    let (first, second, third) = (f.clone(), f.clone(), f.clone());
    let mut made: Verbs = vec![
        ("future_on", future_on(&*executor, c"future_on", move || first.result(41)).into()),
        ("try_spawn", try_spawn(Arc::clone(&executor), c"try_spawn", async move { second.result(41) }).into()),
    ];
    // What cannot fail.
    if [None, Some(Outcome::Set(StatusCode::Ok))].contains(&row.function) {
        made.push(("spawn", spawn(executor, c"spawn", async move { third.result(41).unwrap() }).into()));
    }
    made
}

fn check(row: &Row, what: &str, made: &Made) {
    assert!(made.event.is_ready(), "{what}: pending");
    let outcome = made.event.wait();
    table::check_outcome(what, &outcome, row.code, row.message);
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

fn check_calls(row: &Row, what: &str, f: &Function, verbs: usize) {
    let refused = row.executor == "refuses";
    let expected = if row.function.is_none() || refused { 0 } else { verbs };
    assert_eq!(f.calls.load(Ordering::Relaxed), expected, "{what}: calls of {verbs} verbs");
}

/// A source and what completes it.
struct Source<S> {
    kind: &'static str,
    source: S,
    complete: Box<dyn FnOnce()>,
}

impl<S> Source<S> {
    fn new(kind: &'static str, source: S, complete: impl FnOnce() + 'static) -> Self {
        Self { kind, source, complete: Box::new(complete) }
    }
}

/// Every kind of value that comes to be so, or, `before`, is so from the beginning.
fn values(code: StatusCode, when: &str) -> Vec<Source<AsyncValue<i32>>> {
    let result = move || if code == StatusCode::Ok { Ok(41) } else { Err(error_of("source", code)) };
    // Puts the value there.
    let set = |value: &AsyncValue<i32>| {
        let value = value.clone();
        move || assert!(value.set(result()).is_ok())
    };
    // Publishes the value that is there.
    let publish = |value: &AsyncValue<i32>| {
        let value = value.clone();
        move || assert!(result().map_or_else(|error| value.set_error(error), |_| value.publish()))
    };
    let (plain, indirect) = (AsyncValue::new_unconstructed(c"source"), AsyncValue::indirect(c"source"));
    let (constructed, kept) =
        (AsyncValue::new_constructed(c"source", 41), AsyncValue::new_kept_on_error(c"source", 41));
    let (forwarded, inner) = (AsyncValue::indirect(c"forwarded"), AsyncValue::new_unconstructed(c"source"));
    forwarded.forward(&inner).unwrap();
    let mut values = vec![
        Source::new("constructed", constructed.clone(), publish(&constructed)),
        Source::new("kept on error", kept.clone(), publish(&kept)),
        Source::new("unconstructed", plain.clone(), set(&plain)),
        Source::new("indirect", indirect.clone(), set(&indirect)),
        Source::new("forwarded", forwarded, set(&inner)),
    ];
    if when == "before" {
        let complete = result().map_or_else(AsyncValue::new_error, AsyncValue::new_available);
        values.push(Source::new("complete from the beginning", complete, || ()));
        if let Ok(value) = result() {
            values.push(Source::new("shared", AsyncValue::from_shared(Arc::new(value)), || ()));
        }
    }
    values
}

/// Futures of promises, and of every kind of value.
fn futures(outcome: Outcome, when: &str) -> Vec<Source<Future<i32>>> {
    let result = move || match outcome {
        Outcome::Drop => None,
        Outcome::Set(StatusCode::Ok) => Some(Ok(41)),
        Outcome::Set(code) => Some(Err(error_of("source", code))),
    };
    let end = |promise: Promise<i32>| move || result().into_iter().for_each(|result| promise.set(result).unwrap());
    let (plain, linked) = (Promise::new(c"source"), Promise::linked(c"source"));
    let shared = SharedPromise::new(c"source");
    let mut futures = vec![
        Source::new("a promise", plain.future(), end(plain)),
        Source::new("a linked promise", linked.future(), end(linked)),
        Source::new("a shared promise", shared.future(), move || {
            result().into_iter().for_each(|result| shared.set(result).unwrap());
            drop(shared);
        }),
    ];
    if let Outcome::Set(code) = outcome {
        let of_values = values(code, when).into_iter();
        futures.extend(of_values.map(|value| Source::new(value.kind, value.source.into(), value.complete)));
    }
    futures
}

/// Calls the verbs on every source, before it is complete or after, and checks what has become of all of them and how
/// often the function was called. How many these were.
fn check_sources<S>(row: &Row, when: &str, sources: Vec<Source<S>>, verbs: fn(&Row, &S, &Function) -> Verbs) -> usize {
    let mut shown = 0;
    for Source { kind, source, complete } in sources {
        let f = function(row);
        let made = if when == "before" {
            complete();
            verbs(row, &source, &f)
        } else {
            let made = verbs(row, &source, &f);
            complete();
            made
        };
        let what = |verb: &str| format!("{}: {verb} of {kind}, {when}", row.name);
        made.iter().for_each(|(verb, made)| check(row, &what(verb), made));
        check_calls(row, &what("verbs"), &f, made.len());
        shown += made.len();
    }
    shown
}

#[test]
fn values_follow_the_table() {
    let mut shown = 0;
    for row in rows() {
        let Some(Outcome::Set(code)) = row.source else { continue };
        for when in times(&row) {
            shown += check_sources(&row, when, values(code, when), of_value);
        }
    }
    assert!(shown >= 200, "only {shown} times a verb of a row");
}

#[test]
fn futures_follow_the_table() {
    let mut shown = 0;
    for row in rows() {
        let Some(outcome) = row.source else { continue };
        for when in times(&row) {
            shown += check_sources(&row, when, futures(outcome, when), of_future);
        }
    }
    assert!(shown >= 400, "only {shown} times a verb of a row");
}

#[test]
fn tasks_follow_the_table() {
    let mut shown = 0;
    for row in rows().iter().filter(|row| row.kind == "make") {
        let f = function(row);
        let made = of_tasks(row, &f);
        made.iter().for_each(|(verb, made)| check(row, &format!("{}: {verb}", row.name), made));
        check_calls(row, row.name, &f, made.len());
        shown += made.len();
    }
    assert!(shown >= 8, "only {shown} times a verb of a row");
}
