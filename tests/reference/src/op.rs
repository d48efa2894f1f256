//! Operations: what a sequence is made of, and how any string of bytes is one.
//!
//! A world has tables of slots (buffers, promises, holds, ...). An operation is a verb and up to six small numbers:
//! slots of these tables, and choices. Seven bytes make an operation; every value of them is one, so files of a corpus
//! are plain bytes and can be cut anywhere. Operations that two threads run side by side see the first slots of a table
//! both, which they only read, and keep what they make in slots of their own.

use std::fmt;

/// What an argument is: a slot that is read, one that is written, or a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// Slot of a buffer that is used.
    Buffer,
    /// Slot of a buffer that is replaced.
    NewBuffer,
    /// Slot of an event's promise that is used; an empty one stands for an event that has happened.
    Promise,
    /// Slot of an event's promise that is replaced.
    NewPromise,
    /// Slot of the promise of a channel.
    Channel,
    /// Slot of a usage hold.
    Usage,
    /// Slot of an external reference.
    External,
    /// Slot of a donation hold.
    Donation,
    /// Slot of raw memory that was given away, with the event that says when it is free.
    Memory,
    /// Slot of a copy to the host.
    Read,
    /// Slot of a loaded program that is used.
    Program,
    /// Slot of a loaded program that is replaced.
    NewProgram,
    /// A number below this.
    Choice(u8),
}

/// How many slots both threads see, and how many each has of its own.
#[must_use]
pub const fn slots(arg: Arg) -> (u8, u8) {
    match arg {
        Arg::Buffer | Arg::NewBuffer => (3, 3),
        Arg::Promise | Arg::NewPromise => (2, 2),
        Arg::Channel | Arg::Memory | Arg::External | Arg::Donation => (0, 2),
        Arg::Usage | Arg::Read => (0, 3),
        Arg::Program | Arg::NewProgram => (1, 1),
        Arg::Choice(below) => (0, below),
    }
}

/// Slots that a table has, for two threads.
#[must_use]
pub const fn table(arg: Arg) -> usize {
    let (shared, own) = slots(arg);
    shared as usize + 2 * own as usize
}

macro_rules! verbs {
    ($($verb:ident $name:literal $weight:literal $pair:literal [$($arg:expr),*],)*) => {
        /// What is done; `include/purlin` has the words.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the names are the functions', and the table below is the documentation")]
        pub enum Verb { $($verb),* }

        /// Verb, its name, how often it is chosen (of a thousand or so), whether two threads do it side by side, its
        /// arguments.
        pub const VERBS: &[(Verb, &str, u32, bool, &[Arg])] =
            &[$((Verb::$verb, $name, $weight, $pair, &[$($arg),*])),*];
    };
}

use Arg::{
    Buffer as B, Channel as C, Choice, Donation as D, External as X, Memory as M, NewBuffer as NB, NewProgram as NE,
    NewPromise as NP, Program as E, Promise as P, Read as R, Usage as U,
};

/// See [`crate::model::shape_of`].
const SHAPE: Arg = Choice(14);
/// Kinds of errors, see [`crate::model::CODES`].
const CODE: Arg = Choice(3);
const SEED: Arg = Choice(255);
/// See [`crate::model::FAMILIES`].
const FAMILY: Arg = Choice(9);

verbs! {
    NewEvent "new_event" 40 true [NP],
    SetReady "set_ready" 40 true [P],
    SetError "set_error" 12 true [P, CODE, SEED],
    DropPromise "drop_promise" 8 true [NP],
    FromHost "from_host" 70 true [NB, SHAPE, Choice(32), SEED],
    FromRawAfter "from_raw_after" 50 false [NB, SHAPE, P, SEED],
    Uninitialized "uninitialized" 15 false [NB, SHAPE, Choice(2)],
    CreateError "create_error" 12 false [NB, SHAPE, CODE, SEED],
    Token "token" 6 false [NB, P],
    Channel "channel" 30 false [NB, C, SHAPE, Choice(2)],
    Fulfil "fulfil" 30 false [C, B],
    Fail "fail" 6 false [C, CODE, SEED],
    DropChannel "drop_channel" 5 false [C],
    TryUsage "try_usage" 25 true [U, B],
    TakeUsage "usage" 25 true [U, B],
    ReleaseUsage "release_usage" 35 true [U],
    ReleaseUsageAfter "release_usage_after" 20 true [U, P],
    ReadHold "read_hold" 25 true [U, R],
    External "external" 15 true [X, B],
    DropExternal "drop_external" 25 true [X],
    TryDonate "try_donate" 25 true [D, B],
    Donate "donate" 25 true [D, B],
    Confirm "confirm" 25 true [D, M],
    GiveBack "give_back" 20 true [D],
    DonateAfter "donate_after" 30 true [B, NB, P],
    Bitcast "bitcast" 30 true [B, NB, SHAPE, Choice(2)],
    CopyTo "copy_to" 40 true [B, NB, Choice(4)],
    CopyInto "copy_into" 40 false [B, B, NB],
    Read "read" 70 true [B, R],
    ReadRaw "read_raw" 30 true [B, R, Choice(12), Choice(12)],
    Delete "delete" 15 true [B],
    Release "release" 15 true [B, M],
    MakeOf "make_of" 40 true [M, NB, SHAPE, SEED],
    DropMemory "drop_memory" 8 true [M],
    DropBuffer "drop_buffer" 15 true [NB],
    CloneBuffer "clone" 15 true [B, NB],
    IsDeleted "is_deleted" 12 true [B],
    Counts "counts" 12 true [B],
    Load "load" 40 true [NE, B, FAMILY],
    Run "run" 60 true [E, B, NB, Choice(12)],
    Execute "execute" 70 false [E, B, B, NB, NB, Choice(24)],
    Quiesce "quiesce" 8 false [E],
    DropProgram "drop_program" 8 true [NE],
    Look "look" 100 false [],
    End "end" 0 false [],
}

impl Verb {
    fn row(self) -> &'static (Verb, &'static str, u32, bool, &'static [Arg]) {
        &VERBS[self as usize]
    }

    /// As the table says.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// As the table says.
    #[must_use]
    pub fn args(self) -> &'static [Arg] {
        self.row().4
    }

    /// A byte that chooses it, in a sequence of one thread; the end has none.
    pub(crate) fn byte(self) -> u8 {
        let mut bytes = 0..=u8::MAX;
        let chosen = bytes.find(|&byte| Op::of_one([byte, 0, 0, 0, 0, 0, 0]).verb == self);
        chosen.expect("every verb but the end has one")
    }
}

/// A verb and its arguments; `args[i]` belongs to `verb.args()[i]`, the others are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Op {
    /// What is done.
    pub verb: Verb,
    /// To which slots, and how.
    pub args: [u8; 6],
}

/// `fulfil 0 3`
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verb.name())?;
        self.verb.args().iter().zip(self.args).try_for_each(|(_, arg)| write!(f, " {arg}"))
    }
}

/// Bytes of one operation.
pub const OP_BYTES: usize = 7;

impl Op {
    /// Without arguments.
    #[must_use]
    pub const fn plain(verb: Verb) -> Self {
        Self { verb, args: [0; 6] }
    }

    /// What seven bytes mean when one thread does everything.
    #[must_use]
    pub fn of_one(bytes: [u8; OP_BYTES]) -> Self {
        Self::decode(
            bytes,
            |_| true,
            |arg, value| {
                let (shared, own) = slots(arg);
                value % (shared + own)
            },
        )
    }

    /// The operation that its `Display` wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let name = words.next()?;
        let verb = VERBS.iter().find(|row| row.1 == name)?.0;
        let mut args = [0; 6];
        for (arg, word) in args.iter_mut().zip(words) {
            *arg = word.parse().ok()?;
        }
        Some(Self { verb, args })
    }

    /// Seven bytes that [`of_one`](Self::of_one) takes for this; none for the end.
    #[must_use]
    pub fn bytes(self) -> Option<[u8; OP_BYTES]> {
        let [a, b, c, d, e, f] = self.args;
        (0..=255).map(|byte| [byte, a, b, c, d, e, f]).find(|&bytes| Self::of_one(bytes) == self)
    }

    /// What seven bytes mean to `thread` of two.
    #[must_use]
    pub fn of_thread(bytes: [u8; OP_BYTES], thread: u8) -> Self {
        Self::decode(
            bytes,
            |row| VERBS[row].3,
            |arg, value| {
                let (shared, own) = slots(arg);
                let writes = matches!(arg, Arg::NewBuffer | Arg::NewPromise | Arg::NewProgram) || shared == 0;
                let is_choice = matches!(arg, Arg::Choice(_));
                if is_choice {
                    return value % own;
                }
                match value % (shared + own) {
                    value if value < shared && !writes => value,
                    value => shared + thread * own + value % own,
                }
            },
        )
    }

    /// A sequence for one thread.
    #[must_use]
    pub fn sequence(bytes: &[u8]) -> Vec<Self> {
        bytes.chunks_exact(OP_BYTES).map(|bytes| Self::of_one(bytes.try_into().expect("chunks of that size"))).collect()
    }

    fn decode(bytes: [u8; OP_BYTES], allowed: impl Fn(usize) -> bool, place: impl Fn(Arg, u8) -> u8) -> Self {
        let weight = |row: usize| if allowed(row) { VERBS[row].2 } else { 0 };
        let total: u32 = (0..VERBS.len()).map(weight).sum();
        // The byte says how far down the weights; neighbours of a byte are often the same verb.
        let mut rest = u32::from(bytes[0]) * total / 256;
        let row = (0..VERBS.len()).find(|&row| {
            let here = rest < weight(row);
            rest = rest.saturating_sub(weight(row));
            here
        });
        let verb = VERBS[row.expect("the byte is below the sum of the weights")].0;
        let mut args = [0; 6];
        for (index, &arg) in verb.args().iter().enumerate() {
            args[index] = place(arg, bytes[index + 1]);
        }
        Self { verb, args }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_a_verb_and_every_verb_has_a_byte() {
        let verbs = |decode: fn([u8; OP_BYTES]) -> Op| -> std::collections::BTreeSet<Verb> {
            (0..=255).map(|byte| decode([byte, 255, 255, 255, 255, 255, 255]).verb).collect()
        };
        assert_eq!(verbs(Op::of_one).len(), VERBS.len() - 1, "all but the end");
        let of_pairs = VERBS.iter().filter(|row| row.3).count();
        assert_eq!(verbs(|bytes| Op::of_thread(bytes, 1)).len(), of_pairs);
    }

    #[test]
    fn arguments_stay_in_their_tables_and_threads_in_their_slots() {
        for verb in 0..=255 {
            for value in 0..=255 {
                let bytes = [verb, value, value, value, value, value, value];
                for (thread, op) in [(0, Op::of_thread(bytes, 0)), (1, Op::of_thread(bytes, 1)), (0, Op::of_one(bytes))]
                {
                    for (&arg, value) in op.verb.args().iter().zip(op.args) {
                        let (shared, own) = slots(arg);
                        if let Arg::Choice(below) = arg {
                            assert!(value < below);
                            continue;
                        }
                        let mine = shared + thread * own..shared + (thread + 1) * own;
                        assert!(value < shared || mine.contains(&value), "{op}");
                    }
                }
            }
        }
    }
}
