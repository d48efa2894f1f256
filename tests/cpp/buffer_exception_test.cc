// Exceptions of an on_done stop at the boundary. Compiled with exceptions; the library is compiled without.
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <string>

#include "buffer_fixture.h"
#include "purlin/transfer.h"

#if !defined(__cpp_exceptions)
#error "this file tests exceptions"
#endif

namespace purlin {
namespace {

class BufferExceptionTest : public BufferFixture {};

TEST_F(BufferExceptionTest, FromAnOnDoneIsReportedAndTheBufferIsWell) {
  const std::array<std::uint8_t, 4> bytes = {1, 2, 3, 4};
  int calls = 0;
  testing::internal::CaptureStderr();
  const StatusOr<FromHostResult> made =
      Buffer::FromHost(bytes.data(), DType::kU8, {4}, space_, FromHostOptions(), [&calls](const Status&) {
        ++calls;
        throw std::runtime_error("done boom");
      });
  const std::string text = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(Contains(text, "purlin: exception in on_done of host memory: done boom\n")) << text;
  EXPECT_EQ(Read(made->buffer), (Bytes{1, 2, 3, 4}));
}

TEST_F(BufferExceptionTest, FromAnOnDoneOfAFailureLeavesTheErrorAsItIs) {
  testing::internal::CaptureStderr();
  const Status status =
      Buffer::FromHost(nullptr, DType::kU8, {4}, space_, FromHostOptions(), [](const Status&) { throw 7; }).status();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(text, "purlin: exception in on_done of host memory")) << text;
}

TEST_F(BufferExceptionTest, FromAnOnDoneOfAShardIsReportedAndTheOthersAreTold) {
  const std::array<std::uint8_t, 4> bytes = {1, 2, 3, 4};
  const HostShard plain = {bytes.data(), DType::kU8, {4}, space_};
  std::vector<HostShard> shards(2, plain);
  int calls = 0;
  shards[0].on_done = [&calls](const Status&) {
    ++calls;
    throw std::runtime_error("shard boom");
  };
  shards[1].on_done = [&calls](const Status&) { ++calls; };
  testing::internal::CaptureStderr();
  const StatusOr<std::vector<Buffer>> made = Buffer::FromHostShards(shards);
  const std::string text = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(Contains(text, "purlin: exception in on_done of a shard: shard boom\n")) << text;
  EXPECT_EQ(Read((*made)[1]), (Bytes{1, 2, 3, 4}));
}

TEST_F(BufferExceptionTest, FromAnOnDoneOfATransferIsReportedAndTheBufferIsWell) {
  const std::array<std::uint8_t, 4> bytes = {1, 2, 3, 4};
  AsyncHostToDeviceTransferManager manager =
      AsyncHostToDeviceTransferManager::Create({{Shape(DType::kU8, {4})}}, space_).value();
  testing::internal::CaptureStderr();
  const Status status = manager.TransferRawDataToBuffer(0, bytes.data(), bytes.size(),
                                                        [](const Status&) { throw std::runtime_error("piece boom"); });
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(Contains(text, "purlin: exception in on_done of a transfer: piece boom\n")) << text;
  EXPECT_EQ(Read(manager.RetrieveBuffer(0).value()), (Bytes{1, 2, 3, 4}));
}

}  // namespace
}  // namespace purlin
