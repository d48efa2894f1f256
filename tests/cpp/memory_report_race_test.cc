// Reports of the holders of memory, beside 24 threads that allocate and free: of stalls, of allocations that fail, of a
// watchdog. Under AddressSanitizer a thread that follows a reference to freed memory is found at once.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/client.h"
#include "purlin/host_memory_allocator.h"
#include "purlin/memory_report.h"
#include "purlin/raw_buffer.h"
#include "purlin/stall.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

constexpr int kThreads = 24;
constexpr int kRounds = 200;

class Malloc final : public HostMemoryAllocator {
 public:
  void* Allocate(std::size_t size_bytes, std::size_t alignment_bytes) override {
    return std::aligned_alloc(alignment_bytes, (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes);
  }
  void Deallocate(void* address, std::size_t, std::size_t) override { std::free(address); }
};

// One of the ways in which memory is held: small, large, a part, by an event, by another buffer, waited for.
void AllocateAndFree(const MemorySpace& space, int round) {
  constexpr std::size_t kSizes[] = {1, 64, 4096, std::size_t{40} << 10, std::size_t{1} << 20};
  constexpr OomPolicy kPolicies[] = {OomPolicy::kFail, OomPolicy::kWait, OomPolicy::kRetry};
  AllocOptions options;
  options.oom = kPolicies[round % 3];
  const std::size_t size_bytes = kSizes[round % 5];
  StatusOr<RawBuffer> buffer = RawBuffer::Allocate(space, size_bytes, options);
  if (!buffer.ok()) {
    EXPECT_TRUE(IsResourceExhausted(buffer.status())) << buffer.status();
    return;
  }
  switch (round % 4) {
    case 0:
      break;
    case 1: {
      const RawBuffer part = buffer->Slice(0, 1).value();
      buffer = CancelledError("gone");
      break;
    }
    case 2: {
      EventPromise used("use");
      buffer->RetainUntil(used.event());
      buffer = CancelledError("gone");
      EXPECT_GT(space.Report().ToJson().size(), 0U);
      used.SetReady();
      break;
    }
    default: {
      auto [channel, promise] = RawBuffer::CreateChannel(space, size_bytes).value();
      EXPECT_TRUE(promise.Fulfil(*buffer).ok());
      buffer = CancelledError("gone");
      break;
    }
  }
}

void ReportBesideAllocations(ClientOptions options) {
  std::atomic<int> asked{0};
  options.worker_count = 2;
  options.on_out_of_memory = [&asked](const MemoryReport& report) {
    EXPECT_GT(report.ToJson().size(), 0U);
    asked.fetch_add(1, std::memory_order_relaxed);
    return false;
  };
  Client client = Client::Create(options).value();
  const MemorySpace space = client.devices()[0].default_memory_space();
  WatchdogOptions watch;
  watch.older_than = std::chrono::milliseconds(10);
  watch.sink = [](std::string_view) {};
  Watchdog watchdog = Watchdog::Start(std::move(watch)).value();
  EventPromise stalled("keeps the watchdog in news");
  std::atomic<int> over{0};
  std::vector<std::thread> threads;
  threads.reserve(kThreads + 2);
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < kRounds; ++round) AllocateAndFree(space, round + thread);
      over.fetch_add(1);
    });
  }
  for (int reporter = 0; reporter < 2; ++reporter) {
    threads.emplace_back([&] {
      while (over.load() < kThreads) EXPECT_NE(DumpStalls().find("client of '"), std::string::npos);
    });
  }
  for (std::thread& thread : threads) thread.join();
  stalled.SetReady();
  EXPECT_TRUE(client.Shutdown().ok());
  ExpectAllIsFreed(space);
}

TEST(MemoryReportRaceTest, ReportsBeside24ThreadsThatAllocateFreeNothingTwice) { ReportBesideAllocations({}); }

TEST(MemoryReportRaceTest, AutopsiesBeside24ThreadsThatRunOutOfMemoryFreeNothingTwice) {
  ClientOptions options;
  options.memory_limit_bytes = std::size_t{3} << 20;
  ReportBesideAllocations(std::move(options));
}

TEST(MemoryReportRaceTest, ReportsBeside24ThreadsWithAnAllocatorOfTheirOwnFreeNothingTwice) {
  ClientOptions options;
  options.host_memory_allocator = std::make_shared<Malloc>();
  ReportBesideAllocations(std::move(options));
}

}  // namespace
}  // namespace purlin
