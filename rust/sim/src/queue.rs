//! The copies that are not over: what each waits for, the streams, and what happens next.
//!
//! States of a copy: *waiting* for events of others (and for copies that wait so themselves); then *armed*, on a
//! stream, behind what was armed there before; *running*, from one moment of the simulated clock to another; gone. Or
//! *doomed*: an event that it waited for has failed, and it only waits for the rest of them, to say which error counts.
//!
//! A copy is armed after the copies that it waits for, so streams, which are first in, first out, cannot wait for each
//! other in a circle. And whatever leads from one copy's end to another's arming by way of other events (joins, tasks,
//! promises) has happened when the other is armed. So of two armed copies, one is ordered before the other only if a
//! path of events of the backend's own leads there; that is what the detector looks for. A wait that it does not see is
//! never taken for a missing one; a missing wait is not seen if the first copy happened to be over.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use purlin_async::Event;
use purlin_base::Error;
use purlin_base::fault::{self, Site};
use purlin_device::backend::OperationPromise;

use crate::SimOptions;
use crate::chance::Chance;
use crate::detector::Detector;
use crate::report::Party;
use crate::touched::Touched;

/// A copy's number.
pub(crate) type Number = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Waiting,
    /// On a stream of `(device, stream)`.
    Armed((usize, u64)),
    Running {
        stream: (usize, u64),
        end_ns: u64,
    },
    Doomed,
}

/// A copy that is not over.
pub(crate) struct Queued {
    /// `None` while its work is done, outside the lock.
    pub(crate) promise: Option<OperationPromise>,
    /// What it does, in words.
    what: String,
    /// What `promise` owes, to be asked for its waiters.
    event: Event,
    /// Where its bytes are; known once it is armed.
    touched: Option<Arc<Touched>>,
    stage: Stage,
    /// The copies of ours that it waits for.
    waits_for: Vec<Number>,
    /// The copies that wait for it, and the place of its event among their dependencies.
    dependents: Vec<(Number, usize)>,
    /// Events of others that are pending, and one while we still attach to them.
    foreign_left: usize,
    /// Of `waits_for`: neither armed nor doomed.
    unarmed_left: usize,
    /// Of `waits_for`: not over.
    unfinished_left: usize,
    /// The failed dependency with the least index.
    failed: Option<(usize, Error)>,
    /// What the detector says against it.
    objection: Option<String>,
    asked_ns: u64,
    /// When it could have begun, were its stream free.
    ready_ns: u64,
    /// Its bytes are being touched, outside the lock.
    busy: bool,
    /// Its caller does nothing else meanwhile.
    pub(crate) caller_waits: bool,
}

impl Queued {
    pub(crate) fn party(&self, number: Number, writes: bool) -> Party {
        Party::Copy { number, what: self.what.clone(), writes, asked_ns: self.asked_ns }
    }

    /// Where its bytes are, while it is armed or runs.
    pub(crate) fn touched(&self) -> Option<&Arc<Touched>> {
        self.touched.as_ref().filter(|_| matches!(self.stage, Stage::Armed(_) | Stage::Running { .. }))
    }

    fn note_failure(&mut self, index: usize, error: Error) {
        if self.failed.as_ref().is_none_or(|(least, _)| index < *least) {
            self.failed = Some((index, error));
        }
    }
}

#[derive(Default)]
struct Stream {
    queue: VecDeque<Number>,
    free_ns: u64,
}

/// What the driver has to do next, outside the lock.
pub(crate) enum Step {
    /// The copy runs from now on; its destination is to be spoiled.
    Begin(Number, Arc<Touched>),
    /// Its work is to be done; then it is over.
    End(Number, Box<OperationPromise>),
    /// It is over without having run.
    Fail(Box<Queued>, Error),
}

/// See the module.
pub(crate) struct Queue {
    chance: Chance,
    streams_per_device: u64,
    fail_on_report: bool,
    loses_waits: bool,
    pub(crate) closed: bool,
    pub(crate) now_ns: u64,
    next_number: Number,
    copies: BTreeMap<Number, Queued>,
    by_event: HashMap<usize, Number>,
    streams: BTreeMap<(usize, u64), Stream>,
    /// Doomed, and nothing is left to wait for.
    failing: VecDeque<Number>,
    pub(crate) detector: Detector,
}

impl Queue {
    pub(crate) fn new(options: &SimOptions) -> Self {
        Self {
            chance: Chance(options.seed),
            streams_per_device: options.streams_per_device.max(1) as u64,
            fail_on_report: options.fail_on_report,
            loses_waits: options.lose_waits,
            closed: false,
            now_ns: 0,
            next_number: 0,
            copies: BTreeMap::new(),
            by_event: HashMap::new(),
            streams: BTreeMap::new(),
            failing: VecDeque::new(),
            detector: Detector::default(),
        }
    }

    /// A copy behind `dependencies`: its number, and those of them that are pending and not ours, of which
    /// [`arrived`](Self::arrived) must be notified; and once more when all of them are attached to.
    pub(crate) fn add(
        &mut self,
        event: Event,
        promise: OperationPromise,
        dependencies: &[Event],
        caller_waits: bool,
    ) -> (Number, Vec<(usize, Event)>) {
        let number = self.next_number;
        self.next_number += 1;
        let mut copy = Queued {
            what: format!("{:?}", promise.operation()),
            promise: Some(promise),
            event,
            touched: None,
            stage: Stage::Waiting,
            waits_for: Vec::new(),
            dependents: Vec::new(),
            foreign_left: 1,
            unarmed_left: 0,
            unfinished_left: 0,
            failed: None,
            objection: None,
            asked_ns: self.now_ns,
            ready_ns: self.now_ns,
            busy: false,
            caller_waits,
        };
        let mut foreign = Vec::new();
        for (index, dependency) in dependencies.iter().enumerate() {
            if dependency.is_ready() {
                if let Some(error) = dependency.error() {
                    copy.note_failure(index, error);
                }
                continue;
            }
            let ours = self.by_event.get(&dependency.as_raw().addr());
            if self.loses_waits && ours.is_some() {
                continue;
            }
            match ours.and_then(|before| Some((*before, self.copies.get_mut(before)?))) {
                Some((before, earlier)) => {
                    earlier.dependents.push((number, index));
                    copy.waits_for.push(before);
                    copy.unfinished_left += 1;
                    copy.unarmed_left += usize::from(earlier.stage == Stage::Waiting);
                }
                None => foreign.push((index, dependency.clone())),
            }
        }
        copy.foreign_left += foreign.len();
        self.by_event.insert(copy.event.as_raw().addr(), number);
        self.copies.insert(number, copy);
        (number, foreign)
    }

    /// An event that `number` waits for is terminal, with the error of the dependency `index` if it has failed.
    pub(crate) fn arrived(&mut self, number: Number, failure: Option<(usize, Error)>) {
        let Some(copy) = self.copies.get_mut(&number) else { return };
        if let Some((index, error)) = failure {
            copy.note_failure(index, error);
        }
        copy.foreign_left -= 1;
        if copy.foreign_left == 0 && copy.unarmed_left == 0 {
            self.arm(number);
        }
    }

    /// Arms `number`, and the copies that only waited for that.
    fn arm(&mut self, number: Number) {
        let mut ready = BTreeSet::from([number]);
        while let Some(number) = ready.pop_first() {
            self.arm_one(number);
            let dependents = self.copies.get(&number).map(|copy| copy.dependents.clone()).unwrap_or_default();
            for (dependent, _) in dependents {
                let Some(copy) = self.copies.get_mut(&dependent) else { continue };
                copy.unarmed_left -= 1;
                if copy.unarmed_left == 0 && copy.foreign_left == 0 {
                    ready.insert(dependent);
                }
            }
        }
    }

    fn arm_one(&mut self, number: Number) {
        let Some(copy) = self.copies.get_mut(&number) else { return };
        copy.ready_ns = self.now_ns;
        if copy.failed.is_some() {
            copy.stage = Stage::Doomed;
            if copy.unfinished_left == 0 {
                self.failing.push_back(number);
            }
            return;
        }
        let Some(promise) = &copy.promise else { unreachable!("its work is not done yet") };
        let touched = Arc::new(Touched::by(promise.operation()));
        let stream = (touched.device, self.chance.stream(number, self.streams_per_device));
        (copy.stage, copy.touched) = (Stage::Armed(stream), Some(Arc::clone(&touched)));
        self.streams.entry(stream).or_default().queue.push_back(number);
        self.compare(number, &touched);
    }

    /// Reports the armed copies that touch what `number` touches, and that no event orders.
    fn compare(&mut self, number: Number, touched: &Touched) {
        let mut objection = None;
        if self.loses_waits {
            return;
        }
        for (&other_number, other) in &self.copies {
            let Some(others) = (other_number != number).then(|| other.touched()).flatten() else { continue };
            let Some(clash) = touched.clash(others) else { continue };
            if self.is_ordered(number, other_number) {
                continue;
            }
            let later = self.copies[&number].party(number, clash.writes);
            let earlier = other.party(other_number, clash.other_writes);
            let text = self.detector.unordered(clash, later, earlier, self.now_ns);
            objection.get_or_insert(text);
        }
        if let Some(copy) = self.copies.get_mut(&number) {
            copy.objection = objection;
        }
    }

    /// Whether a path of our events leads from one to the other. A copy waits for earlier ones only.
    fn is_ordered(&self, one: Number, another: Number) -> bool {
        let (earlier, later) = (one.min(another), one.max(another));
        let mut seen = BTreeSet::from([later]);
        let mut open = vec![later];
        while let Some(number) = open.pop() {
            for &before in self.copies.get(&number).map_or(&[][..], |copy| &copy.waits_for) {
                if before == earlier {
                    return true;
                }
                if before > earlier && seen.insert(before) {
                    open.push(before);
                }
            }
        }
        false
    }

    /// True if [`next`](Self::next) has something to do.
    pub(crate) fn can_step(&self) -> bool {
        self.soonest().is_some()
    }

    /// True while the bytes of a copy are being touched, outside the lock.
    pub(crate) fn is_busy(&self) -> bool {
        self.copies.values().any(|copy| copy.busy)
    }

    /// The copy at which something happens next, and when; of several at the same time, the one with the least number.
    fn soonest(&self) -> Option<(u64, Number)> {
        let failing = self.failing.front().map(|&number| (self.now_ns, number));
        let heads = self.streams.values().filter_map(|stream| {
            let &number = stream.queue.front()?;
            let copy = &self.copies[&number];
            let at_ns = match copy.stage {
                _ if copy.busy || copy.unfinished_left > 0 => return None,
                Stage::Running { end_ns, .. } => end_ns,
                _ if copy.failed.is_some() => copy.ready_ns,
                _ => copy.ready_ns.max(stream.free_ns) + self.chance.latency_ns(number),
            };
            Some((at_ns, number))
        });
        failing.into_iter().chain(heads).min()
    }

    /// What happens next; the clock is there then.
    pub(crate) fn next(&mut self) -> Option<Step> {
        let (at_ns, number) = self.soonest()?;
        self.now_ns = self.now_ns.max(at_ns);
        let copy = self.copies.get_mut(&number)?;
        if let Some((_, error)) = copy.failed.take() {
            return self.fail(number, error);
        }
        let Some(touched) = copy.touched.clone() else { unreachable!("it is on a stream, so it was armed") };
        match copy.stage {
            Stage::Running { .. } => {
                if let Err(error) = fault::point(Site::RunSimulated) {
                    return self.fail(number, error);
                }
                let Some(promise) = copy.promise.take() else { unreachable!("it is not busy") };
                copy.busy = true;
                Some(Step::End(number, Box::new(promise)))
            }
            Stage::Armed(stream) => {
                let what = copy.party(number, false);
                let found = self.detector.begins(&touched, &what, self.now_ns);
                let copy = self.copies.get_mut(&number)?;
                if let (true, Some(text)) = (self.fail_on_report, copy.objection.take().or(found)) {
                    return self.fail(number, Error::failed_precondition(text));
                }
                let end_ns = self.now_ns + self.chance.duration_ns(number, touched.size_bytes);
                copy.stage = Stage::Running { stream, end_ns };
                copy.busy = true;
                Some(Step::Begin(number, touched))
            }
            Stage::Waiting | Stage::Doomed => {
                unreachable!("such a copy is on no stream, and a doomed one has an error")
            }
        }
    }

    fn fail(&mut self, number: Number, error: Error) -> Option<Step> {
        let copy = self.remove(number, Some(&error))?;
        Some(Step::Fail(Box::new(copy), error))
    }

    /// The destination was spoiled.
    pub(crate) fn begun(&mut self, number: Number) {
        if let Some(copy) = self.copies.get_mut(&number) {
            copy.busy = false;
        }
    }

    /// The work was done, or has failed. Whether the copy's caller waits for it.
    pub(crate) fn ended(&mut self, number: Number, result: &Result<(), Error>) -> bool {
        if let (Ok(()), Some(touched)) = (result, self.copies.get(&number).and_then(|copy| copy.touched.clone())) {
            self.detector.done(&touched);
        }
        self.remove(number, result.as_ref().err()).is_some_and(|copy| copy.caller_waits)
    }

    /// Takes a copy out, and notifies those that wait for it.
    fn remove(&mut self, number: Number, error: Option<&Error>) -> Option<Queued> {
        let copy = self.copies.remove(&number)?;
        self.by_event.remove(&copy.event.as_raw().addr());
        match copy.stage {
            Stage::Armed(stream) | Stage::Running { stream, .. } => {
                let stream = self.streams.entry(stream).or_default();
                stream.queue.retain(|&queued| queued != number);
                stream.free_ns = self.now_ns;
            }
            Stage::Doomed => self.failing.retain(|&queued| queued != number),
            Stage::Waiting => {}
        }
        for &(dependent, index) in &copy.dependents {
            let Some(waiting) = self.copies.get_mut(&dependent) else { continue };
            waiting.unfinished_left -= 1;
            waiting.ready_ns = self.now_ns;
            if let Some(error) = error {
                waiting.note_failure(index, error.clone());
            }
            if waiting.stage == Stage::Doomed && waiting.unfinished_left == 0 {
                self.failing.push_back(dependent);
            }
        }
        Some(copy)
    }

    /// No copy is added after this. Returns what can be cancelled, in order. A copy whose bytes are being touched is
    /// left to the thread that does so.
    pub(crate) fn close(&mut self) -> Vec<Queued> {
        self.closed = true;
        let numbers: Vec<Number> =
            self.copies.iter().filter(|(_, copy)| !copy.busy).map(|(&number, _)| number).collect();
        numbers.into_iter().filter_map(|number| self.remove(number, None)).collect()
    }

    /// A copy that could go on, and for whose event a thread waits.
    pub(crate) fn demanded(&self) -> Option<Number> {
        let is_wanted = |copy: &Queued| copy.stage != Stage::Waiting && (copy.caller_waits || copy.event.has_waiters());
        self.copies.iter().find(|(_, copy)| is_wanted(copy)).map(|(&number, _)| number)
    }

    pub(crate) fn is_over(&self, number: Number) -> bool {
        !self.copies.contains_key(&number)
    }

    /// How many copies are not over.
    pub(crate) fn len(&self) -> usize {
        self.copies.len()
    }

    /// The armed copies, with where their bytes are.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = (Number, &Queued, &Touched)> {
        self.copies.iter().filter_map(|(&number, copy)| Some((number, copy, &**copy.touched()?)))
    }
}
