// Purlin: the closures behind Future. Not for users; see future.h.
//
// As in async_value_map.h, a body makes a result out of a source that has a value, at once, in a waiter or in a task.
// What futures add: nothing is computed for a result to which no reference is left, and a task carries errors as well.
#ifndef PURLIN_INTERNAL_FUTURE_H_
#define PURLIN_INTERNAL_FUTURE_H_

#include <atomic>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include "purlin/async_value.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/async_value.h"
#include "purlin/internal/async_value_map.h"
#include "purlin/internal/borrowing_optional.h"
#include "purlin/internal/cell.h"
#include "purlin/internal/owed_task.h"
#include "purlin/internal/waiter.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

template <typename T = void>
class Future;

namespace internal {

/// What the cell of a Future<T> holds.
template <typename T>
using FuturePayload = std::conditional_t<std::is_void_v<T>, Chain, T>;
/// The type of the future of a payload.
template <typename P>
using FutureOf = Future<std::conditional_t<std::is_same_v<P, Chain>, void, P>>;
/// What a Future<T> ends in.
template <typename T>
struct FutureResult {
  using Type = StatusOr<T>;
};
template <>
struct FutureResult<void> {
  using Type = Status;
};

/// Takes Future<X> apart.
template <typename R>
struct FutureTraits : std::false_type {};
template <typename X>
struct FutureTraits<Future<X>> : std::true_type {
  using Payload = FuturePayload<X>;
};

/// The cell of every Future<> that was ready from the start: one for the process, never freed.
inline EventHeader* ReadyChainCell() noexcept {
  static EventHeader* const cell = [] {
    EventHeader* made = InlineCell<Chain>::New(kPayloadConstructed, Label("ready"), SourceLocation());
    made->refs.store(kRefsSaturated, std::memory_order_relaxed);
    made->word.store(kStateReady, std::memory_order_release);
    return made;
  }();
  return cell;
}

/// True if the caller's reference to `result` is the only one. Only a thread with another reference could change that.
inline bool IsUnobserved(const EventHeader* result) noexcept {
  return result->refs.load(std::memory_order_acquire) == 1 && !HasWaiters(result);
}

/// Ends a result to which no reference is left.
inline void EndUnobserved(EventHeader* result) noexcept {
  static_cast<void>(FailValue(
      result, AbortedError("nobody held the future any more, so its function was not called", PlaceOf(result))));
}

/// Calls the user's function with the value: by reference to const, or moved out of a value that has one owner.
template <typename T, typename F, bool kMove>
struct FutureCaller {
  F f;
  decltype(auto) operator()(FuturePayload<T>& value) {
    if constexpr (std::is_void_v<T>) {
      static_cast<void>(value);
      return std::invoke(std::move(f));
    } else if constexpr (kMove) {
      return std::invoke(std::move(f), std::move(value));
    } else {
      return std::invoke(std::move(f), static_cast<const T&>(value));
    }
  }
};

/// As above, for functions that return a future: its value.
template <typename Caller>
struct FlatCaller {
  Caller caller;
  template <typename P>
  auto operator()(P& value) {
    return std::move(caller(value)).ReleaseValue();
  }
};

/// Makes `result` in a waiter of `source`.
template <typename Body, bool kAlways>
struct FutureWaiter {
  EventHeader* source;
  Event result;
  Body body;
  void operator()(const Status& status) {
    if (!status.ok()) return static_cast<void>(FailValue(result.header(), status));
    if (!kAlways && IsUnobserved(result.header())) return EndUnobserved(result.header());
    body(result.header(), source);
  }
};

/// Makes `result` in a task that a waiter of `source` submits. Errors go through a task as well, for the sake of what
/// is attached to `result`: it must not run on the thread that sets `source`. If no reference to it is left, no task is
/// made.
template <typename Body, bool kAlways>
struct FutureSubmitter {
  Executor* executor;
  EventHeader* source;
  Event result;
  Body body;
  void operator()(const Status& status) {
    if (IsUnobserved(result.header())) {
      if (!status.ok()) return static_cast<void>(FailValue(result.header(), status));
      if (!kAlways) return EndUnobserved(result.header());
    }
    SubmitBody(*executor, result, source, body);
  }
};

/// A new value that `body` makes out of `source`, in a task if there is an executor.
template <bool kAlways, typename Cell, typename Body>
EventHeader* DeriveFuture(EventHeader* source, Executor* executor, Body body, Label label,
                          SourceLocation location) noexcept {
  EventHeader* result = Cell::New(Cell::kFlags, label, location);
  if (IsTerminal(source)) {
    Status error = ErrorOf(source);
    if (!error.ok()) {
      static_cast<void>(FailValue(result, std::move(error)));
    } else if (executor == nullptr) {
      body(result, source);
    } else {
      EventRetain(result);
      SubmitBody(*executor, Event::Adopt(result), source, body);
    }
    return result;
  }
  BeginDebt(result, source);
  HandOn(result, [&] {
    EventRetain(result);
    if (executor == nullptr) {
      AttachPending(source, FutureWaiter<Body, kAlways>{source, Event::Adopt(result), std::move(body)});
    } else {
      AttachPending(source, FutureSubmitter<Body, kAlways>{executor, source, Event::Adopt(result), std::move(body)});
    }
  });
  return result;
}

/// Lets `result` show what `source` shows, from a task.
struct DetachWaiter {
  Executor* executor;
  EventHeader* source;
  Event result;
  void operator()() {
    if (IsUnobserved(result.header())) return EndUnobserved(result.header());
    EventRetain(source);
    SubmitOwed(*executor, result, [source = Event::Adopt(source)](EventHeader* owed) {
      static_cast<void>(ForwardValue(owed, source.header()));
    });
  }
};

/// Whether `f` takes a `const StatusOr<T>&` of a T that is neither copied nor moved out: one that shows the value.
template <typename T, bool kMove, typename F>
inline constexpr bool kBorrows = !kMove && !IsCopyable<T>::value && !std::is_invocable_v<F, StatusOr<const T*>> &&
                                 std::is_invocable_v<F, const StatusOr<T>&>;

/// What `f` takes: a StatusOr<T> (copied, moved out, or borrowed), or a StatusOr<const T*>.
template <typename T, bool kMove, typename F>
using OnReadyArgument =
    std::conditional_t<kMove || kBorrows<T, kMove, F> || (IsCopyable<T>::value && std::is_invocable_v<F, StatusOr<T>>),
                       StatusOr<T>, StatusOr<const T*>>;

/// An error, as what `f` takes. Out of line: where gcc sees that it has no value, it warns of every move (-O1).
template <typename Argument>
__attribute__((noinline, cold)) Argument ErrorArgument(Status error) {
  return Argument(std::move(error));
}

/// Calls `f` with the error of a future that has failed, or is invalid.
template <typename Argument, typename F>
__attribute__((noinline, cold)) void CallOnError(F& f, const EventHeader* source) {
  Status error = source == nullptr ? NullValueError() : ErrorOf(source);
  static_cast<void>(std::invoke(std::move(f), ErrorArgument<Argument>(std::move(error))));
}

/// What a copy of the value is made of.
template <bool kMove, typename T>
std::conditional_t<kMove, T&&, const T&> TakenFrom(T& value) noexcept {
  return static_cast<std::conditional_t<kMove, T&&, const T&>>(value);
}

/// What a future ended in, for `f`: a Status, or an OnReadyArgument.
template <typename T, bool kMove, typename F>
void CallOnReady(F& f, EventHeader* source) {
  if constexpr (std::is_void_v<T>) {
    if constexpr (std::is_invocable_v<F, Status>) {
      std::invoke(std::move(f), source == nullptr ? NullValueError() : ErrorOf(source));
    } else {
      std::invoke(std::move(f));
    }
  } else {
    using Argument = OnReadyArgument<T, kMove, F>;
    static_assert(std::is_invocable_v<F, Argument>,
                  "f is called as f(const StatusOr<T>&), as f(StatusOr<T>), if T can be copied, or as "
                  "f(StatusOr<const T*>)");
    if (source == nullptr || StateOf(source) != kStateReady) return CallOnError<Argument>(f, source);
    T& value = *static_cast<T*>(ValueAddress(source));
    if constexpr (std::is_same_v<Argument, StatusOr<const T*>>) {
      std::invoke(std::move(f), Argument(&value));
    } else if constexpr (kBorrows<T, kMove, F>) {
      const ShownStatusOr<typename Argument::value_type> shown(value);
      std::invoke(std::move(f), static_cast<const Argument&>(shown));
    } else if constexpr (kMove ? std::is_nothrow_move_constructible_v<T> : std::is_nothrow_copy_constructible_v<T>) {
      std::invoke(std::move(f), Argument(TakenFrom<kMove>(value)));
    } else {
      // Not inside the call of `f`, which gets an exception of the copy as its error.
      std::optional<Argument> taken;
      Status thrown = StatusOfThrow("copying the value", source, [&] { taken.emplace(TakenFrom<kMove>(value)); });
      if (!thrown.ok()) return static_cast<void>(std::invoke(std::move(f), ErrorArgument<Argument>(std::move(thrown))));
      std::invoke(std::move(f), *std::move(taken));
    }
  }
}

template <typename T, bool kMove, typename F>
struct OnReadyWaiter {
  EventHeader* source;
  F f;
  void operator()() { CallOnReady<T, kMove>(f, source); }
};

/// Calls `f` in a task that holds the value.
template <typename T, bool kMove, typename F>
void SubmitOnReady(Executor& executor, EventHeader* source, F f) {
  EventRetain(source);
  Status refused = executor.Execute(
      Task([source = Event::Adopt(source), f = std::move(f)]() mutable { CallOnReady<T, kMove>(f, source.header()); },
           source == nullptr ? Label("OnReady") : LabelOf(source)));
  refused.IgnoreError();  // Destroying `f` has completed the promises that it held.
}

template <typename T, bool kMove, typename F>
struct OnReadySubmitter {
  Executor* executor;
  EventHeader* source;
  F f;
  void operator()() { SubmitOnReady<T, kMove>(*executor, source, std::move(f)); }
};

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_FUTURE_H_
