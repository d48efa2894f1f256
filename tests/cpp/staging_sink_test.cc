// Sinks: device memory that is filled by leases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/staging.h"
#include "staging_fixture.h"
#include "testing.h"

namespace purlin {
namespace {

/// More than is copied inside a call.
constexpr std::size_t kLarge = 300'000;

class StagingSinkTest : public StagingFixture {
 protected:
  RawBuffer Empty(std::size_t size_bytes) const { return RawBuffer::Allocate(space_, size_bytes).value(); }
};

TEST_F(StagingSinkTest, PiecesMakeAWholeInAnyOrder) {
  for (const std::string_view platform : {"host", "sim"}) {
    const Client client = MakeClient(platform);
    for (const std::size_t size : {std::size_t{100}, kLarge}) {
      const StagingPool pool = PoolOf(client, size / 2, 2);
      const Bytes bytes = Pattern(size, 6);
      const RawBuffer destination = RawBuffer::Allocate(client.devices()[0].default_memory_space(), size).value();
      auto [sink, whole] = StagingSink::Create(destination);
      const std::size_t third = size / 3;
      const std::size_t half = size / 2;
      EXPECT_TRUE(Put(sink, pool, bytes, half, size - 1).ok());
      EXPECT_TRUE(Put(sink, pool, bytes, 0, third).ok());
      EXPECT_TRUE(Put(sink, pool, bytes, third, third).ok());
      EXPECT_TRUE(Put(sink, pool, bytes, third, half).ok());
      EXPECT_FALSE(whole.IsReady());
      EXPECT_EQ(sink.begun_bytes(), size - 1);
      EXPECT_TRUE(Put(sink, pool, bytes, size - 1, size).ok());
      {
        const StagingSink gone = std::move(sink);
      }
      EXPECT_TRUE(whole.Wait().ok()) << whole.Wait();
      EXPECT_EQ(BytesIn(destination), bytes);
      EXPECT_EQ(pool.free_count(), 2U) << "leases are back before the event";
    }
  }
  const auto [sink, nothing] = StagingSink::Create(Empty(0));
  EXPECT_TRUE(nothing.IsReady());
  EXPECT_TRUE(nothing.Wait().ok());
}

TEST_F(StagingSinkTest, AByteHasOnePiece) {
  const StagingPool pool = PoolOf(60, 1);
  const Bytes bytes = Pattern(100, 7);
  const RawBuffer destination = Empty(100);
  auto [sink, whole] = StagingSink::Create(destination);
  ASSERT_TRUE(Put(sink, pool, bytes, 10, 50).ok());
  const Status taken = Put(sink, pool, bytes, 40, 60);
  EXPECT_TRUE(IsInvalidArgument(taken)) << taken;
  EXPECT_TRUE(Contains(taken.message(), "[40, 60)") && Contains(taken.message(), "[40, 50) had one")) << taken;
  const Status outside = sink.Put(90, 11, pool.Acquire().value());
  EXPECT_TRUE(IsOutOfRange(outside)) << outside;
  for (const char* number : {"90", "11", "100"}) EXPECT_TRUE(Contains(outside.message(), number)) << outside;
  const Status beyond_lease = sink.Put(0, 61, pool.Acquire().value());
  EXPECT_TRUE(IsOutOfRange(beyond_lease)) << beyond_lease;
  for (const char* number : {"61", "60"}) EXPECT_TRUE(Contains(beyond_lease.message(), number)) << beyond_lease;
  EXPECT_TRUE(IsOutOfRange(sink.Put(SIZE_MAX, 2, pool.Acquire().value())));
  EXPECT_EQ(pool.free_count(), 1U) << "what is refused goes back";
  EXPECT_EQ(sink.begun_bytes(), 40U);
  ASSERT_TRUE(Put(sink, pool, bytes, 50, 100).ok());
  ASSERT_TRUE(Put(sink, pool, bytes, 0, 10).ok());
  EXPECT_TRUE(whole.Wait().ok());
  EXPECT_EQ(BytesIn(destination), bytes);
  EXPECT_TRUE(IsInvalidArgument(Put(sink, pool, bytes, 0, 1))) << "it is whole";
}

TEST_F(StagingSinkTest, APoisonedSinkWritesNoMore) {
  const StagingPool pool = PoolOf(kLarge, 1);
  const Bytes bytes = Pattern(kLarge, 8);
  const RawBuffer destination = Filled(Bytes(2 * kLarge));
  auto [sink, whole] = StagingSink::Create(destination);
  {
    const Occupied occupied(client_);
    ASSERT_TRUE(Put(sink, pool, bytes, 0, kLarge).ok());
    Status error = UnavailableError("the peer is gone");
    error.SetPayload("peer", "7");
    EXPECT_TRUE(sink.Poison(error).ok());
    EXPECT_TRUE(sink.Poison(AbortedError("later")).ok());
    EXPECT_FALSE(whole.IsReady()) << "a piece is under way";
  }
  const Status error = Put(sink, pool, bytes, 0, 0);
  EXPECT_EQ(error.message(), "the peer is gone");
  EXPECT_EQ(error.GetPayload("peer"), "7");
  EXPECT_EQ(whole.Wait(), error);
  const Bytes now = BytesIn(destination);
  EXPECT_EQ(Bytes(now.begin() + kLarge, now.end()), Bytes(kLarge));
  EXPECT_EQ(pool.free_count(), 1U) << "the piece under way was over before the event";
}

TEST_F(StagingSinkTest, ASinkWhoseBytesAreAllOnTheirWayIsNotPoisoned) {
  const StagingPool pool = PoolOf(kLarge, 1);
  const Bytes bytes = Pattern(kLarge, 8);
  const RawBuffer destination = Empty(kLarge);
  auto [sink, whole] = StagingSink::Create(destination);
  {
    const Occupied occupied(client_);
    ASSERT_TRUE(Put(sink, pool, bytes, 0, kLarge).ok());
    EXPECT_TRUE(sink.Poison(AbortedError("late")).ok());
    EXPECT_FALSE(whole.IsReady());
  }
  EXPECT_TRUE(whole.Wait().ok()) << whole.Wait();
  EXPECT_EQ(BytesIn(destination), bytes);
}

TEST_F(StagingSinkTest, ASinkThatGoesFails) {
  const StagingPool pool = PoolOf(10, 1);
  std::optional<std::pair<StagingSink, Event>> made = StagingSink::Create(Empty(30));
  const Event whole = made->second;
  ASSERT_TRUE(Put(made->first, pool, Pattern(30, 9), 0, 10).ok());
  EXPECT_FALSE(whole.IsReady());
  made.reset();
  EXPECT_TRUE(IsCancelled(whole.Wait())) << whole.Wait();
  EXPECT_TRUE(Contains(whole.Wait().message(), "10 of 30 bytes")) << whole.Wait();
  EXPECT_EQ(pool.free_count(), 1U);
}

TEST_F(StagingSinkTest, ACopyThatFailsFailsTheSink) {
  const StagingPool pool = PoolOf(kLarge, 1);
  auto [sink, whole] = StagingSink::Create(Empty(2 * kLarge));
  ASSERT_TRUE(client_.runner().Shutdown().ok());
  ASSERT_TRUE(sink.Put(0, kLarge, pool.Acquire().value()).ok());
  EXPECT_TRUE(IsCancelled(whole.Wait())) << whole.Wait();
  EXPECT_EQ(sink.Put(kLarge, kLarge, pool.Acquire().value()), whole.Wait());
  EXPECT_EQ(pool.free_count(), 1U);
}

TEST_F(StagingSinkTest, MovedFromObjectsAreHarmless) {
  const StagingPool pool = PoolOf(10, 1);
  const RawBuffer destination = Empty(10);
  auto [sink, whole] = StagingSink::Create(destination);
  StagingSink taken(std::move(sink));
  const Status status = sink.Put(0, 10, pool.Acquire().value());  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "this StagingSink was moved from")) << status;
  EXPECT_EQ(pool.free_count(), 1U) << "the lease went back";
  EXPECT_TRUE(IsFailedPrecondition(sink.Poison(AbortedError("x"))));
  EXPECT_EQ(sink.begun_bytes(), 0U);
  EXPECT_FALSE(whole.IsReady());
  StagingLease lease = pool.Acquire().value();
  lease.Release();
  const Status no_lease = taken.Put(3, 5, std::move(lease));
  EXPECT_TRUE(IsInvalidArgument(no_lease)) << no_lease;
  EXPECT_TRUE(Contains(no_lease.message(), "5 bytes at 3 has no memory")) << no_lease;
  auto [other, other_whole] = StagingSink::Create(Empty(10));
  taken = std::move(other);
  EXPECT_TRUE(IsCancelled(whole.Wait())) << "as if it was destroyed";
  EXPECT_TRUE(Put(taken, pool, Pattern(10, 1), 0, 10).ok());
  EXPECT_TRUE(other_whole.Wait().ok());
}

TEST_F(StagingSinkTest, WhoSeesTheEventMayDestroyTheSink) {
  const StagingPool pool = PoolOf(10, 1);
  for (const bool is_whole : {true, false}) {
    std::optional<std::pair<StagingSink, Event>> made = StagingSink::Create(Empty(10));
    bool is_gone = false;
    const Event whole = made->second;
    whole.OnReady([&](const Status&) {
      made.reset();
      is_gone = true;
    });
    const Status status =
        is_whole ? Put(made->first, pool, Pattern(10, 1), 0, 10) : made->first.Poison(AbortedError("x"));
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(whole.Wait().ok(), is_whole);
    EXPECT_TRUE(is_gone) << "ten bytes are copied, and waiters run, inside the call";
  }
}

TEST_F(StagingSinkTest, BytesPassThroughBothFromManyThreads) {
  const StagingPool pool = PoolOf(10'000, 4);
  StagingCopier copier(pool);
  Together(4, [&](int index) {
    const auto number = static_cast<std::size_t>(index);
    const Bytes bytes = Pattern(kLarge / 4 + number, static_cast<std::uint8_t>(index));
    const RawBuffer source = Filled(bytes);
    const RawBuffer destination =
        RawBuffer::Allocate(client_.devices()[1].default_memory_space(), bytes.size()).value();
    auto [made, whole] = StagingSink::Create(destination);
    auto pass = [sink = std::move(made)](StatusOr<StagedPiece> piece) mutable {
      ASSERT_TRUE(piece.ok()) << piece.status();
      const std::size_t offset_bytes = piece->offset_bytes();
      const std::size_t size_bytes = piece->size_bytes();
      EXPECT_TRUE(sink.Put(offset_bytes, size_bytes, std::move(*piece).TakeLease()).ok());
    };
    EXPECT_TRUE(copier.Read(source, std::move(pass)).Wait().ok());
    EXPECT_TRUE(whole.Wait().ok()) << whole.Wait();
    EXPECT_EQ(BytesIn(destination), bytes);
  });
  AwaitAll(pool);
}

}  // namespace
}  // namespace purlin
