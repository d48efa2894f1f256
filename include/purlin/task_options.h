// Purlin: options of a task: priority, deadline, cancellation, label.
//
// ```cpp
// purlin::CancelSource stop("request 7");
// purlin::TaskOptions options;  // for Executor::ExecuteWith
// options.priority = purlin::Priority::kHigh;
// options.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
// options.cancel = stop.token();
// ```
#ifndef PURLIN_TASK_OPTIONS_H_
#define PURLIN_TASK_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <optional>

#include "purlin/cancel.h"
#include "purlin/export.h"
#include "purlin/internal/abi.h"
#include "purlin/label.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// Which of the tasks that wait for a thread starts first. A hint: an executor without such a choice ignores it. A
/// number that is none of these is kInvalidArgument where Purlin reads it.
enum class Priority : std::uint32_t {
  /// After the others.
  kLow = 0,
  /// In its turn.
  kNormal = 1,
  /// Before the others.
  kHigh = 2,
};

/// How to run a task. See Executor::ExecuteWith.
struct TaskOptions {
  /// A hint, see Priority.
  Priority priority = Priority::kNormal;
  /// When this has passed, the task is destroyed instead of started. A task that runs is not interrupted.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  /// When this is cancelled, the task is destroyed instead of started. A task that runs is not interrupted; it may look
  /// at its own copy of the token.
  CancelToken cancel;
  /// Replaces the name that the task was made with, unless it is "".
  Label label;
  /// A hint: the task may wait for something other than the processor for long.
  bool may_block = false;
};

/// Tasks of this process that were destroyed at their turn.
struct DroppedTasks {
  /// Because their token was cancelled.
  std::uint64_t cancelled = 0;
  /// Because their deadline had passed.
  std::uint64_t late = 0;
};

/// How many tasks were destroyed at their turn since the process began. Any thread; never blocks.
PURLIN_API DroppedTasks CountDroppedTasks() noexcept;

namespace internal {
/// A task that looks at the options before it runs `task`, which it takes over; or null and `error`, when it must not
/// run at all and has been destroyed.
PURLIN_API TaskNode* ApplyTaskOptions(TaskNode* task, const TaskOptions& options, const StatusRep** error) noexcept;
}  // namespace internal

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_TASK_OPTIONS_H_
