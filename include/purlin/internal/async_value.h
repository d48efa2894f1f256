// Purlin: event cells that carry a value. Not for users; see async_value.h.
//
// Three kinds, distinguished by `flags` and `vtable`; all begin with an EventCell, so each is an event:
//   inline    the payload lies behind the cell, constructed there by its maker or by the thread that completes it;
//   indirect  the payload is an IndirectPayload: a pointer to a value, and a reference to the cell that keeps it alive.
//             A forward claims the cell first, and writes the payload once, before the terminal state: so a reader that
//             saw the terminal state (acquire) may follow the pointer without a race. Chains collapse: the reference is
//             to the cell at the end;
//   shared    as indirect, kept alive by a std::shared_ptr beside the pointer.
// An error made from a Status alone is a plain event without payload and stands for every type.
//
// kPayloadConstructed says that the payload's destructor must run. Only the maker (before the cell is shared), the
// winner of CLAIMED, and the code that frees the cell change it. When the last reference to a pending cell is dropped,
// its waiters run with an error.
#ifndef PURLIN_INTERNAL_ASYNC_VALUE_H_
#define PURLIN_INTERNAL_ASYNC_VALUE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "purlin/event.h"
#include "purlin/export.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/cell.h"
#include "purlin/internal/guard.h"
#include "purlin/internal/thread_state.h"
#include "purlin/internal/waiter.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// Its address is the identity of T among payloads. Not const, so that no linker folds two of them into one.
template <typename T>
struct PURLIN_API PayloadTag {
  static inline char tag = 0;
};

/// Whether errors leave the payload where it is.
template <typename T, typename = void>
struct KeepsPayload : std::false_type {};
template <typename T>
struct KeepsPayload<T, std::void_t<decltype(T::kKeepPayloadOnError)>> : std::bool_constant<T::kKeepPayloadOnError> {};

/// The vtable of a cell with a value: an event's, and one more slot. Known by its `abi_size`.
struct ValueVTable {
  EventVTable event;
  /// Destroys the payload, which is constructed.
  void (*destroy_payload)(EventHeader* event) noexcept;
};

/// What an indirect cell holds. `owner` is null where the cell itself keeps the value alive.
struct IndirectPayload {
  void* value = nullptr;
  EventHeader* owner = nullptr;
};

/// What a shared cell holds.
template <typename T>
struct SharedPayload {
  IndirectPayload view;
  std::shared_ptr<T> owner;
};

inline __attribute__((always_inline)) std::uint16_t FlagsOf(const EventHeader* event) noexcept {
  return event->flags.load(std::memory_order_relaxed);
}
inline std::uintptr_t StateOf(const EventHeader* event) noexcept {
  return event->word.load(std::memory_order_acquire) & kStateMask;
}
/// The cell around a header. Laundered: gcc otherwise takes the header's first member for the whole object.
inline const EventCell* CellAround(const EventHeader* event) noexcept {
  return std::launder(reinterpret_cast<const EventCell*>(event));
}
inline __attribute__((always_inline)) SourceLocation PlaceOf(const EventHeader* event) noexcept {
  const EventCell* cell = CellAround(event);
  return SourceLocation(cell->file.load(std::memory_order_relaxed), cell->line.load(std::memory_order_relaxed));
}
inline Label LabelOf(const EventHeader* event) noexcept {
  return Label(CellAround(event)->label.load(std::memory_order_relaxed));
}

/// The error of a null reference.
__attribute__((noinline, cold)) inline Status NullValueError() {
  return FailedPreconditionError("a null AsyncValueRef or AsyncValuePtr has no value");
}

/// Where the value is, directly or not. The payload is constructed.
inline void* ValueAddress(EventHeader* event) noexcept {
  void* payload = PayloadOf(event);
  if ((FlagsOf(event) & kPayloadIndirect) != 0) return static_cast<IndirectPayload*>(payload)->value;
  return payload;
}

/// The value, if there is one to read: constructed, and not destroyed by an error.
inline void* ValueIfConstructed(EventHeader* event) noexcept {
  const std::uintptr_t state = StateOf(event);
  const std::uint16_t flags = FlagsOf(event);
  if ((flags & kPayloadConstructed) == 0) return nullptr;
  if (state == kStateError && (flags & kKeepPayloadOnError) == 0) return nullptr;
  return ValueAddress(event);
}

/// Blocks until a pending event is terminal or that time has passed (negative: forever), and keeps it alive meanwhile.
__attribute__((noinline)) inline Status WaitForPending(EventHeader* event, std::int64_t timeout_ns) noexcept {
  EventRetain(event);
  const Event kept = Event::Adopt(event);
  return Status::FromRep(EventWait(event, timeout_ns));
}

/// Destroys the payload of a cell that the caller has claimed, if there is one.
inline __attribute__((always_inline)) void DestroyPayload(EventHeader* event) noexcept {
  if ((FlagsOf(event) & kPayloadConstructed) == 0) return;
  event->flags.fetch_and(static_cast<std::uint16_t>(~kPayloadConstructed), std::memory_order_relaxed);
  reinterpret_cast<const ValueVTable*>(event->vtable)->destroy_payload(event);
}

/// Adds to the flags of a cell that the caller has claimed. In one step, because others may add kFollowed.
inline void AddFlags(EventHeader* event, std::uint16_t flags) noexcept {
  event->flags.fetch_or(flags, std::memory_order_relaxed);
}

/// The last reference to a pending cell is gone: its waiters run first. An event that is claimed stays for the thread
/// that claimed it.
inline void AbandonUnset(EventHeader* event) noexcept {
  // Unless the last reference was dropped without a decrement: then the count goes on from it.
  if (event->refs.load(std::memory_order_relaxed) == 0) event->refs.store(1, std::memory_order_relaxed);
  if (StateOf(event) == kStateClaimed) return;
  EventAbandon(event);
  EventRelease(event);
}

/// Frees a cell of kind `Cell` with its payload. Payloads that own further values are freed at most kMaxInlineDepth
/// deep, then one after the other, as waiters run.
template <typename Cell>
void FreeValueCell(EventHeader* event) noexcept {
  if (HasWaiters(event)) return AbandonUnset(event);
  if (!MayFree(event)) return;
  if constexpr (!std::is_trivially_destructible_v<typename Cell::Payload>) {
    if ((FlagsOf(event) & kPayloadConstructed) != 0) {
      ThreadState& here = ThisThread();
      if (here.depth >= kMaxInlineDepth) {
        auto later = [event]() noexcept { FreeValueCell<Cell>(event); };
        return DeferWaiter(nullptr, &ClosureWaiter<decltype(later)>::New(later)->base);
      }
      ++here.depth;
      Cell::DestroyPayload(event);
      FreeCell(event, Cell::kSizeBytes, Cell::kAlignBytes);
      if (--here.depth == 0 && here.deferred != 0) RunDeferredWaiters();
      return;
    }
  }
  FreeCell(event, Cell::kSizeBytes, Cell::kAlignBytes);
}

/// The layout of a cell whose payload is a `P`, and its functions. `T` is the type that it shows to its users.
template <typename T, typename P>
struct CellOf {
  using Payload = P;
  static constexpr std::size_t kAlignBytes = alignof(P) > alignof(EventCell) ? alignof(P) : alignof(EventCell);
  static constexpr std::size_t kOffset = (sizeof(EventCell) + kAlignBytes - 1) / kAlignBytes * kAlignBytes;
  static constexpr std::size_t kSizeBytes = kOffset + sizeof(P);
  static_assert(kOffset <= 0xFFFF, "an EventHeader has 16 bits for where the payload begins");

  static void DestroyPayload(EventHeader* event) noexcept { static_cast<P*>(PayloadOf(event))->~P(); }

  static constexpr ValueVTable kVTable{{sizeof(ValueVTable), &FreeValueCell<CellOf>, &PayloadTag<T>::tag},
                                       &DestroyPayload};

  /// A pending cell with one reference.
  __attribute__((always_inline)) static EventHeader* New(std::uint16_t flags, Label label,
                                                         SourceLocation location) noexcept {
    return NewCell(kSizeBytes, kAlignBytes, &kVTable.event, static_cast<std::uint16_t>(kOffset), flags, label,
                   location);
  }
};

/// IndirectPayload with its reference.
struct IndirectOwner : IndirectPayload {
  IndirectOwner() = default;
  IndirectOwner(const IndirectOwner&) = delete;
  IndirectOwner& operator=(const IndirectOwner&) = delete;
  ~IndirectOwner() { EventRelease(owner); }
};

template <typename T>
struct InlineCell : CellOf<T, T> {
  static constexpr std::uint16_t kFlags = KeepsPayload<T>::value ? kKeepPayloadOnError : 0;
};
template <typename T>
struct IndirectCell : CellOf<T, IndirectOwner> {
  static constexpr std::uint16_t kFlags = kPayloadIndirect;
};
template <typename T>
struct SharedCell : CellOf<T, SharedPayload<T>> {
  static constexpr std::uint16_t kFlags = kPayloadIndirect | kPayloadConstructed;
};

/// True for a cell that shows a `T`, of whatever kind.
template <typename T>
bool HasPayloadType(const EventHeader* event) noexcept {
  return event->vtable != nullptr && event->vtable->payload_type == &PayloadTag<T>::tag;
}
/// True for a cell with room for a `T`.
template <typename T>
bool IsInlineCellOf(const EventHeader* event) noexcept {
  return HasPayloadType<T>(event) && (FlagsOf(event) & kPayloadIndirect) == 0;
}

/// The place of an error: one, or that of an event, which is not looked at before there is an error.
inline SourceLocation PlaceOf(SourceLocation place) noexcept { return place; }

/// kInternal; `what` is null where no std::exception was thrown.
__attribute__((noinline, cold)) inline Status ThrewError(const char* thrower, const char* what, SourceLocation place) {
  return InternalError(std::string(thrower) + (what == nullptr ? " threw what is no std::exception" : " threw: ") +
                           (what == nullptr ? "" : what),
                       place);
}

/// Calls `f`; OK, or kInternal with what it threw, at a place or that of an event that outlives the call. For the last
/// parameter see GuardedOk.
template <typename Place, typename F, typename Mode = WithExceptions>
inline __attribute__((always_inline)) Status StatusOfThrow(const char* thrower, Place place, F&& f,
                                                           Mode = Mode()) noexcept {
#if defined(__cpp_exceptions)
  try {
    std::forward<F>(f)();
  } catch (const std::exception& e) {
    return ThrewError(thrower, WhatOf(e), PlaceOf(place));
  } catch (...) {
    return ThrewError(thrower, nullptr, PlaceOf(place));
  }
#else
  static_cast<void>(thrower);
  static_cast<void>(place);
  std::forward<F>(f)();
#endif
  return Status();
}

/// Constructs a `T` in the payload out of what `make()` returns, without a move if that is a `T`. Not published yet. Of
/// a cell that the caller has claimed, or, `kIsNew`, that no other code knows.
template <typename T, bool kIsNew = false, typename Make>
Status ConstructPayload(EventHeader* event, Make&& make) noexcept {
  void* payload = reinterpret_cast<unsigned char*>(event) + InlineCell<T>::kOffset;
  // A cast, and no move: also for types that cannot be moved.
  Status thrown = StatusOfThrow("making the value", event, [&] { ::new (payload) T(static_cast<T>(make())); });
  if (!thrown.ok()) return thrown;
  if constexpr (kIsNew) {
    event->flags.store(static_cast<std::uint16_t>(FlagsOf(event) | kPayloadConstructed), std::memory_order_relaxed);
  } else {
    AddFlags(event, kPayloadConstructed);
  }
  return thrown;
}

/// A `T` made of `args`, also if T is an aggregate.
template <typename T, typename... Args>
T MakeValue(Args&&... args) {
  if constexpr (std::is_constructible_v<T, Args...>) {
    return T(std::forward<Args>(args)...);
  } else {
    return T{std::forward<Args>(args)...};
  }
}

/// A new cell that is ready already, or failed if making the value threw.
template <typename T, typename Make>
EventHeader* NewReadyFrom(Make&& make, Label label, SourceLocation location) noexcept {
  EventHeader* event = InlineCell<T>::New(InlineCell<T>::kFlags, label, location);
  Status thrown = ConstructPayload<T, true>(event, std::forward<Make>(make));
  if (thrown.ok()) {
    // Release, for stall reports; no other code knows the cell.
    event->word.store(kStateReady, std::memory_order_release);
  } else {
    static_cast<void>(TrySetError(event, std::move(thrown)));
  }
  return event;
}

/// A new cell with a constructed value that is not published yet, or failed if making the value threw.
template <typename T, typename Make>
EventHeader* NewConstructedFrom(Make&& make, Label label, SourceLocation location) noexcept {
  EventHeader* event = InlineCell<T>::New(InlineCell<T>::kFlags | kPoisonable, label, location);
  Status thrown = ConstructPayload<T, true>(event, std::forward<Make>(make));
  if (!thrown.ok()) static_cast<void>(TrySetError(event, std::move(thrown)));
  return event;
}

/// Completes an inline cell of T with what `make()` returns. False, and `make` is not called, if it was completed
/// before.
template <typename T, typename Make>
bool EmplaceFrom(EventHeader* event, Make&& make) noexcept {
  if (!TryClaim(event)) return false;
  DestroyPayload(event);
  Status thrown = ConstructPayload<T>(event, std::forward<Make>(make));
  if (thrown.ok()) {
    PublishReady(event);
  } else {
    PublishError(event, std::move(thrown));
  }
  return true;
}

/// Claimed to error, whatever the kind. `error` is not OK.
inline void PublishFailure(EventHeader* event, Status error) noexcept {
  if ((FlagsOf(event) & kKeepPayloadOnError) == 0) DestroyPayload(event);
  PublishError(event, std::move(error));
}

/// Pending to error, whatever the kind; false if it was completed before. `error` is not OK.
inline bool FailValue(EventHeader* event, Status error) noexcept {
  if (!TryClaim(event)) return false;
  PublishFailure(event, std::move(error));
  return true;
}

/// Lets a claimed indirect cell show what `source`, which is terminal, shows. `adjust` turns the address of its value
/// into that of the target's.
template <typename Adjust>
void PublishForward(EventHeader* target, EventHeader* source, Adjust adjust) noexcept {
  if (ValueIfConstructed(source) != nullptr) {
    auto* payload = ::new (PayloadOf(target)) IndirectOwner();
    payload->value = adjust(ValueAddress(source));
    payload->owner = source;
    if ((FlagsOf(source) & kPayloadIndirect) != 0) {
      EventHeader* end = static_cast<IndirectPayload*>(PayloadOf(source))->owner;
      if (end != nullptr) payload->owner = end;
    }
    EventRetain(payload->owner);
    AddFlags(target, static_cast<std::uint16_t>(kPayloadConstructed | (FlagsOf(source) & kKeepPayloadOnError)));
  }
  if (StateOf(source) == kStateError) {
    PublishError(target, ErrorOf(source));
  } else {
    PublishReady(target);
  }
}

/// Adjusts nothing.
struct SameAddress {
  void* operator()(void* address) const noexcept { return address; }
};

/// Makes a claimed indirect cell follow `source` (borrowed).
template <typename Adjust>
void ForwardClaimed(EventHeader* target, EventHeader* source, Adjust adjust) noexcept {
  if (source == nullptr) {
    PublishError(target, FailedPreconditionError("an indirect value was forwarded to a null one", PlaceOf(target)));
  } else if (source == target) {
    PublishError(target, InternalError("an indirect value was forwarded to itself", PlaceOf(target)));
  } else if (IsTerminal(source)) {
    PublishForward(target, source, adjust);
  } else if (const StatusRep* cycle = EventFollow(target, source); cycle != nullptr) {
    PublishError(target, Status::FromRep(cycle));
  } else {
    EventRetain(target);
    // The source is alive while its waiters run, so the waiter needs no reference, and a source that is dropped unset
    // still fails the target.
    AttachPending(source,
                  [owed = Event::Adopt(target), source, adjust] { PublishForward(owed.header(), source, adjust); });
  }
}

/// Makes an indirect cell follow `source` (borrowed). False if it was set or forwarded before.
inline bool ForwardValue(EventHeader* target, EventHeader* source) noexcept {
  if (target->vtable == nullptr || (FlagsOf(target) & kPayloadIndirect) == 0 || !TryClaim(target)) return false;
  ForwardClaimed(target, source, SameAddress());
  return true;
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_ASYNC_VALUE_H_
