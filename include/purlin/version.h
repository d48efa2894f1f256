// Purlin: version numbers, of the headers (macros, constants) and of the library that was linked (functions).
//
// ```cpp
// static_assert(PURLIN_VERSION_MAJOR == 0);
// const bool is_sound = purlin::AbiVersion() == purlin::kAbiVersion;  // the library fits these headers
// ```
#ifndef PURLIN_VERSION_H_
#define PURLIN_VERSION_H_

#include <cstdint>

#include "purlin/export.h"

/// Version of these headers, as `major.minor.patch`.
#define PURLIN_VERSION_MAJOR 0
#define PURLIN_VERSION_MINOR 1
#define PURLIN_VERSION_PATCH 0
#define PURLIN_VERSION_STRING "0.1.0"

/// Everything public lives in `purlin::`; the inline namespace `v0` keeps two incompatible versions apart at link time.
namespace purlin {
inline namespace v0 {

/// The ABI of these headers: what they inline (`EventHeader`, `Waiter`, `TaskNode`), and option structs. Grows by one
/// with every incompatible change.
constexpr std::uint32_t kAbiVersion = 7;

/// The ABI version of the library that was linked. Equal to `kAbiVersion` in a sound build. Never blocks.
PURLIN_API std::uint32_t AbiVersion() noexcept;

/// The version of the library that was linked, such as "0.1.0"; static storage, ends with a NUL. Never blocks.
PURLIN_API const char* VersionString() noexcept;

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_VERSION_H_
