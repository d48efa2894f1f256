//! What a device does by several copies: fills with patterns that it has no command for, and copies whose ends overlap.

use purlin_base::Error;
use purlin_device::backend::Place;

use super::Lowering;
use crate::allocation::Slice;
use crate::command::{Command, Sequence};
use crate::places::AllocationPlace;
use crate::program::Program;

/// How many bytes of a pattern are copied first, if they are more than the pattern.
const PATTERN_BYTES: usize = 4096;

/// A constant that is a pattern again and again.
pub(super) struct Pattern {
    bytes: Vec<u8>,
    range: usize,
    size_bytes: usize,
}

/// The bytes of the largest copy whose ends overlap.
pub(super) fn most_overlapping_bytes(program: &Program, sequence: &Sequence) -> usize {
    let of_command = |command: &Command| {
        // As deep as validation permits.
        let inside = command.sequences().map(|(_, inner)| most_overlapping_bytes(program, inner)).max().unwrap_or(0);
        match command {
            Command::Copy { from, to } if overlap(program, from, to) => inside.max(to.size_bytes),
            _ => inside,
        }
    };
    sequence.commands().iter().map(of_command).max().unwrap_or(0)
}

/// Whether two slices have bytes in common, and are not the same.
pub(super) fn overlap(program: &Program, one: &Slice, other: &Slice) -> bool {
    let at = |slice: &Slice| match program.places().places[slice.allocation as usize] {
        AllocationPlace::Temporary(offset_bytes) => (None, offset_bytes + slice.offset_bytes),
        _ => (Some(slice.allocation), slice.offset_bytes),
    };
    let ((one_in, one_at), (other_in, other_at)) = (at(one), at(other));
    let apart = one_at.abs_diff(other_at);
    one_in == other_in && apart != 0 && apart < one.size_bytes
}

impl Lowering<'_> {
    /// Copies a constant, and then what is written already, until all is.
    pub(super) fn fill_by_copies(&mut self, pattern: &[u8], to: Place, size_bytes: usize) -> Result<(), Error> {
        let first = pattern.len().max(PATTERN_BYTES / pattern.len() * pattern.len()).min(size_bytes);
        let known = self.patterns.iter().find(|known| known.bytes == pattern && known.size_bytes >= first);
        let range = match known {
            Some(known) => known.range,
            None => {
                let range = self.constant(&pattern.iter().copied().cycle().take(first).collect::<Vec<_>>())?;
                self.patterns.push(Pattern { bytes: pattern.to_vec(), range, size_bytes: first });
                range
            }
        };
        self.copy(Place::begin_of(range), to, first);
        let mut done = first;
        while done < size_bytes {
            let more = done.min(size_bytes - done);
            self.copy(to, Place { offset_bytes: to.offset_bytes + done, ..to }, more);
            done += more;
        }
        Ok(())
    }
}
