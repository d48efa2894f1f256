#include "purlin/device.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/client.h"
#include "purlin/raw_buffer.h"

namespace purlin {
namespace {

Client MakeClient(std::size_t device_count, std::string_view platform = "host") {
  ClientOptions options;
  options.device_count = device_count;
  options.worker_count = 1;
  options.platform = platform;
  return Client::Create(options).value();
}

TEST(DeviceTest, IsNamedByItsBackendAndIndex) {
  for (const std::string_view platform : {"host", "null"}) {
    const Client client = MakeClient(3, platform);
    const Device device = client.devices()[2];
    EXPECT_EQ(device.id(), 2);
    EXPECT_EQ(device.kind(), platform);
    EXPECT_EQ(device.local_hardware_id(), device.id());
    EXPECT_EQ(device.DebugString(), std::string(platform) + ":2");
  }
}

TEST(DeviceTest, HasTheAttributesThatItsBackendKnows) {
  EXPECT_TRUE(MakeClient(1, "null").devices()[0].attributes().empty());
  const std::vector<DeviceAttribute> attributes = MakeClient(2).devices()[1].attributes();
  ASSERT_EQ(attributes.size(), 1U);
  EXPECT_EQ(attributes[0].name, "core_count");
  EXPECT_GT(std::get<std::int64_t>(attributes[0].value), 0);
}

TEST(DeviceTest, HasADeviceSpaceAndTwoOfTheHost) {
  const Client client = MakeClient(2);
  const Device device = client.devices()[1];
  const std::vector<MemorySpace> spaces = device.memory_spaces();
  ASSERT_EQ(spaces.size(), 3U);
  EXPECT_EQ(spaces[0].kind(), "device");
  EXPECT_EQ(spaces[1].kind(), "pinned_host");
  EXPECT_EQ(spaces[2].kind(), "unpinned_host");
  EXPECT_EQ(spaces[0], device.default_memory_space());
  EXPECT_EQ(spaces[1], device.memory_space("pinned_host").value());
  EXPECT_EQ(spaces[0].DebugString(), "host:1/device");
  EXPECT_EQ(spaces[1].DebugString(), "host:1/pinned_host");
  for (const MemorySpace& space : spaces) EXPECT_EQ(space.device(), device);
}

TEST(DeviceTest, AnUnknownSpaceIsNotFoundAndTheOthersAreNamed) {
  const Device device = MakeClient(1).devices()[0];
  for (const std::string_view kind : {"hbm", "", "device\xff", "Device"}) {
    const Status status = device.memory_space(kind).status();
    EXPECT_TRUE(IsNotFound(status)) << status;
    EXPECT_NE(status.message().find("device, pinned_host"), std::string::npos) << status;
  }
}

TEST(DeviceTest, SpacesHaveIdsOfTheirOwn) {
  std::set<int> ids;
  const Client client = MakeClient(4);
  for (const Device& device : client.devices()) {
    for (const MemorySpace& space : device.memory_spaces()) ids.insert(space.id());
  }
  EXPECT_EQ(ids.size(), 12U);
}

TEST(DeviceTest, EqualMeansTheSameDeviceOfTheSameClient) {
  const Client a = MakeClient(2);
  const Client b = MakeClient(2);
  EXPECT_EQ(a.devices()[0], a.devices()[0]);
  EXPECT_NE(a.devices()[0], a.devices()[1]);
  EXPECT_NE(a.devices()[0], b.devices()[0]);
  EXPECT_NE(a.devices()[0].default_memory_space(), b.devices()[0].default_memory_space());
  EXPECT_NE(a.devices()[0].memory_spaces()[0], a.devices()[0].memory_spaces()[1]);
}

TEST(DeviceTest, HandlesKeepTheClient) {
  std::optional<Device> device(MakeClient(2).devices()[1]);
  std::optional<MemorySpace> space(device->default_memory_space());
  device.reset();
  EXPECT_EQ(space->DebugString(), "host:1/device");
  Device again = space->device();
  space.reset();
  EXPECT_EQ(again.id(), 1);
  Device moved = std::move(again);
  again = moved;
  EXPECT_EQ(again, moved);
  MemorySpace a = moved.memory_spaces()[0];
  MemorySpace b = std::move(a);
  a = moved.memory_spaces()[1];
  EXPECT_NE(a, b);
  b = a;
  EXPECT_EQ(a, b);
}

TEST(MemoryStatsTest, CountWhatIsAllocated) {
  for (const std::string_view platform : {"host", "null"}) {
    const MemorySpace space = MakeClient(1, platform).devices()[0].default_memory_space();
    EXPECT_EQ(space.Stats().bytes_in_use, 0U);
    std::optional<RawBuffer> small(RawBuffer::Allocate(space, 100).value());
    std::optional<RawBuffer> large(RawBuffer::Allocate(space, 1'000).value());
    const MemoryStats both = space.Stats();
    EXPECT_EQ(both.bytes_in_use, 1'100U);
    EXPECT_EQ(both.peak_bytes_in_use, 1'100U);
    EXPECT_EQ(both.num_allocs, 2U);
    EXPECT_EQ(both.largest_alloc_size, 1'000U);
    const RawBuffer slice = small->Slice(10, 5).value();
    small.reset();
    EXPECT_EQ(space.Stats().bytes_in_use, 1'100U) << "a slice keeps all of the memory";
    large.reset();
    const MemoryStats after = space.Stats();
    EXPECT_EQ(after.bytes_in_use, 100U);
    EXPECT_EQ(after.peak_bytes_in_use, 1'100U);
    EXPECT_EQ(after.num_allocs, 2U);
  }
}

TEST(MemoryStatsTest, ThePeakBeginsAnewWhenItIsCleared) {
  const MemorySpace space = MakeClient(1).devices()[0].default_memory_space();
  const RawBuffer held = RawBuffer::Allocate(space, 100).value();
  {
    const RawBuffer gone = RawBuffer::Allocate(space, 1'000).value();
  }
  EXPECT_EQ(space.Stats().peak_bytes_in_use, 1'100U);
  space.ClearPeakMemoryUsage();
  EXPECT_EQ(space.Stats().peak_bytes_in_use, 100U);
}

TEST(MemorySpaceTest, TrimmingGivesMemoryBack) {
  const MemorySpace space = MakeClient(1).devices()[0].default_memory_space();
  {
    const RawBuffer gone = RawBuffer::Allocate(space, 1'000'000).value();
  }
  EXPECT_GE(space.Stats().pool_bytes, 1'000'000U);
  space.Trim();
  EXPECT_EQ(space.Stats().pool_bytes, 0U);
}

TEST(MemorySpaceTest, EveryAllocationIsAligned) {
  for (const std::string_view platform : {"host", "null"}) {
    const MemorySpace space = MakeClient(1, platform).devices()[0].default_memory_space();
    EXPECT_GE(space.alignment_bytes(), 64U);
    for (const std::size_t size : {0U, 1U, 65U, 100'000U}) {
      EXPECT_EQ(*RawBuffer::Allocate(space, size)->device_pointer() % space.alignment_bytes(), 0U);
    }
  }
}

TEST(MemoryStatsTest, AreThoseOfOneSpace) {
  const Client client = MakeClient(2);
  const RawBuffer buffer = RawBuffer::Allocate(client.devices()[0].default_memory_space(), 64).value();
  EXPECT_EQ(client.devices()[0].default_memory_space().Stats().bytes_in_use, 64U);
  EXPECT_EQ(client.devices()[0].memory_space("pinned_host")->Stats().bytes_in_use, 0U);
  EXPECT_EQ(client.devices()[1].default_memory_space().Stats().bytes_in_use, 0U);
}

}  // namespace
}  // namespace purlin
