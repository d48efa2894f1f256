//! Sequences for one thread, compared operation by operation.

use std::fmt;
use std::time::Duration;

use crate::corpus::{Corpus, Coverage};
use crate::model::{FAMILIES, Memories, World, Wrong};
use crate::op::{Arg, OP_BYTES, Op, Verb};
use crate::random::Random;
use crate::shrink::shrink;
use crate::subject::{Backend, Subject};

/// How long a machine may take for what must happen.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long, while a difference that was seen is made smaller.
const SHORT_PATIENCE: Duration = Duration::from_millis(100);

/// Where the library and the model part.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Where.
    pub backend: Backend,
    /// The bytes of the sequence.
    pub bytes: Vec<u8>,
    /// The operations that were done, with the model's answers; the last is the one that differs.
    pub done: Vec<(Op, String)>,
    /// The library's answer to that.
    pub answer: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the library differs from the model on {} after:", self.backend)?;
        for (op, answer) in &self.done {
            writeln!(f, "  {op:<30} {answer}")?;
        }
        write!(f, "  {:<30} {}   <- the library", "", self.answer)
    }
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Operations that both did.
    pub operations: u64,
    /// Sequences of them.
    pub sequences: u64,
    /// What they met.
    pub coverage: Coverage,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} operations in {} sequences, {} different pairs of operation and outcome",
            self.operations,
            self.sequences,
            self.coverage.len()
        )
    }
}

/// The sequence that `bytes` are, with the model's answers: without what would wait for ever or makes no sense, and
/// with an end.
fn script(memories: Memories, bytes: &[u8], wrong: Option<Wrong>, report: &mut Report) -> (Vec<(Op, String)>, bool) {
    let (mut world, mut right) = (World::new(memories, wrong), World::new(memories, None));
    let (mut script, mut new) = (Vec::new(), false);
    for op in Op::sequence(bytes).into_iter().chain([Op::plain(Verb::Look), Op::plain(Verb::End)]) {
        let state = world.state_of_operand(op);
        if let Some(answer) = world.step_beside(&mut right, op) {
            new |= report.coverage.meet(op, &state, &answer);
            script.push((op, answer));
        }
    }
    (script, new)
}

/// Runs one sequence.
///
/// # Errors
/// Where they differ.
pub fn compare(
    subject: &mut dyn Subject,
    backend: Backend,
    bytes: &[u8],
    wrong: Option<Wrong>,
    patience: Duration,
) -> Result<Report, Box<Difference>> {
    let mut report = Report::default();
    let (mut done, _) = script(backend.memories(), bytes, wrong, &mut report);
    (report.operations, report.sequences) = (done.len() as u64, 1);
    subject.begin(backend);
    match subject.script(&done, patience) {
        None => Ok(report),
        Some((index, answer)) => {
            done.truncate(index + 1);
            Err(Box::new(Difference { backend, bytes: bytes.to_vec(), done, answer }))
        }
    }
}

/// Sequences by a seed, after those of the corpus.
pub struct Fuzz<'a> {
    /// What is compared.
    pub subject: &'a mut dyn Subject,
    /// Where; what has a seed gets another one for each sequence.
    pub backend: Backend,
    /// Which sequences.
    pub seed: u64,
    /// At least so many operations.
    pub operations: u64,
    /// Keep what meets something new.
    pub grow: bool,
    /// Where what is kept was and will be.
    pub corpus: &'a Corpus,
}

impl fmt::Debug for Fuzz<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fuzz").finish_non_exhaustive()
    }
}

impl Fuzz<'_> {
    /// Runs them.
    ///
    /// # Errors
    /// The first difference, made small.
    pub fn run(&mut self) -> Result<Report, Box<Difference>> {
        let mut total = Report::default();
        let mut random = Random::new(self.seed);
        let files = self.corpus.load().unwrap_or_default();
        let mut kept = files.into_iter();
        while total.operations < self.operations {
            let from_corpus = kept.next();
            let is_new_sequence = from_corpus.is_none();
            let bytes = from_corpus.map_or_else(|| sequence(&mut random), |(_, bytes)| bytes);
            let backend = self.backend.with_another_seed(&mut random);
            let (script, new) = script(backend.memories(), &bytes, None, &mut total);
            total.operations += script.len() as u64;
            total.sequences += 1;
            self.subject.begin(backend);
            if self.subject.script(&script, PATIENCE).is_some() {
                return Err(self.small(backend, &bytes));
            }
            if new && self.grow && is_new_sequence {
                let _ = self.corpus.keep("met-", &bytes);
            }
        }
        Ok(total)
    }

    /// A difference that was seen, made small.
    fn small(&mut self, backend: Backend, bytes: &[u8]) -> Box<Difference> {
        let chunks: Vec<&[u8]> = bytes.chunks_exact(OP_BYTES).collect();
        let mut last = None;
        let subject = &mut *self.subject;
        shrink(&chunks, |chunks| match compare(subject, backend, &chunks.concat(), None, SHORT_PATIENCE) {
            Ok(_) => false,
            Err(difference) => {
                last = Some(difference);
                true
            }
        });
        last.or_else(|| compare(self.subject, backend, bytes, None, PATIENCE).err()).unwrap_or_else(|| {
            let answer = "it differed once, and did not again".to_owned();
            let (done, _) = script(backend.memories(), bytes, None, &mut Report::default());
            Box::new(Difference { backend, bytes: bytes.to_vec(), done, answer })
        })
    }
}

/// A sequence: of any bytes, or of a few of them again and again, so that the same slots meet. In every fourth a
/// program runs several times.
fn sequence(random: &mut Random) -> Vec<u8> {
    let count = 20 + random.below(140) as usize;
    let mut bytes = random.bytes(count * OP_BYTES);
    if random.below(2) == 0 {
        // Few slots: what is asked for is more often there.
        for one in bytes.chunks_exact_mut(OP_BYTES) {
            one[1] %= 3;
            one[2] %= 3;
        }
    }
    if random.below(4) == 0 {
        run_again(random, &mut bytes);
    }
    bytes
}

/// In the place of some operations, in this order: an array, a program for it, and its runs, each on the last one's
/// result.
fn run_again(random: &mut Random, sequence: &mut [u8]) {
    let verbs = [Verb::FromHost, Verb::Load].into_iter().chain([Verb::Run; 6]);
    let count = sequence.len() / OP_BYTES;
    let begin = random.below(count as u64 - 16) as usize;
    let mut places: Vec<usize> = (begin..begin + 16).collect();
    while places.len() > 8 {
        places.remove(random.below(places.len() as u64) as usize);
    }
    // Half of them in the first memory, by a program that is the device's where that has kernels of its own.
    let of_device = random.below(2) == 0;
    let families: Vec<u8> = (0..).zip(FAMILIES).filter(|(_, family)| family.is_of_device).map(|(at, _)| at).collect();
    for (verb, place) in verbs.zip(places) {
        let one = &mut sequence[place * OP_BYTES..][..OP_BYTES];
        one[0] = verb.byte();
        // The first slot of each table; what is chosen besides stays any.
        for (index, _) in verb.args().iter().enumerate().filter(|(_, arg)| !matches!(arg, Arg::Choice(_))) {
            one[index + 1] = 0;
        }
        match verb {
            Verb::FromHost if of_device => one[4] -= one[4] % 3,
            Verb::Load if of_device => one[3] = families[usize::from(one[3]) % families.len()],
            _ => {}
        }
    }
}
