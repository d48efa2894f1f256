#include "purlin/host_buffer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "buffer_fixture.h"
#include "purlin/promise.h"

namespace purlin {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr HostBufferSemantics kAll[] = {HostBufferSemantics::kImmutableOnlyDuringCall,
                                        HostBufferSemantics::kImmutableUntilTransferCompletes,
                                        HostBufferSemantics::kImmutableZeroCopy, HostBufferSemantics::kMutableZeroCopy};

FromHostOptions With(HostBufferSemantics semantics) {
  FromHostOptions options;
  options.semantics = semantics;
  return options;
}

/// 256 bytes where any backend can use them.
struct alignas(64) Page {
  std::array<std::uint8_t, 256> bytes;
  Page() { std::iota(bytes.begin(), bytes.end(), std::uint8_t{0}); }
};

class HostBufferTest : public BufferFixture {
 protected:
  StatusOr<FromHostResult> From(const void* data, const Dims& dims, const FromHostOptions& options,
                                const DoneLog& told) const {
    return Buffer::FromHost(data, DType::kU8, dims, space_, options, told.OnDone());
  }

  Bytes Strided(const std::uint8_t* data, const Dims& dims, const Dims& strides,
                HostBufferSemantics semantics = HostBufferSemantics::kImmutableOnlyDuringCall) const {
    FromHostOptions options = With(semantics);
    options.byte_strides = strides;
    StatusOr<FromHostResult> made = Buffer::FromHost(data, DType::kU8, dims, space_, options);
    EXPECT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->aliasing, Aliasing::kCopied);
    return Read(made->buffer);
  }
};

TEST_F(HostBufferTest, OnDoneMayTakeNothing) {
  const std::uint8_t byte = 7;
  int calls = 0;
  auto made = Buffer::FromHost(&byte, DType::kU8, {1}, space_, With(HostBufferSemantics::kImmutableOnlyDuringCall),
                               [&calls] { ++calls; });
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(calls, 1);
  auto refused = Buffer::FromHost(nullptr, DType::kU8, {1}, space_, With(HostBufferSemantics::kImmutableOnlyDuringCall),
                                  [&calls] { ++calls; });
  EXPECT_FALSE(refused.ok());
  EXPECT_EQ(calls, 2);
}

TEST_F(HostBufferTest, EverySemanticsBringsTheBytesAndTellsOnce) {
  for (const HostBufferSemantics semantics : kAll) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{300'000}}) {
      Bytes bytes(size);
      std::iota(bytes.begin(), bytes.end(), std::uint8_t{7});
      const DoneLog told;
      {
        const StatusOr<FromHostResult> made =
            From(bytes.data(), {static_cast<std::int64_t>(size)}, With(semantics), told);
        ASSERT_TRUE(made.ok()) << made.status();
        EXPECT_EQ(Read(made->buffer), bytes);
        if (made->aliasing == Aliasing::kCopied) {
          EXPECT_EQ(told.count(), 1U) << "before it was ready";
        } else {
          EXPECT_EQ(told.count(), 0U) << "while it is used";
          EXPECT_GE(static_cast<int>(semantics), 2);
        }
      }
      told.Wait();
      EXPECT_EQ(told.all(), std::vector<Status>{Status()});
    }
  }
}

TEST_F(HostBufferTest, TheHostMayForgetWhatWasCopiedDuringTheCall) {
  Bytes bytes(300'000, 5);
  const DoneLog told;
  const FromHostResult made = From(bytes.data(), {300'000}, FromHostOptions(), told).value();
  EXPECT_EQ(told.count(), 1U);
  bytes.assign(bytes.size(), 9);
  EXPECT_EQ(Read(made.buffer), Bytes(bytes.size(), 5));
}

TEST_F(HostBufferTest, AliasedMemoryIsTheHostsUntilTheLastUse) {
  const Page page;
  for (const HostBufferSemantics semantics :
       {HostBufferSemantics::kImmutableZeroCopy, HostBufferSemantics::kMutableZeroCopy}) {
    const DoneLog told;
    std::optional<FromHostResult> made = From(page.bytes.data(), {256}, With(semantics), told).value();
    EXPECT_EQ(made->aliasing, Aliasing::kAliased);
    EXPECT_EQ(Address(made->buffer), page.bytes.data());
    EXPECT_EQ(InUse(), 0U);
    std::optional<RawBuffer> raw = made->buffer.RawAlias().value();
    EXPECT_EQ(raw->is_mutable(), semantics == HostBufferSemantics::kMutableZeroCopy);
    made.reset();
    EXPECT_EQ(told.count(), 0U) << "somebody has the memory";
    raw.reset();
    EXPECT_EQ(told.all(), std::vector<Status>{Status()});
    EXPECT_TRUE(told.IsOver());
  }
}

TEST_F(HostBufferTest, WhatCannotBeAliasedIsCopied) {
  const Page page;
  const Layout column_major({0, 1});
  const Dims wide = {8, 1};
  FromHostOptions strided = With(HostBufferSemantics::kImmutableZeroCopy);
  strided.byte_strides = wide;
  FromHostOptions turned = With(HostBufferSemantics::kMutableZeroCopy);
  turned.device_layout = &column_major;
  const FromHostOptions plain = With(HostBufferSemantics::kImmutableZeroCopy);
  const struct {
    const std::uint8_t* data;
    DType dtype;
    const FromHostOptions& options;
  } cases[] = {{page.bytes.data() + 1, DType::kU8, plain},
               {page.bytes.data(), DType::kU4, plain},
               {page.bytes.data(), DType::kU8, strided},
               {page.bytes.data(), DType::kU8, turned}};
  for (const auto& [data, dtype, options] : cases) {
    const DoneLog told;
    const FromHostResult made = Buffer::FromHost(data, dtype, {4, 4}, space_, options, told.OnDone()).value();
    EXPECT_EQ(made.aliasing, Aliasing::kCopied);
    EXPECT_TRUE(made.buffer.ready_event().Wait().ok());
    EXPECT_EQ(told.count(), 1U) << "before the buffer was ready";
  }
}

TEST_F(HostBufferTest, StridesAreAny) {
  const Bytes bytes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  EXPECT_EQ(Strided(&bytes[0], {2, 3}, {3, 1}), (Bytes{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(Strided(&bytes[0], {3, 2}, {1, 3}), (Bytes{0, 3, 1, 4, 2, 5})) << "transposed";
  EXPECT_EQ(Strided(&bytes[0], {2, 3}, {6, 2}), (Bytes{0, 2, 4, 6, 8, 10})) << "with gaps";
  EXPECT_EQ(Strided(&bytes[5], {2, 3}, {-3, -1}), (Bytes{5, 4, 3, 2, 1, 0})) << "backwards";
  EXPECT_EQ(Strided(&bytes[7], {2, 3}, {0, 1}), (Bytes{7, 8, 9, 7, 8, 9})) << "broadcast";
  EXPECT_EQ(Strided(&bytes[7], {2, 2}, {0, 0}), (Bytes{7, 7, 7, 7}));
  EXPECT_EQ(Strided(&bytes[2], {1, 2}, {kMax, 1}), (Bytes{2, 3})) << "a stride that leads nowhere";
  for (const HostBufferSemantics semantics : kAll) {
    EXPECT_EQ(Strided(&bytes[3], {4}, {-1}, semantics), (Bytes{3, 2, 1, 0}));
  }
}

TEST_F(HostBufferTest, NarrowElementsArePackedOnTheDevice) {
  const Bytes nibbles = {0x1, 0xF2, 0x3, 0x4, 0xA};  // Of each byte, the low half counts.
  const Buffer buffer = Buffer::FromHost(nibbles.data(), DType::kU4, {5}, space_).value().buffer;
  EXPECT_EQ(buffer.on_device_size_bytes(), 3U);
  EXPECT_EQ(ReadRaw(buffer), (Bytes{0x21, 0x43, 0x0A})) << "the first in the low bits";
  EXPECT_EQ(Read(buffer), (Bytes{0x1, 0x2, 0x3, 0x4, 0xA}));
  const std::vector<std::int8_t> numbers = {-8, 7, -1};
  const Buffer is_signed = Buffer::FromHost(numbers.data(), DType::kS4, {3}, space_).value().buffer;
  EXPECT_EQ(ReadRaw(is_signed), (Bytes{0x78, 0x0F}));
  EXPECT_EQ(Read(is_signed), (Bytes{0xF8, 0x07, 0xFF})) << "signs are extended";
  const Buffer simple = Buffer::FromHost(nibbles.data(), nibbles.size(), DType::kU4, {5}, space_).value();
  EXPECT_EQ(ReadRaw(simple), ReadRaw(buffer)) << "bytes of the host are counted";
}

TEST_F(HostBufferTest, StridedCopiesGoBack) {
  const Buffer buffer = Six();
  Bytes wide(12, 0xEE);
  ASSERT_TRUE(buffer.CopyToHostStrided(wide.data(), {6, 2}).Wait().ok());
  EXPECT_EQ(wide, (Bytes{1, 0xEE, 2, 0xEE, 3, 0xEE, 4, 0xEE, 5, 0xEE, 6, 0xEE}));
  Bytes turned(6);
  ASSERT_TRUE(buffer.CopyToHostStrided(turned.data(), {1, 2}).Wait().ok());
  EXPECT_EQ(turned, (Bytes{1, 4, 2, 5, 3, 6}));
  Bytes backwards(6);
  ASSERT_TRUE(buffer.CopyToHostStrided(&backwards[5], {-3, -1}).Wait().ok());
  EXPECT_EQ(backwards, (Bytes{6, 5, 4, 3, 2, 1}));
}

TEST_F(HostBufferTest, StridesThatCannotBeWrittenAreInvalidAndNamed) {
  const Buffer buffer = Six();
  Bytes back(64);
  const std::pair<Dims, std::string_view> cases[] = {
      {{3, 0}, "written over each other"}, {{1, 1}, "written over each other"},    {{3}, "there are 1 byte strides"},
      {{}, "there are 0 byte strides"},    {{kMax, kMax}, "more than any memory"},
  };
  for (const auto& [strides, named] : cases) {
    const Status status = buffer.CopyToHostStrided(back.data(), strides).Wait();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), named)) << status;
  }
  EXPECT_TRUE(IsInvalidArgument(buffer.CopyToHostStrided(nullptr, {3, 1}).Wait()));
  EXPECT_EQ(buffer.hold_counts().usage, 0U);
}

TEST_F(HostBufferTest, RangesOfTheDeviceAreCopiedRaw) {
  const Buffer buffer = Six();
  Bytes back(2);
  ASSERT_TRUE(buffer.CopyRawToHost(back.data(), 3, 2).Wait().ok());
  EXPECT_EQ(back, (Bytes{4, 5}));
  EXPECT_TRUE(buffer.CopyRawToHost(nullptr, 6, 0).Wait().ok());
  for (const auto& [offset, size] : {std::pair<std::size_t, std::size_t>(5, 2), {7, 0}, {SIZE_MAX, 2}}) {
    const Status status = buffer.CopyRawToHost(back.data(), offset, size).Wait();
    EXPECT_TRUE(IsOutOfRange(status)) << status;
    EXPECT_TRUE(Contains(status.message(), std::to_string(offset))) << status;
  }
  EXPECT_TRUE(IsInvalidArgument(buffer.CopyRawToHost(nullptr, 0, 2).Wait()));
}

TEST_F(HostBufferTest, RawReadsWaitForTheirAddress) {
  const Buffer buffer = Six();
  auto [found, found_later] = MakePromise<void*>("found");
  auto [lost, lost_later] = MakePromise<void*>("lost");
  auto [forgotten, forgotten_later] = MakePromise<void*>("forgotten");
  const Event found_read = buffer.CopyRawToHostWhen(found_later, 2, 3);
  const Event lost_read = buffer.CopyRawToHostWhen(lost_later, 0, 6);
  const Event forgotten_read = buffer.CopyRawToHostWhen(forgotten_later, 0, 6);
  // Donation goes on, and the donee waits for the reads; so does the memory.
  DonationHold hold = buffer.TryDonate("step").value();
  const Event free_event = hold.free_event();
  EXPECT_TRUE(hold.Confirm().ok());
  for (const Event& event : {found_read, lost_read, forgotten_read, free_event}) EXPECT_FALSE(event.IsReady());
  EXPECT_EQ(InUse(), 6U);
  const Status late = buffer.CopyRawToHostWhen(found_later, 0, 1).Wait();
  EXPECT_TRUE(IsInvalidArgument(late)) << late;
  EXPECT_TRUE(Contains(late.message(), "deleted or donated")) << late;
  lost.Set(AbortedError("no room"));
  EXPECT_EQ(lost_read.Wait(), AbortedError("no room"));
  {
    const Promise<void*> gone = std::move(forgotten);
  }
  const Status unset = forgotten_read.Wait();
  EXPECT_TRUE(IsInternal(unset)) << unset;
  EXPECT_TRUE(Contains(unset.message(), "forgotten")) << unset;
  EXPECT_FALSE(free_event.IsReady()) << "one is not over";
  Bytes back(3);
  found.Set(back.data());
  EXPECT_TRUE(found_read.Wait().ok());
  EXPECT_EQ(back, (Bytes{3, 4, 5}));
  EXPECT_TRUE(free_event.Wait().ok());
  EXPECT_EQ(InUse(), 0U);
}

TEST_F(HostBufferTest, RawReadsOfNoRangeFailBeforeTheirAddressComes) {
  const Buffer buffer = Six();
  auto [promise, later] = MakePromise<void*>("later");
  for (const auto& [offset, size] : {std::pair<std::size_t, std::size_t>(5, 2), {7, 0}, {SIZE_MAX, 2}}) {
    const Event read = buffer.CopyRawToHostWhen(later, offset, size);
    EXPECT_TRUE(read.IsReady()) << "a range is checked at once";
    EXPECT_TRUE(IsOutOfRange(read.Wait())) << read.Wait();
    EXPECT_TRUE(Contains(read.Wait().message(), std::to_string(offset))) << read.Wait();
  }
  Bytes back(6);
  EXPECT_TRUE(buffer.CopyRawToHostWhen(Future<void*>(back.data()), 0, 6).Wait().ok()) << "it is here already";
  EXPECT_EQ(back, Read(buffer));
  EXPECT_TRUE(buffer.CopyRawToHostWhen(Future<void*>(nullptr), 6, 0).Wait().ok());
  EXPECT_TRUE(IsInvalidArgument(buffer.CopyRawToHostWhen(Future<void*>(nullptr), 0, 2).Wait())) << "it is null";
  EXPECT_TRUE(IsFailedPrecondition(buffer.CopyRawToHostWhen(Future<void*>(), 0, 6).Wait())) << "nobody promises it";
}

TEST_F(HostBufferTest, RawReadsGoOnWhenTheirArrayIsDeleted) {
  auto [promise, later] = MakePromise<void*>("later");
  std::optional<Buffer> buffer = Six();
  const Event read = buffer->CopyRawToHostWhen(later, 0, 6);
  buffer->Delete();
  buffer.reset();
  EXPECT_EQ(InUse(), 6U) << "the read keeps the memory";
  Bytes back(6);
  promise.Set(back.data());
  EXPECT_TRUE(read.Wait().ok());
  EXPECT_EQ(back, (Bytes{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(InUse(), 0U);
}

TEST_F(HostBufferTest, EveryFailureIsToldOnceBeforeTheCallReturns) {
  const Page page;
  const Dims one = {1};
  const Dims apart = {kMax, kMax};
  const Layout short_layout({0});
  const Layout twice({0, 0});
  struct Case {
    const char* what;
    DType dtype = DType::kU8;
    Dims dims = {2, 2};
    FromHostOptions options = {};
    bool is_null = false;
  };
  std::vector<Case> cases(11);
  cases[0] = {"dtype", static_cast<DType>(77)};
  cases[1] = {"negative", DType::kU8, {2, -2}};
  cases[2] = {"overflow", DType::kU8, {kMax, kMax}};
  cases[3] = {"null", DType::kU8, {2, 2}, {}, true};
  cases[4] = {"semantics"};
  cases[4].options.semantics = static_cast<HostBufferSemantics>(4);
  cases[5] = {"number of strides"};
  cases[5].options.byte_strides = one;
  cases[6] = {"reach"};
  cases[6].options.byte_strides = apart;
  cases[7] = {"rank of the layout"};
  cases[7].options.device_layout = &short_layout;
  cases[8] = {"layout"};
  cases[8].options.device_layout = &twice;
  cases[9] = {"alignment"};
  cases[9].options.alloc.alignment_bytes = 3;
  cases[10] = {"policy"};
  cases[10].options.alloc.oom = static_cast<OomPolicy>(9);
  for (const Case& c : cases) {
    for (const HostBufferSemantics semantics : kAll) {
      FromHostOptions options = c.options;
      if (std::string_view(c.what) != "semantics") options.semantics = semantics;
      if (std::string_view(c.what) == "alignment" && static_cast<int>(semantics) >= 2)
        continue;  // Nothing is allocated.
      const DoneLog told;
      const Status status =
          Buffer::FromHost(c.is_null ? nullptr : page.bytes.data(), c.dtype, c.dims, space_, options, told.OnDone())
              .status();
      EXPECT_TRUE(IsInvalidArgument(status)) << c.what << ": " << status;
      EXPECT_EQ(told.all(), std::vector<Status>{status}) << c.what;
      EXPECT_TRUE(told.IsOver()) << c.what;
    }
  }
  EXPECT_EQ(space_.Stats().num_allocs, 0U) << "what was refused allocated nothing";
}

TEST_F(HostBufferTest, MemoryThatIsNotThereIsToldToo) {
  const Client client = MakeClient("null");
  const MemorySpace space = client.devices()[0].default_memory_space();
  const char byte = 0;  // Never read: there is no memory to copy it to.
  for (const HostBufferSemantics semantics : {kAll[0], kAll[1]}) {
    const DoneLog told;
    const Status status =
        Buffer::FromHost(&byte, DType::kU8, {1LL << 50}, space, With(semantics), told.OnDone()).status();
    EXPECT_TRUE(IsResourceExhausted(status)) << status;
    EXPECT_EQ(told.all(), std::vector<Status>{status});
  }
}

TEST_F(HostBufferTest, ATransferThatFailsLaterIsToldWhy) {
  const Bytes bytes(300'000);
  ASSERT_TRUE(client_.runner().Shutdown().ok());
  const DoneLog told;
  const FromHostResult made =
      From(bytes.data(), {300'000}, With(HostBufferSemantics::kImmutableUntilTransferCompletes), told).value();
  const Status status = made.buffer.ready_event().Wait();
  EXPECT_TRUE(IsCancelled(status)) << status;
  EXPECT_EQ(told.all(), std::vector<Status>{status});
}

TEST_F(HostBufferTest, NobodyNeedsToBeTold) {
  const Page page;
  const std::function<void(Status)> empty;
  void (*const null)(Status) = nullptr;
  EXPECT_TRUE(Buffer::FromHost(page.bytes.data(), DType::kU8, {256}, space_).ok());
  EXPECT_TRUE(Buffer::FromHost(page.bytes.data(), DType::kU8, {256}, space_, FromHostOptions(), empty).ok());
  EXPECT_TRUE(Buffer::FromHost(page.bytes.data(), DType::kU8, {256}, space_, FromHostOptions(), null).ok());
}

TEST_F(HostBufferTest, AllocationsAreNamedByTheirCaller) {
  const Page page;
  AllocOptions alloc;
  alloc.label = "weights";
  FromHostOptions options;
  options.alloc = alloc;
  const Buffer buffer = Buffer::FromHost(page.bytes.data(), DType::kU8, {256}, space_, options).value().buffer;
  const std::string line = LineAbove();
  const Buffer copy = buffer.CopyToMemorySpace(space_).value();
  const std::string copy_line = LineAbove();
  const std::string report = space_.Report().DebugString();
  EXPECT_TRUE(Contains(report, "weights")) << report;
  EXPECT_TRUE(Contains(report, line)) << report;
  EXPECT_TRUE(Contains(report, copy_line)) << report;
}

}  // namespace
}  // namespace purlin
