//! Which thread touched which byte of shared memory, so that a missing barrier is found whatever the order in which
//! threads run.
//!
//! Two accesses of a byte by two threads, one of them a write, need a barrier between them, or, within a warp, an
//! instruction that the warp executes together. Any barrier of the block counts, and any such instruction of the warp,
//! whoever takes part: what is reported is a race, but not every race is reported. Atomic operations do not race with
//! each other. A write of what is there already is none, and accesses that say that they are ordered by other means
//! (`.volatile`, `.relaxed`, `.acquire`, `.release`) are not looked at.

use crate::block::WARP;

/// What a thread does with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Atomic,
}

/// The last access of a kind.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// Of the block; 0: there was none.
    generation: u32,
    /// Of its warp.
    warp_generation: u32,
    line: u32,
    thread: u16,
    is_atomic: bool,
}

/// Of a byte: who wrote it last, who read it last, and who, of another warp, before that.
#[derive(Clone, Copy, Default)]
struct Byte {
    writer: Seen,
    reader: Seen,
    other_reader: Seen,
}

/// The other side of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Other {
    pub(crate) thread: u32,
    pub(crate) line: u32,
    pub(crate) wrote: bool,
}

/// See the module.
pub(crate) struct Watch {
    bytes: Vec<Byte>,
    /// How many barriers there have been, of all blocks.
    generation: u32,
    /// How often each warp did something together.
    warp_generations: Vec<u32>,
}

impl Watch {
    pub(crate) fn new(shared_bytes: usize, threads: u32) -> Self {
        let warps = (threads as usize).div_ceil(WARP);
        Self { bytes: vec![Byte::default(); shared_bytes], generation: 1, warp_generations: vec![0; warps] }
    }

    /// All accesses so far come before all that follow: a barrier has let go, or a block begins.
    pub(crate) fn barrier(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// The same within the warp of that thread.
    pub(crate) fn warp(&mut self, thread: u32) {
        let generation = &mut self.warp_generations[thread as usize / WARP];
        *generation = generation.wrapping_add(1);
    }

    /// Notes an access of bytes that are there. `changes`: a write, or an atomic operation, of something else.
    pub(crate) fn access(
        &mut self,
        kind: Kind,
        thread: u32,
        line: u32,
        address: u64,
        size_bytes: usize,
        changes: bool,
    ) -> Result<(), Other> {
        let me = Seen {
            generation: self.generation,
            warp_generation: self.warp_generations[thread as usize / WARP],
            line,
            thread: thread as u16,
            is_atomic: kind == Kind::Atomic,
        };
        let begin = address as usize;
        for byte in &mut self.bytes[begin..begin + size_bytes] {
            if let Some((other, wrote)) = byte.race(me, kind, changes) {
                return Err(Other { thread: other.thread.into(), line: other.line, wrote });
            }
            match kind {
                Kind::Read => {
                    if byte.reader.generation == me.generation && !byte.reader.is_in_warp_of(me) {
                        byte.other_reader = byte.reader;
                    }
                    byte.reader = me;
                }
                Kind::Write | Kind::Atomic if changes => byte.writer = me,
                Kind::Write | Kind::Atomic => {}
            }
        }
        Ok(())
    }
}

impl Byte {
    /// The access with which this one races, and whether that one wrote.
    fn race(&self, me: Seen, kind: Kind, changes: bool) -> Option<(Seen, bool)> {
        let both_atomic = kind == Kind::Atomic && self.writer.is_atomic;
        if kind == Kind::Write && !changes {
            return None;
        }
        if !self.writer.is_before(me) && !both_atomic {
            return Some((self.writer, true));
        }
        let reader = [self.reader, self.other_reader].into_iter().find(|reader| !reader.is_before(me));
        reader.filter(|_| kind != Kind::Read && changes).map(|reader| (reader, false))
    }
}

impl Seen {
    fn is_in_warp_of(self, me: Self) -> bool {
        usize::from(self.thread) / WARP == usize::from(me.thread) / WARP
    }

    /// Whether something makes this one come before that of `me`, which is now.
    fn is_before(self, me: Self) -> bool {
        self.generation != me.generation
            || self.thread == me.thread
            || self.is_in_warp_of(me) && self.warp_generation != me.warp_generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line 10 is thread 0's, and so on.
    fn access(watch: &mut Watch, kind: Kind, thread: u32) -> Result<(), Other> {
        watch.access(kind, thread, 10 + thread, 4, 4, true)
    }

    fn race(thread: u32, wrote: bool) -> Result<(), Other> {
        Err(Other { thread, line: 10 + thread, wrote })
    }

    #[test]
    fn two_threads_race_unless_both_read() {
        for (first, second, expected) in [
            (Kind::Read, Kind::Read, Ok(())),
            (Kind::Read, Kind::Write, race(0, false)),
            (Kind::Write, Kind::Read, race(0, true)),
            (Kind::Write, Kind::Write, race(0, true)),
            (Kind::Atomic, Kind::Atomic, Ok(())),
            (Kind::Atomic, Kind::Read, race(0, true)),
            (Kind::Read, Kind::Atomic, race(0, false)),
            (Kind::Write, Kind::Atomic, race(0, true)),
        ] {
            let mut watch = Watch::new(64, 64);
            access(&mut watch, first, 0).unwrap();
            access(&mut watch, first, 0).unwrap();
            assert_eq!(access(&mut watch, second, 1), expected, "{first:?}, {second:?}");
        }
    }

    #[test]
    fn barriers_and_what_a_warp_does_together_come_between() {
        let mut watch = Watch::new(64, 64);
        access(&mut watch, Kind::Write, 0).unwrap();
        watch.warp(1);
        access(&mut watch, Kind::Read, 1).unwrap();
        assert_eq!(access(&mut watch, Kind::Read, 32), race(0, true));
        watch.barrier();
        access(&mut watch, Kind::Read, 32).unwrap();
        access(&mut watch, Kind::Read, 2).unwrap();
        assert_eq!(access(&mut watch, Kind::Write, 2), race(32, false), "who read before");
    }

    #[test]
    fn other_bytes_and_what_is_there_already_do_not_matter() {
        let mut watch = Watch::new(64, 64);
        access(&mut watch, Kind::Write, 0).unwrap();
        watch.access(Kind::Write, 1, 1, 8, 8, true).unwrap();
        watch.access(Kind::Write, 1, 1, 0, 4, true).unwrap();
        watch.access(Kind::Write, 1, 1, 4, 4, false).unwrap();
    }
}
