// Purlin: how handles count, whose objects Rust makes and frees.
#ifndef PURLIN_CPP_INTERNAL_HANDLE_H_
#define PURLIN_CPP_INTERNAL_HANDLE_H_

#include "purlin/span.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// One more reference to `rep`, which may be null.
template <auto Retain, typename Rep>
Rep* Shared(Rep* rep) noexcept {
  if (rep != nullptr) Retain(rep);
  return rep;
}

/// One reference to `rep`, which may be null, less.
template <auto Release, typename Rep>
void GiveUp(Rep* rep) noexcept {
  if (rep != nullptr) Release(rep);
}

/// A span of handles is read as their pointers.
template <typename Rep, typename T>
const Rep* const* Words(Span<const T> handles) noexcept {
  static_assert(sizeof(T) == sizeof(const Rep*), "a handle is one word");
  return reinterpret_cast<const Rep* const*>(handles.data());
}

/// Whether none of them is empty.
template <typename T>
bool AllThere(Span<const T> handles) noexcept {
  for (const T& handle : handles) {
    if (handle.rep() == nullptr) return false;
  }
  return true;
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_HANDLE_H_
