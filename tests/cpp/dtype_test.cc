#include "purlin/dtype.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace purlin {
namespace {

struct Row {
  DType dtype;
  int pjrt_number;
  std::size_t bits;
  std::string_view name;
};

// PJRT_Buffer_Type of pjrt_c_api.h, and BitWidth and LowercasePrimitiveTypeName of xla/primitive_util.h.
constexpr Row kRows[] = {
    {DType::kPred, 1, 8, "pred"},
    {DType::kS8, 2, 8, "s8"},
    {DType::kS16, 3, 16, "s16"},
    {DType::kS32, 4, 32, "s32"},
    {DType::kS64, 5, 64, "s64"},
    {DType::kU8, 6, 8, "u8"},
    {DType::kU16, 7, 16, "u16"},
    {DType::kU32, 8, 32, "u32"},
    {DType::kU64, 9, 64, "u64"},
    {DType::kF16, 10, 16, "f16"},
    {DType::kF32, 11, 32, "f32"},
    {DType::kF64, 12, 64, "f64"},
    {DType::kBF16, 13, 16, "bf16"},
    {DType::kC64, 14, 64, "c64"},
    {DType::kC128, 15, 128, "c128"},
    {DType::kF8E5M2, 16, 8, "f8e5m2"},
    {DType::kF8E4M3FN, 17, 8, "f8e4m3fn"},
    {DType::kF8E4M3B11FNUZ, 18, 8, "f8e4m3b11fnuz"},
    {DType::kF8E5M2FNUZ, 19, 8, "f8e5m2fnuz"},
    {DType::kF8E4M3FNUZ, 20, 8, "f8e4m3fnuz"},
    {DType::kS4, 21, 4, "s4"},
    {DType::kU4, 22, 4, "u4"},
    {DType::kToken, 23, 0, "token"},
    {DType::kS2, 24, 2, "s2"},
    {DType::kU2, 25, 2, "u2"},
    {DType::kF8E4M3, 26, 8, "f8e4m3"},
    {DType::kF8E3M4, 27, 8, "f8e3m4"},
    {DType::kF8E8M0FNU, 28, 8, "f8e8m0fnu"},
    {DType::kF4E2M1FN, 29, 4, "f4e2m1fn"},
};

TEST(DTypeTest, NumbersWidthsAndNamesAreThoseOfPjrtAndXla) {
  int number = 0;
  for (const Row& row : kRows) {
    EXPECT_EQ(row.pjrt_number, ++number);
    EXPECT_EQ(static_cast<int>(row.dtype), row.pjrt_number);
    EXPECT_EQ(BitWidth(row.dtype), row.bits) << row.name;
    EXPECT_EQ(DTypeName(row.dtype), row.name);
  }
}

// Widths are constants of the header, names come from Rust, and most names tell the width.
TEST(DTypeTest, RustHasNamesForJustTheTypesThatHaveAWidthHere) {
  for (int number = 0; number < 256; ++number) {
    const auto dtype = static_cast<DType>(number);
    const std::string name(DTypeName(dtype));
    const std::size_t digits = name.find_first_of("0123456789");
    if (digits != std::string::npos) {
      EXPECT_EQ(BitWidth(dtype), std::stoul(name.substr(digits))) << name;
    } else {
      const std::set<std::string> without = {"pred", "token", "invalid"};
      EXPECT_EQ(without.count(name), 1U) << name;
      EXPECT_EQ(BitWidth(dtype), name == "pred" ? 8U : 0U) << name;
    }
  }
}

TEST(DTypeTest, AnElementNarrowerThanAByteIsAByteOnTheHost) {
  for (const Row& row : kRows) {
    const bool narrow = row.bits == 2 || row.bits == 4;
    EXPECT_EQ(IsSubByte(row.dtype), narrow) << row.name;
    EXPECT_EQ(ByteWidth(row.dtype), narrow ? 0 : row.bits / 8) << row.name;
    EXPECT_EQ(HostByteWidth(row.dtype), narrow ? 1 : row.bits / 8) << row.name;
  }
}

TEST(DTypeTest, WidthsAreConstants) {
  static_assert(BitWidth(DType::kS4) == 4 && HostByteWidth(DType::kS4) == 1 && IsSubByte(DType::kS4), "");
  static_assert(ByteWidth(DType::kC128) == 16 && ByteWidth(DType::kToken) == 0, "");
}

TEST(DTypeTest, WhatIsNoTypeHasNoWidthAndIsCalledInvalid) {
  for (const int number : {0, 30, 31, 255}) {
    const auto dtype = static_cast<DType>(number);
    EXPECT_EQ(BitWidth(dtype), 0U) << number;
    EXPECT_EQ(ByteWidth(dtype), 0U) << number;
    EXPECT_EQ(HostByteWidth(dtype), 0U) << number;
    EXPECT_FALSE(IsSubByte(dtype)) << number;
    EXPECT_EQ(DTypeName(dtype), "invalid") << number;
  }
}

template <typename T>
void ExpectWidthOf(DType dtype) {
  EXPECT_EQ(kDTypeOf<T>, dtype);
  EXPECT_EQ(ByteWidth(kDTypeOf<T>), sizeof(T)) << DTypeName(dtype);
}

TEST(DTypeTest, TypesOfCppHaveTheirWidth) {
  ExpectWidthOf<bool>(DType::kPred);
  ExpectWidthOf<std::int8_t>(DType::kS8);
  ExpectWidthOf<std::int16_t>(DType::kS16);
  ExpectWidthOf<std::int32_t>(DType::kS32);
  ExpectWidthOf<std::int64_t>(DType::kS64);
  ExpectWidthOf<std::uint8_t>(DType::kU8);
  ExpectWidthOf<std::uint16_t>(DType::kU16);
  ExpectWidthOf<std::uint32_t>(DType::kU32);
  ExpectWidthOf<std::uint64_t>(DType::kU64);
  ExpectWidthOf<float>(DType::kF32);
  ExpectWidthOf<double>(DType::kF64);
  ExpectWidthOf<std::complex<float>>(DType::kC64);
  ExpectWidthOf<std::complex<double>>(DType::kC128);
}

}  // namespace
}  // namespace purlin
