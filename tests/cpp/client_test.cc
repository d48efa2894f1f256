#include "purlin/client.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "purlin/buffer.h"
#include "purlin/raw_buffer.h"

namespace purlin {
namespace {

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

ClientOptions Options(std::size_t device_count, std::size_t worker_count, std::string_view platform = "host") {
  ClientOptions options;
  options.device_count = device_count;
  options.worker_count = worker_count;
  options.platform = platform;
  return options;
}

TEST(ClientTest, DefaultIsOneHostDevice) {
  const StatusOr<Client> client = Client::Create();
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(client->platform_name(), "host");
  EXPECT_EQ(client->devices().size(), 1U);
  EXPECT_GE(client->runner().NumThreads(), 1U);
}

TEST(ClientTest, HasDevicesAndWorkersAsAsked) {
  for (const std::string_view platform : {"host", "null", "sim"}) {
    const StatusOr<Client> client = Client::Create(Options(3, 2, platform));
    ASSERT_TRUE(client.ok()) << client.status();
    EXPECT_EQ(client->platform_name(), platform);
    EXPECT_EQ(client->runner().NumThreads(), 2U);
    const std::vector<Device> devices = client->devices();
    ASSERT_EQ(devices.size(), 3U);
    for (std::size_t i = 0; i < devices.size(); ++i) EXPECT_EQ(devices[i].id(), static_cast<int>(i));
  }
}

TEST(ClientTest, CountsOutOfRangeAreRefusedByName) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  for (const std::size_t count : {std::size_t{0}, std::size_t{1025}, kMost}) {
    const Status status = Client::Create(Options(count, 1)).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "device_count is " + std::to_string(count))) << status;
  }
  for (const std::size_t count : {std::size_t{4097}, kMost}) {
    const Status status = Client::Create(Options(1, count)).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "worker_count is " + std::to_string(count))) << status;
  }
}

TEST(ClientTest, AnUnknownPlatformIsNotFoundAndTheOthersAreNamed) {
  for (const std::string_view platform : {"tpu", "", "HOST", "host\xff"}) {
    const Status status = Client::Create(Options(1, 1, platform)).status();
    EXPECT_TRUE(IsNotFound(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "'host', 'null' and 'sim'")) << status;
  }
  EXPECT_TRUE(Contains(Client::Create(Options(1, 1, "tpu")).status().message(), "'tpu'"));
}

TEST(ClientTest, AStructSizeThatNoVersionHasIsRefused) {
  for (const std::size_t struct_size : {std::size_t{0}, std::size_t{23}, std::size_t{4097}, ~std::size_t{0}}) {
    ClientOptions options = Options(1, 1);
    options.struct_size = struct_size;
    const Status status = Client::Create(options).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "struct_size is " + std::to_string(struct_size))) << status;
  }
}

/// Where `field` begins in `options`: the size of a version in which it had not been invented. Not offsetof, because
/// the struct has members that are no standard-layout types.
template <typename T>
std::size_t OffsetOf(const ClientOptions& options, const T& field) {
  return static_cast<std::size_t>(reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(&options));
}

class NoAllocator final : public HostMemoryAllocator {
 public:
  void* Allocate(std::size_t, std::size_t) override { return nullptr; }
  void Deallocate(void*, std::size_t, std::size_t) override { FAIL() << "it gave nothing"; }
};

TEST(ClientTest, OlderOptionsHaveNoMemoryFields) {
  ClientOptions options = Options(1, 1, "null");
  options.memory_limit_bytes = 64;
  options.on_out_of_memory = [](const MemoryReport&) { return false; };
  options.host_memory_allocator = std::make_shared<NoAllocator>();
  EXPECT_TRUE(IsInvalidArgument(Client::Create(options).status())) << "an allocator is for the host";
  options.struct_size = OffsetOf(options, options.memory_limit_bytes);
  EXPECT_EQ(options.struct_size, 40U) << "what the first version had";
  const StatusOr<Client> client = Client::Create(options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(client->platform_name(), "null");
  const MemorySpace space = client->devices()[0].default_memory_space();
  EXPECT_EQ(space.Stats().bytes_limit, 0U);
  EXPECT_TRUE(RawBuffer::Allocate(space, 1000).ok());
  EXPECT_EQ(options.host_memory_allocator.use_count(), 1) << "it was not looked at";

  options.struct_size = OffsetOf(options, options.on_out_of_memory);
  const StatusOr<Client> limited = Client::Create(options);
  ASSERT_TRUE(limited.ok()) << limited.status();
  EXPECT_TRUE(IsResourceExhausted(RawBuffer::Allocate(limited->devices()[0].default_memory_space(), 1000).status()));
}

TEST(ClientTest, ALimitHoldsForEachSpace) {
  for (const std::string_view platform : {"host", "null"}) {
    ClientOptions options = Options(2, 1, platform);
    options.memory_limit_bytes = 1 << 20;
    const Client client = Client::Create(options).value();
    std::vector<RawBuffer> full;
    for (const Device& device : client.devices()) {
      for (const MemorySpace& space : device.memory_spaces()) {
        EXPECT_EQ(space.Stats().bytes_limit, std::uint64_t{1} << 20);
        full.push_back(RawBuffer::Allocate(space, 1 << 20).value());
        EXPECT_TRUE(IsResourceExhausted(RawBuffer::Allocate(space, 1).status()));
      }
    }
  }
}

TEST(ClientTest, TheHookGoesWithTheClient) {
  const auto witness = std::make_shared<int>(0);
  ClientOptions options = Options(1, 1);
  options.on_out_of_memory = [witness](const MemoryReport&) { return false; };
  std::optional<Client> client(Client::Create(options).value());
  options.device_count = 0;
  EXPECT_FALSE(Client::Create(options).ok());
  options.on_out_of_memory = nullptr;
  EXPECT_EQ(witness.use_count(), 2) << "the client has one, and the client that did not come has none";
  client.reset();
  EXPECT_EQ(witness.use_count(), 1);
}

TEST(ClientTest, FrozenMemoryThatIsWrittenIsFoundOutIfAsked) {
  for (const bool check : {false, true}) {
    ClientOptions options = Options(1, 1);
    options.check_frozen_memory = check;
    const Client client = Client::Create(options).value();
    std::promise<void> gate;
    // Not an event: the pool would put another thread in the place of one that waits for an event.
    EXPECT_TRUE(client.runner().Schedule([opened = gate.get_future()] { opened.wait(); }).ok());
    std::vector<std::uint8_t> bytes(200'000, 1);
    const std::vector<std::int64_t> dims = {200'000};
    const Buffer buffer =
        Buffer::FromHost(bytes.data(), bytes.size(), DType::kU8, dims, client.devices()[0].default_memory_space(),
                         HostBufferSemantics::kImmutableUntilTransferCompletes)
            .value();
    bytes[199'999] = 2;
    gate.set_value();
    const Status status = buffer.ready_event().Wait();
    EXPECT_EQ(status.ok(), !check) << status;
    if (check) {
      EXPECT_TRUE(IsFailedPrecondition(status)) << status;
      EXPECT_TRUE(Contains(status.message(), "was written")) << status;
    }
  }
}

TEST(ClientTest, OlderOptionsLeaveOutTheLaterFields) {
  ClientOptions options = Options(2, 1, "no such platform");
  options.struct_size = OffsetOf(options, options.platform);  // As if `platform` had not been invented.
  const StatusOr<Client> client = Client::Create(options);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(client->platform_name(), "host");
  EXPECT_EQ(client->devices().size(), 2U);
}

TEST(ClientTest, NewerOptionsWithFieldsThatWeDoNotKnowAreFine) {
  struct Newer {
    ClientOptions known;
    char more[100];
  };
  Newer newer;
  newer.known = Options(2, 1, "null");
  std::memset(newer.more, 0xFF, sizeof(newer.more));
  newer.known.struct_size = sizeof(Newer);
  const StatusOr<Client> client = Client::Create(newer.known);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(client->platform_name(), "null");
}

TEST(ClientTest, LooksDevicesUpById) {
  const Client client = Client::Create(Options(4, 1)).value();
  const StatusOr<Device> device = client.LookupDevice(3);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(*device, client.devices()[3]);
  for (const int id : {-1, 4, std::numeric_limits<int>::max()}) {
    const Status status = client.LookupDevice(id).status();
    EXPECT_TRUE(IsNotFound(status)) << status;
    EXPECT_TRUE(Contains(status.message(), std::to_string(id)) && Contains(status.message(), "4")) << status;
  }
}

TEST(ClientTest, HandlesShareTheClient) {
  std::optional<Client> client(Client::Create(Options(2, 1)).value());
  Client copy = *client;
  const Client moved = std::move(copy);
  Client assigned = Client::Create(Options(1, 1)).value();
  assigned = moved;
  const Device device = client->devices()[1];
  client.reset();
  EXPECT_EQ(device, moved.devices()[1]);
  EXPECT_EQ(device, assigned.devices()[1]);
}

TEST(ClientTest, BuffersKeepWhatTheyNeedOfIt) {
  std::optional<Client> client(Client::Create(Options(1, 1)).value());
  const std::vector<std::int64_t> dims = {2};
  const std::vector<float> values = {1, 2};
  const Buffer buffer =
      Buffer::FromHost(values.data(), 8, DType::kF32, dims, client->devices()[0].default_memory_space()).value();
  ThreadPoolAsyncWorkRunner runner = client->runner();
  client.reset();
  std::vector<float> back(2);
  EXPECT_TRUE(buffer.CopyToHost(back.data(), 8).Wait().ok());
  EXPECT_EQ(back, values);
  EventPromise done("done");
  EXPECT_TRUE(runner.Schedule([&done] { done.SetReady(); }).ok()) << "the runner lives as long as its handles";
  EXPECT_TRUE(done.event().Wait().ok());
}

TEST(ClientTest, RunnersOfOneClientAreOnePool) {
  const Client client = Client::Create(Options(1, 2)).value();
  ThreadPoolAsyncWorkRunner a = client.runner();
  ThreadPoolAsyncWorkRunner b = client.runner();
  ASSERT_TRUE(a.Shutdown().ok());
  EXPECT_TRUE(IsCancelled(b.Schedule([] {})));
}

TEST(ClientTest, DescribesItself) {
  const Client client = Client::Create(Options(3, 2)).value();
  const std::string text = client.Describe();
  EXPECT_TRUE(Contains(text, "host")) << text;
  EXPECT_TRUE(Contains(text, "3")) << text;
  EXPECT_TRUE(Contains(text, client.runner().Describe())) << text;
}

TEST(ClientTest, TheProcessIndexIsWhatWasGivenOrAnError) {
  ClientOptions options = Options(1, 1);
  const Status unknown = Client::Create(options)->process_index().status();
  EXPECT_TRUE(IsFailedPrecondition(unknown)) << unknown;
  options.process_index = 3;
  EXPECT_EQ(Client::Create(options)->process_index().value(), 3);
  options.process_index = -1;
  const Status negative = Client::Create(options).status();
  EXPECT_TRUE(IsInvalidArgument(negative)) << negative;
  EXPECT_EQ(negative.message(), "process_index is -1; it must not be negative");
  options.struct_size = OffsetOf(options, options.process_index);
  EXPECT_TRUE(IsFailedPrecondition(Client::Create(options)->process_index().status())) << "an older version has none";
}

TEST(ClientTest, ReplicasGetDevicesInTheirOrder) {
  const Client client = Client::Create(Options(6, 1)).value();
  const std::vector<std::vector<int>> two_by_three = {{0, 1, 2}, {3, 4, 5}};
  const std::vector<std::vector<int>> three_by_two = {{0, 1}, {2, 3}, {4, 5}};
  EXPECT_EQ(client.GetDefaultDeviceAssignment(2, 3).value(), two_by_three);
  EXPECT_EQ(client.GetDefaultDeviceAssignment(3, 2).value(), three_by_two);
  EXPECT_EQ(client.GetDefaultDeviceAssignment(1, 1).value(), (std::vector<std::vector<int>>{{0}}));
  constexpr std::size_t kMax = std::numeric_limits<std::size_t>::max();
  const std::vector<std::pair<std::size_t, std::size_t>> wrong{{0, 1}, {1, 0}, {7, 1}, {4, 2}, {kMax, 2}, {kMax, kMax}};
  for (const auto& [replicas, partitions] : wrong) {
    const Status status = client.GetDefaultDeviceAssignment(replicas, partitions).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    const std::string named = std::to_string(replicas) + " replicas of " + std::to_string(partitions) + " partitions";
    EXPECT_TRUE(Contains(status.message(), named)) << status;
  }
}

}  // namespace
}  // namespace purlin
