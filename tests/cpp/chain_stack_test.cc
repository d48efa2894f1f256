// Programs whose every output is the next input make chains of any length: of channels, of releases, of cancel
// callbacks, of arrays through DLPack. They need no more stack than short ones, and what they no longer need goes.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "purlin/buffer.h"
#include "purlin/cancel.h"
#include "purlin/client.h"
#include "purlin/dlpack.h"
#include "purlin/raw_buffer.h"
#include "tests/cpp/raw_bytes.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

constexpr int kChannels = 40'000;
constexpr int kCallbacks = 100'000;
constexpr int kRoundTrips = 8'000;

MemorySpace Space() {
  ClientOptions options;
  options.worker_count = 1;
  return Client::Create(options)->devices()[0].default_memory_space();
}

alignas(64) const std::uint8_t kConstant[64] = {7};

TEST(ChainStackTest, ChannelsEachFulfilledWithTheLast) {
  OnSmallStack([] {
    const MemorySpace space = Space();
    const Bytes bytes(64, 5);
    RawBuffer last = FilledIn(space, bytes);
    const void* const address = last.host_pointer();
    for (int i = 0; i < kChannels; ++i) {
      auto [next, promise] = RawBuffer::CreateChannel(space, 64).value();
      ASSERT_TRUE(std::move(promise).Fulfil(last).ok());
      last = std::move(next);
    }
    EXPECT_EQ(last.host_pointer(), address);
    EXPECT_EQ(BytesIn(last), bytes);
  });
}

TEST(ChainStackTest, ReleasesThatLetGoOfTheNextImport) {
  int released = 0;
  OnSmallStack([&released] {
    const MemorySpace space = Space();
    const auto import = [&space](auto release) {
      return RawBuffer::Import(space, const_cast<std::uint8_t*>(kConstant), 64, Mutability::kImmutable, release);
    };
    auto last = std::make_shared<RawBuffer>(import([] {}).value());
    for (int i = 0; i < kCallbacks; ++i) {
      last = std::make_shared<RawBuffer>(import([before = std::move(last), &released]() mutable {
                                           before.reset();
                                           ++released;
                                         }).value());
    }
    EXPECT_EQ(released, 0);
    last.reset();
  });
  EXPECT_EQ(released, kCallbacks);
}

TEST(ChainStackTest, CancelCallbacksThatCancelTheNext) {
  OnSmallStack([] {
    int told = 0;
    CancelSource last("last");
    CancelSource next = last;
    std::vector<CancelRegistration> registrations;
    for (int i = 0; i < kCallbacks; ++i) {
      CancelSource source("chain");
      registrations.push_back(source.token().OnCancel([next, &told](const Status& reason) mutable {
        ++told;
        next.Cancel(reason);
      }));
      next = source;
    }
    next.Cancel(AbortedError("enough"));
    EXPECT_EQ(told, kCallbacks) << "all before the first Cancel returned";
    EXPECT_EQ(last.token().status(), AbortedError("enough"));
  });
}

TEST(ChainStackTest, MemoryThatIsKeptUntilTheNextEvent) {
  OnSmallStack([] {
    const MemorySpace space = Space();
    EventPromise first("first");
    Event event = first.event();
    for (int i = 0; i < kCallbacks; ++i) {
      auto next = std::make_shared<EventPromise>("next");
      const Event after = next->event();
      RawBuffer::Import(space, const_cast<std::uint8_t*>(kConstant), 64, Mutability::kImmutable, [next] {
        next->SetReady();
      })->RetainUntil(event);
      event = after;
    }
    first.SetReady();
    EXPECT_TRUE(event.Wait().ok());
  });
}

TEST(ChainStackTest, ArraysThroughDLPackEachMadeOfTheLast) {
  OnSmallStack([] {
    const MemorySpace space = Space();
    const std::vector<float> values(64, 3.0F);
    Buffer last = Buffer::FromHost(values.data(), values.size() * sizeof(float), DType::kF32, {64}, space).value();
    for (int i = 0; i < kRoundTrips; ++i) {
      FromHostResult back = FromDLPack(ToDLPack(last).value(), space).value();
      EXPECT_EQ(back.aliasing, Aliasing::kAliased);
      last = std::move(back.buffer);
    }
    std::vector<float> read(64);
    EXPECT_TRUE(last.CopyToHost(read.data(), read.size() * sizeof(float)).Wait().ok());
    EXPECT_EQ(read, values);
  });
}

}  // namespace
}  // namespace purlin
