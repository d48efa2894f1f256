//! What an operation touches, once it is known where that is.

#![allow(unsafe_code, reason = "bytes are filled and moved by address")]

use std::ptr;

use purlin_base::Error;
use purlin_device::backend::{Access, Operation, Work};

use crate::memory::{IN_FLIGHT_BYTE, Place};
use crate::shadow::Span;

/// The bytes that an operation reads and writes, on devices and on the host. Of a strided array of the host nothing is
/// listed: its elements may stand between those of another.
pub(crate) struct Touched {
    reads: Vec<Span>,
    writes: Vec<Written>,
    /// Whose streams it uses: the device that it writes, else that which it reads.
    pub(crate) device: usize,
    /// What it reads reaches the host.
    pub(crate) to_host: bool,
    /// How much it moves.
    pub(crate) size_bytes: usize,
    /// Its one write takes over, byte by byte, what is known of its one read.
    is_copy: bool,
    /// What it writes and does not read is unspecified until it is over.
    spoils: bool,
}

/// Bytes that are written.
struct Written {
    span: Span,
    /// Memory that only operations write.
    is_watched: bool,
}

impl Touched {
    /// Only after the operation's dependencies.
    pub(crate) fn by(operation: &Operation) -> Self {
        let mut touched = Self {
            reads: Vec::new(),
            writes: Vec::new(),
            device: 0,
            to_host: false,
            size_bytes: operation.size_bytes(),
            is_copy: false,
            spoils: false,
        };
        let devices = operation.ranges().map(|(access, range)| (access == Access::Write, range.device()));
        touched.device = devices.max_by_key(|&(is_written, _)| is_written).map_or(0, |(_, device)| device);
        for (access, range) in operation.ranges() {
            let Place { address, is_host_visible } = Place::of(range);
            let span = Span::new(address.expose_provenance(), range.size_bytes());
            match access {
                Access::Read => touched.reads.push(span),
                Access::Write => touched.writes.push(Written { span, is_watched: !is_host_visible }),
            }
        }
        let size_bytes = touched.size_bytes;
        match operation.work() {
            Work::CopyFromHost(from) => touched.reads.push(Span::new(from.address().addr(), size_bytes)),
            Work::CopyToHost(to) => {
                let span = Span::new(to.address().expose_provenance(), size_bytes);
                touched.writes.push(Written { span, is_watched: false });
                touched.to_host = true;
            }
            Work::Copy => {}
            Work::Scatter(..) => {
                touched.to_host = true;
                return touched;
            }
            Work::Launch { .. } => {
                touched.spoils = true;
                return touched;
            }
            _ => return touched,
        }
        (touched.is_copy, touched.spoils) = (true, true);
        touched
    }

    /// A call on the first device that reads `reads` and writes `writes`.
    #[cfg(test)]
    pub(crate) fn by_call(reads: &[Span], writes: &[Span]) -> Self {
        let written = |&span| Written { span, is_watched: true };
        let (reads, writes) = (reads.to_vec(), writes.iter().map(written).collect());
        Self { reads, writes, device: 0, to_host: false, size_bytes: 1, is_copy: false, spoils: false }
    }

    /// What it reads.
    pub(crate) fn reads(&self) -> impl Iterator<Item = Span> {
        self.reads.iter().copied()
    }

    /// What it writes.
    pub(crate) fn writes(&self) -> impl Iterator<Item = Span> {
        self.writes.iter().map(|written| written.span)
    }

    /// Of a copy: from where, to where, and whether only operations write there.
    pub(crate) fn copied(&self) -> Option<(Span, Span, bool)> {
        let (from, to) = (self.reads.first()?, self.writes.first()?);
        self.is_copy.then_some((*from, to.span, to.is_watched))
    }

    /// The operation begins: code that looks at a copy's destination now, or at what a launch writes, does not see what
    /// was there, nor what will be.
    ///
    /// # Safety
    /// The operation's contract: its dependencies have happened, its event has not.
    pub(crate) unsafe fn spoil(&self) {
        for written in self.writes.iter().filter(|_| self.spoils) {
            if self.reads.iter().all(|read| read.intersection(written.span).is_none()) {
                // SAFETY: the destination is the copy's until its event: device memory that the operation keeps alive,
                // or memory of the host that its caller promised (RawBuffer's contract).
                unsafe {
                    let address = ptr::with_exposed_provenance_mut::<u8>(written.span.start);
                    ptr::write_bytes(address, IN_FLIGHT_BYTE, written.span.size_bytes());
                }
            }
        }
    }
}

/// The operation ends: does its work.
///
/// # Errors
/// That of a call.
///
/// # Safety
/// As [`Touched::spoil`].
pub(crate) unsafe fn perform(operation: &mut Operation) -> Result<(), Error> {
    // SAFETY: the caller's promise; ranges are of our extents, which keep their bytes valid.
    unsafe { operation.perform(|range| Place::of(range).address) }
}
