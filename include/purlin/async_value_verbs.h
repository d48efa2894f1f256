// Purlin: the members of references to asynchronous values. AsyncValueRef and AsyncValuePtr have these members; see
// async_value.h for the rules that hold for all of them.
//
// ```cpp
// #include "purlin/async_value.h"
//
// purlin::AsyncValueRef<float> Reciprocal(purlin::Executor& pool, const purlin::AsyncValueRef<float>& value) {
//   return value.TryMap(pool, [](float x) -> purlin::StatusOr<float> {
//     if (x == 0) return purlin::OutOfRangeError("the reciprocal of 0");
//     return 1 / x;
//   });
// }
// ```
//
// A null reference counts as a value that failed with kFailedPrecondition: waiters run at once with that error, mapped
// values fail with it, and setters return false. Only get(), operator* and operator-> need a value.
#ifndef PURLIN_ASYNC_VALUE_VERBS_H_
#define PURLIN_ASYNC_VALUE_VERBS_H_

#include <cassert>
#include <chrono>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/async_value.h"
#include "purlin/internal/async_value_map.h"
#include "purlin/internal/cell.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/waiter.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// How far a value is. The last two are final.
enum class AsyncValueState : int {
  /// There is no payload yet; an indirect value that is not resolved, too.
  kUnconstructed = 0,
  /// The payload is constructed, and only the thread that completes the value may use it.
  kConstructed = 1,
  /// The value is there for every thread.
  kConcrete = 2,
  /// There is an error instead.
  kError = 3,
};

/// The members of AsyncValueRef<T> and AsyncValuePtr<T>. Not used by itself.
template <typename T>
class AsyncValueVerbs {
 public:
  /// The type of the value.
  using value_type = T;

  // Asking ----------------------------------------------------------------------------------------------------------

  /// True once there is a value or an error. One acquire load; never blocks.
  [[nodiscard]] bool IsAvailable() const noexcept { return header_ == nullptr || internal::IsTerminal(header_); }
  /// !IsAvailable().
  [[nodiscard]] bool IsUnavailable() const noexcept { return !IsAvailable(); }
  /// True once there is a value.
  [[nodiscard]] bool IsConcrete() const noexcept { return State() == internal::kStateReady; }
  /// True once there is an error.
  [[nodiscard]] bool IsError() const noexcept { return State() == internal::kStateError; }
  /// True while there is no payload; also of an indirect value that is not resolved.
  [[nodiscard]] bool IsUnconstructed() const noexcept { return state() == AsyncValueState::kUnconstructed; }
  /// True while the payload is constructed and not published.
  [[nodiscard]] bool IsConstructed() const noexcept { return state() == AsyncValueState::kConstructed; }
  /// The state.
  [[nodiscard]] AsyncValueState state() const noexcept {
    if (header_ == nullptr) return AsyncValueState::kError;
    const std::uintptr_t state = internal::StateOf(header_);
    if ((state & internal::kTerminalBit) != 0) return static_cast<AsyncValueState>(state);
    const bool constructed = (internal::FlagsOf(header_) & internal::kPayloadConstructed) != 0;
    return constructed ? AsyncValueState::kConstructed : AsyncValueState::kUnconstructed;
  }

  /// The value. Precondition: IsConcrete(), or IsConstructed() on the thread that completes the value, or an error with
  /// a type that keeps its payload. Asserted where NDEBUG is not defined; see GetIfConcrete() where it is not known to
  /// hold.
  T& get() const noexcept {
    assert(GetIfConstructed() != nullptr && "an AsyncValueRef was read before it had a value");
    return *static_cast<T*>(internal::ValueAddress(header_));
  }
  /// The value as one of a class that derives from T, which it is.
  template <typename D, typename = std::enable_if_t<std::is_base_of_v<T, D>>>
  D& get() const noexcept {
    return static_cast<D&>(get());
  }
  /// See get().
  T& operator*() const noexcept { return get(); }
  /// See get().
  T* operator->() const noexcept { return &get(); }
  /// The value, or null unless IsConcrete().
  [[nodiscard]] T* GetIfConcrete() const noexcept {
    return IsConcrete() && header_ != nullptr ? static_cast<T*>(internal::ValueAddress(header_)) : nullptr;
  }
  /// The payload, or null: constructed, concrete, or kept beside an error (see KeepOnError).
  [[nodiscard]] T* GetIfConstructed() const noexcept {
    return header_ == nullptr ? nullptr : static_cast<T*>(internal::ValueIfConstructed(header_));
  }
  /// The error, or OK unless IsError(). Never blocks.
  [[nodiscard]] Status GetError() const noexcept {
    return header_ == nullptr ? internal::NullValueError() : internal::ErrorOf(header_);
  }
  /// The error, or nothing unless IsError().
  [[nodiscard]] std::optional<Status> GetErrorIfPresent() const noexcept {
    if (!IsError()) return std::nullopt;
    return GetError();
  }

  /// How many references there are; 0 for null; a large number for a value in the caller's storage. Other threads may
  /// change that at any time.
  [[nodiscard]] std::size_t NumRef() const noexcept {
    return header_ == nullptr ? 0 : header_->refs.load(std::memory_order_acquire);
  }
  /// True if this is the only reference to the value, and to the value that it shows if it is indirect. False while an
  /// indirect value is not resolved.
  [[nodiscard]] bool IsUnique() const noexcept {
    if (NumRef() != 1) return false;
    if ((internal::FlagsOf(header_) & internal::kPayloadIndirect) == 0) return true;
    if (internal::ValueIfConstructed(header_) == nullptr) return internal::IsTerminal(header_);
    const auto* payload = static_cast<const internal::IndirectPayload*>(internal::PayloadOf(header_));
    return payload->owner == nullptr || payload->owner->refs.load(std::memory_order_acquire) == 1;
  }
  /// True while a waiter is attached or a thread sleeps.
  [[nodiscard]] bool HasWaiter() const noexcept { return header_ != nullptr && internal::HasWaiters(header_); }

  // Completing: the first wins. Waiters run on the calling thread before these return. ------------------------------

  /// Constructs the value out of `args` and publishes it. `emplace(StatusOr<T>)` publishes the value or the error. A
  /// payload that was constructed and not published is destroyed first. If the constructor throws, the value completes
  /// with kInternal. False if the value was completed before, and nothing changes. False also through a reference to a
  /// base class of the payload's type, which has no room for a T.
  template <typename... Args>
  bool emplace(Args&&... args) const {
    if constexpr (IsStatusOrOfT<Args...>()) {
      return EmplaceStatusOr(std::forward<Args>(args)...);
    } else {
      if (header_ == nullptr) return false;
      auto make = [&]() -> T { return internal::MakeValue<T>(std::forward<Args>(args)...); };
      if (internal::IsInlineCellOf<T>(header_)) return internal::EmplaceFrom<T>(header_, make);
      if (!internal::HasPayloadType<T>(header_) || internal::StateOf(header_) != internal::kStatePending) return false;
      // An indirect value has no room of its own.
      const Event made = Event::Adopt(internal::NewReadyFrom<T>(make, internal::LabelOf(header_), Place()));
      return internal::ForwardValue(header_, made.header());
    }
  }
  /// Publishes the constructed payload. False, and nothing changes, if there is none or if the value was completed
  /// before.
  bool SetStateConcrete() const noexcept {
    if (header_ == nullptr || (internal::FlagsOf(header_) & internal::kPayloadConstructed) == 0) return false;
    return internal::TrySetReady(header_);
  }
  /// Completes the value with `error`. A constructed payload is destroyed, unless its type keeps it. False, and nothing
  /// changes, if the value was completed before. An OK `error` is a bug of the caller and becomes kInternal.
  bool SetError(Status error, SourceLocation location = SourceLocation::Current()) const noexcept {
    if (header_ == nullptr) return false;
    if (error.ok()) error = internal::OkAsError("SetError of an asynchronous value", location);
    return internal::FailValue(header_, std::move(error));
  }
  /// Makes an indirect value show what `other` shows, now or once `other` is available, and keep it alive. From this
  /// call on the value counts as completed: later setters return false. False if it was completed or forwarded before,
  /// or is not indirect. A null `other`, or this value itself, completes it with an error; so does an `other` that
  /// waits for this value: kInternal, naming the cycle.
  bool ForwardTo(AsyncValueRef<T> other) const noexcept {
    return header_ != nullptr && internal::ForwardValue(header_, other.header());
  }

  // Waiting ---------------------------------------------------------------------------------------------------------

  /// Blocks this thread until the value is available; OK or its error. See Event::Wait.
  Status Wait() const noexcept { return IsAvailable() ? GetError() : internal::WaitForPending(header_, -1); }
  /// As Wait(), for at most `timeout`; then kDeadlineExceeded, and the value stays pending.
  Status WaitFor(std::chrono::nanoseconds timeout) const noexcept {
    const std::int64_t timeout_ns = timeout.count() < 0 ? 0 : timeout.count();
    return IsAvailable() ? GetError() : internal::WaitForPending(header_, timeout_ns);
  }
  /// The same cell as an event: it happens when the value is concrete. One more reference.
  [[nodiscard]] Event AsEvent() const noexcept {
    if (header_ == nullptr) return Event::Error(internal::NullValueError());
    return Event::Adopt(internal::EventRetain(header_));
  }

  /// Calls `f()`, `f(Status)` or `f(StatusOr<T*>)` exactly once when the value is available: at once, on this thread,
  /// if it is, else on the thread that completes it, in the order of attaching. The pointer is good during the call;
  /// hold a reference to use it longer. `f` may be move-only, may attach again, may drop the last reference. It must
  /// not block for long. An empty std::function or a null pointer is ignored.
  template <typename F>
  void AndThen(F&& f) const {
    using Closure = std::decay_t<F>;
    if (internal::IsEmptyCallable(f)) return;
    if constexpr (std::is_invocable_v<Closure>) {
      internal::Attach(header_, internal::PlainWaiter<Closure>{std::forward<F>(f)});
    } else {
      internal::Attach(header_, internal::AndThenWaiter<T, Closure>{header_, std::forward<F>(f)});
    }
  }
  /// As above, in a task of `executor`, always; the task holds a reference to the value. If the executor refuses, `f`
  /// is destroyed uncalled, and promises in it complete with an error. `executor` outlives the value's completion.
  template <typename F>
  void AndThen(Executor& executor, F&& f) const {
    using Closure = std::decay_t<F>;
    if (internal::IsEmptyCallable(f)) return;
    if (IsAvailable()) return internal::SubmitAndThen<T, Closure>(executor, header_, std::forward<F>(f));
    internal::Attach(header_, internal::AndThenSubmitter<T, Closure>{&executor, header_, std::forward<F>(f)});
  }

  // Mapping: a new value out of this one. ---------------------------------------------------------------------------
  //
  // `f` is called once, with `T&` or, if it takes that, with an AsyncValuePtr<T>: at once if the value is available,
  // else on the thread that completes it; with an executor always in a task. An error skips `f` and the executor. If
  // `f` throws, the result fails with kInternal. A result that was completed first (SetError, to cancel) stays as it
  // is, and `f` is not called. If the executor refuses or drops the task, the result fails with the executor's error,
  // or with kCancelled. An empty std::function or a null pointer fails the result with kInvalidArgument, at once.
  // `executor` outlives the completion of this value. A pending value costs one cell and one waiter.

  /// A value of what `f` returns (Chain for nothing; a Status or a StatusOr is a value like others), or of an `R` made
  /// of it, in place: R need not be movable.
  template <typename R = void, typename F>
  auto Map(F&& f, Label label = Label(), SourceLocation location = SourceLocation::Current()) const {
    using Closure = std::decay_t<F>;
    using Result = ResultOr<R, internal::PayloadFor<internal::CallResult<T, F>>>;
    if (internal::IsEmptyCallable(f)) return AsyncValueRef<Result>(internal::EmptyCallableError("Map", location));
    if (header_ != nullptr && IsConcrete()) {
      Closure closure(std::forward<F>(f));
      auto make = [&]() -> decltype(auto) {
        return internal::OrChain([&]() -> decltype(auto) { return internal::CallWithValue<T>(closure, header_); });
      };
      return AsyncValueRef<Result>::Adopt(internal::NewReadyFrom<Result>(make, label, location));
    }
    return Derive<Result, internal::InlineCell<Result>>(internal::MapBody<T, Result, Closure>{std::forward<F>(f)},
                                                        nullptr, label, location);
  }
  /// As above, in a task.
  template <typename R = void, typename F>
  auto Map(Executor& executor, F&& f, Label label = Label(),
           SourceLocation location = SourceLocation::Current()) const {
    using Closure = std::decay_t<F>;
    using Result = ResultOr<R, internal::PayloadFor<internal::CallResult<T, F>>>;
    if (internal::IsEmptyCallable(f)) return AsyncValueRef<Result>(internal::EmptyCallableError("Map", location));
    return Derive<Result, internal::InlineCell<Result>>(internal::MapBody<T, Result, Closure>{std::forward<F>(f)},
                                                        &executor, label, location);
  }

  /// For `f` that returns a `StatusOr<U>`: a value of U, or of an `R` made of it, or the error. For `f` that returns a
  /// Status: a Chain or the error.
  template <typename R = void, typename F>
  auto TryMap(F&& f, Label label = Label(), SourceLocation location = SourceLocation::Current()) const {
    using Closure = std::decay_t<F>;
    using Result = TryResult<R, F>;
    if (internal::IsEmptyCallable(f)) return AsyncValueRef<Result>(internal::EmptyCallableError("TryMap", location));
    return Derive<Result, internal::InlineCell<Result>>(internal::TryMapBody<T, Result, Closure>{std::forward<F>(f)},
                                                        nullptr, label, location);
  }
  /// As above, in a task.
  template <typename R = void, typename F>
  auto TryMap(Executor& executor, F&& f, Label label = Label(),
              SourceLocation location = SourceLocation::Current()) const {
    using Closure = std::decay_t<F>;
    using Result = TryResult<R, F>;
    if (internal::IsEmptyCallable(f)) return AsyncValueRef<Result>(internal::EmptyCallableError("TryMap", location));
    return Derive<Result, internal::InlineCell<Result>>(internal::TryMapBody<T, Result, Closure>{std::forward<F>(f)},
                                                        &executor, label, location);
  }

  /// For `f` that returns an `AsyncValueRef<U>`: that value, if this value is available; else an indirect value that is
  /// forwarded to it.
  template <typename F>
  auto FlatMap(F&& f, Label label = Label(), SourceLocation location = SourceLocation::Current()) const {
    using Closure = std::decay_t<F>;
    using Result = FlatResult<F>;
    if (internal::IsEmptyCallable(f)) return AsyncValueRef<Result>(internal::EmptyCallableError("FlatMap", location));
    if (header_ != nullptr && IsConcrete()) {
      Closure closure(std::forward<F>(f));
      AsyncValueRef<Result> inner;
      Status thrown = internal::StatusOfThrow("FlatMap's function", location,
                                              [&] { inner = internal::CallWithValue<T>(closure, header_); });
      return thrown.ok() ? inner : AsyncValueRef<Result>(std::move(thrown), location);
    }
    return Derive<Result, internal::IndirectCell<Result>>(internal::FlatMapBody<T, Result, Closure>{std::forward<F>(f)},
                                                          nullptr, label, location);
  }
  /// As above; `f` runs in a task.
  template <typename F>
  auto FlatMap(Executor& executor, F&& f, Label label = Label(),
               SourceLocation location = SourceLocation::Current()) const {
    using Closure = std::decay_t<F>;
    using Result = FlatResult<F>;
    if (internal::IsEmptyCallable(f)) return AsyncValueRef<Result>(internal::EmptyCallableError("FlatMap", location));
    return Derive<Result, internal::IndirectCell<Result>>(internal::FlatMapBody<T, Result, Closure>{std::forward<F>(f)},
                                                          &executor, label, location);
  }

  /// For Purlin's own files: the cell, borrowed.
  [[nodiscard]] internal::EventHeader* header() const noexcept { return header_; }

 protected:
  /// Null.
  constexpr AsyncValueVerbs() noexcept = default;
  /// Shows `header`.
  constexpr explicit AsyncValueVerbs(internal::EventHeader* header) noexcept : header_(header) {}
  /// For AsyncValueRef and AsyncValuePtr only, as are the next four.
  AsyncValueVerbs(const AsyncValueVerbs&) noexcept = default;
  /// See above.
  AsyncValueVerbs& operator=(const AsyncValueVerbs&) noexcept = default;
  ~AsyncValueVerbs() = default;

  /// Null, or the cell.
  internal::EventHeader* header_ = nullptr;

 private:
  template <typename R, typename Deduced>
  using ResultOr = std::conditional_t<std::is_void_v<R>, Deduced, R>;
  template <typename R, typename F>
  using TryResult = ResultOr<R, typename internal::StatusOrTraits<std::decay_t<internal::CallResult<T, F>>>::Value>;
  template <typename F>
  using FlatResult = typename internal::AsyncValueRefTraits<std::decay_t<internal::CallResult<T, F>>>::Value;

  template <typename... Args>
  static constexpr bool IsStatusOrOfT() {
    if constexpr (sizeof...(Args) == 1) {
      return (std::is_same_v<std::decay_t<Args>, StatusOr<T>> && ...);
    } else {
      return false;
    }
  }
  template <typename S>
  bool EmplaceStatusOr(S&& result) const {
    return result.ok() ? emplace(*std::forward<S>(result)) : SetError(std::forward<S>(result).status());
  }

  std::uintptr_t State() const noexcept {
    return header_ == nullptr ? internal::kStateError : internal::StateOf(header_);
  }
  SourceLocation Place() const noexcept { return internal::PlaceOf(header_); }

  /// A value that `body` makes out of this one.
  template <typename R, typename Cell, typename Body>
  AsyncValueRef<R> Derive(Body body, Executor* executor, Label label, SourceLocation location) const {
    if (IsError()) return AsyncValueRef<R>(GetError(), location);
    internal::EventHeader* result = Cell::New(Cell::kFlags, label, location);
    if (IsAvailable()) {
      if (executor == nullptr) {
        body(result, header_);
      } else {
        internal::EventRetain(result);
        internal::SubmitBody(*executor, Event::Adopt(result), header_, body);
      }
    } else {
      internal::BeginDebt(result, header_);
      internal::HandOn(result, [&] {
        internal::EventRetain(result);
        if (executor == nullptr) {
          internal::AttachPending(header_, internal::BodyWaiter<Body>{header_, Event::Adopt(result), std::move(body)});
        } else {
          internal::AttachPending(
              header_, internal::BodySubmitter<Body>{executor, header_, Event::Adopt(result), std::move(body)});
        }
      });
    }
    return AsyncValueRef<R>::Adopt(result);
  }
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ASYNC_VALUE_VERBS_H_
