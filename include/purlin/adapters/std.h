// Purlin's adapter for std::future, both ways.
//
// ```cpp
// purlin::Future<int> Count(purlin::Executor& elastic_pool) {
//   return purlin::adapters::FromStd(std::async([] { return 4; }), elastic_pool);
// }
// std::future<purlin::Status> Copied(const purlin::Event& copied) { return purlin::adapters::ToStd(copied); }
// ```
//
// Towards std, nothing blocks: the std::future becomes ready on the thread that completes Purlin's. From std, a thread
// must wait, because a std::future has no callbacks: a task of an executor waits, so pass an executor whose threads may
// block (ElasticPool).
//
// Errors are values on Purlin's side and in what ToStd gives. An exception in a std::future, that of a std::promise
// which was dropped unset among them, becomes kInternal with its text. That needs code that is compiled with
// exceptions: without them std::future::get ends the process when there is one, here as everywhere.
#ifndef PURLIN_ADAPTERS_STD_H_
#define PURLIN_ADAPTERS_STD_H_

#include <exception>
#include <future>
#include <string>
#include <type_traits>
#include <utility>

#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace adapters {

namespace internal {

/// What `future` holds, waited for. Two types, and a parameter of the templates below, so that linking code with and
/// without exceptions breaks no one-definition rule.
#if defined(__cpp_exceptions)
struct WaitingWithExceptions {
#else
struct WaitingWithoutExceptions {
#endif
  template <typename Result, typename StdFuture>
  static Result Get(StdFuture& future, SourceLocation location) {
    using T = decltype(future.get());
#if defined(__cpp_exceptions)
    try {
#endif
      if constexpr (std::is_void_v<T>) {
        future.get();
        return Result();
      } else {
        return Result(future.get());
      }
#if defined(__cpp_exceptions)
    } catch (const std::exception& e) {
      const char* const what = e.what();  // Some return null.
      return InternalError(std::string("a std::future holds an exception: ").append(what == nullptr ? "" : what),
                           location);
    } catch (...) {
      return InternalError("a std::future holds an exception that is no std::exception", location);
    }
#else
    static_cast<void>(location);
#endif
  }
};
#if defined(__cpp_exceptions)
using Waiting = WaitingWithExceptions;
#else
using Waiting = WaitingWithoutExceptions;
#endif

/// A StatusOr and a Status in a std::future are results as they are.
template <typename T>
struct FutureOfStd {
  using Value = std::decay_t<T>;
};
template <>
struct FutureOfStd<void> {
  using Value = void;
};
template <>
struct FutureOfStd<Status> {
  using Value = void;
};
template <typename T>
struct FutureOfStd<StatusOr<T>> {
  using Value = T;
};

template <typename Mode, typename StdFuture, typename R>
auto FromStd(StdFuture future, Executor& executor, SourceLocation location) {
  using Value = typename FutureOfStd<std::decay_t<R>>::Value;
  using Result = typename Future<Value>::Result;
  if (!future.valid()) {
    return Future<Value>(FailedPreconditionError("FromStd of a std::future without a state", location), location);
  }
  return MakeFutureOn<Value>(
      executor,
      [future = std::move(future), location]() mutable { return Mode::template Get<Result>(future, location); },
      Label("std::future"), location);
}

}  // namespace internal

/// A future of what `future` gets: of T, or of nothing for void. A StatusOr<T> or a Status in it is the result itself.
/// A task of `executor`, which outlives it, waits; a deferred std::async runs there. kFailedPrecondition: `future` has
/// no state. kInternal: it holds an exception. If the executor refuses or drops the task, its error, or kCancelled.
template <typename T, typename Mode = internal::Waiting>
auto FromStd(std::future<T> future, Executor& executor, SourceLocation location = SourceLocation::Current()) {
  return internal::FromStd<Mode, std::future<T>, T>(std::move(future), executor, location);
}
/// As above, of a copy.
template <typename T, typename Mode = internal::Waiting>
auto FromStd(std::shared_future<T> future, Executor& executor, SourceLocation location = SourceLocation::Current()) {
  return internal::FromStd<Mode, std::shared_future<T>, T>(std::move(future), executor, location);
}

/// A std::future of OK or the error of `event`. Its destructor does not block.
inline std::future<Status> ToStd(const Event& event) {
  std::promise<Status> promise;
  std::future<Status> future = promise.get_future();
  event.OnReady([promise = std::move(promise)](const Status& status) mutable { promise.set_value(status); });
  return future;
}
/// A std::future of the value or the error: of a StatusOr<T>, or of a Status for nothing. A value that can be copied
/// is; a move-only one is moved out of an rvalue future. Its destructor does not block.
template <typename T>
std::future<typename Future<T>::Result> ToStd(Future<T> future) {
  using Result = typename Future<T>::Result;
  std::promise<Result> promise;
  std::future<Result> made = promise.get_future();
  std::move(future).OnReady(
      [promise = std::move(promise)](Result result) mutable { promise.set_value(std::move(result)); });
  return made;
}

}  // namespace adapters
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ADAPTERS_STD_H_
