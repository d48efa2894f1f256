// Purlin: which type of value a reference shows, asked at run time.
//
// ```cpp
// struct Figure {
//   virtual ~Figure() = default;
// };
// struct Circle final : Figure {
//   float radius = 1;
// };
// purlin::AsyncValueRef<Figure> figure = purlin::MakeAvailableAsyncValueRef<Circle>();
// if (purlin::AsyncValueRef<Circle> circle = purlin::DynCastOrNull<Circle>(figure)) circle->radius = 2;
// ```
//
// Known are the type with which the value was made and, of an available indirect value, the type of the value that it
// shows. The classes between that type and the reference's are not known: a `B : A` made as a B, seen through a
// reference to A, is an A and a B; a `C : B` seen through A is an A and a C, but is not found to be a B. Errors are
// values of every type. Types are told apart by an address; hidden in two shared libraries, one type may count as two.
#ifndef PURLIN_ASYNC_VALUE_CAST_H_
#define PURLIN_ASYNC_VALUE_CAST_H_

#include <cassert>
#include <type_traits>

#include "purlin/async_value.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/async_value.h"
#include "purlin/internal/cell.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

namespace internal {

/// The cell that shows a `D`: `event`, or the one that it was forwarded to; null if neither does.
template <typename D>
EventHeader* FindPayloadType(EventHeader* event) noexcept {
  if (HasPayloadType<D>(event)) return event;
  if (!IsTerminal(event)) return nullptr;
  if ((FlagsOf(event) & kPayloadIndirect) == 0 || ValueIfConstructed(event) == nullptr) return nullptr;
  EventHeader* owner = static_cast<IndirectPayload*>(PayloadOf(event))->owner;
  return owner != nullptr && HasPayloadType<D>(owner) ? owner : nullptr;
}

}  // namespace internal

/// True if `value` is known to be a `D`, see above. False for null.
template <typename D, typename T>
[[nodiscard]] bool Isa(AsyncValuePtr<T> value) noexcept {
  if (!value) return false;
  return std::is_convertible_v<T*, D*> || value.IsError() || internal::FindPayloadType<D>(value.header()) != nullptr;
}
/// See above.
template <typename D, typename T>
[[nodiscard]] bool Isa(const AsyncValueRef<T>& value) noexcept {
  return Isa<D>(value.AsPtr());
}

/// `value` as a `D`, or null if it is null or not known to be one.
template <typename D, typename T>
[[nodiscard]] AsyncValueRef<D> DynCastOrNull(const AsyncValueRef<T>& value) noexcept {
  if (!Isa<D>(value)) return nullptr;
  if constexpr (std::is_convertible_v<T*, D*>) {
    return value;
  } else {
    if (internal::EventHeader* found = internal::FindPayloadType<D>(value.header()); found != nullptr) {
      return AsyncValuePtr<D>(found).CopyRef();
    }
    return value.GetError();
  }
}
/// As above, borrowed. Null also where a new cell would be needed: for an error with a payload of another type, and for
/// a base class that does not begin at the address of the whole.
template <typename D, typename T>
[[nodiscard]] AsyncValuePtr<D> DynCastOrNull(AsyncValuePtr<T> value) noexcept {
  if (!Isa<D>(value)) return nullptr;
  if constexpr (std::is_convertible_v<T*, D*>) {
    return internal::IsAtBeginning<D, T>() ? AsyncValuePtr<D>(value.header()) : nullptr;
  } else {
    if (internal::EventHeader* found = internal::FindPayloadType<D>(value.header()); found != nullptr) {
      return AsyncValuePtr<D>(found);
    }
    return internal::ValueIfConstructed(value.header()) == nullptr ? AsyncValuePtr<D>(value.header()) : nullptr;
  }
}

/// As DynCastOrNull, for a value that is not null.
template <typename D, typename T>
[[nodiscard]] AsyncValueRef<D> DynCast(const AsyncValueRef<T>& value) noexcept {
  assert(value && "DynCast of a null reference; DynCastOrNull takes it");
  return DynCastOrNull<D>(value);
}
/// See above.
template <typename D, typename T>
[[nodiscard]] AsyncValuePtr<D> DynCast(AsyncValuePtr<T> value) noexcept {
  assert(value && "DynCast of a null pointer; DynCastOrNull takes it");
  return DynCastOrNull<D>(value);
}

/// As DynCast, for a value that is known to be a `D`. Null, never a wrong type, if it is none.
template <typename D, typename T>
[[nodiscard]] AsyncValueRef<D> Cast(const AsyncValueRef<T>& value) noexcept {
  assert(Isa<D>(value) && "Cast to a type that the value does not have");
  return DynCastOrNull<D>(value);
}
/// See above.
template <typename D, typename T>
[[nodiscard]] AsyncValuePtr<D> Cast(AsyncValuePtr<T> value) noexcept {
  assert(Isa<D>(value) && "Cast to a type that the value does not have");
  return DynCastOrNull<D>(value);
}

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ASYNC_VALUE_CAST_H_
