//! What can be seen of a world when everything that can happen has happened.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::bytes::{SHAPES, hash, turned};
use super::{Kind, Phase, Range, Reading, World, Wrong};

impl World {
    /// One line: every slot that is not empty, the callbacks that reported that host memory is no longer read, and the
    /// bytes in use.
    pub fn look(&mut self) -> String {
        let mut line = String::new();
        let mut put = |name: &str, index: usize, text: String| _ = write!(line, "{name}{index}={text} ");
        for (index, array) in self.buffers.iter().enumerate() {
            let Some(array) = array.map(|array| &self.arrays[array]) else { continue };
            let gone = if self.is_gone(array.phase) { "gone" } else { "live" };
            put("b", index, format!("{gone},{},{},{}", self.events.text(array.ready), array.usage, array.external));
        }
        for (index, promise) in self.promises.iter().enumerate() {
            if let Some(promise) = promise {
                put("p", index, self.events.text(*promise));
            }
        }
        for (name, holds) in [("u", &self.usages), ("x", &self.externals)] {
            for (index, hold) in holds.iter().enumerate() {
                if let Some(hold) = hold {
                    put(name, index, self.events.text(self.arrays[hold.array].ready));
                }
            }
        }
        for (index, donation) in self.donations.iter().enumerate() {
            if let Some(donation) = donation {
                let ready = self.arrays[donation.array].ready;
                let is_free = !donation.uses.iter().chain([&ready]).any(|&event| self.events.is_pending(event));
                put("d", index, format!("{},{}", self.events.text(ready), if is_free { "r" } else { "p" }));
            }
        }
        for (index, given) in self.given.iter().enumerate() {
            if let Some(given) = given {
                put("m", index, self.events.text(given.free));
            }
        }
        for (index, reading) in self.reads.iter().enumerate() {
            if let Some(reading) = reading {
                put("r", index, self.read_text(reading));
            }
        }
        for (index, program) in self.programs.iter().enumerate() {
            if let Some(program) = program {
                put("e", index, self.runs_in_flight(program.number).to_string());
            }
        }
        let reachable = self.reachable();
        let early = self.is(Wrong::ZeroCopyIsToldAtOnce);
        for host in &mut self.hosts {
            host.told |= early || host.memory.is_none_or(|memory| !reachable.contains(&memory));
        }
        line.push_str("h=");
        line.extend(self.hosts.iter().map(|host| if host.told { 'r' } else { 'p' }));
        let owned = |&&memory: &&usize| matches!(self.memories[memory].kind, Kind::Own);
        let in_use: usize = reachable.iter().filter(owned).map(|&memory| self.memories[memory].size).sum();
        let _ = write!(line, " mem={in_use}");
        line
    }

    pub(super) fn is_gone(&self, phase: Phase) -> bool {
        match phase {
            Phase::Live => false,
            Phase::Gone => true,
            Phase::Donating { deleted } => deleted,
        }
    }

    fn read_text(&self, reading: &Reading) -> String {
        match (self.events.end(reading.copied), self.bytes(reading.content)) {
            (None, _) => "p".into(),
            (Some(Err(error)), _) => error,
            (Some(Ok(())), Some(bytes)) => {
                let seen = match reading.range {
                    Range::Raw { offset, size } => hash(&bytes[offset..offset + size]),
                    Range::Whole { shape, turned: true } if !self.is(Wrong::LayoutIsIgnored) => {
                        let shape = SHAPES[shape];
                        hash(&turned(&bytes, shape.dims[1], shape.dims[0], shape.width))
                    }
                    Range::Whole { .. } => hash(&bytes),
                };
                format!("h{seen:08x}")
            }
            (Some(Ok(())), None) => "h?".into(),
        }
    }

    /// Memory that can still be used, by its root.
    fn reachable(&self) -> BTreeSet<usize> {
        let mut memories = Vec::new();
        let mut arrays: BTreeSet<usize> = self.buffers.iter().flatten().copied().collect();
        if !self.is(Wrong::DeletedMemoryGoesAtOnceThoughHeld) {
            for hold in self.usages.iter().chain(&self.externals).flatten() {
                memories.push(hold.memory);
            }
        }
        for hold in self.usages.iter().chain(&self.externals).flatten() {
            arrays.insert(hold.array);
        }
        for donation in self.donations.iter().flatten() {
            memories.push(donation.memory);
            arrays.insert(donation.array);
        }
        let keeps = self.is(Wrong::DeletedMemoryIsKept);
        let held = arrays.iter().map(|&array| &self.arrays[array]).filter(|array| keeps || array.phase != Phase::Gone);
        memories.extend(held.filter_map(|array| array.first_memory));
        memories.extend(self.given.iter().flatten().map(|given| given.memory));
        memories
            .extend(self.kept.iter().filter(|(_, until)| self.events.is_pending(*until)).map(|&(memory, _)| memory));
        memories.into_iter().map(|memory| self.root(memory)).collect()
    }
}
