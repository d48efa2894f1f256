// Purlin: coroutines that await events, values, futures and one another. C++20.
//
// ```cpp
// purlin::CoTask<float> Sum(purlin::Executor& pool, purlin::AsyncValueRef<std::vector<float>> weights) {
//   purlin::StatusOr<purlin::AsyncValueRef<std::vector<float>>> values = co_await std::move(weights);
//   if (!values.ok()) co_return values.status();
//   if (purlin::Status hop = co_await purlin::ResumeOn(pool); !hop.ok()) co_return hop;
//   float sum = 0;
//   for (const float value : **values) sum += value;
//   co_return sum;
// }
// purlin::AsyncValueRef<float> StartSum(purlin::Executor& pool, purlin::AsyncValueRef<std::vector<float>> weights) {
//   return Sum(pool, std::move(weights)).Start(pool, "sum");
// }
// ```
//
// Where the compiler has no coroutines this header is empty: ask `__cpp_impl_coroutine` (the compiler) and
// `__cpp_lib_coroutine` (<version>), which are both defined exactly where it is not.
//
// What can be awaited, in any coroutine, and what that gives:
//   an Event                    Status
//   an AsyncValueRef<T>&        StatusOr<T*>, good while the reference that was awaited is
//   an AsyncValuePtr<T>         the same
//   an AsyncValueRef<T>&&       StatusOr<AsyncValueRef<T>>; so **result is the value in all three cases
//   a Future<T>                 what Future::Await() gives: StatusOr<T>, for a Future<> Status; move-only ones moved
//   ResumeOn(executor)          Status
//   a CoTask<T>&&               StatusOr<T>; for a CoTask<> and a CoTask<Status> Status
//
// Threads: a coroutine that awaits what is complete already goes on at once. Else the thread that completes it resumes
// the coroutine, as a waiter (event.h has order, nesting, user contexts), so hop before long work. The stack does not
// grow with the number of awaits nor with how deeply tasks await one another.
//
// No await is lost: a dropped promise, a dropped last reference to an unset value, and an executor that refuses or
// drops a task all resume the coroutine with their error. A suspended awaiter holds no reference to what it waits for:
// awaiting an rvalue drops that reference. An lvalue belongs to the coroutine: a coroutine that holds the last
// reference to an unset value, and awaits it, waits for itself for ever. So does a coroutine that awaits what was
// forwarded to its own result: awaits are not among the cycles that are detected.
//
// A suspended coroutine may be destroyed: it is not resumed afterwards. The caller that destroys it ensures that no
// other thread completes what it awaits at that moment.
//
// An exception that leaves the body of a CoTask is the task's error, kInternal, with its text.
#ifndef PURLIN_COROUTINE_H_
#define PURLIN_COROUTINE_H_

#include <version>

#if defined(__cpp_impl_coroutine) && defined(__cpp_lib_coroutine)

#include <coroutine>
#include <type_traits>
#include <utility>

#include "purlin/async_value.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/async_value.h"
#include "purlin/internal/cell.h"
#include "purlin/internal/co_task.h"
#include "purlin/internal/coroutine.h"
#include "purlin/internal/waiter.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

namespace internal {

/// `co_await value`, where a reference elsewhere keeps the value.
template <typename T>
class ValuePointerAwaiter final : public CellAwaiter {
 public:
  explicit ValuePointerAwaiter(EventHeader* source) noexcept
      : CellAwaiter(source, false, true), is_null_(source == nullptr) {}
  StatusOr<T*> await_resume() const {
    Status error = is_null_ ? NullValueError() : status();
    if (!error.ok()) return error;
    return StatusOr<T*>(static_cast<T*>(ValueAddress(source())));
  }

 private:
  bool is_null_;
};

/// `co_await std::move(value)`.
template <typename T>
class ValueAwaiter final : public CellAwaiter {
 public:
  explicit ValueAwaiter(AsyncValueRef<T> value) noexcept
      : CellAwaiter(value.header(), true, true), is_null_(value.release() == nullptr) {}
  StatusOr<AsyncValueRef<T>> await_resume() const {
    Status error = is_null_ ? NullValueError() : status();
    if (!error.ok()) return error;
    EventRetain(source());
    return StatusOr<AsyncValueRef<T>>(AsyncValueRef<T>::Adopt(source()));
  }

 private:
  bool is_null_;
};

/// `co_await future`. `kMove` moves the value out.
template <typename T, bool kMove>
class FutureAwaiter final : public CellAwaiter {
 public:
  using Result = typename Future<T>::Result;
  /// `owned`: takes over the reference.
  FutureAwaiter(EventHeader* source, bool owned) noexcept
      : CellAwaiter(source, owned, true), is_null_(source == nullptr) {}
  Result await_resume() const {
    Status error = is_null_ ? NullValueError() : status();
    if constexpr (std::is_void_v<T>) {
      return error;
    } else {
      if (!error.ok()) return error;
      T& value = *static_cast<T*>(ValueAddress(source()));
      if constexpr (kMove) {
        return Result(std::move(value));
      } else {
        return Result(static_cast<const T&>(value));
      }
    }
  }

 private:
  bool is_null_;
};

}  // namespace internal

/// OK once the event has happened, or its error.
inline internal::EventAwaiter operator co_await(const Event& event) noexcept {
  return internal::EventAwaiter(event.header(), false);
}
/// As above.
inline internal::EventAwaiter operator co_await(Event&& event) noexcept {
  internal::EventHeader* header = event.header();
  internal::EventRetain(header);
  event = Event();
  return internal::EventAwaiter(header, true);
}

/// A pointer to the value, or its error. Null counts as in async_value_verbs.h.
template <typename T>
internal::ValuePointerAwaiter<T> operator co_await(const AsyncValueRef<T>& value) noexcept {
  return internal::ValuePointerAwaiter<T>(value.header());
}
/// As above.
template <typename T>
internal::ValuePointerAwaiter<T> operator co_await(AsyncValuePtr<T> value) noexcept {
  return internal::ValuePointerAwaiter<T>(value.header());
}
/// A reference to the value, or its error.
template <typename T>
internal::ValueAwaiter<T> operator co_await(AsyncValueRef<T>&& value) noexcept {
  return internal::ValueAwaiter<T>(std::move(value));
}

/// A copy of the value, or the error: what Await() gives, without blocking.
template <typename T>
internal::FutureAwaiter<T, false> operator co_await(const Future<T>& future) noexcept {
  static_assert(Future<T>::kCopyable, "std::move the future to take a move-only value out");
  return internal::FutureAwaiter<T, false>(future.async_value().header(), false);
}
/// As above; a move-only value is moved out. The future is invalid afterwards.
template <typename T>
internal::FutureAwaiter<T, !Future<T>::kCopyable> operator co_await(Future<T>&& future) noexcept {
  return internal::FutureAwaiter<T, !Future<T>::kCopyable>(std::move(future).ReleaseValue().release().header(), true);
}

/// Awaited: the coroutine goes on in a task of `executor`, which outlives that; OK. If the executor refuses the task,
/// the coroutine goes on on this thread, with the executor's error; if the executor drops the task later, on the thread
/// that drops it, with kCancelled.
[[nodiscard]] inline internal::HopAwaiter ResumeOn(Executor& executor, Label label = Label("ResumeOn"),
                                                   SourceLocation location = SourceLocation::Current()) noexcept {
  return internal::HopAwaiter(executor, label, location);
}

/// A coroutine that has not begun: a function whose return type this is, and that has `co_await` or `co_return` in it.
/// It runs when it is awaited or started; a task that is neither is destroyed, and nothing of it has run. Move-only.
///
/// A CoTask<T> returns a T, a StatusOr<T> or a Status that is not OK; a CoTask<> returns nothing and fails only by an
/// exception; a CoTask<Status> returns a Status.
///
/// Parameters are kept in the frame as they are declared: an argument that is passed by reference must outlive the
/// task. A lambda's captures are not parameters: they must outlive the task too.
template <typename T = void>
class [[nodiscard]] CoTask final {
 public:
  /// For the compiler.
  using promise_type = internal::CoPromise<T>;
  /// StatusOr<T>, or Status.
  using Result = typename internal::CoTraits<T>::Result;
  /// AsyncValueRef<T>, or Event.
  using Started = typename internal::CoTraits<T>::Started;

  /// Empty: awaiting it, or starting it, gives kFailedPrecondition.
  CoTask() noexcept = default;
  /// Leaves `other` empty.
  CoTask(CoTask&& other) noexcept = default;
  /// Destroys what was here. Leaves `other` empty.
  CoTask& operator=(CoTask&& other) noexcept = default;
  CoTask(const CoTask&) = delete;
  CoTask& operator=(const CoTask&) = delete;
  ~CoTask() = default;

  /// False once moved from, awaited or started.
  explicit operator bool() const noexcept { return static_cast<bool>(frame_.handle); }

  /// Runs the task on this thread until it first suspends. It runs to its end whether its result is awaited or not. A
  /// result that was completed first (SetError, to cancel) stays as it is. `label` and the place of the caller name the
  /// result.
  Started Start(Label label = Label("CoTask"), SourceLocation location = SourceLocation::Current()) && {
    if (!frame_.handle) return Failed(location);
    Started started = NewStarted(label, location);
    internal::StartFrame(std::move(frame_), Event::Adopt(Shared(started)));
    return started;
  }
  /// As above, beginning in a task of `executor`, which outlives that. If the executor refuses or drops the task, the
  /// coroutine is destroyed without having run, and the result fails with the executor's error, or with kCancelled.
  Started Start(Executor& executor, Label label = Label("CoTask"),
                SourceLocation location = SourceLocation::Current()) && {
    if (!frame_.handle) return Failed(location);
    Started started = NewStarted(label, location);
    internal::AttachToTask(executor, label, location, [&](internal::EventHeader* gate) {
      internal::Attach(gate, internal::FrameStarter{std::move(frame_), Event::Adopt(Shared(started))});
    });
    return started;
  }

  /// The result, when the task has ended. The awaiter owns the task and destroys it.
  internal::TaskAwaiter<T> operator co_await() && noexcept { return internal::TaskAwaiter<T>(std::move(frame_)); }

 private:
  static_assert(!std::is_reference_v<T> && !std::is_const_v<T>, "a CoTask returns a value");
  static_assert(!internal::StatusOrTraits<T>::kIs || std::is_same_v<T, Status>,
                "a CoTask<T> ends in a StatusOr<T> as it is");
  friend promise_type;
  explicit CoTask(internal::CoFrame frame) noexcept : frame_(std::move(frame)) {}

  static Started NewStarted(Label label, SourceLocation location) noexcept {
    return Started::Adopt(internal::CoTraits<T>::NewRoot(label, location));
  }
  static internal::EventHeader* Shared(const Started& started) noexcept {
    internal::EventRetain(started.header());
    return started.header();
  }
  static Started Failed(SourceLocation location) noexcept {
    const Event failed =
        Event::Error(FailedPreconditionError("a CoTask that was moved from was started", location), location);
    internal::EventRetain(failed.header());
    return Started::Adopt(failed.header());
  }

  internal::CoFrame frame_;
};

namespace internal {
inline CoTask<void> CoPromise<void>::get_return_object() noexcept {
  return CoTask<void>(CoFrame(std::coroutine_handle<CoPromise>::from_promise(*this), this));
}
}  // namespace internal

}  // namespace v0
}  // namespace purlin

#endif  // coroutines

#endif  // PURLIN_COROUTINE_H_
