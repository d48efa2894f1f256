// Purlin: how coroutines are resumed. Not for users; see coroutine.h.
//
// Transfer. A coroutine hands its thread over to another one by leaving a note to the loop that resumed it, and
// suspending; the loop then resumes the other. This is symmetric transfer without the compiler's tail calls, which it
// makes only when it optimises (GCC) and not under sanitizers. A coroutine that other code resumed starts a loop of its
// own. So the stack does not grow with the number of awaits, nor with how deeply tasks await one another.
//
// Waits. The waiter of an event that resumes a coroutine and the awaiter in its frame share a CoroutineWait:
//   waiting -> fired        the waiter has won: it may touch the coroutine, and does so once;
//   waiting -> cancelled    the frame is being destroyed: the waiter does not touch it.
// A waiter that fires inside await_suspend, on the same thread, leaves a note instead of resuming, and the coroutine
// goes on without having been suspended: no nesting in a loop of waits that end at once.
//
// Memory order: what the waiter wrote is seen by the coroutine because the one calls the other; `state` decides only
// between firing and cancelling.
#ifndef PURLIN_INTERNAL_COROUTINE_H_
#define PURLIN_INTERNAL_COROUTINE_H_

#include <version>

#if defined(__cpp_impl_coroutine) && defined(__cpp_lib_coroutine)

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <new>
#include <utility>

#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/cell.h"
#include "purlin/internal/owed_task.h"
#include "purlin/internal/thread_state.h"
#include "purlin/internal/waiter.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// Resumes coroutines on this thread, one after the other. Lives on the stack.
class CoroutineLoop final {
 public:
  CoroutineLoop(const CoroutineLoop&) = delete;
  CoroutineLoop& operator=(const CoroutineLoop&) = delete;

  /// Resumes `coroutine`, then each coroutine that the previous one handed over to, until there is none.
  __attribute__((noinline)) static void Run(std::coroutine_handle<> coroutine) {
    CoroutineLoop here;
    while (coroutine) {
      here.running_ = coroutine.address();
      coroutine.resume();
      coroutine = std::exchange(here.next_, std::coroutine_handle<>());
    }
  }

  /// From the await_suspend of `from`, as its last act: runs `to` once `from` has suspended. The caller touches neither
  /// afterwards.
  __attribute__((noinline)) static void Transfer(void* from, std::coroutine_handle<> to) {
    CoroutineLoop* loop = innermost_;
    if (loop == nullptr || loop->running_ != from || loop->next_) return Run(to);
    loop->next_ = to;
  }

 private:
  CoroutineLoop() noexcept : outer_(std::exchange(innermost_, this)) {}
  ~CoroutineLoop() { innermost_ = outer_; }

  static inline thread_local CoroutineLoop* innermost_ = nullptr;

  CoroutineLoop* outer_;
  void* running_ = nullptr;
  std::coroutine_handle<> next_;
};

/// See the top of this file.
class CoroutineWait final {
 public:
  CoroutineWait(const CoroutineWait&) = delete;
  CoroutineWait& operator=(const CoroutineWait&) = delete;

  /// A counted reference.
  class Ref final {
   public:
    Ref() noexcept = default;
    /// Takes over a reference.
    explicit Ref(CoroutineWait* wait) noexcept : wait_(wait) {}
    Ref(const Ref& other) noexcept : wait_(other.wait_) {
      // Relaxed: the caller holds a reference.
      if (wait_ != nullptr) wait_->refs_.fetch_add(1, std::memory_order_relaxed);
    }
    Ref(Ref&& other) noexcept : wait_(std::exchange(other.wait_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
      std::swap(wait_, other.wait_);
      return *this;
    }
    ~Ref() {
      // Release what we did, acquire what the others did, before the last one frees it.
      if (wait_ == nullptr || wait_->refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
      wait_->~CoroutineWait();
      FreeBlock(BlockClass::kNode, wait_);
    }
    CoroutineWait* operator->() const noexcept { return wait_; }
    CoroutineWait* get() const noexcept { return wait_; }
    explicit operator bool() const noexcept { return wait_ != nullptr; }

   private:
    CoroutineWait* wait_ = nullptr;
  };

  static Ref New(std::coroutine_handle<> coroutine) noexcept {
    return Ref(::new (AllocateBlock(BlockClass::kNode)) CoroutineWait(coroutine));
  }

  /// The body of await_suspend: `attach()` attaches `wait` to the event that will fire it. False if it fired on this
  /// thread meanwhile. The frame of the coroutine may be gone when `attach()` returns, so neither this nor `attach`
  /// lives in it.
  template <typename F>
  static bool Suspend(const Ref& wait, F&& attach) {
    Attaching here{wait.get(), false, innermost_};
    innermost_ = &here;
    attach();
    innermost_ = here.outer;
    return !here.fired;
  }

  /// Resumes the coroutine, unless it is gone. `source` is kept until the coroutine has seen it; may be null.
  void Fire(const Status& status, EventHeader* source) {
    EventRetain(source);
    source_ = Event::Adopt(source);
    status_ = status;
    if (!Leave(kFired)) return;
    for (Attaching* attaching = innermost_; attaching != nullptr; attaching = attaching->outer) {
      if (attaching->wait == this) {
        attaching->fired = true;
        return;
      }
    }
    CoroutineLoop::Run(coroutine_);
  }
  /// The frame is being destroyed; does nothing if it was resumed.
  void Cancel() noexcept { static_cast<void>(Leave(kCancelled)); }

  /// What Fire was given.
  const Status& status() const noexcept { return status_; }
  /// What Fire was given.
  EventHeader* source() const noexcept { return source_.header(); }

 private:
  /// A call of `attach` that has not returned. Holds a reference through its caller, so that `wait` is not reused.
  struct Attaching {
    const CoroutineWait* wait;
    bool fired;
    Attaching* outer;
  };
  static constexpr std::uint32_t kWaiting = 0;
  static constexpr std::uint32_t kFired = 1;
  static constexpr std::uint32_t kCancelled = 2;

  explicit CoroutineWait(std::coroutine_handle<> coroutine) noexcept : coroutine_(coroutine) {}
  ~CoroutineWait() = default;

  bool Leave(std::uint32_t state) noexcept {
    std::uint32_t expected = kWaiting;
    return state_.compare_exchange_strong(expected, state, std::memory_order_acq_rel, std::memory_order_acquire);
  }

  static inline thread_local Attaching* innermost_ = nullptr;

  std::atomic<std::uint32_t> refs_{1};
  std::atomic<std::uint32_t> state_{kWaiting};
  std::coroutine_handle<> coroutine_;
  Status status_;
  Event source_;
};
static_assert(sizeof(CoroutineWait) <= 64, "a wait is a block of its thread");

/// Fires a wait from an event's list.
struct WaitResumer {
  CoroutineWait::Ref wait;
  /// What the coroutine looks at afterwards, or null. Alive while its waiters run.
  EventHeader* source;
  void operator()(const Status& status) { wait->Fire(status, source); }
};

/// Waits for a cell. The base of all awaiters of events and values; they differ in what they make of it.
class CellAwaiter {
 public:
  CellAwaiter(const CellAwaiter&) = delete;
  CellAwaiter& operator=(const CellAwaiter&) = delete;

  bool await_ready() const noexcept { return source_ == nullptr || IsTerminal(source_); }
  __attribute__((noinline)) bool await_suspend(std::coroutine_handle<> coroutine) {
    const CoroutineWait::Ref wait = wait_ = CoroutineWait::New(coroutine);
    // From here on the coroutine may be gone at any time: no `this`. A reference of our own goes before the coroutine
    // sleeps: if it is the last, no code can complete the cell any more, and its waiters run with an error.
    EventHeader* source = source_;
    EventHeader* given_up = std::exchange(owned_, false) ? source : nullptr;
    EventHeader* kept = keep_ ? source : nullptr;
    return CoroutineWait::Suspend(wait, [&] {
      Attach(source, WaitResumer{wait, kept});
      EventRelease(given_up);
    });
  }

 protected:
  /// `owned`: takes over the reference. `keep`: source() is used afterwards.
  CellAwaiter(EventHeader* source, bool owned, bool keep) noexcept : source_(source), owned_(owned), keep_(keep) {}
  ~CellAwaiter() {
    if (wait_) wait_->Cancel();
    if (owned_) EventRelease(source_);
  }

  /// How the cell ended. A null cell is a ready event.
  Status status() const noexcept {
    if (wait_) return wait_->status();
    return source_ == nullptr ? Status() : ErrorOf(source_);
  }
  /// The cell, alive as long as this.
  EventHeader* source() const noexcept { return wait_ ? wait_->source() : source_; }

 private:
  EventHeader* source_;
  CoroutineWait::Ref wait_;
  bool owned_;
  bool keep_;
};

/// `co_await event`.
class EventAwaiter final : public CellAwaiter {
 public:
  EventAwaiter(EventHeader* source, bool owned) noexcept : CellAwaiter(source, owned, false) {}
  Status await_resume() const noexcept { return status(); }
};

/// An event that happens in a task of `executor`, once a waiter is attached to it: `attach(event)` attaches, then the
/// task is submitted. If the executor refuses or drops the task, the event fails.
template <typename F>
void AttachToTask(Executor& executor, Label label, SourceLocation location, F&& attach) {
  const Event gate = Event::Adopt(NewCell(sizeof(EventCell), alignof(EventCell), nullptr, 0, 0, label, location));
  std::forward<F>(attach)(gate.header());
  SubmitOwed(executor, gate, [](EventHeader* owed) noexcept { static_cast<void>(TrySetReady(owed)); });
}

/// `co_await ResumeOn(executor)`.
class HopAwaiter final {
 public:
  HopAwaiter(Executor& executor, Label label, SourceLocation location) noexcept
      : executor_(&executor), label_(label), location_(location) {}
  HopAwaiter(const HopAwaiter&) = delete;
  HopAwaiter& operator=(const HopAwaiter&) = delete;
  ~HopAwaiter() {
    if (wait_) wait_->Cancel();
  }

  bool await_ready() const noexcept { return false; }
  __attribute__((noinline)) bool await_suspend(std::coroutine_handle<> coroutine) {
    const CoroutineWait::Ref wait = wait_ = CoroutineWait::New(coroutine);
    Executor& executor = *executor_;
    const Label label = label_;
    const SourceLocation location = location_;
    return CoroutineWait::Suspend(wait, [&] {
      AttachToTask(executor, label, location, [&](EventHeader* gate) { Attach(gate, WaitResumer{wait, nullptr}); });
    });
  }
  Status await_resume() const noexcept { return wait_->status(); }

 private:
  Executor* executor_;
  Label label_;
  SourceLocation location_;
  CoroutineWait::Ref wait_;
};

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // coroutines

#endif  // PURLIN_INTERNAL_COROUTINE_H_
