//! The collectives of one process: a member that arrives before the last one waits, and the last one executes the
//! collective for all.
//!
//! A *meeting* is one execution of a collective by one group. It is in the list from the first arrival until the last
//! member arrives, or until a member cannot arrive any more: its run is over, because it failed, was refused or took
//! another way through the program. In this case all members that have arrived fail with the cause. The thread that
//! takes a meeting from the list completes it, outside the lock.
//!
//! A member waits on a thread of the client's pool, and a spare thread takes its place there
//! (`rust/async/src/pool/blocking.rs`), so participants that have not begun can begin, however few threads there are.

use std::fmt::Write;
use std::sync::{Arc, Weak};

use super::data::{Member, exchange};
use super::engine::{CollectiveCall, CollectiveEngine, CollectiveLaunch};
use purlin_async::event::{Event, EventPromise};
use purlin_async::task::census::{self, Occupation, Occupied};
use purlin_base::Error;
use purlin_base::sync::Mutex;

/// The collectives of devices in one process.
///
/// ```
/// use purlin::program::{CollectiveEngine, InProcess};
///
/// let launch = InProcess.begin("step", 7, 2);
/// launch.left(1, &Ok(()));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct InProcess;

impl CollectiveEngine for InProcess {
    fn begin(&self, program: &str, launch_id: i32, participants: u32) -> Arc<dyn CollectiveLaunch> {
        let state = Mutex::new(State { gone: vec![None; participants as usize], meetings: Vec::new() });
        let launch = Arc::new(Rendezvous { program: program.into(), launch_id, state });
        let listed = Arc::downgrade(&launch);
        census::enlist(listed as Weak<dyn Occupied>);
        launch
    }
}

struct Rendezvous {
    program: Box<str>,
    launch_id: i32,
    state: Mutex<State>,
}

struct State {
    /// Indexed by participant: the outcome of its run, if that is over.
    gone: Vec<Option<Result<(), Error>>>,
    meetings: Vec<Meeting>,
}

/// A collective that some members of a group have begun.
struct Meeting {
    /// The address of the command, which all participants share.
    command: usize,
    name: String,
    /// The participants, in the order of ranks, and the bytes of those that have arrived.
    members: Vec<(u32, Option<Member>)>,
    /// Set when the collective is over, for the members that wait.
    over: EventPromise,
}

impl Meeting {
    /// The participants that have arrived, or those that have not.
    fn participants(&self, have_arrived: bool) -> Vec<u32> {
        let is_asked = |(_, arrived): &&(u32, Option<Member>)| arrived.is_some() == have_arrived;
        self.members.iter().filter(is_asked).map(|(participant, _)| *participant).collect()
    }
}

impl Rendezvous {
    /// The error of those that wait for `participant`, whose run is over.
    fn without(&self, name: &str, participant: u32, outcome: &Result<(), Error>) -> Error {
        let what = format!("{name} in launch {} of '{}' lacks participant {participant}", self.launch_id, self.program);
        match outcome {
            Ok(()) => Error::failed_precondition(format!("{what}, which has ended without it")),
            Err(error) => {
                let mut of_all = Error::new(error.code(), format!("{what}, which has failed: {}", error.message()));
                error.payloads().for_each(|(type_url, payload)| of_all.set_payload(type_url, payload));
                of_all
            }
        }
    }

    /// Adds a member's arrays to its meeting. The outcome is the meeting if all members are there, else the event to
    /// wait for.
    ///
    /// # Errors
    /// A member's run is over.
    fn arrive(&self, call: &CollectiveCall<'_>) -> Result<Result<Meeting, Event>, Error> {
        let mut state = self.state.lock();
        let gone = |&&participant: &&u32| state.gone[participant as usize].is_some();
        if let Some(&participant) = call.members.iter().find(gone) {
            let outcome = state.gone[participant as usize].clone().unwrap_or(Ok(()));
            return Err(self.without(&call.collective.to_string(), participant, &outcome));
        }
        let command = std::ptr::from_ref(call.collective).addr();
        let is_it = |meeting: &Meeting| meeting.command == command && meeting.members[0].0 == call.members[0];
        let at = state.meetings.iter().position(is_it).unwrap_or_else(|| {
            let members = call.members.iter().map(|&participant| (participant, None)).collect();
            let over = EventPromise::guarding(c"collective");
            state.meetings.push(Meeting { command, name: call.collective.to_string(), members, over });
            state.meetings.len() - 1
        });
        let meeting = &mut state.meetings[at];
        meeting.members[call.rank].1 = Some(Member { from: call.from.to_vec(), to: call.to.to_vec() });
        if meeting.members.iter().all(|(_, arrived)| arrived.is_some()) {
            return Ok(Ok(state.meetings.swap_remove(at)));
        }
        Ok(Err(meeting.over.event()))
    }
}

impl CollectiveLaunch for Rendezvous {
    fn join(&self, call: &CollectiveCall<'_>) -> Result<(), Error> {
        let meeting = match self.arrive(call)? {
            Ok(meeting) => meeting,
            // The promise guards this member's memory, so that nothing but the end of the meeting completes it.
            Err(over) => return over.wait_uninterruptible(),
        };
        let members: Vec<Member> = meeting.members.into_iter().filter_map(|(_, arrived)| arrived).collect();
        // SAFETY: all members are in this function, with arrays that their commands may access until it returns: the
        // others wait for `over`. The program was validated, and its groups were checked when it was loaded.
        #[allow(unsafe_code, reason = "arrays are accessed by address")]
        unsafe {
            exchange(call.collective, call.arrays, &members);
        }
        meeting.over.set_ready();
        Ok(())
    }

    fn left(&self, participant: u32, outcome: &Result<(), Error>) {
        let mut broken = Vec::new();
        {
            let mut state = self.state.lock();
            state.gone[participant as usize] = Some(outcome.clone());
            let needs_it = |meeting: &mut Meeting| meeting.members.iter().any(|(member, _)| *member == participant);
            broken.extend(state.meetings.extract_if(.., needs_it));
        }
        // Outside the lock, because setting a promise runs waiters.
        for meeting in broken {
            meeting.over.set_error(self.without(&meeting.name, participant, outcome));
        }
    }
}

impl Occupied for Rendezvous {
    fn occupation(&self) -> Occupation {
        let mut text = String::new();
        for meeting in &self.state.lock().meetings {
            let separator = if text.is_empty() { "" } else { "\n" };
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "{separator}program '{}', launch {}: {} waits for participants {:?}; {:?} are there",
                self.program,
                self.launch_id,
                meeting.name,
                meeting.participants(false),
                meeting.participants(true)
            );
        }
        Occupation { text, ..Occupation::default() }
    }
}
