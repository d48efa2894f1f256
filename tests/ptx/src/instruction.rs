//! Instructions as they are run: registers by number, modifiers resolved into functions of bits.
//!
//! A register holds 64 bits, those above its width zero; predicates are 0 or 1. What an instruction computes without
//! looking at anything but its operands is one of [`Op::Unary`], [`Op::Binary`], [`Op::Ternary`] and [`Op::Set`], with
//! a closure that `decode` has chosen; everything that has to do with memory, threads or the flow is an `Op` of its
//! own.

/// A register of the function.
pub(crate) type Register = u32;
/// Takes what nobody wants: `_`.
pub(crate) const SINK: Register = 0;

pub(crate) type Unary = Box<dyn Fn(u64) -> u64 + Send + Sync>;
pub(crate) type Binary = Box<dyn Fn(u64, u64) -> u64 + Send + Sync>;
pub(crate) type Ternary = Box<dyn Fn(u64, u64, u64) -> u64 + Send + Sync>;
pub(crate) type Test = Box<dyn Fn(u64, u64) -> bool + Send + Sync>;

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Register(Register),
    Immediate(u64),
}

/// `@%p` or `@!%p`.
#[derive(Clone, Copy)]
pub(crate) struct Guard {
    pub(crate) register: Register,
    /// Runs if the predicate is this.
    pub(crate) when: bool,
}

/// A predicate as a source, with its `!`.
#[derive(Clone, Copy)]
pub(crate) struct Predicate {
    pub(crate) value: Operand,
    pub(crate) negated: bool,
}

pub(crate) struct Instruction {
    pub(crate) guard: Option<Guard>,
    pub(crate) op: Op,
}

/// What an address is relative to.
#[derive(Clone, Copy)]
pub(crate) enum Base {
    Nothing,
    Register(Register),
    /// A variable of [`Program::shared`](crate::program::Program::shared).
    Shared(u32),
    /// A variable of [`Program::globals`](crate::program::Program::globals).
    Global(u32),
    /// The function's local variables.
    Local,
    /// The function's part of parameter memory.
    Parameter,
}

#[derive(Clone, Copy)]
pub(crate) struct Address {
    pub(crate) base: Base,
    pub(crate) offset: i64,
}

/// Which memory an address belongs to. Constant memory is global memory that nobody writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Generic,
    Global,
    Constant,
    Shared,
    Local,
    Parameter,
}

/// How `setp` and `set` combine what they found with a third operand.
#[derive(Clone, Copy)]
pub(crate) enum Combine {
    And,
    Or,
    Xor,
}

/// A sum or a product with the carry flag.
#[derive(Clone, Copy)]
pub(crate) struct Carry {
    pub(crate) kind: CarryKind,
    pub(crate) bits: u32,
    pub(crate) takes: bool,
    pub(crate) sets: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CarryKind {
    Add,
    Sub,
    MadLow,
    MadHigh { signed: bool },
}

/// What a thread is, and where.
#[derive(Clone, Copy)]
pub(crate) enum Special {
    Thread(u8),
    Threads(u8),
    Block(u8),
    Blocks(u8),
    Lane,
    Warp,
    Warps,
    LanesEqual,
    LanesBelow,
    LanesUpTo,
    LanesAbove,
    LanesFrom,
    /// How many instructions the thread has run: the same each time.
    Clock,
    /// Nanoseconds of the host's clock, from when the first kernel asked; never 0.
    Timer,
    StaticAndDynamicShared,
    DynamicShared,
    Zero,
    One,
}

/// What a barrier does with a predicate of each thread's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reduction {
    None,
    Count,
    All,
    Any,
}

pub(crate) struct Barrier {
    pub(crate) id: Operand,
    /// Threads; `None`: all of the block.
    pub(crate) count: Option<Operand>,
    /// All threads of a warp come together.
    pub(crate) aligned: bool,
    /// Goes on without waiting.
    pub(crate) arrives: bool,
    pub(crate) reduction: Reduction,
    pub(crate) predicate: Predicate,
    pub(crate) d: Register,
}

/// What the threads of a warp do together.
pub(crate) struct Together {
    pub(crate) what: WarpOp,
    /// The lanes; `None`: those that are here (`activemask`).
    pub(crate) lanes: Option<Operand>,
    pub(crate) d: Register,
    /// The second result, or [`SINK`].
    pub(crate) p: Register,
    pub(crate) a: Operand,
    pub(crate) b: Operand,
    pub(crate) c: Operand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarpOp {
    /// `bar.warp.sync`.
    Meet,
    ActiveMask,
    /// `a` from the lane that `b` and `c` say.
    Shuffle(Shuffle),
    /// Of the predicate `a`, 0 or 1; negated if `b` is 1.
    VoteAll,
    VoteAny,
    VoteUniform,
    VoteBallot,
    /// Lanes with the same `a`, of so many bits.
    MatchAny(u32),
    MatchAll(u32),
    Reduce(Reduce),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// `redux.sync`, of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduce {
    Add,
    Min { signed: bool },
    Max { signed: bool },
    And,
    Or,
    Xor,
}

/// Bytes that move between memory and registers.
pub(crate) struct Access {
    pub(crate) space: Space,
    /// Of each of `count` elements: 1, 2, 4 or 8.
    pub(crate) size_bytes: u8,
    /// 1, 2 or 4.
    pub(crate) count: u8,
    /// Other threads' accesses are ordered by other means than barriers: `.volatile`, `.relaxed` and the like.
    pub(crate) is_strong: bool,
    pub(crate) address: Address,
}

/// A call: what is copied from the caller's part of parameter memory to the callee's, and back.
pub(crate) struct Call {
    pub(crate) function: u32,
    /// Offsets of the caller's, in the order of the callee's inputs and results.
    pub(crate) inputs: Box<[usize]>,
    pub(crate) results: Box<[usize]>,
}

pub(crate) enum Op {
    /// `membar`, `fence`, `prefetch`, `nanosleep`: one thread runs at a time, and memory has one order.
    Nothing,
    Move {
        d: Register,
        a: Operand,
    },
    Unary {
        d: Register,
        a: Operand,
        f: Unary,
    },
    Binary {
        d: Register,
        a: Operand,
        b: Operand,
        f: Binary,
    },
    Ternary {
        d: Register,
        a: Operand,
        b: Operand,
        c: Operand,
        f: Ternary,
    },
    /// `d` becomes `yes` if the test holds, combined, else 0; `q`, or [`SINK`], if not, combined.
    Set(Box<Set>),
    Select {
        d: Register,
        a: Operand,
        b: Operand,
        p: Predicate,
    },
    Carry {
        d: Register,
        a: Operand,
        b: Operand,
        c: Operand,
        carry: Carry,
    },
    /// `bfi` whose place is not known before.
    Insert {
        d: Register,
        a: Operand,
        b: Operand,
        at: Operand,
        count: Operand,
        bits: u32,
    },
    Special {
        d: Register,
        special: Special,
    },
    /// A variable's address, or, `window` being its space, its generic address.
    AddressOf {
        d: Register,
        address: Address,
        window: Space,
    },
    /// Parts of so many bits each become one register.
    Pack {
        d: Register,
        parts: Box<[Operand]>,
        bits: u32,
    },
    Unpack {
        parts: Box<[Register]>,
        a: Operand,
        bits: u32,
    },
    /// `sign_bits`: what is read is extended with its sign to so many bits; 0: with zeros.
    Load {
        access: Access,
        into: Box<[Register]>,
        sign_bits: u8,
    },
    Store {
        access: Access,
        from: Box<[Operand]>,
    },
    /// `f` of what is there, `b` and `c` is written; what was there is `d`.
    Atomic {
        access: Access,
        d: Register,
        b: Operand,
        c: Operand,
        f: Ternary,
    },
    /// `cvta`: to the window of a space, or out of it.
    ToGeneric {
        d: Register,
        a: Operand,
        space: Space,
    },
    FromGeneric {
        d: Register,
        a: Operand,
        space: Space,
    },
    IsSpace {
        d: Register,
        a: Operand,
        space: Space,
    },
    Jump(u32),
    JumpTable {
        index: Operand,
        table: u32,
    },
    Call(Box<Call>),
    Return,
    Exit,
    Trap,
    Barrier(Box<Barrier>),
    Together(Box<Together>),
}

pub(crate) struct Set {
    pub(crate) d: Register,
    pub(crate) q: Register,
    pub(crate) a: Operand,
    pub(crate) b: Operand,
    pub(crate) combine: Option<(Combine, Predicate)>,
    pub(crate) yes: u64,
    pub(crate) f: Test,
}

impl Op {
    /// What its address is relative to, if it has one.
    pub(crate) fn base(&self) -> Option<Base> {
        match self {
            Self::Load { access, .. } | Self::Store { access, .. } | Self::Atomic { access, .. } => {
                Some(access.address.base)
            }
            Self::AddressOf { address, .. } => Some(address.base),
            _ => None,
        }
    }
}
