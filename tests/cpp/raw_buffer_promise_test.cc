#include "purlin/raw_buffer_promise.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/client.h"
#include "purlin/raw_buffer.h"
#include "tests/cpp/raw_bytes.h"

namespace purlin {
namespace {

using Channel = std::pair<RawBuffer, RawBufferPromise>;

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

class RawBufferPromiseTest : public testing::Test {
 protected:
  static Client MakeClient() {
    ClientOptions options;
    options.device_count = 2;
    options.worker_count = 2;
    options.memory_limit_bytes = std::size_t{1} << 20;
    return Client::Create(options).value();
  }

  Channel Open(std::size_t size_bytes) const { return RawBuffer::CreateChannel(space_, size_bytes).value(); }

  RawBuffer Filled(const Bytes& bytes) const { return FilledIn(space_, bytes); }

  Client client_ = MakeClient();
  MemorySpace space_ = client_.devices()[0].default_memory_space();
};

TEST_F(RawBufferPromiseTest, AChannelHasASizeAndNoMemory) {
  const Channel channel = Open(1000);
  EXPECT_EQ(channel.first.on_device_size_bytes(), 1000U);
  EXPECT_EQ(channel.first.memory_space(), space_);
  EXPECT_FALSE(channel.first.allocation_event().IsReady());
  EXPECT_EQ(channel.first.host_pointer(), nullptr);
  EXPECT_TRUE(IsFailedPrecondition(channel.first.device_pointer().status()));
  EXPECT_TRUE(channel.first.is_mutable());
  EXPECT_EQ(space_.Stats().bytes_in_use, 0U);
}

TEST_F(RawBufferPromiseTest, AFulfilledChannelIsTheOtherBuffer) {
  auto [buffer, promise] = Open(6);
  const RawBuffer part = buffer.Slice(1, 2).value();
  Bytes early(6);
  const Event read = buffer.CopyToHost(early.data(), 0, 6);
  EXPECT_FALSE(read.IsReady());
  {
    const RawBuffer source = Filled({1, 2, 3, 4, 5, 6, 7, 8, 9});
    ASSERT_TRUE(promise.Fulfil(source.Slice(3, 6).value()).ok());
    EXPECT_EQ(*part.device_pointer(), *source.device_pointer() + 4);
  }
  EXPECT_TRUE(read.Wait().ok());
  EXPECT_EQ(early, (Bytes{4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(BytesIn(part), (Bytes{5, 6})) << "it keeps the memory";
}

TEST_F(RawBufferPromiseTest, AnAllocatedChannelHasMemoryOfItsOwn) {
  auto [buffer, promise] = Open(100);
  const Bytes bytes(100, 9);
  const Event copied = buffer.CopyFromHost(bytes.data(), 0, 100);
  EXPECT_FALSE(copied.IsReady());
  ASSERT_TRUE(promise.Allocate().ok());
  EXPECT_TRUE(copied.Wait().ok());
  EXPECT_EQ(BytesIn(buffer), bytes);
  EXPECT_EQ(space_.Stats().bytes_in_use, 100U);
}

TEST_F(RawBufferPromiseTest, MemoryThatDoesNotFitIsRefusedAndThePromiseStays) {
  auto [buffer, promise] = Open(100);
  const RawBuffer elsewhere = RawBuffer::Allocate(client_.devices()[1].default_memory_space(), 100).value();
  for (const RawBuffer& wrong : {elsewhere, RawBuffer::Allocate(space_, 99).value()}) {
    const Status status = promise.Fulfil(wrong);
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "100 bytes")) << status;
    EXPECT_FALSE(buffer.allocation_event().IsReady());
  }
  EXPECT_TRUE(IsInvalidArgument(promise.Allocate(static_cast<OomPolicy>(7))));
  EXPECT_FALSE(buffer.allocation_event().IsReady());
  EXPECT_TRUE(promise.Fulfil(RawBuffer::Allocate(space_, 100).value()).ok());
  EXPECT_TRUE(buffer.allocation_event().Wait().ok());
}

TEST_F(RawBufferPromiseTest, AFailedChannelFailsWhatWaitsForIt) {
  auto [buffer, promise] = Open(8);
  Bytes bytes(8);
  const Event copied = buffer.CopyToHost(bytes.data(), 0, 8);
  EXPECT_TRUE(promise.Fail(DataLossError("the tape broke")).ok());
  EXPECT_EQ(copied.Wait(), DataLossError("the tape broke"));
  EXPECT_EQ(buffer.device_pointer().status(), DataLossError("the tape broke"));
  EXPECT_EQ(buffer.Slice(1, 2)->CopyToHost(bytes.data(), 0, 2).Wait(), DataLossError("the tape broke"));

  auto [other, failed_with_ok] = Open(8);
  EXPECT_TRUE(failed_with_ok.Fail(OkStatus()).ok());
  EXPECT_TRUE(IsInternal(other.allocation_event().Wait()));
}

TEST_F(RawBufferPromiseTest, ADestroyedPromiseFailsItsBuffer) {
  std::optional<RawBuffer> buffer;
  {
    Channel channel = Open(8);
    buffer.emplace(std::move(channel.first));
  }
  const Status status = buffer->allocation_event().Wait();
  EXPECT_TRUE(IsInternal(status)) << status;
  EXPECT_TRUE(Contains(status.location().file(), "raw_buffer_promise_test.cc")) << status << ": where it was made";

  Channel first = Open(8);
  Channel second = Open(8);
  first.second = std::move(second.second);
  EXPECT_TRUE(IsInternal(first.first.allocation_event().Wait())) << "assigning destroys what was there";
  EXPECT_FALSE(second.first.allocation_event().IsReady());
}

TEST_F(RawBufferPromiseTest, ASpentPromiseIsAFailedPrecondition) {
  const RawBuffer memory = RawBuffer::Allocate(space_, 8).value();
  Channel fulfilled = Open(8);
  ASSERT_TRUE(fulfilled.second.Fulfil(memory).ok());
  Channel allocated = Open(8);
  ASSERT_TRUE(allocated.second.Allocate().ok());
  Channel failed = Open(8);
  ASSERT_TRUE(failed.second.Fail(AbortedError("no")).ok());
  Channel moved = Open(8);
  RawBufferPromise taken = std::move(moved.second);
  for (RawBufferPromise* spent : {&fulfilled.second, &allocated.second, &failed.second, &moved.second}) {
    EXPECT_TRUE(IsFailedPrecondition(spent->Fulfil(memory)));
    EXPECT_TRUE(IsFailedPrecondition(spent->Allocate()));
    EXPECT_TRUE(IsFailedPrecondition(spent->Fail(AbortedError("again"))));
  }
  EXPECT_TRUE(fulfilled.first.allocation_event().Wait().ok());
  EXPECT_TRUE(taken.Allocate().ok());
  EXPECT_TRUE(moved.first.allocation_event().Wait().ok());
}

TEST_F(RawBufferPromiseTest, ChannelsOfChannelsFollow) {
  Channel first = Open(64);
  Channel second = Open(64);
  ASSERT_TRUE(second.second.Fulfil(first.first).ok());
  EXPECT_FALSE(second.first.allocation_event().IsReady());
  ASSERT_TRUE(first.second.Allocate().ok());
  EXPECT_TRUE(second.first.allocation_event().Wait().ok());
  EXPECT_EQ(*first.first.device_pointer(), *second.first.device_pointer());
}

TEST_F(RawBufferPromiseTest, AChannelWithoutMemoryIsExhausted) {
  auto [buffer, promise] = Open(2 << 20);
  const Status status = promise.Allocate();
  EXPECT_TRUE(IsResourceExhausted(status)) << status;
  EXPECT_TRUE(status.GetPayload(kMemoryReportTypeUrl).has_value());
  EXPECT_EQ(buffer.allocation_event().Wait(), status);
}

TEST_F(RawBufferPromiseTest, AChannelMayWaitForMemory) {
  std::optional<RawBuffer> held(RawBuffer::Allocate(space_, 1 << 20).value());
  auto [buffer, promise] = Open(1000);
  EXPECT_TRUE(promise.Allocate(OomPolicy::kWait).ok());
  EXPECT_FALSE(buffer.allocation_event().IsReady());
  EXPECT_TRUE(IsFailedPrecondition(promise.Allocate())) << "it is spent";
  held.reset();
  EXPECT_TRUE(buffer.allocation_event().Wait().ok());
}

TEST_F(RawBufferPromiseTest, AWaiterMayDestroyThePromiseThatRunsIt) {
  for (const int how : {0, 1, 2}) {
    Channel channel = Open(8);
    auto owner = std::make_unique<RawBufferPromise>(std::move(channel.second));
    auto memory = std::make_unique<RawBuffer>(RawBuffer::Allocate(space_, 8).value());
    bool ran = false;
    channel.first.allocation_event().OnReady([&] {
      owner.reset();
      memory.reset();
      ran = true;
    });
    RawBufferPromise& promise = *owner;
    const Status status = how == 0   ? promise.Fulfil(*memory)
                          : how == 1 ? promise.Allocate()
                                     : promise.Fail(AbortedError("x"));
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(ran);
  }
}

TEST_F(RawBufferPromiseTest, MayBeKeptAfterItsReaderHasGone) {
  std::optional<Channel> channel(Open(64));
  RawBufferPromise promise = std::move(channel->second);
  channel.reset();
  EXPECT_TRUE(promise.Allocate().ok());
  EXPECT_EQ(space_.Stats().bytes_in_use, 0U);
}

}  // namespace
}  // namespace purlin
