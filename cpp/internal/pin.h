// Purlin: keeps a shared library that uses Purlin from being unloaded.
#ifndef PURLIN_CPP_INTERNAL_PIN_H_
#define PURLIN_CPP_INTERNAL_PIN_H_

#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// Pins the shared library whose code is at `code`: dlclose() no longer unloads it, so that its statics are destroyed
/// when the process ends, not under the loader's lock, which threads that start or end need (purlin/label.h has the
/// rule). Nothing for code of the program itself, and in a program without a loader. Called where threads are made,
/// with the caller's return address.
void Pin(const void* code) noexcept;

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_PIN_H_
