//! Copies and fills: what they touch is known at the call, and shown to the detector then.
//!
//! A pageable source is read at the call. A pageable destination blocks: the call returns when the copy is over. Zero
//! bytes are a success that looks at nothing else.

use std::sync::Arc;

use crate::boundary::{Answer, Call};
use crate::code::Code;
use crate::detector::Access;
use crate::detector::report::Kind as Report;
use crate::detector::shadow::Span;
use crate::memory::{Found, Kind, bytes};
use crate::operation::{End, Request, Rows, Work};
use crate::state::{Refusal, State};

/// One end of a copy, as the call names it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// Of a device, or pinned.
    Device(u64),
    /// Of the host, pinned or not.
    Host(u64),
    /// Whatever is there.
    Unified(u64),
}

impl Place {
    const fn address(self) -> u64 {
        match self {
            Self::Device(address) | Self::Host(address) | Self::Unified(address) => address,
        }
    }
}

/// The ranges of rows; those that touch are one.
fn spans(start: u64, pitch: u64, rows: Rows) -> Vec<Span> {
    if pitch == rows.width || rows.height == 1 {
        return vec![Span::new(start, rows.width.saturating_mul(rows.height))];
    }
    (0..rows.height).map(|row| Span::new(start.saturating_add(row.saturating_mul(pitch)), rows.width)).collect()
}

/// Copies rows between two places.
pub(crate) fn copy(call: &Call, from: Place, to: Place, rows: Rows, stream: usize) -> Answer {
    let mut state = call.driver.state.lock();
    let (stream, device) = state.working_stream(call.driver, stream)?;
    if rows.width == 0 || rows.height == 0 {
        return Ok(());
    }
    if from.address() == 0 || to.address() == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let reads = spans(from.address(), rows.from_pitch, rows);
    let writes = spans(to.address(), rows.to_pitch, rows);
    let source = state.end(call, stream, from, &reads, false)?;
    let destination = state.end(call, stream, to, &writes, true)?;
    let is_to_device = matches!(&destination, End::Bytes(bytes, _) if bytes.address().is_none());
    let is_from_device = matches!(&source, End::Bytes(bytes, _) if bytes.address().is_none());
    let mut request = Request::new(Work::Nothing);
    if matches!(source, End::Bytes(..)) {
        let read = |span| Access { span, writes: false, must_be_written: is_from_device && !is_to_device };
        request.accesses.extend(reads.iter().copied().map(read));
    }
    if matches!(destination, End::Bytes(..)) {
        request.accesses.extend(writes.iter().map(|span| Access { span: *span, writes: true, must_be_written: false }));
    }
    if is_from_device && is_to_device {
        request.copied = rows_of_both(from.address(), to.address(), rows);
    }
    let (source, waits) = stage(source, rows, matches!(destination, End::Pageable(_)));
    request.work = Work::Copy { from: source, to: destination, rows };
    let is_capturing = state.streams[&stream].capture.is_some();
    if waits && is_capturing {
        return state.submit(call, stream, request).map(|_| ());
    }
    let submitted = state.submit(call, stream, request)?;
    if let (true, Some((point, stamp))) = (waits, submitted) {
        // Until it is over, also if the device breaks: the destination is the caller's.
        while !state.is_over(point) {
            state = call.driver.changed.wait(state);
        }
        call.driver.works(device)?;
        state.detector.host_saw(&stamp.clock);
    }
    Ok(())
}

fn rows_of_both(from: u64, to: u64, rows: Rows) -> Vec<(Span, Span)> {
    let row = |row: u64| {
        let (from, to) = (from + row * rows.from_pitch, to + row * rows.to_pitch);
        (Span::new(from, rows.width), Span::new(to, rows.width))
    };
    (0..rows.height).map(row).collect()
}

/// A pageable source is read now. Whether the caller waits comes back, too.
fn stage(source: End, rows: Rows, to_pageable: bool) -> (End, bool) {
    match source {
        End::Pageable(address) => {
            let size = rows.from_pitch * (rows.height - 1) + rows.width;
            let mut staged = vec![0; usize::try_from(size).unwrap_or(0)];
            for row in 0..rows.height {
                // Within the size, which fits.
                let (at, width) = ((row * rows.from_pitch) as usize, rows.width as usize);
                bytes::read_host(address + at, &mut staged[at..at + width]);
            }
            (End::Staged(staged.into()), to_pageable)
        }
        source => (source, to_pageable),
    }
}

/// Writes a pattern `count` times.
pub(crate) fn fill(call: &Call, to: u64, pattern: &[u8], count: usize, stream: usize) -> Answer {
    let mut state = call.driver.state.lock();
    let (stream, _) = state.working_stream(call.driver, stream)?;
    if count == 0 {
        return Ok(());
    }
    if to == 0 || !to.is_multiple_of(pattern.len() as u64) {
        return Err(Code::INVALID_VALUE);
    }
    let span = Span::new(to, (count as u64).saturating_mul(pattern.len() as u64));
    let End::Bytes(bytes, offset) = state.end(call, stream, Place::Device(to), &[span], true)? else {
        return Err(Code::INVALID_VALUE);
    };
    let work = Work::Fill { to: bytes, offset, pattern: Arc::from(pattern), count: count as u64 };
    let accesses = vec![Access { span, writes: true, must_be_written: false }];
    state.submit(call, stream, Request { accesses, ..Request::new(work) }).map(|_| ())
}

impl State {
    /// The memory that one end of a copy names. INVALID_VALUE, and a report, if there is none.
    fn end(&mut self, call: &Call, stream: usize, place: Place, spans: &[Span], writes: bool) -> Answer<End> {
        let address = place.address();
        let whole = Span { start: address, end: spans.last().map_or(address, |span| span.end) };
        let is_known = match (place, self.memory.find(Span::new(address, 1))) {
            (Place::Device(_), _) => true,
            // What was registered is the program's again; what was pinned stays out of its hands.
            (Place::Host(_) | Place::Unified(_), Found::Inside(block)) => {
                block.kind != Kind::Registered || block.life.freed.is_none()
            }
            _ => self.memory.is_device_address(address),
        };
        if !is_known {
            return usize::try_from(address).map(End::Pageable).map_err(|_| Code::INVALID_VALUE);
        }
        for span in spans {
            self.check(call, stream, Access { span: *span, writes, must_be_written: false })?;
        }
        match self.memory.find(whole) {
            Found::Inside(block) if matches!(place, Place::Host(_)) && !block.kind.is_host() => {
                self.report_address_kind(call, stream, whole, writes)
            }
            Found::Inside(block) => Ok(End::Bytes(Arc::clone(&block.bytes), address - block.life.span.start)),
            Found::Beyond(_) | Found::Nothing => {
                self.report_address(call, Some(stream), whole, writes);
                Err(Code::INVALID_VALUE)
            }
        }
    }

    /// Device memory where the host's was meant.
    fn report_address_kind(&mut self, call: &Call, stream: usize, span: Span, writes: bool) -> Answer<End> {
        let does = if writes { "to" } else { "from" };
        let why = &format!("{:#x}, to copy {does}, is said to be the host's, and is a device's", span.start);
        let of = self.life(Access { span, writes, must_be_written: false });
        let (kind, beside) = (Report::WildAddress, of.map(|life| (life.made, Some(life.span))));
        self.report(call.entry, Refusal { kind, stream: Some(stream), span: Some(span), beside, why });
        Err(Code::INVALID_VALUE)
    }
}
