// purlin::adapters::ToXlaAllocator: XLA's own memory in Purlin's accounting, and what XLA does when there is no room.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "purlin/adapters/absl.h"
#include "purlin/adapters/xla_raw_buffer.h"
#include "purlin/client.h"
#include "purlin/memory_report.h"
#include "tests/cpp/testing.h"
#include "tests/interop/xla_testing.h"
#include "xla/hlo/builder/lib/comparators.h"

namespace purlin {
namespace {

using adapters::FromAbsl;
using adapters::FromXla;
using adapters::ToXla;

constexpr std::size_t kLimit = std::size_t{4} << 20;
constexpr std::size_t kTooMany = 2 * kLimit / sizeof(float);

// As XLA and Purlin say that there is no room: with a report of the holders.
bool IsFull(const Status& status) {
  return status.code() == StatusCode::kResourceExhausted && status.GetPayload(kMemoryReportTypeUrl).has_value();
}
bool IsFull(const absl::Status& status) { return IsFull(FromAbsl(status)); }

// XLA's memory is in a space of Purlin's that is small; the arguments are in another, which has no limit.
class XlaMemoryTest : public testing::Test {
 protected:
  // XLA keeps the threads that it starts with the first work.
  static void SetUpTestSuite() {
    XlaMemoryTest warm;
    EXPECT_EQ(Read(*Execute(Compile(*warm.xla_), *warm.Argument(kCount))), TimesTwoPlusOne(Numbers()));
  }
  static ClientOptions Small() {
    ClientOptions options;
    options.memory_limit_bytes = kLimit;
    options.on_out_of_memory = [](const MemoryReport&) { return hook_ != nullptr && (*hook_)(); };
    return options;
  }
  ~XlaMemoryTest() override {
    xla_.reset();
    EXPECT_EQ(space_.Stats().bytes_in_use, 0U) << space_.Report().DebugString();
    hook_ = nullptr;
  }

  Buffer Ours(std::size_t count) const {
    const std::vector<float> numbers = Numbers(count);
    return Buffer::FromHost(numbers.data(), count * sizeof(float), DType::kF32, {static_cast<std::int64_t>(count)},
                            here_)
        .value();
  }
  std::unique_ptr<xla::PjRtBuffer> Argument(std::size_t count) const {
    return Need(ToXla(Ours(count), *xla_, theirs_));
  }
  absl::StatusOr<std::vector<std::unique_ptr<xla::PjRtBuffer>>> ExecuteIn(xla::ExecuteOptions::ExecutionMode mode,
                                                                          const Executable& executable,
                                                                          xla::PjRtBuffer& argument) const {
    xla::ExecuteOptions options;
    options.execution_mode = mode;
    xla::PjRtBuffer* const arguments[] = {&argument};
    return executable->ExecuteSharded(arguments, executable->addressable_devices().front(), options);
  }
  void TestBody() override {}
  std::uint64_t InUse() const { return space_.Stats().bytes_in_use; }

  static inline std::function<bool()>* hook_ = nullptr;
  const Client books_ = Client::Create(Small()).value();
  const MemorySpace space_ = books_.devices().front().default_memory_space();
  const Client client_ = Client::Create().value();
  const MemorySpace here_ = client_.devices().front().default_memory_space();
  std::unique_ptr<xla::PjRtClient> xla_ = MakeXlaClient(space_);
  xla::PjRtMemorySpace* const theirs_ = Need(xla_->addressable_devices().front()->default_memory_space());
};

TEST_F(XlaMemoryTest, XlasOwnMemoryIsInPurlinsBooks) {
  const Executable executable = Compile(*xla_);
  const std::uint64_t before = InUse();
  {
    const auto argument = Argument(kCount);
    const auto result = Execute(executable, *argument);
    EXPECT_EQ(Read(*result), TimesTwoPlusOne(Numbers()));
    EXPECT_GE(InUse(), before + kBytes);
    EXPECT_NE(space_.Report().DebugString().find("XLA"), std::string::npos) << space_.Report().DebugString();
  }
  EXPECT_TRUE(Eventually([&] { return InUse() == before; }));
}

TEST_F(XlaMemoryTest, AnArrayThatHasNoRoomIsAnErrorWithAReport) {
  const auto shape = xla::ShapeUtil::MakeShape(xla::F32, {static_cast<std::int64_t>(kTooMany)});
  const absl::Status full = xla_->CreateUninitializedBuffer(shape, theirs_).status();
  EXPECT_TRUE(IsFull(full)) << full;
  const std::vector<float> numbers(kTooMany);
  const absl::Status uncopied =
      xla_->BufferFromHostBuffer(numbers.data(), xla::F32, shape.dimensions(), std::nullopt,
                                 xla::PjRtClient::HostBufferSemantics::kImmutableOnlyDuringCall, nullptr, theirs_,
                                 nullptr)
          .status();
  EXPECT_TRUE(IsFull(uncopied)) << uncopied;
}

TEST_F(XlaMemoryTest, AComputationWhoseResultHasNoRoomFailsWithTheReportAndSoDoesItsArray) {
  const Executable executable = Compile(*xla_, kTooMany);
  const auto argument = Argument(kTooMany);
  std::shared_ptr<xla::PjRtBuffer> result = Execute(executable, *argument);
  const Buffer ours = FromXla(result, here_).value();
  EXPECT_TRUE(IsFull(ours.ready_event().Wait())) << ours.ready_event().error();
  EXPECT_TRUE(IsFull(result->GetReadyFuture().Await())) << result->GetReadyFuture().Await();
  EXPECT_TRUE(IsFull(FromXla(result, here_)->ready_event().Wait()));
  // A computation with it fails, and the client stays usable.
  const Buffer after = FromXla(Execute(executable, *result), here_).value();
  EXPECT_EQ(after.ready_event().Wait().code(), StatusCode::kInternal) << after.ready_event().error();
  const auto in_place = Compile(*xla_, kTooMany, /*in_place=*/true);
  const Buffer written = FromXla(Execute(in_place, *result), here_).value();
  EXPECT_EQ(written.ready_event().Wait().code(), StatusCode::kInternal) << written.ready_event().error();
  EXPECT_EQ(Read(*Execute(Compile(*xla_), *Argument(kCount))), TimesTwoPlusOne(Numbers()));
}

TEST_F(XlaMemoryTest, AComputationOnTheCallersThreadWhoseResultHasNoRoomIsRefused) {
  const Executable executable = Compile(*xla_, kTooMany);
  const Buffer ours = Ours(kTooMany);
  {
    const auto argument = Need(ToXla(ours, *xla_, theirs_));
    const absl::Status full =
        ExecuteIn(xla::ExecuteOptions::ExecutionMode::kSynchronous, executable, *argument).status();
    EXPECT_TRUE(IsFull(full)) << full;
  }
  EXPECT_TRUE(Eventually([&] { return ours.hold_counts().external == 0; }));
  EXPECT_EQ(Read(*Execute(Compile(*xla_), *Argument(kCount))), TimesTwoPlusOne(Numbers()));
}

TEST_F(XlaMemoryTest, AComputationWhoseTemporaryMemoryHasNoRoomFails) {
  xla::XlaBuilder builder("least");
  const xla::Shape shape = xla::ShapeUtil::MakeShape(xla::F32, {static_cast<std::int64_t>(kTooMany)});
  const xla::XlaOp x = xla::Parameter(&builder, 0, shape, "x");
  const xla::XlaOp sorted = xla::Sort({x}, xla::CreateScalarLtComputation({xla::F32}, &builder));
  const xla::XlaOp least = xla::Slice(sorted, {0}, {1}, {1});
  const Executable executable = Need(xla_->CompileAndLoad(Need(builder.Build(least)), xla::CompileOptions()));
  const auto argument = Argument(kTooMany);
  const auto mode = xla::ExecuteOptions::ExecutionMode::kAsynchronous;
  const Buffer none = FromXla(std::move(Need(ExecuteIn(mode, executable, *argument)).front()), here_).value();
  EXPECT_TRUE(IsFull(none.ready_event().Wait())) << none.ready_event().error();
}

TEST_F(XlaMemoryTest, ThePurlinClientsHookMakesRoomForAComputation) {
  const std::size_t most = 3 * kLimit / 4 / sizeof(float);
  std::unique_ptr<xla::PjRtBuffer> cached = Need(
      xla_->CreateUninitializedBuffer(xla::ShapeUtil::MakeShape(xla::F32, {static_cast<std::int64_t>(most)}), theirs_));
  std::function<bool()> drop = [&cached] { return std::exchange(cached, nullptr) != nullptr; };
  const Executable executable = Compile(*xla_, most);
  const auto argument = Argument(most);
  hook_ = &drop;
  EXPECT_EQ(Read(*Execute(executable, *argument)), TimesTwoPlusOne(Numbers(most)));
  EXPECT_EQ(cached, nullptr);
}

TEST_F(XlaMemoryTest, ManyComputationsThatShareTooLittleRoomAllEnd) {
  const std::size_t third = kLimit / 3 / sizeof(float);
  const Executable executable = Compile(*xla_, third);
  const Buffer ours = Ours(third);
  const std::vector<float> right = TimesTwoPlusOne(Numbers(third));
  std::atomic<int> computed = 0;
  Together(4, [&](int) {
    for (int round = 0; round < 10; ++round) {
      const Buffer first = FromXla(Execute(executable, *Need(ToXla(ours, *xla_, theirs_))), here_).value();
      const Buffer second = FromXla(Execute(executable, *Need(ToXla(ours, *xla_, theirs_))), here_).value();
      for (const Buffer& result : {first, second}) {
        const Status status = result.ready_event().Wait();
        EXPECT_TRUE(status.ok() || IsFull(status)) << status;
        if (!status.ok()) continue;
        EXPECT_EQ(Read(result), right);
        ++computed;
      }
    }
  });
  EXPECT_GT(computed.load(), 0);
  EXPECT_TRUE(Eventually([&] { return InUse() == 0 && ours.hold_counts().external == 0; }));
}

}  // namespace
}  // namespace purlin
