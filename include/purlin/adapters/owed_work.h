// Purlin's adapters for pools that cannot refuse: work that runs, whatever becomes of the pool.
//
// Eigen's and XLA's interfaces take a closure and answer nothing, and who gave it waits for what it does, often without
// a deadline. A pool of Purlin's may refuse a task, or drop it when it is shut down. So every closure that comes
// through here runs exactly once: on a thread of the pool, or, where the pool refuses or drops it, on the thread that
// does so. There, closures that give further closures nest at most 32 deep (inline_executor.h); so a chain needs no
// stack.
//
// The destructor waits until what Schedule was given has run and is destroyed, since such code gives closures that
// refer to what goes after their pool. It does not wait on a thread of the pool, which may be in such a closure, nor in
// a child made by fork(), where nobody runs it. It has no other side; it is for the adapters beside it.
#ifndef PURLIN_ADAPTERS_OWED_WORK_H_
#define PURLIN_ADAPTERS_OWED_WORK_H_

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

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

/// Counts shares: one of the OwedWork, one of each closure that it scheduled and that is not destroyed. The last one
/// to go tells who waits, and deletes this.
class OwedCount final {
 public:
  OwedCount() = default;
  OwedCount(const OwedCount&) = delete;
  OwedCount& operator=(const OwedCount&) = delete;

  void Take() noexcept { shares_.fetch_add(1, std::memory_order_relaxed); }
  /// Acquire and release: who waits sees what all closures did.
  void Leave() noexcept {
    if (shares_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  /// Whether there is a share beside the caller's.
  bool IsShared() const noexcept { return shares_.load(std::memory_order_acquire) != 1; }
  /// Happens when the last share has gone. Once, before the caller leaves its own.
  Event AllGone() {
    all_gone_.emplace(Label("closures of an adapter"));
    return all_gone_->event();
  }

 private:
  ~OwedCount() {
    if (all_gone_.has_value()) all_gone_->SetReady();
  }

  std::atomic<std::size_t> shares_{1};
  std::optional<EventPromise> all_gone_;
};

/// A share, or none.
class OwedShare final {
 public:
  explicit OwedShare(OwedCount* count) noexcept : count_(count) {
    if (count_ != nullptr) count_->Take();
  }
  OwedShare(OwedShare&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  OwedShare& operator=(OwedShare&&) = delete;
  ~OwedShare() {
    if (count_ != nullptr) count_->Leave();
  }

 private:
  OwedCount* count_;
};

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

  OwedShare share_;  // Goes after the closure.
  F closure_;
  Label label_;
  bool owed_ = true;
};

/// See the top of this file. Schedules from any thread; destroyed once nobody else does.
class OwedWork final {
 public:
  /// Keeps a handle to `pool`.
  explicit OwedWork(ThreadPoolAsyncWorkRunner pool) : pool_(std::move(pool)), count_(new OwedCount), pid_(getpid()) {}
  OwedWork(const OwedWork&) = delete;
  OwedWork& operator=(const OwedWork&) = delete;
  ~OwedWork() {
    const bool waits = count_->IsShared() && !pool_.CurrentThreadId().has_value() && pid_ == getpid();
    const Event all_gone = waits ? count_->AllGone() : Event::Ready();
    count_->Leave();
    all_gone.Wait().IgnoreError();
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
