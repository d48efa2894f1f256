#include "purlin/dtype.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <string_view>

namespace purlin {
namespace {

struct Row {
  DType dtype;
  int pjrt_number;
  std::size_t byte_width;
  std::string_view name;
};

constexpr Row kRows[] = {
    {DType::kPred, 1, 1, "pred"},  {DType::kS8, 2, 1, "s8"},    {DType::kS16, 3, 2, "s16"},
    {DType::kS32, 4, 4, "s32"},    {DType::kS64, 5, 8, "s64"},  {DType::kU8, 6, 1, "u8"},
    {DType::kU16, 7, 2, "u16"},    {DType::kU32, 8, 4, "u32"},  {DType::kU64, 9, 8, "u64"},
    {DType::kF16, 10, 2, "f16"},   {DType::kF32, 11, 4, "f32"}, {DType::kF64, 12, 8, "f64"},
    {DType::kBF16, 13, 2, "bf16"}, {DType::kC64, 14, 8, "c64"}, {DType::kC128, 15, 16, "c128"},
};

TEST(DTypeTest, NumbersWidthsAndNamesAreThoseOfPjrtAndXla) {
  for (const Row& row : kRows) {
    EXPECT_EQ(static_cast<int>(row.dtype), row.pjrt_number);
    EXPECT_EQ(ByteWidth(row.dtype), row.byte_width) << row.name;
    EXPECT_EQ(DTypeName(row.dtype), row.name);
  }
}

TEST(DTypeTest, WhatIsNoTypeHasNoWidthAndIsCalledInvalid) {
  for (const int number : {0, 16, 17, 255}) {
    const auto dtype = static_cast<DType>(number);
    EXPECT_EQ(ByteWidth(dtype), 0U) << number;
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
