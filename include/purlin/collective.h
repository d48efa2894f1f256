// Purlin: collectives, commands by which the devices of one launch exchange arrays.
//
// ```cpp
// purlin::Collective SumOfEvenAndOfOddReplicas() {
//   purlin::Collective sum = purlin::Collective::AllReduce(purlin::Reduction::kSum);
//   sum.groups = {{0, 2}, {1, 3}};
//   return sum;  // For ProgramBuilder::AddCollective, with the arrays.
// }
// ```
//
// The devices of a launch (LoadedExecutable::ExecuteSharded) are its participants, numbered replica by replica, in each
// replica partition by partition. A collective divides them into groups. All members of a group execute the command,
// each with arrays of its own; a member's rank is its position in the group. The command ends for all of them together.
// If a member fails, or its launch never comes to the command, the others fail, too, and the error names it.
//
// The platform `host` runs them on any number of devices; on `sim`, LoadedExecutable::Load refuses those of several
// devices (kUnimplemented).
#ifndef PURLIN_COLLECTIVE_H_
#define PURLIN_COLLECTIVE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// What a collective does. Every member has the same number of arrays.
enum class CollectiveKind : std::uint8_t {
  /// Each member gets the reduction of all members' arrays. An array may be reduced in place.
  kAllReduce = 0,
  /// Each member gets the arrays of all members, one after the other in the order of ranks.
  kAllGather = 1,
  /// Each array has a part for each member, and each member gets the reduction of its parts.
  kReduceScatter = 2,
  /// As many arrays as members: array `n` goes to the member of rank `n`, and becomes the array there that has the
  /// number of this member's rank.
  kAllToAll = 3,
  /// Pairs of ranks: the second one gets the arrays of the first one. A member that no pair sends to gets zeros.
  kPermute = 4,
};

/// How elements are combined, in the order of ranks, beginning with the neutral element. Integers wrap around.
/// Floating-point numbers of 16 bits are rounded after each step.
enum class Reduction : std::uint8_t {
  /// The sum; of kPred, or.
  kSum = 0,
  /// The product; of kPred, and.
  kProduct = 1,
  /// The least, not of complex numbers. NaN is passed over.
  kMin = 2,
  /// The greatest, not of complex numbers. NaN is passed over.
  kMax = 3,
  /// Bitwise and, of integers and kPred.
  kAnd = 4,
  /// Bitwise or, of integers and kPred.
  kOr = 5,
};

/// What the numbers in the groups of a collective are.
enum class GroupMode : std::uint8_t {
  /// Replicas. The members have the same partition.
  kReplicas = 0,
  /// Partitions. The members have the same replica.
  kPartitions = 1,
  /// Replicas. All partitions of these replicas are members.
  kReplicasOfAllPartitions = 2,
  /// Participants.
  kParticipants = 3,
};

/// What members of a group exchange. A value; nothing is checked before ProgramBuilder::Build, and the groups not
/// before LoadedExecutable::Load, which knows the devices.
struct Collective {
  /// The operation.
  CollectiveKind kind = CollectiveKind::kAllReduce;
  /// Of kAllReduce and kReduceScatter.
  Reduction reduction = Reduction::kSum;
  /// What the numbers in `groups` are.
  GroupMode mode = GroupMode::kReplicas;
  /// The groups; each number is in exactly one of them. The order is that of the ranks. Without groups, all numbers are
  /// one group.
  std::vector<std::vector<std::uint32_t>> groups;
  /// Of kPermute: ranks, from and to.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;

  /// The reduction of all replicas' arrays.
  static Collective AllReduce(Reduction reduction) { return {CollectiveKind::kAllReduce, reduction, {}, {}, {}}; }
  /// The arrays of all replicas.
  static Collective AllGather() { return {CollectiveKind::kAllGather, {}, {}, {}, {}}; }
  /// A part of the reduction of all replicas' arrays.
  static Collective ReduceScatter(Reduction reduction) {
    return {CollectiveKind::kReduceScatter, reduction, {}, {}, {}};
  }
  /// An array for each replica, and one of each.
  static Collective AllToAll() { return {CollectiveKind::kAllToAll, {}, {}, {}, {}}; }
  /// From replica to replica.
  static Collective Permute(std::vector<std::pair<std::uint32_t, std::uint32_t>> from_to) {
    return {CollectiveKind::kPermute, {}, {}, {}, std::move(from_to)};
  }
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_COLLECTIVE_H_
