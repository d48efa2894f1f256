// Closures of every class that throw: an error or a report, never an exception that crosses, and what was owed
// completes.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/cancel.h"
#include "purlin/client.h"
#include "purlin/count_down.h"
#include "purlin/elastic_pool.h"
#include "purlin/future.h"
#include "purlin/inline_executor.h"
#include "purlin/join_events.h"
#include "purlin/join_futures.h"
#include "purlin/promise.h"
#include "purlin/run_when_ready.h"
#include "purlin/semaphore.h"
#include "purlin/serial_queue.h"
#include "purlin/staging.h"
#include "purlin/stall.h"
#include "purlin/timer.h"
#include "purlin/transfer.h"
#include "purlin/user_context.h"
#include "tests/cpp/raw_bytes.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

[[noreturn]] void Throw() { throw std::runtime_error("thrown on purpose"); }
/// No std::exception, and nothing that can be read.
struct Odd {};

TEST(ThrowMisuse, AWaiterOfAnEventIsReportedAndTheOthersRun) {
  EventPromise promise("waited for");
  int calls = 0;
  promise.OnReady([] { Throw(); });
  promise.OnReady([] { throw Odd(); });
  promise.OnReady([&calls] { ++calls; });
  testing::internal::CaptureStderr();
  EXPECT_TRUE(promise.SetReady());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("thrown on purpose"), std::string::npos);
  EXPECT_EQ(calls, 1);
}

TEST(ThrowMisuse, AWaiterOfAReadyEventIsReported) {
  testing::internal::CaptureStderr();
  Event().OnReady([] { Throw(); });
  EXPECT_NE(testing::internal::GetCapturedStderr().find("thrown on purpose"), std::string::npos);
}

TEST(ThrowMisuse, ATaskOfAPoolIsReportedAndThePoolGoesOn) {
  auto pool = PoolOf(1);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(Ok(pool.Schedule([] { Throw(); })));
  EXPECT_TRUE(Ok(pool.Schedule([] { throw Odd(); })));
  std::promise<void> ran;
  EXPECT_TRUE(Ok(pool.Schedule([&ran] { ran.set_value(); })));
  ran.get_future().wait();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("thrown on purpose"), std::string::npos);
}

TEST(ThrowMisuse, ATaskThatThrowsTellsWhatItOwed) {
  auto pool = PoolOf(1);
  EventPromise owed("owed by a thrower");
  const Event event = owed.event();
  EXPECT_TRUE(Ok(pool.Schedule([owed = std::move(owed)] { Throw(); })));
  EXPECT_TRUE(Fails(event, StatusCode::kInternal, {"'owed by a thrower'"}));
}

TEST(ThrowMisuse, ParallelForAndJoinSayInternalAndRunTheRest) {
  auto pool = PoolOf(2);
  std::atomic<int> calls{0};
  EXPECT_TRUE(Fails(pool.ParallelFor(100, Grain(1),
                                     [&calls](std::size_t begin, std::size_t) {
                                       ++calls;
                                       if (begin % 10 == 3) Throw();
                                     }),
                    StatusCode::kInternal));
  EXPECT_EQ(calls.load(), 100);
  EXPECT_TRUE(Fails(pool.Join([] { Throw(); }, [&calls] { ++calls; }), StatusCode::kInternal));
  EXPECT_TRUE(Fails(pool.Join([&calls] { ++calls; }, [] { throw Odd(); }), StatusCode::kInternal));
  EXPECT_EQ(calls.load(), 102);
}

TEST(ThrowMisuse, TasksOfEveryOtherExecutor) {
  InlineExecutor inline_executor;
  EXPECT_TRUE(Ok(inline_executor.Execute(Task([] { Throw(); }))));
  auto elastic = ElasticPool::Create({}).value();
  EXPECT_TRUE(Ok(elastic.Schedule([] { Throw(); })));
  EXPECT_TRUE(Ok(elastic.Shutdown()));
  auto pool = PoolOf(1);
  SerialQueue queue(pool);
  int calls = 0;
  EXPECT_TRUE(Ok(queue.Schedule([] { Throw(); })));
  EXPECT_TRUE(Ok(queue.Schedule([&calls] { ++calls; })));
  EXPECT_TRUE(Ok(queue.Drain()));
  EXPECT_EQ(calls, 1);
}

TEST(ThrowMisuse, AnExecutorUnderASerialQueueLosesNothing) {
  struct Thrower final : Executor {
    Status Execute(Task task) override {
      if (++calls % 2 == 1) Throw();
      std::move(task).Run();
      return OkStatus();
    }
    int calls = 0;
  };
  auto queue = SerialQueue::Create(std::make_shared<Thrower>()).value();
  EventPromise owed("owed");
  const Event event = owed.event();
  EXPECT_TRUE(Fails(queue.Schedule([owed = std::move(owed)]() mutable { owed.SetReady(); }), StatusCode::kInternal));
  EXPECT_FALSE(event.Wait().ok());
  int calls = 0;
  EXPECT_TRUE(Ok(queue.Schedule([&calls] { ++calls; })));
  EXPECT_TRUE(Ok(queue.Drain()));
  EXPECT_EQ(calls, 1);
}

TEST(ThrowMisuse, VerbsOfValuesFailTheirResults) {
  const auto value = MakeAvailableAsyncValueRef<int>(1);
  InlineExecutor executor;
  const auto expect = [](const Status& status) {
    EXPECT_TRUE(Fails(status, StatusCode::kInternal, {"thrown on purpose"}));
  };
  expect(value.Map([](int) -> int { Throw(); }).Wait());
  expect(value.Map(executor, [](int) -> int { Throw(); }).Wait());
  expect(value.TryMap([](int) -> StatusOr<int> { Throw(); }).Wait());
  expect(value.FlatMap([](int) -> AsyncValueRef<int> { Throw(); }).Wait());
  expect(MakeAsyncValueRef(executor, []() -> int { Throw(); }).Wait());
  expect(TryMakeAsyncValueRef(executor, []() -> StatusOr<int> { Throw(); }).Wait());
}

struct ThrowsWhenMade {
  explicit ThrowsWhenMade(int) { Throw(); }
};
struct ThrowsWhenCopied {
  ThrowsWhenCopied() = default;
  ThrowsWhenCopied(const ThrowsWhenCopied&) { Throw(); }
  ThrowsWhenCopied(ThrowsWhenCopied&&) noexcept = default;
};

TEST(ThrowMisuse, AConstructorOfAPayloadFailsTheValue) {
  EXPECT_TRUE(Fails(MakeAvailableAsyncValueRef<ThrowsWhenMade>(1).Wait(), StatusCode::kInternal, {"on purpose"}));
  EXPECT_TRUE(Fails(MakeConstructedAsyncValueRef<ThrowsWhenMade>(1).Wait(), StatusCode::kInternal, {"on purpose"}));
  const auto value = MakeUnconstructedAsyncValueRef<ThrowsWhenMade>("made by a thrower");
  EXPECT_TRUE(value.emplace(1));
  EXPECT_TRUE(Fails(value.Wait(), StatusCode::kInternal, {"on purpose"}));
}

TEST(ThrowMisuse, FuturesFailByWhatTheirFunctionsThrow) {
  InlineExecutor executor;
  auto [promise, future] = MakePromise<int>("input");
  const Future<int> mapped = future.Map([](int) -> int { Throw(); });
  const Future<int> on = future.Map(executor, [](int) -> int { throw Odd(); });
  promise.Set(1);
  EXPECT_TRUE(Fails(mapped.Await(), StatusCode::kInternal, {"thrown on purpose"}));
  EXPECT_TRUE(Fails(on.Await(), StatusCode::kInternal));
  EXPECT_TRUE(Fails(MakeFutureOn(executor, []() -> int { Throw(); }).Await(), StatusCode::kInternal, {"on purpose"}));
  int calls = 0;
  future.OnReady([](StatusOr<int>) { Throw(); });
  future.OnReady([&calls](StatusOr<int>) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(ThrowMisuse, RunWhenReadyReports) {
  const auto value = MakeUnconstructedAsyncValueRef<int>("one"), other = MakeUnconstructedAsyncValueRef<int>("two");
  RunWhenReady({value, other}, [] { Throw(); });
  RunWhenReady({value, other}, [](Status) { Throw(); });
  EXPECT_TRUE(value.emplace(1));
  EXPECT_TRUE(other.emplace(1));
  // Once they are there, as before.
  RunWhenReady({value, other}, [] { Throw(); });
  RunWhenReady({value, other}, [](Status) { Throw(); });
}

TEST(ThrowMisuse, CancelCallbacksAreReportedAndTheOthersRun) {
  const CancelSource source("thrown at");
  int calls = 0;
  const auto a = source.token().OnCancel([] { Throw(); });
  const auto b = source.token().OnCancel([&calls] { ++calls; });
  EXPECT_TRUE(source.Cancel());
  EXPECT_EQ(calls, 1);
}

TEST(ThrowMisuse, ASemaphoresCallbackGivesItsUnitsBack) {
  const Semaphore semaphore("thrown at", 2);
  semaphore.AcquireAsync(2, [](StatusOr<Permit>) { Throw(); });
  EXPECT_EQ(semaphore.available(), 2U);
}

TEST(ThrowMisuse, AWaiterOnTheTimersThreadDoesNotStopTheTimers) {
  Timer first = Timer::After(milliseconds(1));
  std::promise<void> went;
  first.event().OnReady([&went] {
    went.set_value();
    Throw();
  });
  went.get_future().wait();
  EXPECT_TRUE(Ok(Timer::After(milliseconds(1)).event()));
}

TEST(ThrowMisuse, AWatchdogsSinkIsReportedAndTheWatchdogLives) {
  EventPromise first("first"), second("second");
  std::atomic<int> told{0};
  WatchdogOptions options;
  options.older_than = milliseconds(10);
  options.action = WatchdogAction::kPoison;
  options.sink = [&told](std::string_view) {
    ++told;
    Throw();
  };
  const auto watchdog = Watchdog::Start(std::move(options));
  ASSERT_TRUE(Ok(watchdog));
  EXPECT_TRUE(Fails(first.event(), StatusCode::kDeadlineExceeded));
  EXPECT_TRUE(Fails(second.event(), StatusCode::kDeadlineExceeded));
  EXPECT_GE(told.load(), 1);
}

TEST(ThrowMisuse, AnOriginOfAContextSaysThatItThrew) {
  const UserContext context = UserContext::Create([]() -> std::string { Throw(); });
  EXPECT_NE(context.DebugString().find("threw"), std::string::npos);
}

TEST(ThrowMisuse, AHookForMemoryCountsAsNo) {
  ClientOptions options;
  options.memory_limit_bytes = 1 << 20;
  options.on_out_of_memory = [](const MemoryReport&) -> bool { Throw(); };
  const Client client = Client::Create(options).value();
  AllocOptions retry;
  retry.oom = OomPolicy::kRetry;
  EXPECT_TRUE(Fails(RawBuffer::Allocate(SpaceOf(client), 2 << 20, retry), StatusCode::kResourceExhausted));
}

TEST(ThrowMisuse, AnAllocatorCountsAsNull) {
  struct Thrower final : HostMemoryAllocator {
    void* Allocate(std::size_t, std::size_t) override { throw std::bad_alloc(); }
    void Deallocate(void*, std::size_t, std::size_t) override { Throw(); }
  };
  ClientOptions options;
  options.host_memory_allocator = std::make_shared<Thrower>();
  const Client client = Client::Create(options).value();
  EXPECT_TRUE(Fails(RawBuffer::Allocate(SpaceOf(client), 64), StatusCode::kResourceExhausted));
}

TEST(ThrowMisuse, AReleaseOfImportedMemoryIsReported) {
  const Client client = HostClient();
  alignas(64) static char bytes[64];
  int released = 0;
  {
    const auto memory = RawBuffer::Import(SpaceOf(client), bytes, 64, Mutability::kMutable, [&released] {
      ++released;
      Throw();
    });
  }
  EXPECT_EQ(released, 1);
}

TEST(ThrowMisuse, AnOnDoneOfHostMemoryIsReportedAndTheBufferIsReady) {
  const Client client = HostClient();
  const std::uint8_t bytes[8] = {};
  const auto made =
      Buffer::FromHost(bytes, DType::kU8, {8}, SpaceOf(client), FromHostOptions(), [](Status) { Throw(); });
  ASSERT_TRUE(Ok(made));
  EXPECT_TRUE(Ok(made->buffer.ready_event()));
}

TEST(ThrowMisuse, OnDonesOfShardsAreReported) {
  const Client client = HostClient();
  const std::uint8_t bytes[8] = {};
  std::vector<HostShard> shards(2, HostShard{bytes, DType::kU8, {8}, SpaceOf(client)});
  for (HostShard& shard : shards) shard.on_done = [](Status) { Throw(); };
  const auto made = Buffer::FromHostShards(shards);
  ASSERT_TRUE(Ok(made));
  EXPECT_TRUE(Ok((*made)[1].ready_event()));
}

TEST(ThrowMisuse, AnOnDoneOfATransferIsReported) {
  const Client client = HostClient();
  const std::uint8_t bytes[8] = {};
  auto manager = AsyncHostToDeviceTransferManager::Create({{Shape(DType::kU8, {8})}}, SpaceOf(client)).value();
  const Buffer buffer = manager.RetrieveBuffer(0).value();
  EXPECT_TRUE(Ok(manager.TransferRawDataToBuffer(0, bytes, 8, [](Status) { Throw(); })));
  EXPECT_TRUE(Ok(buffer.ready_event()));
}

TEST(ThrowMisuse, AnOnPieceEndsItsReadAndGivesItsLeasesBack) {
  const Client client = HostClient();
  StagingOptions options;
  options.lease_bytes = 64;
  options.lease_count = 2;
  const StagingPool pool = StagingPool::Create(SpaceOf(client), options).value();
  StagingCopier copier(pool);
  const RawBuffer source = FilledIn(SpaceOf(client), Bytes(640, 1));
  EXPECT_TRUE(Fails(copier.Read(source, [](StatusOr<StagedPiece>) { Throw(); }), StatusCode::kInternal));
  pool.AcquireAsync([](StatusOr<StagingLease>) { Throw(); });
  const StagingLease a = pool.Acquire().value(), b = pool.Acquire().value();
  EXPECT_NE(a.data(), b.data());
}

struct NullWhat final : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

TEST(ThrowMisuse, AnExceptionWhoseTextIsNullIsAnErrorLikeOthers) {
  const auto value = MakeAvailableAsyncValueRef<int>(1);
  EXPECT_TRUE(Fails(value.Map([](int) -> int { throw NullWhat(); }).Wait(), StatusCode::kInternal));
  EventPromise promise("null what");
  int calls = 0;
  promise.OnReady([] { throw NullWhat(); });
  promise.OnReady([&calls] { ++calls; });
  EXPECT_TRUE(promise.SetReady());
  EXPECT_EQ(calls, 1);
}

TEST(ThrowMisuse, AFunctionOfAPoolsTaskThatCopiesWhatCannotBeCopiedFailsItsValue) {
  InlineExecutor executor;
  EXPECT_TRUE(Fails(
      MakeAsyncValueRef(executor, [thrower = ThrowsWhenCopied()]() -> ThrowsWhenCopied { return thrower; }).Wait(),
      StatusCode::kInternal, {"thrown on purpose"}));
}

TEST(ThrowMisuse, ACloningPayloadThatThrowsOnCopyIsAnErrorWhereItIsCopied) {
  auto [promise, future] = MakePromise<ThrowsWhenCopied>("copies throw");
  EXPECT_TRUE(promise.Emplace());
  EXPECT_TRUE(Ok(future.AwaitPointer()));
  Status seen;
  future.Map([](const ThrowsWhenCopied&) { return 1; }).OnReady([&seen](StatusOr<int> r) { seen = r.status(); });
  EXPECT_TRUE(Ok(seen));
}

}  // namespace
}  // namespace purlin
