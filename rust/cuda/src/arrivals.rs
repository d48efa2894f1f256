//! The parts of a download that have arrived, for a caller that waits: the thread of the caller empties them itself,
//! because those of the runner may all be waiting. If they come faster than it empties them, the runner helps.

use std::collections::VecDeque;

use purlin_array::Section;
use purlin_async::EventPromise;
use purlin_base::Error;
use purlin_base::sync::Mutex;

use crate::Unit;
use crate::copy::LOOKS;
use crate::staging::Chunk;
use crate::stream::Role;

/// A part that is in its chunk, or why not.
pub(crate) struct Arrival {
    pub(crate) part: Section,
    pub(crate) chunk: Chunk,
    pub(crate) outcome: Result<(), Error>,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Arrivals(Mutex<State>);

#[derive(Default)]
struct State {
    arrived: VecDeque<Arrival>,
    /// Parts that are enqueued, or have arrived.
    expected: usize,
    /// The caller sleeps until this is set.
    sleeper: Option<EventPromise>,
}

impl State {
    fn take(&mut self) -> Option<Arrival> {
        let arrival = self.arrived.pop_front()?;
        self.expected -= 1;
        Some(arrival)
    }
}

impl Arrivals {
    /// There is one part more, which will [arrive](Self::add).
    pub(crate) fn expect_one(&self) {
        self.0.lock().expected += 1;
    }

    /// A part has arrived. Whether the caller has others to empty before.
    pub(crate) fn add(&self, arrival: Arrival) -> bool {
        let mut state = self.0.lock();
        state.arrived.push_back(arrival);
        let (sleeper, is_behind_others) = (state.sleeper.take(), state.arrived.len() > 1);
        drop(state);
        match sleeper {
            Some(sleeper) => _ = sleeper.set_ready(),
            None => return is_behind_others,
        }
        false
    }

    /// The oldest that has arrived, to be emptied.
    pub(crate) fn take(&self) -> Option<Arrival> {
        self.0.lock().take()
    }

    /// As [`take`](Self::take), and waits for it. `None`: nothing is on its way. For the caller only.
    pub(crate) fn wait(&self, unit: &Unit) -> Option<Arrival> {
        let stream = unit.gpu.stream(Role::ToHostToo);
        for _ in 0..LOOKS {
            if let Some(arrival) = self.take() {
                return Some(arrival);
            }
            if self.0.lock().expected == 0 {
                return None;
            }
            if !stream.look(&unit.gpu, None) {
                std::thread::yield_now();
            }
        }
        unit.poller.wake();
        loop {
            let mut state = self.0.lock();
            if let Some(arrival) = state.take() {
                return Some(arrival);
            }
            if state.expected == 0 {
                return None;
            }
            let sleeper = EventPromise::guarding(c"part of a copy");
            let woken = sleeper.event();
            state.sleeper = Some(sleeper);
            drop(state);
            // It tells nothing but that.
            _ = woken.wait_uninterruptible();
        }
    }
}
