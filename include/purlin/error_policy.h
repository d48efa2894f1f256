// Purlin: which error the result of a join has when members of it fail.
//
// This is the contract of every join: of events (WhenAll), of futures (JoinFutures, MakeFutureWhenReady) and of
// count-downs (CountDownAsyncValueRef), in C++ and in Rust.
//
// - A join completes when all of its members have, or, with `fail_fast`, with the first error, which is then its error
//   whatever the policy says.
// - Members have indices, in the order in which they were given. Members that had failed before the join count as
//   failed in the order of their indices.
// - An error that a policy chooses is passed on as it is: code, message, payloads and place. So is the only error of a
//   join under any policy.
// - kAll makes one error of two or more, with the code, payloads and place of the failed member with the lowest index.
//   Its message is "2 of 3 failed: [0] ABORTED: first; [2] DATA_LOSS: third": how many of how many members, then index,
//   code and message of each, in the order of their indices. It depends on timing in nothing.
// - A member of a count-down may have no index. It counts as higher than all that have one, and kAll lists it without,
//   after them. Equal indices stand in the order of time.
//
// ```cpp
// purlin::JoinOptions options;  // for WhenAll (join_events.h) and JoinFutures (join_futures.h)
// options.policy = purlin::ErrorPolicy::kFirstInTime;
// options.fail_fast = true;
// ```
#ifndef PURLIN_ERROR_POLICY_H_
#define PURLIN_ERROR_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "purlin/internal/abi.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// Which error the result of a join gets; see the top of this file. A join with a number that is none of these fails
/// with kInvalidArgument, whatever becomes of its members.
enum class ErrorPolicy : int {
  /// That of the member with the lowest index: does not depend on timing.
  kFirstByIndex = 0,
  /// That of the member that failed first.
  kFirstInTime = 1,
  /// That of the member that failed last.
  kLastInTime = 2,
  /// One error that lists all of them.
  kAll = 3,
};

/// How to join, see join_futures.h and join_events.h.
struct JoinOptions {
  /// Which error the join has.
  ErrorPolicy policy = ErrorPolicy::kFirstByIndex;
  /// The join fails with the first error, without waiting for the others.
  bool fail_fast = false;
  /// Names a join of futures; those of events are called WhenAll.
  Label label = Label("JoinFutures");
};

namespace internal {

/// kInvalidArgument, unless `policy` is one.
inline Status CheckErrorPolicy(ErrorPolicy policy, SourceLocation location) {
  const int number = static_cast<int>(policy);
  if (number >= static_cast<int>(ErrorPolicy::kFirstByIndex) && number <= static_cast<int>(ErrorPolicy::kAll)) {
    return Status();
  }
  return InvalidArgumentError("the ErrorPolicy is " + std::to_string(number) +
                                  "; it must be one of kFirstByIndex (0), kFirstInTime (1), kLastInTime (2), kAll (3)",
                              location);
}

/// The errors of a join that a header makes, in the order of time.
class JoinErrors final {
 public:
  /// The index of a member that has none.
  static constexpr std::size_t kNoIndex = std::numeric_limits<std::size_t>::max();

  /// `error`, not OK, of the member of that index, or of several without one.
  void Add(Status error, std::size_t index, std::size_t members = 1) {
    errors_.push_back(std::move(error));
    indices_.push_back(index);
    failed_ += members;
  }
  /// The error of a join of `total` members; OK if there is none. Rust merges the errors of all joins.
  Status Merge(ErrorPolicy policy, std::size_t total) const {
    return Status::FromRep(JoinError(static_cast<std::uint32_t>(policy), total, failed_,
                                     reinterpret_cast<const StatusRep* const*>(errors_.data()), indices_.data(),
                                     errors_.size()));
  }

 private:
  std::vector<Status> errors_;
  std::vector<std::size_t> indices_;
  std::size_t failed_ = 0;
};

}  // namespace internal

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ERROR_POLICY_H_
