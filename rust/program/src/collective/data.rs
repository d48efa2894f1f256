//! The movement of bytes, when the arrays of all members are there.

#![allow(unsafe_code, reason = "arrays are read and written by address")]

use std::ptr;

use super::{Collective, CollectiveArray, CollectiveKind, reduce};
use crate::library::OperandBytes;

/// The bytes of a member, by array.
pub(super) struct Member {
    pub(super) from: Vec<OperandBytes>,
    pub(super) to: Vec<OperandBytes>,
}

// SAFETY: the addresses are those of a run that waits until the collective is over; any thread may access them.
unsafe impl Send for Member {}

/// Executes the collective for all members, in the order of ranks.
///
/// # Safety
/// The command is valid for a group of so many members. All bytes are valid for reads or writes, and nothing else
/// accesses them. The written bytes are disjoint from all others, but for arrays that are reduced in place.
pub(super) unsafe fn exchange(collective: &Collective, arrays: &[CollectiveArray], members: &[Member]) {
    for (number, CollectiveArray { from, to, dtype }) in arrays.iter().enumerate() {
        let given = |rank: usize| members[rank].from[number].address.cast_const();
        let taken = |rank: usize| members[rank].to[number].address;
        let ranks = 0..members.len();
        // SAFETY: the caller's promise. Sizes are as validation and loading have checked.
        unsafe {
            match &collective.kind {
                CollectiveKind::AllReduce(reduction) => {
                    let from_all: Vec<_> = ranks.clone().map(given).collect();
                    let to_all: Vec<_> = ranks.map(taken).collect();
                    reduce::reduce(*reduction, *dtype, &from_all, &to_all, from.size_bytes / dtype.byte_width());
                }
                CollectiveKind::ReduceScatter(reduction) => {
                    for rank in ranks.clone() {
                        let part = |other: usize| given(other).wrapping_add(rank * to.size_bytes);
                        let from_all: Vec<_> = ranks.clone().map(part).collect();
                        let count = to.size_bytes / dtype.byte_width();
                        reduce::reduce(*reduction, *dtype, &from_all, &[taken(rank)], count);
                    }
                }
                CollectiveKind::AllGather => {
                    for rank in ranks.clone() {
                        for other in ranks.clone() {
                            let part = taken(rank).wrapping_add(other * from.size_bytes);
                            ptr::copy_nonoverlapping(given(other), part, from.size_bytes);
                        }
                    }
                }
                CollectiveKind::AllToAll => {
                    for rank in ranks {
                        let source = members[number].from[rank].address.cast_const();
                        ptr::copy_nonoverlapping(source, taken(rank), to.size_bytes);
                    }
                }
                CollectiveKind::Permute(pairs) => {
                    for rank in ranks {
                        match pairs.iter().find(|(_, target)| *target as usize == rank) {
                            Some(&(source, _)) => {
                                ptr::copy_nonoverlapping(given(source as usize), taken(rank), to.size_bytes);
                            }
                            None => ptr::write_bytes(taken(rank), 0, to.size_bytes),
                        }
                    }
                }
            }
        }
    }
}
