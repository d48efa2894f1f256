// Purlin: the side that makes a future ready.
//
// ```cpp
// purlin::Future<float> Norm(purlin::AsyncWorkRunner& pool) {
//   auto [promise, future] = purlin::MakePromise<float>("norm");
//   purlin::Status status = pool.Schedule([promise = std::move(promise)]() mutable { promise.Set(1.5F); });
//   if (!status.ok()) return status;  // the task, and the promise in it, have been destroyed
//   return future;
// }
// ```
//
// The first set wins; later ones return false and change nothing. A promise that is destroyed or assigned over unset
// completes its future with kInternal, naming label and place, so no completion is lost.
#ifndef PURLIN_PROMISE_H_
#define PURLIN_PROMISE_H_

#include <memory>
#include <type_traits>
#include <utility>

#include "purlin/async_value.h"
#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/async_value.h"
#include "purlin/internal/cell.h"
#include "purlin/internal/future.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

template <typename T = void>
class SharedPromise;

/// Makes one future ready. Move-only, one word.
template <typename T = void>
class [[nodiscard]] Promise final {
 public:
  /// T, or Chain for nothing.
  using Payload = internal::FuturePayload<T>;
  /// StatusOr<T>, or Status for nothing.
  using Result = typename internal::FutureResult<T>::Type;

  /// Empty: has no future, and its setters return false.
  Promise() noexcept = default;
  /// A new pending value, known by `label` and by the place of the caller.
  explicit Promise(Label label, SourceLocation location = SourceLocation::Current()) noexcept
      : value_(MakeUnconstructedAsyncValueRef<Payload>(label, location)) {}

  Promise(const Promise&) = delete;
  Promise& operator=(const Promise&) = delete;
  /// Leaves `other` empty.
  Promise(Promise&& other) noexcept : value_(std::move(other.value_)) {}
  /// As if this were destroyed first: an unset future completes with kInternal.
  Promise& operator=(Promise&& other) noexcept {
    Promise taken(std::move(other));
    std::swap(value_, taken.value_);
    return *this;
  }
  /// Completes an unset future with kInternal, naming it; waiters of the future run on this thread.
  ~Promise() {
    if (value_ && value_.IsUnavailable()) internal::EventAbandon(value_.header());
  }

  /// False once moved from.
  explicit operator bool() const noexcept { return static_cast<bool>(value_); }

  /// Makes the future ready with a value or an error; its waiters run on this thread before this returns. False, and
  /// nothing changes, if it was set before.
  bool Set(Result result) noexcept {
    if constexpr (std::is_void_v<T>) {
      return result.ok() ? value_.emplace() : value_.SetError(std::move(result));
    } else {
      return result.ok() ? value_.emplace(*std::move(result)) : value_.SetError(std::move(result).status());
    }
  }
  /// As above, with what converts to a value.
  template <typename U, typename = std::enable_if_t<!std::is_void_v<T> && std::is_convertible_v<U, Payload> &&
                                                    !std::is_convertible_v<U, Result>>>
  bool Set(U&& value) noexcept {
    return value_.emplace(std::forward<U>(value));
  }
  /// A Future<>: OK.
  bool Set() noexcept {
    static_assert(std::is_void_v<T>, "Set needs a value");
    return value_.emplace();
  }
  /// As Set, with a value that is constructed in place.
  template <typename... Args>
  bool Emplace(Args&&... args) noexcept {
    return value_.emplace(std::forward<Args>(args)...);
  }
  /// Makes the future follow `other`: a copy of its value, or what is moved out of a move-only one, or its error.
  /// Leaves this empty. If `other` waits for this one's future, that fails with kInternal, naming the cycle.
  void Forward(Future<T> other) && noexcept {
    if (value_.IsUnavailable() && other.IsValid() && !other.IsReady()) {
      const internal::StatusRep* cycle = internal::EventFollow(value_.header(), other.async_value().header());
      if (cycle != nullptr) {
        const Promise ended(std::move(*this));
        ended.value_.SetError(Status::FromRep(cycle));
        return;
      }
    }
    std::move(other).OnReady([promise = std::move(*this)](Result result) mutable { promise.Set(std::move(result)); });
  }

  /// Another future of the same value; invalid if this is empty. Only if T can be copied.
  Future<T> future() const noexcept {
    static_assert(Future<T>::kCopyable, "a move-only value has one future; see MakePromise");
    return Future<T>(value_);
  }
  /// True if there is no other reference to the value and no waiter. If there are others, they may change that at any
  /// time.
  [[nodiscard]] bool IsUniqueReference() const noexcept {
    return value_ && value_.NumRef() == 1 && !value_.HasWaiter();
  }
  /// A promise that can be copied. Leaves this empty.
  SharedPromise<T> ToShared() &&;

 private:
  template <typename U>
  friend std::pair<Promise<U>, Future<U>> MakePromise(Label label, SourceLocation location) noexcept;
  template <typename U>
  friend std::pair<Promise<U>, Future<U>> MakeGuardingPromise(Label label, SourceLocation location) noexcept;
  explicit Promise(AsyncValueRef<Payload> value) noexcept : value_(std::move(value)) {}
  AsyncValueRef<Payload> value_;
};

/// A promise that can be copied: the first set of all copies wins, without a lock, also from inside what a set runs.
/// When the last copy is destroyed unset, the future completes with kInternal.
template <typename T>
class [[nodiscard]] SharedPromise final {
 public:
  /// StatusOr<T>, or Status for nothing.
  using Result = typename Promise<T>::Result;

  /// Empty.
  SharedPromise() noexcept = default;
  /// Takes `promise` over.
  explicit SharedPromise(Promise<T> promise) : promise_(std::make_shared<Promise<T>>(std::move(promise))) {}

  /// See Promise::Set.
  bool Set(Result result) const noexcept { return promise_ != nullptr && promise_->Set(std::move(result)); }
  /// See Promise::Set.
  bool Set() const noexcept { return promise_ != nullptr && promise_->Set(); }
  /// See Promise::Emplace.
  template <typename... Args>
  bool Emplace(Args&&... args) const noexcept {
    return promise_ != nullptr && promise_->Emplace(std::forward<Args>(args)...);
  }
  /// See Promise::future.
  Future<T> future() const noexcept { return promise_ == nullptr ? Future<T>() : promise_->future(); }
  /// The promise that the copies share; null where this is empty. As of a std::shared_ptr, so that code which expects
  /// one may stay.
  Promise<T>* operator->() const noexcept { return promise_.get(); }
  /// See above; not of an empty one.
  Promise<T>& operator*() const noexcept { return *promise_; }
  /// Not empty.
  explicit operator bool() const noexcept { return promise_ != nullptr; }

 private:
  std::shared_ptr<Promise<T>> promise_;
};

template <typename T>
SharedPromise<T> Promise<T>::ToShared() && {
  return SharedPromise<T>(std::move(*this));
}

/// A promise and its future.
template <typename T = void>
std::pair<Promise<T>, Future<T>> MakePromise(Label label = Label("promise"),
                                             SourceLocation location = SourceLocation::Current()) noexcept {
  Promise<T> promise(label, location);
  Future<T> future(promise.value_);
  return {std::move(promise), std::move(future)};
}
/// As above, for a guarding future: one until which other threads may use memory, a stack or a thread that ends after
/// it. No watchdog poisons it (stall.h).
template <typename T = void>
std::pair<Promise<T>, Future<T>> MakeGuardingPromise(Label label = Label("promise"),
                                                     SourceLocation location = SourceLocation::Current()) noexcept {
  using Cell = internal::InlineCell<typename Promise<T>::Payload>;
  using Value = AsyncValueRef<typename Promise<T>::Payload>;
  Promise<T> promise(Value::Adopt(Cell::New(Cell::kFlags, label, location)));
  Future<T> future(promise.value_);
  return {std::move(promise), std::move(future)};
}
/// As MakePromise; waiters of the future run in tasks of `executor`, see Future::Detach.
template <typename T = void>
std::pair<Promise<T>, Future<T>> MakePromise(Executor& executor, Label label = Label("promise"),
                                             SourceLocation location = SourceLocation::Current()) noexcept {
  auto [promise, future] = MakePromise<T>(label, location);
  return {std::move(promise), std::move(future).Detach(executor, location)};
}
/// A shared promise and its future.
template <typename T = void>
std::pair<SharedPromise<T>, Future<T>> MakeSharedPromise(Label label = Label("promise"),
                                                         SourceLocation location = SourceLocation::Current()) {
  auto [promise, future] = MakePromise<T>(label, location);
  return {std::move(promise).ToShared(), std::move(future)};
}

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_PROMISE_H_
