// Buffers that end, and those that become others: donated after an event, bitcast, copied into, released; and buffers
// that do not come from the host.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "buffer_fixture.h"
#include "purlin/buffer.h"

namespace purlin {
namespace {

constexpr std::string_view kGone = "Buffer has been deleted or donated.";

class BufferDonationTest : public BufferFixture {};

TEST_F(BufferDonationTest, ADonatedArrayIsAnotherOneAfterTheEvent) {
  EventPromise gate("gate");
  const Buffer old = Six();
  void* const address = Address(old);
  const Buffer donated = old.DonateAfter(gate.event()).value();
  const std::string line = LineAbove();
  EXPECT_TRUE(old.IsDeleted());
  EXPECT_FALSE(donated.ready_event().IsReady());
  EXPECT_EQ(donated.shape(), old.shape());
  EXPECT_EQ(Address(donated), address);
  gate.SetReady();
  EXPECT_EQ(Read(donated), (Bytes{1, 2, 3, 4, 5, 6}));
  const Status status = old.RawAlias().status();
  EXPECT_TRUE(Contains(status.message(), "It was donated by 'DonateAfter' at " + line)) << status;
}

TEST_F(BufferDonationTest, AFailedEventPoisonsTheDonatedArray) {
  const Buffer old = Six();
  const Buffer donated = old.DonateAfter(Event::Error(NotFoundError("upstream"))).value();
  EXPECT_TRUE(old.IsDeleted());
  EXPECT_TRUE(IsNotFound(donated.ready_event().Wait()));
  EXPECT_TRUE(IsNotFound(donated.CopyToDevice(client_.devices()[1])->ready_event().Wait()));
}

TEST_F(BufferDonationTest, ABitcastReadsTheSameBytesAnotherWay) {
  const Buffer old = Of({1, 0, 0, 0, 0, 1, 0, 0}, {2, 4});
  void* const address = Address(old);
  const Buffer cast = old.Bitcast(Shape(DType::kU32, {2})).value();
  const std::string line = LineAbove();
  EXPECT_TRUE(old.IsDeleted());
  EXPECT_EQ(Address(cast), address);
  std::vector<std::uint32_t> back(2);
  ASSERT_TRUE(cast.CopyToHost(back.data(), 8).Wait().ok());
  EXPECT_EQ(back, (std::vector<std::uint32_t>{1, 256}));
  EXPECT_TRUE(Contains(old.RawAlias().status().message(), "'Bitcast' at " + line));
  const Layout column_major({0, 1});
  const Buffer turned = Six().Bitcast(Shape(DType::kU8, {3, 2}), &column_major).value();
  EXPECT_EQ(Read(turned), (Bytes{1, 4, 2, 5, 3, 6}));
}

TEST_F(BufferDonationTest, ABitcastThatDoesNotFitChangesNothing) {
  const Buffer old = Six();
  const std::pair<Shape, std::string_view> cases[] = {
      {Shape(DType::kU8, {7}), "u8[2,3] of 6 bytes to u8[7] of 7 bytes"},
      {Shape::Token(), "arrays of static shape"},
      {Shape(DType::kU8, {6}, {true}), "arrays of static shape"},
      {Shape(DType::kU8, {-6}), "-6"},
  };
  for (const auto& [shape, named] : cases) {
    const Status status = old.Bitcast(shape).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), named)) << status;
  }
  EXPECT_FALSE(old.IsDeleted());
}

TEST_F(BufferDonationTest, ACopyGoesIntoGivenMemory) {
  const Buffer source = Six();
  for (const Device& device : client_.devices()) {
    const Buffer start = source.CopyToDevice(device).value();
    void* const address = Address(start);
    const Buffer copy = source.CopyInto(start).value();
    const std::string line = LineAbove();
    EXPECT_TRUE(start.IsDeleted());
    EXPECT_TRUE(Contains(start.RawAlias().status().message(), "'CopyInto' at " + line)) << start.RawAlias().status();
    EXPECT_EQ(copy.device(), device);
    EXPECT_EQ(Address(copy), address);
    EXPECT_EQ(Read(copy), (Bytes{1, 2, 3, 4, 5, 6}));
  }
  EXPECT_FALSE(source.IsDeleted());
}

TEST_F(BufferDonationTest, ACopyThatDoesNotFitConsumesNothing) {
  const Buffer source = Six();
  const Client other = MakeClient();
  const Bytes zeros(6);
  const Buffer wrong[] = {
      Of(Bytes(6), {3, 2}), Of(Bytes(7), {7}),
      Buffer::FromHost(zeros.data(), 6, DType::kU8, {2, 3}, other.devices()[0].default_memory_space()).value()};
  for (const Buffer& target : wrong) {
    EXPECT_TRUE(IsInvalidArgument(source.CopyInto(target).status()));
    EXPECT_FALSE(target.IsDeleted());
    EXPECT_EQ(target.hold_counts().usage, 0U);
  }
  EXPECT_TRUE(Contains(source.CopyInto(source).status().message(), "into itself"));
  const Buffer target = Six();
  ExternalReference reference = target.AcquireExternalReference().value();
  EXPECT_TRUE(
      Contains(source.CopyInto(target).status().message(), "Donation requested for buffer with external reference"));
  reference.Release();
  source.Delete();
  EXPECT_TRUE(Contains(source.CopyInto(target).status().message(), kGone));
  EXPECT_FALSE(target.IsDeleted());
}

TEST_F(BufferDonationTest, ReadOnlyMemoryIsNotCopiedInto) {
  alignas(64) std::uint8_t bytes[6] = {9, 9, 9, 9, 9, 9};
  FromHostOptions options;
  options.semantics = HostBufferSemantics::kImmutableZeroCopy;
  const FromHostResult made = Buffer::FromHost(bytes, DType::kU8, {2, 3}, space_, options).value();
  ASSERT_EQ(made.aliasing, Aliasing::kAliased);
  const Status status = Six().CopyInto(made.buffer).status();
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "read-only")) << status;
  EXPECT_FALSE(made.buffer.IsDeleted());
}

TEST_F(BufferDonationTest, WhoEndedABufferIsNamed) {
  const Buffer deleted = Six();
  deleted.Delete();
  const std::string delete_line = LineAbove();
  const Buffer released = Six();
  ASSERT_TRUE(released.Release().has_value());
  const std::string release_line = LineAbove();
  deleted.Delete();  // The first counts.
  for (const auto& [buffer, sentence] :
       {std::pair(deleted, "It was deleted at " + delete_line), {released, "It was released at " + release_line}}) {
    Bytes back(6);
    for (const Status& status :
         {buffer.CopyToHost(back.data(), 6).Wait(), buffer.CopyRawToHost(back.data(), 0, 6).Wait(),
          buffer.CopyToHostStrided(back.data(), {3, 1}).Wait(), buffer.CopyToMemorySpace(space_).status(),
          buffer.RawAlias().status(), buffer.AcquireUsageHold().status(), buffer.TryAcquireUsageHold().status(),
          buffer.AcquireExternalReference().status()}) {
      EXPECT_TRUE(IsInvalidArgument(status)) << status;
      EXPECT_TRUE(Contains(status.message(), kGone)) << status;
      EXPECT_TRUE(Contains(status.message(), sentence)) << status;
    }
    for (const Status& status : {buffer.Donate("step").status(), buffer.DonateAfter(Event()).status(),
                                 buffer.Bitcast(Shape(DType::kU8, {6})).status(), Six().CopyInto(buffer).status()}) {
      EXPECT_TRUE(IsInvalidArgument(status)) << status;
      EXPECT_TRUE(Contains(status.message(), "Donation requested for invalid buffer.")) << status;
      EXPECT_TRUE(Contains(status.message(), sentence)) << status;
    }
    EXPECT_FALSE(buffer.Release().has_value());
    EXPECT_FALSE(buffer.ReleaseDeviceMemoryOwnership(true).value().has_value());
  }
}

TEST_F(BufferDonationTest, ReleasingGivesTheMemoryAway) {
  const Buffer buffer = Six();
  EventPromise used("used");
  buffer.AcquireUsageHold().value().ReleaseAfter(used.event());
  std::optional<ReleasedBuffer> released = buffer.Release();
  ASSERT_TRUE(released.has_value());
  EXPECT_TRUE(buffer.IsDeleted());
  EXPECT_FALSE(released->free_event.IsReady());
  used.SetReady();
  EXPECT_TRUE(released->free_event.Wait().ok());
  EXPECT_EQ(released->memory.on_device_size_bytes(), 6U);
  EXPECT_EQ(InUse(), 6U);
  released.reset();
  EXPECT_EQ(InUse(), 0U);
}

TEST_F(BufferDonationTest, ReleasingWhatIsBeingDonatedChangesNothing) {
  const Buffer buffer = Six();
  DonationHold donation = buffer.Donate("step").value();
  EXPECT_FALSE(buffer.Release().has_value());
  EXPECT_FALSE(buffer.ReleaseDeviceMemoryOwnership(true).value().has_value());
  EXPECT_FALSE(buffer.IsDeleted());
  donation.Release();
  EXPECT_FALSE(buffer.IsDeleted());
  EXPECT_TRUE(buffer.Release().has_value()) << "given back, it is as before";
  EXPECT_EQ(InUse(), 0U);
}

TEST_F(BufferDonationTest, DeletingWhatIsBeingDonatedCountsWhenItIsGivenBack) {
  const Buffer buffer = Six();
  DonationHold donation = buffer.Donate("step").value();
  buffer.Delete();
  EXPECT_FALSE(buffer.Release().has_value()) << "and releasing it does not undo that";
  EXPECT_EQ(InUse(), 6U);
  donation.Release();
  EXPECT_TRUE(buffer.IsDeleted());
  EXPECT_EQ(InUse(), 0U);
}

TEST_F(BufferDonationTest, OwnershipIsReleasedAsInPjrt) {
  const Buffer plain = Six();
  std::optional<RawBuffer> memory = plain.ReleaseDeviceMemoryOwnership(true).value();
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(static_cast<std::uint8_t*>(memory->host_pointer())[0], 1);
  EventPromise produced("produced");
  const RawBuffer raw = RawBuffer::Allocate(space_, 4).value();
  const Shape shape(DType::kU8, {4});
  const Buffer pending = Buffer::FromRaw(raw, shape, nullptr, produced.event()).value();
  EXPECT_TRUE(pending.ReleaseDeviceMemoryOwnership(false).value().has_value()) << "without waiting";
  const Buffer failed = Buffer::FromRaw(raw, shape, nullptr, Event::Error(AbortedError("boom"))).value();
  const Status status = failed.ReleaseDeviceMemoryOwnership(true).status();
  EXPECT_TRUE(IsAborted(status)) << status << ": in PJRT's words, but with the code";
  EXPECT_TRUE(Contains(status.message(), "Error Execute: boom")) << status;
  EXPECT_TRUE(failed.IsDeleted());
  produced.SetReady();
}

TEST_F(BufferDonationTest, MemoryBecomesAnArrayOfItsSize) {
  const Shape shape(DType::kF32, {2, 3});
  const RawBuffer small = RawBuffer::Allocate(space_, 23).value();
  const Status status = Buffer::FromRaw(small, shape).status();
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "f32[2,3] is 24 bytes") && Contains(status.message(), "23")) << status;
  const RawBuffer raw = RawBuffer::Allocate(space_, 24).value();
  const Buffer buffer = Buffer::FromRaw(raw, shape).value();
  EXPECT_TRUE(buffer.ready_event().Wait().ok());
  EXPECT_EQ(Address(buffer), raw.host_pointer());
  const Buffer poisoned = Buffer::FromRaw(raw, shape, nullptr, Event::Error(DataLossError("bad disk"))).value();
  EXPECT_TRUE(IsDataLoss(poisoned.ready_event().Wait()));
}

TEST_F(BufferDonationTest, MemoryOfAnArrayStaysUntilItIsReady) {
  EventPromise gate("gate");
  std::optional<RawBuffer> raw = RawBuffer::Allocate(space_, 4).value();
  std::optional<Buffer> buffer = Buffer::FromRaw(*raw, Shape(DType::kU8, {4}), nullptr, gate.event()).value();
  raw.reset();
  buffer.reset();
  EXPECT_EQ(InUse(), 4U) << "somebody still writes it";
  gate.SetReady();
  EXPECT_EQ(InUse(), 0U);
}

TEST_F(BufferDonationTest, UninitializedArraysHaveMemory) {
  AllocOptions options;
  options.label = "scratch";
  const Buffer buffer = Buffer::CreateUninitialized(Shape(DType::kF32, {2, 3}), space_, nullptr, options).value();
  const std::string line = LineAbove();
  EXPECT_TRUE(buffer.ready_event().Wait().ok());
  EXPECT_EQ(InUse(), 24U);
  const std::string report = space_.Report().DebugString();
  EXPECT_TRUE(Contains(report, "scratch") && Contains(report, line)) << report;
  EXPECT_TRUE(IsInvalidArgument(Buffer::CreateUninitialized(Shape(DType::kF32, {-1}), space_).status()));
  options.alignment_bytes = 3;
  EXPECT_TRUE(IsInvalidArgument(Buffer::CreateUninitialized(Shape(DType::kF32), space_, nullptr, options).status()));
}

TEST_F(BufferDonationTest, ABufferWithoutMemoryAnswersWithItsError) {
  const Shape shape(DType::kF32, {2});
  const Buffer buffer = Buffer::CreateError(NotFoundError("no such weights"), shape, space_).value();
  EXPECT_EQ(buffer.shape(), shape);
  EXPECT_EQ(buffer.on_device_size_bytes(), 8U);
  EXPECT_EQ(InUse(), 0U);
  EXPECT_FALSE(buffer.IsDeleted());
  Bytes back(8);
  for (const Status& status :
       {buffer.ready_event().Wait(), buffer.AcquireUsageHold().status(), buffer.AcquireExternalReference().status(),
        buffer.Donate("step").status(), buffer.RawAlias().status(), buffer.CopyToHost(back.data(), 8).Wait(),
        buffer.CopyToDevice(client_.devices()[1])->ready_event().Wait()}) {
    EXPECT_TRUE(IsNotFound(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "no such weights")) << status;
  }
  const Buffer poisoned = buffer.DonateAfter(Event()).value();
  EXPECT_TRUE(buffer.IsDeleted());
  EXPECT_TRUE(IsNotFound(poisoned.ready_event().Wait()));
  EXPECT_FALSE(poisoned.Release().has_value()) << "there is nothing to give away";
  EXPECT_TRUE(poisoned.IsDeleted());
  EXPECT_TRUE(IsInternal(Buffer::CreateError(Status(), shape, space_)->ready_event().Wait())) << "OK is no error";
  EXPECT_TRUE(IsInvalidArgument(Buffer::CreateError(NotFoundError("x"), Shape(DType::kInvalid), space_).status()));
}

TEST_F(BufferDonationTest, ErrorsTravelWhole) {
  for (int code = 1; code <= 16; ++code) {
    Status error(static_cast<StatusCode>(code), "boom");
    error.SetPayload("type.purlin.dev/test", std::string_view("\0\xff", 2));
    EventPromise gate("gate");
    const RawBuffer raw = RawBuffer::Allocate(space_, 4).value();
    const Buffer source = Buffer::FromRaw(raw, Shape(DType::kU8, {4}), nullptr, gate.event()).value();
    const Buffer copy = source.CopyToDevice(client_.devices()[1]).value();
    const Buffer into = copy.CopyInto(Of(Bytes(4), {4})).value();
    Bytes back(4);
    const Event read = source.CopyToHost(back.data(), 4);
    const Event part = source.CopyRawToHost(back.data(), 1, 2);
    const Buffer cast = source.DonateAfter(Event()).value().Bitcast(Shape(DType::kU8, {2, 2})).value();
    gate.SetError(error);
    for (const Event& event :
         {source.ready_event(), copy.ready_event(), into.ready_event(), cast.ready_event(), read, part}) {
      const Status told = event.Wait();
      EXPECT_EQ(told, error);
      EXPECT_EQ(told.GetPayload("type.purlin.dev/test"), std::string("\0\xff", 2)) << told;
    }
    const Status released = cast.ReleaseDeviceMemoryOwnership(true).status();
    EXPECT_EQ(released.code(), error.code());
    EXPECT_EQ(released.message(), "Error Execute: boom");
    EXPECT_EQ(released.GetPayload("type.purlin.dev/test"), std::string("\0\xff", 2)) << released;
  }
}

TEST_F(BufferDonationTest, TokensHaveNoBytes) {
  EventPromise gate("gate");
  const Buffer token = Buffer::CreateToken(space_, gate.event()).value();
  EXPECT_EQ(token.shape(), Shape::Token());
  EXPECT_EQ(token.on_device_size_bytes(), 0U);
  const Buffer copy = token.CopyToDevice(client_.devices()[1]).value();
  EXPECT_FALSE(copy.ready_event().IsReady());
  gate.SetError(AbortedError("upstream"));
  EXPECT_TRUE(IsAborted(copy.ready_event().Wait()));
  EXPECT_TRUE(Buffer::CreateToken(space_)->CopyToHost(nullptr, 0).Wait().ok());
  const DoneLog told;
  EXPECT_TRUE(Buffer::FromHost(nullptr, DType::kToken, {}, space_, FromHostOptions(), told.OnDone()).ok());
  EXPECT_EQ(told.count(), 1U) << "tokens, too, are told of";
}

}  // namespace
}  // namespace purlin
