// Purlin: the closures behind AndThen, Map, TryMap and FlatMap. Not for users; see async_value_verbs.h.
//
// A body makes a result out of a source that has a value. It runs in one of three places: at once, in a waiter of the
// source, or in a task that such a waiter submits. Errors of the source reach the result without a body and without a
// task. A waiter needs no reference to its source, which is alive while its waiters run; a task holds one.
#ifndef PURLIN_INTERNAL_ASYNC_VALUE_MAP_H_
#define PURLIN_INTERNAL_ASYNC_VALUE_MAP_H_

#include <functional>
#include <type_traits>
#include <utility>

#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/async_value.h"
#include "purlin/internal/owed_task.h"
#include "purlin/internal/waiter.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

template <typename T>
class AsyncValuePtr;
template <typename T>
class AsyncValueRef;

/// The value of something that has none: it happened, and that is all.
struct Chain {};

namespace internal {

/// Takes StatusOr<X> apart. `Value` is Chain for a Status.
template <typename R>
struct StatusOrTraits {
  static constexpr bool kIs = false;
};
template <typename X>
struct StatusOrTraits<StatusOr<X>> {
  static constexpr bool kIs = true;
  using Value = X;
};
template <>
struct StatusOrTraits<Status> {
  static constexpr bool kIs = true;
  using Value = Chain;
};

/// Takes AsyncValueRef<X> apart.
template <typename R>
struct AsyncValueRefTraits {
  static constexpr bool kIs = false;
};
template <typename X>
struct AsyncValueRefTraits<AsyncValueRef<X>> {
  static constexpr bool kIs = true;
  using Value = X;
};

/// Calls `f` with the value of `source`: as `T&`, or as an AsyncValuePtr<T> if it asks for that.
template <typename T, typename F>
decltype(auto) CallWithValue(F& f, EventHeader* source) {
  if constexpr (std::is_invocable_v<F, T&>) {
    return std::invoke(std::move(f), *static_cast<T*>(ValueAddress(source)));
  } else {
    static_assert(std::is_invocable_v<F, AsyncValuePtr<T>>, "a mapper is called as f(T&) or f(AsyncValuePtr<T>)");
    return std::invoke(std::move(f), AsyncValuePtr<T>(source));
  }
}
template <typename T, typename F>
using CallResult = decltype(CallWithValue<T>(std::declval<std::decay_t<F>&>(), nullptr));
/// The payload for what a function returns; Chain for nothing.
template <typename R>
using PayloadFor = std::conditional_t<std::is_void_v<R>, Chain, std::decay_t<R>>;

/// `call()`, or a Chain if that returns nothing.
template <typename Call>
decltype(auto) OrChain(Call&& call) {
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    return Chain{};
  } else {
    return call();
  }
}

/// Completes a claimed inline cell of R with what `call()` returns: a StatusOr of what R is made of, or a Status.
template <typename R, typename Call>
void CompleteClaimedTry(EventHeader* result, Call&& call) noexcept {
  using Returned = std::decay_t<decltype(call())>;
  static_assert(StatusOrTraits<Returned>::kIs,
                "TryMap and TryMakeAsyncValueRef need f to return a StatusOr or a Status");
  Status error;
  Status thrown = StatusOfThrow("making the value", result, [&] {
    Returned returned = call();
    if constexpr (std::is_same_v<Returned, Status>) {
      error = std::move(returned);
      if constexpr (std::is_same_v<R, Chain>) {
        if (error.ok()) error = ConstructPayload<R>(result, [] { return Chain{}; });
      } else if (error.ok()) {
        error = OkAsError("a value whose function returns a Status", PlaceOf(result));
      }
    } else if (returned.ok()) {
      error = ConstructPayload<R>(result, [&] { return R(*std::move(returned)); });
    } else {
      error = std::move(returned).status();
    }
  });
  if (!thrown.ok()) error = std::move(thrown);
  if (error.ok()) {
    PublishReady(result);
  } else {
    PublishFailure(result, std::move(error));
  }
}

template <typename T, typename R, typename F>
struct MapBody {
  F f;
  void operator()(EventHeader* result, EventHeader* source) noexcept {
    EmplaceFrom<R>(result, [&]() -> decltype(auto) {
      return OrChain([&]() -> decltype(auto) { return CallWithValue<T>(f, source); });
    });
  }
};

template <typename T, typename R, typename F>
struct TryMapBody {
  F f;
  void operator()(EventHeader* result, EventHeader* source) noexcept {
    if (!TryClaim(result)) return;
    CompleteClaimedTry<R>(result, [&]() -> decltype(auto) { return CallWithValue<T>(f, source); });
  }
};

template <typename T, typename R, typename F>
struct FlatMapBody {
  F f;
  void operator()(EventHeader* result, EventHeader* source) noexcept {
    if (!TryClaim(result)) return;
    AsyncValueRef<R> inner;
    Status thrown = StatusOfThrow("FlatMap's function", result, [&] { inner = CallWithValue<T>(f, source); });
    if (!thrown.ok()) return PublishError(result, std::move(thrown));
    ForwardClaimed(result, inner.header(), SameAddress());
  }
};

/// Makes `result` in a waiter of `source`.
template <typename Body>
struct BodyWaiter {
  EventHeader* source;
  Event result;
  Body body;
  void operator()(const Status& status) {
    if (status.ok()) {
      body(result.header(), source);
    } else {
      static_cast<void>(FailValue(result.header(), status));
    }
  }
};

/// Calls `hand_on`, which moves what will complete `result` to where it waits or runs. If that throws, `result` fails.
template <typename F>
inline __attribute__((always_inline)) void HandOn(EventHeader* result, F&& hand_on) noexcept {
  Status thrown = StatusOfThrow("moving the function", result, std::forward<F>(hand_on));
  if (!thrown.ok()) static_cast<void>(FailValue(result, std::move(thrown)));
}

/// Makes `result` in a task, out of a source that is terminal.
template <typename Body>
void SubmitBody(Executor& executor, const Event& result, EventHeader* source, Body& body) noexcept {
  HandOn(result.header(), [&] {
    EventRetain(source);
    SubmitOwed(executor, result, [source = Event::Adopt(source), body = std::move(body)](EventHeader* owed) mutable {
      Status error = ErrorOf(source.header());
      if (!error.ok()) return static_cast<void>(FailValue(owed, std::move(error)));
      body(owed, source.header());
    });
  });
}

/// Makes `result` in a task that a waiter of `source` submits.
template <typename Body>
struct BodySubmitter {
  Executor* executor;
  EventHeader* source;
  Event result;
  Body body;
  void operator()(const Status& status) {
    if (status.ok()) {
      SubmitBody(*executor, result, source, body);
    } else {
      static_cast<void>(FailValue(result.header(), status));
    }
  }
};

/// Calls a waiter with what it takes: nothing, the status, or a pointer to the value or the status. Null is in error.
template <typename T, typename F>
void CallAndThen(F& f, EventHeader* source) {
  if constexpr (std::is_invocable_v<F>) {
    std::invoke(std::move(f));
  } else {
    Status status = source == nullptr ? NullValueError() : ErrorOf(source);
    if constexpr (std::is_invocable_v<F, StatusOr<T*>>) {  // First: a Status converts to a StatusOr.
      if (status.ok()) {
        std::invoke(std::move(f), StatusOr<T*>(static_cast<T*>(ValueAddress(source))));
      } else {
        std::invoke(std::move(f), StatusOr<T*>(std::move(status)));
      }
    } else {
      static_assert(std::is_invocable_v<F, Status>, "a waiter is called as f(), f(Status) or f(StatusOr<T*>)");
      std::invoke(std::move(f), std::move(status));
    }
  }
}

template <typename T, typename F>
struct AndThenWaiter {
  EventHeader* source;
  F f;
  void operator()() { CallAndThen<T>(f, source); }
};
/// As above, for a waiter that does not look at the value.
template <typename F>
struct PlainWaiter {
  F f;
  void operator()() { std::invoke(std::move(f)); }
};

/// Runs a waiter in a task that holds a reference to `source`. If the executor refuses, the waiter is destroyed.
template <typename T, typename F>
void SubmitAndThen(Executor& executor, EventHeader* source, F f) {
  EventRetain(source);
  Status refused = executor.Execute(
      Task([source = Event::Adopt(source), f = std::move(f)]() mutable { CallAndThen<T>(f, source.header()); },
           source == nullptr ? Label("AndThen") : LabelOf(source)));
  refused.IgnoreError();  // Destroying `f` has completed the promises that it held.
}

template <typename T, typename F>
struct AndThenSubmitter {
  Executor* executor;
  EventHeader* source;
  F f;
  void operator()() { SubmitAndThen<T>(*executor, source, std::move(f)); }
};

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_ASYNC_VALUE_MAP_H_
