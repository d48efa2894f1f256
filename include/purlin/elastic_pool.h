// Purlin: a pool for tasks that block: it has as many threads as tasks, up to a cap; idle threads end.
//
// ```cpp
// purlin::ElasticPoolOptions options;
// options.max_threads = 64;
// purlin::StatusOr<purlin::ElasticPool> pool = purlin::ElasticPool::Create(options);
// if (!pool.ok()) return pool.status();
// purlin::Status status = pool->Schedule([] { /* read a file, wait for a socket */ }, "read");
// if (!status.ok()) return status;
// return pool->Shutdown();  // runs what is queued, then joins the threads
// ```
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_ELASTIC_POOL_H_
#define PURLIN_ELASTIC_POOL_H_

#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

#include "purlin/executor.h"
#include "purlin/export.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/label.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

namespace internal {
struct ElasticPoolRep;
}  // namespace internal

/// How to make a pool.
struct ElasticPoolOptions {
  /// The most threads at a time, 1 to 4096; see ElasticPool for tasks that wait.
  std::size_t max_threads = 256;
  /// How long a thread without work lives; negative counts as zero.
  std::chrono::nanoseconds idle_timeout = std::chrono::seconds(10);
  /// Bytes of stack per thread, at most 1 TiB; 0 takes 2 MiB, the stack of every other thread of Purlin.
  std::size_t stack_size_bytes = 0;
  /// Threads are named `name/0`, `name/1`, ... and cut to the kernel's 15 bytes.
  std::string_view name = "purlin-elastic";
};

/// A handle; copies share the pool, and destroying the last one drains it and joins its threads. (In a child made by
/// fork() it has no threads, and its calls return kFailedPrecondition.) Any thread. An idle thread takes a new task if
/// there is one; otherwise a thread is started for it, or, at the cap, it waits, first in, first out.
///
/// Tasks may wait for tasks of the same pool. When for a second all max_threads threads have waited for events
/// (Event::Wait and its like) while tasks were queued, and none of these waits ended, a further thread is started, and
/// another one in each twentieth of a second in which that goes on, 16384 at most; they end when they are not needed
/// any more. If the system refuses one for a second, a wait ends with kResourceExhausted, unless its event is guarding
/// (event.h). A task that blocks elsewhere (a lock, a read) keeps its place under the cap. Semaphore limits the tasks
/// that run at a time, whatever they wait for (semaphore.h).
class PURLIN_API ElasticPool final : public Executor {
 public:
  /// A pool without threads; the first task starts one. kInvalidArgument: no threads or more than 4096, a stack of more
  /// than 1 TiB, an empty name, or one with a NUL or bytes that are not UTF-8.
  PURLIN_API static StatusOr<ElasticPool> Create(const ElasticPoolOptions& options);

  /// Another handle to the same pool.
  PURLIN_API ElasticPool(const ElasticPool& other) noexcept;
  /// Takes the handle. Leaves `other` empty, see purlin.h.
  PURLIN_API ElasticPool(ElasticPool&& other) noexcept;
  /// See the constructors.
  PURLIN_API ElasticPool& operator=(const ElasticPool& other) noexcept;
  /// See the constructors.
  PURLIN_API ElasticPool& operator=(ElasticPool&& other) noexcept;
  /// The last handle blocks until queued tasks have run and the threads are joined; in a task of the pool, and after a
  /// ShutdownBy that passed its deadline, it does not wait, and the threads end on their own.
  PURLIN_API ~ElasticPool() override;

  /// Any thread, also a task of this pool. kCancelled after a shutdown began; kResourceExhausted: the pool has no
  /// thread and the system refused one (with at least one thread, the task waits for it). Then the task has been
  /// destroyed uncalled.
  PURLIN_API Status Execute(Task task) override;
  /// Execute, with a closure and a label. kInvalidArgument: there is no closure.
  template <typename F>
  Status Schedule(F&& closure, Label label = Label("task")) {
    if (internal::IsEmptyCallable(closure)) return internal::EmptyCallableError("Schedule");
    return Execute(Task(std::forward<F>(closure), label));
  }

  /// Threads at this moment.
  [[nodiscard]] PURLIN_API std::size_t NumThreads() const noexcept;
  /// Threads that wait for work at this moment.
  [[nodiscard]] PURLIN_API std::size_t NumIdle() const noexcept;

  /// 1. Refuses new tasks (kCancelled). 2. Runs queued tasks, or destroys them uncalled. 3. Joins the threads. Blocks
  /// until done; a second call, which may be stricter, waits too. After the timeout, tasks left in the queue are
  /// destroyed uncalled, running tasks are no longer waited for, and it returns kDeadlineExceeded, with their numbers.
  /// kFailedPrecondition, and nothing happens, on a thread of this pool or in a child made by fork(). kInvalidArgument,
  /// and nothing happens: no such ShutdownMode.
  PURLIN_API Status Shutdown(const ShutdownOptions& options = {});
  /// Shutdown with kCancelPending.
  PURLIN_API Status ShutdownCancelPending();
  /// Shutdown with the time that is left until `deadline`.
  PURLIN_API Status ShutdownBy(std::chrono::steady_clock::time_point deadline);

 private:
  explicit ElasticPool(const internal::ElasticPoolRep* rep) noexcept : rep_(rep) {}
  const internal::ElasticPoolRep* rep_;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ELASTIC_POOL_H_
