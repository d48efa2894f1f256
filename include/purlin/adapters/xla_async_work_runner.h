// Purlin's adapter for xla::AsyncWorkRunner and tsl::Executor, both ways.
//
//   auto runner = purlin::adapters::ToXla(pool);                  // a ThreadPoolAsyncWorkRunner as XLA's
//   raw_buffer->CopyFromLiteral(literal, layout, &runner);
//   auto executor = purlin::adapters::FromXla(*client->async_work_runner());  // XLA's as a purlin::Executor
//
// xla::AsyncWorkRunner has had two shapes, and the headers that are included say which one this is. That of the wheel
// tensorflow-cpu 2.21 has Schedule and ScheduleWhenReady, and an executor beside it, AsExecutor(). That of XLA's HEAD
// is a tsl::Executor, and its only virtual function is Execute. Code that uses the one or the other calls it as before.
//
// XLA's interface can neither refuse work nor report that it was dropped. So here each piece runs exactly once; if the
// pool was shut down, on the thread that schedules it, which XLA allows (owed_work.h). Only the destructor blocks. A
// piece of work costs one heap allocation, because absl::AnyInvocable is aligned to 16 bytes.
//
// NDEBUG must be defined as for the library that has tsl inside: see tsl_async_value.h.
#ifndef PURLIN_ADAPTERS_XLA_ASYNC_WORK_RUNNER_H_
#define PURLIN_ADAPTERS_XLA_ASYNC_WORK_RUNNER_H_

#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/types/span.h"
#include "purlin/adapters/owed_work.h"
#include "purlin/adapters/tsl_async_value.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/label.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/version.h"
#include "xla/pjrt/async_work_runner.h"
#include "xla/tsl/concurrency/async_value.h"
#include "xla/tsl/concurrency/executor.h"
#include "xla/tsl/concurrency/ref_count.h"

namespace purlin {
inline namespace v0 {
namespace adapters {

/// A pool of Purlin's as a `Runner`, which is xla::AsyncWorkRunner in either shape, or tsl::Executor itself: this one
/// is for what is a tsl::Executor, as XLA's HEAD has it. Holds a handle to the pool. Any thread.
///
/// The destructor waits until all work of Execute has run; tasks that were scheduled otherwise go on. On a thread of
/// the pool, and in a child made by fork(), it does not wait. If this holds the last handle, it shuts the pool down.
/// HEAD's own ExecuteWhenReady keeps the address of its runner until the values are there, and ScheduleWhenReady with
/// it: so there, and for futures that run callbacks on this, it must live that long, as any runner of XLA's.
template <typename Runner, bool kIsExecutor = std::is_base_of_v<tsl::Executor, Runner>>
class AsyncWorkRunnerAs final : public Runner {
 public:
  /// Blocks nothing; a handle costs a reference.
  explicit AsyncWorkRunnerAs(ThreadPoolAsyncWorkRunner pool) : work_(std::move(pool)) {}
  AsyncWorkRunnerAs(const AsyncWorkRunnerAs&) = delete;
  AsyncWorkRunnerAs& operator=(const AsyncWorkRunnerAs&) = delete;

  /// Runs `task` once, in general on a thread of the pool; on this one before this returns, if the pool was shut down
  /// or this is a child made by fork(). An exception from it is reported and swallowed. An empty one is ignored.
  void Execute(tsl::Executor::Task task) override {
    if (task) work_.Schedule(std::move(task), Label("XLA"));
  }

 private:
  internal::OwedWork work_;
};

/// As above, in the shape of the wheel.
template <typename Runner>
class AsyncWorkRunnerAs<Runner, false> final : public Runner {
 public:
  /// See above.
  explicit AsyncWorkRunnerAs(ThreadPoolAsyncWorkRunner pool) : work_(std::move(pool)) {}
  AsyncWorkRunnerAs(const AsyncWorkRunnerAs&) = delete;
  AsyncWorkRunnerAs& operator=(const AsyncWorkRunnerAs&) = delete;

  /// Runs `work` once. As Execute above.
  void Schedule(absl::AnyInvocable<void() &&> work) override {
    if (work) work_.Schedule(std::move(work), Label("XLA"));
  }
  /// Runs `work` once, on the pool, when all of `values` are available, whether they are errors or not. If this is
  /// destroyed before, `work` still runs: on the pool while that lives, and afterwards on the thread that completes the
  /// last value. The destructor does not wait for it. A value that is dropped unset never becomes available, and then
  /// `work` never runs; see tsl_async_value.h, and DumpStalls(), which names the value. A null value counts as
  /// available.
  void ScheduleWhenReady(absl::Span<const tsl::RCReference<tsl::AsyncValue>> values,
                         absl::AnyInvocable<void() &&> work) override {
    if (!work) return;
    std::vector<Event> pending;
    for (const tsl::RCReference<tsl::AsyncValue>& value : values) {
      if (value != nullptr && !value->IsAvailable()) pending.push_back(FromTsl(value.get()));
    }
    if (pending.empty()) return work_.Schedule(std::move(work), Label("XLA"));
    work_.ScheduleWhenReady(pending, std::move(work), Label("XLA"));
  }

 private:
  internal::OwedWork work_;
};

/// A pool of Purlin where XLA takes a runner. It can be neither copied nor moved, since XLA keeps its address.
using XlaAsyncWorkRunner = AsyncWorkRunnerAs<xla::AsyncWorkRunner>;

/// See AsyncWorkRunnerAs: `auto runner = ToXla(pool);`.
template <typename Runner = xla::AsyncWorkRunner>
AsyncWorkRunnerAs<Runner> ToXla(const ThreadPoolAsyncWorkRunner& pool) {
  return AsyncWorkRunnerAs<Runner>(pool);
}

/// A pool of Purlin where TSL takes an executor, as its futures do. See AsyncWorkRunnerAs.
template <typename Runner = tsl::Executor>
AsyncWorkRunnerAs<Runner> ToTslExecutor(const ThreadPoolAsyncWorkRunner& pool) {
  return AsyncWorkRunnerAs<Runner>(pool);
}

/// An existing executor of TSL's as one of Purlin's: for futures, serial queues, and every function that takes an
/// Executor. Any thread. `executor` outlives this and is not owned. A task that it drops is destroyed uncalled, so its
/// promises complete with an error.
class TslExecutor final : public Executor {
 public:
  /// Tasks go to `executor`.
  explicit TslExecutor(tsl::Executor& executor) noexcept : executor_(&executor) {}

  /// Never refuses; XLA may run the task inside this call. Allocates nothing on its way to an absl::AnyInvocable.
  /// kInvalidArgument: `task` is empty.
  Status Execute(Task task) override {
    if (!task) return InvalidArgumentError("an empty task was given to an executor of TSL's");
    executor_->Execute([task = std::move(task)]() mutable { std::move(task).Run(); });
    return OkStatus();
  }

 private:
  tsl::Executor* executor_;
};

/// See TslExecutor.
template <typename Theirs, typename = std::enable_if_t<std::is_base_of_v<tsl::Executor, Theirs>>>
TslExecutor FromTsl(Theirs& executor) noexcept {
  return TslExecutor(executor);
}

/// An existing runner of XLA's as an executor, in either shape. See TslExecutor; `runner` outlives it.
template <typename Runner>
TslExecutor FromXla(Runner& runner) noexcept {
  if constexpr (std::is_base_of_v<tsl::Executor, Runner>) {
    return TslExecutor(runner);
  } else {
    return TslExecutor(runner.AsExecutor());
  }
}

}  // namespace adapters
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ADAPTERS_XLA_ASYNC_WORK_RUNNER_H_
