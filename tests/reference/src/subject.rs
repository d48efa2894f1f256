//! What is compared with the model.

use std::time::Duration;

use crate::model::Memories;
use crate::op::Op;
use crate::random::Random;

/// Where the library runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Memory of the host, copies by two workers.
    Host,
    /// Simulated streams in the order that a seed decides, which fail a copy that lacks a wait.
    Sim(u64),
    /// CUDA: on the fake driver, whose operations begin later by what a seed decides, and whose detector reports a
    /// missing wait; where `scripts/gpu` says so, on the machine's GPUs.
    Cuda(u64),
}

impl Backend {
    /// By its name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        match name {
            "host" => Some(Self::Host),
            "sim" => Some(Self::Sim(0)),
            "cuda" => Some(Self::Cuda(0)),
            _ => None,
        }
    }

    /// The same, by a seed that this one and a random number make.
    pub(crate) fn with_another_seed(self, random: &mut Random) -> Self {
        match self {
            Self::Host => Self::Host,
            Self::Sim(seed) => Self::Sim(seed ^ random.any()),
            Self::Cuda(seed) => Self::Cuda(seed ^ random.any()),
        }
    }

    pub(crate) fn memories(self) -> Memories {
        match self {
            Self::Host | Self::Sim(_) => Memories::Host,
            Self::Cuda(_) => Memories::Device,
        }
    }
}

/// `sim 7`
impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host => f.write_str("host 0"),
            Self::Sim(seed) => write!(f, "sim {seed}"),
            Self::Cuda(seed) => write!(f, "cuda {seed}"),
        }
    }
}

/// The library, driven by operations. Every answer is text in the model's form; an answer of another form is a
/// difference.
pub trait Subject {
    /// Forgets everything and begins anew.
    fn begin(&mut self, backend: Backend);

    /// Any operation but `look` and `end`.
    fn apply(&mut self, op: Op) -> String;

    /// Waits until what can be seen is one of `wanted`, which it answers; at the `end`, all slots are emptied before.
    /// Waits for `patience` at most, which decides nothing but how long a failure takes, and how slow a machine may be.
    ///
    /// # Errors
    /// What was seen instead.
    fn settle(&mut self, end: bool, wanted: &[String], patience: Duration) -> Result<usize, String>;

    /// Both lists side by side, and their answers. A thread that holds something for use or donation answers "held" to
    /// whatever could wait.
    fn side_by_side(&mut self, ops: [&[Op]; 2]) -> [Vec<String>; 2];

    /// A sequence with the model's answers: the first difference, by index, and what was answered instead.
    fn script(&mut self, script: &[(Op, String)], patience: Duration) -> Option<(usize, String)> {
        use crate::op::Verb;
        for (index, (op, wanted)) in script.iter().enumerate() {
            match op.verb {
                Verb::Look | Verb::End => {
                    if let Err(seen) = self.settle(op.verb == Verb::End, std::slice::from_ref(wanted), patience) {
                        return Some((index, seen));
                    }
                }
                _ => {
                    let answer = self.apply(*op);
                    if answer != *wanted {
                        return Some((index, answer));
                    }
                }
            }
        }
        None
    }
}

/// Whether an operation may wait for the end of another hold.
pub(crate) fn may_wait(op: Op) -> bool {
    use crate::op::Verb::{
        Bitcast, CopyInto, CopyTo, Donate, DonateAfter, Execute, External, Fulfil, Read, ReadRaw, Run, TakeUsage,
    };
    matches!(
        op.verb,
        TakeUsage
            | External
            | Donate
            | DonateAfter
            | Bitcast
            | CopyTo
            | CopyInto
            | Read
            | ReadRaw
            | Fulfil
            | Run
            | Execute
    )
}
