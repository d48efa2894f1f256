//! The loops that move the elements of a box.
//!
//! A box is a nest of loops; each step of each loop has a distance on both sides. The first loop is the device's
//! contiguous one. Which loops are run how depends on the host's distances alone:
//!
//! - elements that stand together on the host too are one memcpy, or one wider element if they fill 2, 4, 8 or 16
//!   bytes;
//! - if another loop has a smaller distance on the host than the first, the two are a transposition and go by tiles, so
//!   that cache lines of both sides are used up while they are in the cache;
//! - else the first loop runs along, repeating one element if its distance is 0.
//!
//! Nothing is assumed of alignment.

#![allow(unsafe_code, reason = "elements are moved by address")]

use std::ptr;

use crate::strided::tile::{self, Rows};

/// A loop: `count` steps and the bytes from one to the next. A plan's have 2 steps at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dim {
    pub(super) count: usize,
    pub(super) host_stride: isize,
    pub(super) device_stride: usize,
}

/// Where step 0 of all loops is.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    pub(super) host: *mut u8,
    pub(super) device: *mut u8,
}

impl Ends {
    /// Where step `index` of `dim` is. Wrapping, because the base of negative strides need not stand at the low end.
    pub(super) fn at(self, dim: Dim, index: usize) -> Self {
        Self {
            host: self.host.wrapping_offset(index as isize * dim.host_stride),
            device: self.device.wrapping_add(index * dim.device_stride),
        }
    }
}

/// Moves `element_bytes` bytes for every combination of steps: from the host to the device if `GATHER`, else back.
/// `dims` are as [`StridedPlan`](super::StridedPlan) has them: the first has `device_stride == element_bytes`.
///
/// # Safety
/// On the side that is read, the bytes at all combinations are readable and nothing writes them meanwhile; on the
/// other, they are writable and nothing else touches them. The sides are disjoint. If `!GATHER`, no two combinations
/// share host bytes. `element_bytes` is 1, 2, 4, 8 or 16.
pub(super) unsafe fn move_box<const GATHER: bool>(dims: &[Dim], element_bytes: usize, ends: Ends) {
    let (mut dims, mut element_bytes) = (dims, element_bytes);
    if let Some((first, outer)) = dims.split_first()
        && first.host_stride == element_bytes as isize
    {
        let run = first.count * element_bytes;
        if outer.is_empty() || !matches!(run, 2 | 4 | 8 | 16) {
            // SAFETY: a combination's elements and the `first.count - 1` behind it, which stand together on both sides.
            each(outer, None, ends, &mut |ends| unsafe {
                let (source, destination) = source_and_destination::<GATHER>(ends);
                ptr::copy_nonoverlapping(source, destination, run);
            });
            return;
        }
        (dims, element_bytes) = (outer, run);
    }
    // SAFETY: the caller's promise; a run of elements is as wide as the type.
    unsafe {
        match element_bytes {
            1 => move_elements::<u8, GATHER>(dims, ends),
            2 => move_elements::<u16, GATHER>(dims, ends),
            4 => move_elements::<u32, GATHER>(dims, ends),
            8 => move_elements::<u64, GATHER>(dims, ends),
            16 => move_elements::<u128, GATHER>(dims, ends),
            _ => unreachable!("element types and runs are 1, 2, 4, 8 or 16 bytes wide"),
        }
    }
}

fn source_and_destination<const GATHER: bool>(ends: Ends) -> (*const u8, *mut u8) {
    if GATHER { (ends.host, ends.device) } else { (ends.device, ends.host) }
}

/// Calls `body` for all combinations of steps of `dims`, without those of `dims[skipped]`.
pub(super) fn each(dims: &[Dim], skipped: Option<usize>, ends: Ends, body: &mut impl FnMut(Ends)) {
    match dims.split_last() {
        None => body(ends),
        Some((_, inner)) if skipped == Some(inner.len()) => each(inner, None, ends, body),
        Some((dim, [])) => (0..dim.count).for_each(|index| body(ends.at(*dim, index))),
        Some((dim, inner)) => (0..dim.count).for_each(|index| each(inner, skipped, ends.at(*dim, index), body)),
    }
}

/// # Safety
/// As [`move_box`] with `size_of::<W>()`.
unsafe fn move_elements<W: Copy, const GATHER: bool>(dims: &[Dim], ends: Ends) {
    let Some((&first, outer)) = dims.split_first() else {
        // SAFETY: the caller's promise, for the only combination.
        return unsafe { move_one::<W, GATHER>(ends) };
    };
    let across = across(dims);
    // SAFETY: the caller's promise: all combinations of `first` and of the skipped one are among those of `dims`.
    each(outer, across, ends, &mut |ends| unsafe {
        match across {
            Some(across) => transpose::<W, GATHER>(first, outer[across], ends),
            None if GATHER && first.host_stride == 0 => repeat::<W>(first.count, ends),
            None => (0..first.count).for_each(|index| move_one::<W, GATHER>(ends.at(first, index))),
        }
    });
}

/// The loop, counted from the second, to run by tiles with the first: that with the smallest distance on the host, if
/// that is smaller than the first's.
pub(super) fn across(dims: &[Dim]) -> Option<usize> {
    let (first, outer) = dims.split_first()?;
    let distance = |dim: &Dim| dim.host_stride.unsigned_abs();
    let nearer = |dim: &Dim| dim.host_stride != 0 && distance(dim) < distance(first);
    (0..outer.len()).filter(|&index| nearer(&outer[index])).min_by_key(|&index| distance(&outer[index]))
}

/// # Safety
/// As [`move_box`], for one element.
unsafe fn move_one<W: Copy, const GATHER: bool>(ends: Ends) {
    let (source, destination) = source_and_destination::<GATHER>(ends);
    // SAFETY: the caller's promise.
    unsafe { destination.cast::<W>().write_unaligned(source.cast::<W>().read_unaligned()) }
}

/// # Safety
/// As [`move_box`], for one element of the host and `count` of the device.
unsafe fn repeat<W: Copy>(count: usize, ends: Ends) {
    // SAFETY: the caller's promise.
    unsafe {
        let element = ends.host.cast::<W>().read_unaligned();
        (0..count).for_each(|index| ends.device.cast::<W>().add(index).write_unaligned(element));
    }
}

/// Moves the elements of two loops; `first` is contiguous on the device, `near` nearly so on the host. By bands of
/// `first`, so that the pages of both sides stay known to the processor, and in them by tiles.
///
/// # Safety
/// As [`move_box`], for all combinations of the two.
unsafe fn transpose<W: Copy, const GATHER: bool>(first: Dim, near: Dim, ends: Ends) {
    let tile = tile::elements::<W>();
    // Rows of the host are contiguous then, as those of the device always are.
    let by_tiles = near.host_stride == size_of::<W>() as isize;
    for band in parts(first.count, BAND_ROWS) {
        for near_part in parts(near.count, tile) {
            for first_part in parts(band.count, tile) {
                let corner = ends.at(first, band.start + first_part.start).at(near, near_part.start);
                // SAFETY: the caller's promise, for a part of the steps of both loops.
                unsafe {
                    if by_tiles && first_part.count == tile && near_part.count == tile {
                        let host = Rows { address: corner.host, stride: first.host_stride };
                        let device = Rows { address: corner.device, stride: near.device_stride as isize };
                        let (from, to) = if GATHER { (host, device) } else { (device, host) };
                        tile::transpose::<W>(from, to);
                    } else {
                        let dims = [Dim { count: near_part.count, ..near }, Dim { count: first_part.count, ..first }];
                        each(&dims, None, corner, &mut |ends| move_one::<W, GATHER>(ends));
                    }
                }
            }
        }
    }
}

/// Rows of a band: at 4 KiB a page, they and a tile's rows of the other side are in any processor's second level of
/// address translation.
const BAND_ROWS: usize = 512;
const _: () =
    assert!(BAND_ROWS.is_multiple_of(tile::SIDE_BYTES), "a band is whole tiles, of the narrowest elements too");

pub(super) struct Part {
    pub(super) start: usize,
    pub(super) count: usize,
}

/// `0..count`, cut after every `most`.
pub(super) fn parts(count: usize, most: usize) -> impl Iterator<Item = Part> {
    (0..count).step_by(most).map(move |start| Part { start, count: most.min(count - start) })
}
