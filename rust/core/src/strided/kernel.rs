//! The loops that move the elements of a box.
//!
//! A box is a nest of loops; each step of each loop has a distance on both sides. The first loop is the device's
//! contiguous one. Which loops are run how depends on the host's distances alone:
//!
//! - elements that stand together on the host too are one memcpy, or one wider element if they fill 2, 4, 8 or 16 bytes;
//! - if another loop has a smaller distance on the host than the first, the two are a transposition and go by tiles, so
//!   that cache lines of both sides are used up while they are in the cache;
//! - else the first loop runs along, repeating one element if its distance is 0.
//!
//! Nothing is assumed of alignment.

#![allow(unsafe_code, reason = "elements are moved by address")]

use std::ptr;

/// A loop: `count` steps, 2 at least, and the bytes from one to the next.
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

/// Moves `element_bytes` bytes for every combination of steps: from the host to the device if `GATHER`, else back. `dims`
/// are as [`StridedPlan`](super::StridedPlan) has them: the first has `device_stride == element_bytes`.
///
/// # Safety
/// On the side that is read, the bytes at all combinations are readable and nobody writes them meanwhile; on the other,
/// they are writable and nobody else touches them. The sides are disjoint. If `!GATHER`, no two combinations share host
/// bytes. `element_bytes` is 1, 2, 4, 8 or 16.
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
fn each(dims: &[Dim], skipped: Option<usize>, ends: Ends, body: &mut impl FnMut(Ends)) {
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

/// The loop, counted from the second, to run by tiles with the first: that with the smallest distance on the host, if that
/// is smaller than the first's.
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

/// Elements of a tile along the loop that is near on the host, in bytes: what is read from a row of it (or written) while
/// all its rows stay in the cache.
const TILE_BYTES: usize = 128;
/// Rows of a tile, elements along the device's contiguous loop.
const TILE_ROWS: usize = 64;

/// Moves the elements of two loops; `first` is contiguous on the device, `near` nearly so on the host.
///
/// # Safety
/// As [`move_box`], for all combinations of the two.
unsafe fn transpose<W: Copy, const GATHER: bool>(first: Dim, near: Dim, ends: Ends) {
    let width = size_of::<W>();
    let contiguous = near.host_stride == width as isize;
    let tile_elements = TILE_BYTES / width;
    for near_start in (0..near.count).step_by(tile_elements) {
        let near_end = near.count.min(near_start + tile_elements);
        for first_start in (0..first.count).step_by(TILE_ROWS) {
            let first_end = first.count.min(first_start + TILE_ROWS);
            // What of the tile can go by blocks; the rest goes one by one.
            let block = if width <= 4 { 8 } else { 4 };
            let (mut near_done, mut first_done) = (near_start, first_start);
            if contiguous {
                near_done += (near_end - near_start) / block * block;
                first_done += (first_end - first_start) / block * block;
                for index in (first_start..first_done).step_by(block) {
                    for near_index in (near_start..near_done).step_by(block) {
                        let corner = ends.at(first, index).at(near, near_index);
                        // SAFETY: the caller's promise, for `block` steps of both loops from here.
                        unsafe {
                            if width <= 4 {
                                transpose_block::<W, 8, GATHER>(first, near, corner);
                            } else {
                                transpose_block::<W, 4, GATHER>(first, near, corner);
                            }
                        }
                    }
                }
            }
            for index in first_start..first_end {
                let from = if index < first_done { near_done } else { near_start };
                for near_index in from..near_end {
                    // SAFETY: the caller's promise.
                    unsafe { move_one::<W, GATHER>(ends.at(first, index).at(near, near_index)) };
                }
            }
        }
    }
}

/// `N` times `N` elements, in registers where they fit.
///
/// # Safety
/// As [`move_box`], for `N` steps of both loops; `near` is contiguous on the host.
#[inline(always)]
unsafe fn transpose_block<W: Copy, const N: usize, const GATHER: bool>(first: Dim, near: Dim, ends: Ends) {
    // The loops whose steps are the rows of what is read, and of what is written.
    let (read, write) = if GATHER { (first, near) } else { (near, first) };
    let rows: [[W; N]; N] = std::array::from_fn(|row| {
        let (source, _) = source_and_destination::<GATHER>(ends.at(read, row));
        // SAFETY: the caller's promise; a row is N steps of the other loop, which is contiguous on this side.
        unsafe { source.cast::<[W; N]>().read_unaligned() }
    });
    let columns: [[W; N]; N] = std::array::from_fn(|column| std::array::from_fn(|row| rows[row][column]));
    for (row, elements) in columns.into_iter().enumerate() {
        let (_, destination) = source_and_destination::<GATHER>(ends.at(write, row));
        // SAFETY: as above.
        unsafe { destination.cast::<[W; N]>().write_unaligned(elements) }
    }
}
