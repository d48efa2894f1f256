// Purlin: one closure after several asynchronous values.
//
// ```cpp
// const purlin::AsyncValueRef<int> width = purlin::MakeUnconstructedAsyncValueRef<int>("width");
// const purlin::AsyncValueRef<int> height = purlin::MakeUnconstructedAsyncValueRef<int>("height");
// int area = 0;
// purlin::RunWhenReady({width, height}, [&](const purlin::Status& status) {
//   if (status.ok()) area = *width * *height;
// });
// width.emplace(3);
// height.emplace(4);  // the closure runs here
// ```
//
// `f()` runs exactly once, when all are available, whatever the errors; `f(Status)` gets OK or the error of the failed
// value with the lowest index, so that it does not depend on timing. If all are available, it runs at once on this
// thread, and nothing is allocated; else on the thread that completes the last one, or, with an executor, always in a
// task. The caller keeps values that it passes as AsyncValuePtr alive until then. If the executor refuses, `f` is
// destroyed uncalled. An exception from `f` is reported. An empty std::function or a null function pointer is ignored.
// All this holds for events, too.
#ifndef PURLIN_RUN_WHEN_READY_H_
#define PURLIN_RUN_WHEN_READY_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/guard.h"
#include "purlin/internal/waiter.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// What the waiters of several values share: the last one runs `f`.
template <typename F>
struct LastOne {
  std::atomic<std::size_t> left;
  F f;
  void Arrive(std::size_t n) {
    // Acquire and release: the last one sees what all the others saw.
    if (left.fetch_sub(n, std::memory_order_acq_rel) != n) return;
    Guarded("waiter", [this] { std::invoke(std::move(f)); });
    delete this;
  }
};

/// Attaches `f` to the last of `values`. At least one is not available.
template <typename Values, typename F>
void RunAfterAll(const Values& values, std::size_t pending, F f) {
  if (pending == 1) {
    for (const auto& value : values) {
      if (value.IsUnavailable()) return value.AndThen(std::move(f));
    }
    return Guarded("waiter", [&] { std::invoke(std::move(f)); });  // It became available meanwhile.
  }
  std::size_t total = 1;  // For this loop, so that no waiter is last before it ends.
  for (const auto& value : values) {
    static_cast<void>(value);
    ++total;
  }
  auto* last = new LastOne<F>{{total}, std::move(f)};
  std::size_t arrived = 1;
  for (const auto& value : values) {
    if (value.IsAvailable()) {
      ++arrived;
    } else {
      value.AndThen([last] { last->Arrive(1); });
    }
  }
  last->Arrive(arrived);
}

/// Of values, of which some may be available.
template <typename Values, typename Closure>
void AttachToValues(const Values& values, Closure closure) {
  std::size_t pending = 0;
  for (const auto& value : values) pending += value.IsAvailable() ? 0 : 1;
  if constexpr (std::is_invocable_v<Closure>) {
    if (pending == 0) return Guarded("waiter", [&] { std::invoke(std::move(closure)); });
    RunAfterAll(values, pending, std::move(closure));
  } else {
    static_assert(std::is_invocable_v<Closure, Status>, "RunWhenReady calls f() or f(Status)");
    if (pending == 0) {
      Status error;
      for (const auto& value : values) error.Update(value.GetError());
      return Guarded("waiter", [&] { std::invoke(std::move(closure), std::move(error)); });
    }
    WhenAll(EventsOf(values)).OnReady([closure = std::move(closure)](const Status& status) mutable {
      std::invoke(std::move(closure), Status(status));
    });
  }
}

/// RunWhenReady without an executor; by a name that a closure of this namespace does not bring into doubt.
template <typename Values, typename F>
void AttachToAll(const Values& values, F&& f) {
  if (IsEmptyCallable(f)) return;
  if constexpr (std::is_convertible_v<const Values&, Span<const Event>>) {
    WhenAll(values).OnReady(std::forward<F>(f));
  } else if constexpr (!HasAsEvent<std::decay_t<decltype(*std::begin(values))>>::value) {
    WhenAll(EventsOf(values)).OnReady(std::forward<F>(f));
  } else {
    AttachToValues(values, std::decay_t<F>(std::forward<F>(f)));
  }
}

}  // namespace internal

/// See the top of this file. `values` is a range of AsyncValueRef, AsyncValuePtr or Event: a vector, an array, a Span.
template <typename Values, typename F>
void RunWhenReady(const Values& values, F&& f) {
  internal::AttachToAll(values, std::forward<F>(f));
}
/// See above.
template <typename Value, typename F>
void RunWhenReady(std::initializer_list<Value> values, F&& f) {
  internal::AttachToAll(values, std::forward<F>(f));
}
/// See above; `executor` outlives the completion of the values.
template <typename Values, typename F>
void RunWhenReady(const Values& values, Executor& executor, F&& f) {
  using Closure = std::decay_t<F>;
  if (internal::IsEmptyCallable(f)) return;
  if constexpr (std::is_invocable_v<Closure>) {
    internal::AttachToAll(values, [&executor, f = Closure(std::forward<F>(f))]() mutable {
      executor.Execute(Task(std::move(f), Label("RunWhenReady"))).IgnoreError();
    });
  } else {
    internal::AttachToAll(values, [&executor, f = Closure(std::forward<F>(f))](Status status) mutable {
      auto task = [f = std::move(f), status = std::move(status)]() mutable { std::invoke(std::move(f), status); };
      executor.Execute(Task(std::move(task), Label("RunWhenReady"))).IgnoreError();
    });
  }
}

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_RUN_WHEN_READY_H_
