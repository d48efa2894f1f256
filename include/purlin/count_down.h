// Purlin: a value that becomes available when a count has reached zero.
//
// ```cpp
// purlin::AsyncValueRef<purlin::Chain> RunShards(purlin::AsyncWorkRunner& pool, std::size_t shards) {
//   purlin::CountDownAsyncValueRef<purlin::Chain> all(shards);
//   for (std::size_t shard = 0; shard < shards; ++shard) {
//     purlin::Status refused = pool.Schedule([all]() mutable { all.CountDown(); });
//     if (!refused.ok()) all.CountDown(refused);
//   }
//   return all.AsRef();
// }
// ```
//
// States: counting, then complete; the count never goes below zero. Copies share the counter. Errors are kept in a
// lock-free list in their order in time, and the call that completes the value merges them by the policy
// (error_policy.h). The value completes when the count is zero, or, with fail_fast, with the first error. If the last
// copy is dropped before that, the value fails with kInternal.
#ifndef PURLIN_COUNT_DOWN_H_
#define PURLIN_COUNT_DOWN_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/error_policy.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// How errors are counted.
struct CountDownOptions {
  /// Which error the value fails with. Here the default is the first in time, because callers that count need no index.
  /// With a number that is no policy, the value has failed from the beginning.
  ErrorPolicy policy = ErrorPolicy::kFirstInTime;
  /// The first error completes the value; the others are still counted, and change nothing.
  bool fail_fast = false;
};

namespace internal {

/// The errors of a count-down, newest first. Pushed by any thread; read and freed by one, at the end.
class ErrorList final {
 public:
  ErrorList() noexcept = default;
  ErrorList(const ErrorList&) = delete;
  ErrorList& operator=(const ErrorList&) = delete;
  ~ErrorList() {
    for (Node* node = newest_.load(std::memory_order_relaxed); node != nullptr;) delete std::exchange(node, node->next);
  }

  void Push(Status error, std::size_t index, std::size_t members) {
    auto* node = new Node{nullptr, std::move(error), index, members};
    node->next = newest_.load(std::memory_order_relaxed);
    // Release publishes the node to Choose().
    while (!newest_.compare_exchange_weak(node->next, node, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

  bool HasAny() const noexcept { return newest_.load(std::memory_order_acquire) != nullptr; }

  /// The error of a count-down of `total` things; OK if there is none.
  Status Merge(ErrorPolicy policy, std::size_t total) const {
    const Node* node = newest_.load(std::memory_order_acquire);
    if (node == nullptr) return Status();
    std::vector<const Node*> newest_first;
    for (; node != nullptr; node = node->next) newest_first.push_back(node);
    JoinErrors errors;
    for (auto at = newest_first.rbegin(); at != newest_first.rend(); ++at) {
      errors.Add((*at)->error, (*at)->index, (*at)->members);
    }
    return errors.Merge(policy, total);
  }

 private:
  struct Node {
    Node* next;
    Status error;
    std::size_t index;
    std::size_t members;
  };
  std::atomic<Node*> newest_{nullptr};
};

/// What the copies of a CountDownAsyncValueRef share.
template <typename T>
struct CountDownState {
  CountDownState(AsyncValueRef<T> shown, std::size_t count, CountDownOptions how) noexcept
      : value(std::move(shown)), total(count), left(count), options(how) {}
  CountDownState(const CountDownState&) = delete;
  CountDownState& operator=(const CountDownState&) = delete;
  ~CountDownState() {
    const std::size_t missing = left.load(std::memory_order_acquire);
    if (missing == 0 || value.IsAvailable()) return;
    value.SetError(InternalError("a count-down was dropped with " + std::to_string(missing) + " left to count"));
  }

  AsyncValueRef<T> value;
  const std::size_t total;
  std::atomic<std::size_t> left;
  ErrorList errors;
  CountDownOptions options;
};

}  // namespace internal

/// See the top of this file. Copies share the counter; safe to use from any thread, one copy by one writer.
template <typename T>
class CountDownAsyncValueRef final {
 public:
  /// Null: counts nothing, CountDown returns false.
  CountDownAsyncValueRef() noexcept = default;
  /// Shows a default-constructed T after `count` calls of CountDown; at once if `count` is 0.
  explicit CountDownAsyncValueRef(std::size_t count, CountDownOptions options = {}, Label label = Label(),
                                  SourceLocation location = SourceLocation::Current()) noexcept
      : CountDownAsyncValueRef(MakeConstructedAsyncValueRef<T>(Named(label, location)), count, options) {}
  /// Shows a T that is constructed out of `args` now. `count` comes first, so that no number is taken for a null value.
  template <typename Arg, typename... Args,
            typename = std::enable_if_t<!std::is_same_v<std::decay_t<Arg>, CountDownOptions>>>
  CountDownAsyncValueRef(std::size_t count, Arg&& arg, Args&&... args) noexcept
      : CountDownAsyncValueRef(
            MakeConstructedAsyncValueRef<T>(Named(Label()), std::forward<Arg>(arg), std::forward<Args>(args)...),
            count) {}
  /// Completes `value` after `count` calls. A payload that is not constructed by then is default-constructed; where T
  /// cannot be, the value fails with kFailedPrecondition.
  CountDownAsyncValueRef(AsyncValueRef<T> value, std::size_t count, CountDownOptions options = {}) noexcept
      : state_(MakeAvailableAsyncValueRef<internal::CountDownState<T>>(Named(Label("count-down")), std::move(value),
                                                                       count, options)) {
    if (Status unknown = internal::CheckErrorPolicy(options.policy, SourceLocation()); !unknown.ok()) {
      state_->value.SetError(std::move(unknown));
    } else if (count == 0) {
      Complete(Status());
    }
  }

  /// None: a null value has nothing to complete.
  template <typename Null, typename = std::enable_if_t<std::is_null_pointer_v<std::decay_t<Null>>>>
  CountDownAsyncValueRef(Null&& null, std::size_t count, CountDownOptions options = {}) = delete;

  /// Counts `n` things, which failed if `status` is not OK. `index` is their index, by default none. True
  /// if this call completed the value, whose waiters have then run on this thread. False also if fewer than `n` were
  /// left: then nothing is counted, and `status` is not used.
  bool CountDown(std::size_t n = 1, Status status = Status(), std::size_t index = internal::JoinErrors::kNoIndex) {
    if (!state_ || n == 0) return false;
    internal::CountDownState<T>& state = *state_;
    std::size_t left = state.left.load(std::memory_order_relaxed);
    if (left < n) return false;
    if (!status.ok()) {
      // Before counting, so that a thread that reaches zero meanwhile finds it.
      state.errors.Push(status, index, n);
      if (state.options.fail_fast) return CountFailFast(n, std::move(status));
    }
    // Acquire and release: the thread that reaches zero sees what all other threads did before they counted.
    while (!state.left.compare_exchange_weak(left, left - n, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      if (left < n) return false;
    }
    const ErrorPolicy policy = state.options.fail_fast ? ErrorPolicy::kFirstInTime : state.options.policy;
    return left == n && Complete(state.errors.Merge(policy, state.total));
  }
  /// Counts one thing, which failed if `status` is not OK.
  bool CountDown(Status status) { return CountDown(1, std::move(status)); }

  /// How many are left to count. Other threads may change that at any time.
  [[nodiscard]] std::size_t left() const noexcept { return state_ ? state_->left.load(std::memory_order_acquire) : 0; }
  /// As left().
  [[nodiscard]] std::size_t count() const noexcept { return left(); }
  /// True once an error has been counted, whether or not the value has failed yet.
  [[nodiscard]] bool is_error() const noexcept {
    return state_ && (state_->errors.HasAny() || state_->value.IsError());
  }
  /// The value.
  [[nodiscard]] AsyncValueRef<T> AsRef() const noexcept { return state_ ? state_->value : AsyncValueRef<T>(); }
  /// The value, borrowed from this.
  [[nodiscard]] AsyncValuePtr<T> AsPtr() const noexcept { return state_ ? state_->value.AsPtr() : AsyncValuePtr<T>(); }
  /// Not null.
  explicit operator bool() const noexcept { return static_cast<bool>(state_); }

 private:
  bool CountFailFast(std::size_t n, Status error) {
    // Completing may run a waiter that drops this object.
    const AsyncValueRef<internal::CountDownState<T>> state = state_;
    std::size_t left = state->left.load(std::memory_order_relaxed);
    do {
      if (left < n) return false;
    } while (!state->left.compare_exchange_weak(left, left - n, std::memory_order_acq_rel, std::memory_order_relaxed));
    return state->value.SetError(std::move(error));
  }
  bool Complete(Status error) {
    // Completing may run a waiter that drops this object, and with it the last reference that it holds.
    const AsyncValueRef<T> value = state_->value;
    if (!error.ok()) return value.SetError(std::move(error));
    if (value.SetStateConcrete()) return true;
    if (value.IsAvailable()) return false;
    if constexpr (std::is_default_constructible_v<T>) {
      return value.emplace();
    } else {
      return value.SetError(FailedPreconditionError("a count-down ended before the payload was constructed"));
    }
  }

  AsyncValueRef<internal::CountDownState<T>> state_;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_COUNT_DOWN_H_
