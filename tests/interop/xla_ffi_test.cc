// purlin/adapters/xla_ffi.h, what needs no XLA to run: conversions, futures, the memory of a call. The rest is in
// python/xla_ffi_test.py, where stock JAX calls the handlers of xla_ffi.cc.
#include "purlin/adapters/xla_ffi.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/client.h"
#include "purlin/stall.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

namespace ffi = xla::ffi;
using adapters::FfiCall;
using adapters::FromFfi;
using adapters::ToFfi;

/// An operand or a result, as XLA hands it over.
template <ffi::DataType kType, std::size_t kCount, std::size_t kSizeBytes>
struct Operand {
  alignas(64) std::array<char, kSizeBytes> bytes = {};
  std::array<std::int64_t, 1> dims = {static_cast<std::int64_t>(kCount)};
  XLA_FFI_Buffer c = {
      XLA_FFI_Buffer_STRUCT_SIZE, nullptr, static_cast<XLA_FFI_DataType>(kType), bytes.data(), 1, dims.data()};
  ffi::AnyBuffer any() const { return ffi::AnyBuffer(&c); }
  ffi::Buffer<kType> typed() const { return ffi::Buffer<kType>(&c); }
};
using Floats = Operand<ffi::F32, 4, 16>;

class XlaFfiTest : public testing::Test {
 protected:
  Client client = Client::Create().value();
  MemorySpace space = client.devices()[0].default_memory_space();
};

TEST(XlaFfiErrorTest, CodesAndTextsCrossBothWays) {
  for (int code = 1; code <= 16; ++code) {
    const Status ours(static_cast<StatusCode>(code), "text " + std::to_string(code));
    const ffi::Error theirs = ToFfi(ours);
    EXPECT_TRUE(theirs.failure());
    EXPECT_EQ(static_cast<int>(*theirs.errc()), code);
    EXPECT_EQ(theirs.message(), ours.message());
    EXPECT_EQ(FromFfi(theirs), ours);
  }
  EXPECT_TRUE(ToFfi(OkStatus()).success());
  EXPECT_TRUE(FromFfi(ffi::Error::Success()).ok());
}

TEST(XlaFfiErrorTest, AUserContextBecomesText) {
  const UserContext context = UserContext::Create("train.py:42");
  const ffi::Error error = ToFfi(AnnotateWithUserContext(DataLossError("bits fell over"), context));
  EXPECT_EQ(error.message().rfind("bits fell over\n", 0), 0u) << error.message();
  EXPECT_NE(error.message().find("train.py:42"), std::string::npos) << error.message();
}

TEST(XlaFfiErrorTest, ValuesOrErrorsCrossBothWays) {
  const NoLeak no_leak;
  ffi::ErrorOr<std::unique_ptr<Counted>> theirs =
      ToFfi(StatusOr<std::unique_ptr<Counted>>(std::make_unique<Counted>(7)));
  ASSERT_TRUE(theirs.has_value());
  EXPECT_EQ((*FromFfi(std::move(theirs)))->value, 7);
  const ffi::ErrorOr<int> error = ToFfi(StatusOr<int>(NotFoundError("none")));
  ASSERT_TRUE(error.has_error());
  EXPECT_EQ(FromFfi(error).status(), NotFoundError("none"));
}

TEST(XlaFfiTypesTest, EveryElementTypeIsTheOneOfThatName) {
  // By XLA's own names, and by the width that both sides know.
  for (int number = 0; number < 256; ++number) {
    const auto theirs = static_cast<ffi::DataType>(number);
    const DType ours = FromFfi(theirs);
    if (ours == DType::kInvalid) continue;
    std::ostringstream name;
    name << static_cast<XLA_FFI_DataType>(number);
    std::string lower = name.str();
    for (char& letter : lower) letter = static_cast<char>(std::tolower(letter));
    EXPECT_EQ(DTypeName(ours), lower);
    EXPECT_EQ(HostByteWidth(ours), ffi::ByteWidth(theirs)) << lower;
  }
  for (const ffi::DataType none : {ffi::DataType::INVALID, ffi::S1, ffi::U1, static_cast<ffi::DataType>(200)}) {
    EXPECT_EQ(FromFfi(none), DType::kInvalid);
  }
  int known = 0;
  for (int number = 0; number < 256; ++number) known += FromFfi(static_cast<ffi::DataType>(number)) != DType::kInvalid;
  EXPECT_EQ(known, 29) << "all of Purlin's but kInvalid";
}

TEST(XlaFfiFutureTest, AnEventCompletesAFutureOfTheirs) {
  for (const bool fails : {false, true}) {
    EventPromise promise("p");
    ffi::Future future = ToFfi(promise.event());
    std::optional<std::string> heard;
    future.OnReady([&](const std::optional<ffi::Error>& error) { heard = error ? error->message() : "ready"; });
    EXPECT_FALSE(heard.has_value());
    promise.Set(fails ? DataLossError("lost") : OkStatus());
    EXPECT_EQ(heard, fails ? "lost" : "ready");
  }
}

TEST(XlaFfiFutureTest, WhatHasHappenedCrossesAtOnce) {
  int calls = 0;
  ToFfi(Event()).OnReady([&](const std::optional<ffi::Error>& error) { calls += error ? 100 : 1; });
  ToFfi(Event::Error(NotFoundError("none"))).OnReady([&](const std::optional<ffi::Error>& error) {
    calls += error && *error->errc() == ffi::ErrorCode::kNotFound ? 1 : 100;
  });
  EXPECT_EQ(calls, 2);
}

TEST(XlaFfiFutureTest, APromiseThatIsDroppedUnsetFailsTheirFuture) {
  std::optional<ffi::Error> heard;
  {
    const EventPromise promise("weights scaled");
    ToFfi(promise.event()).OnReady([&](const std::optional<ffi::Error>& error) { heard = error; });
  }
  ASSERT_TRUE(heard.has_value());
  EXPECT_EQ(*heard->errc(), ffi::ErrorCode::kInternal);
  EXPECT_NE(heard->message().find("weights scaled"), std::string::npos);
}

TEST(XlaFfiFutureTest, AFutureOfTheirsCompletesAnEvent) {
  for (const bool fails : {false, true}) {
    ffi::Promise promise;
    const Event event = FromFfi(ffi::Future(promise));
    EXPECT_FALSE(event.IsReady());
    fails ? promise.SetError(ffi::Error(ffi::ErrorCode::kDataLoss, "lost")) : promise.SetAvailable();
    EXPECT_EQ(event.Wait(), fails ? DataLossError("lost") : OkStatus());
  }
}

TEST(XlaFfiFutureTest, SettersAndCrossingsRace) {
  for (int round = 0; round < 2000; ++round) {
    EventPromise promise("p");
    const Event event = promise.event();
    Event there_and_back;
    Together(2, [&](int index) {
      if (index == 0) {
        promise.SetError(DataLossError("lost"));
      } else {
        there_and_back = FromFfi(ToFfi(event));
      }
    });
    ASSERT_EQ(there_and_back.Wait(), DataLossError("lost"));
  }
}

TEST_F(XlaFfiTest, OperandsAndResultsAreWhereTheyWere) {
  const Floats x;
  const Floats y;
  FfiCall call(space);
  const StatusOr<Buffer> from = call.Argument(x.typed());
  ASSERT_TRUE(from.ok()) << from.status();
  EXPECT_EQ(from->shape(), Shape(DType::kF32, {4}));
  EXPECT_TRUE(from->ready_event().IsReady());
  const RawBuffer from_memory = from->RawAlias().value();
  EXPECT_EQ(from_memory.host_pointer(), x.bytes.data());
  EXPECT_FALSE(from_memory.is_mutable());
  const StatusOr<RawBuffer> to = call.Result(ffi::Result<ffi::AnyBuffer>(y.any()));
  ASSERT_TRUE(to.ok()) << to.status();
  EXPECT_EQ(to->host_pointer(), y.bytes.data());
  EXPECT_EQ(to->on_device_size_bytes(), 16u);
  EXPECT_TRUE(to->is_mutable());
}

TEST_F(XlaFfiTest, WhatIsNarrowerThanAByteIsPacked) {
  const Operand<ffi::S4, 3, 2> x;
  FfiCall call(space);
  EXPECT_EQ(call.Argument(x.any())->on_device_size_bytes(), 2u);
}

TEST_F(XlaFfiTest, WhatIsEmptyNeedsNoAddress) {
  Operand<ffi::F32, 0, 1> x;
  x.c.data = nullptr;
  FfiCall call(space);
  EXPECT_EQ(call.Argument(x.typed())->on_device_size_bytes(), 0u);
  EXPECT_TRUE(call.Result(ffi::Result<ffi::AnyBuffer>(x.any())).ok());
  EXPECT_TRUE(std::move(call).Finish(Event()).IsReady());
}

TEST_F(XlaFfiTest, WhatCannotBeWrappedIsAnErrorThatSaysWhy) {
  Floats x;
  FfiCall call(space);
  x.c.data = x.bytes.data() + 4;
  EXPECT_EQ(call.Argument(x.any()).status().code(), StatusCode::kInvalidArgument) << "not aligned";
  x.c.data = nullptr;
  EXPECT_EQ(call.Argument(x.any()).status().code(), StatusCode::kInvalidArgument);
  x.c.data = x.bytes.data();
  x.dims[0] = -1;
  EXPECT_EQ(call.Argument(x.any()).status().code(), StatusCode::kInvalidArgument);
  const Operand<ffi::U1, 8, 8> bits;
  const Status error = call.Argument(bits.any()).status();
  EXPECT_EQ(error.code(), StatusCode::kUnimplemented);
  EXPECT_NE(error.message().find(std::to_string(static_cast<int>(ffi::U1))), std::string_view::npos) << error;
  EXPECT_TRUE(std::move(call).Finish(Event()).IsReady()) << "nothing was left behind";
}

TEST_F(XlaFfiTest, ACallIsOverWhenTheBodyIsAndItsMemoryIsLetGo) {
  const Floats x;
  for (const bool fails : {false, true}) {
    EventPromise done("body");
    std::optional<Buffer> kept;
    Event over;
    {
      FfiCall call(space);
      kept = call.Argument(x.typed()).value();
      over = std::move(call).Finish(done.event());
    }
    EXPECT_FALSE(over.IsReady());
    done.Set(fails ? DataLossError("lost") : OkStatus());
    EXPECT_FALSE(over.IsReady()) << "a reference is left";
    EXPECT_NE(DumpStalls().find("memory of an XLA FFI call"), std::string::npos);
    kept.reset();
    EXPECT_EQ(over.Wait(), fails ? DataLossError("lost") : OkStatus());
  }
}

TEST_F(XlaFfiTest, MemoryThatIsLetGoFirstWaitsForTheBody) {
  const Floats x;
  EventPromise done("body");
  FfiCall call(space);
  call.Argument(x.typed()).status().IgnoreError();
  const Event over = std::move(call).Finish(done.event());
  EXPECT_FALSE(over.IsReady());
  done.SetReady();
  EXPECT_TRUE(over.Wait().ok());
}

TEST_F(XlaFfiTest, AHandlerThatReturnsWaitsForItsTasks) {
  const Floats x;
  for (int round = 0; round < 200; ++round) {
    Floats y;
    {
      FfiCall call(space);
      const Buffer from = call.Argument(x.typed()).value();
      RawBuffer to = call.Result(ffi::Result<ffi::AnyBuffer>(y.any())).value();
      EXPECT_TRUE(client.runner()
                      .Schedule([from, to = std::move(to)] {
                        std::memset(to.host_pointer(), from.dims()[0] == 4 ? 'y' : 'n', to.on_device_size_bytes());
                      })
                      .ok());
    }
    ASSERT_EQ(std::string_view(y.bytes.data(), y.bytes.size()), "yyyyyyyyyyyyyyyy");
  }
}

TEST_F(XlaFfiTest, ABodyWithoutMemoryIsItsOwnEvent) {
  EventPromise done("body");
  const Event over = FfiCall(space).Finish(done.event());
  done.SetError(DataLossError("lost"));
  EXPECT_EQ(over.error(), DataLossError("lost"));
}

}  // namespace
}  // namespace purlin
