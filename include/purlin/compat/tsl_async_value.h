// Purlin: tsl's references to asynchronous values whose type is not in the reference: RCReference<AsyncValue> and
// AsyncValue*.
//
// ```cpp
// #include "purlin/compat/tsl.h"
// namespace tsl = purlin::compat::tsl;
//
// tsl::AsyncValueRef<int> count = tsl::MakeUnconstructedAsyncValueRef<int>();
// tsl::RCReference<tsl::AsyncValue> erased = count.CopyRCRef();
// erased->emplace<int>(4);
// const int four = count.GetAsyncValue()->get<int>();
// ```
//
// The references with a type are Purlin's own (async_value.h), and so are values, waiters and errors: a reference may
// lose its type here and get it back there.
#ifndef PURLIN_COMPAT_TSL_ASYNC_VALUE_H_
#define PURLIN_COMPAT_TSL_ASYNC_VALUE_H_

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "purlin/async_value.h"
#include "purlin/async_value_cast.h"
#include "purlin/async_value_verbs.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/async_value.h"
#include "purlin/internal/cell.h"
#include "purlin/run_when_ready.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace compat {
namespace tsl {

/// What holds one of the references that a T counts by `AddRef()` and `DropRef()`.
template <typename T>
class RCReference final {
 public:
  /// Null.
  RCReference() noexcept = default;
  /// Null.
  RCReference(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor)
  /// Another reference.
  RCReference(const RCReference& other) noexcept : pointer_(other.pointer_) {
    if (pointer_ != nullptr) pointer_->AddRef();
  }
  /// Leaves `other` null.
  RCReference(RCReference&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  /// Of a base class.
  template <typename U, typename = std::enable_if_t<std::is_base_of_v<T, U> && !std::is_same_v<T, U>>>
  RCReference(RCReference<U> other) noexcept : pointer_(other.release()) {}  // NOLINT(google-explicit-constructor)
  /// Of a value whose type is forgotten, taken.
  template <typename U, typename V = T, typename = decltype(V::From(std::declval<AsyncValueRef<U>>().header()))>
  RCReference(AsyncValueRef<U>&& value) noexcept  // NOLINT(google-explicit-constructor)
      : pointer_(V::From(value.release().header())) {}
  /// See the constructors.
  RCReference& operator=(const RCReference& other) noexcept {
    RCReference copy(other);
    swap(copy);
    return *this;
  }
  /// See the constructors.
  RCReference& operator=(RCReference&& other) noexcept {
    RCReference taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~RCReference() { reset(); }

  /// Drops the reference, and takes that of `pointer`.
  void reset(T* pointer = nullptr) noexcept {
    if (T* old = std::exchange(pointer_, pointer); old != nullptr) old->DropRef();
  }
  /// Gives the reference up.
  [[nodiscard]] T* release() noexcept { return std::exchange(pointer_, nullptr); }
  /// What is referred to; null for null.
  T* get() const noexcept { return pointer_; }
  /// See get(); not of null.
  T& operator*() const noexcept {
    assert(pointer_ != nullptr && "a null RCReference");
    return *pointer_;
  }
  /// See get(); not of null.
  T* operator->() const noexcept {
    assert(pointer_ != nullptr && "a null RCReference");
    return pointer_;
  }
  /// Another reference.
  [[nodiscard]] RCReference CopyRef() const noexcept { return *this; }
  /// Not null.
  explicit operator bool() const noexcept { return pointer_ != nullptr; }
  /// Exchanges the references.
  void swap(RCReference& other) noexcept { std::swap(pointer_, other.pointer_); }
  /// See above.
  friend void swap(RCReference& a, RCReference& b) noexcept { a.swap(b); }
  /// The same object.
  friend bool operator==(const RCReference& a, const RCReference& b) noexcept { return a.pointer_ == b.pointer_; }
  /// Another object.
  friend bool operator!=(const RCReference& a, const RCReference& b) noexcept { return a.pointer_ != b.pointer_; }

 private:
  T* pointer_ = nullptr;
};

/// Takes over a reference that the caller has to `pointer`.
template <typename T>
RCReference<T> TakeRef(T* pointer) noexcept {
  RCReference<T> ref;
  ref.reset(pointer);
  return ref;
}
/// One more reference to `pointer`, which is not null.
template <typename T>
RCReference<T> FormRef(T* pointer) noexcept {
  pointer->AddRef();
  return TakeRef(pointer);
}
/// A new T, made of `args`, with its first reference.
template <typename T, typename... Args>
RCReference<T> MakeRef(Args&&... args) {
  return TakeRef(new T(std::forward<Args>(args)...));
}

/// Counts references to an `Object`, which derives from this and may have a Destroy() of its own.
template <typename Object>
class ReferenceCounted {
 public:
  /// One reference, its maker's.
  ReferenceCounted() noexcept = default;
  /// As many as are said.
  explicit ReferenceCounted(std::uint32_t references) noexcept : references_(references) {}
  ReferenceCounted(const ReferenceCounted&) = delete;
  ReferenceCounted& operator=(const ReferenceCounted&) = delete;
  /// One more.
  void AddRef() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  /// One less; the last one destroys the object.
  void DropRef() {
    // Acquire and release: the last one sees what all the others did to the object.
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) static_cast<Object*>(this)->Destroy();
  }
  /// How many there are. Other threads may change that at any time.
  std::uint32_t NumRef() const noexcept { return references_.load(std::memory_order_acquire); }
  /// Whether there is one.
  bool IsUnique() const noexcept { return NumRef() == 1; }

 protected:
  ~ReferenceCounted() = default;
  /// Deletes the object.
  void Destroy() { delete static_cast<Object*>(this); }

 private:
  std::atomic<std::uint32_t> references_{1};
};

/// A value whose type the caller says at each use. An address: no object of this class is ever made.
class AsyncValue {
 public:
  AsyncValue() = delete;
  AsyncValue(const AsyncValue&) = delete;
  AsyncValue& operator=(const AsyncValue&) = delete;

  /// For Purlin's own files: the value of a cell.
  static AsyncValue* From(::purlin::internal::EventHeader* header) noexcept {
    return reinterpret_cast<AsyncValue*>(header);
  }
  /// For Purlin's own files: the cell.
  ::purlin::internal::EventHeader* header() const noexcept {
    return reinterpret_cast<::purlin::internal::EventHeader*>(const_cast<AsyncValue*>(this));
  }

  /// See AsyncValueVerbs, as for all that is not explained here.
  bool IsAvailable() const noexcept { return As<Chain>().IsAvailable(); }
  /// See above.
  bool IsUnavailable() const noexcept { return As<Chain>().IsUnavailable(); }
  /// See above.
  bool IsUnconstructed() const noexcept { return As<Chain>().IsUnconstructed(); }
  /// See above.
  bool IsConstructed() const noexcept { return As<Chain>().IsConstructed(); }
  /// See above.
  bool IsConcrete() const noexcept { return As<Chain>().IsConcrete(); }
  /// See above.
  bool IsError() const noexcept { return As<Chain>().IsError(); }
  /// See above.
  AsyncValueState state() const noexcept { return As<Chain>().state(); }
  /// Whether this shows another value, or will.
  bool IsIndirect() const noexcept {
    return (::purlin::internal::FlagsOf(header()) & ::purlin::internal::kPayloadIndirect) != 0;
  }
  /// Whether it does not show it yet.
  bool IsUnresolvedIndirect() const noexcept { return IsIndirect() && IsUnavailable(); }
  /// Whether the value was made as a T; of one that shows another, once that is known.
  template <typename T>
  bool IsType() const noexcept {
    return ::purlin::internal::FindPayloadType<T>(header()) != nullptr;
  }

  /// Another reference, or `count` of them; the same value.
  AsyncValue* AddRef(std::uint32_t count = 1) noexcept {
    while (count-- > 0) ::purlin::internal::EventRetain(header());
    return this;
  }
  /// One reference less, or `count`.
  void DropRef(std::uint32_t count = 1) noexcept {
    while (count-- > 0) ::purlin::internal::EventRelease(header());
  }
  /// See AsyncValueVerbs.
  std::size_t NumRef() const noexcept { return As<Chain>().NumRef(); }
  /// See AsyncValueVerbs.
  bool IsUnique() const noexcept { return As<Chain>().IsUnique(); }
  /// See AsyncValueVerbs.
  bool HasWaiter() const noexcept { return As<Chain>().HasWaiter(); }

  /// The value, which is a T.
  template <typename T>
  T& get() const noexcept {
    return As<T>().get();
  }
  /// The error, or OK.
  Status GetError() const noexcept { return As<Chain>().GetError(); }
  /// The error, if there is one.
  std::optional<Status> GetErrorIfPresent() const noexcept { return As<Chain>().GetErrorIfPresent(); }
  /// Constructs the value, a T, and publishes it.
  template <typename T, typename... Args>
  bool emplace(Args&&... args) {
    return As<T>().emplace(std::forward<Args>(args)...);
  }
  /// Publishes the constructed payload.
  bool SetStateConcrete() noexcept { return As<Chain>().SetStateConcrete(); }
  /// Completes the value with `error`.
  bool SetError(Status error, SourceLocation location = SourceLocation::Current()) noexcept {
    return As<Chain>().SetError(std::move(error), location);
  }
  /// Calls `waiter()` once the value is available.
  template <typename F>
  void AndThen(F&& waiter) {
    As<Chain>().AndThen(std::forward<F>(waiter));
  }
  /// As above, in a task.
  template <typename F>
  void AndThen(::purlin::Executor& executor, F&& waiter) {
    As<Chain>().AndThen(executor, std::forward<F>(waiter));
  }
  /// The same cell as an event.
  Event AsEvent() const noexcept { return As<Chain>().AsEvent(); }

 private:
  template <typename T>
  AsyncValuePtr<T> As() const noexcept {
    return AsyncValuePtr<T>(header());
  }
};

/// A value that has failed, whatever its type.
class ErrorAsyncValue : public AsyncValue {
 public:
  /// See AsyncValue::From.
  static ErrorAsyncValue* From(::purlin::internal::EventHeader* header) noexcept {
    return reinterpret_cast<ErrorAsyncValue*>(header);
  }
};

/// A value that shows another.
class IndirectAsyncValue : public AsyncValue {
 public:
  /// See AsyncValue::From.
  static IndirectAsyncValue* From(::purlin::internal::EventHeader* header) noexcept {
    return reinterpret_cast<IndirectAsyncValue*>(header);
  }
  /// Shows `value`, now or once it is available. See AsyncValueVerbs::ForwardTo.
  // By value, as upstream: a caller's reference is moved from. NOLINTNEXTLINE(performance-unnecessary-value-param)
  bool ForwardTo(RCReference<AsyncValue> value) noexcept {
    return ::purlin::internal::ForwardValue(header(), value.get() == nullptr ? nullptr : value->header());
  }
};

namespace internal {

/// The type of an indirect value that nothing was said of.
struct Unknown {};

template <typename T>
RCReference<IndirectAsyncValue> NewIndirect(SourceLocation location) noexcept {
  return TakeRef(
      IndirectAsyncValue::From(::purlin::MakeIndirectAsyncValueRef<T>(Label(), location).release().header()));
}

}  // namespace internal

/// An indirect value of any type.
inline RCReference<IndirectAsyncValue> MakeIndirectAsyncValue(
    SourceLocation location = SourceLocation::Current()) noexcept {
  return internal::NewIndirect<internal::Unknown>(location);
}
/// An indirect value of a T.
template <typename T>
RCReference<IndirectAsyncValue> MakeIndirectAsyncValue(SourceLocation location = SourceLocation::Current()) noexcept {
  return internal::NewIndirect<T>(location);
}
/// A value that has failed with `error`, of any type.
inline RCReference<ErrorAsyncValue> MakeErrorAsyncValueRef(
    Status error, SourceLocation location = SourceLocation::Current()) noexcept {
  AsyncValueRef<Chain> failed(std::move(error), location);
  return TakeRef(ErrorAsyncValue::From(failed.release().header()));
}

using ::purlin::RunWhenReady;

/// Blocks this thread until `value` is available, whether it is a value or an error.
inline void BlockUntilReady(AsyncValue* value) noexcept { value->AsEvent().Wait().IgnoreError(); }
/// See above.
template <typename T>
void BlockUntilReady(const AsyncValueRef<T>& value) noexcept {
  value.Wait().IgnoreError();
}
/// See above.
template <typename T>
void BlockUntilReady(const AsyncValuePtr<T>& value) noexcept {
  value.Wait().IgnoreError();
}

}  // namespace tsl
}  // namespace compat
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_COMPAT_TSL_ASYNC_VALUE_H_
