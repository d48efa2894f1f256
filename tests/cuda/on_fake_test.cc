// The platform "cuda" seen from C++, on the fake driver (tests/fakecuda), which on_fake.sh brings, or on the driver of
// this machine, where a GPU is (scripts/gpu).

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "purlin/client.h"
#include "purlin/raw_buffer.h"

namespace purlin {
namespace {

using Bytes = std::vector<std::uint8_t>;

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

StatusOr<Client> Create(std::size_t device_count, bool virtual_devices = false) {
  ClientOptions options;
  options.device_count = device_count;
  options.worker_count = 2;
  options.platform = "cuda";
  options.virtual_devices = virtual_devices;
  return Client::Create(options);
}

/// How many devices the driver has.
std::size_t DriverDevices() {
  const char* count = std::getenv("PURLIN_GPU_DEVICES");
  if (count == nullptr) count = std::getenv("PURLIN_FAKECUDA_DEVICES");
  return count == nullptr ? 0 : static_cast<std::size_t>(std::atoi(count));
}

TEST(CudaTest, AllDevicesAreTakenIfNoneAreCounted) {
  ASSERT_GE(DriverDevices(), 1U) << "on_fake.sh and scripts/gpu say how many there are";
  StatusOr<Client> client = Create(0);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(client->devices().size(), DriverDevices());
  EXPECT_EQ(client->platform_name(), "cuda");
  const Status refused = Create(DriverDevices() + 1).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Contains(refused.message(), std::to_string(DriverDevices() + 1))) << refused;
}

TEST(CudaTest, MoreDevicesThanThereAreAreVirtualIfAsked) {
  StatusOr<Client> client = Create(DriverDevices() + 3, /*virtual_devices=*/true);
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_EQ(client->devices().size(), DriverDevices() + 3);
  for (std::size_t device = 0; device < client->devices().size(); ++device) {
    EXPECT_EQ(client->devices()[device].local_hardware_id(), static_cast<int>(device % DriverDevices()));
  }
}

TEST(CudaTest, BytesGoFromDeviceToDeviceAndBack) {
  // From one GPU to another, if there are several.
  StatusOr<Client> client = Create(std::max(DriverDevices(), std::size_t{2}), /*virtual_devices=*/true);
  ASSERT_TRUE(client.ok()) << client.status();
  const MemorySpace first_space = client->devices().front().default_memory_space();
  const MemorySpace last_space = client->devices().back().default_memory_space();
  for (const std::size_t size : {std::size_t{1}, std::size_t{100'000}, std::size_t{9} << 20}) {
    Bytes sent(size);
    std::iota(sent.begin(), sent.end(), std::uint8_t{1});
    const RawBuffer first = RawBuffer::Allocate(first_space, size).value();
    const RawBuffer second = RawBuffer::Allocate(last_space, size).value();
    Bytes received(size);
    const Event written = first.CopyFromHost(sent.data(), 0, size);
    const Event moved = first.CopyTo(second, {written});
    const Event read = second.CopyToHost(received.data(), 0, size, {moved});
    const Status status = read.Wait();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(sent, received);
  }
}

}  // namespace
}  // namespace purlin
