// Purlin: an executor of the user's, for Rust to call. Not for users.
#ifndef PURLIN_INTERNAL_EXECUTOR_REF_H_
#define PURLIN_INTERNAL_EXECUTOR_REF_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "purlin/executor.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/guard.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// A reference to an executor, and its functions. The receiver calls `release` once.
struct ExecutorRef {
  void* data;
  /// Takes `task` over; null, or an owned error, when the task has been destroyed.
  const StatusRep* (*execute)(void* data, TaskNode* task) noexcept;
  void (*release)(void* data) noexcept;
};

static_assert(sizeof(ExecutorRef) == 24 && offsetof(ExecutorRef, data) == 0 && offsetof(ExecutorRef, execute) == 8 &&
                  offsetof(ExecutorRef, release) == 16,
              "ExecutorRef ABI");

/// Runs on the executor; an exception is an error. The parameter keeps translation units with and without
/// exceptions apart, as in guard.h.
template <typename Mode = WithExceptions>
const StatusRep* ExecuteOn(void* data, TaskNode* node) noexcept {
  Task task = Task::Adopt(node);
  Status status = InternalError("Executor::Execute threw an exception");
  Guarded("Executor::Execute",
          [&] { status = (*static_cast<std::shared_ptr<Executor>*>(data))->Execute(std::move(task)); });
  return std::move(status).ReleaseRep();
}

/// A reference that keeps `executor`, which is not null.
template <typename Mode = WithExceptions>
ExecutorRef MakeExecutorRef(std::shared_ptr<Executor> executor) {
  return {new std::shared_ptr<Executor>(std::move(executor)), &ExecuteOn<Mode>,
          [](void* data) noexcept { delete static_cast<std::shared_ptr<Executor>*>(data); }};
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_EXECUTOR_REF_H_
