#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "buffer_fixture.h"
#include "purlin/host_buffer.h"
#include "testing.h"

namespace purlin {
namespace {

constexpr HostBufferSemantics kAll[] = {HostBufferSemantics::kImmutableOnlyDuringCall,
                                        HostBufferSemantics::kImmutableUntilTransferCompletes,
                                        HostBufferSemantics::kImmutableZeroCopy, HostBufferSemantics::kMutableZeroCopy};

class HostShardsTest : public BufferFixture {
 protected:
  /// Of one dimension.
  HostShard Of(const Bytes& bytes, const DoneLog& told, int device = 0) const {
    HostShard shard = {bytes.data(), DType::kU8, {static_cast<std::int64_t>(bytes.size())}, Space(device)};
    shard.on_done = Shared(told);
    return shard;
  }
  static std::function<void(Status)> Shared(const DoneLog& told) {
    const auto on_done = std::make_shared<decltype(told.OnDone())>(told.OnDone());
    return [on_done](Status status) { (*on_done)(std::move(status)); };
  }
  MemorySpace Space(int device) const {
    return client_.devices()[static_cast<std::size_t>(device)].default_memory_space();
  }
};

TEST_F(HostShardsTest, ABufferPerShardInOrderAndEachIsToldOnce) {
  Bytes large(300'000);
  std::iota(large.begin(), large.end(), std::uint8_t{3});
  const Bytes small = {1, 2, 3};
  const Bytes none;
  for (const HostBufferSemantics semantics : kAll) {
    const std::vector<DoneLog> told(3);
    const StatusOr<std::vector<Buffer>> made =
        Buffer::FromHostShards({Of(large, told[0], 0), Of(small, told[1], 1), Of(none, told[2], 0)}, semantics);
    ASSERT_TRUE(made.ok()) << made.status();
    ASSERT_EQ(made->size(), 3U);
    EXPECT_EQ((*made)[0].device(), client_.devices()[0]);
    EXPECT_EQ((*made)[1].device(), client_.devices()[1]);
    EXPECT_EQ(Read((*made)[0]), large);
    EXPECT_EQ(Read((*made)[1]), small);
    EXPECT_EQ(Read((*made)[2]), none);
    for (const DoneLog& one : told) {
      one.Wait();
      EXPECT_EQ(one.all(), std::vector<Status>{Status()});
    }
  }
}

TEST_F(HostShardsTest, UnderOnlyDuringCallEverybodyWasToldBeforeItReturns) {
  Bytes large(300'000, 4);
  const DoneLog told;
  const std::vector<Buffer> made = Buffer::FromHostShards({Of(large, told)}).value();
  EXPECT_EQ(told.all(), std::vector<Status>{Status()});
  large.assign(large.size(), 9);
  EXPECT_EQ(Read(made[0]), Bytes(large.size(), 4));
}

TEST_F(HostShardsTest, NoShardsAreNoBuffers) { EXPECT_TRUE(Buffer::FromHostShards({}).value().empty()); }

TEST_F(HostShardsTest, StridesAndLayoutsAreThoseOfTheShard) {
  const Bytes bytes = {1, 2, 3, 4, 5, 6};
  HostShard turned = {bytes.data(), DType::kU8, {2, 3}, space_, Dims{1, 2}};
  HostShard column = {bytes.data(), DType::kU8, {2, 3}, space_};
  column.device_layout = Layout({0, 1});
  const std::vector<Buffer> made = Buffer::FromHostShards({turned, column}).value();
  EXPECT_EQ(Read(made[0]), (Bytes{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(ReadRaw(made[1]), (Bytes{1, 4, 2, 5, 3, 6}));
}

TEST_F(HostShardsTest, OneBadShardIsNamedAndNothingHappens) {
  const Bytes bytes(4, 1);
  const Client other = MakeClient();
  const DoneLog unused;
  struct Case {
    const char* what;
    HostShard shard;
    std::string_view says;
  };
  const HostShard good = {bytes.data(), DType::kU8, {4}, space_};
  std::vector<Case> cases = {{"dtype", good, "shard 1: 77 is no DType"},
                             {"negative", good, "shard 1: "},
                             {"null", good, "null"},
                             {"strides", good, "shard 1: u8[4] has 1 dimensions, but there are 2 byte strides"},
                             {"rank", good, "shard 1: "},
                             {"layout", good, "shard 1: "},
                             {"client", good, "shard 1: "},
                             {"kind", good, "shard 1: "}};
  cases[0].shard.dtype = static_cast<DType>(77);
  cases[1].shard.dims = {-4};
  cases[2].shard.data = nullptr;
  cases[3].shard.byte_strides = Dims{1, 1};
  cases[4].shard.device_layout = Layout({0, 1});
  cases[5].shard.device_layout = Layout({7});
  cases[6].shard.memory_space = other.devices()[0].default_memory_space();
  cases[7].shard.memory_space = client_.devices()[1].memory_space("pinned_host").value();
  const std::uint64_t before = space_.Stats().num_allocs;
  for (Case& c : cases) {
    for (const HostBufferSemantics semantics : kAll) {
      const std::vector<DoneLog> told(3);
      c.shard.on_done = Shared(told[1]);
      const Status status =
          Buffer::FromHostShards({Of(bytes, told[0]), c.shard, Of(bytes, told[2])}, semantics).status();
      c.shard.on_done = nullptr;
      EXPECT_TRUE(IsInvalidArgument(status)) << c.what << ": " << status;
      EXPECT_TRUE(Contains(status.message(), c.says)) << c.what << ": " << status;
      EXPECT_TRUE(Contains(status.message(), "shard 1")) << c.what << ": " << status;
      for (const DoneLog& one : told) {
        EXPECT_EQ(one.all(), std::vector<Status>{status}) << c.what;
        EXPECT_TRUE(one.IsOver()) << c.what;
      }
    }
  }
  EXPECT_EQ(space_.Stats().num_allocs, before) << "all were checked before the first allocation";
}

TEST_F(HostShardsTest, OptionsAreCheckedToo) {
  const Bytes bytes(4, 1);
  AllocOptions unsound;
  unsound.alignment_bytes = 3;
  const std::vector<DoneLog> told(2);
  const Status semantics = Buffer::FromHostShards({Of(bytes, told[0])}, static_cast<HostBufferSemantics>(4)).status();
  EXPECT_TRUE(IsInvalidArgument(semantics)) << semantics;
  const Status alignment = Buffer::FromHostShards({Of(bytes, told[1])}, kAll[0], unsound).status();
  EXPECT_TRUE(IsInvalidArgument(alignment)) << alignment;
  for (const DoneLog& one : told) EXPECT_EQ(one.count(), 1U);
}

TEST_F(HostShardsTest, WithoutRoomForAllThereIsNone) {
  ClientOptions options;
  options.memory_limit_bytes = 1 << 20;
  const Client client = Client::Create(options).value();
  const MemorySpace space = client.devices()[0].default_memory_space();
  const Bytes bytes(700'000, 1);
  const std::vector<DoneLog> told(2);
  std::vector<HostShard> shards;
  for (const DoneLog& one : told) {
    shards.push_back({bytes.data(), DType::kU8, {700'000}, space});
    shards.back().on_done = Shared(one);
  }
  const Status status = Buffer::FromHostShards(shards).status();
  EXPECT_TRUE(IsResourceExhausted(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "shard 1")) << status;
  for (const DoneLog& one : told) EXPECT_EQ(one.all(), std::vector<Status>{status});
  EXPECT_EQ(space.Stats().bytes_in_use, 0U);
}

TEST_F(HostShardsTest, WhatFailsLaterIsToldWhy) {
  const Bytes bytes(300'000);
  ASSERT_TRUE(client_.runner().Shutdown().ok());
  const DoneLog told;
  const std::vector<Buffer> made =
      Buffer::FromHostShards({Of(bytes, told)}, HostBufferSemantics::kImmutableUntilTransferCompletes).value();
  const Status status = made[0].ready_event().Wait();
  EXPECT_TRUE(IsCancelled(status)) << status;
  EXPECT_EQ(told.all(), std::vector<Status>{status});
}

TEST_F(HostShardsTest, ClosuresAreDestroyed) {
  const NoLeak check;
  const Bytes bytes(4, 1);
  for (const std::int64_t size : {std::int64_t{4}, std::int64_t{-4}}) {
    HostShard shard = {bytes.data(), DType::kU8, {size}, space_};
    shard.on_done = [payload = Counted(1)](const Status&) {};
    (void)Buffer::FromHostShards({shard});
  }
}

TEST_F(HostShardsTest, MemoryIsNamedByWhoAskedForIt) {
  const Bytes bytes(64, 1);
  AllocOptions alloc;
  alloc.label = "weights";
  const std::vector<Buffer> made = Buffer::FromHostShards({Of(bytes, DoneLog())}, kAll[0], alloc).value();
  const std::string line = LineAbove();
  const std::string report = space_.Report().DebugString();
  EXPECT_TRUE(Contains(report, "weights")) << report;
  EXPECT_TRUE(Contains(report, line)) << report;
}

}  // namespace
}  // namespace purlin
