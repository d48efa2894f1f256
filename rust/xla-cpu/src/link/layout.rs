//! The layout of sections: one range of addresses with three parts, each of whole pages.
//!
//! | part | permitted accesses |
//! |---|---|
//! | code | execute, read |
//! | read-only data | read |
//! | writable data | read, write |
//!
//! Before the first part and after the last one there is a guard page, which permits no access (`pages.rs`).

use std::ops::Range;

use super::object::{ObjectFile, Place, Section};
use super::pages::PAGE_BYTES;

/// The largest total size of one executable's sections: far more than any has, and small enough to be mapped.
const MOST_BYTES: usize = 1 << 30;

/// A part of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    Code,
    ReadOnly,
    Data,
}

/// The offsets of all sections from the beginning of the range.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Indexed by file and by section.
    offsets: Vec<Vec<usize>>,
    /// The end of each part. Each begins at the end of the one before.
    ends: [usize; 3],
}

impl Layout {
    /// Assigns each section an offset. The error is a reason: the sections are too large.
    pub(crate) fn new(files: &[ObjectFile<'_>]) -> Result<Self, String> {
        let mut offsets: Vec<Vec<usize>> = files.iter().map(|file| vec![0; file.sections.len()]).collect();
        let mut ends = [0; 3];
        let mut end = 0_usize;
        for (region, part_end) in [Region::Code, Region::ReadOnly, Region::Data].into_iter().zip(&mut ends) {
            for (number, file) in files.iter().enumerate() {
                for (index, section) in file.sections.iter().enumerate().filter(|(_, section)| of(section) == region) {
                    let begin = end.next_multiple_of(section.alignment);
                    offsets[number][index] = begin;
                    end = begin.checked_add(section.size_bytes).filter(|&end| end <= MOST_BYTES).ok_or_else(|| {
                        format!("sections of more than {MOST_BYTES} bytes, with {} of {}", section.name, file.name)
                    })?;
                }
            }
            end = end.next_multiple_of(PAGE_BYTES);
            *part_end = end;
        }
        Ok(Self { offsets, ends })
    }

    /// The offset of a section.
    pub(crate) fn section(&self, file: usize, section: usize) -> usize {
        self.offsets[file][section]
    }

    /// The offset of a place in a file.
    pub(crate) fn offset_of(&self, file: usize, place: Place) -> usize {
        self.section(file, place.section) + place.offset
    }

    /// The offsets of a part.
    pub(crate) fn range(&self, region: Region) -> Range<usize> {
        match region {
            Region::Code => 0..self.ends[0],
            Region::ReadOnly => self.ends[0]..self.ends[1],
            Region::Data => self.ends[1]..self.ends[2],
        }
    }

    /// The size of all parts.
    pub(crate) fn size_bytes(&self) -> usize {
        self.ends[2]
    }
}

fn of(section: &Section<'_>) -> Region {
    match (section.is_code, section.is_writable) {
        (true, _) => Region::Code,
        (false, false) => Region::ReadOnly,
        (false, true) => Region::Data,
    }
}
