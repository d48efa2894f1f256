// Purlin: TaskOptions as Rust takes them.
#ifndef PURLIN_CPP_INTERNAL_TASK_OPTIONS_H_
#define PURLIN_CPP_INTERNAL_TASK_OPTIONS_H_

#include <cstdint>

#include "cpp/internal/deadline.h"
#include "cpp/internal/functions.h"
#include "purlin/task_options.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// Borrows from `options`.
inline RawTaskOptions ToRust(const TaskOptions& options) noexcept {
  const std::int64_t until_deadline_ns = options.deadline.has_value() ? NanosecondsUntil(*options.deadline) : 0;
  return {until_deadline_ns,
          options.cancel.rep(),
          options.label.c_str(),
          static_cast<std::uint32_t>(options.priority),
          options.deadline.has_value(),
          options.may_block};
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_TASK_OPTIONS_H_
