// Purlin: times as Rust takes them: nanoseconds from now. Both sides read the same monotonic clock.
#ifndef PURLIN_CPP_INTERNAL_DEADLINE_H_
#define PURLIN_CPP_INTERNAL_DEADLINE_H_

#include <chrono>
#include <cstdint>
#include <limits>

#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// Nanoseconds from now to `time`, negative if it has passed; what does not fit is the largest or the smallest number.
inline std::int64_t NanosecondsUntil(std::chrono::steady_clock::time_point time) noexcept {
  const std::int64_t then = std::chrono::nanoseconds(time.time_since_epoch()).count();
  const std::int64_t now = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  // The clock counts from its start, so `now` is not negative and only a very early time overflows.
  if (then < std::numeric_limits<std::int64_t>::min() + now) return std::numeric_limits<std::int64_t>::min();
  return then - now;
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_DEADLINE_H_
