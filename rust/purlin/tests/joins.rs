//! The table of joins, tests/behaviours/joins.tsv, with every verb that joins. tests/cpp/join_table_test.cc runs the
//! same rows in C++.

mod table;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use purlin::{
    CountDown, Error, ErrorPolicy, Event, EventPromise, JoinOptions, Promise, SourceLocation, StatusCode,
    StreamEventMap, after_all, join_futures, run_when_ready, when_all, when_all_with,
};
use table::Outcome;

const TABLE: &str = include_str!("../../../tests/behaviours/joins.tsv");
const POLICIES: [(&str, ErrorPolicy); 4] = [
    ("FirstByIndex", ErrorPolicy::FirstByIndex),
    ("FirstInTime", ErrorPolicy::FirstInTime),
    ("LastInTime", ErrorPolicy::LastInTime),
    ("All", ErrorPolicy::All),
];
const LETTERS: [&str; 4] = ["a", "b", "c", "d"];
const PAYLOAD: &str = "purlin.test/member";

type Step = (usize, Outcome);

struct Row {
    name: &'static str,
    members: usize,
    before: Vec<Step>,
    after: Vec<Step>,
    policies: Vec<ErrorPolicy>,
    fail_fast: Vec<bool>,
    complete: usize,
    code: StatusCode,
    message: &'static str,
    from: Option<usize>,
}

fn steps(cell: &str) -> Vec<Step> {
    let step = |text: &str| {
        let (index, outcome) = text.split_once('=').expect("INDEX=OUTCOME");
        (index.parse().expect("an index"), table::outcome(outcome))
    };
    cell.split_whitespace().map(step).collect()
}

fn row(cells: [&'static str; 10]) -> Row {
    let [name, members, before, after, policy, fail_fast, complete, result, message, from] = cells;
    let policies: Vec<_> = POLICIES.iter().filter(|(name, _)| ["any", name].contains(&policy)).collect();
    let fail_fast: Vec<_> =
        [("no", false), ("yes", true)].into_iter().filter(|(name, _)| ["any", name].contains(&fail_fast)).collect();
    assert!(!policies.is_empty() && !fail_fast.is_empty(), "{name}");
    Row {
        name,
        members: members.parse().expect("a number of members"),
        before: steps(before),
        after: steps(after),
        policies: policies.into_iter().map(|(_, policy)| *policy).collect(),
        fail_fast: fail_fast.into_iter().map(|(_, value)| value).collect(),
        complete: complete.parse().expect("a number of steps"),
        code: table::code(result),
        message,
        from: from.parse().ok(),
    }
}

/// Each row with each of its policies, with and without `fail_fast`, as it says.
fn each(mut check: impl FnMut(&Row, JoinOptions)) {
    for row in table::rows(TABLE, 40).into_iter().map(row) {
        for &policy in &row.policies {
            for &fail_fast in &row.fail_fast {
                check(&row, JoinOptions { policy, fail_fast });
            }
        }
    }
}

/// The rows that a verb without options can show.
fn each_by_default(mut check: impl FnMut(&Row)) {
    each(|row, options| {
        if options == JoinOptions::default() {
            check(row);
        }
    });
}

fn place(index: usize) -> SourceLocation {
    SourceLocation::from_static(c"member", u32::try_from(index).unwrap() + 1)
}

fn outcome_of(index: usize, code: StatusCode) -> Result<(), Error> {
    if code == StatusCode::Ok {
        return Ok(());
    }
    let mut error = Error::with_location(code, LETTERS[index], place(index));
    error.set_payload(PAYLOAD, LETTERS[index].as_bytes());
    Err(error)
}

/// Takes one step after another; checks when the join completes, with what, and that this stays.
fn check_result(row: &Row, verb: &str, mut take: impl FnMut(Step), result: impl Fn() -> Option<Result<(), Error>>) {
    let what = format!("{verb}: {}", row.name);
    for (taken, &step) in row.after.iter().enumerate() {
        assert_eq!(result().is_some(), taken >= row.complete, "{what}, after {taken} steps");
        take(step);
    }
    let outcome = result().unwrap_or_else(|| panic!("{what}: not complete at the end"));
    table::check_outcome(&what, &outcome, row.code, row.message);
    if let Err(error) = outcome {
        let payload = row.from.map(|index| LETTERS[index].as_bytes());
        assert_eq!(error.payload(PAYLOAD), payload, "{what}: {error}");
        assert!(row.from.is_none_or(|index| error.location() == place(index)), "{what}: {error}");
    }
}

/// Members that are events.
struct Events(Vec<Option<EventPromise>>, Vec<Event>);

impl Events {
    fn of(row: &Row) -> Self {
        let promises: Vec<_> = (0..row.members).map(|_| EventPromise::new(c"member")).collect();
        let events = promises.iter().map(EventPromise::event).collect();
        let mut this = Self(promises.into_iter().map(Some).collect(), events);
        row.before.iter().for_each(|&step| this.take(step));
        this
    }

    fn take(&mut self, (index, outcome): Step) {
        let promise = self.0[index].take().expect("one step for each member");
        if let Outcome::Set(code) = outcome {
            promise.set(outcome_of(index, code));
        }
    }
}

fn result_of(event: &Event) -> Option<Result<(), Error>> {
    event.is_ready().then(|| event.wait())
}

#[test]
fn of_events() {
    each(|row, options| {
        let mut members = Events::of(row);
        let joined = when_all_with(&members.1, options);
        check_result(row, "when_all_with", |step| members.take(step), || result_of(&joined));
    });
    each_by_default(|row| {
        let mut members = Events::of(row);
        let joined = when_all(&members.1);
        check_result(row, "when_all", |step| members.take(step), || result_of(&joined));
    });
}

#[test]
fn of_streams() {
    each_by_default(|row| {
        let (mut members, last) = (Events::of(row), StreamEventMap::new());
        for (stream, event) in members.1.drain(..).enumerate() {
            last.record(stream, event);
        }
        let joined = last.all();
        check_result(row, "StreamEventMap::all", |step| members.take(step), || result_of(&joined));
    });
}

#[test]
fn of_futures() {
    each(|row, options| {
        let mut promises: Vec<_> = (0..row.members).map(|_| Some(Promise::new(c"member"))).collect();
        let futures: Vec<_> = promises.iter().flatten().map(Promise::future).collect();
        let mut take = |(index, outcome): Step| {
            let promise = promises[index].take().expect("one step for each member");
            if let Outcome::Set(code) = outcome {
                assert!(promise.set(outcome_of(index, code).map(|()| index)).is_ok());
            }
        };
        row.before.iter().for_each(|&step| take(step));
        let joined = join_futures(&futures, options);
        drop(futures);
        check_result(row, "join_futures", take, || joined.is_ready().then(|| joined.wait().map(|_| ())));
        if row.code == StatusCode::Ok {
            let values = joined.wait().expect("it is ready");
            assert!(values.iter().copied().eq(0..row.members), "{}", row.name);
        }
    });
}

#[test]
fn of_counted_steps() {
    each(|row, options| {
        let steps = row.before.iter().chain(&row.after);
        if steps.clone().any(|(_, outcome)| *outcome == Outcome::Drop) {
            return;
        }
        let count = CountDown::with_options(c"members", row.members, options);
        let event = count.event();
        let take = |(index, outcome): Step| {
            let Outcome::Set(code) = outcome else { unreachable!("looked for above") };
            count.count_down_at(index, outcome_of(index, code));
        };
        let mut before = row.before.clone();
        before.sort_by_key(|(index, _)| *index);
        before.into_iter().for_each(take);
        check_result(row, "CountDown", take, || result_of(&event));
    });
}

/// What does not mind errors: complete after the last member, and OK.
#[test]
fn of_what_does_not_mind_errors() {
    each_by_default(|row| {
        let row = Row {
            name: row.name,
            before: row.before.clone(),
            after: row.after.clone(),
            complete: row.after.len(),
            code: StatusCode::Ok,
            message: "",
            from: None,
            policies: Vec::new(),
            fail_fast: Vec::new(),
            members: row.members,
        };
        let mut members = Events::of(&row);
        let joined = after_all(&members.1);
        check_result(&row, "after_all", |step| members.take(step), || result_of(&joined));
        let (mut members, ran) = (Events::of(&row), Arc::new(AtomicBool::new(false)));
        let flag = Arc::clone(&ran);
        run_when_ready(&members.1, move || assert!(!flag.swap(true, Ordering::Relaxed), "once"));
        let result = || ran.load(Ordering::Relaxed).then_some(Ok(()));
        check_result(&row, "run_when_ready", |step| members.take(step), result);
    });
}
