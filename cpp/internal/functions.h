// Purlin: the plain functions of rust/bridge, as cbindgen declares them, and what all that call them convert.
#ifndef PURLIN_CPP_INTERNAL_FUNCTIONS_H_
#define PURLIN_CPP_INTERNAL_FUNCTIONS_H_

#include <string_view>
#include <type_traits>

#include "purlin-bridge/functions.h"
#include "purlin/source_location.h"

namespace purlin {
inline namespace v0 {
namespace internal {

// Rust reads it as a pointer and a number, in this order.
static_assert(sizeof(SourceLocation) == 16 && std::is_standard_layout_v<SourceLocation> &&
                  std::is_trivially_copyable_v<SourceLocation>,
              "a SourceLocation crosses as it is");

inline std::string_view FromRust(Bytes bytes) noexcept { return {bytes.data, bytes.size_bytes}; }

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_FUNCTIONS_H_
