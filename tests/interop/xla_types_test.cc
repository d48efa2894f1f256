// purlin/adapters/xla_types.h, with XLA's own types and shapes that are inside TensorFlow.
#include "purlin/adapters/xla_types.h"

#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <utility>

namespace purlin {
namespace {

using adapters::FromXla;
using adapters::ToXla;

xla::Shape Need(absl::StatusOr<xla::Shape> shape) {
  EXPECT_TRUE(shape.ok()) << shape.status();
  return shape.value_or(xla::Shape());
}

TEST(XlaTypesTest, TypesShapesAndOrdersCrossBothWays) {
  int types = 0;
  for (int number = 1; DTypeName(static_cast<DType>(number)) != "invalid"; ++number, ++types) {
    const auto dtype = static_cast<DType>(number);
    const xla::PrimitiveType theirs = ToXla(dtype);
    EXPECT_EQ(FromXla(theirs).value(), dtype) << DTypeName(dtype);
    std::string name = xla::PrimitiveType_Name(theirs);
    for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
    EXPECT_EQ(name, DTypeName(dtype));
    const Shape shape = dtype == DType::kToken ? Shape::Token() : Shape(dtype, {2, 3});
    EXPECT_EQ(FromXla(Need(ToXla(shape))).value(), shape);
  }
  EXPECT_EQ(types, 29);
  EXPECT_EQ(ToXla(DType::kInvalid), xla::PRIMITIVE_TYPE_INVALID);
  EXPECT_EQ(ToXla(static_cast<DType>(200)), xla::PRIMITIVE_TYPE_INVALID);
  for (const xla::PrimitiveType type : {xla::PRIMITIVE_TYPE_INVALID, xla::S1, xla::U1, xla::TUPLE, xla::OPAQUE_TYPE})
    EXPECT_EQ(FromXla(type).status().code(), StatusCode::kUnimplemented);
  const bool flags[] = {false, true};
  const Shape dynamic(DType::kS32, {2, 3}, flags);
  EXPECT_EQ(FromXla(Need(ToXla(dynamic))).value(), dynamic);
  EXPECT_EQ(Need(ToXla(dynamic)).ToString(), "s32[2,<=3]");
  EXPECT_FALSE(ToXla(Shape(DType::kF32, {-1})).ok());
  EXPECT_EQ(FromXla(xla::ShapeUtil::MakeTupleShape({})).status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(FromXla(ToXla(Layout({1, 0, 2}))).value(), Layout({1, 0, 2}));
  const xla::Tile tile({8, 128});
  EXPECT_EQ(FromXla(xla::LayoutUtil::MakeLayout({1, 0}, {tile})).status().code(), StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace purlin
