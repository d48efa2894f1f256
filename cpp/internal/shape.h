// Purlin: shapes, layouts and arrays of the host as Rust takes them.
#ifndef PURLIN_CPP_INTERNAL_SHAPE_H_
#define PURLIN_CPP_INTERNAL_SHAPE_H_

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "cpp/internal/functions.h"
#include "purlin/dtype.h"
#include "purlin/layout.h"
#include "purlin/shape.h"
#include "purlin/span.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// Borrows from `shape`.
inline RawShape ToRust(const Shape& shape) noexcept {
  return {shape.dims().data(), shape.rank(), shape.dynamic_flags().data(), shape.dynamic_flags().size(),
          static_cast<std::uint8_t>(shape.dtype())};
}

/// Borrows what the spans do.
inline RawHostArray ToRust(const void* data, DType dtype, Span<const std::int64_t> dims,
                           const std::optional<Span<const std::int64_t>>& byte_strides) noexcept {
  const Span<const std::int64_t> strides = byte_strides.value_or(Span<const std::int64_t>());
  return {static_cast<const std::uint8_t*>(data),
          dims.data(),
          dims.size(),
          strides.data(),
          strides.size(),
          byte_strides.has_value(),
          static_cast<std::uint8_t>(dtype)};
}

/// `number` at the end of `text`. Not by std::to_string, whose table of digits is a GNU unique symbol.
inline void AppendNumber(std::string& text, std::int64_t number) {
  char digits[24];
  std::snprintf(digits, sizeof(digits), "%" PRId64, number);
  text += digits;
}

/// A layout that may be missing; borrows from it.
class OptionalLayout {
 public:
  explicit OptionalLayout(const Layout* layout) noexcept {
    if (layout != nullptr) layout_ = {layout->minor_to_major().data(), layout->rank()};
    is_there_ = layout != nullptr;
  }
  /// Lives as long as this; null for none.
  const RawLayout* get() const noexcept { return is_there_ ? &layout_ : nullptr; }

 private:
  RawLayout layout_{};
  bool is_there_;
};

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_SHAPE_H_
