// Layouts, and buffers that have one. (layout_test.cc is about the memory that both languages touch.)
#include "purlin/layout.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "buffer_fixture.h"
#include "tests/cpp/counting_allocations.h"

namespace purlin {
namespace {

class BufferLayoutTest : public BufferFixture {};

TEST_F(BufferLayoutTest, ShapeAndLayoutUpToRank4NeedNoAllocation) {
  const std::int64_t dims[] = {2, 3, 4, 5};
  const Buffer buffer = *Buffer::CreateUninitialized(Shape(DType::kF32, dims), space_);
  std::size_t ranks = 0;
  EXPECT_EQ(AllocationsOf([&] { ranks = buffer.layout().rank() + buffer.shape().rank(); }), 0);
  EXPECT_EQ(ranks, 8U);
  const std::int64_t many[] = {1, 2, 1, 2, 1, 2, 1, 2, 1};
  const Buffer deep = *Buffer::CreateUninitialized(Shape(DType::kF32, many), space_);
  EXPECT_EQ(deep.layout(), Layout::RowMajor(9));
  EXPECT_EQ(deep.shape(), Shape(DType::kF32, many));
}

TEST_F(BufferLayoutTest, ALayoutIsAPermutation) {
  const Layout layout({1, 0, 2});
  EXPECT_EQ(layout.rank(), 3U);
  EXPECT_EQ(layout.minor_to_major()[0], 1);
  EXPECT_EQ(layout.ToString(), "{1,0,2}");
  EXPECT_EQ(Layout::RowMajor(3), Layout({2, 1, 0}));
  EXPECT_NE(Layout::RowMajor(3), layout);
  EXPECT_EQ(Layout::RowMajor(0).ToString(), "{}");
}

TEST_F(BufferLayoutTest, WithoutOneABufferIsRowMajor) {
  const Buffer buffer = Six();
  EXPECT_EQ(buffer.layout(), Layout::RowMajor(2));
  EXPECT_EQ(buffer.shape(), Shape(DType::kU8, {2, 3}));
  EXPECT_EQ(ReadRaw(buffer), (Bytes{1, 2, 3, 4, 5, 6}));
}

TEST_F(BufferLayoutTest, ElementsStandAsTheLayoutSays) {
  const Bytes bytes = {1, 2, 3, 4, 5, 6};
  const Layout column_major({0, 1});
  FromHostOptions options;
  options.device_layout = &column_major;
  const Buffer buffer = Buffer::FromHost(bytes.data(), DType::kU8, {2, 3}, space_, options).value().buffer;
  EXPECT_EQ(buffer.layout(), column_major);
  EXPECT_EQ(ReadRaw(buffer), (Bytes{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(Read(buffer), bytes) << "the host reads row-major";
  EXPECT_EQ(buffer.CopyToDevice(client_.devices()[1])->layout(), column_major);
}

TEST_F(BufferLayoutTest, UnsoundLayoutsAreInvalidAndNamed) {
  const Bytes bytes(6);
  const std::pair<Layout, std::string_view> unsound[] = {
      {Layout({0, 0}), "entry 1 of layout {0,0} is 0"},
      {Layout({0, 2}), "entry 1 of layout {0,2} is 2"},
      {Layout({-1, 0}), "{-1,0}"},
      {Layout({0}), "{0}"},
      {Layout({2, 1, 0}), "u8[2,3] is of rank 2"},
  };
  const Shape shape(DType::kU8, {2, 3});
  const Buffer six = Six();
  const RawBuffer raw = RawBuffer::Allocate(space_, 6).value();
  for (const auto& [layout, named] : unsound) {
    FromHostOptions options;
    options.device_layout = &layout;
    for (const Status& status :
         {Buffer::FromHost(bytes.data(), DType::kU8, {2, 3}, space_, options).status(),
          Buffer::CreateUninitialized(shape, space_, &layout).status(), Buffer::FromRaw(raw, shape, &layout).status(),
          Buffer::CreateChannel(shape, space_, &layout).status(), six.Bitcast(shape, &layout).status()}) {
      EXPECT_TRUE(IsInvalidArgument(status)) << status;
      EXPECT_TRUE(Contains(status.message(), named)) << status;
    }
  }
  EXPECT_FALSE(six.IsDeleted());
}

TEST_F(BufferLayoutTest, LogicalDimensionsOfAStaticShapeAreItsDimensions) {
  EXPECT_EQ(Six().logical_dims().value(), (Dims{2, 3}));
  EXPECT_EQ(Of({1}, {}).logical_dims().value(), Dims());
}

TEST_F(BufferLayoutTest, LogicalDimensionsOfADynamicShapeAreInTheArray) {
  const Shape shape(DType::kU8, {4, 2}, {true, false});
  const RawBuffer raw = RawBuffer::Allocate(space_, shape.on_device_size_bytes().value()).value();
  const Buffer buffer = Buffer::FromRaw(raw, shape).value();
  EXPECT_EQ(buffer.shape(), shape);
  for (const auto& [sizes, is_sound] :
       {std::pair<std::vector<std::int32_t>, bool>({3, 2}, true), {{0, 2}, true}, {{5, 2}, false}, {{3, 1}, false}}) {
    ASSERT_TRUE(raw.CopyFromHost(sizes.data(), 8, 8).Wait().ok());
    const StatusOr<Dims> dims = buffer.logical_dims();
    if (is_sound) {
      EXPECT_EQ(dims.value(), (Dims{sizes[0], sizes[1]}));
    } else {
      EXPECT_TRUE(IsDataLoss(dims.status())) << dims.status();
    }
  }
  Bytes bytes(8);
  EXPECT_TRUE(IsInvalidArgument(buffer.CopyToHost(bytes.data(), 8).Wait())) << "a dynamic array has no dense form";
  buffer.Delete();
  EXPECT_TRUE(IsInvalidArgument(buffer.logical_dims().status()));
}

}  // namespace
}  // namespace purlin
