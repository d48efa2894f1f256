//! What a launch has a device do where bytes of the device decide how it goes on: lists of commands, and choices
//! between them.

use std::fmt;

use purlin_base::status::{Error, StatusOr};
use smallvec::SmallVec;

use super::{Access, CommandList, Place};

/// One step of a [`CommandFlow`].
#[derive(Debug)]
#[non_exhaustive]
pub enum FlowStep {
    /// The device does these commands; then comes the next step.
    Commands(CommandList),
    /// Bytes that the steps before have written choose the next step, by its number. The number of all steps is the
    /// end.
    Choose {
        /// Where the bytes are.
        by: Choice,
        /// The steps to choose from: two for a flag, at least one for an index.
        targets: Vec<usize>,
    },
    /// That step comes next.
    GoTo(usize),
}

/// The bytes that choose.
///
/// ```
/// use purlin::backend::{Choice, Place};
///
/// let choice = Choice::Index(Place::begin_of(0));
/// assert_eq!(choice.size_bytes(), 4);
/// // A number out of range chooses the last.
/// assert_eq!([0, 2, -1].map(|number: i32| choice.of(&number.to_ne_bytes(), 3)), [0, 2, 2]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Choice {
    /// One byte: any value but 0 chooses the first target, 0 the second.
    Flag(Place),
    /// An `i32`: the number of the target. A number out of range chooses the last.
    Index(Place),
}

impl Choice {
    /// Where the bytes are.
    #[must_use]
    pub const fn place(self) -> Place {
        match self {
            Self::Flag(place) | Self::Index(place) => place,
        }
    }

    /// How many there are.
    #[must_use]
    pub const fn size_bytes(self) -> usize {
        match self {
            Self::Flag(_) => 1,
            Self::Index(_) => 4,
        }
    }

    /// The number of the target, of `count`, that these bytes choose.
    ///
    /// # Panics
    /// There are fewer bytes than [`size_bytes`](Self::size_bytes), or no target.
    #[must_use]
    pub fn of(self, bytes: &[u8], count: usize) -> usize {
        assert!(count > 0, "nothing to choose from");
        match self {
            Self::Flag(_) => usize::from(bytes[0] == 0),
            Self::Index(_) => {
                let number = i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                usize::try_from(number).unwrap_or(usize::MAX).min(count - 1)
            }
        }
    }
}

/// Steps that a device does from the first to the end. The host reads what chooses once the steps before are over, and
/// enqueues the next ones then.
///
/// ```
/// use purlin::backend::{Choice, Command, CommandFlow, CommandList, FillPattern, FlowStep, Place};
///
/// // While byte 0 of range 0 is not 0, it is cleared: at most once.
/// let clear = Command::Fill { to: Place::begin_of(0), size_bytes: 1, pattern: FillPattern::Byte(0) };
/// let flow = CommandFlow::new(vec![
///     FlowStep::Choose { by: Choice::Flag(Place::begin_of(0)), targets: vec![1, 3] },
///     FlowStep::Commands(CommandList::new(vec![clear])?),
///     FlowStep::GoTo(0),
/// ])?;
/// assert_eq!(flow.steps().len(), 3);
/// # Ok::<(), purlin::Error>(())
/// ```
pub struct CommandFlow(Vec<FlowStep>);

impl CommandFlow {
    /// The steps, in their order.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the step: a target is behind the end, a choice has too few targets, or steps go round
    /// without a choice.
    pub fn new(steps: Vec<FlowStep>) -> StatusOr<Self> {
        let count = steps.len();
        for (number, step) in steps.iter().enumerate() {
            let refuse = |why: String| Err(Error::invalid_argument(format!("step {number} of {count}: {why}")));
            let targets = match step {
                FlowStep::Commands(_) => &[][..],
                FlowStep::Choose { by: Choice::Flag(_), targets } if targets.len() != 2 => {
                    return refuse(format!("a flag chooses from 2, and not from {}", targets.len()));
                }
                FlowStep::Choose { targets, .. } if targets.is_empty() => {
                    return refuse("there is nothing to choose from".to_owned());
                }
                FlowStep::Choose { targets, .. } => targets,
                FlowStep::GoTo(target) => std::slice::from_ref(target),
            };
            if let Some(target) = targets.iter().find(|&&target| target > count) {
                return refuse(format!("there is no step {target} to go to"));
            }
        }
        let flow = Self(steps);
        match (0..count).find(|&number| flow.goes_round(number)) {
            Some(number) => {
                Err(Error::invalid_argument(format!("step {number} of {count} comes again without a choice")))
            }
            None => Ok(flow),
        }
    }

    /// Whether steps that go back come to `first` again before any choice.
    fn goes_round(&self, first: usize) -> bool {
        // Only what goes back can: so all others are not followed.
        let FlowStep::GoTo(mut at) = self.0[first] else { return false };
        if at > first {
            return false;
        }
        for _ in 0..self.0.len() {
            match self.0.get(at) {
                _ if at == first => return true,
                None | Some(FlowStep::Choose { .. }) => return false,
                Some(FlowStep::GoTo(target)) => at = *target,
                Some(FlowStep::Commands(_)) => at += 1,
            }
        }
        true
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> &[FlowStep] {
        &self.0
    }

    /// The lists among them.
    pub fn lists(&self) -> impl Iterator<Item = &CommandList> {
        self.0.iter().filter_map(|step| match step {
            FlowStep::Commands(list) => Some(list),
            _ => None,
        })
    }

    /// What chooses among them.
    pub fn choices(&self) -> impl Iterator<Item = Choice> {
        self.0.iter().filter_map(|step| match step {
            FlowStep::Choose { by, .. } => Some(*by),
            _ => None,
        })
    }

    /// That a launch with ranges of these sizes has what the steps need.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the range and the numbers.
    pub(crate) fn check(&self, ranges: impl ExactSizeIterator<Item = (Access, usize)>) -> Result<(), Error> {
        let ranges: SmallVec<[(Access, usize); 16]> = ranges.collect();
        for list in self.lists() {
            list.check(ranges.iter().copied())?;
        }
        for choice in self.choices() {
            let (Place { range, offset_bytes }, size_bytes) = (choice.place(), choice.size_bytes());
            let there = ranges.get(range).map_or(0, |&(_, there)| there);
            if offset_bytes.checked_add(size_bytes).is_none_or(|end| end > there) {
                return Err(Error::invalid_argument(format!(
                    "a choice by {size_bytes} bytes at {offset_bytes} of range {range} is launched with {there} bytes"
                )));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for CommandFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Command, FillPattern};
    use super::*;

    fn nothing() -> FlowStep {
        FlowStep::Commands(CommandList::new(Vec::new()).unwrap())
    }

    fn flag(targets: &[usize]) -> FlowStep {
        FlowStep::Choose { by: Choice::Flag(Place { range: 1, offset_bytes: 7 }), targets: targets.to_vec() }
    }

    #[test]
    fn what_would_never_end_or_goes_nowhere_is_refused() {
        let why = |steps| CommandFlow::new(steps).unwrap_err().message().to_owned();
        assert_eq!(why(vec![flag(&[0])]), "step 0 of 1: a flag chooses from 2, and not from 1");
        let by = Choice::Index(Place::begin_of(0));
        let nothing_to_choose = vec![nothing(), FlowStep::Choose { by, targets: vec![] }];
        assert_eq!(why(nothing_to_choose), "step 1 of 2: there is nothing to choose from");
        assert_eq!(why(vec![flag(&[0, 2])]), "step 0 of 1: there is no step 2 to go to");
        assert_eq!(why(vec![FlowStep::GoTo(5)]), "step 0 of 1: there is no step 5 to go to");
        assert_eq!(why(vec![FlowStep::GoTo(0)]), "step 0 of 1 comes again without a choice");
        let round = vec![nothing(), FlowStep::GoTo(3), FlowStep::GoTo(0), nothing(), FlowStep::GoTo(2)];
        assert_eq!(why(round), "step 2 of 5 comes again without a choice");
        let good = vec![nothing(), flag(&[2, 4]), nothing(), FlowStep::GoTo(0)];
        assert_eq!(CommandFlow::new(good).unwrap().lists().count(), 2);
        // Back into what goes round elsewhere.
        let good = vec![flag(&[1, 3]), FlowStep::GoTo(0), FlowStep::GoTo(1), FlowStep::GoTo(2)];
        assert_eq!(CommandFlow::new(good).unwrap().choices().count(), 1);
    }

    #[test]
    fn ranges_are_as_long_as_lists_and_choices_need() {
        let fill = Command::Fill { to: Place::begin_of(0), size_bytes: 4, pattern: FillPattern::Byte(1) };
        let list = FlowStep::Commands(CommandList::new(vec![fill]).unwrap());
        let flow = CommandFlow::new(vec![list, flag(&[2, 2])]).unwrap();
        let why =
            |ranges: &[(Access, usize)]| flow.check(ranges.iter().copied()).map_err(|error| error.message().to_owned());
        let (written, read) = ((Access::Write, 4), (Access::Read, 8));
        assert_eq!(why(&[written, read]), Ok(()));
        let short = "a choice by 1 bytes at 7 of range 1 is launched with 7 bytes";
        assert_eq!(why(&[written, (Access::Read, 7)]), Err(short.into()));
        let none = "a choice by 1 bytes at 7 of range 1 is launched with 0 bytes";
        assert_eq!(why(&[written]), Err(none.into()));
        let read_only = "commands that write range 0 are launched with one that is only read";
        assert_eq!(why(&[read, read]), Err(read_only.into()));
    }

    #[test]
    fn bytes_choose_as_programs_say() {
        let (flag, index) = (Choice::Flag(Place::begin_of(0)), Choice::Index(Place::begin_of(0)));
        assert_eq!([0, 1, 255].map(|byte: u8| flag.of(&[byte], 2)), [1, 0, 0]);
        let numbers = [0, 1, 2, i32::MAX, -1, i32::MIN];
        assert_eq!(numbers.map(|number| index.of(&number.to_ne_bytes(), 2)), [0, 1, 1, 1, 1, 1]);
    }
}
