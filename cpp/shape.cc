#include "purlin/shape.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "cpp/internal/convert.h"
#include "cpp/internal/shape.h"
#include "purlin-bridge/src/shape.rs.h"

namespace purlin {
inline namespace v0 {
namespace {

template <class T>
StatusOr<T> Size(const Shape& shape, T ffi::ShapeSizes::* size) {
  ffi::ShapeSizes sizes{};
  const internal::StatusRep* error =
      ffi::shape_sizes(internal::ToRust(shape.dims()), internal::ToRust(shape.dynamic_flags()),
                       static_cast<std::uint8_t>(shape.dtype()), sizes);
  if (error != nullptr) return Status::FromRep(error);
  return sizes.*size;
}

}  // namespace

Shape::Shape(DType dtype, Span<const std::int64_t> dims) : dtype_(dtype), dims_(dims) {}

Shape::Shape(DType dtype, Span<const std::int64_t> dims, Span<const bool> dynamic)
    : dtype_(dtype), dims_(dims), dynamic_(dynamic.begin(), dynamic.end()) {
  // A wrong number of flags is kept, so that the check of the shape finds it.
  const bool is_static = std::find(dynamic.begin(), dynamic.end(), true) == dynamic.end();
  if (is_static && dynamic.size() == dims.size()) dynamic_.clear();
}

StatusOr<std::int64_t> Shape::element_count() const { return Size(*this, &ffi::ShapeSizes::element_count); }

StatusOr<std::size_t> Shape::on_device_size_bytes() const {
  return Size(*this, &ffi::ShapeSizes::on_device_size_bytes);
}

StatusOr<std::size_t> Shape::host_size_bytes() const { return Size(*this, &ffi::ShapeSizes::host_size_bytes); }

std::string Shape::ToString() const {
  std::string text(DTypeName(dtype_));
  text += '[';
  for (std::size_t axis = 0; axis < rank(); ++axis) {
    if (axis > 0) text += ',';
    if (is_dynamic_dimension(axis)) text += "<=";
    internal::AppendNumber(text, dims()[axis]);
  }
  return text += ']';
}

}  // namespace v0
}  // namespace purlin
