// Memory of another owner as a buffer: RawBuffer::Import.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/client.h"
#include "purlin/raw_buffer.h"
#include "purlin/status.h"
#include "tests/cpp/counting_allocations.h"
#include "tests/cpp/raw_bytes.h"

namespace purlin {
namespace {

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

MemorySpace Space() {
  ClientOptions options;
  options.worker_count = 2;
  return Client::Create(options)->devices()[0].default_memory_space();
}

struct Memory {
  alignas(64) std::array<std::uint8_t, 256> bytes{};
};

TEST(RawBufferImportTest, ImportedMemoryIsUsedInPlaceAndReleasedOnceByItsLastUse) {
  const MemorySpace space = Space();
  auto memory = std::make_unique<Memory>();
  Memory* const address = memory.get();
  int released = 0;
  std::optional<RawBuffer> buffer(
      RawBuffer::Import(space, address, 256, Mutability::kMutable, [owned = std::move(memory), &released] {
        ++released;
      }).value());
  EXPECT_EQ(buffer->host_pointer(), address);
  EXPECT_EQ(buffer->on_device_size_bytes(), 256U);
  EXPECT_EQ(buffer->memory_space(), space);
  EXPECT_TRUE(buffer->is_mutable());
  EXPECT_EQ(space.Stats().bytes_in_use, 0U) << "it is not counted";
  EXPECT_EQ(space.Stats().num_allocs, 0U);
  const Bytes three = {7, 8, 9};
  EXPECT_TRUE(buffer->CopyFromHost(three.data(), 10, 3).Wait().ok());
  EXPECT_EQ(address->bytes[12], 9);

  std::optional<RawBuffer> slice(buffer->Slice(10, 3).value());
  EventPromise gate("gate");
  Bytes back(3);
  const Event copied = slice->CopyToHost(back.data(), 0, 3, {gate.event()});
  buffer.reset();
  slice.reset();
  EXPECT_EQ(released, 0) << "a copy in flight uses it";
  gate.SetReady();
  EXPECT_TRUE(copied.Wait().ok());
  EXPECT_EQ(released, 1);
  EXPECT_EQ(back, three);
}

/// A closure of that size, whose bytes and destruction are noted.
template <std::size_t kBytes>
struct Sized {
  std::shared_ptr<int> called;
  std::array<unsigned char, kBytes - sizeof(std::shared_ptr<int>)> bytes;

  explicit Sized(std::shared_ptr<int> count) : called(std::move(count)) { bytes.fill(kBytes % 251); }
  void operator()() {
    for (const unsigned char byte : bytes) EXPECT_EQ(byte, kBytes % 251);
    ++*called;
  }
};

/// Allocations by C++ of an import that is released by such a closure.
template <std::size_t kBytes>
int AllocationsOfImport(const MemorySpace& space, void* address) {
  const auto called = std::make_shared<int>(0);
  const auto import = [&] {
    RawBuffer::Import(space, address, 256, Mutability::kMutable, Sized<kBytes>(called)).value();
  };
  import();  // Fills the thread's lists.
  const int count = AllocationsOf(import);
  EXPECT_EQ(*called, 2);
  EXPECT_EQ(called.use_count(), 1) << "closures of " << kBytes << " bytes are destroyed";
  return count;
}

TEST(RawBufferImportTest, SmallClosuresNeedNoAllocation) {
  const MemorySpace space = Space();
  Memory memory;
  EXPECT_EQ(AllocationsOfImport<24>(space, &memory), 0);
  EXPECT_EQ(AllocationsOfImport<64>(space, &memory), 0);
  EXPECT_EQ(AllocationsOfImport<72>(space, &memory), 0);
  EXPECT_EQ(AllocationsOfImport<128>(space, &memory), 0);
  EXPECT_EQ(AllocationsOfImport<136>(space, &memory), 1) << "a block has 128 bytes";
}

TEST(RawBufferImportTest, ClosuresOfAnImportThatFailsAreDestroyedUncalled) {
  const MemorySpace space = Space();
  const auto called = std::make_shared<int>(0);
  EXPECT_EQ(RawBuffer::Import(space, nullptr, 256, Mutability::kMutable, Sized<64>(called)).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(RawBuffer::Import(space, nullptr, 256, Mutability::kMutable, Sized<136>(called)).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(*called, 0);
  EXPECT_EQ(called.use_count(), 1);
}

TEST(RawBufferImportTest, ReadOnlyMemoryIsNotWritten) {
  const MemorySpace space = Space();
  Memory memory;
  int released = 0;
  {
    const RawBuffer buffer =
        RawBuffer::Import(space, &memory, 256, Mutability::kImmutable, [&released] { ++released; }).value();
    EXPECT_FALSE(buffer.is_mutable());
    EXPECT_FALSE(buffer.Slice(1, 2)->is_mutable());
    const RawBuffer other = RawBuffer::Allocate(space, 256).value();
    const std::uint8_t byte = 1;
    for (const Status& status : {buffer.CopyFromHost(&byte, 0, 1).Wait(), other.CopyTo(buffer).Wait(),
                                 other.CopyRangeTo(0, buffer, 0, 1).Wait()}) {
      EXPECT_TRUE(IsInvalidArgument(status)) << status;
      EXPECT_TRUE(Contains(status.message(), "may not be written")) << status;
    }
    EXPECT_TRUE(buffer.CopyTo(other).Wait().ok());
    EXPECT_EQ(BytesIn(other), Bytes(256, 0));
  }
  EXPECT_EQ(released, 1);
}

TEST(RawBufferImportTest, WhatCannotBeImportedIsNamedAndItsReleaseDestroyedUncalled) {
  const MemorySpace space = Space();
  Memory memory;
  const auto witness = std::make_shared<int>(0);
  const auto release = [witness] { ++*witness; };
  for (void* address : {static_cast<void*>(nullptr), static_cast<void*>(&memory.bytes[1])}) {
    const Status status = RawBuffer::Import(space, address, 8, Mutability::kMutable, release).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "8 bytes") && Contains(status.message(), "multiple of 16")) << status;
  }
  const Status status = RawBuffer::Import(space, &memory, 8, static_cast<Mutability>(5), release).status();
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "Mutability is 5")) << status;
  EXPECT_EQ(*witness, 0);
  EXPECT_EQ(witness.use_count(), 2) << "ours, and the lambda's";
}

TEST(RawBufferImportTest, ImportsNeedNoRelease) {
  const MemorySpace space = Space();
  static Memory memory;
  EXPECT_TRUE(RawBuffer::Import(space, &memory, 256, Mutability::kMutable).ok());
  EXPECT_TRUE(RawBuffer::Import(space, &memory, 256, Mutability::kMutable, std::function<void()>()).ok());
  void (*none)() = nullptr;
  EXPECT_TRUE(RawBuffer::Import(space, &memory, 256, Mutability::kMutable, none).ok());
  static int called = 0;
  EXPECT_TRUE(RawBuffer::Import(space, &memory, 256, Mutability::kMutable, +[] { ++called; }).ok());
  EXPECT_EQ(called, 1);
}

TEST(RawBufferImportTest, TheNullBackendImportsToo) {
  ClientOptions options;
  options.worker_count = 1;
  options.platform = "null";
  const MemorySpace space = Client::Create(options)->devices()[0].default_memory_space();
  Memory memory;
  int released = 0;
  {
    const StatusOr<RawBuffer> buffer =
        RawBuffer::Import(space, &memory, 256, Mutability::kMutable, [&released] { ++released; });
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_TRUE(buffer->device_pointer().ok());
    EXPECT_EQ(buffer->host_pointer(), nullptr);
  }
  EXPECT_EQ(released, 1);
}

TEST(RawBufferImportTest, TheLastUseMayBeACopyOnTheRunner) {
  const MemorySpace space = Space();
  auto memory = std::make_unique<std::vector<std::uint8_t>>(200'016, 3);
  auto* const first = memory->data() + (16 - reinterpret_cast<std::uintptr_t>(memory->data()) % 16) % 16;
  EventPromise released("released");
  const Event event = released.event();
  const RawBuffer target = RawBuffer::Allocate(space, 200'000).value();
  EventPromise gate("gate");
  Event copied;
  {
    const RawBuffer buffer = RawBuffer::Import(space, first, 200'000, Mutability::kImmutable,
                                               [memory = std::move(memory), promise = std::move(released)]() mutable {
                                                 memory.reset();
                                                 promise.SetReady();
                                               })
                                 .value();
    copied = buffer.CopyTo(target, {gate.event()});
  }
  EXPECT_FALSE(event.IsReady());
  gate.SetReady();
  EXPECT_TRUE(copied.Wait().ok());
  EXPECT_TRUE(event.Wait().ok());
  EXPECT_EQ(BytesIn(target), Bytes(200'000, 3));
}

}  // namespace
}  // namespace purlin
