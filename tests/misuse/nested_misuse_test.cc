// Misuse: callbacks that make the library call them again, ten thousand deep, and its calls that block inside
// callbacks.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/buffer.h"
#include "purlin/client.h"
#include "purlin/npy.h"
#include "purlin/raw_buffer.h"
#include "purlin/safetensors.h"
#include "purlin/transfer.h"
#include "tests/cpp/testing.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

AsyncHostToDeviceTransferManager TransferOf(const MemorySpace& space, std::int64_t size_bytes) {
  const std::vector<std::int64_t> dims = {size_bytes};
  const TransferSpec specs[] = {{Shape(DType::kU8, dims)}};
  return AsyncHostToDeviceTransferManager::Create(specs, space).value();
}

TEST(NestedMisuse, AnOnDoneMayHandInTheNextOfTwentyThousandPieces) {
  OnSmallStack([] {
    constexpr std::int64_t kPieces = 20000;
    const Client client = HostClient();
    AsyncHostToDeviceTransferManager transfer = TransferOf(SpaceOf(client), kPieces);
    const Buffer buffer = transfer.RetrieveBuffer(0).value();
    const std::uint8_t byte = 7;
    std::int64_t handed_in = 0;
    std::function<void(Status)> next = [&](const Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      if (handed_in == kPieces) return;
      const std::int64_t at = handed_in++;
      EXPECT_TRUE(Ok(transfer.TransferRawDataToSubBuffer(0, &byte, static_cast<std::size_t>(at), 1, at + 1 == kPieces,
                                                         [&next](const Status& told) { next(told); })));
    };
    next(OkStatus());
    EXPECT_TRUE(Ok(buffer.ready_event()));
    EXPECT_EQ(handed_in, kPieces);
  });
}

TEST(NestedMisuse, AHookThatAsksWithRetryIsNotCalledForThat) {
  ClientOptions options;
  options.memory_limit_bytes = 1 << 20;
  std::optional<MemorySpace> space;
  AllocOptions retry;
  retry.oom = OomPolicy::kRetry;
  int calls = 0;
  options.on_out_of_memory = [&](const MemoryReport&) {
    ++calls;
    EXPECT_TRUE(IsResourceExhausted(RawBuffer::Allocate(*space, 1 << 20, retry).status()));
    return true;
  };
  const Client client = Client::Create(options).value();
  space = SpaceOf(client);
  const RawBuffer held = RawBuffer::Allocate(*space, 1 << 19).value();
  EXPECT_TRUE(IsResourceExhausted(RawBuffer::Allocate(*space, 1 << 20, retry).status()));
  EXPECT_EQ(calls, 1000);
  EXPECT_TRUE(IsResourceExhausted(RawBuffer::Allocate(*space, 1 << 20, retry).status()));
  EXPECT_EQ(calls, 2000) << "the next one is asked for as the first was";
}

TEST(NestedMisuse, CallsThatBlockInAnOnDoneForItsOwnBufferAreToldSo) {
  const Client client = HostClient(1, 1);
  const std::string folder = testing::TempDir();
  const std::vector<std::uint8_t> bytes(300000, 7);
  using Call = std::function<Status(const Buffer&)>;
  const std::pair<const char*, Call> calls[] = {
      {"WriteNpy", [&](const Buffer& buffer) { return WriteNpy(folder + "/nested.npy", buffer); }},
      {"WriteSafetensors",
       [&](const Buffer& buffer) { return WriteSafetensors(folder + "/nested.safetensors", {{"a", buffer}}); }},
      {"ReleaseDeviceMemoryOwnership",
       [](const Buffer& buffer) { return buffer.ReleaseDeviceMemoryOwnership(true).status(); }},
      {"FromHost",
       [&](const Buffer& buffer) {
         FromHostOptions options;
         options.alloc.after = buffer.ready_event();
         return Buffer::FromHost(bytes.data(), DType::kU8, {64}, SpaceOf(client), options).status();
       }},
  };
  for (const auto& [name, call] : calls) {
    AsyncHostToDeviceTransferManager transfer = TransferOf(SpaceOf(client), 300000);
    const Buffer buffer = transfer.RetrieveBuffer(0).value();
    std::promise<Status> inside;
    ASSERT_TRUE(Ok(transfer.TransferRawDataToBuffer(
        0, bytes.data(), bytes.size(), [&, &call = call](const Status&) { inside.set_value(call(buffer)); })));
    EXPECT_TRUE(Fails(inside.get_future().get(), StatusCode::kFailedPrecondition, {"would never end"})) << name;
    EXPECT_TRUE(Ok(buffer.ready_event())) << name;
    EXPECT_FALSE(buffer.IsDeleted()) << name;
    EXPECT_TRUE(Ok(call(buffer))) << name << " afterwards";
  }
  std::filesystem::remove(folder + "/nested.npy");
  std::filesystem::remove(folder + "/nested.safetensors");
}

TEST(NestedMisuse, AManagerDoesNotKeepTheMemoryOfBuffersThatAreDone) {
  const Client client = HostClient();
  const MemorySpace space = SpaceOf(client);
  const std::vector<std::uint8_t> bytes(4096, 7);
  AsyncHostToDeviceTransferManager transfer = TransferOf(space, 4096);
  const Buffer buffer = transfer.RetrieveBuffer(0).value();
  ASSERT_TRUE(Ok(transfer.TransferRawDataToBuffer(0, bytes.data(), bytes.size(), [](const Status&) {})));
  EXPECT_TRUE(Ok(buffer.ready_event()));
  buffer.Delete();
  EXPECT_EQ(space.Stats().bytes_in_use, 0U);
  EXPECT_TRUE(Fails(transfer.TransferRawDataToBuffer(0, bytes.data(), bytes.size(), [](const Status&) {}),
                    StatusCode::kInvalidArgument, {"already been fully transferred"}));

  AsyncHostToDeviceTransferManager fails = TransferOf(space, 4096);
  const Buffer failed = fails.RetrieveBuffer(0).value();
  EXPECT_TRUE(Ok(fails.SetBufferError(0, DataLossError("half a file"))));
  failed.Delete();
  EXPECT_EQ(space.Stats().bytes_in_use, 0U);
  EXPECT_TRUE(
      Fails(fails.TransferRawDataToBuffer(0, bytes.data(), bytes.size(), [](const Status&) {}), StatusCode::kDataLoss));
}

}  // namespace
}  // namespace purlin
