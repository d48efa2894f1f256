//! Moving elements narrower than a byte: by way of bytes on the stack, a byte for each element, which are packed or
//! unpacked there. Not if the host has the elements as that stage would.
//!
//! Where the rows of a transposition begin on bytes of the device, it works in squares, as wider elements do; else by
//! numbers, some thousands at a time.

#![allow(unsafe_code, reason = "elements are moved by address")]

use std::mem::MaybeUninit;
use std::ops::Range;
use std::{ptr, slice};

use crate::strided::kernel::{Dim, Ends, across, each, move_box, parts};
use crate::strided::pack::Packing;
use crate::strided::plan::{StridedPlan, with_loop};

const STAGE_BYTES: usize = 16 * 1024;
/// A square of this side is a stage.
const SIDE: usize = 128;

type Stage = [MaybeUninit<u8>; STAGE_BYTES];

/// Moves that range of a plan's elements, of which there is at least one; `ends.host` is number 0, `ends.device` the
/// range's first byte.
///
/// # Safety
/// As [`StridedPlan::gather`] if `GATHER`, else as [`StridedPlan::scatter`].
pub(super) unsafe fn move_narrow<const GATHER: bool>(
    plan: &StridedPlan,
    packing: Packing,
    ends: Ends,
    elements: Range<usize>,
) {
    if plan.is_dense_on_host() {
        let host = ends.host.wrapping_add(elements.start);
        // SAFETY: the caller's promise: the elements stand together from number 0, a byte each.
        return unsafe { convert::<GATHER>(packing, host, ends.device, elements.len()) };
    }
    let mut stage: Stage = [const { MaybeUninit::uninit() }; STAGE_BYTES];
    let rows_begin_on_bytes =
        plan.dims().first().is_some_and(|first| first.count.is_multiple_of(packing.elements_per_byte()));
    if rows_begin_on_bytes && across(plan.dims()).is_some() {
        // SAFETY: the caller's promise. The range begins and ends on bytes, as all rows do.
        return unsafe { move_narrow_boxes::<GATHER>(plan, packing, ends, elements, None, &mut stage) };
    }
    for start in elements.clone().step_by(STAGE_BYTES) {
        let part = start..elements.end.min(start.saturating_add(STAGE_BYTES));
        let count = part.len();
        let device = ends.device.wrapping_add((start - elements.start) / packing.elements_per_byte());
        // Where number 0 would be if the part's first element were the stage's.
        let staged = Ends { host: ends.host, device: stage.as_mut_ptr().cast::<u8>().wrapping_sub(start) };
        // SAFETY: the caller's promise; the stage is ours, has a byte for each element, and they are all written before
        // they are read: in the order of the two steps, which is that of the direction.
        unsafe {
            let move_part = || plan.boxes(staged, part.clone(), &mut |dims, ends| move_box::<GATHER>(dims, 1, ends));
            if GATHER {
                move_part();
            }
            convert::<GATHER>(packing, stage.as_mut_ptr().cast(), device, count);
            if !GATHER {
                move_part();
            }
        }
    }
}

/// Moves several runs of a transposition whose rows begin on bytes: `first`, and one more for each further step of
/// `near`, which stand one after the other at `ends.device`. Runs begin and end on bytes.
///
/// # Safety
/// As [`StridedPlan::gather_section`] if `GATHER`, else as [`StridedPlan::scatter_section`].
pub(super) unsafe fn move_narrow_runs<const GATHER: bool>(
    plan: &StridedPlan,
    packing: Packing,
    ends: Ends,
    first: Range<usize>,
    near: Dim,
) {
    let mut stage: Stage = [const { MaybeUninit::uninit() }; STAGE_BYTES];
    // SAFETY: the caller's promise.
    unsafe { move_narrow_boxes::<GATHER>(plan, packing, ends, first, Some(near), &mut stage) };
}

/// Moves a range, which begins and ends on bytes, of a transposition whose rows do; for each step of `near`, if there
/// is one, with the bytes of the next step behind those of the last.
///
/// # Safety
/// As [`move_narrow`], for the elements of all steps.
unsafe fn move_narrow_boxes<const GATHER: bool>(
    plan: &StridedPlan,
    packing: Packing,
    ends: Ends,
    elements: Range<usize>,
    near: Option<Dim>,
    stage: &mut Stage,
) {
    // Boxes are found for a device where every element has a byte, from address 0, so addresses are numbers.
    let numbers = Ends { host: ends.host, device: ptr::null_mut() };
    let device_of =
        |number: *mut u8| ends.device.wrapping_add((number.addr() - elements.start) / packing.elements_per_byte());
    plan.boxes(numbers, elements.clone(), &mut |dims, ends| match near {
        // SAFETY: the caller's promise: boxes are parts of the range.
        None => unsafe { move_narrow_box::<GATHER>(packing, dims, ends, &device_of, stage) },
        Some(near) => {
            let dims = with_loop(dims, near, 1);
            // SAFETY: as above, for all steps.
            unsafe { move_narrow_box::<GATHER>(packing, &dims, ends, &device_of, stage) };
        }
    });
}

/// Moves a box whose rows begin and end on bytes, by squares if it is a transposition, else by parts of rows.
/// `ends.device` is the number of its first element, `device_of` finds the byte of a number.
///
/// # Safety
/// As [`move_narrow`], for the elements of the box.
unsafe fn move_narrow_box<const GATHER: bool>(
    packing: Packing,
    dims: &[Dim],
    ends: Ends,
    device_of: &impl Fn(*mut u8) -> *mut u8,
    stage: &mut Stage,
) {
    let (first, outer) = dims.split_first().expect("rows that begin on bytes have 2 elements or more");
    let across = across(dims);
    let (near, most) = match across {
        Some(index) => (outer[index], SIDE),
        None => (Dim { count: 1, host_stride: 0, device_stride: 0 }, STAGE_BYTES),
    };
    let stage: *mut u8 = stage.as_mut_ptr().cast();
    each(outer, across, ends, &mut |ends| {
        for near_part in parts(near.count, SIDE) {
            for first_part in parts(first.count, most) {
                let corner = ends.at(*first, first_part.start).at(near, near_part.start);
                let row = Dim { count: first_part.count, device_stride: 1, ..*first };
                let square = [row, Dim { count: near_part.count, device_stride: row.count, ..near }];
                let staged = Ends { host: corner.host, device: stage };
                // SAFETY: the caller's promise; the square fits in the stage, which is ours, and is written before it
                // is read: in the order of the steps, which is that of the direction.
                unsafe {
                    if GATHER {
                        move_box::<GATHER>(&square, 1, staged);
                    }
                    for index in 0..near_part.count {
                        let device = device_of(corner.at(near, index).device);
                        convert::<GATHER>(packing, stage.add(index * row.count), device, row.count);
                    }
                    if !GATHER {
                        move_box::<GATHER>(&square, 1, staged);
                    }
                }
            }
        }
    });
}

/// Packs `count` bytes of `bytes` into those at `packed` if `GATHER`, else unpacks them.
///
/// # Safety
/// What is read is initialised, and nothing writes it meanwhile; what is written is writable, and nothing else touches
/// it; the two are disjoint. There are `ceil(count / packing.elements_per_byte())` bytes at `packed`.
unsafe fn convert<const GATHER: bool>(packing: Packing, bytes: *mut u8, packed: *mut u8, count: usize) {
    let packed_count = count.div_ceil(packing.elements_per_byte());
    // SAFETY: the caller's promise; what is written may be uninitialised, as its type says.
    unsafe {
        if GATHER {
            let bytes = slice::from_raw_parts(bytes.cast_const(), count);
            packing.pack(bytes, slice::from_raw_parts_mut(packed.cast::<MaybeUninit<u8>>(), packed_count));
        } else {
            let packed = slice::from_raw_parts(packed.cast_const(), packed_count);
            packing.unpack(packed, slice::from_raw_parts_mut(bytes.cast::<MaybeUninit<u8>>(), count));
        }
    }
}
