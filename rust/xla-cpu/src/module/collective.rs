//! Translates collective thunks.

use purlin_program::{Collective, CollectiveKind, GroupMode, Reduction};

use crate::proto::{CollectiveGroupsProto, CollectiveKindProto, CollectiveProto, ReductionProto};

/// The operation and the groups of a thunk.
///
/// # Errors
/// A part of it is missing, unknown or out of range, or two parts contradict each other.
pub(super) fn read(proto: &CollectiveProto) -> Result<Collective, String> {
    let kind = match proto.kind.as_ref().ok_or("a collective without a kind")? {
        CollectiveKindProto::AllGather(_) => CollectiveKind::AllGather,
        CollectiveKindProto::AllReduce(reduction) => CollectiveKind::AllReduce(read_reduction(reduction)?),
        CollectiveKindProto::AllToAll(_) => CollectiveKind::AllToAll,
        CollectiveKindProto::ReduceScatter(reduction) => CollectiveKind::ReduceScatter(read_reduction(reduction)?),
        CollectiveKindProto::Permute(permute) => {
            let pairs = permute.pairs.iter().map(|pair| Ok((number(pair.source)?, number(pair.target)?)));
            CollectiveKind::Permute(pairs.collect::<Result<_, String>>()?)
        }
    };
    let groups = proto.groups.as_ref().ok_or("a collective without groups")?;
    let mode = read_mode(groups)?;
    let group = |ids: &Vec<i64>| ids.iter().map(|&id| number(id)).collect::<Result<Vec<u32>, String>>();
    let groups = groups.groups.iter().map(|proto| group(&proto.ids)).collect::<Result<_, _>>()?;
    Ok(Collective { kind, mode, groups })
}

/// XLA's modes, which depend on whether there is a channel, and whether numbers are global.
fn read_mode(groups: &CollectiveGroupsProto) -> Result<GroupMode, String> {
    let are_global = groups.global_ids.filter(|global| global.contains_value).map(|global| global.value);
    match (groups.has_channel, are_global) {
        (false, None | Some(false)) => Ok(GroupMode::Replicas),
        (true, None) => Ok(GroupMode::Partitions),
        (true, Some(false)) => Ok(GroupMode::ReplicasOfAllPartitions),
        (true, Some(true)) => Ok(GroupMode::Participants),
        (false, Some(true)) => Err("a collective of global numbers without a channel".to_owned()),
    }
}

fn read_reduction(proto: &ReductionProto) -> Result<Reduction, String> {
    let known = [Reduction::Sum, Reduction::Product, Reduction::Min, Reduction::Max];
    let found = known.into_iter().find(|reduction| reduction.name() == proto.kind);
    found.ok_or_else(|| format!("a collective reduction '{}'", proto.kind))
}

fn number(number: i64) -> Result<u32, String> {
    u32::try_from(number).map_err(|_| format!("a collective with participant {number}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::samples::{EmptyProto, OptionalBoolProto, PairProto, PermuteProto, ReplicaGroupProto};

    fn thunk(kind: CollectiveKindProto, has_channel: bool, global: Option<bool>, ids: &[i64]) -> CollectiveProto {
        let global_ids = global.map(|value| OptionalBoolProto { value, contains_value: true });
        let groups = vec![ReplicaGroupProto { ids: ids.to_vec() }];
        let groups = Some(CollectiveGroupsProto { has_channel, global_ids, groups });
        CollectiveProto { groups, buffers: None, kind: Some(kind) }
    }

    #[test]
    fn modes_are_xlas() {
        for (has_channel, global, expected) in [
            (false, None, Ok(GroupMode::Replicas)),
            (false, Some(false), Ok(GroupMode::Replicas)),
            (true, None, Ok(GroupMode::Partitions)),
            (true, Some(false), Ok(GroupMode::ReplicasOfAllPartitions)),
            (true, Some(true), Ok(GroupMode::Participants)),
            (false, Some(true), Err("a collective of global numbers without a channel".to_owned())),
        ] {
            let kind = CollectiveKindProto::AllGather(EmptyProto {});
            let read = read(&thunk(kind, has_channel, global, &[1, 0]));
            assert_eq!(
                read.map(|collective| (collective.mode, collective.groups)),
                expected.map(|mode| (mode, vec![vec![1, 0]]))
            );
        }
    }

    #[test]
    fn what_is_unknown_or_out_of_range_is_a_reason() {
        let reduce = |kind: &str| CollectiveKindProto::AllReduce(ReductionProto { kind: kind.to_owned() });
        let pair = PairProto { source: 0, target: -1 };
        let permute = CollectiveKindProto::Permute(PermuteProto { pairs: vec![pair] });
        assert_eq!(
            read(&thunk(reduce("prod"), true, None, &[0])).unwrap().kind,
            CollectiveKind::AllReduce(Reduction::Product)
        );
        assert_eq!(read(&thunk(reduce("xor"), true, None, &[0])).unwrap_err(), "a collective reduction 'xor'");
        assert_eq!(
            read(&thunk(reduce("sum"), true, None, &[1 << 40])).unwrap_err(),
            "a collective with participant 1099511627776"
        );
        assert_eq!(read(&thunk(permute, true, None, &[0])).unwrap_err(), "a collective with participant -1");
        let nothing = CollectiveProto { groups: None, buffers: None, kind: None };
        assert_eq!(read(&nothing).unwrap_err(), "a collective without a kind");
    }
}
