// The platform "cuda" seen from C++, on the fake driver (tests/fakecuda), which on_fake.sh brings.

#include <gtest/gtest.h>

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

StatusOr<Client> Create(std::size_t device_count) {
  ClientOptions options;
  options.device_count = device_count;
  options.worker_count = 2;
  options.platform = "cuda";
  return Client::Create(options);
}

/// How many devices the fake driver has.
std::size_t FakeDevices() {
  const char* count = std::getenv("PURLIN_FAKECUDA_DEVICES");
  return count == nullptr ? 0 : static_cast<std::size_t>(std::atoi(count));
}

TEST(CudaTest, AllDevicesAreTakenIfNoneAreCounted) {
  ASSERT_GE(FakeDevices(), 2U) << "on_fake.sh says how many there are";
  StatusOr<Client> client = Create(0);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(client->devices().size(), FakeDevices());
  EXPECT_EQ(client->platform_name(), "cuda");
  const Status refused = Create(FakeDevices() + 1).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Contains(refused.message(), std::to_string(FakeDevices() + 1))) << refused;
}

TEST(CudaTest, MoreDevicesThanThereAreAreVirtualIfAsked) {
  ClientOptions options;
  options.device_count = FakeDevices() + 3;
  options.worker_count = 2;
  options.platform = "cuda";
  options.virtual_devices = true;
  StatusOr<Client> client = Client::Create(options);
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_EQ(client->devices().size(), FakeDevices() + 3);
  for (std::size_t device = 0; device < client->devices().size(); ++device) {
    EXPECT_EQ(client->devices()[device].local_hardware_id(), static_cast<int>(device % FakeDevices()));
  }
}

TEST(CudaTest, BytesGoFromDeviceToDeviceAndBack) {
  StatusOr<Client> client = Create(2);
  ASSERT_TRUE(client.ok()) << client.status();
  for (const std::size_t size : {std::size_t{1}, std::size_t{100'000}, std::size_t{9} << 20}) {
    Bytes sent(size);
    std::iota(sent.begin(), sent.end(), std::uint8_t{1});
    const RawBuffer first = RawBuffer::Allocate(client->devices()[0].default_memory_space(), size).value();
    const RawBuffer second = RawBuffer::Allocate(client->devices()[1].default_memory_space(), size).value();
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
