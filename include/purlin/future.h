// Purlin: the result of work that goes on elsewhere.
//
// ```cpp
// purlin::Status Run(purlin::Executor& pool) {
//   const purlin::Future<int> count = purlin::MakeFutureOn(pool, [] { return 4; });
//   const purlin::Future<float> share = count.Map([](int n) { return 1.0F / static_cast<float>(n); });
//   const purlin::StatusOr<float> result = share.Await();  // blocks; the value, or the error of either step
//   return result.status();
// }
// ```
//
// A Future<T> ends in a T or in an error; a Future<> ends in OK or in an error. It is a reference to an asynchronous
// value (async_value.h), so all that is said there of threads, order, nesting, memory order and the last reference
// holds here. A future can be copied if T can; a future of a move-only T has one owner, which may take the value out
// (&& members). Promises are in promise.h, joins in join_futures.h.
//
// A default-constructed or moved-from future is invalid: it counts as one that failed with kFailedPrecondition.
#ifndef PURLIN_FUTURE_H_
#define PURLIN_FUTURE_H_

#include <chrono>
#include <string>
#include <type_traits>
#include <utility>

#include "purlin/async_value.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/async_value.h"
#include "purlin/internal/async_value_map.h"
#include "purlin/internal/cell.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/future.h"
#include "purlin/internal/owed_task.h"
#include "purlin/internal/waiter.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

namespace internal {

/// Copies where T can be copied.
template <typename T, bool kCopyable = IsCopyable<T>::value>
struct FutureValue {
  AsyncValueRef<FuturePayload<T>> value;
};
template <typename T>
struct FutureValue<T, false> {
  FutureValue() = default;
  explicit FutureValue(AsyncValueRef<FuturePayload<T>> from) noexcept : value(std::move(from)) {}
  FutureValue(const FutureValue&) = delete;
  FutureValue& operator=(const FutureValue&) = delete;
  FutureValue(FutureValue&&) noexcept = default;
  FutureValue& operator=(FutureValue&&) noexcept = default;
  ~FutureValue() = default;
  AsyncValueRef<FuturePayload<T>> value;
};

}  // namespace internal

/// See the top of this file. One word.
template <typename T>
class [[nodiscard]] Future final {
 public:
  /// T, or Chain for nothing.
  using Payload = internal::FuturePayload<T>;
  /// StatusOr<T>, or Status for nothing.
  using Result = typename internal::FutureResult<T>::Type;
  /// Whether this future may be copied.
  static constexpr bool kCopyable = internal::IsCopyable<T>::value;
  /// What Await() of a future that is kept answers: a Result, or one that shows a move-only value.
  using Seen = std::conditional_t<kCopyable, Result, const internal::ShownStatusOr<Payload>>;

  /// Invalid.
  Future() noexcept = default;
  /// Ready, with `value` or an error. A Future<> that is OK allocates nothing; an OK Status for a T is a bug of the
  /// caller and becomes kInternal.
  Future(Result result, SourceLocation location = SourceLocation::Current()) noexcept  // NOLINT
      : rep_{MakeReady(std::move(result), location)} {}
  /// Ready, with a value.
  template <typename U,
            typename = std::enable_if_t<
                std::is_convertible_v<U, Payload> && !std::is_void_v<T> && !std::is_same_v<std::decay_t<U>, Future> &&
                !std::is_same_v<std::decay_t<U>, Result> && !std::is_same_v<std::decay_t<U>, Status>>>
  Future(U&& value) noexcept  // NOLINT(google-explicit-constructor)
      : rep_{MakeAvailableAsyncValueRef<Payload>(Named(Label("future")), std::forward<U>(value))} {}
  /// Ready when `event` is, in error if it fails.
  template <typename E, typename = std::enable_if_t<std::is_same_v<std::decay_t<E>, Event> && std::is_void_v<T>>,
            typename = void, typename = void>
  Future(E&& event, SourceLocation location = SourceLocation::Current()) noexcept;  // NOLINT
  /// Ready, in error.
  template <typename S, typename = std::enable_if_t<std::is_same_v<S, Status> && !std::is_void_v<T>>, typename = void>
  Future(S error, SourceLocation location = SourceLocation::Current()) noexcept  // NOLINT(google-explicit-constructor)
      : rep_{AsyncValueRef<Payload>(std::move(error), location)} {}
  /// The same value as a future. For a move-only T, `value` must be its only reference that is used.
  explicit Future(AsyncValueRef<Payload> value) noexcept : rep_{std::move(value)} {}

  /// False for a default-constructed or moved-from future.
  [[nodiscard]] bool IsValid() const noexcept { return static_cast<bool>(rep_.value); }
  /// True once there is a value or an error. One load; never blocks.
  [[nodiscard]] bool IsReady() const noexcept { return rep_.value.IsAvailable(); }
  /// As IsReady().
  [[nodiscard]] bool IsKnownReady() const noexcept { return IsReady(); }
  /// The same cell as an event.
  [[nodiscard]] Event AsEvent() const noexcept { return rep_.value.AsEvent(); }
  /// The value, borrowed.
  [[nodiscard]] AsyncValuePtr<Payload> async_value() const noexcept { return rep_.value.AsPtr(); }
  /// For Purlin's own files: gives up the value.
  [[nodiscard]] AsyncValueRef<Payload> ReleaseValue() && noexcept { return std::move(rep_.value); }

  /// Blocks until the future is ready; a copy of the value, or the error. See Event::Wait. Of a move-only value, no
  /// copy: a `const StatusOr<T>` that shows it, good while a future of it lives, and stays where it is.
  Seen Await() const& { return Get<false>(rep_.value.Wait()); }
  /// As above. A move-only value is moved out, and the future is invalid afterwards.
  Result Await() && {
    Future taken = std::move(*this);
    return taken.template Get<!kCopyable>(taken.rep_.value.Wait());
  }
  /// As Await(), for at most `timeout`; then kDeadlineExceeded, and the future stays pending.
  Seen AwaitFor(std::chrono::nanoseconds timeout) const { return Get<false>(rep_.value.WaitFor(timeout)); }
  /// Blocks until the future is ready; a pointer to the value, good while a future of it lives.
  template <typename U = T>
  StatusOr<const U*> AwaitPointer() const {
    Status status = rep_.value.Wait();
    if (!status.ok()) return status;
    return StatusOr<const U*>(&rep_.value.get());
  }

  /// Calls `f` exactly once when the future is ready: at once, on this thread, if it is, else on the thread that
  /// completes it. For a T that can be copied `f(StatusOr<T>)`; without a copy `f(StatusOr<const T*>)`, or, of a
  /// move-only T, `f(const StatusOr<T>&)`, good during the call; for a Future<> `f(Status)`. It must not block for
  /// long. An empty std::function or a null pointer is ignored.
  template <typename F>
  void OnReady(F&& f) const& {
    AttachOnReady<false>(std::forward<F>(f));
  }
  /// As above; a move-only value is moved into `f`'s StatusOr<T>.
  template <typename F>
  void OnReady(F&& f) && {
    Future taken = std::move(*this);
    taken.template AttachOnReady<!kCopyable>(std::forward<F>(f));
  }
  /// As above, in a task of `executor`, always. If the executor refuses, `f` is destroyed uncalled, and promises in it
  /// complete with an error. `executor` outlives the future's completion.
  template <typename F>
  void OnReady(Executor& executor, F&& f) const& {
    AttachOnReadyOn<false>(executor, std::forward<F>(f));
  }
  /// As above.
  template <typename F>
  void OnReady(Executor& executor, F&& f) && {
    Future taken = std::move(*this);
    taken.template AttachOnReadyOn<!kCopyable>(executor, std::forward<F>(f));
  }

  // Mapping: a new future out of this one. ---------------------------------------------------------------------------
  //
  // `f` is called with `const T&` (a Future<>: with nothing; the && forms of a move-only T: with `T&&`): at once if the
  // future is ready, else on the thread that completes it; with an executor always in a task. Its result decides the
  // new future: nothing or a Status gives a Future<>, a StatusOr<U> or a U gives a Future<U>, a Future<U> is the new
  // future itself. An explicit R gives a Future<R>, whose value is made in place of the result of `f`; for an `f` that
  // returns a Future<U>, Map<U> gives that future, and Map<Future<U>> a future of it. An error skips `f`, but not the
  // executor: a waiter that is attached to the new future while it is pending never runs on the thread that completes
  // this one. If no reference to the new future is left when this one completes, `f` is not called (MapAlways calls it
  // all the same) and an error makes no task. If `f` throws, the future fails with kInternal; if the executor refuses
  // or drops the task, with the executor's error, or with kCancelled; if `f` is an empty std::function or a null
  // pointer, at once with kInvalidArgument.

  /// See above.
  template <typename R = void, typename F>
  auto Map(F&& f, Label label = Label("Map"), SourceLocation location = SourceLocation::Current()) const& {
    return Derive<false, false, R>(nullptr, std::forward<F>(f), label, location);
  }
  /// See above.
  template <typename R = void, typename F>
  auto Map(F&& f, Label label = Label("Map"), SourceLocation location = SourceLocation::Current()) && {
    Future taken = std::move(*this);
    return taken.template Derive<!kCopyable, false, R>(nullptr, std::forward<F>(f), label, location);
  }
  /// See above.
  template <typename R = void, typename F>
  auto Map(Executor& executor, F&& f, Label label = Label("Map"),
           SourceLocation location = SourceLocation::Current()) const& {
    return Derive<false, false, R>(&executor, std::forward<F>(f), label, location);
  }
  /// See above.
  template <typename R = void, typename F>
  auto Map(Executor& executor, F&& f, Label label = Label("Map"),
           SourceLocation location = SourceLocation::Current()) && {
    Future taken = std::move(*this);
    return taken.template Derive<!kCopyable, false, R>(&executor, std::forward<F>(f), label, location);
  }
  /// As Map, for an `f` whose effects are needed even if no reference to the result is left.
  template <typename R = void, typename F>
  auto MapAlways(F&& f, Label label = Label("Map"), SourceLocation location = SourceLocation::Current()) const& {
    return Derive<false, true, R>(nullptr, std::forward<F>(f), label, location);
  }
  /// As above, in a task.
  template <typename R = void, typename F>
  auto MapAlways(Executor& executor, F&& f, Label label = Label("Map"),
                 SourceLocation location = SourceLocation::Current()) const& {
    return Derive<false, true, R>(&executor, std::forward<F>(f), label, location);
  }
  /// A future of `value`, or this one's error.
  template <typename U>
  auto MapTo(U value, SourceLocation location = SourceLocation::Current()) const {
    if constexpr (std::is_void_v<T>) {
      return Map([value = std::move(value)]() mutable { return std::move(value); }, Label("MapTo"), location);
    } else {
      return Map([value = std::move(value)](const T&) mutable { return std::move(value); }, Label("MapTo"), location);
    }
  }
  /// This future without its value.
  Future<> GetReadyFuture(SourceLocation location = SourceLocation::Current()) const {
    if constexpr (std::is_void_v<T>) {
      return *this;
    } else {
      if (IsReady()) return Future<>(rep_.value.GetError(), location);
      return MapAlways([](const T&) {}, Label("GetReadyFuture"), location);
    }
  }
  /// For a `Future<Future<U>>`: a `Future<U>`.
  auto Flatten(SourceLocation location = SourceLocation::Current()) const& {
    return Map([](const T& inner) { return inner; }, Label("Flatten"), location);
  }
  /// As above; an inner future that is move-only is moved out.
  auto Flatten(SourceLocation location = SourceLocation::Current()) && {
    Future taken = std::move(*this);
    if constexpr (kCopyable) {
      return taken.Map([](const T& inner) { return inner; }, Label("Flatten"), location);
    } else {
      return std::move(taken).Map([](T&& inner) { return std::move(inner); }, Label("Flatten"), location);
    }
  }

  /// A future of the same value that becomes ready in a task of `executor`, so that waiters that are attached to it
  /// while it is pending run there and not on the thread that completes this one. If this is ready, this. If no
  /// reference to it is left when this one completes, no task is made.
  Future Detach(Executor& executor, SourceLocation location = SourceLocation::Current()) const& {
    static_assert(kCopyable, "std::move a future of a move-only value");
    return Detached(executor, location);
  }
  /// As above; this becomes invalid.
  Future Detach(Executor& executor, SourceLocation location = SourceLocation::Current()) && {
    Future taken = std::move(*this);
    return taken.Detached(executor, location);
  }

 private:
  static AsyncValueRef<Payload> MakeReady(Result&& result, SourceLocation location) noexcept {
    if constexpr (std::is_void_v<T>) {
      if (result.ok()) return AsyncValueRef<Chain>::Adopt(internal::ReadyChainCell());
      return AsyncValueRef<Chain>(std::move(result), location);
    } else {
      if (!result.ok()) return AsyncValueRef<Payload>(std::move(result).status(), location);
      return MakeAvailableAsyncValueRef<Payload>(Named(Label("future"), location), *std::move(result));
    }
  }

  template <bool kMove>
  std::conditional_t<kMove, Result, Seen> Get(Status status) const {
    if constexpr (std::is_void_v<T>) {
      return status;
    } else if constexpr (kMove) {
      if (!status.ok()) return status;
      return Result(std::move(rep_.value.get()));
    } else if constexpr (kCopyable) {
      if (!status.ok()) return status;
      return Result(static_cast<const T&>(rep_.value.get()));
    } else {
      if (!status.ok()) return status;
      return Seen(rep_.value.get());
    }
  }

  template <bool kMove, typename F>
  void AttachOnReady(F&& f) const {
    if (internal::IsEmptyCallable(f)) return;
    internal::EventHeader* source = rep_.value.header();
    internal::Attach(source, internal::OnReadyWaiter<T, kMove, std::decay_t<F>>{source, std::forward<F>(f)});
  }
  template <bool kMove, typename F>
  void AttachOnReadyOn(Executor& executor, F&& f) const {
    using Closure = std::decay_t<F>;
    if (internal::IsEmptyCallable(f)) return;
    internal::EventHeader* source = rep_.value.header();
    if (IsReady()) return internal::SubmitOnReady<T, kMove, Closure>(executor, source, std::forward<F>(f));
    internal::Attach(source, internal::OnReadySubmitter<T, kMove, Closure>{&executor, source, std::forward<F>(f)});
  }

  template <bool kMove, bool kAlways, typename R, typename F>
  auto Derive(Executor* executor, F&& f, Label label, SourceLocation location) const {
    using Caller = internal::FutureCaller<T, std::decay_t<F>, kMove>;
    using Returned = std::decay_t<decltype(std::declval<Caller&>()(std::declval<Payload&>()))>;
    const bool is_empty = internal::IsEmptyCallable(f);
    Caller caller{std::forward<F>(f)};
    if constexpr (internal::FutureTraits<Returned>::value && !std::is_same_v<R, Returned>) {
      using Inner = typename internal::FutureTraits<Returned>::Payload;
      using Flat = internal::FlatCaller<Caller>;
      static_assert(std::is_void_v<R> || std::is_same_v<R, Inner>,
                    "a function that returns a Future<U> gives a Future<U>, or, by Map<Future<U>>, a future of that");
      return Made<kAlways, Inner, internal::IndirectCell<Inner>>(
          is_empty, executor, internal::FlatMapBody<Payload, Inner, Flat>{Flat{std::move(caller)}}, label, location);
    } else if constexpr (internal::StatusOrTraits<Returned>::kIs) {
      using Value = typename internal::StatusOrTraits<Returned>::Value;
      using Made_ = std::conditional_t<std::is_void_v<R>, Value, R>;
      return Made<kAlways, Made_, internal::InlineCell<Made_>>(
          is_empty, executor, internal::TryMapBody<Payload, Made_, Caller>{std::move(caller)}, label, location);
    } else {
      using Value = internal::PayloadFor<Returned>;
      using Made_ = std::conditional_t<std::is_void_v<R>, Value, R>;
      return Made<kAlways, Made_, internal::InlineCell<Made_>>(
          is_empty, executor, internal::MapBody<Payload, Made_, Caller>{std::move(caller)}, label, location);
    }
  }
  template <bool kAlways, typename P, typename Cell, typename Body>
  internal::FutureOf<P> Made(bool is_empty, Executor* executor, Body body, Label label, SourceLocation location) const {
    internal::EventHeader* source = rep_.value.header();
    if (is_empty) {
      return internal::FutureOf<P>(AsyncValueRef<P>(
          internal::EmptyCallableError(std::string("future '") + label.c_str() + "'", location), location));
    }
    if (source == nullptr) return internal::FutureOf<P>(AsyncValueRef<P>(internal::NullValueError(), location));
    return internal::FutureOf<P>(AsyncValueRef<P>::Adopt(
        internal::DeriveFuture<kAlways, Cell>(source, executor, std::move(body), label, location)));
  }

  Future Detached(Executor& executor, SourceLocation location) const {
    internal::EventHeader* source = rep_.value.header();
    if (IsReady()) return Future(rep_.value.CopyRef());
    using Cell = internal::IndirectCell<Payload>;
    internal::EventHeader* result = Cell::New(Cell::kFlags, Label("Detach"), location);
    internal::EventRetain(result);
    internal::BeginDebt(result, source);
    internal::Attach(source, internal::DetachWaiter{&executor, source, Event::Adopt(result)});
    return Future(AsyncValueRef<Payload>::Adopt(result));
  }

  internal::FutureValue<T> rep_;
};

static_assert(sizeof(Future<>) == sizeof(void*) && sizeof(Future<int>) == sizeof(void*), "a future is one word");

/// A future of what `f()` returns, called in a task of `executor`; see Future::Map for what it may return. If the
/// executor refuses or drops the task, the future fails with the executor's error, or with kCancelled; if `f` is empty,
/// with kInvalidArgument.
template <typename R = void, typename F>
auto MakeFutureOn(Executor& executor, F&& f, Label label = Label("MakeFutureOn"),
                  SourceLocation location = SourceLocation::Current()) {
  return Future<>(OkStatus()).template MapAlways<R>(executor, std::forward<F>(f), label, location);
}

/// A future that is ready when `event` is, and fails if that does.
inline Future<> MakeFutureWhenReady(const Event& event, SourceLocation location = SourceLocation::Current()) noexcept {
  if (event.IsReady()) return Future<>(event.error(), location);
  using Cell = internal::InlineCell<Chain>;
  internal::EventHeader* result = Cell::New(Cell::kFlags, Label("MakeFutureWhenReady"), location);
  internal::EventRetain(result);
  internal::BeginDebt(result, event.header());
  event.OnReady([result = Event::Adopt(result)](const Status& status) {
    if (!status.ok()) {
      static_cast<void>(internal::FailValue(result.header(), status));
    } else {
      internal::EmplaceFrom<Chain>(result.header(), [] { return Chain{}; });
    }
  });
  return Future<>(AsyncValueRef<Chain>::Adopt(result));
}

template <typename T>
template <typename E, typename, typename, typename>
Future<T>::Future(E&& event, SourceLocation location) noexcept
    : Future(MakeFutureWhenReady(static_cast<const Event&>(event), location)) {}

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_FUTURE_H_
