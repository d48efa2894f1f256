//! Where each section goes: one range of addresses with three parts, each of whole pages.
//!
//! | part | may be |
//! |---|---|
//! | code | executed, and read |
//! | what is only read | read |
//! | data | read and written |
//!
//! Before the first part and behind the last there is a page that nothing may touch (`pages.rs`).

use std::ops::Range;

use super::object::{ObjectFile, Place, Section};
use super::pages::PAGE_BYTES;

/// The most that one executable may have of sections: far more than any has, and little enough to be mapped.
const MOST_BYTES: usize = 1 << 30;

/// A part of the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    Code,
    ReadOnly,
    Data,
}

/// Offsets of all sections from the beginning of the range.
#[derive(Debug)]
pub(crate) struct Layout {
    /// By the number of the file and of the section.
    offsets: Vec<Vec<usize>>,
    /// Where the parts end; each begins where the one before ends.
    ends: [usize; 3],
}

impl Layout {
    /// Gives each section its place.
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

    /// Where a section begins.
    pub(crate) fn section(&self, file: usize, section: usize) -> usize {
        self.offsets[file][section]
    }

    /// Where a place of a file is.
    pub(crate) fn offset_of(&self, file: usize, place: Place) -> usize {
        self.section(file, place.section) + place.offset
    }

    /// The bytes of a part.
    pub(crate) fn range(&self, region: Region) -> Range<usize> {
        match region {
            Region::Code => 0..self.ends[0],
            Region::ReadOnly => self.ends[0]..self.ends[1],
            Region::Data => self.ends[1]..self.ends[2],
        }
    }

    /// Bytes of all parts.
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
