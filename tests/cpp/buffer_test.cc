#include "purlin/buffer.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <future>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/client.h"

namespace purlin {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kDeleted = "Buffer has been deleted or donated.";

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

Client MakeClient(std::string_view platform = "host") {
  ClientOptions options;
  options.device_count = 2;
  options.worker_count = 2;
  options.platform = platform;
  return Client::Create(options).value();
}

class BufferTest : public testing::Test {
 protected:
  StatusOr<Buffer> FromHost(const std::vector<float>& values, const std::vector<std::int64_t>& dims,
                            HostBufferSemantics semantics = HostBufferSemantics::kImmutableOnlyDuringCall) const {
    return Buffer::FromHost(values.data(), values.size() * sizeof(float), DType::kF32, dims, space_, semantics);
  }

  static std::vector<float> Read(const Buffer& buffer) {
    std::vector<float> values(buffer.on_device_size_bytes() / sizeof(float));
    const Status status = buffer.CopyToHost(values.data(), buffer.on_device_size_bytes()).Wait();
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }

  Client client_ = MakeClient();
  MemorySpace space_ = client_.devices()[0].default_memory_space();
};

TEST_F(BufferTest, KnowsWhatItIs) {
  const StatusOr<Buffer> buffer = FromHost({1, 2, 3, 4, 5, 6}, {2, 3});
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(buffer->dtype(), DType::kF32);
  EXPECT_EQ(std::vector<std::int64_t>(buffer->dims().begin(), buffer->dims().end()), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(buffer->on_device_size_bytes(), 24U);
  EXPECT_EQ(buffer->memory_space(), space_);
  EXPECT_EQ(buffer->device(), client_.devices()[0]);
  EXPECT_TRUE(buffer->ready_event().Wait().ok());
  EXPECT_FALSE(buffer->IsDeleted());
  EXPECT_EQ(Read(*buffer), (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST_F(BufferTest, ScalarsAndEmptyArraysAreArrays) {
  const Buffer scalar = FromHost({7}, {}).value();
  EXPECT_TRUE(scalar.dims().empty());
  EXPECT_EQ(Read(scalar), std::vector<float>{7});
  const Buffer empty = FromHost({}, {3, 0, 5}).value();
  EXPECT_EQ(empty.dims().size(), 3U);
  EXPECT_EQ(empty.on_device_size_bytes(), 0U);
  EXPECT_TRUE(empty.CopyToHost(nullptr, 0).Wait().ok());
  EXPECT_TRUE(empty.CopyToDevice(client_.devices()[1])->ready_event().Wait().ok());
}

TEST_F(BufferTest, TheHostMayForgetTheBytesWhenTheCallReturns) {
  for (const std::size_t count : {std::size_t{10}, std::size_t{100'000}}) {
    std::vector<float> values(count, 1.5F);
    const Buffer buffer = FromHost(values, {static_cast<std::int64_t>(count)}).value();
    values.assign(count, -1);
    EXPECT_EQ(Read(buffer), std::vector<float>(count, 1.5F));
  }
}

TEST_F(BufferTest, OrKeepThemUntilItIsReady) {
  std::vector<float> values(100'000);
  std::iota(values.begin(), values.end(), 0.0F);
  const Buffer buffer = FromHost(values, {100, 1'000}, HostBufferSemantics::kImmutableUntilTransferCompletes).value();
  ASSERT_TRUE(buffer.ready_event().Wait().ok());
  const std::vector<float> expected = values;
  values.assign(values.size(), -1);
  EXPECT_EQ(Read(buffer), expected);
}

TEST_F(BufferTest, WrongSizesAreInvalidAndBothAreNamed) {
  const Status status = FromHost({1, 2, 3}, {2, 2}).status();
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "16") && Contains(status.message(), "12")) << status;
  const Buffer buffer = FromHost({1, 2}, {2}).value();
  std::vector<float> back(4);
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{12}}) {
    const Status copy = buffer.CopyToHost(back.data(), size).Wait();
    EXPECT_TRUE(IsInvalidArgument(copy)) << copy;
    EXPECT_TRUE(Contains(copy.message(), "8") && Contains(copy.message(), std::to_string(size))) << copy;
  }
}

TEST_F(BufferTest, ShapesThatMakeNoSenseAreInvalidAndNamed) {
  const std::pair<std::vector<std::int64_t>, std::string_view> shapes[] = {
      {{2, -3}, "-3"},
      {{-1}, "-1"},
      {{kMax, kMax}, "9223372036854775807"},
      {{kMax}, "9223372036854775807"},
      {{1LL << 32, 1LL << 32}, "4294967296"},
  };
  const float value = 0;
  for (const auto& [dims, named] : shapes) {
    const Status status = Buffer::FromHost(&value, 4, DType::kF32, dims, space_).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), named)) << status;
  }
}

TEST_F(BufferTest, UnknownTypesSemanticsAndNullDataAreInvalid) {
  const float value = 0;
  for (const int dtype : {0, 30, 255}) {
    const Status status = Buffer::FromHost(&value, 4, static_cast<DType>(dtype), {1}, space_).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), std::to_string(dtype))) << status;
  }
  const Status semantics =
      Buffer::FromHost(&value, 4, DType::kF32, {1}, space_, static_cast<HostBufferSemantics>(9)).status();
  EXPECT_TRUE(IsInvalidArgument(semantics)) << semantics;
  EXPECT_TRUE(IsInvalidArgument(Buffer::FromHost(nullptr, 4, DType::kF32, {1}, space_).status()));
  const Buffer buffer = FromHost({1}, {1}).value();
  EXPECT_TRUE(IsInvalidArgument(buffer.CopyToHost(nullptr, 4).Wait()));
  EXPECT_EQ(space_.Stats().num_allocs, 1U) << "what was refused allocated nothing";
}

TEST_F(BufferTest, MemoryThatIsNotThereIsResourceExhausted) {
  const Client client = MakeClient("null");
  const MemorySpace space = client.devices()[0].default_memory_space();
  const std::size_t size = std::size_t{1} << 50;
  const char data = 0;  // Never read: the null backend holds no bytes, and there is no memory anyway.
  const Status status = Buffer::FromHost(&data, size, DType::kU8, {1LL << 50}, space).status();
  EXPECT_TRUE(IsResourceExhausted(status)) << status;
  EXPECT_TRUE(Contains(status.message(), std::to_string(size))) << status;
}

TEST_F(BufferTest, CopiesToDevicesAndSpaces) {
  const Buffer buffer = FromHost({1, 2, 3}, {3, 1}).value();
  for (const Device& device : client_.devices()) {
    const Buffer copy = buffer.CopyToDevice(device).value();
    EXPECT_EQ(copy.device(), device);
    EXPECT_EQ(copy.dims().size(), 2U);
    EXPECT_EQ(Read(copy), (std::vector<float>{1, 2, 3}));
    const MemorySpace pinned = device.memory_space("pinned_host").value();
    const Buffer moved = buffer.CopyToMemorySpace(pinned).value();
    EXPECT_EQ(moved.memory_space(), pinned);
    EXPECT_EQ(Read(moved), (std::vector<float>{1, 2, 3}));
  }
}

TEST_F(BufferTest, AnotherClientsDeviceIsInvalid) {
  const Client other = MakeClient();
  const Buffer buffer = FromHost({1}, {1}).value();
  EXPECT_TRUE(IsInvalidArgument(buffer.CopyToDevice(other.devices()[0]).status()));
  EXPECT_TRUE(IsInvalidArgument(buffer.CopyToMemorySpace(other.devices()[0].default_memory_space()).status()));
}

TEST_F(BufferTest, DeleteGivesTheMemoryUpThroughEveryReference) {
  const Buffer buffer = FromHost({1, 2}, {2}).value();
  const Buffer same = buffer;
  EXPECT_EQ(space_.Stats().bytes_in_use, 8U);
  buffer.Delete();
  buffer.Delete();
  EXPECT_TRUE(buffer.IsDeleted());
  EXPECT_TRUE(same.IsDeleted());
  EXPECT_EQ(space_.Stats().bytes_in_use, 0U);
  EXPECT_TRUE(same.ready_event().Wait().ok()) << "the event stays";
  EXPECT_EQ(same.dims().size(), 1U) << "the shape stays";
  std::vector<float> back(2);
  for (const Status& status : {same.CopyToHost(back.data(), 8).Wait(), same.CopyToDevice(client_.devices()[1]).status(),
                               same.CopyToMemorySpace(space_).status(), same.RawAlias().status()}) {
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), kDeleted)) << status;
  }
}

TEST_F(BufferTest, DeleteLeavesWorkInFlightItsMemory) {
  std::vector<float> values(100'000, 2.5F);
  const Buffer buffer = FromHost(values, {100'000}, HostBufferSemantics::kImmutableUntilTransferCompletes).value();
  std::vector<float> back(values.size());
  const Event copied = buffer.CopyToHost(back.data(), back.size() * sizeof(float));
  const Buffer other = buffer.CopyToDevice(client_.devices()[1]).value();
  buffer.Delete();
  EXPECT_TRUE(copied.Wait().ok());
  EXPECT_EQ(back, values);
  EXPECT_EQ(Read(other), values);
}

TEST_F(BufferTest, APendingReadToTheHostSurvivesDelete) {
  std::promise<void> gate;
  const std::shared_future<void> opened = gate.get_future().share();
  // Not an event: the pool would put other threads in the place of those that wait for one.
  for (std::size_t i = 0; i < client_.runner().NumThreads(); ++i) {
    ASSERT_TRUE(client_.runner().Schedule([opened] { opened.wait(); }).ok());
  }
  const std::vector<float> values(100'000, 2.5F);
  std::optional<Buffer> buffer =
      FromHost(values, {100'000}, HostBufferSemantics::kImmutableUntilTransferCompletes).value();
  std::vector<float> whole(values.size());
  std::vector<float> part(10);
  const Event events[] = {buffer->CopyToHost(whole.data(), whole.size() * sizeof(float)),
                          buffer->CopyRawToHost(part.data(), 4000, part.size() * sizeof(float))};
  buffer->Delete();
  buffer.reset();
  for (const Event& event : events) EXPECT_FALSE(event.IsReady());
  EXPECT_EQ(space_.Stats().bytes_in_use, values.size() * sizeof(float)) << "they keep the memory";
  gate.set_value();
  for (const Event& event : events) EXPECT_TRUE(event.Wait().ok()) << event.Wait();
  EXPECT_EQ(whole, values);
  EXPECT_EQ(part, std::vector<float>(10, 2.5F));
}

TEST_F(BufferTest, ARawAliasIsTheMemory) {
  const Buffer buffer = FromHost({1, 2}, {2}).value();
  const RawBuffer raw = buffer.RawAlias().value();
  EXPECT_EQ(raw.on_device_size_bytes(), 8U);
  EXPECT_EQ(raw.memory_space(), space_);
  EXPECT_EQ(static_cast<float*>(raw.host_pointer())[1], 2.0F);
  buffer.Delete();
  EXPECT_EQ(static_cast<float*>(raw.host_pointer())[0], 1.0F) << "the alias keeps the memory";
  EXPECT_EQ(space_.Stats().bytes_in_use, 8U);
}

TEST_F(BufferTest, FailureTravelsFromCopyToCopy) {
  const std::vector<float> values(100'000, 1.0F);
  ASSERT_TRUE(client_.runner().Shutdown().ok());
  const Buffer failed = FromHost(values, {100'000}, HostBufferSemantics::kImmutableUntilTransferCompletes).value();
  EXPECT_TRUE(IsCancelled(failed.ready_event().Wait()));
  std::vector<float> back(values.size());
  EXPECT_EQ(failed.CopyToHost(back.data(), back.size() * sizeof(float)).Wait(), failed.ready_event().error());
  const Buffer copy = failed.CopyToDevice(client_.devices()[1]).value();
  EXPECT_EQ(copy.ready_event().Wait(), failed.ready_event().error());
}

TEST_F(BufferTest, HandlesCopyMoveAndAssign) {
  Buffer a = FromHost({1}, {1}).value();
  Buffer b = std::move(a);
  a = FromHost({2}, {1}).value();
  EXPECT_EQ(Read(a), std::vector<float>{2});
  EXPECT_EQ(Read(b), std::vector<float>{1});
  a = b;
  Buffer& same = a;
  a = same;
  EXPECT_EQ(Read(a), std::vector<float>{1});
}

TEST_F(BufferTest, NullBuffersHaveShapesAndNoBytes) {
  const Client client = MakeClient("null");
  const float values[2] = {1, 2};
  const Buffer buffer =
      Buffer::FromHost(values, 8, DType::kF32, {2}, client.devices()[0].default_memory_space()).value();
  EXPECT_TRUE(buffer.ready_event().Wait().ok());
  EXPECT_TRUE(buffer.CopyToDevice(client.devices()[1])->ready_event().Wait().ok());
  float back[2];
  EXPECT_TRUE(IsUnimplemented(buffer.CopyToHost(back, 8).Wait()));
}

}  // namespace
}  // namespace purlin
