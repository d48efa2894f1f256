#include "purlin/client.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "purlin/buffer.h"

namespace purlin {
namespace {

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

ClientOptions Options(int device_count, int worker_count, std::string_view platform = "host") {
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
  for (const int count : {0, -1, 1025, std::numeric_limits<int>::max()}) {
    const Status status = Client::Create(Options(count, 1)).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "device_count is " + std::to_string(count))) << status;
  }
  for (const int count : {-1, 4097, std::numeric_limits<int>::min()}) {
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
  for (const std::size_t struct_size : {std::size_t{0}, std::size_t{15}, std::size_t{4097}, ~std::size_t{0}}) {
    ClientOptions options = Options(1, 1);
    options.struct_size = struct_size;
    const Status status = Client::Create(options).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "struct_size is " + std::to_string(struct_size))) << status;
  }
}

TEST(ClientTest, OlderOptionsLeaveOutTheLaterFields) {
  ClientOptions options = Options(2, 1, "no such platform");
  options.struct_size = offsetof(ClientOptions, platform);  // As if `platform` had not been invented.
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

}  // namespace
}  // namespace purlin
