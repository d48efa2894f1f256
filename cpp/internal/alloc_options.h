// Purlin: AllocOptions as Rust takes them.
#ifndef PURLIN_CPP_INTERNAL_ALLOC_OPTIONS_H_
#define PURLIN_CPP_INTERNAL_ALLOC_OPTIONS_H_

#include <cstdint>

#include "cpp/internal/functions.h"
#include "purlin/alloc_options.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// Borrows from `options`. Rust knows the first version's size, so that no field of that one needs a look at
/// struct_size before it is read.
inline RawAllocOptions ToRust(const AllocOptions& options) noexcept {
  static_assert(sizeof(AllocOptions) == 40, "a field was added: read it only if struct_size reaches past it");
  return {options.struct_size, options.label.c_str(), options.alignment_bytes, options.after.header(),
          static_cast<std::int32_t>(options.oom)};
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_ALLOC_OPTIONS_H_
