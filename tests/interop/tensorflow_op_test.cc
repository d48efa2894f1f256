// purlin/adapters/tensorflow_op.h: tensors of the wheel as buffers. That ops run is in python/tensorflow_op_test.py.
#include "purlin/adapters/tensorflow_op.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "purlin/client.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

using adapters::FromTensorFlow;
using adapters::ToTensorFlow;
using tensorflow::Tensor;
using tensorflow::TensorShape;

class TensorFlowTensorTest : public testing::Test {
 protected:
  Client client = Client::Create().value();
  MemorySpace space = client.devices()[0].default_memory_space();
};

TEST(TensorFlowTypesTest, EveryElementTypeIsTheOneOfThatSize) {
  int known = 0;
  for (int number = tensorflow::DataType_MIN; number <= tensorflow::DataType_MAX; ++number) {
    if (!tensorflow::DataType_IsValid(number)) continue;
    const auto theirs = static_cast<tensorflow::DataType>(number);
    const DType ours = FromTensorFlow(theirs);
    if (ours == DType::kInvalid) continue;
    ++known;
    EXPECT_EQ(HostByteWidth(ours), static_cast<std::size_t>(tensorflow::DataTypeSize(theirs)))
        << tensorflow::DataType_Name(theirs) << " and " << DTypeName(ours);
  }
  EXPECT_EQ(known, 25);
  EXPECT_EQ(FromTensorFlow(tensorflow::DT_STRING), DType::kInvalid);
  EXPECT_EQ(FromTensorFlow(tensorflow::DT_FLOAT_REF), DType::kInvalid);
}

TEST(TensorFlowErrorTest, AUserContextBecomesText) {
  const UserContext context = UserContext::Create("train.py:42");
  const Status error = AnnotateWithUserContext(DataLossError("lost"), context);
  const absl::Status theirs = ToTensorFlow(error);
  EXPECT_EQ(theirs.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(theirs.message().find("train.py:42"), absl::string_view::npos) << theirs;
  EXPECT_EQ(ToTensorFlow(OkStatus()), absl::OkStatus());
}

TEST_F(TensorFlowTensorTest, AnInputIsAnArrayWhereItIs) {
  Tensor tensor(tensorflow::DT_INT32, TensorShape({2, 3}));
  tensor.flat<std::int32_t>().setConstant(7);
  const StatusOr<Buffer> buffer = FromTensorFlow(tensor, space);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(buffer->shape(), Shape(DType::kS32, {2, 3}));
  const RawBuffer memory = buffer->RawAlias().value();
  EXPECT_EQ(memory.host_pointer(), tensor.data());
  EXPECT_FALSE(memory.is_mutable());
  std::vector<std::int32_t> read(6);
  EXPECT_TRUE(buffer->CopyToHost(read.data(), 24).Wait().ok());
  EXPECT_EQ(read, std::vector<std::int32_t>(6, 7));
}

TEST_F(TensorFlowTensorTest, AnOutputIsWrittenWhereItIs) {
  Tensor tensor(tensorflow::DT_INT32, TensorShape({4}));
  const StatusOr<RawBuffer> memory = FromTensorFlow(&tensor, space);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const std::vector<std::int32_t> values = {1, 2, 3, 4};
  EXPECT_TRUE(memory->CopyFromHost(values.data(), 0, 16).Wait().ok());
  EXPECT_EQ(tensor.flat<std::int32_t>()(3), 4);
}

TEST_F(TensorFlowTensorTest, ABufferKeepsItsTensorAndLetsItGo) {
  Tensor tensor(tensorflow::DT_FLOAT, TensorShape({16}));
  ASSERT_EQ(tensor.RefCount(), 1);
  std::optional<Buffer> input = FromTensorFlow(tensor, space).value();
  std::optional<RawBuffer> output = FromTensorFlow(&tensor, space).value();
  EXPECT_EQ(tensor.RefCount(), 3);
  const RawBuffer slice = output->Slice(16, 16).value();
  input.reset();
  output.reset();
  EXPECT_EQ(tensor.RefCount(), 2) << "the slice is left";
  tensor = Tensor();
  EXPECT_TRUE(slice.CopyFromHost("sixteen letters!", 0, 16).Wait().ok()) << "alive";
}

TEST_F(TensorFlowTensorTest, WhatCannotBeUsedWhereItIsIsCopied) {
  Tensor tensor(tensorflow::DT_INT32, TensorShape({4, 1}));
  for (int i = 0; i < 4; ++i) tensor.flat<std::int32_t>()(i) = i;
  const Tensor slice = tensor.Slice(1, 4);
  const Buffer buffer = FromTensorFlow(slice, space).value();
  ASSERT_TRUE(buffer.ready_event().Wait().ok());
  EXPECT_NE(buffer.RawAlias().value().host_pointer(), slice.data());
  std::vector<std::int32_t> read(3);
  EXPECT_TRUE(buffer.CopyToHost(read.data(), 12).Wait().ok());
  EXPECT_EQ(read, (std::vector<std::int32_t>{1, 2, 3}));
  Tensor misplaced = tensor.Slice(1, 4);
  EXPECT_EQ(FromTensorFlow(&misplaced, space).status().code(), StatusCode::kInvalidArgument) << "an output is not";
}

TEST_F(TensorFlowTensorTest, WhatIsEmptyIsEmpty) {
  Tensor tensor(tensorflow::DT_FLOAT, TensorShape({0, 3}));
  EXPECT_EQ(FromTensorFlow(tensor, space)->on_device_size_bytes(), 0u);
  EXPECT_EQ(FromTensorFlow(&tensor, space)->on_device_size_bytes(), 0u);
  EXPECT_EQ(FromTensorFlow(Tensor(), space)->on_device_size_bytes(), 0u);
}

TEST_F(TensorFlowTensorTest, WhatHasNoElementTypeIsAnErrorThatSaysWhich) {
  Tensor tensor(tensorflow::DT_STRING, TensorShape({1}));
  for (const Status& error : {FromTensorFlow(tensor, space).status(), FromTensorFlow(&tensor, space).status()}) {
    EXPECT_EQ(error.code(), StatusCode::kUnimplemented);
    EXPECT_NE(error.message().find("DT_STRING"), std::string_view::npos) << error;
  }
  EXPECT_EQ(FromTensorFlow(static_cast<Tensor*>(nullptr), space).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace purlin
