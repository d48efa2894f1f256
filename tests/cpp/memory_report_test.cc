#include "purlin/memory_report.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "purlin/client.h"
#include "purlin/raw_buffer.h"

namespace purlin {
namespace {

constexpr std::size_t kLimit = std::size_t{1} << 20;

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

MemorySpace Limited() {
  ClientOptions options;
  options.worker_count = 1;
  options.memory_limit_bytes = kLimit;
  return Client::Create(options)->devices()[0].default_memory_space();
}

AllocOptions Labelled(Label label) {
  AllocOptions options;
  options.label = label;
  return options;
}

TEST(MemoryReportTest, TheErrorOfAnAllocationSaysWhoHoldsTheMemoryAndWhereTheyAskedForIt) {
  const MemorySpace space = Limited();
  const RawBuffer small = RawBuffer::Allocate(space, 100, Labelled("small one")).value();
  const RawBuffer large = RawBuffer::Allocate(space, 600'000, Labelled("large one")).value();
  const std::string place = "memory_report_test.cc:" + std::to_string(__LINE__ - 1);
  const Status status = RawBuffer::Allocate(space, 700'000).status();
  EXPECT_TRUE(IsResourceExhausted(status)) << status;
  for (const std::string& part :
       {std::string("cannot allocate 700000 bytes in host:0/device"), std::string("600100 bytes in use"),
        std::string("limit 1048576 bytes"), std::string("2 live allocations"), std::string("600000 bytes 'large one'"),
        place, std::string("100 bytes 'small one'")}) {
    EXPECT_TRUE(Contains(status.message(), part)) << part << " is missing in " << status;
  }
  const std::optional<std::string> json = status.GetPayload(kMemoryReportTypeUrl);
  ASSERT_TRUE(json.has_value()) << status;
  for (const std::string& part :
       {std::string("{\"memory_space\":\"host:0/device\",\"requested_bytes\":700000,"),
        std::string("\"bytes_limit\":1048576"), std::string("\"label\":\"large one\""), place}) {
    EXPECT_TRUE(Contains(*json, part)) << part << " is missing in " << *json;
  }
  EXPECT_EQ(json->substr(json->size() - 2), "]}");
  EXPECT_TRUE(RawBuffer::Allocate(space, 100'000).ok()) << "the client goes on";
}

TEST(MemoryReportTest, HasEveryFieldOfASpaceInUse) {
  const MemorySpace space = Limited();
  EventPromise gate("gate");
  const RawBuffer held = RawBuffer::Allocate(space, 300, Labelled("held")).value();
  const int held_line = __LINE__ - 1;
  {
    const RawBuffer going = RawBuffer::Allocate(space, 5'000, Labelled("going")).value();
    going.RetainUntil(gate.event());
  }
  AllocOptions waits;
  waits.oom = OomPolicy::kWait;
  const RawBuffer waiting = RawBuffer::Allocate(space, kLimit, waits).value();

  const MemoryReport report = space.Report();
  EXPECT_EQ(report.memory_space, "host:0/device");
  EXPECT_FALSE(report.requested_bytes.has_value());
  EXPECT_EQ(report.reason, "");
  EXPECT_EQ(report.bytes_in_use, 5'300U);
  EXPECT_EQ(report.bytes_limit, kLimit);
  EXPECT_EQ(report.pool_bytes, space.Stats().pool_bytes);
  EXPECT_GE(report.pool_bytes, report.bytes_in_use + report.free_bytes);
  EXPECT_EQ(report.largest_free_block_bytes, space.Stats().largest_free_block_bytes);
  EXPECT_LE(report.fragmentation_percent, 100);
  EXPECT_EQ(report.pending_free_bytes, 5'000U);
  EXPECT_EQ(report.holder_count, 2U);
  EXPECT_EQ(report.waiting_count, 1U);
  ASSERT_EQ(report.holders.size(), 2U);
  EXPECT_EQ(report.holders[0].size_bytes, 5'000U);
  EXPECT_EQ(report.holders[0].label, "going");
  EXPECT_TRUE(report.holders[0].is_going);
  EXPECT_EQ(report.holders[1].size_bytes, 300U);
  EXPECT_EQ(report.holders[1].label, "held");
  EXPECT_TRUE(Contains(report.holders[1].place, "memory_report_test.cc:" + std::to_string(held_line)))
      << report.holders[1].place;
  EXPECT_FALSE(report.holders[1].is_going);

  gate.SetReady();
  EXPECT_EQ(space.Report().pending_free_bytes, 0U);
  EXPECT_EQ(space.Report().bytes_in_use, 300U);
}

TEST(MemoryReportTest, KnowsWhoAskedForAChannel) {
  const MemorySpace space = Limited();
  auto channel = RawBuffer::CreateChannel(space, 64, Labelled("output")).value();
  const std::string place = "memory_report_test.cc:" + std::to_string(__LINE__ - 1);
  EXPECT_EQ(space.Report().holder_count, 0U);
  ASSERT_TRUE(channel.second.Allocate().ok());
  const MemoryReport report = space.Report();
  ASSERT_EQ(report.holders.size(), 1U);
  EXPECT_EQ(report.holders[0].label, "output");
  EXPECT_TRUE(Contains(report.holders[0].place, place)) << report.holders[0].place;
}

TEST(MemoryReportTest, WithoutALimitThereIsNone) {
  ClientOptions options;
  options.worker_count = 1;
  const MemorySpace space = Client::Create(options)->devices()[0].default_memory_space();
  EXPECT_FALSE(space.Report().bytes_limit.has_value());
  EXPECT_TRUE(Contains(space.Report().ToJson(), "\"bytes_limit\":null")) << space.Report().ToJson();
}

TEST(MemoryReportTest, ReadsAsTextAndAsJson) {
  MemoryReport report;
  report.memory_space = "tpu:7/hbm";
  report.requested_bytes = 64;
  report.reason = "no \"room\"\n";
  report.bytes_in_use = 10;
  report.bytes_limit = 11;
  report.pool_bytes = 12;
  report.free_bytes = 13;
  report.largest_free_block_bytes = 14;
  report.fragmentation_percent = 15;
  report.pending_free_bytes = 16;
  report.holder_count = 17;
  report.waiting_count = 18;
  report.holders.push_back({19, "weights", "train.cc:20", 21, true});
  EXPECT_EQ(
      report.ToJson(),
      "{\"memory_space\":\"tpu:7/hbm\",\"requested_bytes\":64,\"reason\":\"no \\\"room\\\"\\n\","
      "\"bytes_in_use\":10,\"bytes_limit\":11,\"pool_bytes\":12,\"free_bytes\":13,\"largest_free_block_bytes\":14,"
      "\"fragmentation_percent\":15,\"pending_free_bytes\":16,\"holder_count\":17,\"waiting_count\":18,"
      "\"holders\":[{\"size_bytes\":19,\"label\":\"weights\",\"place\":\"train.cc:20\",\"age_ms\":21,"
      "\"is_going\":true}]}");
  const std::string text = report.DebugString();
  EXPECT_EQ(text.find("cannot allocate 64 bytes in tpu:7/hbm (10 bytes in use): no \"room\""), 0U) << text;
  EXPECT_TRUE(Contains(text, "19 bytes 'weights' from train.cc:20, 21 ms old, pending work only")) << text;
  EXPECT_EQ(MemoryReport(report).ToJson(), report.ToJson());
}

TEST(MemoryReportTest, BytesThatAreNotUtf8AreReplaced) {
  MemoryReport report;
  report.memory_space =
      "a\xff"
      "b";
  report.holders.push_back({1, "\xc3", "", 0, false});
  EXPECT_TRUE(Contains(report.DebugString(),
                       "a\xEF\xBF\xBD"
                       "b"))
      << report.DebugString();
  EXPECT_TRUE(Contains(report.ToJson(), "\"label\":\"\xEF\xBF\xBD\"")) << report.ToJson();
}

}  // namespace
}  // namespace purlin
