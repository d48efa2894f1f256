// Purlin: a value that is completed later, and references that share it.
//
// ```cpp
// purlin::AsyncValueRef<int> count = purlin::MakeUnconstructedAsyncValueRef<int>("count");
// purlin::AsyncValueRef<float> share = count.Map([](int n) { return 1.0F / static_cast<float>(n); });
// count.emplace(4);  // `share` follows, on this thread
// if (purlin::Status status = share.Wait(); !status.ok()) return status;
// const float quarter = *share;
// ```
//
// States: unconstructed -> constructed -> concrete, or error; concrete and error are final. The first completion wins,
// and later ones return false: nothing is aborted, leaked or destroyed twice. The cell is an event (AsEvent), so all
// that event.h says of waiters, order, nesting and memory order holds here: a thread that saw the value available may
// read it. Each reference is one word. One cell carries the payload; up to 64 bytes of it cost no heap allocation.
//
// If the last reference is dropped while waiters are attached, they run with kInternal, naming the value by label and
// place. So no waiter is lost, and a chain of a million values unwinds without deep recursion.
#ifndef PURLIN_ASYNC_VALUE_H_
#define PURLIN_ASYNC_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "purlin/async_value_verbs.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/async_value.h"
#include "purlin/internal/async_value_map.h"
#include "purlin/internal/cell.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/owed_task.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

namespace compat {
namespace tsl {
// Of purlin/compat/tsl.h, which the members of that name need.
class AsyncValue;
class ErrorAsyncValue;
template <typename T>
class RCReference;
}  // namespace tsl
}  // namespace compat

/// A payload type that derives from this (or has a member of this name that is true) keeps its payload when the value
/// fails: both can be read, the payload through GetIfConstructed() or get().
struct KeepOnError {
  /// See above.
  static constexpr bool kKeepPayloadOnError = true;
};

/// The label and place of a value, in front of what its payload is made of.
struct Named {
  /// `label` has static storage.
  explicit Named(Label label, SourceLocation location = SourceLocation::Current()) noexcept
      : label(label), location(location) {}
  /// The label.
  Label label;
  /// The place.
  SourceLocation location;
};

/// A borrowed pointer to a value that a reference elsewhere keeps alive. One word; copying it costs nothing.
template <typename T>
class AsyncValuePtr final : public AsyncValueVerbs<T> {
 public:
  /// Null.
  constexpr AsyncValuePtr() noexcept = default;
  /// Null.
  constexpr AsyncValuePtr(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor)
  /// Borrows from `ref`, which outlives this.
  explicit AsyncValuePtr(const AsyncValueRef<T>& ref) noexcept : AsyncValueVerbs<T>(ref.header()) {}
  /// Borrows a value whose type is known to the caller. See purlin/compat/tsl.h.
  template <typename E, typename = std::enable_if_t<std::is_base_of_v<compat::tsl::AsyncValue, E>>>
  explicit AsyncValuePtr(E* value) noexcept : AsyncValueVerbs<T>(value == nullptr ? nullptr : value->header()) {}
  /// For Purlin's own files.
  constexpr explicit AsyncValuePtr(internal::EventHeader* header) noexcept : AsyncValueVerbs<T>(header) {}

  /// A reference to the same value.
  [[nodiscard]] AsyncValueRef<T> CopyRef() const noexcept {
    return AsyncValueRef<T>::Adopt(internal::EventRetain(this->header_));
  }
  /// The value without its type, and a reference to it. See purlin/compat/tsl.h.
  template <typename E = compat::tsl::AsyncValue>
  [[nodiscard]] E* value() const noexcept {
    return E::From(this->header_);
  }
  /// See above.
  template <typename E = compat::tsl::AsyncValue>
  [[nodiscard]] compat::tsl::RCReference<E> CopyRCRef() const noexcept {
    return compat::tsl::RCReference<E>(CopyRef());
  }
  /// Not null.
  explicit operator bool() const noexcept { return this->header_ != nullptr; }
  /// The same value, not an equal one.
  friend bool operator==(AsyncValuePtr a, AsyncValuePtr b) noexcept { return a.header_ == b.header_; }
  /// Not the same value.
  friend bool operator!=(AsyncValuePtr a, AsyncValuePtr b) noexcept { return !(a == b); }
};

/// An error that stands for a value of any type; converts to every AsyncValueRef.
class [[nodiscard]] ErrorAsyncValueRef final {
 public:
  /// An OK `error` is a bug of the caller and becomes kInternal.
  explicit ErrorAsyncValueRef(Status error, SourceLocation location = SourceLocation::Current()) noexcept
      : event_(Event::Error(internal::NotOk(std::move(error), "an error value", location), location)) {}
  /// The event, failed.
  const Event& event() const noexcept { return event_; }

 private:
  Event event_;
};

/// A counted reference to a value. One word; copying it is one atomic increment. Safe to share as a shared_ptr is.
template <typename T>
class [[nodiscard]] AsyncValueRef final : public AsyncValueVerbs<T> {
 public:
  /// Null.
  constexpr AsyncValueRef() noexcept = default;
  /// Null.
  constexpr AsyncValueRef(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor)
  /// A value that has failed. An OK `error` is a bug of the caller and becomes kInternal.
  AsyncValueRef(Status error, SourceLocation location = SourceLocation::Current()) noexcept  // NOLINT
      : AsyncValueRef(ErrorAsyncValueRef(std::move(error), location)) {}
  /// A value that has failed.
  AsyncValueRef(const ErrorAsyncValueRef& error) noexcept  // NOLINT(google-explicit-constructor)
      : AsyncValueVerbs<T>(error.event().header()) {
    internal::EventRetain(this->header_);
  }
  /// The same value as one of its base class T. Where that base does not begin at the address of the whole, an indirect
  /// value that is forwarded.
  template <typename D, typename = std::enable_if_t<std::is_convertible_v<D*, T*> && !std::is_same_v<D, T>>>
  AsyncValueRef(AsyncValueRef<D> derived) noexcept;  // NOLINT(google-explicit-constructor)

  /// A value whose type is known to the caller. See purlin/compat/tsl.h.
  template <typename E, std::enable_if_t<std::is_base_of_v<compat::tsl::AsyncValue, E> &&
                                             !std::is_same_v<compat::tsl::ErrorAsyncValue, E>,
                                         int> = 0>
  explicit AsyncValueRef(compat::tsl::RCReference<E> value) noexcept
      : AsyncValueVerbs<T>(value.get() == nullptr ? nullptr : value.release()->header()) {}
  /// An error. See purlin/compat/tsl.h.
  template <typename E, std::enable_if_t<std::is_same_v<compat::tsl::ErrorAsyncValue, E>, int> = 0>
  AsyncValueRef(compat::tsl::RCReference<E> error) noexcept  // NOLINT(google-explicit-constructor)
      : AsyncValueVerbs<T>(error.get() == nullptr ? nullptr : error.release()->header()) {}

  /// Another reference.
  AsyncValueRef(const AsyncValueRef& other) noexcept : AsyncValueVerbs<T>(internal::EventRetain(other.header_)) {}
  /// Leaves `other` null.
  AsyncValueRef(AsyncValueRef&& other) noexcept : AsyncValueVerbs<T>(std::exchange(other.header_, nullptr)) {}
  /// See the constructors.
  AsyncValueRef& operator=(const AsyncValueRef& other) noexcept {
    AsyncValueRef copy(other);
    std::swap(this->header_, copy.header_);
    return *this;
  }
  /// See the constructors.
  AsyncValueRef& operator=(AsyncValueRef&& other) noexcept {
    AsyncValueRef taken(std::move(other));
    std::swap(this->header_, taken.header_);
    return *this;
  }
  /// The top of this file says what the last reference does.
  ~AsyncValueRef() { internal::EventRelease(this->header_); }

  /// Another reference; says so at the call.
  [[nodiscard]] AsyncValueRef CopyRef() const noexcept { return *this; }
  /// Borrowed.
  [[nodiscard]] AsyncValuePtr<T> AsPtr() const noexcept { return AsyncValuePtr<T>(this->header_); }
  /// Drops the reference; null afterwards.
  void reset() noexcept { internal::EventRelease(std::exchange(this->header_, nullptr)); }
  /// Gives the reference away as a pointer; give it back to Adopt(header()). Null afterwards.
  [[nodiscard]] AsyncValuePtr<T> release() noexcept { return AsyncValuePtr<T>(std::exchange(this->header_, nullptr)); }
  /// The value without its type; more references to it, and this one. See purlin/compat/tsl.h.
  template <typename E = compat::tsl::AsyncValue>
  [[nodiscard]] E* GetAsyncValue() const noexcept {
    return E::From(this->header_);
  }
  /// See above.
  template <typename E = compat::tsl::AsyncValue>
  [[nodiscard]] compat::tsl::RCReference<E> CopyRCRef() const noexcept {
    return compat::tsl::RCReference<E>(AsyncValueRef(*this));
  }
  /// See above. Null afterwards.
  template <typename E = compat::tsl::AsyncValue>
  [[nodiscard]] compat::tsl::RCReference<E> ReleaseRCRef() noexcept {
    return compat::tsl::RCReference<E>(std::move(*this));
  }
  /// Takes over a reference: that of release(), or one of Purlin's own files.
  static AsyncValueRef Adopt(internal::EventHeader* header) noexcept {
    AsyncValueRef ref;
    ref.header_ = header;
    return ref;
  }

  /// Not null.
  explicit operator bool() const noexcept { return this->header_ != nullptr; }
  /// The same value, not an equal one.
  friend bool operator==(const AsyncValueRef& a, const AsyncValueRef& b) noexcept { return a.header_ == b.header_; }
  /// Not the same value.
  friend bool operator!=(const AsyncValueRef& a, const AsyncValueRef& b) noexcept { return !(a == b); }
};

static_assert(sizeof(AsyncValueRef<int>) == sizeof(void*) && sizeof(AsyncValuePtr<int>) == sizeof(void*),
              "references are one word");

// Making values -------------------------------------------------------------------------------------------------------

template <typename T>
class AsyncValueStorage;

namespace internal {

/// Not for the overloads that begin with a name or with storage.
template <typename U>
struct IsMakeTag : std::is_same<U, Named> {};
template <typename T>
struct IsMakeTag<AsyncValueStorage<T>> : std::true_type {};
template <typename U>
using IfNoTag = std::enable_if_t<!IsMakeTag<std::decay_t<U>>::value>;

/// Whether a `T*` and a `B*` to the same object are the same address, whatever the object.
template <typename B, typename T, typename = void>
struct BeginsWith : std::false_type {};
template <typename B, typename T>  // Not for virtual bases: their place is not known without an object.
struct BeginsWith<B, T, std::void_t<decltype(static_cast<T*>(std::declval<B*>()))>> : std::true_type {
  static bool Check() noexcept {
    constexpr std::uintptr_t kAnywhere = std::uintptr_t{1} << 20;
    auto* whole = reinterpret_cast<T*>(kAnywhere);  // NOLINT(performance-no-int-to-ptr): never followed.
    return reinterpret_cast<std::uintptr_t>(static_cast<B*>(whole)) == kAnywhere;
  }
};
template <typename B, typename T>
bool IsAtBeginning() noexcept {
  if constexpr (BeginsWith<B, T>::value) {
    return BeginsWith<B, T>::Check();
  } else {
    return false;
  }
}

}  // namespace internal

template <typename T>
template <typename D, typename>
AsyncValueRef<T>::AsyncValueRef(AsyncValueRef<D> derived) noexcept {
  if (internal::IsAtBeginning<T, D>() || derived.header() == nullptr) {
    this->header_ = derived.release().header();
    return;
  }
  internal::EventHeader* source = derived.header();
  this->header_ = internal::IndirectCell<T>::New(internal::IndirectCell<T>::kFlags, internal::LabelOf(source),
                                                 internal::PlaceOf(source));
  static_cast<void>(internal::TryClaim(this->header_));
  internal::ForwardClaimed(this->header_, source,
                           [](void* value) noexcept -> void* { return static_cast<T*>(static_cast<D*>(value)); });
}

/// A value without payload, for emplace().
template <typename T>
[[gnu::always_inline]] inline AsyncValueRef<T> MakeUnconstructedAsyncValueRef(
    Label label = Label(), SourceLocation location = SourceLocation::Current()) noexcept {
  using Cell = internal::InlineCell<T>;
  return AsyncValueRef<T>::Adopt(Cell::New(Cell::kFlags | internal::kPoisonable, label, location));
}

/// A value whose payload is constructed out of `args` and not yet published, for SetStateConcrete(). In error if the
/// constructor threw.
template <typename T, typename... Args>
AsyncValueRef<T> MakeConstructedAsyncValueRef(Named named, Args&&... args) noexcept {
  return AsyncValueRef<T>::Adopt(internal::NewConstructedFrom<T>(
      [&]() -> T { return internal::MakeValue<T>(std::forward<Args>(args)...); }, named.label, named.location));
}
/// As above, without a label.
template <typename T>
AsyncValueRef<T> MakeConstructedAsyncValueRef(SourceLocation location = SourceLocation::Current()) noexcept {
  return MakeConstructedAsyncValueRef<T>(Named(Label(), location));
}
/// As above, without a label.
template <typename T, typename U, typename = internal::IfNoTag<U>>
AsyncValueRef<T> MakeConstructedAsyncValueRef(U&& arg, SourceLocation location = SourceLocation::Current()) noexcept {
  return MakeConstructedAsyncValueRef<T>(Named(Label(), location), std::forward<U>(arg));
}
/// As above, without a label and place.
template <typename T, typename U, typename V, typename... Args, typename = internal::IfNoTag<U>,
          typename = std::enable_if_t<!std::is_same_v<std::decay_t<V>, SourceLocation>>>
AsyncValueRef<T> MakeConstructedAsyncValueRef(U&& first, V&& second, Args&&... args) noexcept {
  return MakeConstructedAsyncValueRef<T>(Named(Label(), SourceLocation()), std::forward<U>(first),
                                         std::forward<V>(second), std::forward<Args>(args)...);
}

/// A value that is there already, constructed out of `args`. In error if the constructor threw.
template <typename T, typename... Args>
AsyncValueRef<T> MakeAvailableAsyncValueRef(Named named, Args&&... args) noexcept {
  return AsyncValueRef<T>::Adopt(internal::NewReadyFrom<T>(
      [&]() -> T { return internal::MakeValue<T>(std::forward<Args>(args)...); }, named.label, named.location));
}
/// As above, without a label.
template <typename T>
AsyncValueRef<T> MakeAvailableAsyncValueRef(SourceLocation location = SourceLocation::Current()) noexcept {
  return MakeAvailableAsyncValueRef<T>(Named(Label(), location));
}
/// As above, without a label.
template <typename T, typename U, typename = internal::IfNoTag<U>>
AsyncValueRef<T> MakeAvailableAsyncValueRef(U&& arg, SourceLocation location = SourceLocation::Current()) noexcept {
  return MakeAvailableAsyncValueRef<T>(Named(Label(), location), std::forward<U>(arg));
}
/// As above, without a label and place.
template <typename T, typename U, typename V, typename... Args, typename = internal::IfNoTag<U>,
          typename = std::enable_if_t<!std::is_same_v<std::decay_t<V>, SourceLocation>>>
AsyncValueRef<T> MakeAvailableAsyncValueRef(U&& first, V&& second, Args&&... args) noexcept {
  return MakeAvailableAsyncValueRef<T>(Named(Label(), SourceLocation()), std::forward<U>(first),
                                       std::forward<V>(second), std::forward<Args>(args)...);
}

/// A value that has failed with `error`, of any type.
inline ErrorAsyncValueRef MakeErrorAsyncValueRef(Status error,
                                                 SourceLocation location = SourceLocation::Current()) noexcept {
  return ErrorAsyncValueRef(std::move(error), location);
}

/// A value that will show another, see ForwardTo(). It can be emplaced, too, for one more cell.
template <typename T>
AsyncValueRef<T> MakeIndirectAsyncValueRef(Label label = Label(),
                                           SourceLocation location = SourceLocation::Current()) noexcept {
  using Cell = internal::IndirectCell<T>;
  return AsyncValueRef<T>::Adopt(Cell::New(Cell::kFlags | internal::kPoisonable, label, location));
}

/// A value that is there already and is kept alive by `value`. A null `value` gives kInvalidArgument.
template <typename T>
AsyncValueRef<T> MakeAsyncValueRefFromSharedPtr(std::shared_ptr<T> value, Label label = Label(),
                                                SourceLocation location = SourceLocation::Current()) noexcept {
  if (value == nullptr) return InvalidArgumentError("an asynchronous value was made from a null shared_ptr", location);
  using Cell = internal::SharedCell<T>;
  internal::EventHeader* event = Cell::New(Cell::kFlags, label, location);
  T* address = value.get();
  ::new (internal::PayloadOf(event)) internal::SharedPayload<T>{{address, nullptr}, std::move(value)};
  event->word.store(internal::kStateReady, std::memory_order_release);
  return AsyncValueRef<T>::Adopt(event);
}

/// What `f()` returns (or a `T` made of it), called in a task of `executor`. If the executor refuses or drops the task,
/// the value fails with the executor's error, or with kCancelled; if `f` throws, with kInternal; if it is an empty
/// std::function or a null pointer, with kInvalidArgument.
template <typename T = void, typename F>
auto MakeAsyncValueRef(Executor& executor, F&& f, Label label = Label(),
                       SourceLocation location = SourceLocation::Current()) noexcept {
  using Closure = std::decay_t<F>;
  using Result = std::conditional_t<std::is_void_v<T>, internal::PayloadFor<std::invoke_result_t<Closure>>, T>;
  if (internal::IsEmptyCallable(f)) {
    return AsyncValueRef<Result>(internal::EmptyCallableError("MakeAsyncValueRef", location));
  }
  using Cell = internal::InlineCell<Result>;
  internal::EventHeader* result = Cell::New(Cell::kFlags, label, location);
  internal::HandOn(result, [&] {
    internal::EventRetain(result);
    const Event shown = Event::Adopt(result);
    internal::SubmitOwed(executor, shown,
                         [f = Closure(std::forward<F>(f))](internal::EventHeader* owed) mutable noexcept {
                           internal::EmplaceFrom<Result>(owed, [&]() -> decltype(auto) {
                             return internal::OrChain([&]() -> decltype(auto) { return std::invoke(std::move(f)); });
                           });
                         });
  });
  return AsyncValueRef<Result>::Adopt(result);
}
/// As above, for `f` that returns a `StatusOr<U>` (the value is a U, or a `T` made of it) or a Status (a Chain).
template <typename T = void, typename F>
auto TryMakeAsyncValueRef(Executor& executor, F&& f, Label label = Label(),
                          SourceLocation location = SourceLocation::Current()) noexcept {
  using Closure = std::decay_t<F>;
  using Returned = std::decay_t<std::invoke_result_t<Closure>>;
  using Result = std::conditional_t<std::is_void_v<T>, typename internal::StatusOrTraits<Returned>::Value, T>;
  if (internal::IsEmptyCallable(f)) {
    return AsyncValueRef<Result>(internal::EmptyCallableError("TryMakeAsyncValueRef", location));
  }
  using Cell = internal::InlineCell<Result>;
  internal::EventHeader* result = Cell::New(Cell::kFlags, label, location);
  internal::HandOn(result, [&] {
    internal::EventRetain(result);
    const Event shown = Event::Adopt(result);
    internal::SubmitOwed(
        executor, shown, [f = Closure(std::forward<F>(f))](internal::EventHeader* owed) mutable noexcept {
          if (!internal::TryClaim(owed)) return;
          internal::CompleteClaimedTry<Result>(owed, [&]() -> decltype(auto) { return std::invoke(std::move(f)); });
        });
  });
  return AsyncValueRef<Result>::Adopt(result);
}

/// Blocks this thread until the value is available; OK or its error. See Event::Wait.
template <typename T>
Status BlockUntilReady(const AsyncValueRef<T>& value) noexcept {
  return value.Wait();
}
/// See above.
template <typename T>
Status BlockUntilReady(AsyncValuePtr<T> value) noexcept {
  return value.Wait();
}

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ASYNC_VALUE_H_
