#include "purlin/task_options.h"

#include "cpp/internal/functions.h"
#include "cpp/internal/task_options.h"
#include "purlin-bridge/src/task_options.rs.h"

namespace purlin {
inline namespace v0 {

DroppedTasks CountDroppedTasks() noexcept {
  const ffi::DroppedTasks dropped = ffi::task_dropped_counts();
  return {dropped.cancelled, dropped.late};
}

namespace internal {

TaskNode* ApplyTaskOptions(TaskNode* task, const TaskOptions& options, const StatusRep** error) noexcept {
  const RawTaskOptions raw = ToRust(options);
  return purlin_task_apply_options(task, &raw, error);
}

}  // namespace internal

}  // namespace v0
}  // namespace purlin
