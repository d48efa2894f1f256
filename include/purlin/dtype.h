// Purlin: element types of typed buffers.
#ifndef PURLIN_DTYPE_H_
#define PURLIN_DTYPE_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "purlin/export.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// PJRT_Buffer_Type's numbers and XLA's names. Types narrower than a byte and the f8 family are not here yet.
enum class DType : std::uint8_t {
  /// No type.
  kInvalid = 0,
  /// One byte, 0 or 1.
  kPred = 1,
  /// Signed integers.
  kS8 = 2,
  kS16 = 3,
  kS32 = 4,
  kS64 = 5,
  /// Unsigned integers.
  kU8 = 6,
  kU16 = 7,
  kU32 = 8,
  kU64 = 9,
  /// IEEE 754 binary16, binary32, binary64.
  kF16 = 10,
  kF32 = 11,
  kF64 = 12,
  /// The upper half of a binary32.
  kBF16 = 13,
  /// Pairs of f32 and of f64, real part first.
  kC64 = 14,
  kC128 = 15,
};

/// Bytes per element; 0 for kInvalid and for numbers that are no DType.
PURLIN_API std::size_t ByteWidth(DType dtype) noexcept;
/// XLA's lower-case name, such as "f32"; "invalid" for what is no DType. Static storage.
PURLIN_API std::string_view DTypeName(DType dtype) noexcept;

namespace internal {
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::kPred;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::kS8;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::kS16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::kS32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kS64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kU8;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::kU16;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::kU32;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::kU64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<std::complex<float>> {
  static constexpr DType value = DType::kC64;
};
template <>
struct DTypeOf<std::complex<double>> {
  static constexpr DType value = DType::kC128;
};
}  // namespace internal

/// The DType of a C++ type: `kDTypeOf<float> == DType::kF32`. Does not compile for types that have none.
template <typename T>
constexpr DType kDTypeOf = internal::DTypeOf<T>::value;

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_DTYPE_H_
