#include "purlin/transfer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "buffer_fixture.h"
#include "testing.h"

namespace purlin {
namespace {

using Manager = AsyncHostToDeviceTransferManager;

/// More than is copied inside a call.
constexpr std::size_t kLarge = 300'000;

Shape BytesOf(std::size_t size) { return Shape(DType::kU8, {static_cast<std::int64_t>(size)}); }

Bytes Pattern(std::size_t size, std::uint8_t first) {
  Bytes bytes(size);
  std::iota(bytes.begin(), bytes.end(), first);
  return bytes;
}

class TransferTest : public BufferFixture {
 protected:
  Manager Of(const std::vector<std::size_t>& sizes) const {
    std::vector<TransferSpec> specs;
    for (const std::size_t size : sizes) specs.push_back({BytesOf(size)});
    return Manager::Create(specs, space_).value();
  }
};

TEST_F(TransferTest, AManagerKnowsItsBuffers) {
  const Manager manager = Of({10, 0, 300});
  EXPECT_EQ(manager.buffer_count(), 3U);
  EXPECT_EQ(manager.memory_space(), space_);
  EXPECT_EQ(manager.device(), client_.devices()[0]);
  EXPECT_EQ(manager.buffer_size(0).value(), 10U);
  EXPECT_EQ(manager.buffer_size(1).value(), 0U);
  EXPECT_EQ(manager.buffer_size(2).value(), 300U);
  EXPECT_EQ(InUse(), 310U);
  EXPECT_EQ(Of({}).buffer_count(), 0U);
}

TEST_F(TransferTest, MemoryIsNamedByWhoAskedForIt) {
  AllocOptions options;
  options.label = "weights";
  const Manager manager = Manager::Create({{BytesOf(10)}}, space_, options).value();
  const std::string line = LineAbove();
  const std::string report = space_.Report().DebugString();
  EXPECT_TRUE(Contains(report, "weights")) << report;
  EXPECT_TRUE(Contains(report, line)) << report;
}

TEST_F(TransferTest, ABufferIsRetrievedOnceAndUsedAtOnce) {
  Manager manager = Of({10});
  const Buffer buffer = manager.RetrieveBuffer(0).value();
  const Buffer copy = buffer.CopyToDevice(client_.devices()[1]).value();
  EXPECT_FALSE(copy.ready_event().IsReady());
  const Status again = manager.RetrieveBuffer(0).status();
  EXPECT_TRUE(IsFailedPrecondition(again)) << again;
  EXPECT_TRUE(Contains(again.message(), "buffer 0 was retrieved before")) << again;
  const Bytes bytes = Pattern(10, 1);
  EXPECT_TRUE(manager.TransferRawDataToBuffer(0, bytes.data(), 10).ok());
  EXPECT_EQ(Read(copy), bytes);
  EXPECT_TRUE(manager.ready_event().Wait().ok());
}

TEST_F(TransferTest, PiecesComeInAnyOrderAndEachIsTold) {
  Manager manager = Of({kLarge, 100});
  const Buffer large = manager.RetrieveBuffer(0).value();
  const Buffer small = manager.RetrieveBuffer(1).value();
  const Bytes many = Pattern(kLarge, 2);
  const Bytes few = Pattern(100, 3);
  const std::size_t half = kLarge / 2;
  const std::vector<DoneLog> told(5);
  EXPECT_TRUE(manager.TransferRawDataToSubBuffer(0, &many[half], half, half, false, told[0].OnDone()).ok());
  EXPECT_TRUE(manager.TransferRawDataToSubBuffer(1, &few[70], 70, 30, false, told[1].OnDone()).ok());
  EXPECT_TRUE(manager.TransferRawDataToSubBuffer(1, &few[0], 0, 70, false, told[2].OnDone()).ok());
  EXPECT_FALSE(small.ready_event().IsReady()) << "no piece was the last";
  EXPECT_TRUE(manager.TransferRawDataToSubBuffer(1, nullptr, 50, 0, true, told[3].OnDone()).ok());
  EXPECT_TRUE(manager.TransferRawDataToSubBuffer(0, &many[0], 0, half, true, told[4].OnDone()).ok());
  {
    const Manager gone = std::move(manager);
  }
  EXPECT_EQ(Read(large), many);
  EXPECT_EQ(Read(small), few);
  for (const DoneLog& one : told) EXPECT_EQ(one.all(), std::vector<Status>{Status()});
}

TEST_F(TransferTest, EverybodyWasToldBeforeTheBufferIsReady) {
  Manager manager = Of({2 * kLarge});
  const Buffer buffer = manager.RetrieveBuffer(0).value();
  const Bytes bytes = Pattern(kLarge, 4);
  const DoneLog told;
  std::atomic<std::size_t> seen{99};
  {
    const Occupied occupied(client_);
    EXPECT_TRUE(manager.TransferRawDataToSubBuffer(0, bytes.data(), 0, kLarge, false, told.OnDone()).ok());
    EXPECT_TRUE(manager.TransferRawDataToSubBuffer(0, bytes.data(), kLarge, kLarge, true, told.OnDone()).ok());
    EXPECT_EQ(told.count(), 0U);
    EXPECT_FALSE(buffer.ready_event().IsReady());
    buffer.ready_event().OnReady([&](const Status&) { seen = told.count(); });
  }
  ASSERT_TRUE(buffer.ready_event().Wait().ok());
  EXPECT_EQ(told.count(), 2U);
  // The waiter may still run; a second one comes after it.
  std::promise<void> ran;
  buffer.ready_event().OnReady([&](const Status&) { ran.set_value(); });
  ran.get_future().wait();
  while (seen == 99) std::this_thread::yield();
  EXPECT_EQ(seen, 2U);
}

TEST_F(TransferTest, AnArrayOfAnyStridesIsAWholeBuffer) {
  const Layout column_major({0, 1});
  Manager manager =
      Manager::Create({{Shape(DType::kU8, {2, 3})}, {Shape(DType::kU8, {2, 3}), column_major}}, space_).value();
  const Bytes bytes = {1, 2, 3, 4, 5, 6};
  const Dims turned = {1, 2};
  const DoneLog told;
  EXPECT_TRUE(manager.TransferArrayToBuffer(0, bytes.data(), DType::kU8, {2, 3}, turned, told.OnDone()).ok());
  EXPECT_TRUE(manager.TransferArrayToBuffer(1, bytes.data(), DType::kU8, {2, 3}).ok());
  EXPECT_EQ(Read(manager.RetrieveBuffer(0).value()), (Bytes{1, 3, 5, 2, 4, 6}));
  const Buffer second = manager.RetrieveBuffer(1).value();
  EXPECT_EQ(Read(second), bytes);
  EXPECT_EQ(ReadRaw(second), (Bytes{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(told.all(), std::vector<Status>{Status()});
}

/// One call that is refused, and what it is refused with.
struct Refused {
  const char* what;
  std::function<Status(Manager&, const DoneLog&)> call;
  StatusCode code;
  std::string_view says;
};

TEST_F(TransferTest, WhatIsRefusedIsToldOnceAndChangesNothing) {
  const Bytes bytes(10, 7);
  const void* data = bytes.data();
  const Dims apart = {1, 1};
  const Refused cases[] = {
      {"no buffer", [&](Manager& m, const DoneLog& t) { return m.TransferRawDataToBuffer(1, data, 10, t.OnDone()); },
       StatusCode::kInvalidArgument, "there is no buffer 1: the transfer has 1, from 0"},
      {"another size", [&](Manager& m, const DoneLog& t) { return m.TransferRawDataToBuffer(0, data, 9, t.OnDone()); },
       StatusCode::kInvalidArgument, "buffer 0 has 10 bytes, but 9 were given"},
      {"past the end",
       [&](Manager& m, const DoneLog& t) { return m.TransferRawDataToSubBuffer(0, data, 5, 6, true, t.OnDone()); },
       StatusCode::kOutOfRange, "5"},
      {"an overflow",
       [&](Manager& m, const DoneLog& t) {
         return m.TransferRawDataToSubBuffer(0, data, SIZE_MAX, 2, true, t.OnDone());
       },
       StatusCode::kOutOfRange, std::string_view("18446744073709551615")},
      {"no piece's buffer",
       [&](Manager& m, const DoneLog& t) {
         return m.TransferRawDataToSubBuffer(SIZE_MAX, data, 0, 1, true, t.OnDone());
       },
       StatusCode::kInvalidArgument, "there is no buffer"},
      {"null",
       [&](Manager& m, const DoneLog& t) { return m.TransferRawDataToSubBuffer(0, nullptr, 0, 10, true, t.OnDone()); },
       StatusCode::kInvalidArgument, "null"},
      {"no array's buffer",
       [&](Manager& m, const DoneLog& t) {
         return m.TransferArrayToBuffer(1, data, DType::kU8, {10}, std::nullopt, t.OnDone());
       },
       StatusCode::kInvalidArgument, "there is no buffer 1"},
      {"another shape",
       [&](Manager& m, const DoneLog& t) {
         return m.TransferArrayToBuffer(0, data, DType::kU8, {2, 5}, std::nullopt, t.OnDone());
       },
       StatusCode::kInvalidArgument, "buffer 0 is u8[10], not u8[2,5]"},
      {"a null array",
       [&](Manager& m, const DoneLog& t) {
         return m.TransferArrayToBuffer(0, nullptr, DType::kU8, {10}, std::nullopt, t.OnDone());
       },
       StatusCode::kInvalidArgument, "null"},
      {"no type",
       [&](Manager& m, const DoneLog& t) {
         return m.TransferArrayToBuffer(0, data, static_cast<DType>(77), {10}, std::nullopt, t.OnDone());
       },
       StatusCode::kInvalidArgument, "77 is no DType"},
      {"strides",
       [&](Manager& m, const DoneLog& t) {
         return m.TransferArrayToBuffer(0, data, DType::kU8, {10}, apart, t.OnDone());
       },
       StatusCode::kInvalidArgument, "there are 2 byte strides"},
  };
  Manager manager = Of({10});
  for (const Refused& refused : cases) {
    const DoneLog told;
    const Status status = refused.call(manager, told);
    EXPECT_EQ(status.code(), refused.code) << refused.what << ": " << status;
    EXPECT_TRUE(Contains(status.message(), refused.says)) << refused.what << ": " << status;
    EXPECT_EQ(told.all(), std::vector<Status>{status}) << refused.what;
    EXPECT_TRUE(told.IsOver()) << refused.what;
  }
  EXPECT_TRUE(IsInvalidArgument(manager.buffer_size(1).status()));
  EXPECT_TRUE(IsInvalidArgument(manager.RetrieveBuffer(1).status()));
  EXPECT_TRUE(IsInvalidArgument(manager.SetBufferError(1, AbortedError("x"))));
  EXPECT_TRUE(manager.TransferRawDataToBuffer(0, data, 10).ok()) << "it is as it was";
  EXPECT_EQ(Read(manager.RetrieveBuffer(0).value()), bytes);
}

TEST_F(TransferTest, NothingComesAfterTheLast) {
  Manager manager = Of({10});
  const Bytes bytes(10, 7);
  ASSERT_TRUE(manager.TransferRawDataToSubBuffer(0, bytes.data(), 0, 10, true).ok());
  const DoneLog told;
  const Status late[] = {manager.TransferRawDataToSubBuffer(0, bytes.data(), 0, 1, false, told.OnDone()),
                         manager.TransferRawDataToBuffer(0, bytes.data(), 10, told.OnDone()),
                         manager.TransferArrayToBuffer(0, bytes.data(), DType::kU8, {10}, std::nullopt, told.OnDone()),
                         manager.SetBufferError(0, AbortedError("late"))};
  for (const Status& status : late) {
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "buffer 0 has already been fully transferred")) << status;
  }
  EXPECT_EQ(told.count(), 3U);
  EXPECT_EQ(Read(manager.RetrieveBuffer(0).value()), bytes);
}

TEST_F(TransferTest, AWholeArrayAfterPiecesIsRefused) {
  Manager manager = Of({10});
  const Bytes bytes(10, 7);
  ASSERT_TRUE(manager.TransferRawDataToSubBuffer(0, bytes.data(), 0, 5, false).ok());
  const DoneLog told;
  const Status status = manager.TransferArrayToBuffer(0, bytes.data(), DType::kU8, {10}, std::nullopt, told.OnDone());
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  EXPECT_EQ(told.all(), std::vector<Status>{status});
}

TEST_F(TransferTest, AnErrorThatIsSetReachesWhoWaits) {
  Manager manager = Of({10, 10});
  const Buffer buffer = manager.RetrieveBuffer(0).value();
  const Buffer copy = buffer.CopyToDevice(client_.devices()[1]).value();
  ASSERT_TRUE(manager.SetBufferError(0, AbortedError("the reader gave up")).ok());
  for (const Event& event : {buffer.ready_event(), copy.ready_event()}) {
    const Status status = event.Wait();
    EXPECT_TRUE(IsAborted(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "the reader gave up")) << status;
  }
  const Bytes bytes(10, 7);
  const DoneLog told;
  EXPECT_TRUE(IsAborted(manager.TransferRawDataToBuffer(0, bytes.data(), 10, told.OnDone())));
  EXPECT_EQ(told.count(), 1U);
  EXPECT_TRUE(IsAborted(manager.SetBufferError(0, InternalError("another"))));
  EXPECT_FALSE(manager.RetrieveBuffer(1).value().ready_event().IsReady()) << "the other one is well";
  EXPECT_FALSE(manager.ready_event().IsReady()) << "one is not over";
  ASSERT_TRUE(manager.TransferRawDataToBuffer(1, bytes.data(), 10).ok());
  EXPECT_TRUE(IsAborted(manager.ready_event().Wait()));
}

TEST_F(TransferTest, AManagerThatGoesAwayFailsWhatIsNotWhole) {
  std::optional<Manager> manager = Of({10, 10});
  const Buffer whole = manager->RetrieveBuffer(0).value();
  const Buffer part = manager->RetrieveBuffer(1).value();
  const Bytes bytes(10, 7);
  ASSERT_TRUE(manager->TransferRawDataToBuffer(0, bytes.data(), 10).ok());
  ASSERT_TRUE(manager->TransferRawDataToSubBuffer(1, bytes.data(), 0, 5, false).ok());
  manager.reset();
  EXPECT_EQ(Read(whole), bytes);
  const Status status = part.ready_event().Wait();
  EXPECT_TRUE(IsInternal(status)) << status;
  EXPECT_EQ(status.message(), "Async transfer object was deleted before transfers completed.");
}

TEST_F(TransferTest, WhoIsToldMayDestroyTheManager) {
  const Bytes bytes(kLarge, 7);
  for (const std::size_t size : {std::size_t{10}, kLarge}) {
    auto manager = std::make_shared<std::optional<Manager>>(Of({size, 10}));
    const Buffer buffer = (*manager)->RetrieveBuffer(0).value();
    const Buffer other = (*manager)->RetrieveBuffer(1).value();
    std::promise<void> told;
    const auto on_done = [&, manager](const Status&) {
      manager->reset();
      told.set_value();
    };
    ASSERT_TRUE((*manager)->TransferRawDataToBuffer(0, bytes.data(), size, on_done).ok());
    told.get_future().wait();
    EXPECT_TRUE(buffer.ready_event().Wait().ok());
    EXPECT_TRUE(IsInternal(other.ready_event().Wait())) << "the manager is gone";
  }
}

TEST_F(TransferTest, WhoSeesAnErrorMayDestroyTheManager) {
  std::optional<Manager> manager = Of({10});
  manager->RetrieveBuffer(0)->ready_event().OnReady([&](const Status&) { manager.reset(); });
  EXPECT_TRUE(manager->SetBufferError(0, AbortedError("x")).ok());
  EXPECT_FALSE(manager.has_value());
}

TEST_F(TransferTest, APieceThatCannotBeCopiedFailsItsBuffer) {
  Manager manager = Of({kLarge});
  const Buffer buffer = manager.RetrieveBuffer(0).value();
  const Bytes bytes(kLarge);
  ASSERT_TRUE(client_.runner().Shutdown().ok());
  const DoneLog told;
  ASSERT_TRUE(manager.TransferRawDataToSubBuffer(0, bytes.data(), 0, kLarge, false, told.OnDone()).ok());
  const Status status = buffer.ready_event().Wait();
  EXPECT_TRUE(IsCancelled(status)) << status;
  EXPECT_EQ(told.all(), std::vector<Status>{status});
  EXPECT_TRUE(IsCancelled(manager.TransferRawDataToSubBuffer(0, bytes.data(), 0, 1, true)));
}

TEST_F(TransferTest, MemoryMayComeLater) {
  EventPromise gate("gate");
  AllocOptions options;
  options.after = gate.event();
  Manager manager = Manager::Create({{BytesOf(10)}}, space_, options).value();
  const Buffer buffer = manager.RetrieveBuffer(0).value();
  const Bytes bytes = Pattern(10, 1);
  const DoneLog told;
  ASSERT_TRUE(manager.TransferRawDataToBuffer(0, bytes.data(), 10, told.OnDone()).ok());
  EXPECT_EQ(told.count(), 0U);
  EXPECT_EQ(InUse(), 0U);
  gate.SetReady();
  EXPECT_EQ(Read(buffer), bytes);
  EXPECT_EQ(told.all(), std::vector<Status>{Status()});
}

TEST_F(TransferTest, WhatCannotBeMadeAllocatesNothing) {
  const Shape negative(DType::kU8, {-1});
  const Layout short_layout({0});
  AllocOptions unsound;
  unsound.alignment_bytes = 3;
  EXPECT_TRUE(IsInvalidArgument(Manager::Create({{BytesOf(10)}, {negative}}, space_).status()));
  EXPECT_TRUE(
      IsInvalidArgument(Manager::Create({{BytesOf(10)}, {Shape(DType::kU8, {2, 3}), short_layout}}, space_).status()));
  EXPECT_TRUE(IsInvalidArgument(Manager::Create({{BytesOf(10)}}, space_, unsound).status()));
  EXPECT_EQ(InUse(), 0U);
  const Client client = MakeClient("null");
  const MemorySpace space = client.devices()[0].default_memory_space();
  const Status status = Manager::Create({{BytesOf(10)}, {BytesOf(std::size_t{1} << 50)}}, space).status();
  EXPECT_TRUE(IsResourceExhausted(status)) << status;
  EXPECT_EQ(space.Stats().bytes_in_use, 0U);
}

TEST_F(TransferTest, MetadataIsNotedByKey) {
  Manager manager = Of({});
  EXPECT_TRUE(manager.transfer_metadata().empty());
  manager.AddTransferMetadata("step", "7");
  manager.AddTransferMetadata("host", "a\xff");
  manager.AddTransferMetadata("step", "8");
  const std::vector<std::pair<std::string, std::string>> expected = {{"host", "a\xEF\xBF\xBD"}, {"step", "8"}};
  EXPECT_EQ(manager.transfer_metadata(), expected);
}

TEST_F(TransferTest, NobodyNeedsToBeTold) {
  Manager manager = Of({4, 4});
  const Bytes bytes(4);
  const std::function<void(Status)> empty;
  void (*const null)(Status) = nullptr;
  EXPECT_TRUE(manager.TransferRawDataToBuffer(0, bytes.data(), 4, empty).ok());
  EXPECT_TRUE(manager.TransferRawDataToSubBuffer(1, bytes.data(), 0, 4, true, null).ok());
  EXPECT_TRUE(manager.ready_event().Wait().ok());
}

TEST_F(TransferTest, ClosuresAreDestroyed) {
  const NoLeak check;
  const Bytes bytes(10);
  Manager manager = Of({10});
  for (int i = 0; i < 2; ++i) {
    (void)manager.TransferRawDataToBuffer(0, bytes.data(), 10, [payload = Counted(1)](const Status&) {});
  }
  ASSERT_TRUE(manager.ready_event().Wait().ok());
}

TEST_F(TransferTest, PiecesComeFromManyThreads) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kPiece = 1000;
  constexpr std::size_t kPieces = 50;
  Manager manager = Of({kThreads * kPieces * kPiece});
  const Buffer buffer = manager.RetrieveBuffer(0).value();
  const Bytes bytes = Pattern(kThreads * kPieces * kPiece, 5);
  std::atomic<std::size_t> told{0};
  Together(static_cast<int>(kThreads), [&](int thread) {
    for (std::size_t i = 0; i < kPieces; ++i) {
      const std::size_t offset = (static_cast<std::size_t>(thread) * kPieces + i) * kPiece;
      const Status status =
          manager.TransferRawDataToSubBuffer(0, &bytes[offset], offset, kPiece, false, [&](const Status&) { ++told; });
      EXPECT_TRUE(status.ok()) << status;
    }
  });
  ASSERT_TRUE(manager.TransferRawDataToSubBuffer(0, nullptr, 0, 0, true).ok());
  EXPECT_EQ(Read(buffer), bytes);
  EXPECT_EQ(told, kThreads * kPieces);
}

TEST_F(TransferTest, EveryPlatformFillsBuffers) {
  for (const std::string_view platform : {"null", "sim"}) {
    const Client client = MakeClient(platform);
    Manager manager = Manager::Create({{BytesOf(kLarge)}}, client.devices()[0].default_memory_space()).value();
    const Buffer buffer = manager.RetrieveBuffer(0).value();
    const Bytes bytes = Pattern(kLarge, 9);
    const DoneLog told;
    ASSERT_TRUE(manager.TransferRawDataToBuffer(0, bytes.data(), kLarge, told.OnDone()).ok());
    const Status status = buffer.ready_event().Wait();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(told.all(), std::vector<Status>{Status()});
    if (platform == "sim") {
      EXPECT_EQ(Read(buffer), bytes);
    }
  }
}

}  // namespace
}  // namespace purlin
