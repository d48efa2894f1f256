// Purlin: asynchronous values in memory that the caller provides: on the stack, in a member, in static storage.
//
// ```cpp
// purlin::AsyncValueStorage<int> storage;  // nothing is allocated
// purlin::AsyncValueOwningRef<int> owner = purlin::MakeUnconstructedAsyncValueRef<int>(storage, "count");
// purlin::AsyncValuePtr<int> value = owner.AsPtr();
// value.emplace(42);
// const int answer = value.get();
// ```
//
// Nothing is allocated and nothing is counted: references to such a value (AsRef, AsEvent) do not keep it alive, and
// none of them may be used after its owner is destroyed. The owner destroys the payload; if the value is pending then,
// its waiters run first, with kInternal. Stall reports do not show such values.
#ifndef PURLIN_ASYNC_VALUE_STORAGE_H_
#define PURLIN_ASYNC_VALUE_STORAGE_H_

#include <cstdint>
#include <new>
#include <utility>

#include "purlin/async_value.h"
#include "purlin/event.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/async_value.h"
#include "purlin/internal/cell.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// Room for one value of type T. Neither copied nor moved; may be used again after its owner was destroyed.
template <typename T>
class AsyncValueStorage final {
 public:
  /// No value yet.
  AsyncValueStorage() noexcept {}  // NOLINT(modernize-use-equals-default): the memory stays uninitialised.
  AsyncValueStorage(const AsyncValueStorage&) = delete;
  AsyncValueStorage& operator=(const AsyncValueStorage&) = delete;

  /// For Purlin's own files: a pending cell here.
  internal::EventHeader* Begin(Label label, SourceLocation location) noexcept {
    auto* cell = ::new (static_cast<void*>(memory_)) internal::EventCell;
    internal::InitCell(cell, &Cell::kVTable.event, static_cast<std::uint16_t>(Cell::kOffset), Cell::kFlags, label,
                       location);
    return std::launder(&cell->header);
  }

 private:
  using Cell = internal::InlineCell<T>;
  alignas(Cell::kAlignBytes) unsigned char memory_[Cell::kSizeBytes];
};

/// The owner of a value in an AsyncValueStorage, which it destroys. Move-only, one word.
template <typename T>
class [[nodiscard]] AsyncValueOwningRef final {
 public:
  /// Owns nothing.
  AsyncValueOwningRef() noexcept = default;
  AsyncValueOwningRef(const AsyncValueOwningRef&) = delete;
  AsyncValueOwningRef& operator=(const AsyncValueOwningRef&) = delete;
  /// Leaves `other` empty.
  AsyncValueOwningRef(AsyncValueOwningRef&& other) noexcept : header_(std::exchange(other.header_, nullptr)) {}
  /// Destroys the value that was owned here.
  AsyncValueOwningRef& operator=(AsyncValueOwningRef&& other) noexcept {
    AsyncValueOwningRef taken(std::move(other));
    std::swap(header_, taken.header_);
    return *this;
  }
  /// See the top of this file.
  ~AsyncValueOwningRef() {
    if (header_ == nullptr) return;
    if (internal::HasWaiters(header_)) internal::EventAbandon(header_);
    internal::DestroyPayload(header_);
    internal::EndCell(reinterpret_cast<internal::EventCell*>(header_));
  }

  /// The value, borrowed; null if nothing is owned.
  [[nodiscard]] AsyncValuePtr<T> AsPtr() const noexcept { return AsyncValuePtr<T>(header_); }
  /// As AsPtr(), for functions that take a reference. It does not keep the value alive.
  [[nodiscard]] AsyncValueRef<T> AsRef() const noexcept { return AsPtr().CopyRef(); }
  /// The payload; see AsyncValueVerbs::get.
  T& get() const noexcept { return AsPtr().get(); }
  /// See get().
  T& operator*() const noexcept { return get(); }
  /// See get().
  T* operator->() const noexcept { return &get(); }
  /// Owns a value.
  explicit operator bool() const noexcept { return header_ != nullptr; }

  /// For Purlin's own files.
  explicit AsyncValueOwningRef(internal::EventHeader* header) noexcept : header_(header) {}

 private:
  internal::EventHeader* header_ = nullptr;
};

/// As MakeUnconstructedAsyncValueRef<T>(), in `storage`, which is not in use and outlives the owner.
template <typename T>
AsyncValueOwningRef<T> MakeUnconstructedAsyncValueRef(AsyncValueStorage<T>& storage, Label label = Label(),
                                                      SourceLocation location = SourceLocation::Current()) noexcept {
  return AsyncValueOwningRef<T>(storage.Begin(label, location));
}
/// As MakeConstructedAsyncValueRef<T>(args...), in `storage`.
template <typename T, typename... Args>
AsyncValueOwningRef<T> MakeConstructedAsyncValueRef(AsyncValueStorage<T>& storage, Args&&... args) noexcept {
  internal::EventHeader* header = storage.Begin(Label(), SourceLocation());
  Status thrown =
      internal::ConstructPayload<T>(header, [&]() -> T { return internal::MakeValue<T>(std::forward<Args>(args)...); });
  if (!thrown.ok()) static_cast<void>(internal::TrySetError(header, std::move(thrown)));
  return AsyncValueOwningRef<T>(header);
}
/// As MakeAvailableAsyncValueRef<T>(args...), in `storage`.
template <typename T, typename... Args>
AsyncValueOwningRef<T> MakeAvailableAsyncValueRef(AsyncValueStorage<T>& storage, Args&&... args) noexcept {
  AsyncValueOwningRef<T> owner = MakeConstructedAsyncValueRef<T>(storage, std::forward<Args>(args)...);
  static_cast<void>(owner.AsPtr().SetStateConcrete());
  return owner;
}

/// A value with its storage: a local, a member, a static. Neither copied nor moved. The top of this file says which
/// references may not outlive it.
template <typename T>
class ScopedAsyncValue final {
 public:
  /// Asks for a payload that is constructed and not published.
  struct Constructed {};
  /// Asks for a value that is there.
  struct Available {};
  /// Asks for an error.
  struct Error {};
  /// The same, by tsl's names.
  using ConstructedTag = Constructed;
  /// See above.
  using AvailableTag = Available;
  /// See above.
  using ErrorTag = Error;

  /// Unconstructed.
  explicit ScopedAsyncValue(Label label = Label(), SourceLocation location = SourceLocation::Current()) noexcept
      : owner_(MakeUnconstructedAsyncValueRef<T>(storage_, label, location)) {}
  /// Constructed out of `args`.
  template <typename... Args>
  explicit ScopedAsyncValue(Constructed, Args&&... args) noexcept
      : owner_(MakeConstructedAsyncValueRef<T>(storage_, std::forward<Args>(args)...)) {}
  /// Available, constructed out of `args`.
  template <typename... Args>
  explicit ScopedAsyncValue(Available, Args&&... args) noexcept
      : owner_(MakeAvailableAsyncValueRef<T>(storage_, std::forward<Args>(args)...)) {}
  /// Failed. An OK `error` is a bug of the caller and becomes kInternal.
  ScopedAsyncValue(Error, Status error, SourceLocation location = SourceLocation::Current()) noexcept
      : owner_(MakeUnconstructedAsyncValueRef<T>(storage_, Label(), location)) {
    static_cast<void>(owner_.AsPtr().SetError(std::move(error), location));
  }
  ScopedAsyncValue(const ScopedAsyncValue&) = delete;
  ScopedAsyncValue& operator=(const ScopedAsyncValue&) = delete;

  /// The value, borrowed.
  [[nodiscard]] AsyncValuePtr<T> AsPtr() const noexcept { return owner_.AsPtr(); }
  /// As AsPtr(), for functions that take a reference. It does not keep the value alive.
  [[nodiscard]] AsyncValueRef<T> AsRef() const noexcept { return owner_.AsRef(); }

 private:
  AsyncValueStorage<T> storage_;
  AsyncValueOwningRef<T> owner_;  // After the storage, so that it is destroyed first.
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ASYNC_VALUE_STORAGE_H_
