// Purlin: how handles count, whose objects Rust makes and frees.
#ifndef PURLIN_CPP_INTERNAL_HANDLE_H_
#define PURLIN_CPP_INTERNAL_HANDLE_H_

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

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_HANDLE_H_
