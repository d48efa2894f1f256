//! Collectives: commands by which the devices of one launch exchange arrays.
//!
//! The devices of a launch are its *participants*, numbered replica by replica, in each replica partition by partition.
//! A [`Collective`] divides them into groups. All members of a group execute the command, each with arrays of its own;
//! a member's *rank* is its position in the group. The command ends for all of them together (`rendezvous.rs`).
//!
//! A trait, [`CollectiveEngine`], is the seam for other ways to exchange: between processes, or by a library.

mod data;
mod engine;
mod reduce;
mod rendezvous;

use std::fmt;

use crate::allocation::Slice;
use purlin_array::DType;

pub use self::engine::{CollectiveCall, CollectiveEngine, CollectiveLaunch};
pub use self::rendezvous::InProcess;

/// What members of a group exchange.
///
/// ```
/// use purlin::program::{Collective, CollectiveKind, GroupMode, Reduction};
///
/// let groups = vec![vec![0, 2], vec![1, 3]];
/// let sum = Collective { kind: CollectiveKind::AllReduce(Reduction::Sum), mode: GroupMode::Replicas, groups };
/// assert_eq!(sum.to_string(), "all-reduce sum");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collective {
    /// The operation.
    pub kind: CollectiveKind,
    /// What the numbers in `groups` are.
    pub mode: GroupMode,
    /// The groups; each number is in exactly one of them. The order is that of the ranks. Without groups, all numbers
    /// are one group.
    pub groups: Vec<Vec<u32>>,
}

/// The operation of a [`Collective`]. Every member has the same number of arrays.
///
/// ```
/// use purlin::program::CollectiveKind;
///
/// assert_eq!(CollectiveKind::Permute(vec![(0, 1), (1, 0)]).name(), "collective-permute");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CollectiveKind {
    /// Each member gets the reduction of all members' arrays. An array may be reduced in place.
    AllReduce(Reduction),
    /// Each member gets the arrays of all members, one after the other in the order of ranks.
    AllGather,
    /// Each array has a part for each member, and each member gets the reduction of its parts.
    ReduceScatter(Reduction),
    /// As many arrays as members: array `n` goes to the member of rank `n`, and becomes the array there that has the
    /// number of this member's rank.
    AllToAll,
    /// Pairs of ranks: the second one gets the arrays of the first one. A member that no pair sends to gets zeros.
    Permute(Vec<(u32, u32)>),
}

impl CollectiveKind {
    /// XLA's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::AllReduce(_) => "all-reduce",
            Self::AllGather => "all-gather",
            Self::ReduceScatter(_) => "reduce-scatter",
            Self::AllToAll => "all-to-all",
            Self::Permute(_) => "collective-permute",
        }
    }

    const fn reduction(&self) -> Option<Reduction> {
        match self {
            Self::AllReduce(reduction) | Self::ReduceScatter(reduction) => Some(*reduction),
            _ => None,
        }
    }
}

/// How elements are combined, in the order of ranks, beginning with the neutral element. Integers wrap around.
/// Floating-point numbers of 16 bits are rounded after each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// The sum; of `pred`, or.
    Sum,
    /// The product; of `pred`, and.
    Product,
    /// The least, not of complex numbers. NaN is passed over.
    Min,
    /// The greatest, not of complex numbers. NaN is passed over.
    Max,
    /// Bitwise and, of integers and `pred`.
    And,
    /// Bitwise or, of integers and `pred`.
    Or,
}

impl Reduction {
    /// XLA's name; XLA has no and, and no or.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Product => "prod",
            Self::Min => "min",
            Self::Max => "max",
            Self::And => "and",
            Self::Or => "or",
        }
    }
}

/// What the numbers in the groups of a [`Collective`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupMode {
    /// Replicas. The members have the same partition.
    Replicas,
    /// Partitions. The members have the same replica.
    Partitions,
    /// Replicas. All partitions of these replicas are members.
    ReplicasOfAllPartitions,
    /// Participants.
    Participants,
}

/// An array that a member gives, and the array that it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveArray {
    /// The bytes that are given.
    pub from: Slice,
    /// The bytes that are written.
    pub to: Slice,
    /// The type of the elements of both.
    pub dtype: DType,
}

/// `all-reduce sum`, `all-gather`
impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        match self.kind.reduction() {
            Some(reduction) => write!(f, " {}", reduction.name()),
            None => Ok(()),
        }
    }
}

impl Collective {
    /// The participants in the group of `participant`, in the order of ranks. Empty: it is in no group.
    pub(crate) fn members(&self, participant: u32, replicas: u32, partitions: u32) -> Vec<u32> {
        let (replica, partition) = (participant / partitions, participant % partitions);
        let (own, count) = match self.mode {
            GroupMode::Replicas | GroupMode::ReplicasOfAllPartitions => (replica, replicas),
            GroupMode::Partitions => (partition, partitions),
            GroupMode::Participants => (participant, replicas * partitions),
        };
        let group: Vec<u32> = match self.groups.is_empty() {
            true => (0..count).collect(),
            false => self.groups.iter().find(|group| group.contains(&own)).cloned().unwrap_or_default(),
        };
        let member = |number: u32| match self.mode {
            GroupMode::Replicas => number * partitions + partition,
            GroupMode::Partitions => replica * partitions + number,
            GroupMode::ReplicasOfAllPartitions | GroupMode::Participants => number,
        };
        match self.mode {
            GroupMode::ReplicasOfAllPartitions => group
                .iter()
                .flat_map(|replica| (0..partitions).map(move |partition| replica * partitions + partition))
                .collect(),
            _ => group.into_iter().map(member).collect(),
        }
    }

    /// Checks what does not depend on the devices: types, and sizes as far as they are equal. Returns what is wrong,
    /// with the number of the array.
    pub(crate) fn check(&self, arrays: &[CollectiveArray]) -> Result<(), (usize, String)> {
        for (number, CollectiveArray { from, to, dtype }) in arrays.iter().enumerate() {
            let refused = |why: String| Err((number, why));
            let width = dtype.byte_width();
            if width == 0 {
                return refused(format!("elements of {} are no whole bytes", dtype.name()));
            }
            if let Some(reduction) = self.kind.reduction().filter(|reduction| !reduce::is_known(*reduction, *dtype)) {
                return refused(format!("there is no {} of {}", reduction.name(), dtype.name()));
            }
            if !from.size_bytes.is_multiple_of(width) || !to.size_bytes.is_multiple_of(width) {
                return refused(format!(
                    "{} and {} bytes are not both whole elements of {}",
                    from.size_bytes,
                    to.size_bytes,
                    dtype.name()
                ));
            }
            let is_equal = !matches!(self.kind, CollectiveKind::AllGather | CollectiveKind::ReduceScatter(_));
            if is_equal && from.size_bytes != to.size_bytes {
                return refused(format!("{} bytes are given, and {} are written", from.size_bytes, to.size_bytes));
            }
            if matches!(self.kind, CollectiveKind::AllToAll) && from.size_bytes != arrays[0].from.size_bytes {
                return refused(format!(
                    "{} bytes, and array 0 has {}: all must be equal",
                    from.size_bytes, arrays[0].from.size_bytes
                ));
            }
        }
        Ok(())
    }

    /// Checks what depends on the numbers of replicas and partitions: that each participant is in one group, and the
    /// sizes that follow from those of the groups. Returns what is wrong.
    pub(crate) fn check_groups(
        &self,
        arrays: &[CollectiveArray],
        replicas: u32,
        partitions: u32,
    ) -> Result<(), String> {
        let count = match self.mode {
            GroupMode::Replicas | GroupMode::ReplicasOfAllPartitions => replicas,
            GroupMode::Partitions => partitions,
            GroupMode::Participants => replicas * partitions,
        };
        if !self.groups.is_empty() {
            let mut numbers: Vec<u32> = self.groups.iter().flatten().copied().collect();
            numbers.sort_unstable();
            if !numbers.iter().copied().eq(0..count) {
                return Err(format!("its groups are {:?}, and each of 0..{count} must be in one of them", self.groups));
            }
        }
        for participant in 0..replicas * partitions {
            self.check_group(arrays, self.members(participant, replicas, partitions).len())?;
        }
        Ok(())
    }

    fn check_group(&self, arrays: &[CollectiveArray], members: usize) -> Result<(), String> {
        for (number, CollectiveArray { from, to, .. }) in arrays.iter().enumerate() {
            let (part, whole) = match self.kind {
                CollectiveKind::AllGather => (from.size_bytes, to.size_bytes),
                CollectiveKind::ReduceScatter(_) => (to.size_bytes, from.size_bytes),
                _ => continue,
            };
            if part.checked_mul(members) != Some(whole) {
                return Err(format!(
                    "array {number} has {whole} bytes, which are not {members} parts of {part}: one for each member"
                ));
            }
        }
        match &self.kind {
            CollectiveKind::AllToAll if arrays.len() != members => {
                Err(format!("it has {} arrays for {members} members", arrays.len()))
            }
            CollectiveKind::Permute(pairs) => {
                let mut targets: Vec<u32> = pairs.iter().map(|pair| pair.1).collect();
                targets.sort_unstable();
                if let Some(pair) = targets.windows(2).find(|pair| pair[0] == pair[1]) {
                    return Err(format!("rank {} gets from two others", pair[0]));
                }
                match pairs.iter().flat_map(|&(from, to)| [from, to]).find(|&rank| rank as usize >= members) {
                    Some(rank) => Err(format!("it names rank {rank}, and there are {members} members")),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(mode: GroupMode, groups: &[&[u32]], participant: u32) -> Vec<u32> {
        let groups = groups.iter().map(|group| group.to_vec()).collect();
        Collective { kind: CollectiveKind::AllGather, mode, groups }.members(participant, 2, 3)
    }

    /// Two replicas of three partitions: participant 4 is partition 1 of replica 1.
    #[test]
    fn groups_are_of_replicas_partitions_or_participants() {
        assert_eq!(members(GroupMode::Replicas, &[], 4), [1, 4]);
        assert_eq!(members(GroupMode::Replicas, &[&[1, 0]], 4), [4, 1]);
        assert_eq!(members(GroupMode::Replicas, &[&[0], &[1]], 4), [4]);
        assert_eq!(members(GroupMode::Partitions, &[&[0, 1], &[2]], 4), [3, 4]);
        assert_eq!(members(GroupMode::ReplicasOfAllPartitions, &[&[1, 0]], 4), [3, 4, 5, 0, 1, 2]);
        assert_eq!(members(GroupMode::Participants, &[&[0, 1, 2, 3], &[5, 4]], 4), [5, 4]);
        assert_eq!(members(GroupMode::Participants, &[&[0]], 4), [0; 0]);
    }

    fn array(from: usize, to: usize, dtype: DType) -> CollectiveArray {
        let slice = |size_bytes| Slice { allocation: 0, offset_bytes: 0, size_bytes };
        CollectiveArray { from: slice(from), to: slice(to), dtype }
    }

    #[test]
    fn sizes_and_types_fit() {
        let check = |kind: CollectiveKind, array: CollectiveArray| {
            Collective { kind, mode: GroupMode::Participants, groups: vec![] }.check(&[array]).map_err(|(_, why)| why)
        };
        let sum = CollectiveKind::AllReduce(Reduction::Sum);
        check(sum.clone(), array(8, 8, DType::F32)).unwrap();
        assert_eq!(
            check(sum.clone(), array(6, 6, DType::F32)).unwrap_err(),
            "6 and 6 bytes are not both whole elements of f32"
        );
        assert_eq!(check(sum.clone(), array(8, 4, DType::F32)).unwrap_err(), "8 bytes are given, and 4 are written");
        assert_eq!(check(sum, array(1, 1, DType::S4)).unwrap_err(), "elements of s4 are no whole bytes");
        let least = CollectiveKind::AllReduce(Reduction::Min);
        assert_eq!(check(least, array(8, 8, DType::C64)).unwrap_err(), "there is no min of c64");
        let check_groups = |kind: CollectiveKind, groups: &[&[u32]], array: CollectiveArray| {
            let groups = groups.iter().map(|group| group.to_vec()).collect();
            Collective { kind, mode: GroupMode::Participants, groups }.check_groups(&[array], 4, 1)
        };
        check_groups(CollectiveKind::AllGather, &[], array(4, 16, DType::F32)).unwrap();
        check_groups(CollectiveKind::AllGather, &[&[0, 1], &[2, 3]], array(4, 8, DType::F32)).unwrap();
        for (kind, groups, expected) in [
            (
                CollectiveKind::AllGather,
                &[][..],
                "array 0 has 8 bytes, which are not 4 parts of 4: one for each member",
            ),
            (
                CollectiveKind::AllGather,
                &[&[0, 1][..], &[2]],
                "its groups are [[0, 1], [2]], and each of 0..4 must be in one of them",
            ),
            (CollectiveKind::AllToAll, &[], "it has 1 arrays for 4 members"),
            (CollectiveKind::Permute(vec![(0, 4)]), &[], "it names rank 4, and there are 4 members"),
            (CollectiveKind::Permute(vec![(0, 1), (2, 1)]), &[], "rank 1 gets from two others"),
        ] {
            assert_eq!(check_groups(kind, groups, array(4, 8, DType::F32)).unwrap_err(), expected);
        }
    }
}
