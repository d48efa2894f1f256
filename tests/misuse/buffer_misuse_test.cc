// Buffer, its holds and promises, Shape, Layout, DType, HostShard, AsyncHostToDeviceTransferManager, DLPack.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "purlin/buffer.h"
#include "purlin/client.h"
#include "purlin/dlpack.h"
#include "purlin/promise.h"
#include "purlin/transfer.h"
#include "tests/cpp/buffer_fixture.h"
#include "tests/cpp/testing.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

using std::chrono::seconds;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kTiny = std::numeric_limits<std::int64_t>::min();
constexpr auto kNoType = static_cast<DType>(200);

class BufferMisuse : public BufferFixture {
 protected:
  StatusOr<Buffer> From(std::size_t size, DType dtype, const Dims& dims) {
    return Buffer::FromHost(bytes_, size, dtype, dims, space_);
  }
  StatusOr<Buffer> Empty(const Shape& shape, const Layout* layout = nullptr) {
    return Buffer::CreateUninitialized(shape, space_, layout);
  }
  std::uint8_t bytes_[64] = {1, 2, 3, 4, 5, 6, 7, 8};
};

// Shapes and layouts --------------------------------------------------------------------------------------------------

TEST_F(BufferMisuse, DimensionsThatAreNone) {
  EXPECT_TRUE(Fails(From(8, DType::kU8, {-8}), StatusCode::kInvalidArgument, {"-8"}));
  EXPECT_TRUE(Fails(From(8, DType::kU8, {-2, -4}), StatusCode::kInvalidArgument, {"-2"}));
  EXPECT_TRUE(Fails(From(8, DType::kU8, {kTiny}), StatusCode::kInvalidArgument, {"-9223372036854775808"}));
  EXPECT_TRUE(Fails(From(8, DType::kU8, {kHuge, 3}), StatusCode::kInvalidArgument, {"9223372036854775807"}));
  EXPECT_TRUE(Fails(From(8, DType::kF64, {kHuge / 4}), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(Empty(Shape(DType::kU8, {kHuge, kHuge})), StatusCode::kInvalidArgument));
}

TEST_F(BufferMisuse, AnEmptyArrayOfEnormousDimensionsIsEmpty) {
  const auto buffer = From(0, DType::kF32, {0, 1 << 30, 1 << 30});
  ASSERT_TRUE(Ok(buffer));
  EXPECT_EQ(buffer->on_device_size_bytes(), 0U);
}

TEST_F(BufferMisuse, ASizeThatIsNotTheShapesNamesBoth) {
  EXPECT_TRUE(Fails(From(7, DType::kU8, {2, 4}), StatusCode::kInvalidArgument, {"7", "8"}));
  EXPECT_TRUE(Fails(From(0, DType::kU8, {1}), StatusCode::kInvalidArgument, {"0", "1"}));
  EXPECT_TRUE(Fails(From(std::numeric_limits<std::size_t>::max(), DType::kU8, {1}), StatusCode::kInvalidArgument));
}

TEST_F(BufferMisuse, TypesThatAreNone) {
  EXPECT_TRUE(Fails(From(8, kNoType, {8}), StatusCode::kInvalidArgument, {"200"}));
  EXPECT_TRUE(Fails(From(8, DType::kInvalid, {8}), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(From(8, static_cast<DType>(255), {8}), StatusCode::kInvalidArgument, {"255"}));
  EXPECT_TRUE(Fails(Empty(Shape(DType::kToken, {2})), StatusCode::kInvalidArgument));
  EXPECT_EQ(BitWidth(kNoType), 0U);
  EXPECT_EQ(ByteWidth(kNoType), 0U);
  EXPECT_EQ(DTypeName(kNoType), "invalid");
}

TEST_F(BufferMisuse, NullIsRefused) {
  EXPECT_TRUE(Fails(Buffer::FromHost(nullptr, 8, DType::kU8, {8}, space_), StatusCode::kInvalidArgument, {"null"}));
  EXPECT_TRUE(Fails(Buffer::FromHost(nullptr, DType::kU8, {8}, space_), StatusCode::kInvalidArgument, {"null"}));
  EXPECT_TRUE(Ok(Buffer::FromHost(nullptr, 0, DType::kU8, {0}, space_)));
}

TEST_F(BufferMisuse, SemanticsThatAreNone) {
  const auto semantics = static_cast<HostBufferSemantics>(4);
  EXPECT_TRUE(
      Fails(Buffer::FromHost(bytes_, 8, DType::kU8, {8}, space_, semantics), StatusCode::kInvalidArgument, {"4"}));
  FromHostOptions options;
  options.semantics = static_cast<HostBufferSemantics>(-7);
  const DoneLog told;
  EXPECT_TRUE(Fails(Buffer::FromHost(bytes_, DType::kU8, {8}, space_, options, told.OnDone()),
                    StatusCode::kInvalidArgument, {"-7"}));
  ASSERT_EQ(told.count(), 1U);
  EXPECT_TRUE(Fails(told.all()[0], StatusCode::kInvalidArgument, {"-7"}));
}

TEST_F(BufferMisuse, LayoutsThatAreNoPermutation) {
  const Shape shape(DType::kU8, {2, 4});
  for (const Dims& wrong : {Dims{0}, Dims{0, 0}, Dims{0, 2}, Dims{-1, 0}, Dims{0, 1, 2}, Dims{kHuge, kTiny}}) {
    const Layout layout(wrong);
    EXPECT_TRUE(Fails(Empty(shape, &layout), StatusCode::kInvalidArgument)) << layout.ToString();
  }
}

TEST_F(BufferMisuse, FlagsForAnotherNumberOfDimensions) {
  const bool one[] = {true};
  const Shape shape(DType::kU8, {2, 4}, one);
  EXPECT_TRUE(Fails(Empty(shape), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(shape.on_device_size_bytes(), StatusCode::kInvalidArgument));
  EXPECT_FALSE(shape.is_dynamic_dimension(std::numeric_limits<std::size_t>::max()));
}

TEST_F(BufferMisuse, SixtyFiveDimensions) {
  const auto buffer = Empty(Shape(DType::kU8, Dims(65, 1)));
  if (buffer.ok()) {
    EXPECT_EQ(buffer->dims().size(), 65U);
  } else {
    EXPECT_TRUE(Fails(buffer, StatusCode::kInvalidArgument));
  }
}

TEST_F(BufferMisuse, StridesOfAnotherNumberOrBeyondAllMemory) {
  for (const Dims& wrong : {Dims{1}, Dims{1, 2, 3}, Dims{}, Dims{kHuge, 1}, Dims{kTiny, kTiny}}) {
    FromHostOptions options;
    options.byte_strides = wrong;
    EXPECT_TRUE(Fails(Buffer::FromHost(bytes_, DType::kU8, {2, 4}, space_, options), StatusCode::kInvalidArgument));
  }
}

TEST_F(BufferMisuse, OptionsWithAStructSizeThatNoVersionHas) {
  FromHostOptions options;
  options.alloc.struct_size = 7;
  EXPECT_TRUE(Fails(Buffer::FromHost(bytes_, DType::kU8, {8}, space_, options), StatusCode::kInvalidArgument, {"7"}));
}

// Reading -------------------------------------------------------------------------------------------------------------

TEST_F(BufferMisuse, ReadsOfAnotherSizeNameBoth) {
  const Buffer six = Six();
  EXPECT_TRUE(Fails(six.CopyToHost(bytes_, 5), StatusCode::kInvalidArgument, {"5", "6"}));
  EXPECT_TRUE(Fails(six.CopyToHost(nullptr, 6), StatusCode::kInvalidArgument, {"null"}));
  EXPECT_TRUE(Fails(six.CopyRawToHost(bytes_, 3, 4), StatusCode::kOutOfRange, {"3", "4", "6"}));
  EXPECT_TRUE(Fails(six.CopyRawToHost(bytes_, std::numeric_limits<std::size_t>::max(), 2), StatusCode::kOutOfRange));
}

TEST_F(BufferMisuse, StridesByWhichElementsOverlapAreRefused) {
  const Buffer six = Six();
  EXPECT_TRUE(Fails(six.CopyToHostStrided(bytes_, {0, 1}), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(six.CopyToHostStrided(bytes_, {1, 1}), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(six.CopyToHostStrided(bytes_, {1}), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(six.CopyToHostStrided(bytes_, {kHuge, kHuge}), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(six.CopyToHostStrided(bytes_, {kTiny, 1}), StatusCode::kInvalidArgument));
}

TEST_F(BufferMisuse, AnAddressThatNeverComes) {
  const Buffer six = Six();
  EXPECT_TRUE(Fails(six.CopyRawToHostWhen(Future<void*>(), 0, 6), StatusCode::kFailedPrecondition));
  Event dropped;
  {
    auto [promise, where] = MakePromise<void*>("address");
    dropped = six.CopyRawToHostWhen(where, 0, 6);
  }
  EXPECT_TRUE(Fails(dropped, StatusCode::kInternal, {"'address'"}));
  EXPECT_TRUE(Fails(six.CopyRawToHostWhen(Future<void*>(static_cast<void*>(nullptr)), 0, 6),
                    StatusCode::kInvalidArgument, {"null"}));
  EXPECT_EQ(InUse(), 6U);
}

TEST_F(BufferMisuse, AnErrorBufferFailsWhatIsMadeOfIt) {
  const Buffer failed = Buffer::CreateError(DataLossError("rotten"), Shape(DType::kU8, {6}), space_).value();
  EXPECT_TRUE(Fails(failed.CopyToHost(bytes_, 6), StatusCode::kDataLoss, {"rotten"}));
  EXPECT_TRUE(Fails(failed.ready_event(), StatusCode::kDataLoss, {"rotten"}));
  const auto copy = failed.CopyToMemorySpace(space_);
  EXPECT_TRUE(!copy.ok() || Fails(copy->ready_event(), StatusCode::kDataLoss, {"rotten"}));
  const Buffer of_ok = Buffer::CreateError(OkStatus(), Shape(DType::kU8, {6}), space_).value();
  EXPECT_TRUE(Fails(of_ok.ready_event(), StatusCode::kInternal));
}

// Ends ----------------------------------------------------------------------------------------------------------------

TEST_F(BufferMisuse, AfterDeleteEverythingSaysWhoAndWhere) {
  const Buffer buffer = Six();
  buffer.Delete();
  const std::string place = LineAbove();
  buffer.Delete();
  const std::string_view gone = "Buffer has been deleted or donated.";
  EXPECT_TRUE(buffer.IsDeleted());
  EXPECT_TRUE(Fails(buffer.CopyToHost(bytes_, 6), StatusCode::kInvalidArgument, {gone, place}));
  EXPECT_TRUE(Fails(buffer.CopyRawToHost(bytes_, 0, 6), StatusCode::kInvalidArgument, {gone, place}));
  EXPECT_TRUE(Fails(buffer.CopyToDevice(client_.devices()[1]), StatusCode::kInvalidArgument, {gone, place}));
  EXPECT_TRUE(Fails(buffer.RawAlias(), StatusCode::kInvalidArgument, {gone, place}));
  EXPECT_TRUE(Fails(buffer.AcquireUsageHold(), StatusCode::kInvalidArgument, {gone, place}));
  EXPECT_TRUE(Fails(buffer.TryAcquireUsageHold(), StatusCode::kInvalidArgument, {gone, place}));
  EXPECT_TRUE(Fails(buffer.AcquireExternalReference(), StatusCode::kInvalidArgument, {gone, place}));
  EXPECT_TRUE(Fails(buffer.Donate("late"), StatusCode::kInvalidArgument, {"Donation requested for invalid buffer"}));
  EXPECT_TRUE(Fails(ToDLPack(buffer), StatusCode::kInvalidArgument));
  EXPECT_FALSE(buffer.Release().has_value());
  EXPECT_EQ(buffer.dims().size(), 2U);
  EXPECT_EQ(buffer.shape().ToString(), "u8[2,3]");
}

TEST_F(BufferMisuse, ReleasedTwice) {
  const Buffer buffer = Six();
  EXPECT_TRUE(buffer.Release().has_value());
  EXPECT_FALSE(buffer.Release().has_value());
  const auto again = buffer.ReleaseDeviceMemoryOwnership(true);
  EXPECT_TRUE(!again.ok() || !again->has_value());
}

TEST_F(BufferMisuse, DeletedWhileACopyReadsIt) {
  EventPromise gate("gate");
  const RawBuffer memory = RawBuffer::Allocate(space_, 6).value();
  const Buffer buffer = Buffer::FromRaw(memory, Shape(DType::kU8, {6}), nullptr, gate.event()).value();
  const Event copied = buffer.CopyToHost(bytes_, 6);
  buffer.Delete();
  EXPECT_FALSE(copied.IsReady());
  gate.SetReady();
  EXPECT_TRUE(Ok(copied));
}

TEST_F(BufferMisuse, DonatedToItselfIsRefused) {
  const Buffer buffer = Six();
  EXPECT_TRUE(Fails(buffer.CopyInto(buffer), StatusCode::kInvalidArgument));
  EXPECT_FALSE(buffer.IsDeleted());
}

TEST_F(BufferMisuse, CopiedIntoAnotherShapeIsRefusedAndChangesNothing) {
  const Buffer six = Six();
  const Buffer other = Of({1, 2, 3, 4, 5, 6}, {3, 2});
  EXPECT_TRUE(Fails(six.CopyInto(other), StatusCode::kInvalidArgument, {"[2,3]", "[3,2]"}));
  EXPECT_FALSE(other.IsDeleted());
  const Client stranger = MakeClient();
  const Bytes bytes(6, 1);
  const Buffer strange =
      Buffer::FromHost(bytes.data(), 6, DType::kU8, {2, 3}, stranger.devices()[0].default_memory_space()).value();
  EXPECT_TRUE(Fails(six.CopyInto(strange), StatusCode::kInvalidArgument, {"client"}));
  EXPECT_TRUE(Fails(six.CopyToDevice(stranger.devices()[0]), StatusCode::kInvalidArgument, {"client"}));
}

TEST_F(BufferMisuse, BitcastToAnotherNumberOfBytesIsRefused) {
  const Buffer six = Six();
  EXPECT_TRUE(Fails(six.Bitcast(Shape(DType::kU8, {7})), StatusCode::kInvalidArgument, {"7", "6"}));
  EXPECT_TRUE(Fails(six.Bitcast(Shape::Token()), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(six.Bitcast(Shape(kNoType, {6})), StatusCode::kInvalidArgument));
  EXPECT_FALSE(six.IsDeleted());
}

TEST_F(BufferMisuse, DonateAfterAnEventThatFailedFailsTheNewBuffer) {
  const Buffer six = Six();
  const auto after = six.DonateAfter(Event::Error(AbortedError("upstream")));
  ASSERT_TRUE(Ok(after));
  EXPECT_TRUE(Fails(after->ready_event(), StatusCode::kAborted, {"upstream"}));
  EXPECT_TRUE(six.IsDeleted());
}

// Holds ---------------------------------------------------------------------------------------------------------------

TEST_F(BufferMisuse, AHoldIsReleasedOnce) {
  const Buffer six = Six();
  UsageHold hold = six.AcquireUsageHold().value();
  UsageHold taken = std::move(hold);
  hold.Release();
  hold.ReleaseAfter(Event());
  taken.Release();
  taken.Release();
  taken.ReleaseAfter(Event());
  EXPECT_TRUE(Ok(six.Donate("free")));
}

TEST_F(BufferMisuse, AnExternalReferenceForbidsDonationUntilItGoes) {
  const Buffer six = Six();
  ExternalReference reference = six.AcquireExternalReference().value();
  EXPECT_TRUE(Fails(six.Donate("too early"), StatusCode::kInvalidArgument,
                    {"Donation requested for buffer with external reference"}));
  ExternalReference taken = std::move(reference);
  reference.Release();
  EXPECT_FALSE(six.Donate("still").ok());
  taken.Release();
  taken.Release();
  EXPECT_TRUE(Ok(six.Donate("now")));
}

TEST_F(BufferMisuse, ADonationIsConfirmedOnce) {
  const Buffer six = Six();
  DonationHold hold = six.Donate("once").value();
  DonationHold taken = std::move(hold);
  EXPECT_TRUE(Fails(hold.Confirm(), StatusCode::kFailedPrecondition));
  hold.Release();
  EXPECT_TRUE(Ok(taken.Confirm()));
  EXPECT_TRUE(Fails(taken.Confirm(), StatusCode::kFailedPrecondition));
  taken.Release();
  EXPECT_TRUE(six.IsDeleted());
}

TEST_F(BufferMisuse, TryingToUseWhatIsBeingDonatedNamesByWhom) {
  const Buffer six = Six();
  const DonationHold hold = six.Donate("the other step").value();
  EXPECT_TRUE(
      Fails(six.TryAcquireUsageHold(), StatusCode::kFailedPrecondition, {"the other step", "buffer_misuse_test.cc"}));
  EXPECT_FALSE(six.Release().has_value());
  EXPECT_FALSE(six.IsDeleted());
}

TEST_F(BufferMisuse, DeletedUnderADonationThatIsGivenBack) {
  const Buffer six = Six();
  {
    const DonationHold hold = six.Donate("undecided").value();
    six.Delete();
    EXPECT_EQ(hold.memory().on_device_size_bytes(), 6U);
  }
  EXPECT_TRUE(six.IsDeleted());
  EXPECT_EQ(InUse(), 0U);
}

TEST_F(BufferMisuse, EightThreadsDonateOneBuffer) {
  for (int round = 0; round < 50; ++round) {
    const Buffer six = Six();
    std::atomic<int> winners{0};
    Together(8, [&](int) {
      auto hold = six.Donate("racer");
      if (hold.ok() && hold->Confirm().ok()) ++winners;
    });
    EXPECT_EQ(winners.load(), 1);
  }
  EXPECT_EQ(InUse(), 0U);
}

// Callbacks -----------------------------------------------------------------------------------------------------------

TEST_F(BufferMisuse, OnDoneMayDeleteTheBufferAndShutTheClientDown) {
  Status ended = InternalError("not called");
  std::promise<void> told;
  FromHostOptions options;
  options.semantics = HostBufferSemantics::kImmutableZeroCopy;
  alignas(64) static std::uint8_t aligned[64];
  std::optional<Buffer> buffer;
  auto made = Buffer::FromHost(aligned, DType::kU8, {64}, space_, options, [&](Status) {
    ended = client_.Shutdown();
    told.set_value();
  });
  ASSERT_TRUE(Ok(made));
  made->buffer.Delete();
  told.get_future().wait();
  EXPECT_TRUE(ended.ok() || IsFailedPrecondition(ended)) << ended;
}

TEST_F(BufferMisuse, AnEmptyFunctionCountsAsNone) {
  const std::function<void(Status)> empty;
  void (*null)(Status) = nullptr;
  EXPECT_TRUE(Ok(Buffer::FromHost(bytes_, DType::kU8, {8}, space_, FromHostOptions(), empty)));
  EXPECT_TRUE(Ok(Buffer::FromHost(bytes_, DType::kU8, {8}, space_, FromHostOptions(), null)));
}

TEST_F(BufferMisuse, ShardsOfDifferentClientsTellEachShardOnce) {
  const Client stranger = MakeClient();
  const DoneLog first, second;
  std::vector<HostShard> shards;
  shards.push_back({bytes_, DType::kU8, {8}, space_});
  shards.push_back({bytes_, DType::kU8, {8}, stranger.devices()[0].default_memory_space()});
  shards[0].on_done = [on_done = std::make_shared<decltype(first.OnDone())>(first.OnDone())](Status s) {
    (*on_done)(s);
  };
  shards[1].on_done = [on_done = std::make_shared<decltype(second.OnDone())>(second.OnDone())](Status s) {
    (*on_done)(s);
  };
  EXPECT_TRUE(Fails(Buffer::FromHostShards(shards), StatusCode::kInvalidArgument, {"shard 1"}));
  EXPECT_EQ(first.count(), 1U);
  EXPECT_EQ(second.count(), 1U);
  EXPECT_EQ(InUse(), 0U);
  EXPECT_TRUE(Ok(Buffer::FromHostShards({})));
}

// Channels ------------------------------------------------------------------------------------------------------------

TEST_F(BufferMisuse, ADroppedPromiseFailsTheBuffer) {
  std::optional<Buffer> buffer;
  {
    buffer = Buffer::CreateChannel(Shape(DType::kU8, {6}), space_)->first;
  }
  EXPECT_FALSE(buffer->ready_event().Wait().ok());
  EXPECT_FALSE(buffer->CopyToHost(bytes_, 6).Wait().ok());
}

TEST_F(BufferMisuse, APromiseTakesNoOtherShapeNorItself) {
  auto channel = Buffer::CreateChannel(Shape(DType::kU8, {2, 3}), space_);
  ASSERT_TRUE(Ok(channel));
  auto& [buffer, promise] = *channel;
  EXPECT_TRUE(Fails(promise.Fulfil(Of({1, 2, 3, 4, 5, 6}, {6})), StatusCode::kInvalidArgument));
  EXPECT_FALSE(promise.Fulfil(buffer).ok());
  EXPECT_FALSE(buffer.ready_event().IsReady());
  const Buffer six = Six();
  EXPECT_TRUE(Ok(promise.Fulfil(six)));
  EXPECT_TRUE(six.IsDeleted());
  EXPECT_TRUE(Fails(promise.Fulfil(Six()), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(promise.Fail(InternalError("late")), StatusCode::kFailedPrecondition));
}

TEST_F(BufferMisuse, FailingAPromiseWithOkIsInternal) {
  auto channel = Buffer::CreateChannel(Shape(DType::kU8, {6}), space_);
  EXPECT_TRUE(Ok(channel->second.Fail(OkStatus())));
  EXPECT_TRUE(Fails(channel->first.ready_event(), StatusCode::kInternal));
  BufferPromise taken = std::move(channel->second);
  EXPECT_TRUE(Fails(channel->second.Fail(AbortedError("x")), StatusCode::kFailedPrecondition));
}

TEST_F(BufferMisuse, MemoryOfAnotherSizeMakesNoArray) {
  const RawBuffer memory = RawBuffer::Allocate(space_, 8).value();
  EXPECT_TRUE(Fails(Buffer::FromRaw(memory, Shape(DType::kU8, {9})), StatusCode::kInvalidArgument, {"8", "9"}));
}

// Transfers -----------------------------------------------------------------------------------------------------------

class TransferMisuse : public BufferMisuse {
 protected:
  AsyncHostToDeviceTransferManager Make(std::size_t size = 8) {
    return std::move(
        AsyncHostToDeviceTransferManager::Create({{Shape(DType::kU8, {static_cast<std::int64_t>(size)})}}, space_)
            .value());
  }
};

TEST_F(TransferMisuse, ABufferThatIsNotThere) {
  auto manager = Make();
  EXPECT_TRUE(Fails(manager.buffer_size(1), StatusCode::kInvalidArgument, {"1"}));
  EXPECT_TRUE(Fails(manager.RetrieveBuffer(1), StatusCode::kInvalidArgument, {"1"}));
  EXPECT_TRUE(Fails(manager.TransferRawDataToBuffer(7, bytes_, 8), StatusCode::kInvalidArgument, {"7"}));
  EXPECT_TRUE(Fails(manager.TransferRawDataToSubBuffer(7, bytes_, 0, 8, true), StatusCode::kInvalidArgument, {"7"}));
  EXPECT_TRUE(Fails(manager.TransferArrayToBuffer(7, bytes_, DType::kU8, {8}), StatusCode::kInvalidArgument, {"7"}));
  EXPECT_TRUE(Fails(manager.SetBufferError(7, AbortedError("x")), StatusCode::kInvalidArgument, {"7"}));
}

TEST_F(TransferMisuse, RetrievedTwice) {
  auto manager = Make();
  const auto buffer = manager.RetrieveBuffer(0);
  ASSERT_TRUE(Ok(buffer));
  EXPECT_TRUE(Fails(manager.RetrieveBuffer(0), StatusCode::kFailedPrecondition));
}

TEST_F(TransferMisuse, PiecesPastTheEndAndAfterTheLast) {
  auto manager = Make();
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  EXPECT_TRUE(Fails(manager.TransferRawDataToSubBuffer(0, bytes_, 4, 5, false), StatusCode::kOutOfRange, {"4", "5"}));
  EXPECT_TRUE(Fails(manager.TransferRawDataToSubBuffer(0, bytes_, most, 2, false), StatusCode::kOutOfRange));
  EXPECT_TRUE(Fails(manager.TransferRawDataToSubBuffer(0, nullptr, 0, 8, true), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(manager.TransferRawDataToBuffer(0, bytes_, 7), StatusCode::kInvalidArgument, {"7", "8"}));
  EXPECT_TRUE(Ok(manager.TransferRawDataToSubBuffer(0, bytes_, 0, 8, true)));
  EXPECT_TRUE(Fails(manager.TransferRawDataToSubBuffer(0, bytes_, 0, 8, true), StatusCode::kInvalidArgument,
                    {"already been fully transferred"}));
  EXPECT_TRUE(Fails(manager.SetBufferError(0, AbortedError("late")), StatusCode::kInvalidArgument,
                    {"already been fully transferred"}));
}

TEST_F(TransferMisuse, AnErrorThatIsOkIsAnErrorAllTheSame) {
  auto of_ok = Make();
  EXPECT_TRUE(Ok(of_ok.SetBufferError(0, OkStatus())));
  EXPECT_TRUE(Fails(of_ok.ready_event(), StatusCode::kInternal, {"OK status"}));
  auto manager = Make();
  EXPECT_TRUE(Ok(manager.SetBufferError(0, DataLossError("lost"))));
  EXPECT_TRUE(Fails(manager.SetBufferError(0, AbortedError("again")), StatusCode::kDataLoss, {"lost"}));
  EXPECT_TRUE(Fails(manager.TransferRawDataToBuffer(0, bytes_, 8), StatusCode::kDataLoss, {"lost"}));
}

TEST_F(TransferMisuse, AManagerThatGoesEarlyFailsItsBuffers) {
  std::optional<Buffer> buffer;
  {
    auto manager = Make();
    buffer = manager.RetrieveBuffer(0).value();
    EXPECT_TRUE(Ok(manager.TransferRawDataToSubBuffer(0, bytes_, 0, 4, false)));
  }
  EXPECT_TRUE(Fails(buffer->ready_event(), StatusCode::kInternal,
                    {"Async transfer object was deleted before transfers completed."}));
}

TEST_F(TransferMisuse, OnDoneMayDestroyTheManager) {
  auto manager = std::make_unique<AsyncHostToDeviceTransferManager>(Make());
  const Buffer buffer = manager->RetrieveBuffer(0).value();
  std::promise<void> told;
  AsyncHostToDeviceTransferManager& borrowed = *manager;
  EXPECT_TRUE(Ok(borrowed.TransferRawDataToSubBuffer(0, bytes_, 0, 8, true, [&](Status) {
    manager.reset();
    told.set_value();
  })));
  told.get_future().wait();
  EXPECT_TRUE(Ok(buffer.ready_event()));
}

TEST_F(TransferMisuse, AnUnsoundSpecAllocatesNothing) {
  const Layout wrong(Dims{0, 0});
  EXPECT_TRUE(Fails(AsyncHostToDeviceTransferManager::Create(
                        {{Shape(DType::kU8, {4096})}, {Shape(DType::kU8, {2, 4}), wrong}}, space_),
                    StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(AsyncHostToDeviceTransferManager::Create({{Shape(DType::kU8, {-4})}}, space_),
                    StatusCode::kInvalidArgument, {"-4"}));
  EXPECT_EQ(InUse(), 0U);
  EXPECT_TRUE(Ok(AsyncHostToDeviceTransferManager::Create({}, space_)));
}

// DLPack --------------------------------------------------------------------------------------------------------------

TEST_F(BufferMisuse, DLPackOfNullAndOfWhatIsNotReady) {
  EXPECT_TRUE(Fails(FromDLPack(nullptr, space_), StatusCode::kInvalidArgument, {"null"}));
  EventPromise gate("gate");
  const Buffer later =
      Buffer::FromRaw(RawBuffer::Allocate(space_, 6).value(), Shape(DType::kU8, {6}), nullptr, gate.event()).value();
  EXPECT_TRUE(Fails(ToDLPack(later), StatusCode::kFailedPrecondition));
  gate.SetError(DataLossError("rotten"));
  EXPECT_TRUE(Fails(ToDLPack(later), StatusCode::kDataLoss, {"rotten"}));
  EXPECT_TRUE(Fails(ToDLPack(Buffer::CreateToken(space_).value()), StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace purlin
