#include "purlin/raw_buffer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/client.h"
#include "tests/cpp/raw_bytes.h"

namespace purlin {
namespace {

constexpr std::size_t kMax = std::numeric_limits<std::size_t>::max();
/// More than a copy that runs inside the call.
constexpr std::size_t kLarge = 200'000;

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

Client MakeClient(std::string_view platform = "host") {
  ClientOptions options;
  options.device_count = 2;
  options.worker_count = 2;
  options.platform = platform;
  return Client::Create(options).value();
}

Bytes Numbers(std::size_t size) {
  Bytes bytes(size);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  return bytes;
}

class RawBufferTest : public testing::Test {
 protected:
  RawBuffer Allocate(std::size_t size) const { return RawBuffer::Allocate(space_, size).value(); }

  RawBuffer Filled(const Bytes& bytes) const { return FilledIn(space_, bytes); }

  Client client_ = MakeClient();
  MemorySpace space_ = client_.devices()[0].default_memory_space();
};

TEST_F(RawBufferTest, IsAlignedMemoryInItsSpace) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{100}, kLarge}) {
    const RawBuffer buffer = Allocate(size);
    EXPECT_EQ(buffer.on_device_size_bytes(), size);
    EXPECT_EQ(buffer.memory_space(), space_);
    ASSERT_NE(buffer.host_pointer(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.host_pointer()) % 64, 0U);
    std::memset(buffer.host_pointer(), 0xAB, size);
    EXPECT_EQ(BytesIn(buffer), Bytes(size, 0xAB));
  }
}

TEST_F(RawBufferTest, ZeroBytesAreABufferToo) {
  const RawBuffer buffer = Allocate(0);
  EXPECT_EQ(buffer.on_device_size_bytes(), 0U);
  EXPECT_TRUE(buffer.CopyFromHost(nullptr, 0, 0).Wait().ok());
  EXPECT_TRUE(buffer.CopyToHost(nullptr, 0, 0).Wait().ok());
  EXPECT_TRUE(buffer.CopyTo(Allocate(0)).Wait().ok());
  EXPECT_TRUE(buffer.Slice(0, 0).ok());
  EXPECT_TRUE(IsOutOfRange(buffer.Slice(1, 0).status()));
}

TEST_F(RawBufferTest, MemoryThatIsNotThereIsResourceExhausted) {
  for (const std::size_t size : {kMax, kMax / 2}) {
    const Status status = RawBuffer::Allocate(space_, size).status();
    EXPECT_TRUE(IsResourceExhausted(status)) << status;
    EXPECT_TRUE(Contains(status.message(), std::to_string(size))) << status;
    EXPECT_TRUE(Contains(status.message(), "host:0/device")) << status;
  }
  EXPECT_EQ(space_.Stats().bytes_in_use, 0U);
}

TEST_F(RawBufferTest, BytesGoInAndComeBack) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{64 << 10}, std::size_t{(64 << 10) + 1}, kLarge}) {
    const Bytes bytes = Numbers(size);
    EXPECT_EQ(BytesIn(Filled(bytes)), bytes) << size;
  }
}

TEST_F(RawBufferTest, PartsAreCopiedAtTheirOffsets) {
  const RawBuffer buffer = Filled(Bytes(10, 0));
  const Bytes three = {7, 8, 9};
  EXPECT_TRUE(buffer.CopyFromHost(three.data(), 7, 3).Wait().ok()) << "up to the very end";
  EXPECT_TRUE(buffer.CopyFromHost(three.data(), 0, 2).Wait().ok());
  EXPECT_EQ(BytesIn(buffer), (Bytes{7, 8, 0, 0, 0, 0, 0, 7, 8, 9}));
  Bytes part(4);
  EXPECT_TRUE(buffer.CopyToHost(part.data(), 6, 4).Wait().ok());
  EXPECT_EQ(part, (Bytes{0, 7, 8, 9}));
}

TEST_F(RawBufferTest, RangesPastTheEndAreOutOfRangeAndNamed) {
  const RawBuffer buffer = Filled(Numbers(10));
  Bytes bytes(20, 0xEE);
  const std::pair<std::size_t, std::size_t> ranges[] = {{0, 11},   {10, 1},   {11, 0},     {5, 6},
                                                        {1, kMax}, {kMax, 1}, {kMax, kMax}};
  for (const auto& [offset, size] : ranges) {
    for (const Status& status :
         {buffer.CopyFromHost(bytes.data(), offset, size).Wait(), buffer.CopyToHost(bytes.data(), offset, size).Wait(),
          buffer.Slice(offset, size).status()}) {
      EXPECT_TRUE(IsOutOfRange(status)) << status;
      EXPECT_TRUE(Contains(status.message(), std::to_string(offset))) << status;
      EXPECT_TRUE(Contains(status.message(), std::to_string(size))) << status;
      EXPECT_TRUE(Contains(status.message(), "10")) << status;
    }
  }
  EXPECT_EQ(bytes, Bytes(20, 0xEE)) << "nothing was written";
  EXPECT_EQ(BytesIn(buffer), Numbers(10));
}

TEST_F(RawBufferTest, ANullHostPointerIsInvalid) {
  const RawBuffer buffer = Allocate(10);
  EXPECT_TRUE(IsInvalidArgument(buffer.CopyFromHost(nullptr, 0, 1).Wait()));
  EXPECT_TRUE(IsInvalidArgument(buffer.CopyToHost(nullptr, 0, 1).Wait()));
}

TEST_F(RawBufferTest, SlicesShareTheMemory) {
  std::optional<RawBuffer> buffer(Filled(Numbers(10)));
  const RawBuffer slice = buffer->Slice(2, 5).value();
  const RawBuffer inner = slice.Slice(1, 2).value();
  EXPECT_EQ(slice.on_device_size_bytes(), 5U);
  EXPECT_EQ(static_cast<char*>(inner.host_pointer()), static_cast<char*>(buffer->host_pointer()) + 3);
  EXPECT_TRUE(IsOutOfRange(slice.Slice(5, 1).status())) << "a slice ends where it ends";
  const std::uint8_t byte = 99;
  EXPECT_TRUE(inner.CopyFromHost(&byte, 1, 1).Wait().ok());
  buffer.reset();
  EXPECT_EQ(BytesIn(slice), (Bytes{3, 4, 99, 6, 7})) << "the slice keeps the memory";
  EXPECT_EQ(space_.Stats().bytes_in_use, 10U);
}

TEST_F(RawBufferTest, HandlesCopyMoveAndAssign) {
  RawBuffer a = Filled(Numbers(4));
  RawBuffer b = a;
  RawBuffer c = std::move(a);
  a = Allocate(1);
  b = Allocate(1);
  EXPECT_EQ(BytesIn(c), Numbers(4));
  RawBuffer& same = c;
  c = same;
  EXPECT_EQ(BytesIn(c), Numbers(4));
}

TEST_F(RawBufferTest, CopiesToOtherSpacesAndDevices) {
  for (const std::size_t size : {std::size_t{100}, kLarge}) {
    const RawBuffer source = Filled(Numbers(size));
    for (const Device& device : client_.devices()) {
      for (const MemorySpace& space : device.memory_spaces()) {
        const RawBuffer destination = RawBuffer::Allocate(space, size).value();
        EXPECT_TRUE(source.CopyTo(destination).Wait().ok());
        EXPECT_EQ(BytesIn(destination), Numbers(size));
      }
    }
  }
}

TEST_F(RawBufferTest, ALargerDestinationKeepsItsTail) {
  const RawBuffer destination = Filled(Bytes(5, 0xCC));
  EXPECT_TRUE(Filled(Numbers(3)).CopyTo(destination).Wait().ok());
  EXPECT_EQ(BytesIn(destination), (Bytes{1, 2, 3, 0xCC, 0xCC}));
}

TEST_F(RawBufferTest, ASmallerDestinationIsInvalidAndBothSizesAreNamed) {
  const Status status = Allocate(123).CopyTo(Allocate(45)).Wait();
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "123") && Contains(status.message(), "45")) << status;
}

TEST_F(RawBufferTest, AnotherClientsBufferIsInvalid) {
  const Client other = MakeClient();
  const RawBuffer theirs = RawBuffer::Allocate(other.devices()[0].default_memory_space(), 10).value();
  EXPECT_TRUE(IsInvalidArgument(Allocate(10).CopyTo(theirs).Wait()));
}

TEST_F(RawBufferTest, OverlappingSlicesAreCopiedAsByMemmove) {
  for (const bool forward : {true, false}) {
    const RawBuffer buffer = Filled(Numbers(10));
    const RawBuffer low = buffer.Slice(0, 8).value();
    const RawBuffer high = buffer.Slice(2, 8).value();
    EXPECT_TRUE((forward ? low.CopyTo(high) : high.CopyTo(low)).Wait().ok());
    const Bytes expected = forward ? Bytes{1, 2, 1, 2, 3, 4, 5, 6, 7, 8} : Bytes{3, 4, 5, 6, 7, 8, 9, 10, 9, 10};
    EXPECT_EQ(BytesIn(buffer), expected);
  }
}

TEST_F(RawBufferTest, CopiesWaitForTheirDependencies) {
  for (const std::size_t size : {std::size_t{8}, kLarge}) {
    const RawBuffer buffer = Filled(Bytes(size, 0));
    const Bytes bytes = Numbers(size);
    Bytes back(size);
    EventPromise gate("gate");
    EventPromise other("other");
    const Event in = buffer.CopyFromHost(bytes.data(), 0, size, {gate.event(), Event(), other.event()});
    const Event out = buffer.CopyToHost(back.data(), 0, size, {in});
    gate.SetReady();
    EXPECT_FALSE(in.IsReady());
    EXPECT_FALSE(out.IsReady());
    EXPECT_EQ(static_cast<const std::uint8_t*>(buffer.host_pointer())[0], 0) << "nothing is copied early";
    other.SetReady();
    EXPECT_TRUE(out.Wait().ok());
    EXPECT_TRUE(in.IsReady());
    EXPECT_EQ(back, bytes);
  }
}

TEST_F(RawBufferTest, AFailedDependencyIsTheCopysErrorAndNothingIsCopied) {
  const RawBuffer buffer = Filled(Numbers(8));
  const RawBuffer destination = Filled(Bytes(8, 0));
  const Bytes bytes(8, 0xDD);
  Bytes back(8, 0xEE);
  EventPromise later("later");
  for (const Event& dependency : {Event::Error(AbortedError("upstream")), later.event()}) {
    const Event in = buffer.CopyFromHost(bytes.data(), 0, 8, {dependency});
    const Event out = buffer.CopyToHost(back.data(), 0, 8, {Event(), dependency});
    const Event over = buffer.CopyTo(destination, {dependency});
    const Event nothing = buffer.CopyToHost(nullptr, 0, 0, {dependency});
    later.SetError(AbortedError("upstream"));
    for (const Event& event : {in, out, over, nothing}) EXPECT_EQ(event.Wait(), AbortedError("upstream"));
  }
  EXPECT_EQ(BytesIn(buffer), Numbers(8));
  EXPECT_EQ(BytesIn(destination), Bytes(8, 0));
  EXPECT_EQ(back, Bytes(8, 0xEE));
}

TEST_F(RawBufferTest, ACopyInFlightKeepsTheMemory) {
  const Bytes bytes = Numbers(kLarge);
  Bytes back(kLarge);
  EventPromise gate("gate");
  Event done;
  {
    const RawBuffer buffer = Filled(bytes);
    done = buffer.CopyToHost(back.data(), 0, kLarge, {gate.event()});
  }
  EXPECT_EQ(space_.Stats().bytes_in_use, kLarge);
  gate.SetReady();
  EXPECT_TRUE(done.Wait().ok());
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(space_.Stats().bytes_in_use, 0U) << "freed before the event, so that the count can be trusted after it";
}

TEST_F(RawBufferTest, AfterShutdownCopiesThatNeedTheRunnerAreCancelled) {
  const RawBuffer buffer = Filled(Numbers(kLarge));
  ASSERT_TRUE(client_.runner().Shutdown().ok());
  Bytes back(kLarge);
  EXPECT_TRUE(IsCancelled(buffer.CopyToHost(back.data(), 0, kLarge).Wait()));
  EXPECT_TRUE(buffer.CopyToHost(back.data(), 0, 8).Wait().ok()) << "a small one needs no runner";
}

TEST_F(RawBufferTest, IsThereAtOnceAndMutable) {
  const RawBuffer buffer = Allocate(10);
  EXPECT_TRUE(buffer.allocation_event().IsReady());
  EXPECT_TRUE(buffer.allocation_event().Wait().ok());
  EXPECT_TRUE(buffer.is_mutable());
  EXPECT_EQ(*buffer.Slice(3, 4)->device_pointer(), reinterpret_cast<std::uintptr_t>(buffer.host_pointer()) + 3);
}

TEST_F(RawBufferTest, SlicesComeTogetherOrNotAtAll) {
  const RawBuffer whole = Filled(Numbers(100));
  const std::vector<RawBuffer> parts = whole.Slices({{{0, 3}, {97, 3}, {5, 0}, {1, 4}}}).value();
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(BytesIn(parts[0]), (Bytes{1, 2, 3}));
  EXPECT_EQ(BytesIn(parts[1]), (Bytes{98, 99, 100}));
  EXPECT_EQ(BytesIn(parts[2]), Bytes());
  EXPECT_EQ(BytesIn(parts[3]), (Bytes{2, 3, 4, 5}));
  EXPECT_TRUE(whole.Slices({}).value().empty());
  const std::vector<ByteRange> ranges = {{0, 10}, {95, 6}, {0, 200}};
  const Status status = whole.Slices(ranges).status();
  EXPECT_TRUE(IsOutOfRange(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "95") && Contains(status.message(), "100")) << status;
}

TEST_F(RawBufferTest, PartsAreCopiedToParts) {
  const RawBuffer source = Filled(Numbers(10));
  const RawBuffer destination = Filled(Bytes(6, 0));
  EventPromise gate("gate");
  const Event copied = source.CopyRangeTo(7, destination, 1, 3, {gate.event()});
  EXPECT_FALSE(copied.IsReady());
  gate.SetReady();
  EXPECT_TRUE(copied.Wait().ok());
  EXPECT_EQ(BytesIn(destination), (Bytes{0, 8, 9, 10, 0, 0}));
  EXPECT_TRUE(source.CopyRangeTo(0, source, 2, 8).Wait().ok()) << "they may overlap";
  EXPECT_EQ(BytesIn(source), (Bytes{1, 2, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_TRUE(source.CopyRangeTo(10, destination, 6, 0).Wait().ok());
}

TEST_F(RawBufferTest, APartPastEitherEndIsOutOfRange) {
  const RawBuffer source = Allocate(100);
  const RawBuffer destination = Allocate(50);
  const std::array<std::size_t, 3> cases[] = {{0, 0, 51},   {51, 0, 50},  {0, 1, 50},  {kMax, 0, 1},
                                              {0, kMax, 1}, {0, 0, kMax}, {101, 0, 0}, {0, 51, 0}};
  for (const auto& [from, to, size] : cases) {
    const Status status = source.CopyRangeTo(from, destination, to, size).Wait();
    EXPECT_TRUE(IsOutOfRange(status)) << status;
    EXPECT_TRUE(Contains(status.message(), std::to_string(size))) << status;
  }
}

TEST_F(RawBufferTest, MemoryIsKeptUntilTheEvent) {
  EventPromise happens("happens");
  EventPromise fails("fails");
  Allocate(100).RetainUntil(happens.event());
  Allocate(1000).RetainUntil(fails.event());
  Allocate(10'000).RetainUntil(Event());
  EXPECT_EQ(space_.Stats().bytes_in_use, 1100U);
  happens.SetReady();
  EXPECT_EQ(space_.Stats().bytes_in_use, 1000U);
  fails.SetError(AbortedError("x"));
  EXPECT_EQ(space_.Stats().bytes_in_use, 0U);
}

TEST(NullRawBufferTest, KeepsBooksAndHoldsNoBytes) {
  const Client client = MakeClient("null");
  const MemorySpace space = client.devices()[0].default_memory_space();
  const RawBuffer buffer = RawBuffer::Allocate(space, 100).value();
  EXPECT_EQ(buffer.host_pointer(), nullptr);
  EXPECT_EQ(space.Stats().bytes_in_use, 100U);
  Bytes bytes(100);
  EXPECT_TRUE(buffer.CopyFromHost(bytes.data(), 0, 100).Wait().ok());
  EXPECT_TRUE(buffer.CopyTo(buffer.Slice(0, 100).value()).Wait().ok());
  EXPECT_TRUE(IsUnimplemented(buffer.CopyToHost(bytes.data(), 0, 100).Wait()));
  EXPECT_TRUE(IsOutOfRange(buffer.CopyFromHost(bytes.data(), 1, 100).Wait()));
}

}  // namespace
}  // namespace purlin
