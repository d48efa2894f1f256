// Purlin's adapter for Eigen's thread pools, both ways.
//
//   auto pool = purlin::adapters::ToEigen(runner);                     // a ThreadPoolAsyncWorkRunner as Eigen's pool
//   Eigen::ThreadPoolDevice device(&pool, pool.NumThreads());
//   auto executor = purlin::adapters::FromEigen(eigen_pool);           // Eigen's pool as a purlin::Executor
//
// Eigen's interface can neither refuse a closure nor report that it was dropped, and Eigen waits for closures without a
// deadline. So here each runs exactly once; if the pool was shut down, on the thread that schedules it (owed_work.h).
//
// Eigen waits by condition variables, which Purlin's pool does not see: a contraction over this pool, on a thread of
// this pool, blocks that thread. Once all threads are blocked so, Eigen's own pool stops for ever; Purlin's gets a
// spare after a tenth of a second (ThreadPoolAsyncWorkRunner), and goes on. DumpStalls names it meanwhile, with what
// runs on it and that tasks are queued. Spares have no number below NumThreads(): see CurrentThreadId.
//
// What does not cross: Cancel() does nothing, as Eigen allows; hints are ignored, because idle threads steal;
// std::function allocates closures of more than 16 bytes by itself, which a purlin::Task does up to 104 bytes without.
//
// For Eigen from 3.4 on. Eigen gives no version in its names: one Eigen per program, as everywhere.
#ifndef PURLIN_ADAPTERS_EIGEN_THREAD_POOL_H_
#define PURLIN_ADAPTERS_EIGEN_THREAD_POOL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "purlin/adapters/owed_work.h"
#include "purlin/executor.h"
#include "purlin/label.h"
#include "purlin/status.h"
#include "purlin/version.h"
#include "unsupported/Eigen/CXX11/ThreadPool"

namespace purlin {
inline namespace v0 {
namespace adapters {

/// A pool of Purlin's as an `Interface`, which is Eigen::ThreadPoolInterface or a class that adds nothing to it. Holds
/// a handle to the pool. Scheduling is for any thread, also for closures that run.
///
/// The destructor waits until every closure that was scheduled here has run, also those that they scheduled, as that of
/// Eigen's own pool does; tasks that were scheduled otherwise go on. On a thread of the pool, and in a child made by
/// fork(), it does not wait. If this holds the last handle, it shuts the pool down.
template <typename Interface>
class EigenThreadPoolAs final : public Interface {
 public:
  /// Blocks nothing; a handle costs a reference.
  explicit EigenThreadPoolAs(ThreadPoolAsyncWorkRunner pool) : work_(std::move(pool)) {}
  EigenThreadPoolAs(const EigenThreadPoolAs&) = delete;
  EigenThreadPoolAs& operator=(const EigenThreadPoolAs&) = delete;

  /// Runs `closure` once, in general on a thread of the pool; on this one before this returns, if the pool was shut
  /// down or this is a child made by fork(). An exception from it is reported and swallowed. An empty one is ignored.
  void Schedule(std::function<void()> closure) override {
    if (closure) work_.Schedule(std::move(closure), Label("Eigen"));
  }
  /// As Schedule: any thread of the pool may run it.
  void ScheduleWithHint(std::function<void()> closure, int start, int end) override {
    static_cast<void>(start);
    static_cast<void>(end);
    Schedule(std::move(closure));
  }

  /// Threads of the pool.
  int NumThreads() const override { return static_cast<int>(work_.pool().NumThreads()); }
  /// Which of the pool's threads this is, below NumThreads(); -1 on every other. A spare thread, which stands in for
  /// one that waits for an event of Purlin's, is none of them for Eigen: so do not wait for such events in closures
  /// that index memory by this number, as those of tsl's ParallelForWithWorkerId do.
  int CurrentThreadId() const override {
    const std::optional<std::size_t> id = work_.pool().CurrentThreadId();
    return id.has_value() && *id < work_.pool().NumThreads() ? static_cast<int>(*id) : -1;
  }

 private:
  internal::OwedWork work_;
};

/// A pool of Purlin's where Eigen asks for one. It can be neither copied nor moved, since Eigen keeps its address.
using EigenThreadPool = EigenThreadPoolAs<Eigen::ThreadPoolInterface>;

/// See EigenThreadPoolAs: `auto pool = ToEigen(runner);`.
template <typename Interface = Eigen::ThreadPoolInterface>
EigenThreadPoolAs<Interface> ToEigen(const ThreadPoolAsyncWorkRunner& pool) {
  return EigenThreadPoolAs<Interface>(pool);
}

/// An existing pool of Eigen's as an executor: for futures, serial queues, and every function that takes an Executor.
/// Any thread. `pool` outlives this and is not owned. A task that it drops, as it does after Cancel(), is destroyed
/// uncalled, so its promises complete with an error.
class EigenExecutor final : public Executor {
 public:
  /// Tasks go to `pool`.
  explicit EigenExecutor(Eigen::ThreadPoolInterface& pool) noexcept : pool_(&pool) {}

  /// Never refuses; Eigen runs a task inside this call when its queue of 1024 is full. Two allocations, because a
  /// std::function must be copyable. kInvalidArgument: `task` is empty.
  Status Execute(Task task) override {
    if (!task) return InvalidArgumentError("an empty task was given to a pool of Eigen's");
    pool_->Schedule([shared = std::make_shared<Task>(std::move(task))] { std::move(*shared).Run(); });
    return OkStatus();
  }

 private:
  Eigen::ThreadPoolInterface* pool_;
};

/// See EigenExecutor.
template <typename Pool, typename = std::enable_if_t<std::is_base_of_v<Eigen::ThreadPoolInterface, Pool>>>
EigenExecutor FromEigen(Pool& pool) noexcept {
  return EigenExecutor(pool);
}

}  // namespace adapters
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ADAPTERS_EIGEN_THREAD_POOL_H_
