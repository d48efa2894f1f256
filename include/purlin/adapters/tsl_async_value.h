// Purlin's adapter for tsl::AsyncValue and tsl::Future: each side completes the other, with errors and their payloads.
//
//   purlin::Event loaded = purlin::adapters::FromTsl(definition_event);   // a tsl::AsyncValueRef<T>
//   purlin::Future<T> result = purlin::adapters::FromTsl(tsl_future);     // a tsl::Future<T>
//   tsl::AsyncValueRef<CpuEvent> copied = purlin::adapters::ToTsl<CpuEvent>(buffer.CopyToHost(...));
//
// A completed event crosses at once; a pending one crosses on the thread that completes it, before the completing call
// returns. A chain that crosses back and forth needs no more stack than one of events alone. Nothing here blocks.
//
// What is dropped unset: an EventPromise, a purlin::Promise and a tsl::Promise complete with kInternal, and that
// crosses like any error. A tsl::AsyncValue does not: when its last reference is dropped, tsl drops its waiters,
// Purlin's too, and the event stays pending (DumpStalls names it, "tsl::AsyncValue"). As with tsl's own waiters, the
// code that sets the value must hold a reference; if it holds an AsyncValueOwner, a value that is dropped unset fails.
//
// For the tsl of the wheel tensorflow-cpu 2.21. NDEBUG must be defined as it was for the library that has tsl inside
// (it is for every wheel): it is part of AsyncValue's ABI.
#ifndef PURLIN_ADAPTERS_TSL_ASYNC_VALUE_H_
#define PURLIN_ADAPTERS_TSL_ASYNC_VALUE_H_

#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "purlin/adapters/absl.h"
#include "purlin/event.h"
#include "purlin/future.h"
#include "purlin/label.h"
#include "purlin/promise.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"
#include "xla/tsl/concurrency/async_value.h"
#include "xla/tsl/concurrency/async_value_ref.h"
#include "xla/tsl/concurrency/chain.h"
#include "xla/tsl/concurrency/future.h"

namespace purlin {
inline namespace v0 {
namespace adapters {

/// Held by the code that sets a tsl value: a reference that fails the value with kInternal if it is still unset when
/// this is destroyed. Move-only. As everywhere in tsl, no other code may complete the value.
template <typename T>
class [[nodiscard]] AsyncValueOwner final {
 public:
  /// Owns `value`. A null one has no effect.
  explicit AsyncValueOwner(tsl::AsyncValueRef<T> value) noexcept : value_(std::move(value)) {}
  AsyncValueOwner(const AsyncValueOwner&) = delete;
  AsyncValueOwner& operator=(const AsyncValueOwner&) = delete;
  /// Leaves `other` empty.
  AsyncValueOwner(AsyncValueOwner&& other) noexcept = default;
  /// As if this were destroyed first.
  AsyncValueOwner& operator=(AsyncValueOwner&& other) noexcept {
    AsyncValueOwner taken(std::move(other));
    std::swap(value_, taken.value_);
    return *this;
  }
  /// Fails an unset value; its waiters run on this thread.
  ~AsyncValueOwner() {
    if (value_ && value_.IsUnavailable()) value_.SetError(absl::InternalError("a tsl::AsyncValue was dropped unset"));
  }

  /// The value, to be set, or copied for waiters.
  [[nodiscard]] const tsl::AsyncValueRef<T>& value() const noexcept { return value_; }

 private:
  tsl::AsyncValueRef<T> value_;
};

/// An event that happens or fails as `value` does, which is of any payload, direct or indirect. See the top of this
/// file for a value that is dropped unset. A null `value` gives kInvalidArgument.
inline Event FromTsl(tsl::AsyncValue* value, SourceLocation location = SourceLocation::Current()) {
  if (value == nullptr) return Event::Error(InvalidArgumentError("FromTsl of a null tsl::AsyncValue", location));
  const auto result = [value, location]() -> Status {
    const absl::Status* error = value->GetErrorIfPresent();
    return error == nullptr ? OkStatus() : FromAbsl(*error, location);
  };
  if (value->IsAvailable()) {
    Status status = result();
    return status.ok() ? Event() : Event::Error(std::move(status), location);
  }
  EventPromise promise(Label("tsl::AsyncValue"), location);
  Event event = promise.event();
  value->AndThen([promise = std::move(promise), result]() mutable { promise.Set(result()); });
  return event;
}

/// As above. A payload that is an absl::Status or an absl::StatusOr and holds an error counts as that error.
template <typename T>
Event FromTsl(const tsl::AsyncValueRef<T>& value, SourceLocation location = SourceLocation::Current()) {
  if constexpr (tsl::internal::is_status_like_v<T>) {
    if (!value) return FromTsl(nullptr, location);
    const auto result = [value = value.AsPtr(), location]() -> Status {
      if (value.IsError()) return FromAbsl(value.GetError(), location);
      if constexpr (std::is_same_v<T, absl::Status>) {
        return FromAbsl(value.get(), location);
      } else {
        return FromAbsl(value.get().status(), location);
      }
    };
    if (value.IsAvailable()) {
      Status status = result();
      return status.ok() ? Event() : Event::Error(std::move(status), location);
    }
    EventPromise promise(Label("tsl::AsyncValue"), location);
    Event event = promise.event();
    value.GetAsyncValue()->AndThen([promise = std::move(promise), result]() mutable { promise.Set(result()); });
    return event;
  } else {
    return FromTsl(value.GetAsyncValue(), location);
  }
}

/// A future of the same value or error. A value that can be copied is; a move-only one is moved out of an rvalue
/// future. An invalid `future` gives kFailedPrecondition.
template <typename T>
Future<T> FromTsl(tsl::Future<T> future, SourceLocation location = SourceLocation::Current()) {
  using Result = typename Future<T>::Result;
  if (!future.IsValid()) {
    return Result(FailedPreconditionError("FromTsl of a tsl::Future that was moved from or never made", location));
  }
  auto [promise, ours] = MakePromise<T>(Label("tsl::Future"), location);
  if constexpr (std::is_void_v<T>) {
    future.OnReady([promise = std::move(promise), location](const absl::Status& status) mutable {
      promise.Set(FromAbsl(status, location));
    });
  } else {
    using Theirs = std::conditional_t<std::is_copy_constructible_v<T>, const absl::StatusOr<T>&, absl::StatusOr<T>>;
    std::move(future).OnReady([promise = std::move(promise), location](Theirs result) mutable {
      if (result.ok()) {
        promise.Emplace(*std::forward<Theirs>(result));
      } else {
        promise.Set(Result(FromAbsl(result.status(), location)));
      }
    });
  }
  return std::move(ours);
}

/// Completes `value` as `event` completes: its payload, if constructed, is published, else a `T()` is; or it fails. No
/// other code may complete it. Holds a reference until then. A null or available `value` is ignored.
template <typename T>
void ForwardToTsl(const Event& event, tsl::AsyncValueRef<T> value) {
  event.OnReady([value = std::move(value)](const Status& status) {
    if (!value || value.IsAvailable()) return;
    if (!status.ok()) {
      value.SetError(ToAbsl(status));
    } else if (value.IsConstructed()) {
      value.SetStateConcrete();
    } else if constexpr (std::is_default_constructible_v<T>) {
      value.emplace();
    } else {
      value.SetError(absl::FailedPreconditionError("ForwardToTsl to a value without payload, which has no default"));
    }
  });
}

/// A tsl value whose payload is made of `args` now, and published when `event` happens; or it fails as `event` does.
/// XLA checks the exact type of some values, so pass the one that it expects: CpuEvent, BufferSequencingEvent.
template <typename T = tsl::Chain, typename... Args>
tsl::AsyncValueRef<T> ToTsl(const Event& event, Args&&... args) {
  if (event.IsReady()) {
    if (Status error = event.error(); !error.ok())
      return tsl::AsyncValueRef<T>(tsl::MakeErrorAsyncValueRef(ToAbsl(error)));
    return tsl::MakeAvailableAsyncValueRef<T>(std::forward<Args>(args)...);
  }
  tsl::AsyncValueRef<T> value = tsl::MakeConstructedAsyncValueRef<T>(std::forward<Args>(args)...);
  ForwardToTsl(event, value.CopyRef());
  return value;
}

/// A tsl future of the same value or error. A value that can be copied is; a move-only one is moved out of an rvalue
/// future. An invalid future gives kFailedPrecondition.
template <typename T>
tsl::Future<T> ToTsl(Future<T> future) {
  auto [promise, theirs] = tsl::MakePromise<T>();
  std::move(future).OnReady([promise = std::move(promise)](typename Future<T>::Result result) mutable {
    promise.Set(ToAbsl(std::move(result)));
  });
  return std::move(theirs);
}

/// A tsl future that is ready when `event` is, with its error if it failed.
inline tsl::Future<> ToTslFuture(const Event& event) {
  if (event.IsReady()) return tsl::Future<>(ToAbsl(event.error()));
  auto [promise, future] = tsl::MakePromise<>();
  event.OnReady([promise = std::move(promise)](const Status& status) mutable { promise.Set(ToAbsl(status)); });
  return std::move(future);
}

}  // namespace adapters
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ADAPTERS_TSL_ASYNC_VALUE_H_
