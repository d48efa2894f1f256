// Purlin: an element type and dimensions.
//
// ```cpp
// const purlin::Shape weights(purlin::DType::kF32, {1024, 256});
// const purlin::StatusOr<std::size_t> size_bytes = weights.on_device_size_bytes();
// if (!size_bytes.ok()) return size_bytes.status();  // kInvalidArgument: an unsound shape
// ```
//
// [dim0, dim1, ...]: no dimensions is a scalar (one element), a dimension of 0 an empty array (no bytes). A dynamic
// dimension is known when the program runs; the shape has the most that it can be, and memory is for that.
//
// A Shape is not checked when it is made. The calls that take it check it, and fail with kInvalidArgument, naming the
// shape: a negative dimension; more bytes than an address can count, or more elements than an int64_t (an empty array
// is sound however large its other dimensions are); a token with dimensions; no DType; flags for another number of
// dimensions than there are. "An unsound shape" below stands for all of these.
#ifndef PURLIN_SHAPE_H_
#define PURLIN_SHAPE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "purlin/dtype.h"
#include "purlin/export.h"
#include "purlin/internal/few_numbers.h"
#include "purlin/span.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// A value: copies are independent. Many readers or one writer, as for any value. Static shapes up to rank 4 allocate
/// nothing.
class Shape final {
 public:
  /// Dimensions as given, outermost first, all of them static; none: a scalar. Nothing is checked.
  PURLIN_API explicit Shape(DType dtype, Span<const std::int64_t> dims = {});
  /// As above, with dims[i] an upper bound where dynamic[i]. Write one flag for each dimension; nothing is checked.
  PURLIN_API Shape(DType dtype, Span<const std::int64_t> dims, Span<const bool> dynamic);
  /// The shape of a token: no elements, no bytes.
  static Shape Token() { return Shape(DType::kToken); }

  /// Element type.
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  /// Dimensions, outermost first; upper bounds where they are dynamic. The span lives as long as the shape, unchanged.
  [[nodiscard]] Span<const std::int64_t> dims() const noexcept { return dims_.span(); }
  /// Number of dimensions.
  [[nodiscard]] std::size_t rank() const noexcept { return dims_.span().size(); }
  /// Whether any dimension is dynamic.
  [[nodiscard]] bool is_dynamic() const noexcept { return !dynamic_.empty(); }
  /// Whether that dimension is dynamic; false for a dimension that there is not.
  [[nodiscard]] bool is_dynamic_dimension(std::size_t axis) const noexcept {
    return axis < dynamic_.size() && dynamic_[axis] != 0;
  }

  /// product(dims); 1 for a scalar, 0 for a token. kInvalidArgument: an unsound shape.
  [[nodiscard]] PURLIN_API StatusOr<std::int64_t> element_count() const;
  /// Bytes of a buffer: ceil(element_count() * BitWidth(dtype()) / 8), and behind them, if the shape is dynamic, an
  /// int32 for each dimension (also the static ones) that says its actual size. kInvalidArgument: an unsound shape.
  [[nodiscard]] PURLIN_API StatusOr<std::size_t> on_device_size_bytes() const;
  /// Bytes in the memory of the host: element_count() * HostByteWidth(dtype()). kInvalidArgument: an unsound shape.
  [[nodiscard]] PURLIN_API StatusOr<std::size_t> host_size_bytes() const;

  /// As XLA writes it: "f32[2,3]", and "f32[<=2,3]" if the first dimension is dynamic.
  [[nodiscard]] PURLIN_API std::string ToString() const;

  /// The same type, dimensions and flags.
  friend bool operator==(const Shape& a, const Shape& b) noexcept {
    return a.dtype_ == b.dtype_ && a.dims_ == b.dims_ && a.dynamic_ == b.dynamic_;
  }
  /// Another shape.
  friend bool operator!=(const Shape& a, const Shape& b) noexcept { return !(a == b); }

  /// For Purlin's own files: a flag for each dimension, or none at all if all of them are static.
  Span<const std::uint8_t> dynamic_flags() const noexcept { return dynamic_; }

 private:
  DType dtype_;
  internal::FewNumbers dims_;
  std::vector<std::uint8_t> dynamic_;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_SHAPE_H_
