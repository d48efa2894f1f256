//! Every combination of states of up to three arguments: the outcome of the run, and the state of the arguments after
//! it.

mod fixture;

use fixture::*;
use purlin_base::{Error, StatusCode};
use purlin_device::{Buffer, Client};
use purlin_program::{Command, ExecuteOptions, LoadedExecutable, Operand, ProgramBuilder};

/// The state of an argument before a call, and whether the call donates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Live,
    Donated,
    /// Donated, but code outside Purlin has a reference to it.
    Referenced,
    /// It has failed, and has memory.
    Failed,
    /// The same, and it is donated.
    FailedDonated,
    /// It failed before it had memory.
    Empty,
    /// The same, and it is donated.
    EmptyDonated,
    Deleted,
    /// The buffer of the first argument once more, which is read.
    Shared,
    /// The same, and it is donated.
    SharedDonated,
}

use State::*;

const STATES: [State; 10] =
    [Live, Donated, Referenced, Failed, FailedDonated, Empty, EmptyDonated, Deleted, Shared, SharedDonated];

impl State {
    fn is_donated(self) -> bool {
        matches!(self, Donated | Referenced | FailedDonated | EmptyDonated | SharedDonated)
    }

    fn is_shared(self) -> bool {
        matches!(self, Shared | SharedDonated)
    }

    fn has_failed(self) -> bool {
        matches!(self, Failed | FailedDonated | Empty | EmptyDonated)
    }
}

/// `y[i] = x[i] + 1` for each argument, in its memory where it is donated.
fn program(client: &Client, states: &[State]) -> LoadedExecutable {
    let mut builder = ProgramBuilder::new("states");
    for state in states {
        if state.is_donated() {
            let x = builder.donated_parameter(bytes(16));
            builder.push(kernel(add(1), vec![Operand::read_write(x)]));
        } else {
            let (x, y) = (builder.parameter(bytes(16)), builder.result(bytes(16)));
            builder.push(Command::Copy { from: x, to: y }).push(kernel(add(1), vec![Operand::read_write(y)]));
        }
    }
    load(client, builder.build().unwrap())
}

fn argument(client: &Client, state: State, number: u8, first: Option<&Buffer>) -> Buffer {
    let error = || Error::not_found(format!("argument {number}"));
    match state {
        Failed | FailedDonated => {
            let failed = purlin_async::Event::from_error(error());
            let memory = buffer(client, &[0; 16]).release().unwrap().0;
            Buffer::from_raw(memory, bytes(16).shape(), None, &failed).unwrap()
        }
        Empty | EmptyDonated => Buffer::error(error(), bytes(16).shape(), &space(client)),
        Shared | SharedDonated => first.expect("not the first").clone(),
        _ => buffer(client, &[number; 16]),
    }
}

fn check(client: &Client, states: &[State]) {
    let loaded = program(client, states);
    let mut arguments: Vec<Buffer> = Vec::new();
    for (number, &state) in states.iter().enumerate() {
        let first = arguments.first().cloned();
        arguments.push(argument(client, state, number as u8, first.as_ref()));
    }
    // A shared argument has the state of the first one.
    let effective = |number: usize| if states[number].is_shared() { states[0] } else { states[number] };
    let references: Vec<_> = (0..states.len())
        .filter(|&number| states[number] == Referenced)
        .map(|number| arguments[number].external_reference().unwrap())
        .collect();
    (0..states.len()).filter(|&number| states[number] == Deleted).for_each(|number| arguments[number].delete());
    let counts: Vec<_> = arguments.iter().map(Buffer::hold_counts).collect();
    let gone: Vec<_> = arguments.iter().map(Buffer::is_deleted).collect();

    let uses_of_first: Vec<State> = states
        .iter()
        .enumerate()
        .filter(|&(number, state)| number == 0 || state.is_shared())
        .map(|(_, s)| *s)
        .collect();
    let clashes = uses_of_first.len() > 1 && uses_of_first.iter().any(|state| state.is_donated());
    // A buffer that cannot be donated is copied or fails by itself, so it conflicts with no other argument.
    let clashes = clashes && !matches!(states[0], Referenced | Empty | EmptyDonated);
    let is_refused = clashes || (0..states.len()).any(|number| effective(number) == Deleted);

    let outcome = loaded.execute(&arguments, &ExecuteOptions::default());
    if is_refused {
        let error = outcome.unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument, "{states:?}: {error}");
        assert_eq!(arguments.iter().map(Buffer::hold_counts).collect::<Vec<_>>(), counts, "{states:?}");
        assert_eq!(arguments.iter().map(Buffer::is_deleted).collect::<Vec<_>>(), gone, "{states:?}");
        return;
    }
    let execution = outcome.unwrap_or_else(|error| panic!("{states:?}: {error}"));
    let failed = (0..states.len()).find(|&number| effective(number).has_failed());
    for (number, output) in execution.outputs.iter().enumerate() {
        match failed {
            None => {
                let from = if states[number].is_shared() { 0 } else { number as u8 };
                assert_eq!(output.to_vec::<u8>().unwrap(), [from + 1; 16], "{states:?}");
            }
            Some(first) => {
                let error = output.to_vec::<u8>().unwrap_err();
                let from = if states[first].is_shared() { 0 } else { first };
                assert_eq!((error.code(), error.message()), (StatusCode::NotFound, &*format!("argument {from}")));
            }
        }
    }
    assert_eq!(execution.done.wait().is_err(), failed.is_some());
    drop(references);
    for (number, argument) in arguments.iter().enumerate() {
        let all = states.iter().enumerate().filter(|&(other, _)| arguments[other].identity() == argument.identity());
        let is_donated = all.map(|(_, state)| *state).any(|state| state.is_donated() && state != Referenced);
        // A donated argument with an external reference was copied.
        let is_donated = is_donated && effective(number) != Referenced;
        assert_eq!(argument.is_deleted(), is_donated, "{states:?}: argument {number}");
        assert_eq!(argument.hold_counts(), (0, 0), "{states:?}: argument {number}");
    }
}

#[test]
fn every_combination_of_states_of_up_to_three_arguments() {
    on_each_once(|client| {
        let first = STATES.iter().filter(|state| !state.is_shared());
        let mut count = 0;
        for &a in first {
            check(client, &[a]);
            for b in STATES {
                check(client, &[a, b]);
                for c in STATES {
                    check(client, &[a, b, c]);
                    count += 1;
                }
            }
        }
        assert_eq!(count, 800);
    });
}
