// purlin/adapters/xla_async_work_runner.h: the wheel's shape with XLA's own code above and below it, and HEAD's shape.
#include "purlin/adapters/xla_async_work_runner.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/promise.h"
#include "purlin/status.h"
#include "tests/cpp/testing.h"
#include "xla/pjrt/raw_buffer.h"
#include "xla/pjrt/thread_pool_async_work_runner.h"
#include "xla/tsl/concurrency/async_value_ref.h"
#include "xla/tsl/concurrency/future.h"
#include "xla/tsl/platform/env.h"
#include "xla/tsl/platform/threadpool.h"

namespace stand_in {

// A stand-in, not XLA's own: what XLA's HEAD declares, which no package has yet. The interface is the same: the runner
// is a tsl::Executor, Execute is what an implementation gives, and the rest is made of it.
class AsyncWorkRunner : public tsl::Executor {
 public:
  void ExecuteWhenReady(absl::Span<const tsl::RCReference<tsl::AsyncValue>> values, Task task) {
    tsl::RunWhenReady(values, [runner = this, task = std::move(task)]() mutable { runner->Execute(std::move(task)); });
  }
  void Schedule(absl::AnyInvocable<void() &&> work) { Execute(std::move(work)); }
  void ScheduleWhenReady(absl::Span<const tsl::RCReference<tsl::AsyncValue>> values,
                         absl::AnyInvocable<void() &&> work) {
    ExecuteWhenReady(values, std::move(work));
  }
};

}  // namespace stand_in

namespace purlin {
namespace {

using adapters::FromTsl;
using adapters::FromXla;
using adapters::ToTslExecutor;
using adapters::ToXla;

// What the headers of the wheel declare is what the adapter is.
static_assert(!std::is_base_of_v<tsl::Executor, xla::AsyncWorkRunner>);
static_assert(!std::is_base_of_v<tsl::Executor, adapters::XlaAsyncWorkRunner>);
static_assert(std::is_base_of_v<xla::AsyncWorkRunner, adapters::XlaAsyncWorkRunner>);
static_assert(std::is_base_of_v<tsl::Executor, adapters::AsyncWorkRunnerAs<stand_in::AsyncWorkRunner>>);

ThreadPoolAsyncWorkRunner MakePool(std::size_t threads) {
  ThreadPoolOptions options;
  options.thread_count = threads;
  return ThreadPoolAsyncWorkRunner::Create(options).value();
}

using Values = std::vector<tsl::RCReference<tsl::AsyncValue>>;

/// Both shapes, called as both can be.
template <typename Runner>
class AsyncWorkRunnerTest : public testing::Test {};
struct Names {
  template <typename Runner>
  static std::string GetName(int) {
    return std::is_same_v<Runner, xla::AsyncWorkRunner> ? "Wheel" : "Head";
  }
};
using Shapes = testing::Types<xla::AsyncWorkRunner, stand_in::AsyncWorkRunner>;
TYPED_TEST_SUITE(AsyncWorkRunnerTest, Shapes, Names);

TYPED_TEST(AsyncWorkRunnerTest, WorkRunsOnceOnAThreadOfThePool) {
  const NoLeak no_leak;
  std::vector<std::atomic<int>> runs(1000);
  std::atomic<int> elsewhere{0};
  ThreadPoolAsyncWorkRunner pool = MakePool(3);
  {
    auto ours = ToXla<TypeParam>(pool);
    TypeParam& runner = ours;
    for (std::atomic<int>& run : runs) {
      runner.Schedule([&, counted = std::make_unique<Counted>(1)] {
        run += counted->value;
        if (!pool.CurrentThreadId().has_value()) ++elsewhere;
      });
    }
  }
  for (const std::atomic<int>& run : runs) EXPECT_EQ(run.load(), 1);
  EXPECT_EQ(elsewhere.load(), 0);
}

TYPED_TEST(AsyncWorkRunnerTest, WorkWaitsForItsValuesWhateverTheyHold) {
  ThreadPoolAsyncWorkRunner pool = MakePool(2);
  auto ours = ToXla<TypeParam>(pool);
  TypeParam& runner = ours;
  for (const bool fails : {false, true}) {
    const auto first = tsl::MakeUnconstructedAsyncValueRef<int>();
    const auto second = tsl::MakeUnconstructedAsyncValueRef<int>();
    const auto there = tsl::MakeAvailableAsyncValueRef<int>(1);
    std::atomic<bool> complete{false};
    std::promise<bool> ran;
    std::future<bool> result = ran.get_future();
    const Values values = {first.CopyRCRef(), there.CopyRCRef(), second.CopyRCRef()};
    runner.ScheduleWhenReady(values, [&complete, &pool, ran = std::move(ran)]() mutable {
      ran.set_value(complete.load() && pool.CurrentThreadId().has_value());
    });
    second.emplace(2);
    complete = true;
    fails ? first.SetError(absl::DataLossError("lost")) : first.emplace(1);
    EXPECT_TRUE(result.get());
  }
}

TYPED_TEST(AsyncWorkRunnerTest, WorkWhoseValuesAreThereIsScheduledAtOnce) {
  ThreadPoolAsyncWorkRunner pool = MakePool(1);
  auto ours = ToXla<TypeParam>(pool);
  TypeParam& runner = ours;
  for (const Values& values : {Values(), Values{tsl::MakeAvailableAsyncValueRef<int>(1).CopyRCRef()}}) {
    std::promise<bool> ran;
    std::future<bool> result = ran.get_future();
    runner.ScheduleWhenReady(
        values, [&pool, ran = std::move(ran)]() mutable { ran.set_value(pool.CurrentThreadId().has_value()); });
    EXPECT_TRUE(result.get());
  }
}

TYPED_TEST(AsyncWorkRunnerTest, AfterAShutdownWorkRunsOnTheThreadThatGivesIt) {
  ThreadPoolAsyncWorkRunner pool = MakePool(1);
  auto ours = ToXla<TypeParam>(pool);
  TypeParam& runner = ours;
  const auto value = tsl::MakeUnconstructedAsyncValueRef<int>();
  std::thread::id waited;
  runner.ScheduleWhenReady(Values{value.CopyRCRef()}, [&waited] { waited = std::this_thread::get_id(); });
  ASSERT_TRUE(pool.Shutdown().ok());
  std::thread::id given;
  runner.Schedule([&given] { given = std::this_thread::get_id(); });
  EXPECT_EQ(given, std::this_thread::get_id());
  value.emplace(1);
  EXPECT_EQ(waited, std::this_thread::get_id());
}

TYPED_TEST(AsyncWorkRunnerTest, AChainAfterAShutdownNeedsNoStack) {
  ThreadPoolAsyncWorkRunner pool = MakePool(1);
  auto ours = ToXla<TypeParam>(pool);
  ASSERT_TRUE(pool.Shutdown().ok());
  struct Link {
    TypeParam* runner;
    int* links;
    void operator()() {
      if (++*links < 100000) runner->Schedule(Link(*this));
    }
  };
  int links = 0;
  OnSmallStack([&] { ours.Schedule(Link{&ours, &links}); });
  EXPECT_EQ(links, 100000);
}

TYPED_TEST(AsyncWorkRunnerTest, EmptyWorkDoesNothing) {
  auto runner = ToXla<TypeParam>(MakePool(1));
  runner.Schedule(nullptr);
}

TYPED_TEST(AsyncWorkRunnerTest, ItServesAsAnExecutorOfPurlins) {
  ThreadPoolAsyncWorkRunner pool = MakePool(2);
  auto runner = ToXla<TypeParam>(pool);
  auto executor = FromXla(runner);
  auto future = MakeFutureOn<bool>(executor, [&pool] { return pool.CurrentThreadId().has_value(); });
  EXPECT_TRUE(future.Await().value());
}

// The wheel's shape alone -------------------------------------------------------------------------------------------

TEST(ToXlaTest, WorkThatWaitsOutlivesTheRunner) {
  ThreadPoolAsyncWorkRunner pool = MakePool(1);
  const auto value = tsl::MakeUnconstructedAsyncValueRef<int>();
  std::promise<bool> ran;
  std::future<bool> result = ran.get_future();
  {
    auto runner = ToXla(pool);
    runner.ScheduleWhenReady(Values{value.CopyRCRef()}, [&pool, ran = std::move(ran)]() mutable {
      ran.set_value(pool.CurrentThreadId().has_value());
    });
  }
  value.emplace(1);
  EXPECT_TRUE(result.get());
}

TEST(ToXlaTest, ItsExecutorRunsWhatTslsFuturesCall) {
  ThreadPoolAsyncWorkRunner pool = MakePool(1);
  auto runner = ToXla(pool);
  auto [promise, future] = tsl::MakePromise<int>();
  tsl::Future<bool> mapped = std::move(future).Map(
      runner.AsExecutor(), [&pool](int number) { return number == 7 && pool.CurrentThreadId().has_value(); });
  promise.Set(7);
  EXPECT_TRUE(*mapped.Await());
}

TEST(ToTslExecutorTest, TslsFuturesCallBackOnIt) {
  ThreadPoolAsyncWorkRunner pool = MakePool(1);
  auto executor = ToTslExecutor(pool);
  const auto value = tsl::MakeUnconstructedAsyncValueRef<int>();
  std::promise<bool> ran;
  std::future<bool> result = ran.get_future();
  value.AndThen(executor,
                [&pool, ran = std::move(ran)]() mutable { ran.set_value(pool.CurrentThreadId().has_value()); });
  value.emplace(1);
  EXPECT_TRUE(result.get());
}

TEST(ToXlaTest, AForkedChildRunsWorkItselfAndEnds) {
  ThreadPoolAsyncWorkRunner pool = MakePool(1);
  auto runner = std::make_unique<adapters::XlaAsyncWorkRunner>(pool);
  const pid_t child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    alarm(240);
    int runs = 0;
    runner->Schedule([&runs] { ++runs; });
    runner.reset();
    _exit(runs == 1 ? 0 : 1);
  }
  int state = -1;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
}

/// What XLA's raw buffers leave to a device, over eight floats on the host; records which thread it copies on.
class HostRawBuffer final : public xla::CommonPjRtRawBuffer {
 public:
  explicit HostRawBuffer(const ThreadPoolAsyncWorkRunner& pool) : pool_(pool) {}
  void CopyTo(tsl::RCReference<xla::CommonPjRtRawBuffer> to, tsl::RCReference<xla::PjRtDeviceEventPromise> defined,
              tsl::RCReference<xla::PjRtDeviceEventPromise> used, tsl::AsyncValueRef<bool> allocated) override {
    EXPECT_TRUE(defined == nullptr && used == nullptr);
    std::memcpy(to->OpaqueDeviceMemoryDataPointer(), floats, sizeof(floats));
    allocated.emplace(pool_.CurrentThreadId().has_value());
  }
  void* OpaqueDeviceMemoryDataPointer() const override { return const_cast<float*>(floats); }
  xla::PjRtMemorySpace* memory_space() const override { return nullptr; }
  std::size_t GetOnDeviceSizeInBytes() const override { return sizeof(floats); }

  // Never called.
  using Copied = absl::StatusOr<tsl::RCReference<xla::PjRtDeviceEvent>>;
  xla::Future<> CopyRawHostToDevice(const void*, int64_t, int64_t) override { return xla::Future<>(No()); }
  xla::Future<> CopyRawDeviceToHost(void*, int64_t, int64_t) override { return xla::Future<>(No()); }
  Copied CopyRawHostToDeviceAndReturnEvent(const void*, int64_t, int64_t) override { return No(); }
  Copied CopyRawDeviceToHostAndReturnEvent(void*, int64_t, int64_t) override { return No(); }
  Copied MakeAllocationReadyEvent() override { return No(); }
  void ReadDynamicShape(tsl::AsyncValueRef<xla::Shape> shape, xla::Shape) override { shape.SetError(No()); }
  void CopyToLiteralAsync(xla::Promise<> promise, tsl::RCReference<xla::PjRtDeviceEventPromise>,
                          xla::MutableLiteralBase*, xla::Shape) override {
    promise.Set(No());
  }

  float floats[8] = {};

 private:
  static absl::Status No() { return absl::UnimplementedError("nobody asks"); }
  const ThreadPoolAsyncWorkRunner& pool_;
};

TEST(ToXlaTest, XlaSchedulesACopyBetweenBuffersOnIt) {
  ThreadPoolAsyncWorkRunner pool = MakePool(2);
  auto runner = ToXla(pool);
  const auto from = tsl::MakeRef<HostRawBuffer>(pool);
  const auto to = tsl::MakeRef<HostRawBuffer>(pool);
  const auto defined = tsl::MakeUnconstructedAsyncValueRef<int>();
  const auto on_pool = tsl::MakeUnconstructedAsyncValueRef<bool>();
  from->ScheduleCopyTo(&runner, Values{defined.CopyRCRef()}, to, {}, {}, on_pool.CopyRef());
  EXPECT_TRUE(on_pool.IsUnavailable());
  from->floats[7] = 7;
  defined.emplace(1);
  tsl::BlockUntilReady(on_pool.GetAsyncValue());
  EXPECT_TRUE(on_pool.get());
  EXPECT_EQ(to->floats[7], 7);
}

// XLA's runners for Purlin ------------------------------------------------------------------------------------------

TEST(FromXlaTest, FuturesAreMadeOnXlasOwnRunner) {
  tsl::thread::ThreadPool threads(tsl::Env::Default(), "theirs", 2);
  const std::unique_ptr<xla::AsyncWorkRunner> runner = xla::MakeThreadPoolAsyncWorkRunner(&threads);
  auto executor = FromXla(*runner);
  std::vector<Future<int>> futures;
  for (int i = 0; i < 100; ++i) {
    futures.push_back(MakeFutureOn<int>(executor, [&threads, i] { return threads.CurrentThreadId() >= 0 ? i : -1; }));
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(futures[static_cast<std::size_t>(i)].Await().value(), i);
}

TEST(FromXlaTest, AnEmptyTaskIsRefused) {
  auto executor = FromTsl(tsl::InlineExecutor::Instance());
  Task gone([] {});
  std::move(gone).Run();
  EXPECT_EQ(executor.Execute(std::move(gone)).code(), StatusCode::kInvalidArgument);
}

TEST(FromXlaTest, WhatItDropsIsTold) {
  const NoLeak no_leak;
  struct Dropping final : tsl::Executor {
    void Execute(Task task) override { const Task dropped = std::move(task); }
  } dropping;
  auto executor = FromTsl(dropping);
  auto future = MakeFutureOn<int>(executor, [counted = Counted(1)] { return counted.value; });
  EXPECT_EQ(future.Await().status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace purlin
