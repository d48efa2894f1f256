//! The reference model: what buffers, events, holds, donation and runs of programs are, as a sequential program without
//! memory, threads or clocks.
//!
//! A [`World`] has tables of slots, and behind them arrays, pieces of memory and events, which are never forgotten,
//! only no longer reachable. An event is a rule (`event.rs`) that is evaluated when a test looks, so nothing is ever
//! completed: setting a promise is enough. [`World::step`] is one operation; [`World::look`] describes all that can be
//! seen when everything that can happen has happened. Both answer text, which the library's answers are compared with.
//!
//! Where an operation of the library is several atomic steps (it takes a hold, works, and ends the hold), so is the
//! model's (`step.rs`), so that two threads can be interleaved.

mod ask;
mod bytes;
mod channel;
mod event;
mod family;
mod hold;
mod look;
mod rule;
mod run;
mod step;

pub use bytes::{SHAPES, ShapeOf, TOKEN, hash, pattern, shape_of, turned};
pub use family::{FAMILIES, Family, Formula, Output};
pub use rule::{ALL as ALL_WRONGS, Wrong};
pub use run::{Run, RunOptions};
pub use step::{Progress, Task};

use crate::op::{Arg, table};
use bytes::Content;
use event::{Events, Moment};
use std::fmt;

/// Status codes that errors of the test's own have: kCancelled, kNotFound, kInternal.
pub const CODES: [u8; 3] = [1, 5, 13];

/// Whose memory the spaces have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memories {
    /// All have that of the host.
    Host,
    /// The first has that of a device, which takes none of the host in place. Programs of the host run in the second.
    Device,
}

impl Memories {
    /// Whether arrays of that space can use memory of the host in place.
    fn takes_host_memory(self, space: u8) -> bool {
        self == Self::Host || space != 0
    }

    /// Where programs of that family have their arguments and results.
    fn space_of(self, family: &Family) -> u8 {
        u8::from(self == Self::Device && !family.is_of_device)
    }
}

/// See the module.
#[derive(Clone)]
pub struct World {
    memories_are: Memories,
    wrong: Option<Wrong>,
    events: Events,
    contents: Vec<Content>,
    memories: Vec<Memory>,
    arrays: Vec<Array>,
    /// Memory that stays until an event is terminal.
    kept: Vec<(usize, Moment)>,
    hosts: Vec<Host>,
    buffers: Vec<Option<usize>>,
    promises: Vec<Option<Moment>>,
    channels: Vec<Option<Channel>>,
    usages: Vec<Option<Hold>>,
    externals: Vec<Option<Hold>>,
    donations: Vec<Option<Donation>>,
    given: Vec<Option<Given>>,
    reads: Vec<Option<Reading>>,
    programs: Vec<Option<Program>>,
    /// The programs that were ever loaded.
    loaded: usize,
    /// Number of the program, and the end of the run.
    runs: Vec<(usize, Moment)>,
    /// The end of the last run of each execution stream; number 0 is none.
    streams: [Moment; 3],
    /// Events that memory, which is not there yet, may be written.
    writable: Vec<(usize, Moment)>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

#[derive(Clone)]
struct Memory {
    size: usize,
    space: u8,
    kind: Kind,
    /// When it is there.
    allocated: Moment,
}

#[derive(Clone)]
enum Kind {
    Own,
    Imported {
        mutable: bool,
    },
    /// Another one's, once it is known whose; and when all uses of that are done.
    Channel {
        target: Option<usize>,
        free: Moment,
    },
}

#[derive(Clone)]
struct Array {
    shape: usize,
    /// Column-major.
    turned: bool,
    space: u8,
    ready: Moment,
    content: usize,
    /// None: failed before it had any.
    first_memory: Option<usize>,
    phase: Phase,
    usage: u32,
    external: u32,
    uses: Vec<Moment>,
    /// After a release under usage holds: what the releaser waits for, and what the holds have left.
    late: Option<(Moment, Vec<Moment>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Live,
    Donating { deleted: bool },
    Gone,
}

#[derive(Clone)]
struct Channel {
    array: usize,
    memory: usize,
    content: usize,
    ready: Moment,
}

#[derive(Clone)]
struct Hold {
    array: usize,
    memory: usize,
}

#[derive(Clone)]
struct Donation {
    array: usize,
    memory: usize,
    uses: Vec<Moment>,
}

/// Memory without an array.
#[derive(Clone)]
struct Given {
    memory: usize,
    free: Moment,
}

/// Host memory of which an array was made.
#[derive(Clone)]
struct Host {
    /// What uses it in place.
    memory: Option<usize>,
    told: bool,
}

/// A loaded program: it takes and returns arrays of one shape and layout.
#[derive(Clone, Copy, Debug)]
struct Program {
    /// Of all that were loaded.
    number: usize,
    /// In [`FAMILIES`].
    family: usize,
    shape: usize,
    turned: bool,
}

#[derive(Clone)]
struct Reading {
    copied: Moment,
    content: usize,
    range: Range,
}

#[derive(Clone, Copy)]
enum Range {
    /// All elements, of that shape, row-major; they stand turned on the device.
    Whole {
        shape: usize,
        turned: bool,
    },
    Raw {
        offset: usize,
        size: usize,
    },
}

impl World {
    /// An empty one, by the right rules or with one wrong.
    #[must_use]
    pub fn new(memories_are: Memories, wrong: Option<Wrong>) -> Self {
        let mut events = Events::new(wrong);
        let over = events.ended(Ok(()));
        Self {
            memories_are,
            wrong,
            events,
            contents: Vec::new(),
            memories: Vec::new(),
            arrays: Vec::new(),
            kept: Vec::new(),
            hosts: Vec::new(),
            buffers: vec![None; table(Arg::Buffer)],
            promises: vec![None; table(Arg::Promise)],
            channels: vec![None; table(Arg::Channel)],
            usages: vec![None; table(Arg::Usage)],
            externals: vec![None; table(Arg::External)],
            donations: vec![None; table(Arg::Donation)],
            given: vec![None; table(Arg::Memory)],
            reads: vec![None; table(Arg::Read)],
            programs: vec![None; table(Arg::Program)],
            loaded: 0,
            runs: Vec::new(),
            streams: [over; 3],
            writable: Vec::new(),
        }
    }

    fn is(&self, wrong: Wrong) -> bool {
        self.wrong == Some(wrong)
    }

    fn new_content(&mut self, content: Content) -> usize {
        self.contents.push(content);
        self.contents.len() - 1
    }

    fn content(&self, mut index: usize) -> &Content {
        while let Content::Same(other) = &self.contents[index] {
            index = *other;
        }
        &self.contents[index]
    }

    fn new_memory(&mut self, size: usize, space: u8, kind: Kind, allocated: Moment) -> usize {
        self.memories.push(Memory { size, space, kind, allocated });
        self.memories.len() - 1
    }

    /// The memory that a channel of channels is made of in the end; the memory that it owes, if that is not known.
    fn root(&self, mut memory: usize) -> usize {
        while let Kind::Channel { target: Some(target), .. } = self.memories[memory].kind {
            memory = target;
        }
        memory
    }

    fn is_mutable(&self, memory: usize) -> bool {
        !matches!(self.memories[self.root(memory)].kind, Kind::Imported { mutable: false })
    }

    #[allow(clippy::too_many_arguments, reason = "an array is that much")]
    fn new_array(
        &mut self,
        shape: usize,
        turned: bool,
        space: u8,
        ready: Moment,
        content: usize,
        memory: Option<usize>,
        uses: Vec<Moment>,
    ) -> usize {
        self.arrays.push(Array {
            shape,
            turned,
            space,
            ready,
            content,
            first_memory: memory,
            phase: Phase::Live,
            usage: 0,
            external: 0,
            uses,
            late: None,
        });
        self.arrays.len() - 1
    }
}
