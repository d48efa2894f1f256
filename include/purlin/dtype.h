// Purlin: element types of typed buffers.
//
// ```cpp
// static_assert(purlin::kDTypeOf<float> == purlin::DType::kF32);
// static_assert(purlin::ByteWidth(purlin::DType::kBF16) == 2);
// static_assert(purlin::BitWidth(purlin::DType::kS4) == 4 && purlin::HostByteWidth(purlin::DType::kS4) == 1);
// ```
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

/// PJRT_Buffer_Type's numbers and XLA's names. On a device, arrays are packed: elements narrower than a byte share
/// bytes, the first of them in the low bits. In the memory of the host, each has a byte of its own and is its low bits.
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
  /// 8-bit floats, named by their bits of exponent (E) and mantissa (M) and their bias (B). FN: finite values and NaN,
  /// no infinities. UZ: no negative zero.
  kF8E5M2 = 16,
  kF8E4M3FN = 17,
  kF8E4M3B11FNUZ = 18,
  kF8E5M2FNUZ = 19,
  kF8E4M3FNUZ = 20,
  /// 4-bit integers.
  kS4 = 21,
  kU4 = 22,
  /// No value: a token is passed on to order operations.
  kToken = 23,
  /// 2-bit integers.
  kS2 = 24,
  kU2 = 25,
  /// More 8-bit floats. kF8E8M0FNU is an exponent only.
  kF8E4M3 = 26,
  kF8E3M4 = 27,
  kF8E8M0FNU = 28,
  /// A 4-bit float.
  kF4E2M1FN = 29,
};

/// Bits per element of a packed array on a device, 2 to 128; 0 for kToken, for kInvalid, and for numbers that are no
/// DType.
constexpr std::size_t BitWidth(DType dtype) noexcept {
  switch (dtype) {
    case DType::kS2:
    case DType::kU2:
      return 2;
    case DType::kS4:
    case DType::kU4:
    case DType::kF4E2M1FN:
      return 4;
    case DType::kPred:
    case DType::kS8:
    case DType::kU8:
    case DType::kF8E5M2:
    case DType::kF8E4M3FN:
    case DType::kF8E4M3B11FNUZ:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E4M3:
    case DType::kF8E3M4:
    case DType::kF8E8M0FNU:
      return 8;
    case DType::kS16:
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16:
      return 16;
    case DType::kS32:
    case DType::kU32:
    case DType::kF32:
      return 32;
    case DType::kS64:
    case DType::kU64:
    case DType::kF64:
    case DType::kC64:
      return 64;
    case DType::kC128:
      return 128;
    case DType::kInvalid:
    case DType::kToken:
      return 0;
  }
  return 0;
}

/// Whether several elements share a byte on a device.
constexpr bool IsSubByte(DType dtype) noexcept { return BitWidth(dtype) % 8 != 0; }

/// Bytes per element where elements are whole bytes. 0 for types narrower than a byte, for which no number of bytes per
/// element is right on a device, and where BitWidth is 0.
constexpr std::size_t ByteWidth(DType dtype) noexcept { return BitWidth(dtype) / 8; }

/// Bytes per element in the memory of the host; 1 for types narrower than a byte, 0 where BitWidth is 0.
constexpr std::size_t HostByteWidth(DType dtype) noexcept { return (BitWidth(dtype) + 7) / 8; }

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
