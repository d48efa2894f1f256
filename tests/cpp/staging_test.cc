// Pools, leases and copiers; sinks are in staging_sink_test.cc.
#include "purlin/staging.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/stall.h"
#include "purlin/user_context.h"
#include "staging_fixture.h"
#include "testing.h"

namespace purlin {
namespace {

/// More than is copied inside a call.
constexpr std::size_t kLarge = 300'000;

class StagingTest : public StagingFixture {};

TEST_F(StagingTest, LeasesAreLentAndComeBack) {
  const StagingPool pool = PoolOf(100, 2);
  EXPECT_EQ(pool.memory_space(), PinnedOf(client_));
  EXPECT_EQ(PinnedOf(client_).Stats().num_allocs, 1U) << "all leases are one allocation";
  std::optional<StagingLease> one = pool.Acquire().value();
  std::optional<StagingLease> two = pool.TryAcquire().value();
  const Status none = pool.TryAcquire().status();
  EXPECT_TRUE(IsUnavailable(none)) << none;
  EXPECT_TRUE(Contains(none.message(), "staging") && Contains(none.message(), "0 of 2")) << none;
  EXPECT_EQ(pool.lease_bytes(), 100U);
  EXPECT_EQ(pool.lease_count(), 2U);
  EXPECT_EQ(pool.free_count(), 0U);
  EXPECT_EQ(one->size_bytes(), 100U);
  const auto* two_bytes = static_cast<const std::uint8_t*>(std::as_const(*two).data());
  EXPECT_EQ(Bytes(two_bytes, two_bytes + 100), Bytes(100)) << "all memory is written once";
  std::fill_n(static_cast<std::uint8_t*>(one->data()), 100, std::uint8_t{7});
  EXPECT_EQ(Bytes(two_bytes, two_bytes + 100), Bytes(100)) << "leases do not overlap";
  EXPECT_EQ(BytesIn(one->memory()), Bytes(100, 7));
  EXPECT_EQ(one->memory().host_pointer(), one->data());

  std::optional<StagingLease> next;
  pool.AcquireAsync([&next](StatusOr<StagingLease> lease) { next = std::move(lease).value(); });
  const CancelSource gone("gone");
  Status cancelled;
  pool.AcquireAsync([&cancelled](const StatusOr<StagingLease>& lease) { cancelled = lease.status(); }, gone.token());
  gone.Cancel(AbortedError("enough"));
  EXPECT_TRUE(IsCancelled(cancelled)) << cancelled;
  EXPECT_TRUE(Contains(cancelled.message(), "enough")) << cancelled;
  EXPECT_TRUE(IsCancelled(pool.Acquire(gone.token()).status()));
  EXPECT_FALSE(next.has_value()) << "there is none yet";
  one.reset();
  ASSERT_TRUE(next.has_value()) << "whoever gives one back hands it on";
  EXPECT_EQ(next->size_bytes(), 100U);
  next->Release();
  next->Release();
  EXPECT_EQ(pool.free_count(), 1U) << "released once";
  *two = pool.Acquire().value();
  EXPECT_EQ(pool.free_count(), 1U) << "assigning gives back what was there";
  two.reset();
  EXPECT_EQ(pool.free_count(), 2U);
}

TEST_F(StagingTest, APoolOfNothingIsRefused) {
  const std::size_t huge = SIZE_MAX;
  const std::pair<std::size_t, std::size_t> cases[] = {
      {0, 4}, {4, 0}, {huge, 1}, {std::size_t{1} << 40, std::size_t{1} << 40}};
  StagingOptions options;
  for (const auto& [lease_bytes, lease_count] : cases) {
    options.lease_bytes = lease_bytes;
    options.lease_count = lease_count;
    const Status status = StagingPool::Create(PinnedOf(client_), options).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    const std::string asked = std::to_string(lease_count) + " leases of " + std::to_string(lease_bytes) + " bytes";
    EXPECT_TRUE(Contains(status.message(), asked)) << status;
  }
  options.lease_bytes = std::size_t{1} << 40;
  options.lease_count = std::size_t{1} << 20;
  const Status too_much = StagingPool::Create(PinnedOf(client_), options).status();
  EXPECT_TRUE(IsResourceExhausted(too_much)) << too_much;
}

TEST_F(StagingTest, APoolOfMemoryThatTheHostDoesNotReachIsRefused) {
  const Client null = MakeClient("null");
  StagingOptions options;
  options.label = "peers";
  const Status status = StagingPool::Create(null.devices()[0].default_memory_space(), options).status();
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "staging pool 'peers': the host does not reach it")) << status;
}

TEST_F(StagingTest, OptionsOfNoVersionAreInvalid) {
  StagingOptions options;
  for (const std::size_t struct_size : {std::size_t{0}, std::size_t{31}, std::size_t{4097}, SIZE_MAX}) {
    options.struct_size = struct_size;
    const Status status = StagingPool::Create(space_, options).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "StagingOptions::struct_size is " + std::to_string(struct_size))) << status;
  }
}

TEST_F(StagingTest, MemoryAndReadsAreNamedByWhoAskedForThem) {
  StagingOptions options;
  options.lease_bytes = 10;
  options.label = "peers";
  const StagingPool pool = StagingPool::Create(space_, options).value();
  const std::string pool_line = LineAbove();
  const std::string report = space_.Report().DebugString();
  EXPECT_TRUE(Contains(report, "peers") && Contains(report, pool_line)) << report;
  StagingCopier copier(pool);
  EventPromise gate("gate");
  const RawBuffer source = Filled(Pattern(10, 1));
  const Pieces pieces;
  const Event read = copier.Read(source, pieces.Callback(), {gate.event()});
  const std::string read_line = LineAbove();
  const auto [sink, whole] = StagingSink::Create(source);
  const std::string sink_line = LineAbove();
  const std::string stalls = DumpStalls();
  EXPECT_TRUE(Contains(stalls, "'staged read'") && Contains(stalls, read_line)) << stalls;
  EXPECT_TRUE(Contains(stalls, "'staged bytes'") && Contains(stalls, sink_line)) << stalls;
  gate.SetReady();
  EXPECT_TRUE(read.Wait().ok());
}

TEST_F(StagingTest, PiecesComeInOrderAndWhole) {
  const std::pair<std::size_t, std::size_t> cases[] = {
      {1000, 100}, {1001, 100}, {99, 100}, {100, 100}, {kLarge, 70'000}};
  for (const std::string_view platform : {"host", "sim"}) {
    const Client client = MakeClient(platform);
    for (const auto& [size_bytes, lease_bytes] : cases) {
      const Bytes bytes = Pattern(size_bytes, 1);
      StagingCopier copier(PoolOf(client, lease_bytes, 3));
      const RawBuffer source = FilledIn(client.devices()[0].default_memory_space(), bytes);
      Bytes received;  // Not guarded: calls come one at a time, and the event after the last.
      const Event read = copier.Read(source, [&, size = size_bytes](StatusOr<StagedPiece> piece) {
        ASSERT_TRUE(piece.ok()) << piece.status();
        EXPECT_EQ(piece->offset_bytes(), received.size());
        EXPECT_EQ(piece->is_last(), received.size() + piece->size_bytes() == size);
        const Bytes more = BytesOf(*piece);
        received.insert(received.end(), more.begin(), more.end());
      });
      EXPECT_TRUE(read.Wait().ok()) << read.Wait();
      EXPECT_EQ(received, bytes) << platform << " " << size_bytes << " " << lease_bytes;
    }
  }
}

TEST_F(StagingTest, ReadsAreToldInTheOrderInWhichTheyWereAskedFor) {
  StagingCopier copier(PoolOf(64, 8));
  const RawBuffer source = Filled(Pattern(128, 1));
  std::vector<EventPromise> gates;
  std::vector<Event> ends;
  std::vector<std::pair<std::size_t, std::size_t>> order;
  for (std::size_t index = 0; index < 3; ++index) {
    gates.emplace_back("gate");
    const auto on_piece = [&order, index](const StatusOr<StagedPiece>& piece) {
      order.emplace_back(index, piece->offset_bytes());
    };
    ends.push_back(copier.Read(source, on_piece, {gates.back().event()}));
  }
  for (std::size_t index = 3; index-- > 0;) {
    EXPECT_TRUE(order.empty());
    gates[index].SetReady();
  }
  for (const Event& end : ends) EXPECT_TRUE(end.Wait().ok());
  const std::vector<std::pair<std::size_t, std::size_t>> asked = {{0, 0}, {0, 64}, {1, 0}, {1, 64}, {2, 0}, {2, 64}};
  EXPECT_EQ(order, asked);
}

TEST_F(StagingTest, NoMoreIsUnderWayThanThereAreLeases) {
  const StagingPool pool = PoolOf(10, 3);
  StagingCopier copier(pool);
  const RawBuffer source = Filled(Pattern(100, 1));
  const Pieces pieces;
  const Event read = copier.Read(source, pieces.Callback());
  std::vector<StagedPiece> kept;
  while (kept.size() < 3) kept.push_back(pieces.NextPiece());
  EXPECT_EQ(pool.free_count(), 0U);
  EXPECT_FALSE(pieces.HasNext()) << "the rest waits for leases";
  const RawBuffer other = Filled(Pattern(10, 2));
  const Pieces other_pieces;
  const Event other_read = copier.Read(other, other_pieces.Callback());
  EXPECT_FALSE(other_read.IsReady());
  Bytes bytes;
  while (!kept.empty()) {
    const Bytes more = BytesOf(kept.front());
    bytes.insert(bytes.end(), more.begin(), more.end());
    kept.erase(kept.begin());
    if (bytes.size() + 10 * kept.size() < 100) kept.push_back(pieces.NextPiece());
  }
  EXPECT_EQ(bytes, Pattern(100, 1));
  EXPECT_TRUE(read.Wait().ok());
  EXPECT_TRUE(other_read.Wait().ok());
  EXPECT_EQ(other_pieces.All(), Pattern(10, 2));
  AwaitAll(pool);
}

TEST_F(StagingTest, AReadOfNothingTakesItsTurn) {
  StagingCopier copier(PoolOf(10, 1));
  EventPromise gate("gate");
  const RawBuffer source = Filled(Pattern(30, 1));
  const RawBuffer nothing = RawBuffer::Allocate(space_, 0).value();
  const Pieces pieces;
  const Pieces of_nothing;
  const Event first = copier.Read(source, pieces.Callback(), {gate.event()});
  const Event second = copier.Read(nothing, of_nothing.Callback());
  EXPECT_FALSE(first.IsReady() || second.IsReady());
  gate.SetReady();
  EXPECT_EQ(pieces.All(), Pattern(30, 1));
  EXPECT_TRUE(first.Wait().ok());
  EXPECT_TRUE(second.Wait().ok());
  EXPECT_EQ(of_nothing.All(), Bytes());
}

TEST_F(StagingTest, AFailedDependencyEndsItsReadAlone) {
  const StagingPool pool = PoolOf(10, 2);
  StagingCopier copier(pool);
  const RawBuffer source = Filled(Pattern(100, 1));
  EventPromise gate("gate");
  const Pieces failing;
  const Pieces going;
  const Event failed = copier.Read(source, failing.Callback(), {gate.event()});
  const Event went = copier.Read(source, going.Callback());
  Status error = DataLossError("upstream");
  error.SetPayload("sector", "7");
  gate.SetError(error);
  EXPECT_EQ(failed.Wait(), error) << "whole";
  EXPECT_EQ(failing.Error(), error);
  EXPECT_EQ(going.All(), Pattern(100, 1));
  EXPECT_TRUE(went.Wait().ok());
  AwaitAll(pool);

  const Client other = MakeClient();
  const RawBuffer foreign = FilledIn(other.devices()[0].default_memory_space(), {1, 2, 3});
  const Pieces refused;
  const Status status = copier.Read(foreign, refused.Callback()).Wait();
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "client")) << status;
  EXPECT_EQ(refused.Error(), status);
}

TEST_F(StagingTest, AReadThatNeedsARunnerWhichHasShutDownIsCancelled) {
  const StagingPool pool = PoolOf(kLarge, 2);
  StagingCopier copier(pool);
  const RawBuffer source = Filled(Pattern(kLarge, 1));
  ASSERT_TRUE(client_.runner().Shutdown().ok());
  const Pieces pieces;
  const Status status = copier.Read(source, pieces.Callback()).Wait();
  EXPECT_TRUE(IsCancelled(status)) << status;
  EXPECT_EQ(pieces.Error(), status);
  AwaitAll(pool);
}

TEST_F(StagingTest, ACopierThatGoesTellsEverybody) {
  const StagingPool pool = PoolOf(10, 2);
  std::optional<StagingCopier> copier(pool);
  const RawBuffer source = Filled(Pattern(100, 1));
  EventPromise gate("gate");
  const Pieces pieces;
  const Pieces waiting;
  const Event begun = copier->Read(source, pieces.Callback(), {gate.event()});
  const Event waits = copier->Read(source, waiting.Callback());
  copier.reset();
  EXPECT_FALSE(begun.IsReady()) << "its first pieces are begun, and wait for the gate";
  gate.SetReady();
  EXPECT_TRUE(IsCancelled(begun.Wait())) << begun.Wait();
  EXPECT_TRUE(IsCancelled(waits.Wait())) << waits.Wait();
  EXPECT_TRUE(IsCancelled(waiting.Error()));
  EXPECT_EQ(pieces.NextPiece().offset_bytes(), 0U);
  EXPECT_EQ(pieces.NextPiece().offset_bytes(), 10U);
  EXPECT_EQ(pieces.Error(), begun.Wait());
  AwaitAll(pool);
}

TEST_F(StagingTest, WhoIsToldMayDestroyTheCopier) {
  const StagingPool pool = PoolOf(10, 2);
  const RawBuffer source = Filled(Pattern(100, 1));
  std::optional<StagingCopier> copier(pool);
  std::vector<Status> told;
  const Event read = copier->Read(source, [&](const StatusOr<StagedPiece>& piece) {
    told.push_back(piece.status());
    copier.reset();
  });
  EXPECT_TRUE(IsCancelled(read.Wait())) << read.Wait();
  EXPECT_FALSE(copier.has_value());
  ASSERT_GE(told.size(), 2U);
  EXPECT_LE(told.size(), 4U) << "what was begun already";
  for (std::size_t index = 0; index + 1 < told.size(); ++index) EXPECT_TRUE(told[index].ok()) << told[index];
  EXPECT_EQ(told.back(), read.Wait());
  AwaitAll(pool);
}

TEST_F(StagingTest, ABufferIsNotDonatedWhileItIsRead) {
  StagingCopier copier(PoolOf(10, 1));
  const Bytes bytes = Pattern(30, 4);
  EventPromise gate("gate");
  const Buffer buffer = Buffer::FromRaw(Filled(bytes), Shape(DType::kU8, {30}), nullptr, gate.event()).value();
  const Pieces pieces;
  const StatusOr<Event> read = copier.ReadBuffer(buffer, pieces.Callback());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(IsFailedPrecondition(buffer.TryDonate("donee").status())) << "it is held";
  gate.SetReady();
  EXPECT_EQ(pieces.All(), bytes);
  EXPECT_TRUE(read->Wait().ok());
  DonationHold hold = buffer.TryDonate("donee").value();
  EXPECT_TRUE(hold.free_event().Wait().ok());
  EXPECT_TRUE(hold.Confirm().ok());
  const Pieces uncalled;
  const Status gone = copier.ReadBuffer(buffer, uncalled.Callback()).status();
  EXPECT_TRUE(IsInvalidArgument(gone)) << gone;
  EXPECT_TRUE(Contains(gone.message(), "deleted or donated")) << gone;
  EXPECT_FALSE(uncalled.Next().has_value()) << "there is nothing to read";
}

TEST_F(StagingTest, ABufferThatFailedFailsItsRead) {
  StagingCopier copier(PoolOf(10, 1));
  const Event failed = Event::Error(DataLossError("a bad disk"));
  const Buffer buffer = Buffer::FromRaw(Filled(Pattern(30, 4)), Shape(DType::kU8, {30}), nullptr, failed).value();
  const Pieces pieces;
  const StatusOr<Event> read = copier.ReadBuffer(buffer, pieces.Callback());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->Wait(), DataLossError("a bad disk"));
  EXPECT_EQ(pieces.Error(), DataLossError("a bad disk"));
}

/// Reads `source` `left + 1` times, each from inside the one before, and keeps their events.
void ReadAgain(const std::shared_ptr<StagingCopier>& copier, const RawBuffer& source, int left,
               const std::shared_ptr<std::vector<Event>>& events) {
  const std::size_t index = events->size();
  events->emplace_back();
  Event read = copier->Read(source, [=, told = false](StatusOr<StagedPiece> piece) mutable {
    EXPECT_TRUE(piece.ok() && !std::exchange(told, true));
    if (left > 0) ReadAgain(copier, source, left - 1, events);
  });
  (*events)[index] = std::move(read);
}

TEST_F(StagingTest, WhoIsToldMayReadAgain) {
  const StagingPool pool = PoolOf(10, 2);
  const RawBuffer source = Filled(Pattern(10, 5));
  OnSmallStack([&] {
    const auto events = std::make_shared<std::vector<Event>>();
    ReadAgain(std::make_shared<StagingCopier>(pool), source, 500, events);
    EXPECT_EQ(events->size(), 501U);
    for (const Event& event : *events) EXPECT_TRUE(event.Wait().ok());
  });
  AwaitAll(pool);
}

TEST_F(StagingTest, AReadIsToldInTheContextInWhichItWasAskedFor) {
  StagingCopier copier(PoolOf(10, 1));
  const RawBuffer source = Filled(Pattern(20, 1));
  EventPromise gate("gate");
  std::vector<std::uint64_t> seen;
  const auto on_piece = [&seen](const StatusOr<StagedPiece>&) { seen.push_back(CurrentUserContext().id()); };
  const UserContext asker = UserContext::Create("asker");
  const UserContext other = UserContext::Create("other");
  std::vector<Event> reads;
  {
    const UserContextScope scope(asker);
    reads.push_back(copier.Read(source, on_piece, {gate.event()}));
  }
  reads.push_back(copier.Read(source, on_piece));
  {
    const UserContextScope scope(other);
    gate.SetReady();
    for (const Event& read : reads) EXPECT_TRUE(read.Wait().ok());
    EXPECT_EQ(CurrentUserContext().id(), other.id());
  }
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{asker.id(), asker.id(), 0, 0}));
}

TEST_F(StagingTest, AnEmptyOnPieceIsInvalidAndAnEmptyCallbackIsNone) {
  const StagingPool pool = PoolOf(10, 1);
  StagingCopier copier(pool);
  const Buffer buffer = Six();
  const std::function<void(StatusOr<StagedPiece>)> nobody;
  void (*const nothing)(StatusOr<StagedPiece>) = nullptr;
  for (const Status& status :
       {copier.Read(buffer.RawAlias().value(), nobody).Wait(), copier.Read(buffer.RawAlias().value(), nothing).Wait(),
        copier.ReadBuffer(buffer, nobody).status(), copier.ReadBuffer(buffer, nothing).status()}) {
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "on_piece is empty")) << status;
  }
  pool.AcquireAsync(std::function<void(StatusOr<StagingLease>)>());
  EXPECT_EQ(pool.free_count(), 1U);
  EXPECT_EQ(buffer.hold_counts().usage, 0U);
}

TEST_F(StagingTest, MovedFromObjectsAreHarmless) {
  const StagingPool pool = PoolOf(10, 2);
  StagingLease first = pool.Acquire().value();
  const void* const data = first.data();
  StagingLease second(std::move(first));
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move): the contract says what it is.
  EXPECT_EQ(first.size_bytes(), 0U);
  EXPECT_EQ(first.memory().rep(), nullptr);
  first.Release();
  first = std::move(second);
  EXPECT_EQ(first.data(), data);
  first.Release();

  StagingCopier copier(pool);
  StagingCopier taken(std::move(copier));
  const RawBuffer source = Filled(Pattern(10, 1));
  const Pieces refused;
  const Status status = copier.Read(source, refused.Callback()).Wait();  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "this StagingCopier was moved from")) << status;
  EXPECT_EQ(refused.Error(), status);
  const Pieces uncalled;
  EXPECT_TRUE(IsFailedPrecondition(copier.ReadBuffer(Six(), uncalled.Callback()).status()));
  EXPECT_FALSE(uncalled.Next().has_value());
  const Pieces pieces;
  EXPECT_TRUE(taken.Read(source, pieces.Callback()).Wait().ok());
  StagedPiece piece = pieces.NextPiece();
  StagedPiece moved(std::move(piece));
  EXPECT_EQ(piece.data(), nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(piece.size_bytes(), 0U);
  EXPECT_EQ(BytesOf(moved), Pattern(10, 1));
  const StagingLease lease = std::move(moved).TakeLease();
  EXPECT_NE(lease.data(), nullptr);
  EXPECT_EQ(moved.data(), nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(moved.size_bytes(), 0U);
  EXPECT_EQ(pool.free_count(), 1U);

  StagingPool copy = pool;
  const StagingPool stolen = std::move(copy);
  copy = stolen;
  EXPECT_EQ(copy.lease_count(), 2U);
}

TEST_F(StagingTest, AssigningACopierEndsTheOneThatWasThere) {
  const StagingPool pool = PoolOf(10, 1);
  const StagingLease held = pool.Acquire().value();
  StagingCopier copier(pool);
  const RawBuffer source = Filled(Pattern(10, 1));
  const Pieces pieces;
  const Event read = copier.Read(source, pieces.Callback());
  EXPECT_FALSE(read.IsReady()) << "there is no lease";
  copier = StagingCopier(pool);
  EXPECT_TRUE(IsCancelled(read.Wait())) << read.Wait();
  EXPECT_EQ(pieces.Error(), read.Wait());
}

TEST_F(StagingTest, EverythingOutlivesWhatItCameFrom) {
  std::optional<Client> client = MakeClient();
  std::optional<StagingPool> pool = PoolOf(*client, 10, 1);
  std::optional<RawBuffer> source = FilledIn(client->devices()[0].default_memory_space(), Pattern(10, 1));
  client.reset();
  StagingCopier copier(*pool);
  const Pieces pieces;
  const Event read = copier.Read(*source, pieces.Callback());
  source.reset();
  pool.reset();
  EXPECT_TRUE(read.Wait().ok());
  std::optional<StagedPiece> piece = pieces.NextPiece();
  StagingLease lease = std::move(*piece).TakeLease();
  piece.reset();
  const auto* data = static_cast<const std::uint8_t*>(lease.data());
  EXPECT_EQ(Bytes(data, data + lease.size_bytes()), Pattern(10, 1));
}

}  // namespace
}  // namespace purlin
