// Purlin: which error wins when several things that were joined fail.
//
// ```cpp
// purlin::JoinOptions options;  // for WhenAll (join_events.h) and JoinFutures (join_futures.h)
// options.policy = purlin::ErrorPolicy::kFirstInTime;
// options.fail_fast = true;
// ```
#ifndef PURLIN_ERROR_POLICY_H_
#define PURLIN_ERROR_POLICY_H_

#include <string>

#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// Which error the result of a join gets. A join with a number that is none of these fails with kInvalidArgument,
/// whatever becomes of its members.
enum class ErrorPolicy : int {
  /// That of the member with the lowest index: does not depend on timing.
  kFirstByIndex = 0,
  /// The first in time.
  kFirstInTime = 1,
  /// The last in time.
  kLastInTime = 2,
  /// The code and payloads of the first in time, and the messages of all.
  kAll = 3,
};

/// How to join, see join_futures.h and join_events.h.
struct JoinOptions {
  /// Which error wins.
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

}  // namespace internal

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ERROR_POLICY_H_
