#include "purlin/alloc_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/client.h"
#include "purlin/raw_buffer.h"

namespace purlin {
namespace {

constexpr std::size_t kLimit = std::size_t{1} << 20;

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// A space of 1 MiB, of a client of its own.
MemorySpace Limited(std::function<bool(const MemoryReport&)> hook = nullptr) {
  ClientOptions options;
  options.worker_count = 1;
  options.memory_limit_bytes = kLimit;
  options.on_out_of_memory = std::move(hook);
  return Client::Create(options)->devices()[0].default_memory_space();
}

AllocOptions With(OomPolicy oom) {
  AllocOptions options;
  options.oom = oom;
  return options;
}

TEST(AllocOptionsTest, AlignmentIsWhatWasAskedFor) {
  for (const std::string_view platform : {"host", "null"}) {
    ClientOptions client;
    client.worker_count = 1;
    client.platform = platform;
    const MemorySpace space = Client::Create(client)->devices()[0].default_memory_space();
    for (const std::size_t alignment_bytes : {0U, 1U, 64U, 256U, 4096U, 1U << 21}) {
      AllocOptions options;
      options.alignment_bytes = alignment_bytes;
      const StatusOr<RawBuffer> buffer = RawBuffer::Allocate(space, 100, options);
      ASSERT_TRUE(buffer.ok()) << buffer.status();
      EXPECT_EQ(*buffer->device_pointer() % std::max(alignment_bytes, space.alignment_bytes()), 0U) << alignment_bytes;
    }
  }
}

TEST(AllocOptionsTest, WhatIsNoAlignmentIsInvalidAndNamed) {
  const MemorySpace space = Limited();
  for (const std::size_t alignment_bytes :
       {std::size_t{3}, std::size_t{65}, (std::size_t{1} << 30) + 1, std::size_t{1} << 31, ~std::size_t{0}}) {
    AllocOptions options;
    options.alignment_bytes = alignment_bytes;
    const Status status = RawBuffer::Allocate(space, 1, options).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), std::to_string(alignment_bytes))) << status;
  }
}

TEST(AllocOptionsTest, APolicyThatDoesNotExistIsInvalidAndNamed) {
  const MemorySpace space = Limited();
  for (const int number : {-1, 3, 1 << 30}) {
    const AllocOptions options = With(static_cast<OomPolicy>(number));
    for (const Status& status :
         {RawBuffer::Allocate(space, 1, options).status(), RawBuffer::CreateChannel(space, 1, options).status()}) {
      EXPECT_TRUE(IsInvalidArgument(status)) << status;
      EXPECT_TRUE(Contains(status.message(), std::to_string(number))) << status;
    }
  }
}

TEST(AllocOptionsTest, AStructSizeThatNoVersionHasIsInvalidAndNamed) {
  const MemorySpace space = Limited();
  for (const std::size_t struct_size : {std::size_t{0}, std::size_t{39}, std::size_t{4097}, ~std::size_t{0}}) {
    AllocOptions options;
    options.struct_size = struct_size;
    for (const Status& status :
         {RawBuffer::Allocate(space, 1, options).status(), RawBuffer::CreateChannel(space, 1, options).status()}) {
      EXPECT_TRUE(IsInvalidArgument(status)) << status;
      EXPECT_TRUE(Contains(status.message(), "AllocOptions::struct_size is " + std::to_string(struct_size))) << status;
    }
  }
}

TEST(AllocOptionsTest, NewerOptionsWithFieldsThatWeDoNotKnowAreFine) {
  struct Newer {
    AllocOptions known;
    char more[100] = {};
  };
  Newer newer;
  newer.known.struct_size = sizeof(Newer);
  EXPECT_TRUE(RawBuffer::Allocate(Limited(), 1, newer.known).ok());
}

TEST(AllocOptionsTest, MemoryAfterAnEventComesWithIt) {
  const MemorySpace space = Limited();
  EventPromise gate("gate");
  AllocOptions options;
  options.after = gate.event();
  const RawBuffer buffer = RawBuffer::Allocate(space, kLimit, options).value();
  EXPECT_EQ(buffer.on_device_size_bytes(), kLimit);
  EXPECT_FALSE(buffer.allocation_event().IsReady());
  EXPECT_EQ(buffer.host_pointer(), nullptr);
  EXPECT_TRUE(IsFailedPrecondition(buffer.device_pointer().status()));
  EXPECT_EQ(space.Stats().bytes_in_use, 0U);
  {
    const RawBuffer held = RawBuffer::Allocate(space, kLimit).value();
  }
  gate.SetReady();
  ASSERT_TRUE(buffer.allocation_event().Wait().ok());
  EXPECT_NE(buffer.host_pointer(), nullptr);
  EXPECT_EQ(*buffer.device_pointer(), reinterpret_cast<std::uintptr_t>(buffer.host_pointer()));
  EXPECT_EQ(space.Stats().bytes_in_use, kLimit);
}

TEST(AllocOptionsTest, MemoryAfterAFailedEventNeverComes) {
  const MemorySpace space = Limited();
  AllocOptions options;
  options.after = Event::Error(AbortedError("upstream"));
  EXPECT_EQ(RawBuffer::Allocate(space, 8, options).status(), AbortedError("upstream"));

  EventPromise gate("gate");
  options.after = gate.event();
  const RawBuffer buffer = RawBuffer::Allocate(space, 8, options).value();
  const std::uint64_t value = 1;
  const Event copied = buffer.CopyFromHost(&value, 0, 8);
  gate.SetError(AbortedError("upstream later"));
  EXPECT_EQ(buffer.allocation_event().Wait(), AbortedError("upstream later"));
  EXPECT_EQ(copied.Wait(), AbortedError("upstream later"));
  EXPECT_EQ(buffer.device_pointer().status(), AbortedError("upstream later"));
  EXPECT_EQ(space.Stats().num_allocs, 0U);
}

TEST(AllocOptionsTest, MemoryAfterAnEventMayStillBeShort) {
  const MemorySpace space = Limited();
  EventPromise gate("gate");
  AllocOptions options;
  options.after = gate.event();
  const RawBuffer buffer = RawBuffer::Allocate(space, 1000, options).value();
  const RawBuffer held = RawBuffer::Allocate(space, kLimit).value();
  gate.SetReady();
  const Status status = buffer.allocation_event().Wait();
  EXPECT_TRUE(IsResourceExhausted(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "cannot allocate 1000 bytes")) << status;
}

TEST(AllocOptionsTest, WaitingMemoryComesInTurnWhenOthersAreFreed) {
  const MemorySpace space = Limited();
  std::optional<RawBuffer> held(RawBuffer::Allocate(space, kLimit).value());
  std::optional<RawBuffer> large(RawBuffer::Allocate(space, kLimit, With(OomPolicy::kWait)).value());
  const RawBuffer small = RawBuffer::Allocate(space, 64, With(OomPolicy::kWait)).value();
  EXPECT_EQ(space.Report().waiting_count, 2U);
  const std::vector<std::uint8_t> bytes(64, 7);
  const Event copied = small.CopyFromHost(bytes.data(), 0, 64);
  EXPECT_FALSE(large->allocation_event().IsReady());
  held.reset();
  EXPECT_TRUE(large->allocation_event().Wait().ok());
  EXPECT_FALSE(small.allocation_event().IsReady());
  EXPECT_FALSE(copied.IsReady());
  large.reset();
  EXPECT_TRUE(copied.Wait().ok());
  EXPECT_EQ(static_cast<const std::uint8_t*>(small.host_pointer())[63], 7);
  EXPECT_EQ(space.Report().waiting_count, 0U);
}

TEST(AllocOptionsTest, WhoGivesUpWaitingLetsOthersPass) {
  const MemorySpace space = Limited();
  std::optional<RawBuffer> a(RawBuffer::Allocate(space, kLimit / 2).value());
  const RawBuffer b = RawBuffer::Allocate(space, kLimit / 2).value();
  std::optional<RawBuffer> large(RawBuffer::Allocate(space, kLimit, With(OomPolicy::kWait)).value());
  const RawBuffer small = RawBuffer::Allocate(space, 64, With(OomPolicy::kWait)).value();
  const Event event = large->allocation_event();
  a.reset();
  EXPECT_FALSE(small.allocation_event().IsReady());
  large.reset();
  EXPECT_TRUE(small.allocation_event().Wait().ok());
  EXPECT_TRUE(IsCancelled(event.Wait()));
}

TEST(AllocOptionsTest, WaitingForWhatCanNeverComeFailsAtOnce) {
  const MemorySpace space = Limited();
  const RawBuffer held = RawBuffer::Allocate(space, 1).value();
  EXPECT_TRUE(IsResourceExhausted(RawBuffer::Allocate(space, kLimit + 1, With(OomPolicy::kWait)).status()));
}

TEST(AllocOptionsTest, WhoWaitsForWhatNeverFitsIsToldWhenAllIsFree) {
  const MemorySpace space = Limited();
  std::optional<RawBuffer> held(RawBuffer::Allocate(space, kLimit).value());
  AllocOptions options = With(OomPolicy::kWait);
  options.alignment_bytes = 2 * kLimit;
  const RawBuffer waiting = RawBuffer::Allocate(space, kLimit, options).value();
  const RawBuffer next = RawBuffer::Allocate(space, 64, With(OomPolicy::kWait)).value();
  EXPECT_FALSE(waiting.allocation_event().IsReady());
  held.reset();
  // With luck the extent begins at such an address; without, nothing that is freed could help.
  const Status status = waiting.allocation_event().WaitFor(std::chrono::seconds(60));
  EXPECT_TRUE(status.ok() || IsResourceExhausted(status)) << status;
  if (!status.ok()) {
    EXPECT_TRUE(next.allocation_event().Wait().ok());
  }
}

TEST(AllocOptionsTest, TheHookIsAskedUntilThereIsMemoryOrItSaysNo) {
  std::vector<RawBuffer> cache;
  std::optional<RawBuffer> kept;
  std::vector<std::uint64_t> asked;
  const MemorySpace space = Limited([&](const MemoryReport& report) {
    asked.push_back(report.requested_bytes.value_or(0));
    EXPECT_EQ(report.memory_space, "host:0/device");
    EXPECT_EQ(report.holder_count, cache.size() + (kept ? 1 : 0));
    if (cache.empty()) return false;
    cache.pop_back();
    return true;
  });
  for (int i = 0; i < 4; ++i) cache.push_back(RawBuffer::Allocate(space, kLimit / 4).value());
  EXPECT_TRUE(IsResourceExhausted(RawBuffer::Allocate(space, kLimit / 2).status())) << "kFail does not ask";
  EXPECT_TRUE(asked.empty());
  {
    const StatusOr<RawBuffer> half = RawBuffer::Allocate(space, kLimit / 2, With(OomPolicy::kRetry));
    EXPECT_TRUE(half.ok()) << half.status();
    EXPECT_EQ(asked, std::vector<std::uint64_t>(2, kLimit / 2));
    EXPECT_EQ(cache.size(), 2U);
  }
  asked.clear();
  Status status = RawBuffer::Allocate(space, 2 * kLimit, With(OomPolicy::kRetry)).status();
  EXPECT_TRUE(IsResourceExhausted(status)) << status;
  EXPECT_TRUE(asked.empty()) << "so much can never fit";
  kept = RawBuffer::Allocate(space, kLimit / 4).value();
  status = RawBuffer::Allocate(space, kLimit, With(OomPolicy::kRetry)).status();
  EXPECT_TRUE(IsResourceExhausted(status)) << status;
  EXPECT_EQ(asked.size(), 3U) << "twice yes, once no";
}

TEST(AllocOptionsTest, TryingAgainWithoutAHookIsFailing) {
  EXPECT_TRUE(IsResourceExhausted(RawBuffer::Allocate(Limited(), 2 * kLimit, With(OomPolicy::kRetry)).status()));
}

}  // namespace
}  // namespace purlin
