// Purlin's adapters for pools that cannot refuse: work that runs in any case.
//
// Eigen's and XLA's interfaces take a closure and return nothing, and their caller waits for its effects, often without
// a deadline. A pool of Purlin may refuse a task, or drop it when it is shut down. So every closure that is given here
// runs exactly once: on a thread of the pool, or, where the pool refuses or drops it, on the thread that does so.
// There, closures that give further closures nest at most 32 deep (inline_executor.h); so a chain needs a small stack.
//
// The destructor waits until all closures of Schedule have run and are destroyed, because such closures refer to
// objects that are destroyed after their pool. It does not wait on a thread of the pool, which may run such a closure,
// nor in a child made by fork(), where no thread runs it. It has no other side; it is for the adapters beside it.
#ifndef PURLIN_ADAPTERS_OWED_WORK_H_
#define PURLIN_ADAPTERS_OWED_WORK_H_

#include <sys/types.h>
#include <unistd.h>

#include <type_traits>
#include <utility>

#include "purlin/adapters/owed_count.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/inline_executor.h"
#include "purlin/label.h"
#include "purlin/span.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace adapters {
namespace internal {

/// A closure that runs when it is called, or else when it is destroyed.
template <typename F>
class OwedClosure final {
 public:
  OwedClosure(F closure, OwedCount* count, Label label) noexcept
      : share_(count), closure_(std::move(closure)), label_(label) {}
  OwedClosure(OwedClosure&& other) noexcept
      : share_(std::move(other.share_)),
        closure_(std::move(other.closure_)),
        label_(other.label_),
        owed_(std::exchange(other.owed_, false)) {}
  OwedClosure& operator=(OwedClosure&&) = delete;
  ~OwedClosure() {
    if (owed_) InlineExecutor().Execute(Task(std::move(*this), label_)).IgnoreError();
  }

  void operator()() {
    owed_ = false;
    std::move(closure_)();
  }

 private:
  static_assert(std::is_nothrow_move_constructible_v<F>, "a closure on its way to a thread is moved");

  OwedShare share_;  // Destroyed after the closure.
  F closure_;
  Label label_;
  bool owed_ = true;
};

/// See the top of this file. Any thread may schedule; destroyed once no other thread does.
class OwedWork final {
 public:
  /// Keeps a handle to `pool`.
  explicit OwedWork(ThreadPoolAsyncWorkRunner pool) : pool_(std::move(pool)), count_(new OwedCount), pid_(getpid()) {}
  OwedWork(const OwedWork&) = delete;
  OwedWork& operator=(const OwedWork&) = delete;
  ~OwedWork() {
    if (pool_.CurrentThreadId().has_value() || pid_ != getpid()) {
      count_->Leave();
    } else {
      AwaitAllGone(count_->Close(Label("closures of an adapter")));
    }
  }

  /// Runs `closure` once.
  template <typename F>
  void Schedule(F closure, Label label) {
    pool_.Execute(Task(OwedClosure<F>(std::move(closure), count_, label), label)).IgnoreError();
  }
  /// Runs `closure` once, after all of `events` are terminal. The destructor does not wait for it.
  template <typename F>
  void ScheduleWhenReady(Span<const Event> events, F closure, Label label) {
    pool_.ExecuteWhenReady(events, Task(OwedClosure<F>(std::move(closure), nullptr, label), label)).IgnoreError();
  }

  const ThreadPoolAsyncWorkRunner& pool() const noexcept { return pool_; }

 private:
  ThreadPoolAsyncWorkRunner pool_;
  OwedCount* count_;
  pid_t pid_;
};

}  // namespace internal
}  // namespace adapters
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ADAPTERS_OWED_WORK_H_
