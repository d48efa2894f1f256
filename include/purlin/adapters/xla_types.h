// Purlin's adapter for XLA's names of types, shapes and orders of dimensions.
//
//   absl::StatusOr<xla::Shape> theirs = purlin::adapters::ToXla(buffer.shape());
//
// Values are copied; nothing here blocks. For the wheel of tensorflow-cpu 2.21.
#ifndef PURLIN_ADAPTERS_XLA_TYPES_H_
#define PURLIN_ADAPTERS_XLA_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "purlin/adapters/absl.h"
#include "purlin/dtype.h"
#include "purlin/layout.h"
#include "purlin/shape.h"
#include "purlin/source_location.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"
#include "xla/layout.h"
#include "xla/shape.h"
#include "xla/shape_util.h"
#include "xla/xla_data.pb.h"

namespace purlin {
inline namespace v0 {
namespace adapters {

/// XLA's name for an element type: both sides have the same types under different numbers. PRIMITIVE_TYPE_INVALID for
/// kInvalid, and for what is no DType.
constexpr xla::PrimitiveType ToXla(DType dtype) noexcept {
  // In the order of DType.
  constexpr xla::PrimitiveType kTheirs[] = {xla::PRIMITIVE_TYPE_INVALID,
                                            xla::PRED,
                                            xla::S8,
                                            xla::S16,
                                            xla::S32,
                                            xla::S64,
                                            xla::U8,
                                            xla::U16,
                                            xla::U32,
                                            xla::U64,
                                            xla::F16,
                                            xla::F32,
                                            xla::F64,
                                            xla::BF16,
                                            xla::C64,
                                            xla::C128,
                                            xla::F8E5M2,
                                            xla::F8E4M3FN,
                                            xla::F8E4M3B11FNUZ,
                                            xla::F8E5M2FNUZ,
                                            xla::F8E4M3FNUZ,
                                            xla::S4,
                                            xla::U4,
                                            xla::TOKEN,
                                            xla::S2,
                                            xla::U2,
                                            xla::F8E4M3,
                                            xla::F8E3M4,
                                            xla::F8E8M0FNU,
                                            xla::F4E2M1FN};
  const auto number = static_cast<std::size_t>(dtype);
  return number < std::size(kTheirs) ? kTheirs[number] : xla::PRIMITIVE_TYPE_INVALID;
}

namespace internal {

// DTypes by XLA's numbers; kInvalid where Purlin has none.
struct DTypesOfXla {
  DType at[64] = {};

  constexpr DTypesOfXla() noexcept {
    for (int number = 1; ToXla(static_cast<DType>(number)) != xla::PRIMITIVE_TYPE_INVALID; ++number)
      at[ToXla(static_cast<DType>(number))] = static_cast<DType>(number);
  }
};
inline constexpr DTypesOfXla kDTypesOfXla;

}  // namespace internal

/// The other way. kUnimplemented, naming the number: s1, u1, and what is no array.
inline StatusOr<DType> FromXla(xla::PrimitiveType type, SourceLocation location = SourceLocation::Current()) {
  const auto number = static_cast<std::size_t>(type);
  const DType dtype =
      number < std::size(internal::kDTypesOfXla.at) ? internal::kDTypesOfXla.at[number] : DType::kInvalid;
  if (dtype != DType::kInvalid) return dtype;
  return UnimplementedError("Purlin has no name for xla::PrimitiveType " + std::to_string(static_cast<int>(type)),
                            location);
}

/// The same element type and dimensions, also dynamic ones; no layout. kInvalidArgument: XLA refuses it.
inline absl::StatusOr<xla::Shape> ToXla(const Shape& shape) {
  if (shape.dtype() == DType::kToken) return xla::ShapeUtil::MakeTokenShape();
  if (!shape.is_dynamic()) return xla::ShapeUtil::MakeValidatedShape(ToXla(shape.dtype()), ToAbsl(shape.dims()));
  std::vector<bool> dynamic(shape.rank());
  for (std::size_t axis = 0; axis < dynamic.size(); ++axis) dynamic[axis] = shape.is_dynamic_dimension(axis);
  return xla::ShapeUtil::MakeValidatedShape(ToXla(shape.dtype()), ToAbsl(shape.dims()), dynamic);
}

/// The same order of dimensions.
inline xla::Layout ToXla(const Layout& layout) { return xla::Layout(ToAbsl(layout.minor_to_major())); }

/// The same element type and dimensions; its layout is left behind. kUnimplemented: no array or token, or a type that
/// Purlin has not.
inline StatusOr<Shape> FromXla(const xla::Shape& shape, SourceLocation location = SourceLocation::Current()) {
  if (shape.IsToken()) return Shape::Token();
  if (!shape.IsArray()) return UnimplementedError(shape.ToString() + " is no array", location);
  StatusOr<DType> dtype = FromXla(shape.element_type(), location);
  if (!dtype.ok()) return dtype.status();
  if (shape.is_static()) return Shape(*dtype, FromAbsl(shape.dimensions()));
  return Shape(*dtype, FromAbsl(shape.dimensions()), FromAbsl(shape.dynamic_dimensions()));
}

/// The same order of dimensions. kUnimplemented: tiles, which Purlin has not.
inline StatusOr<Layout> FromXla(const xla::Layout& layout, SourceLocation location = SourceLocation::Current()) {
  if (!layout.tiles().empty()) return UnimplementedError("a layout with tiles: " + layout.ToString(), location);
  return Layout(FromAbsl(absl::Span<const std::int64_t>(layout.minor_to_major())));
}

}  // namespace adapters
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ADAPTERS_XLA_TYPES_H_
