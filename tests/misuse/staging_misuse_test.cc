// StagingPool, StagingLease, StagedPiece, StagingCopier, StagingSink.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "purlin/staging.h"
#include "tests/cpp/raw_bytes.h"
#include "tests/cpp/testing.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();

class StagingMisuse : public testing::Test {
 protected:
  StatusOr<StagingPool> Make(std::size_t bytes, std::size_t count, std::size_t struct_size = sizeof(StagingOptions)) {
    StagingOptions options;
    options.lease_bytes = bytes;
    options.lease_count = count;
    options.struct_size = struct_size;
    return StagingPool::Create(space_, options);
  }
  Client client_ = HostClient();
  MemorySpace space_ = SpaceOf(client_);
};

TEST_F(StagingMisuse, NumbersThatAreNone) {
  EXPECT_TRUE(Fails(Make(0, 4), StatusCode::kInvalidArgument, {"0"}));
  EXPECT_TRUE(Fails(Make(64, 0), StatusCode::kInvalidArgument, {"0"}));
  EXPECT_TRUE(Fails(Make(kMost, 2), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(Make(kMost, kMost), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(Make(64, 4, 1), StatusCode::kInvalidArgument, {"struct_size"}));
  EXPECT_TRUE(Fails(Make(std::size_t{1} << 60, 1), StatusCode::kResourceExhausted));
}

TEST_F(StagingMisuse, MemoryThatTheHostDoesNotReach) {
  ClientOptions options;
  options.platform = "null";
  const Client null = Client::Create(options).value();
  EXPECT_TRUE(Fails(StagingPool::Create(SpaceOf(null)), StatusCode::kInvalidArgument));
}

TEST_F(StagingMisuse, ALeaseIsGivenBackOnce) {
  const StagingPool pool = Make(64, 2).value();
  StagingLease lease = pool.TryAcquire().value();
  StagingLease taken = std::move(lease);
  EXPECT_EQ(lease.data(), nullptr);
  EXPECT_EQ(lease.size_bytes(), 0U);
  lease.Release();
  EXPECT_EQ(pool.free_count(), 1U);
  taken.Release();
  taken.Release();
  EXPECT_EQ(taken.data(), nullptr);
  EXPECT_EQ(pool.free_count(), 2U);
}

TEST_F(StagingMisuse, WhenAllAreLentTryingSaysSo) {
  const StagingPool pool = Make(64, 1).value();
  const StagingLease all = pool.TryAcquire().value();
  EXPECT_TRUE(Fails(pool.TryAcquire(), StatusCode::kUnavailable));
}

TEST_F(StagingMisuse, ATokenThatWasCancelledRefuses) {
  const StagingPool pool = Make(64, 1).value();
  const CancelSource source("user");
  source.Cancel(AbortedError("gone home"));
  EXPECT_TRUE(Fails(pool.Acquire(source.token()), StatusCode::kCancelled, {"gone home"}));
  Status seen;
  pool.AcquireAsync([&seen](StatusOr<StagingLease> lease) { seen = lease.status(); }, source.token());
  EXPECT_TRUE(Fails(seen, StatusCode::kCancelled, {"gone home"}));
  EXPECT_EQ(pool.free_count(), 1U);
}

TEST_F(StagingMisuse, AnEmptyCallbackCountsAsNone) {
  const StagingPool pool = Make(64, 1).value();
  pool.AcquireAsync(std::function<void(StatusOr<StagingLease>)>());
  EXPECT_EQ(pool.free_count(), 1U);
}

TEST_F(StagingMisuse, ACallbackMayReleaseAndAcquireAgain) {
  const StagingPool pool = Make(64, 1).value();
  int granted = 0;
  StagingLease first = pool.TryAcquire().value();
  pool.AcquireAsync([&](StatusOr<StagingLease> lease) {
    ++granted;
    lease->Release();
    pool.AcquireAsync([&granted](StatusOr<StagingLease>) { ++granted; });
  });
  first.Release();
  EXPECT_EQ(granted, 2);
}

TEST_F(StagingMisuse, ALeaseOutlivesItsPoolAndClient) {
  std::optional<StagingLease> lease;
  {
    const Client client = HostClient();
    lease = StagingPool::Create(SpaceOf(client))->TryAcquire().value();
  }
  static_cast<std::uint8_t*>(lease->data())[lease->size_bytes() - 1] = 7;
  EXPECT_EQ(lease->memory().on_device_size_bytes(), lease->size_bytes());
  lease.reset();
}

TEST_F(StagingMisuse, ACopierThatWasMovedFromFailsItsReads) {
  NoLeak no_leak;
  const StagingPool pool = Make(64, 1).value();
  StagingCopier copier(pool);
  StagingCopier taken = std::move(copier);
  const RawBuffer source = FilledIn(space_, Bytes(8, 1));
  EXPECT_TRUE(
      Fails(copier.Read(source, [kept = Counted(1)](StatusOr<StagedPiece>) {}), StatusCode::kFailedPrecondition));
}

TEST_F(StagingMisuse, AnEmptyOnPieceIsAnErrorOfTheEvent) {
  StagingCopier copier(Make(64, 1).value());
  const RawBuffer source = FilledIn(space_, Bytes(8, 1));
  EXPECT_TRUE(Fails(copier.Read(source, std::function<void(StatusOr<StagedPiece>)>()), StatusCode::kInvalidArgument));
}

TEST_F(StagingMisuse, ASourceOfAnotherClientIsTold) {
  StagingCopier copier(Make(64, 1).value());
  const Client stranger = HostClient();
  const RawBuffer source = FilledIn(SpaceOf(stranger), Bytes(8, 1));
  Status seen;
  EXPECT_TRUE(Fails(copier.Read(source, [&seen](StatusOr<StagedPiece> piece) { seen = piece.status(); }),
                    StatusCode::kInvalidArgument, {"client"}));
  EXPECT_TRUE(Fails(seen, StatusCode::kInvalidArgument, {"client"}));
}

TEST_F(StagingMisuse, OnPieceMayDestroyTheCopierAndReadAgain) {
  const StagingPool pool = Make(64, 2).value();
  auto copier = std::make_unique<StagingCopier>(pool);
  const RawBuffer source = FilledIn(space_, Bytes(640, 3));
  int pieces = 0;
  Event inner;
  const Event read = copier->Read(source, [&](StatusOr<StagedPiece> piece) {
    if (!piece.ok()) return;
    if (++pieces == 1) inner = copier->Read(source, [](StatusOr<StagedPiece>) {});
    if (pieces == 2) copier.reset();
  });
  const Status outer = read.Wait();
  EXPECT_TRUE(outer.ok() || IsCancelled(outer)) << outer;
  const Status second = inner.Wait();
  EXPECT_TRUE(second.ok() || IsCancelled(second)) << second;
  EXPECT_EQ(copier, nullptr);
}

TEST_F(StagingMisuse, OnPieceThatWaitsForItsOwnReadIsToldSo) {
  StagingCopier copier(Make(64, 2).value());
  const RawBuffer source = FilledIn(space_, Bytes(100, 3));
  EventPromise start("start");
  const Event started = start.event();
  std::vector<Status> inside;
  Event read;
  read = copier.Read(source, [&](StatusOr<StagedPiece>) { inside.push_back(read.Wait()); }, {&started, 1});
  start.SetReady();
  EXPECT_TRUE(Ok(read));
  ASSERT_EQ(inside.size(), 2U);
  for (const Status& status : inside) {
    EXPECT_TRUE(Fails(status, StatusCode::kFailedPrecondition, {"'staged read'", "callback"}));
  }
}

TEST_F(StagingMisuse, OnPieceThatWaitsForAnotherReadOfItsCopierIsToldSo) {
  StagingCopier copier(Make(64, 2).value());
  StagingCopier other(Make(64, 2).value());
  const RawBuffer source = FilledIn(space_, Bytes(100, 3));
  EventPromise start("start");
  const Event started = start.event();
  std::vector<Status> inside;
  Event later;
  const Event read = copier.Read(source,
                                 [&](StatusOr<StagedPiece>) {
                                   inside.push_back(later.Wait());
                                   const Event again = copier.Read(source, [](StatusOr<StagedPiece>) {});
                                   inside.push_back(again.Wait());
                                   inside.push_back(WhenAll({started, later}).WaitFor(std::chrono::hours(1)));
                                   EXPECT_TRUE(Ok(other.Read(source, [](StatusOr<StagedPiece>) {})))
                                       << "another copier's goes on";
                                 },
                                 {&started, 1});
  later = copier.Read(source, [](StatusOr<StagedPiece>) {});
  start.SetReady();
  EXPECT_TRUE(Ok(read));
  EXPECT_TRUE(Ok(later));
  ASSERT_EQ(inside.size(), 6U);
  for (const Status& status : inside) {
    EXPECT_TRUE(Fails(status, StatusCode::kFailedPrecondition, {"would never end", "callback"}));
  }
}

TEST_F(StagingMisuse, AReadOfADeletedBufferIsRefused) {
  NoLeak no_leak;
  StagingCopier copier(Make(64, 1).value());
  const std::uint8_t bytes[8] = {};
  const Buffer buffer = Buffer::FromHost(bytes, 8, DType::kU8, {8}, space_).value();
  buffer.Delete();
  EXPECT_TRUE(Fails(copier.ReadBuffer(buffer, [kept = Counted(1)](StatusOr<StagedPiece>) {}),
                    StatusCode::kInvalidArgument, {"deleted"}));
}

TEST_F(StagingMisuse, ASinkTakesNoPieceTwiceNorPastItsEnd) {
  const StagingPool pool = Make(64, 4).value();
  const RawBuffer destination = RawBuffer::Allocate(space_, 100).value();
  auto [sink, done] = StagingSink::Create(destination);
  const auto lease = [&pool] { return pool.TryAcquire().value(); };
  EXPECT_TRUE(Fails(sink.Put(60, 41, lease()), StatusCode::kOutOfRange, {"60", "41", "100"}));
  EXPECT_TRUE(Fails(sink.Put(0, 65, lease()), StatusCode::kOutOfRange, {"65", "64"}));
  EXPECT_TRUE(Fails(sink.Put(kMost, 2, lease()), StatusCode::kOutOfRange));
  EXPECT_TRUE(Ok(sink.Put(0, 50, lease())));
  EXPECT_TRUE(Fails(sink.Put(49, 10, lease()), StatusCode::kInvalidArgument, {"49"}));
  StagingLease empty = lease();
  empty.Release();
  EXPECT_TRUE(Fails(sink.Put(50, 50, std::move(empty)), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Ok(sink.Put(50, 50, lease())));
  EXPECT_TRUE(Ok(done));
}

TEST_F(StagingMisuse, ASinkThatGoesEarlyNamesHowMuchItHad) {
  const StagingPool pool = Make(64, 1).value();
  Event done;
  {
    const RawBuffer destination = RawBuffer::Allocate(space_, 100).value();
    auto made = StagingSink::Create(destination);
    done = made.second;
    EXPECT_TRUE(Ok(made.first.Put(0, 40, pool.TryAcquire().value())));
  }
  EXPECT_TRUE(Fails(done, StatusCode::kCancelled, {"40", "100"}));
}

TEST_F(StagingMisuse, PoisonedWithOkAndTwice) {
  const StagingPool pool = Make(64, 1).value();
  const RawBuffer destination = RawBuffer::Allocate(space_, 100).value();
  auto [sink, done] = StagingSink::Create(destination);
  auto [of_ok, failed] = StagingSink::Create(RawBuffer::Allocate(space_, 100).value());
  EXPECT_TRUE(Ok(of_ok.Poison(OkStatus())));
  EXPECT_TRUE(Fails(failed, StatusCode::kInternal, {"OK status"}));
  EXPECT_TRUE(Ok(sink.Poison(DataLossError("cut off"))));
  static_cast<void>(sink.Poison(AbortedError("again")).ok());
  EXPECT_TRUE(Fails(done, StatusCode::kDataLoss, {"cut off"}));
  EXPECT_TRUE(Fails(sink.Put(0, 1, pool.TryAcquire().value()), StatusCode::kDataLoss, {"cut off"}));
}

TEST_F(StagingMisuse, ASinkThatWasMovedFromTakesNothing) {
  const StagingPool pool = Make(64, 1).value();
  auto made = StagingSink::Create(RawBuffer::Allocate(space_, 100).value());
  StagingSink taken = std::move(made.first);
  EXPECT_TRUE(Fails(made.first.Put(0, 1, pool.TryAcquire().value()), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(made.first.Poison(AbortedError("x")), StatusCode::kFailedPrecondition));
  EXPECT_EQ(made.first.begun_bytes(), 0U);
}

TEST_F(StagingMisuse, ASinkOfNothingIsDone) {
  auto [sink, done] = StagingSink::Create(RawBuffer::Allocate(space_, 0).value());
  EXPECT_TRUE(Ok(done));
}

}  // namespace
}  // namespace purlin
