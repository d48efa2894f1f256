// Purlin: tasks one at a time, in the order in which they were scheduled, on threads of any executor.
//
// ```cpp
// purlin::Status Log(const purlin::ThreadPoolAsyncWorkRunner& pool) {
//   purlin::SerialQueue queue(pool, "log");
//   purlin::Status status = queue.Schedule([] { /* append a line */ });
//   if (!status.ok()) return status;
//   return queue.Drain();
// }
// ```
//
// Shutdown() closes the queue and waits for its end. Destroying the last handle closes it and does not wait. If the
// executor refuses or drops the queue, its tasks are destroyed uncalled, so their promises complete with an error.
//
// Memory order: what a task did is visible to the next one, whatever threads they run on.
#ifndef PURLIN_SERIAL_QUEUE_H_
#define PURLIN_SERIAL_QUEUE_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/export.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/executor_ref.h"
#include "purlin/label.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

namespace internal {
struct SerialQueueRep;
}  // namespace internal

/// A handle; copies share the queue. Any thread. A queue runs at most 64 tasks before it gives the thread back to its
/// executor. A task that throws is reported and the next one runs. If the executor throws, it has either taken the
/// queue's work or dropped it; in the second case the queued tasks are destroyed uncalled, and Execute returns
/// kInternal.
class PURLIN_API SerialQueue final : public Executor {
 public:
  /// An empty queue over an executor of the user's, which it keeps alive while it has work or handles: the last
  /// reference may be dropped on a thread of the executor. kInvalidArgument: null.
  static StatusOr<SerialQueue> Create(std::shared_ptr<Executor> executor, Label label = Label("SerialQueue")) {
    if (executor == nullptr) return InvalidArgumentError("SerialQueue::Create was given no executor");
    return SerialQueue(New(internal::MakeExecutorRef<>(std::move(executor)), label));
  }
  /// An empty queue over a pool of Purlin, which it keeps alive.
  PURLIN_API explicit SerialQueue(const ThreadPoolAsyncWorkRunner& pool, Label label = Label("SerialQueue")) noexcept;

  /// Another handle to the same queue.
  PURLIN_API SerialQueue(const SerialQueue& other) noexcept;
  /// Takes the handle. Leaves `other` empty, see purlin.h.
  PURLIN_API SerialQueue(SerialQueue&& other) noexcept;
  /// See the constructors.
  PURLIN_API SerialQueue& operator=(const SerialQueue& other) noexcept;
  /// See the constructors.
  PURLIN_API SerialQueue& operator=(SerialQueue&& other) noexcept;
  /// The last handle closes the queue; queued tasks still run. Does not block.
  PURLIN_API ~SerialQueue() override;

  /// Queues `task` behind all others. kCancelled after Close; the executor's error if it refuses the queue's work.
  /// After an error the task has been destroyed uncalled.
  PURLIN_API Status Execute(Task task) override;
  /// Execute, with a closure and a label. kInvalidArgument: there is no closure.
  template <typename F>
  Status Schedule(F&& closure, Label label = Label("task")) {
    if (internal::IsEmptyCallable(closure)) return internal::EmptyCallableError("Schedule");
    return Execute(Task(std::forward<F>(closure), label));
  }

  /// Happens when everything that was scheduled before this call has run; fails with kCancelled if the executor dropped
  /// it. Never blocks; a task of the queue may call it, too. The event's waiters run between two tasks of the queue.
  PURLIN_API Event Drained() const noexcept;
  /// Blocks until everything that was scheduled before this call has run. kFailedPrecondition inside a task of this
  /// queue, which would wait for itself (a task that waits for another thread that drains is not detected); kCancelled
  /// if the executor dropped the queued tasks.
  PURLIN_API Status Drain() const noexcept;
  /// True while a task is queued or runs; false as soon as Drained() happens, unless there are further tasks.
  [[nodiscard]] PURLIN_API bool HasBacklog() const noexcept;
  /// 1. Refuses new tasks (kCancelled). 2. Queued tasks run, in order, on the executor's threads, or are destroyed
  /// uncalled. 3. Waits until the last task has run, at most for the timeout; then tasks that have not begun are
  /// destroyed uncalled, a running one is no longer waited for, and it returns kDeadlineExceeded. A second call waits
  /// too. kFailedPrecondition, and nothing happens: in a task of this queue, or in a child made by fork().
  /// kInvalidArgument, and nothing happens: no such ShutdownMode. kCancelled: the executor dropped the queued tasks.
  PURLIN_API Status Shutdown(const ShutdownOptions& options = {}) const noexcept;
  /// Step 1 of Shutdown() alone; queued tasks still run. A second call does nothing.
  PURLIN_API void Close() const noexcept;
  /// Destroys the tasks that have not started, uncalled, on this thread; the queue goes on. Returns their number.
  PURLIN_API std::size_t CancelPending() const noexcept;

 private:
  explicit SerialQueue(const internal::SerialQueueRep* rep) noexcept : rep_(rep) {}
  PURLIN_API static const internal::SerialQueueRep* New(internal::ExecutorRef executor, Label label) noexcept;

  const internal::SerialQueueRep* rep_;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_SERIAL_QUEUE_H_
