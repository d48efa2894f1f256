#include "purlin/shape.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace purlin {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(ShapeTest, IsATypeAndDimensions) {
  const Shape shape(DType::kF32, {2, 3});
  EXPECT_EQ(shape.dtype(), DType::kF32);
  EXPECT_EQ(std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end()), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(shape.rank(), 2U);
  EXPECT_FALSE(shape.is_dynamic());
  EXPECT_EQ(shape.ToString(), "f32[2,3]");
  EXPECT_EQ(Shape(DType::kS8).ToString(), "s8[]");
}

TEST(ShapeTest, SizesAreOfTheDeviceAndOfTheHost) {
  EXPECT_EQ(Shape(DType::kF32, {2, 3}).on_device_size_bytes().value(), 24U);
  EXPECT_EQ(Shape(DType::kF32).element_count().value(), 1);
  EXPECT_EQ(Shape(DType::kU2, {1, kMax}).element_count().value(), kMax);
  EXPECT_EQ(Shape(DType::kF32, {kMax, 0, kMax}).on_device_size_bytes().value(), 0U);
  const Shape narrow(DType::kS4, {3, 3});
  EXPECT_EQ(narrow.on_device_size_bytes().value(), 5U);
  EXPECT_EQ(narrow.host_size_bytes().value(), 9U);
  EXPECT_EQ(Shape::Token().on_device_size_bytes().value(), 0U);
  EXPECT_EQ(Shape::Token().element_count().value(), 0);
}

TEST(ShapeTest, DynamicDimensionsHaveTheirSizesBehindTheElements) {
  const Shape shape(DType::kF32, {2, 3}, {true, false});
  EXPECT_TRUE(shape.is_dynamic());
  EXPECT_TRUE(shape.is_dynamic_dimension(0));
  EXPECT_FALSE(shape.is_dynamic_dimension(1));
  EXPECT_FALSE(shape.is_dynamic_dimension(7));
  EXPECT_EQ(shape.on_device_size_bytes().value(), 24U + 2 * 4);
  EXPECT_EQ(shape.ToString(), "f32[<=2,3]");
}

TEST(ShapeTest, EqualityIsOfTypeDimensionsAndFlags) {
  const Shape shape(DType::kF32, {2, 3});
  EXPECT_EQ(shape, Shape(DType::kF32, {2, 3}));
  EXPECT_EQ(shape, Shape(DType::kF32, {2, 3}, {false, false})) << "flags that say nothing";
  EXPECT_NE(shape, Shape(DType::kF32, {2, 3}, {false, true}));
  EXPECT_NE(shape, Shape(DType::kS32, {2, 3}));
  EXPECT_NE(shape, Shape(DType::kF32, {3, 2}));
}

TEST(ShapeTest, CopiesAndAssignmentsHaveDimensionsOfTheirOwn) {
  for (const std::size_t rank : {0U, 1U, 4U, 5U, 40U}) {
    const std::vector<std::int64_t> dims(rank, 3);
    auto original = std::make_unique<Shape>(DType::kF32, dims);
    Shape copy = *original;
    Shape assigned(DType::kU8, {1, 2, 3, 4, 5, 6});
    assigned = *original;
    original.reset();
    EXPECT_EQ(copy, Shape(DType::kF32, dims));
    const Shape moved = std::move(copy);
    EXPECT_EQ(moved, assigned);
    copy = moved;
    EXPECT_EQ(copy.rank(), rank);
    copy = Shape(DType::kF32, {7});
    EXPECT_EQ(copy.ToString(), "f32[7]");
    EXPECT_EQ(moved, assigned);
  }
}

TEST(ShapeTest, UnsoundShapesAreInvalidAndNamed) {
  const std::pair<Shape, std::string_view> unsound[] = {
      {Shape(DType::kF32, {2, -3}), "f32[2,-3]"},
      {Shape(DType::kF32, {kMax, kMax}), "9223372036854775807"},
      {Shape(DType::kU8, {kMax, 2}), "u8[9223372036854775807,2] has 18446744073709551614 elements"},
      {Shape(DType::kToken, {1}), "token[1]"},
      {Shape(static_cast<DType>(99), {1}), "99"},
      {Shape(DType::kInvalid), "0 is no DType"},
      {Shape(DType::kF32, {2, 3}, {true}), "f32[2,3] has 2 dimensions, but 1"},
      {Shape(DType::kF32, {2}, {false, false}), "f32[2] has 1 dimensions, but 2"},
  };
  for (const auto& [shape, named] : unsound) {
    for (const Status& status :
         {shape.element_count().status(), shape.on_device_size_bytes().status(), shape.host_size_bytes().status()}) {
      EXPECT_TRUE(IsInvalidArgument(status)) << status;
      EXPECT_NE(status.message().find(named), std::string_view::npos) << status;
    }
  }
}

}  // namespace
}  // namespace purlin
