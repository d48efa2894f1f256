#include "purlin/host_memory_allocator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/client.h"
#include "purlin/raw_buffer.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Knows all of its blocks, and misbehaves if the test sets that.
class TestAllocator final : public HostMemoryAllocator {
 public:
  ~TestAllocator() override {
    EXPECT_TRUE(blocks_.empty()) << blocks_.size() << " blocks did not come back";
    destroyed.fetch_add(1);
  }

  void* Allocate(std::size_t size_bytes, std::size_t alignment_bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    EXPECT_GT(size_bytes, 0U);
    EXPECT_GE(alignment_bytes, 64U);
    EXPECT_EQ(alignment_bytes & (alignment_bytes - 1), 0U);
    ++allocated;
    if (on_allocate) on_allocate();
    if (empty || in_use_bytes_ + size_bytes > capacity_bytes) return nullptr;
    in_use_bytes_ += size_bytes;
    // Room for the skew; aligned_alloc wants a multiple of the alignment.
    const std::size_t padded_bytes = (size_bytes / alignment_bytes + 2) * alignment_bytes;
    char* memory = static_cast<char*>(std::aligned_alloc(alignment_bytes, padded_bytes)) + skew_bytes;
    blocks_[memory] = {size_bytes, alignment_bytes};
    return memory;
  }

  void Deallocate(void* address, std::size_t size_bytes, std::size_t alignment_bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto block = blocks_.find(static_cast<char*>(address));
    ASSERT_NE(block, blocks_.end()) << "not ours, or back for the second time";
    EXPECT_EQ(block->second, std::pair(size_bytes, alignment_bytes));
    blocks_.erase(block);
    ++deallocated;
    in_use_bytes_ -= size_bytes;
    std::free(static_cast<char*>(address) - skew_bytes);
  }

  bool Owns(const void* address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return blocks_.count(static_cast<char*>(const_cast<void*>(address))) == 1;
  }

  static inline std::atomic<int> destroyed{0};
  std::function<void()> on_allocate;
  bool empty = false;
  std::size_t capacity_bytes = ~std::size_t{0} / 2;
  std::size_t skew_bytes = 0;
  int allocated = 0;
  int deallocated = 0;

 private:
  std::mutex mutex_;
  std::size_t in_use_bytes_ = 0;
  std::map<char*, std::pair<std::size_t, std::size_t>> blocks_;
};

ClientOptions Options(std::shared_ptr<HostMemoryAllocator> allocator) {
  ClientOptions options;
  options.device_count = 2;
  options.worker_count = 1;
  options.host_memory_allocator = std::move(allocator);
  return options;
}

TEST(HostMemoryAllocatorTest, EveryBlockOfEverySpaceComesFromItAndGoesBack) {
  const auto allocator = std::make_shared<TestAllocator>();
  {
    const Client client = Client::Create(Options(allocator)).value();
    std::vector<RawBuffer> buffers;
    for (const Device& device : client.devices()) {
      for (const MemorySpace& space : device.memory_spaces()) {
        for (const std::size_t size : {0U, 1U, 100U, 5'000U, 3U << 20}) {
          buffers.push_back(RawBuffer::Allocate(space, size).value());
          EXPECT_TRUE(allocator->Owns(buffers.back().host_pointer()));
        }
      }
    }
    EXPECT_EQ(allocator->allocated, 30);
    EXPECT_EQ(allocator->deallocated, 0);
    buffers.resize(10, buffers[0]);
    EXPECT_EQ(allocator->deallocated, 20) << "nothing is kept for later";
  }
  EXPECT_EQ(allocator->deallocated, 30);
}

TEST(HostMemoryAllocatorTest, IsAskedForTheAlignmentThatTheUserAsksFor) {
  const auto allocator = std::make_shared<TestAllocator>();
  const MemorySpace space = Client::Create(Options(allocator))->devices()[0].default_memory_space();
  AllocOptions options;
  options.alignment_bytes = 1 << 16;
  const RawBuffer buffer = RawBuffer::Allocate(space, 10, options).value();
  EXPECT_TRUE(allocator->Owns(buffer.host_pointer()));
  EXPECT_EQ(*buffer.device_pointer() % (1 << 16), 0U);
}

TEST(HostMemoryAllocatorTest, NullIsResourceExhaustedWithAReport) {
  const auto allocator = std::make_shared<TestAllocator>();
  const MemorySpace space = Client::Create(Options(allocator))->devices()[0].default_memory_space();
  const RawBuffer held = RawBuffer::Allocate(space, 8).value();
  allocator->empty = true;
  const Status status = RawBuffer::Allocate(space, 77).status();
  EXPECT_TRUE(IsResourceExhausted(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "cannot allocate 77 bytes in host:0/device (8 bytes in use)")) << status;
  EXPECT_TRUE(status.GetPayload(kMemoryReportTypeUrl).has_value());
  allocator->empty = false;
  EXPECT_TRUE(RawBuffer::Allocate(space, 77).ok()) << "the client goes on";
  EXPECT_EQ(space.Stats().num_allocs, 2U);
}

TEST(HostMemoryAllocatorTest, WhatIsNotAlignedIsRefusedAndGivenBackUnused) {
  const auto allocator = std::make_shared<TestAllocator>();
  const MemorySpace space = Client::Create(Options(allocator))->devices()[0].default_memory_space();
  allocator->skew_bytes = 8;
  for (const OomPolicy oom : {OomPolicy::kFail, OomPolicy::kWait}) {
    AllocOptions options;
    options.oom = oom;
    const Status status = RawBuffer::Allocate(space, 100, options).status();
    EXPECT_TRUE(IsInternal(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "at a multiple of 64") && Contains(status.message(), "given back"))
        << status;
  }
  EXPECT_EQ(allocator->allocated, 2);
  EXPECT_EQ(allocator->deallocated, 2);
  EXPECT_EQ(space.Stats().bytes_in_use, 0U);
  EXPECT_EQ(space.Stats().pool_bytes, 0U);
  allocator->skew_bytes = 0;
  EXPECT_TRUE(RawBuffer::Allocate(space, 100).ok());
}

TEST(HostMemoryAllocatorTest, WhoWaitsIsToldWhenNothingIsLeftThatCouldBeFreed) {
  const auto allocator = std::make_shared<TestAllocator>();
  const MemorySpace space = Client::Create(Options(allocator))->devices()[0].default_memory_space();
  std::optional<RawBuffer> held(RawBuffer::Allocate(space, 8).value());
  allocator->empty = true;
  AllocOptions waits;
  waits.oom = OomPolicy::kWait;
  const RawBuffer waiting = RawBuffer::Allocate(space, 100, waits).value();
  const RawBuffer second = RawBuffer::Allocate(space, 100, waits).value();
  EXPECT_FALSE(waiting.allocation_event().IsReady());
  held.reset();
  const Status status = waiting.allocation_event().Wait();
  EXPECT_TRUE(IsResourceExhausted(status)) << status;
  EXPECT_TRUE(status.GetPayload(kMemoryReportTypeUrl).has_value());
  EXPECT_TRUE(IsResourceExhausted(RawBuffer::Allocate(space, 100, waits).status())) << "now it is told at once";
  EXPECT_TRUE(IsResourceExhausted(second.allocation_event().Wait()));
  EXPECT_EQ(space.Report().waiting_count, 0U);
}

TEST(HostMemoryAllocatorTest, MayCallPurlinAlsoForWhoWaits) {
  const auto allocator = std::make_shared<TestAllocator>();
  ClientOptions options = Options(allocator);
  options.memory_limit_bytes = 1 << 20;
  const MemorySpace space = Client::Create(options)->devices()[0].default_memory_space();
  std::optional<RawBuffer> held(RawBuffer::Allocate(space, 1 << 20).value());
  AllocOptions waits;
  waits.oom = OomPolicy::kWait;
  const RawBuffer waiting = RawBuffer::Allocate(space, 100, waits).value();
  std::vector<std::size_t> seen;
  allocator->on_allocate = [&] { seen.push_back(space.Report().waiting_count); };
  held.reset();
  EXPECT_TRUE(waiting.allocation_event().Wait().ok());
  EXPECT_EQ(seen, std::vector<std::size_t>{1}) << "it was asked while the queue was served";
  allocator->on_allocate = nullptr;
}

TEST(HostMemoryAllocatorTest, ThreadsThatWaitForOneAnotherAreAllServed) {
  const auto allocator = std::make_shared<TestAllocator>();
  allocator->capacity_bytes = 1000;
  const MemorySpace space = Client::Create(Options(allocator))->devices()[0].default_memory_space();
  AllocOptions waits;
  waits.oom = OomPolicy::kWait;
  Together(4, [&](int thread) {
    for (int round = 0; round < 200; ++round) {
      const auto size = static_cast<std::size_t>(400 + (thread * 31 + round) % 100);
      const StatusOr<RawBuffer> buffer = RawBuffer::Allocate(space, size, waits);
      ASSERT_TRUE(buffer.ok()) << buffer.status();
      EXPECT_TRUE(buffer->allocation_event().Wait().ok()) << buffer->allocation_event().Wait();
    }
  });
  EXPECT_EQ(space.Stats().bytes_in_use, 0U);
  EXPECT_EQ(space.Report().waiting_count, 0U);
}

TEST(HostMemoryAllocatorTest, LivesUntilTheLastOfItsMemoryIsBack) {
  const int before = TestAllocator::destroyed.load();
  std::optional<RawBuffer> buffer;
  {
    const Client client = Client::Create(Options(std::make_shared<TestAllocator>())).value();
    buffer.emplace(RawBuffer::Allocate(client.devices()[0].default_memory_space(), 8).value());
  }
  EXPECT_EQ(TestAllocator::destroyed.load(), before);
  buffer.reset();
  EXPECT_EQ(TestAllocator::destroyed.load(), before + 1);
}

TEST(HostMemoryAllocatorTest, ServesNoOtherPlatformAndIsGivenUpWhenNoClientComes) {
  for (const std::string_view platform : {"null", "tpu"}) {
    const auto allocator = std::make_shared<TestAllocator>();
    ClientOptions options = Options(allocator);
    options.platform = platform;
    const Status status = Client::Create(options).status();
    if (platform == "null") {
      EXPECT_TRUE(IsInvalidArgument(status)) << status;
      EXPECT_TRUE(Contains(status.message(), "host_memory_allocator")) << status;
    } else {
      EXPECT_TRUE(IsNotFound(status)) << status;
    }
    options.host_memory_allocator = nullptr;
    EXPECT_EQ(allocator.use_count(), 1);
  }
  const auto allocator = std::make_shared<TestAllocator>();
  for (const std::size_t struct_size : {std::size_t{0}, sizeof(ClientOptions)}) {
    ClientOptions options = Options(allocator);
    options.struct_size = struct_size;
    options.device_count = 5000;
    EXPECT_TRUE(IsInvalidArgument(Client::Create(options).status()));
  }
  EXPECT_EQ(allocator.use_count(), 1);
}

TEST(HostMemoryAllocatorTest, IsUsedFromManyThreads) {
  const auto allocator = std::make_shared<TestAllocator>();
  const MemorySpace space = Client::Create(Options(allocator))->devices()[0].default_memory_space();
  Together(4, [&](int) {
    for (std::size_t i = 0; i < 200; ++i) {
      const RawBuffer buffer = RawBuffer::Allocate(space, 64 + i).value();
      EXPECT_TRUE(allocator->Owns(buffer.host_pointer()));
    }
  });
  EXPECT_EQ(allocator->allocated, 800);
  EXPECT_EQ(allocator->deallocated, 800);
}

}  // namespace
}  // namespace purlin
