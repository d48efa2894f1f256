use super::*;
use crate::backend::{Piece, Share};
use purlin_async::InlineExecutor;
use purlin_base::status::StatusCode;

impl Share for InlineExecutor {
    fn share(&self, count: usize, _grain: usize, piece: &Piece<'_>) -> Result<(), Error> {
        piece(0..count)
    }
}

fn new_accounts() -> Arc<InFlight> {
    InFlight::new(Box::new(InlineExecutor))
}

/// An event that happens with `after`, or fails when the client ends.
fn held(accounts: &Arc<InFlight>, after: &Event) -> Event {
    let promise = EventPromise::new(c"held");
    let event = promise.event();
    let then = move |outcome: &Result<(), Error>| _ = promise.set(outcome.clone());
    accounts.hold(after, after, Gated::Named(Label::new(c"work")), Box::new(then));
    event
}

fn why() -> EndReason {
    EndReason(Error::deadline_exceeded("too late"))
}

#[test]
fn a_gate_happens_or_fails_with_what_it_waits_for() {
    let accounts = new_accounts();
    for outcome in [Ok(()), Err(Error::aborted("x"))] {
        let user = EventPromise::new(c"user");
        let gate = held(&accounts, &user.event());
        assert!(!gate.is_ready());
        user.set(outcome.clone());
        assert_eq!(gate.wait(), outcome);
    }
    assert!(accounts.end(&why()).is_empty());
}

#[test]
fn the_end_fails_the_gates_that_are_there_and_those_that_come() {
    let accounts = new_accounts();
    let user = EventPromise::new(c"user");
    let place = format!("{}:{}", file!(), line!() - 1);
    let make = || held(&accounts, &user.event());
    let before = make();
    assert_eq!(accounts.end(&why()), [format!("'work', which waited for 'user' (made at {place})")]);
    for gate in [before, make()] {
        let error = gate.wait().unwrap_err();
        assert_eq!(error.code(), StatusCode::DeadlineExceeded);
        assert_eq!(error.message(), format!("too late: 'work', which waited for 'user' (made at {place})"));
    }
    user.set_ready();
    assert!(accounts.end(&why()).is_empty());
}

#[test]
fn it_is_idle_when_the_last_operation_is_over() {
    let accounts = new_accounts();
    assert!(accounts.idle().is_ready());
    let (first, second) = (accounts.begin().unwrap(), accounts.begin().unwrap());
    let idle = [accounts.idle(), accounts.idle()];
    drop(first);
    assert!(!idle[0].is_ready());
    let third = accounts.go_on();
    drop(second);
    assert!(!idle[0].is_ready());
    drop(third);
    assert!(idle.iter().all(Event::is_ready));
    assert_eq!(accounts.count(), 0);
}

#[test]
fn closed_accounts_take_nothing_new_but_let_it_go_on() {
    let accounts = new_accounts();
    let user = EventPromise::new(c"user");
    let pending = accounts.begin().unwrap();
    accounts.close();
    assert!(accounts.refusal().is_some());
    assert_eq!(accounts.begin().err().unwrap().code(), StatusCode::FailedPrecondition);
    assert_eq!(
        accounts.until_end(&user.event(), Label::new(c"x")).err().unwrap().code(),
        StatusCode::FailedPrecondition
    );
    assert_eq!(accounts.until_end(&Event::ready(), Label::new(c"x")).map(|event| event.is_ready()), Ok(true));
    let gate = held(&accounts, &user.event());
    user.set_ready();
    assert_eq!(gate.wait(), Ok(()));
    drop(pending);
    assert!(accounts.idle().is_ready());
}

#[test]
fn an_event_until_the_end_is_an_operation() {
    let accounts = new_accounts();
    let user = EventPromise::new(c"user");
    let event = accounts.until_end(&user.event(), Label::new(c"ready")).unwrap();
    assert_eq!(accounts.count(), 1);
    let idle = accounts.idle();
    let seen = idle.clone();
    event.on_ready(move |_status| assert!(!seen.is_ready(), "it is over after its waiters"));
    assert_eq!(accounts.end(&why()).len(), 1);
    assert!(event.is_ready() && idle.is_ready());
}

#[test]
fn a_gate_is_known_as_what_it_waits_for() {
    let accounts = new_accounts();
    let stream = purlin_async::event::DefinitionStream { stream: 7, sequence_number: 3 };
    let user = EventPromise::with_definition_stream(c"user", stream);
    let gate = accounts.until_end(&user.event(), Label::new(c"ready")).unwrap();
    assert_eq!((gate.label(), gate.definition_stream()), (Label::new(c"user"), Some(stream)));
    assert_eq!(gate.location().to_string(), user.event().location().to_string());
    user.set_ready();
    assert_eq!(gate.wait(), Ok(()));
}
