// Arguments at the edge of their types: times that overflow, null where something is expected, text that is none. Each
// call answers: an error that names the value, or as if nothing odd had been given.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/purlin.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

constexpr nanoseconds kFar[] = {
    nanoseconds::min(), nanoseconds(-1), nanoseconds(0), nanoseconds(1), nanoseconds::max() - nanoseconds(1),
    nanoseconds::max()};
constexpr std::size_t kHuge = std::numeric_limits<std::size_t>::max();
/// A NUL, half a character, and bytes that begin none.
constexpr std::string_view kNoText("a\0\xc3(\xff", 5);

ThreadPoolAsyncWorkRunner OneThread() {
  ThreadPoolOptions options;
  options.thread_count = 1;
  return ThreadPoolAsyncWorkRunner::Create(options).value();
}

class OddArgumentsTest : public testing::Test {
 protected:
  static Client NewClient() {
    ClientOptions options;
    options.worker_count = 1;
    return Client::Create(options).value();
  }
  Client client = NewClient();
  MemorySpace space = client.devices().at(0).default_memory_space();
  RawBuffer raw = RawBuffer::Allocate(space, 64).value();
  alignas(64) char bytes[64] = {};
};

TEST(OddTimesTest, OfWaits) {
  for (const nanoseconds time : kFar) {
    EventPromise promise("p");
    promise.SetReady();
    EXPECT_TRUE(promise.event().WaitFor(time).ok());
    const EventPromise pending("pending");
    EXPECT_TRUE(time > nanoseconds(1) || IsDeadlineExceeded(pending.event().WaitFor(time)));
    const Semaphore semaphore("s", 1);
    EXPECT_TRUE(semaphore.AcquireFor(1, time).ok());
    EXPECT_EQ(Future<int>(3).AwaitFor(time).value(), 3);
  }
  // A wait that is as long as can be said does not overflow into none.
  EventPromise owed("owed");
  const Event event = owed.event();
  ThreadPoolAsyncWorkRunner pool = OneThread();
  ASSERT_TRUE(pool.Schedule([owed = std::move(owed)]() mutable { owed.SetReady(); }).ok());
  EXPECT_TRUE(event.WaitFor(nanoseconds::max()).ok());
}

TEST(OddTimesTest, OfTimersAndDeadlines) {
  for (const nanoseconds time : kFar) {
    const bool is_soon = time <= nanoseconds(1);
    Timer after = Timer::After(time);
    Timer at = Timer::At(Clock::time_point(time));
    const EventPromise pending("pending");
    const Event limited = WithTimeout(pending.event(), time);
    const Event until = WithDeadline(pending.event(), Clock::time_point(time));
    if (is_soon) {
      EXPECT_TRUE(after.event().Wait().ok());
      EXPECT_TRUE(at.event().Wait().ok());
      EXPECT_TRUE(IsDeadlineExceeded(limited.Wait()));
      EXPECT_TRUE(IsDeadlineExceeded(until.Wait()));
    } else {
      EXPECT_FALSE(after.event().IsReady());
      EXPECT_FALSE(at.event().IsReady());
      EXPECT_FALSE(limited.IsReady());
      EXPECT_FALSE(until.IsReady());
    }
  }
}

TEST(OddTimesTest, OfPoolsAndReports) {
  for (const nanoseconds time : kFar) {
    ElasticPoolOptions elastic;
    elastic.idle_timeout = time;
    ElasticPool pool = ElasticPool::Create(elastic).value();
    ASSERT_TRUE(pool.Schedule([] {}).ok());
    static_cast<void>(pool.ShutdownBy(Clock::time_point(time)));
    ThreadPoolAsyncWorkRunner runner = OneThread();
    TaskOptions late;
    late.deadline = Clock::time_point(time);
    EXPECT_EQ(runner.ExecuteWith(Task([] {}), late).ok(), time > nanoseconds(1)) << time.count();
    ShutdownOptions end;
    end.timeout_ns = time.count();
    static_cast<void>(pool.Shutdown(end));
    static_cast<void>(SerialQueue(runner).Shutdown(end));
    static_cast<void>(runner.Shutdown(end));
    static_cast<void>(DumpStalls(time));
    WatchdogOptions watch;
    watch.older_than = time;
    watch.sink = [](std::string_view) {};
    EXPECT_EQ(Watchdog::Start(watch).ok(), time > nanoseconds(1)) << time.count();
  }
}

TEST_F(OddArgumentsTest, TimesOfClients) {
  for (const nanoseconds time : kFar) {
    ClientOptions options;
    options.worker_count = 1;
    options.shutdown_at_end = ShutdownOptions();
    options.shutdown_at_end->timeout_ns = time.count();
    Client ends = Client::Create(options).value();
    ShutdownOptions now;
    now.timeout_ns = time.count();
    static_cast<void>(ends.Shutdown(now));
  }
}

TEST_F(OddArgumentsTest, Null) {
  const Label none(nullptr);
  EXPECT_TRUE(EventPromise(none).event().label().empty());
  EXPECT_TRUE(EventPromise("e", SourceLocation(nullptr, 3)).event().location().line() == 3);
  EXPECT_EQ(Status(StatusCode::kAborted, std::string_view(), SourceLocation(nullptr, 1)).message(), "");
  const TraceSpan span(nullptr);
  AllocOptions options;
  options.label = none;
  EXPECT_TRUE(RawBuffer::Allocate(space, 4, options, SourceLocation(nullptr, 1)).ok());
  EXPECT_TRUE(IsInvalidArgument(raw.CopyFromHost(nullptr, 0, 4).Wait()));
  EXPECT_TRUE(raw.CopyFromHost(nullptr, 0, 0).Wait().ok());
  EXPECT_TRUE(IsInvalidArgument(raw.CopyToHost(nullptr, 0, 4).Wait()));
  EXPECT_TRUE(IsInvalidArgument(RawBuffer::Import(space, nullptr, 64, Mutability::kMutable).status()));
  const std::vector<std::int64_t> four = {4};
  EXPECT_TRUE(IsInvalidArgument(Buffer::FromHost(nullptr, 4, DType::kU8, four, space).status()));
  EXPECT_TRUE(IsInvalidArgument(Buffer::FromHost(nullptr, DType::kU8, four, space).status()));
  EXPECT_TRUE(IsInvalidArgument(client.DmaMap(nullptr, 64).status()));
  EXPECT_TRUE(IsInvalidArgument(client.DmaMap(bytes, 0).status()));
  EXPECT_TRUE(IsInvalidArgument(FromDLPack(nullptr, space).status()));
  EXPECT_TRUE(IsInvalidArgument(SerialQueue::Create(nullptr).status()));
  EXPECT_EQ(Shape(DType::kU8, Span<const std::int64_t>(nullptr, 0)).rank(), 0U);
  EXPECT_TRUE(WhenAll(Span<const Event>(nullptr, 0)).IsReady());
  EXPECT_TRUE(JoinFutures(Span<const Future<>>(nullptr, 0)).IsReady());
  EXPECT_TRUE(Buffer::FromHostShards(Span<const HostShard>(nullptr, 0)).ok());
  EXPECT_TRUE(raw.Slices(Span<const ByteRange>(nullptr, 0)).ok());
  EXPECT_EQ(MakeAsyncValueRefFromSharedPtr(std::shared_ptr<int>()).GetError().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(UserContext::Create(std::string_view()).DebugString().empty());
}

TEST_F(OddArgumentsTest, Sizes) {
  EXPECT_TRUE(IsResourceExhausted(RawBuffer::Allocate(space, kHuge).status()));
  EXPECT_TRUE(IsResourceExhausted(RawBuffer::Allocate(space, kHuge / 2).status()));
  EXPECT_TRUE(IsOutOfRange(raw.Slice(kHuge, 1).status()));
  EXPECT_TRUE(IsOutOfRange(raw.Slice(1, kHuge).status()));
  EXPECT_TRUE(IsOutOfRange(raw.CopyFromHost(bytes, kHuge, kHuge).Wait()));
  EXPECT_TRUE(IsOutOfRange(raw.CopyRangeTo(kHuge, raw, kHuge, kHuge).Wait()));
  EXPECT_FALSE(RawBuffer::Import(space, bytes, kHuge, Mutability::kMutable).ok());
  EXPECT_TRUE(IsInvalidArgument(client.DmaMap(bytes, kHuge).status()));
  for (const std::size_t alignment : {std::size_t{3}, kHuge, std::size_t{1} << 31, std::size_t{1} << 63}) {
    AllocOptions options;
    options.alignment_bytes = alignment;
    EXPECT_TRUE(IsInvalidArgument(RawBuffer::Allocate(space, 4, options).status())) << alignment;
  }
  StagingOptions staging;
  staging.lease_bytes = kHuge;
  EXPECT_TRUE(IsInvalidArgument(StagingPool::Create(space, staging).status()));
  staging.lease_bytes = 1;
  staging.lease_count = kHuge;
  EXPECT_FALSE(StagingPool::Create(space, staging).ok());
  const std::vector<std::int64_t> wide = {std::numeric_limits<std::int64_t>::max(), 2};
  const std::vector<std::int64_t> negative = {std::numeric_limits<std::int64_t>::min()};
  for (const auto& dims : {wide, negative}) {
    EXPECT_TRUE(IsInvalidArgument(Buffer::FromHost(bytes, 64, DType::kU8, dims, space).status()));
    // Of more bytes than can be counted, or than there are.
    EXPECT_FALSE(Buffer::CreateUninitialized(Shape(DType::kU8, dims), space).ok());
  }
  const std::vector<std::int64_t> many(100000, 1);
  static_cast<void>(Buffer::CreateUninitialized(Shape(DType::kU8, many), space));
  EXPECT_TRUE(
      IsInvalidArgument(client.GetDefaultDeviceAssignment(std::numeric_limits<std::size_t>::max(), 2).status()));
  EXPECT_TRUE(IsInvalidArgument(client.GetDefaultDeviceAssignment(0, 1).status()));
  EXPECT_TRUE(IsNotFound(client.LookupDevice(std::numeric_limits<int>::min()).status()));
  for (const std::size_t count : {std::size_t{5000}, std::numeric_limits<std::size_t>::max()}) {
    ClientOptions options;
    options.device_count = count;
    EXPECT_TRUE(IsInvalidArgument(Client::Create(options).status()));
    options.device_count = 1;
    options.worker_count = count;
    EXPECT_TRUE(IsInvalidArgument(Client::Create(options).status()));
  }
  const Semaphore all("all", kHuge);
  EXPECT_TRUE(all.TryAcquire(kHuge).ok());
  EXPECT_TRUE(IsInvalidArgument(Semaphore("none", 0).TryAcquire(1).status()));
  ThreadPoolOptions threads;
  threads.thread_count = kHuge;
  EXPECT_TRUE(IsInvalidArgument(ThreadPoolAsyncWorkRunner::Create(threads).status()));
  ElasticPoolOptions elastic;
  elastic.stack_size_bytes = kHuge;
  EXPECT_TRUE(IsInvalidArgument(ElasticPool::Create(elastic).status()));
  ThreadPoolAsyncWorkRunner pool = OneThread();
  std::size_t calls = 0;
  EXPECT_TRUE(pool.ParallelFor(2, Grain(kHuge), [&](std::size_t, std::size_t) { ++calls; }).ok());
  EXPECT_EQ(calls, 1U);
  CountDownAsyncValueRef<Chain> count(kHuge);
  EXPECT_FALSE(count.CountDown(kHuge - 1));
  EXPECT_TRUE(count.CountDown());
}

TEST_F(OddArgumentsTest, Text) {
  const Status status(StatusCode::kAborted, kNoText);
  EXPECT_NE(status.message().find('a'), std::string_view::npos);
  EXPECT_FALSE(status.ToString().empty());
  Status payload = AbortedError("x");
  payload.SetPayload(kNoText, kNoText);
  EXPECT_TRUE(payload.GetPayload(kNoText).has_value());
  EXPECT_TRUE(payload.ErasePayload(kNoText));
  EXPECT_FALSE(UserContext::Create(kNoText).DebugString().empty());
  ThreadPoolOptions threads;
  threads.name = kNoText;
  EXPECT_TRUE(IsInvalidArgument(ThreadPoolAsyncWorkRunner::Create(threads).status()));
  ElasticPoolOptions elastic;
  elastic.name = kNoText;
  EXPECT_TRUE(IsInvalidArgument(ElasticPool::Create(elastic).status()));
  ClientOptions options;
  options.platform = kNoText;
  EXPECT_TRUE(IsNotFound(Client::Create(options).status()));
  EXPECT_TRUE(IsNotFound(client.devices().at(0).memory_space(kNoText).status()));
  EXPECT_FALSE(SafetensorsFile::Open(kNoText).ok());
  EXPECT_FALSE(ReadNpy(kNoText, space).ok());
  EXPECT_FALSE(ReadNpy("", space).ok());
  const Buffer buffer = Buffer::FromHost(bytes, 4, DType::kU8, std::vector<std::int64_t>{4}, space).value();
  EXPECT_FALSE(WriteNpy("", buffer).ok());
  EXPECT_FALSE(WriteNpy(std::string("/tmp/\0x", 7), buffer).ok());
  EXPECT_TRUE(IsInvalidArgument(WriteSafetensors("/tmp/purlin_odd", {NamedBuffer{kNoText, buffer}})));
  EXPECT_FALSE(StartTrace("").ok());
}

}  // namespace
}  // namespace purlin
