// Purlin: text and bytes for the plain functions of rust/bridge.
#ifndef PURLIN_CPP_INTERNAL_BYTES_H_
#define PURLIN_CPP_INTERNAL_BYTES_H_

#include <string_view>

#include "cpp/internal/functions.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// Borrows from `text`.
inline Bytes ToBytes(std::string_view text) noexcept { return {text.data(), text.size()}; }

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_BYTES_H_
