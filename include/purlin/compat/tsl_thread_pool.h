// Purlin: tsl's pools, over Purlin's.
//
// ```cpp
// namespace tsl = purlin::compat::tsl;
//
// std::atomic<std::int64_t> sum{0};
// tsl::thread::ThreadPool pool(tsl::Env::Default(), "loops", 4);
// pool.Schedule([&sum] { sum += 1; });
// // 1000 units of 500 cycles each, on this thread and on those of the pool.
// pool.ParallelFor(1000, tsl::thread::ThreadPool::SchedulingParams::Adaptive(500),
//                  [&sum](std::int64_t begin, std::int64_t end) { sum += end - begin; });
// ```
//
// Purlin's own calls answer with a Status where a pool refuses (executor.h); these have no answer. A pool that the
// system refuses threads ends the process, as tsl's does.
#ifndef PURLIN_COMPAT_TSL_THREAD_POOL_H_
#define PURLIN_COMPAT_TSL_THREAD_POOL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "purlin/compat/tsl_executor.h"
#include "purlin/elastic_pool.h"
#include "purlin/executor.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace compat {
namespace tsl {

/// Where threads come from: the system. Here for the constructors that take one.
class Env final {
 public:
  /// The one that there is.
  static Env* Default() noexcept {
    static Env env;
    return &env;
  }
};

/// How threads are made.
struct ThreadOptions {
  /// Bytes of stack; 0 takes the default. Of a ThreadPool, always the default.
  std::size_t stack_size = 0;
};

namespace thread {

/// A fixed number of threads. Destroying it runs what is queued.
class ThreadPool final : public Executor {
 public:
  /// How long the ranges of a loop are.
  class SchedulingParams final {
   public:
    /// `block_size` units; at least one.
    static SchedulingParams Fixed(std::int64_t block_size) noexcept { return SchedulingParams(block_size, 0); }
    /// So many that handing them over costs little, if a unit takes `cost_per_unit` cycles.
    static SchedulingParams Adaptive(std::int64_t cost_per_unit) noexcept { return SchedulingParams(0, cost_per_unit); }

   private:
    friend class ThreadPool;
    SchedulingParams(std::int64_t block_size, std::int64_t cost_per_unit) noexcept
        : block_size_(block_size), cost_per_unit_(cost_per_unit) {}
    std::int64_t block_size_;
    std::int64_t cost_per_unit_;
  };

  /// `threads` threads, at least one, called `name/0`, `name/1`, ...
  ThreadPool(Env* /*env*/, std::string_view name, int threads) : pool_(Make(name, threads)) {}
  /// As above.
  ThreadPool(Env* env, const ThreadOptions& /*options*/, std::string_view name, int threads)
      : ThreadPool(env, name, threads) {}
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Runs `f` on a thread of the pool.
  template <typename F>
  void Schedule(F&& f) {
    pool_.Execute(::purlin::Task(std::forward<F>(f))).IgnoreError();
  }
  /// As Schedule.
  void Execute(Task task) final { pool_.Execute(std::move(task).Release()).IgnoreError(); }

  /// The pool as an executor.
  [[nodiscard]] Executor* AsExecutor() noexcept { return this; }

  /// Calls `f(begin, end)` for ranges that together cover [0, total), on this thread and on those of the pool, and
  /// returns when all calls have returned.
  template <typename F>
  void ParallelFor(std::int64_t total, const SchedulingParams& params, F&& f) {
    if (total <= 0) return;
    const auto body = [&f](std::size_t begin, std::size_t end) {
      f(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
    };
    pool_.ParallelFor(static_cast<std::size_t>(total), GrainOf(total, params), body).IgnoreError();
  }
  /// As above, with a cost in cycles.
  template <typename F>
  void ParallelFor(std::int64_t total, std::int64_t cost_per_unit, F&& f) {
    ParallelFor(total, SchedulingParams::Adaptive(cost_per_unit), std::forward<F>(f));
  }
  /// As above, a unit a call.
  template <typename F>
  void ParallelFor(std::int64_t total, F&& f) {
    ParallelFor(total, SchedulingParams::Fixed(1), std::forward<F>(f));
  }
  /// As above, `f(begin, end, id)`; see ThreadPoolAsyncWorkRunner::ParallelForWithWorkerId.
  template <typename F>
  void ParallelForWithWorkerId(std::int64_t total, const SchedulingParams& params, F&& f) {
    if (total <= 0) return;
    const auto body = [&f](std::size_t begin, std::size_t end, std::size_t id) {
      f(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end), static_cast<int>(id));
    };
    pool_.ParallelForWithWorkerId(static_cast<std::size_t>(total), GrainOf(total, params), body).IgnoreError();
  }

  /// How many threads there are.
  [[nodiscard]] int NumThreads() const noexcept { return static_cast<int>(pool_.NumThreads()); }
  /// Which thread of this pool this is, below NumThreads(), as callers index memory by it; -1 on others. So it is on a
  /// spare thread, which stands in for one that waits for a task of this pool.
  [[nodiscard]] int CurrentThreadId() const noexcept {
    const std::optional<std::size_t> id = pool_.CurrentThreadId();
    return id && *id < pool_.NumThreads() ? static_cast<int>(*id) : -1;
  }
  /// The pool, for what takes Purlin's.
  [[nodiscard]] ThreadPoolAsyncWorkRunner& runner() noexcept { return pool_; }

 private:
  static ThreadPoolAsyncWorkRunner Make(std::string_view name, int threads) {
    ThreadPoolOptions options;
    options.name = name.empty() ? "tsl" : name;
    options.thread_count = threads < 1 ? 1 : static_cast<std::size_t>(threads);
    return ThreadPoolAsyncWorkRunner::Create(options).value();
  }
  // A range is worth handing over from about 10 000 cycles; above that, each thread has four, which evens out unequal
  // ones.
  Grain GrainOf(std::int64_t total, const SchedulingParams& params) const noexcept {
    constexpr std::int64_t kWorthHandingOver = 10'000;
    if (params.block_size_ > 0) return Grain(static_cast<std::size_t>(params.block_size_));
    const std::int64_t cost = params.cost_per_unit_ < 1 ? 1 : params.cost_per_unit_;
    const std::int64_t worth = cost >= kWorthHandingOver ? 1 : kWorthHandingOver / cost;
    const std::int64_t ranges = 4 * std::int64_t{NumThreads()};
    const std::int64_t share = total / ranges + (total % ranges != 0 ? 1 : 0);
    return Grain(static_cast<std::size_t>(worth > share ? worth : share));
  }

  ThreadPoolAsyncWorkRunner pool_;
};

}  // namespace thread

/// As many threads as there are tasks at a time. Destroying it runs what is queued.
class UnboundedWorkQueue final : public Executor {
 public:
  /// Threads are called `name/0`, `name/1`, ...
  UnboundedWorkQueue(Env* /*env*/, std::string_view name, const ThreadOptions& options = {})
      : pool_(Make(name, options)) {}
  UnboundedWorkQueue(const UnboundedWorkQueue&) = delete;
  UnboundedWorkQueue& operator=(const UnboundedWorkQueue&) = delete;

  /// Runs `f` on a thread of its own, or on one that has ended its task.
  template <typename F>
  void Schedule(F&& f) {
    pool_.Execute(::purlin::Task(std::forward<F>(f))).IgnoreError();
  }
  /// As Schedule.
  void Execute(Task task) final { pool_.Execute(std::move(task).Release()).IgnoreError(); }

 private:
  static ElasticPool Make(std::string_view name, const ThreadOptions& threads) {
    ElasticPoolOptions options;
    options.max_threads = 4096;
    options.name = name.empty() ? "tsl" : name;
    options.stack_size_bytes = threads.stack_size;
    return ElasticPool::Create(options).value();
  }

  ElasticPool pool_;
};

}  // namespace tsl

namespace xla {

/// One thread, which runs closures in their order. Destroying it runs what is queued.
class WorkerThread final {
 public:
  /// The thread is called `name/0`.
  WorkerThread(tsl::Env* env, std::string_view name) : thread_(env, name, 1) {}
  /// As above.
  WorkerThread(tsl::Env* env, const tsl::ThreadOptions& /*options*/, std::string_view name) : WorkerThread(env, name) {}
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  /// Runs `f` after what was scheduled before.
  template <typename F>
  void Schedule(F&& f) {
    thread_.Schedule(std::forward<F>(f));
  }

 private:
  tsl::thread::ThreadPool thread_;
};

}  // namespace xla
}  // namespace compat
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_COMPAT_TSL_THREAD_POOL_H_
