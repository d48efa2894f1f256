// purlin/adapters/xla_raw_buffer.h: what crosses, with XLA's own CPU client and compiler that are inside TensorFlow.
// XLA's memory in Purlin's accounting is in xla_memory_test.cc.
#include "purlin/adapters/xla_raw_buffer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "purlin/client.h"
#include "tests/cpp/testing.h"
#include "tests/interop/xla_testing.h"
#include "xla/pjrt/tf_pjrt_client.h"

namespace purlin {
namespace {

using adapters::DonateToXla;
using adapters::FromAbsl;
using adapters::FromXla;
using adapters::ToXla;

constexpr std::size_t kXlaWants = 64;

absl::Status TheirError() {
  absl::Status error = absl::DataLossError("bits fell over");
  error.SetPayload("type.googleapis.com/bits", absl::Cord(absl::string_view("\0\xff", 2)));
  return error;
}

// XLA writes where it was before the message of an error, and leaves the rest.
bool IsTheirError(const absl::Status& status) {
  return status.code() == TheirError().code() && absl::EndsWith(status.message(), TheirError().message()) &&
         status.GetPayload("type.googleapis.com/bits") == TheirError().GetPayload("type.googleapis.com/bits");
}
bool IsTheirError(const Status& status) { return IsTheirError(adapters::ToAbsl(status)); }

class XlaTest : public testing::Test {
 protected:
  // XLA's client and its threads live as long as the process, as they do in most programs.
  static void SetUpTestSuite() {
    if (xla_ != nullptr) return;
    xla_ = MakeXlaClient().release();
    executable_ = new Executable(Compile(*xla_));
    in_place_ = new Executable(Compile(*xla_, kCount, /*in_place=*/true));
    // Threads that are started with the first work.
    XlaTest warm;
    EXPECT_EQ(Read(*Execute(*executable_, *Need(ToXla(warm.Ours(), *xla_, warm.space_)))), TimesTwoPlusOne(Numbers()));
  }

  Buffer Ours() const {
    const std::vector<float> numbers = Numbers();
    return Buffer::FromHost(numbers.data(), kBytes, DType::kF32, {kCount}, here_).value();
  }
  // What is Purlin's, and its bytes and promise to be ready.
  std::pair<Buffer, RawBuffer> OursAfter(const Event& ready) const {
    const RawBuffer memory = RawBuffer::Allocate(here_, kBytes).value();
    return {Buffer::FromRaw(memory, Shape(DType::kF32, {kCount}), nullptr, ready).value(), memory};
  }
  std::unique_ptr<xla::PjRtBuffer> Theirs() const {
    const std::vector<float> numbers = Numbers();
    const std::int64_t dims[] = {kCount};
    return Need(xla_->BufferFromHostBuffer(numbers.data(), xla::F32, dims, std::nullopt,
                                           xla::PjRtClient::HostBufferSemantics::kImmutableOnlyDuringCall, nullptr,
                                           space_, nullptr));
  }
  void TestBody() override {}

  static inline xla::PjRtClient* xla_ = nullptr;
  static inline const Executable* executable_ = nullptr;
  static inline const Executable* in_place_ = nullptr;
  xla::PjRtMemorySpace* const space_ = Need(xla_->addressable_devices().front()->default_memory_space());
  const Client client_ = Client::Create().value();
  const MemorySpace here_ = client_.devices().front().default_memory_space();
};

// Purlin's memory in XLA ---------------------------------------------------------------------------------------------

TEST_F(XlaTest, AComputationReadsPurlinsMemoryAndPurlinReadsItsResultInPlace) {
  const Buffer ours = Ours();
  const auto argument = Need(ToXla(ours, *xla_, space_));
  EXPECT_EQ(AddressOf(*argument), ours.RawAlias()->host_pointer()) << "a copy";
  std::shared_ptr<xla::PjRtBuffer> result = Execute(*executable_, *argument);
  const Buffer back = FromXla(result, here_).value();
  EXPECT_EQ(back.ready_event().Wait(), OkStatus());
  EXPECT_EQ(back.RawAlias()->host_pointer(), AddressOf(*result)) << "a copy";
  EXPECT_EQ(back.shape(), ours.shape());
  EXPECT_EQ(Read(back), TimesTwoPlusOne(Numbers()));
  const auto again = Need(ToXla(back, *xla_, space_));
  EXPECT_EQ(AddressOf(*again), AddressOf(*result)) << "there and back is the same memory";
  EXPECT_EQ(Read(*Execute(*executable_, *again)), TimesTwoPlusOne(TimesTwoPlusOne(Numbers())));
}

TEST_F(XlaTest, AComputationWaitsForBytesThatPurlinBringsLater) {
  EventPromise promise("the bytes");
  const auto [ours, memory] = OursAfter(promise.event());
  const auto argument = Need(ToXla(ours, *xla_, space_));
  EXPECT_FALSE(argument->GetReadyFuture().IsReady());
  const Buffer back = FromXla(Execute(*executable_, *argument), here_).value();
  EXPECT_FALSE(back.ready_event().IsReady());
  EXPECT_EQ(memory.CopyFromHost(Numbers().data(), 0, kBytes).Wait(), OkStatus());
  promise.SetReady();
  EXPECT_EQ(argument->GetReadyFuture().Await(), absl::OkStatus());
  EXPECT_EQ(back.ready_event().Wait(), OkStatus());
  EXPECT_EQ(Read(back), TimesTwoPlusOne(Numbers()));
}

TEST_F(XlaTest, AnErrorCrossesToXlaAndItsComputations) {
  EventPromise promise("the bytes");
  const auto [ours, memory] = OursAfter(promise.event());
  const auto argument = Need(ToXla(ours, *xla_, space_));
  const Buffer pending = FromXla(Execute(*executable_, *argument), here_).value();
  const Buffer unchanged = FromXla(Need(ToXla(ours, *xla_, space_)), here_).value();
  promise.SetError(FromAbsl(TheirError()));
  EXPECT_TRUE(IsTheirError(argument->GetReadyFuture().Await())) << argument->GetReadyFuture().Await();
  EXPECT_TRUE(IsTheirError(unchanged.ready_event().Wait())) << unchanged.ready_event().error();
  const Buffer late = FromXla(Execute(*executable_, *argument), here_).value();
  for (const Buffer& result : {pending, late}) {
    // XLA says Internal of its own computations, whatever it was.
    EXPECT_EQ(result.ready_event().Wait().code(), StatusCode::kInternal);
    EXPECT_NE(result.ready_event().error().message().find("bits fell over"), std::string_view::npos)
        << result.ready_event().error();
  }
  EXPECT_TRUE(IsTheirError(FromXla(Need(ToXla(ours, *xla_, space_)), here_)->ready_event().error()));
}

TEST_F(XlaTest, MemoryIsLetGoOnceWhenBothSidesAreDone) {
  alignas(64) static float storage[kCount];
  std::atomic<int> released = 0;
  EventPromise promise("the bytes");
  std::unique_ptr<xla::PjRtBuffer> result;
  Event gone;
  {
    const RawBuffer memory =
        RawBuffer::Import(here_, storage, kBytes, Mutability::kMutable, [&released] { ++released; }).value();
    const Buffer ours = Buffer::FromRaw(memory, Shape(DType::kF32, {kCount}), nullptr, promise.event()).value();
    auto argument = Need(ToXla(ours, *xla_, space_));
    EXPECT_EQ(ours.hold_counts().external, 1U);
    result = Execute(*executable_, *argument);
    argument.reset();
    ours.Delete();
  }
  EXPECT_EQ(released.load(), 0) << "a computation that has not begun";
  for (std::size_t i = 0; i < kCount; ++i) storage[i] = static_cast<float>(i);
  promise.SetReady();
  EXPECT_EQ(Read(*result), TimesTwoPlusOne(Numbers()));
  EXPECT_TRUE(Eventually([&] { return released.load() == 1; }));
  result.reset();
  EXPECT_EQ(released.load(), 1);
}

TEST_F(XlaTest, WhatXlaReadsIsNotDonatedByPurlinAndNotWrittenByXla) {
  const Buffer ours = Ours();
  auto argument = Need(ToXla(ours, *xla_, space_));
  EXPECT_EQ(ours.TryDonate("somebody").status().code(), StatusCode::kInvalidArgument);
  const auto result = Execute(*in_place_, *argument);
  EXPECT_EQ(Read(*result), TimesTwoPlusOne(Numbers()));
  EXPECT_NE(AddressOf(*result), ours.RawAlias()->host_pointer());
  EXPECT_EQ(Read(ours), Numbers()) << "XLA has copied before it wrote";
  argument.reset();
  EXPECT_TRUE(Eventually([&] { return ours.hold_counts().external == 0; }));
  EXPECT_TRUE(ours.TryDonate("somebody").ok());
}

TEST_F(XlaTest, AnOrderOfDimensionsCrosses) {
  const Layout column_major({0, 1});
  const std::vector<float> numbers = Numbers();
  FromHostOptions options;
  options.device_layout = &column_major;
  const Buffer ours = Buffer::FromHost(numbers.data(), DType::kF32, {4, 16}, here_, options).value().buffer;
  auto theirs = Need(ToXla(ours, *xla_, space_));
  EXPECT_EQ(theirs->on_device_shape().layout().minor_to_major(0), 0);
  auto literal = Need(theirs->ToLiteral().Await());
  EXPECT_EQ(literal->Get<float>({1, 2}), numbers[18]);
  const Buffer back = FromXla(std::move(theirs), here_).value();
  EXPECT_EQ(back.layout(), column_major);
  EXPECT_EQ(Read(back), numbers);
}

TEST_F(XlaTest, TypesNarrowerThanAByteArePackedAlike) {
  const std::int8_t numbers[] = {1, -2, 3, -4, 5};
  const Buffer ours = Buffer::FromHost(numbers, sizeof(numbers), DType::kS4, {5}, here_).value();
  const auto literal = Need(Need(ToXla(ours, *xla_, space_))->ToLiteral().Await());
  for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(static_cast<int>(literal->Get<xla::s4>({i})), numbers[i]) << i;
}

TEST_F(XlaTest, WhatCannotCrossIsAnErrorAndHoldsNothing) {
  const RawBuffer memory = RawBuffer::Allocate(here_, 2 * kBytes).value();
  const Buffer unaligned = Buffer::FromRaw(*memory.Slice(4, kBytes), Shape(DType::kF32, {kCount})).value();
  EXPECT_EQ(ToXla(unaligned, *xla_, space_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DonateToXla(unaligned, *xla_, space_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ToXla(*memory.Slice(4, 8), *xla_, space_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(unaligned.hold_counts().external, 0U);
  EXPECT_FALSE(unaligned.IsDeleted());
  EXPECT_TRUE(unaligned.TryDonate("somebody").ok());

  const Buffer ours = Ours();
  EXPECT_EQ(ToXla(ours, *xla_, nullptr).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ToXla(memory, *xla_, nullptr).status().code(), absl::StatusCode::kUnimplemented);
  const auto other = MakeXlaClient();
  EXPECT_EQ(ToXla(ours, *other, space_).status().code(), absl::StatusCode::kInvalidArgument);
  const bool dynamic[] = {true};
  const Shape shape(DType::kF32, {kCount}, dynamic);
  EXPECT_EQ(ToXla(*Buffer::CreateUninitialized(shape, here_), *xla_, space_).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ToXla(*Buffer::CreateToken(here_), *xla_, space_).status().code(), absl::StatusCode::kUnimplemented);
  ours.Delete();
  EXPECT_EQ(ToXla(ours, *xla_, space_).status().code(), absl::StatusCode::kInvalidArgument);

  auto channel = RawBuffer::CreateChannel(here_, kBytes).value();
  EXPECT_EQ(ToXla(channel.first, *xla_, space_).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(channel.second.Fail(FromAbsl(TheirError())), OkStatus());
  EXPECT_EQ(ToXla(channel.first, *xla_, space_).status(), TheirError());

  ClientOptions options;
  options.platform = "null";
  const Client nowhere = Client::Create(options).value();
  const MemorySpace imaginary = nowhere.devices().front().default_memory_space();
  EXPECT_EQ(ToXla(*RawBuffer::Allocate(imaginary, 64), *xla_, space_).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(XlaTest, ArraysOfNothingCross) {
  const Buffer ours = Buffer::CreateUninitialized(Shape(DType::kF32, {0, 3}), here_).value();
  const Buffer back = FromXla(Need(ToXla(ours, *xla_, space_)), here_).value();
  EXPECT_EQ(back.ready_event().Wait(), OkStatus());
  EXPECT_EQ(back.shape(), ours.shape());
}

TEST_F(XlaTest, AClientWithThePublicInterfaceOnlyTakesWhatIsReady) {
  const auto wrapped = xla::TfPjRtClient::CreateTfPjRtClient(MakeXlaClient());
  xla::PjRtMemorySpace* const space = Need(wrapped->addressable_devices().front()->default_memory_space());
  const Executable executable = Compile(*wrapped);
  const Buffer ours = Ours();
  auto argument = Need(ToXla(ours, *wrapped, space));
  EXPECT_EQ(AddressOf(*argument), ours.RawAlias()->host_pointer());
  const Buffer back = FromXla(Execute(executable, *argument), here_).value();
  EXPECT_EQ(Read(back), TimesTwoPlusOne(Numbers()));
  EXPECT_EQ(ours.hold_counts().external, 1U);
  argument.reset();
  EXPECT_TRUE(Eventually([&] { return ours.hold_counts().external == 0; }));

  EventPromise promise("the bytes");
  const auto [pending, memory] = OursAfter(promise.event());
  EXPECT_EQ(ToXla(pending, *wrapped, space).status().code(), absl::StatusCode::kFailedPrecondition);
  promise.SetError(FromAbsl(TheirError()));
  EXPECT_EQ(ToXla(pending, *wrapped, space).status(), TheirError());
  EXPECT_EQ(ToXla(ours, *wrapped, nullptr).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(DonateToXla(ours, *wrapped, space).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ToXla(memory, *wrapped, space).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ToXla(Event(), *wrapped, space).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Read(ours), Numbers());
}

TEST_F(XlaTest, XlasOtherPathsDoWhatTheDocumentationSays) {
  // Alignment: of an import, and where XLA copies without a word.
  alignas(128) static float storage[kCount + 32];
  for (const std::size_t alignment_bytes : {16U, 32U, 64U, 128U}) {
    float* const address = storage + alignment_bytes / sizeof(float);
    const RawBuffer memory = RawBuffer::Import(here_, address, kBytes, Mutability::kMutable).value();
    const bool taken = ToXla(memory, *xla_, space_).ok();
    EXPECT_EQ(taken, alignment_bytes >= kXlaWants) << alignment_bytes;
    const std::int64_t dims[] = {kCount};
    const auto theirs = Need(xla_->BufferFromHostBuffer(address, xla::F32, dims, std::nullopt,
                                                        xla::PjRtClient::HostBufferSemantics::kImmutableZeroCopy,
                                                        nullptr, space_, nullptr));
    EXPECT_EQ(AddressOf(*theirs) == address, taken) << alignment_bytes;
  }
  // Events: the public way to say "after this" is not there on the CPU.
  const auto argument = Need(ToXla(Ours(), *xla_, space_));
  EXPECT_EQ(argument->DonateWithControlDependency(xla::Future<>(absl::OkStatus())).status().code(),
            absl::StatusCode::kUnimplemented);
  // Copies within XLA.
  const auto copy = Need(argument->CopyToMemorySpace(space_));
  EXPECT_EQ(Read(*copy), Numbers());
  EXPECT_NE(AddressOf(*copy), AddressOf(*argument));
}

// Donations ----------------------------------------------------------------------------------------------------------

TEST_F(XlaTest, AResultIsWrittenIntoMemoryThatIsDonated) {
  const std::uint64_t before = here_.Stats().bytes_in_use;
  {
    const Buffer ours = Ours();
    void* const address = ours.RawAlias()->host_pointer();
    const auto argument = Need(DonateToXla(ours, *xla_, space_));
    EXPECT_TRUE(ours.IsDeleted());
    EXPECT_EQ(ours.AcquireUsageHold().status().code(), StatusCode::kInvalidArgument);
    const Buffer back = FromXla(Execute(*in_place_, *argument), here_).value();
    EXPECT_EQ(Read(back), TimesTwoPlusOne(Numbers()));
    EXPECT_EQ(back.RawAlias()->host_pointer(), address);
    EXPECT_EQ(here_.Stats().bytes_in_use, before + kBytes) << "it is still Purlin's memory";
  }
  EXPECT_TRUE(Eventually([&] { return here_.Stats().bytes_in_use == before; }));
}

TEST_F(XlaTest, ADonationWaitsForThoseWhoUseTheMemory) {
  EventPromise ready("the bytes");
  EventPromise used("the use");
  const auto [ours, memory] = OursAfter(ready.event());
  auto hold = ours.AcquireUsageHold();
  hold->ReleaseAfter(used.event());
  const auto argument = Need(DonateToXla(ours, *xla_, space_));
  const Buffer back = FromXla(Execute(*in_place_, *argument), here_).value();
  EXPECT_EQ(memory.CopyFromHost(Numbers().data(), 0, kBytes).Wait(), OkStatus());
  ready.SetReady();
  EXPECT_FALSE(back.ready_event().IsReady());
  used.SetReady();
  EXPECT_EQ(Read(back), TimesTwoPlusOne(Numbers()));
}

TEST_F(XlaTest, WhatMayNotBeWrittenOrHasAReferenceIsNotDonated) {
  alignas(64) static float storage[kCount];
  const RawBuffer memory = RawBuffer::Import(here_, storage, kBytes, Mutability::kImmutable).value();
  const Buffer ours = Buffer::FromRaw(memory, Shape(DType::kF32, {kCount})).value();
  EXPECT_EQ(DonateToXla(ours, *xla_, space_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(ours.IsDeleted());
  const Buffer held = Ours();
  const auto argument = Need(ToXla(held, *xla_, space_));
  EXPECT_EQ(DonateToXla(held, *xla_, space_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(held.IsDeleted());
}

// XLA's memory in Purlin ---------------------------------------------------------------------------------------------

TEST_F(XlaTest, XlasBufferIsKeptUntilPurlinsLastUse) {
  std::atomic<int> destroyed = 0;
  std::optional<RawBuffer> slice;
  {
    const std::shared_ptr<xla::PjRtBuffer> theirs(Theirs().release(), [&destroyed](xla::PjRtBuffer* buffer) {
      delete buffer;
      ++destroyed;
    });
    const Buffer ours = FromXla(theirs, here_).value();
    EXPECT_FALSE(ours.RawAlias()->is_mutable());
    slice = *ours.RawAlias()->Slice(4, 8);
    theirs->Delete();
  }
  EXPECT_EQ(destroyed.load(), 0);
  float numbers[2] = {};
  EXPECT_EQ(slice->CopyToHost(numbers, 0, 8).Wait(), OkStatus());
  EXPECT_EQ(numbers[1], 2);
  slice.reset();
  EXPECT_TRUE(Eventually([&] { return destroyed.load() == 1; }));
}

TEST_F(XlaTest, WhatPurlinReadsIsNotWrittenByXla) {
  std::shared_ptr<xla::PjRtBuffer> theirs = Theirs();
  const Buffer ours = FromXla(theirs, here_).value();
  const auto result = Execute(*in_place_, *theirs);
  EXPECT_EQ(Read(*result), TimesTwoPlusOne(Numbers()));
  EXPECT_EQ(Read(ours), Numbers());
}

TEST_F(XlaTest, WhatXlaHasLostIsAnError) {
  EXPECT_EQ(FromXla(std::shared_ptr<xla::PjRtBuffer>(), here_).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FromXla(tsl::RCReference<xla::CommonPjRtRawBuffer>(), here_).status().code(), StatusCode::kInvalidArgument);
  std::shared_ptr<xla::PjRtBuffer> theirs = Theirs();
  theirs->Delete();
  EXPECT_EQ(FromXla(theirs, here_).status().code(), StatusCode::kInvalidArgument);
  const xla::Shape shape = xla::ShapeUtil::MakeShape(xla::F32, {kCount});
  const Buffer failed = FromXla(Need(xla_->CreateErrorBuffer(TheirError(), shape, space_)), here_).value();
  EXPECT_TRUE(IsTheirError(failed.ready_event().error())) << failed.ready_event().error();

  EventPromise promise("the bytes");
  const auto [ours, memory] = OursAfter(promise.event());
  theirs = Need(ToXla(ours, *xla_, space_));
  const Buffer pending = FromXla(theirs, here_).value();
  theirs->Delete();
  promise.SetReady();
  EXPECT_EQ(pending.ready_event().Wait().code(), StatusCode::kInvalidArgument) << "deleted before it was ready";
}

TEST_F(XlaTest, APendingBufferOutlivesPurlinsHandles) {
  EventPromise promise("the bytes");
  const auto [ours, memory] = OursAfter(promise.event());
  {
    const Buffer back = FromXla(Execute(*executable_, *Need(ToXla(ours, *xla_, space_))), here_).value();
  }
  promise.SetReady();
}

TEST_F(XlaTest, RawBuffersCrossBothWays) {
  std::vector<float> storage(kCount + 16);
  std::atomic<int> released = 0;
  const RawBuffer allocated = RawBuffer::Allocate(here_, kBytes).value();
  {
    auto theirs = Need(ToXla(allocated, *xla_, space_));
    EXPECT_EQ(theirs->GetHostPointer(), allocated.host_pointer());
    EXPECT_TRUE(theirs->is_mutable());
    EXPECT_EQ(theirs->CopyRawHostToDevice(Numbers().data(), 0, kBytes).Await(), absl::OkStatus());
    const RawBuffer back = FromXla(std::move(theirs), here_).value();
    EXPECT_EQ(back.host_pointer(), allocated.host_pointer());
    EXPECT_TRUE(back.is_mutable());
    std::vector<float> numbers(kCount);
    EXPECT_EQ(back.CopyToHost(numbers.data(), 0, kBytes).Wait(), OkStatus());
    EXPECT_EQ(numbers, Numbers());
  }
  {
    const auto first = static_cast<std::size_t>((64 - reinterpret_cast<std::uintptr_t>(storage.data()) % 64) % 64 / 4);
    const RawBuffer imported =
        RawBuffer::Import(here_, storage.data() + first, kBytes, Mutability::kImmutable, [&released] {
          ++released;
        }).value();
    const auto theirs = Need(ToXla(imported, *xla_, space_));
    EXPECT_FALSE(theirs->is_mutable());
    EXPECT_FALSE(FromXla(theirs, here_)->is_mutable());
    EXPECT_EQ(released.load(), 0);
  }
  EXPECT_TRUE(Eventually([&] { return released.load() == 1; }));
}

TEST_F(XlaTest, ARawBufferWhoseMemoryComesLaterIsAChannel) {
  auto* const common = dynamic_cast<xla::CommonPjRtClient*>(xla_);
  ASSERT_NE(common, nullptr);
  for (const bool fails : {false, true}) {
    auto channel = Need(common->CreateRawBufferChannel(space_, kBytes));
    const RawBuffer ours = FromXla(channel.first, here_).value();
    EXPECT_FALSE(ours.allocation_event().IsReady());
    std::vector<float> numbers(kCount);
    const Event copied = ours.CopyToHost(numbers.data(), 0, kBytes);
    if (fails) {
      EXPECT_EQ(std::move(channel.second)(TheirError()), TheirError());
      EXPECT_EQ(copied.Wait(), FromAbsl(TheirError()));
    } else {
      auto memory = Need(common->AllocateRawBuffer(space_, kBytes, false, {}));
      EXPECT_EQ(memory->CopyRawHostToDevice(Numbers().data(), 0, kBytes).Await(), absl::OkStatus());
      EXPECT_TRUE(std::move(channel.second)(memory).ok());
      EXPECT_EQ(copied.Wait(), OkStatus());
      EXPECT_EQ(numbers, Numbers());
    }
  }
}

// Events, types, threads ---------------------------------------------------------------------------------------------

TEST_F(XlaTest, EventsCrossBothWays) {
  for (const bool fails : {false, true}) {
    EventPromise promise("p");
    const auto theirs = Need(ToXla(promise.event(), *xla_, space_));
    const Event again = FromXla(theirs);
    EXPECT_EQ(theirs->state(), xla::PjRtDeviceEvent::State::kPending);
    EXPECT_FALSE(again.IsReady());
    promise.Set(fails ? FromAbsl(TheirError()) : OkStatus());
    EXPECT_EQ(theirs->state(), fails ? xla::PjRtDeviceEvent::State::kError : xla::PjRtDeviceEvent::State::kReady);
    EXPECT_EQ(theirs->GetReadyFuture().Await(), fails ? TheirError() : absl::OkStatus());
    EXPECT_EQ(again.Wait(), fails ? FromAbsl(TheirError()) : OkStatus());
  }
  tsl::RCReference<xla::PjRtDeviceEvent> dropped;
  {
    const EventPromise promise("the loss");
    dropped = Need(ToXla(promise.event(), *xla_, space_));
  }
  EXPECT_EQ(dropped->status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(FromXla(tsl::RCReference<xla::PjRtDeviceEvent>()).error().code(), StatusCode::kInvalidArgument);
}

TEST_F(XlaTest, ArraysOfEveryTypeCross) {
  for (int number = 1; number < 30; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (dtype == DType::kToken) continue;
    const Buffer ours = Buffer::CreateUninitialized(Shape(dtype, {3, 5}), here_).value();
    auto theirs = ToXla(ours, *xla_, space_);
    ASSERT_TRUE(theirs.ok()) << DTypeName(dtype) << ": " << theirs.status();
    EXPECT_EQ(Need((*theirs)->GetOnDeviceSizeInBytes()), ours.on_device_size_bytes()) << DTypeName(dtype);
    EXPECT_EQ(FromXla(*std::move(theirs), here_)->shape(), ours.shape());
  }
}

TEST_F(XlaTest, ManyThreadsCrossTheSameBuffer) {
  const Buffer ours = Ours();
  Together(4, [&](int) {
    for (int round = 0; round < 50; ++round) {
      const Buffer back = FromXla(Execute(*executable_, *Need(ToXla(ours, *xla_, space_))), here_).value();
      EXPECT_EQ(Read(back), TimesTwoPlusOne(Numbers()));
    }
  });
  EXPECT_TRUE(Eventually([&] { return ours.hold_counts().external == 0; }));
}

}  // namespace
}  // namespace purlin
