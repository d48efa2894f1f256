// Executors, pools and queues, by tsl's names. See api.h.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/compat/api.h"

namespace {

using Pool = tsl::thread::ThreadPool;
using Params = Pool::SchedulingParams;

TEST(CompatExecutorTest, ATaskIsCalledAsAnRvalue) {
  int calls = 0;
  tsl::Executor::Task task = [&calls, owned = std::make_unique<int>(2)] { calls += *owned; };
  EXPECT_TRUE(static_cast<bool>(task));
  std::move(task)();
  EXPECT_EQ(calls, 2);
}

TEST(CompatExecutorTest, TheInlineExecutorRunsATaskAtOnce) {
  int calls = 0;
  tsl::Executor& executor = tsl::InlineExecutor::Instance();
  executor.Execute([&calls] { ++calls; });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(&tsl::InlineExecutor::Instance(), &executor);
}

TEST(CompatExecutorTest, AnExecutorOfTheUsersKeepsTasks) {
  LaterExecutor executor;
  int calls = 0;
  tsl::Executor& base = executor;
  base.Execute([&calls] { ++calls; });
  base.Execute([&] { base.Execute([&calls] { ++calls; }); });
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(executor.RunAll(), 3U);
  EXPECT_EQ(calls, 2);
}

TEST(CompatPoolTest, RunsWhatIsScheduledAndEndsAfterIt) {
  std::atomic<int> calls{0};
  {
    Pool pool(tsl::Env::Default(), "pool", 3);
    EXPECT_EQ(pool.NumThreads(), 3);
    for (int i = 0; i < 100; ++i) pool.Schedule([&calls] { ++calls; });
  }
  EXPECT_EQ(calls.load(), 100);
}

TEST(CompatPoolTest, AThreadKnowsItsNumber) {
  std::atomic<int> seen{-2};
  {
    Pool pool(tsl::Env::Default(), "pool", 2);
    EXPECT_EQ(pool.CurrentThreadId(), -1);
    pool.Schedule([&] { seen = pool.CurrentThreadId(); });
  }
  EXPECT_GE(seen.load(), 0);
  EXPECT_LT(seen.load(), 2);
}

TEST(CompatPoolTest, ParallelForCoversTheRangeOnce) {
  Pool pool(tsl::Env::Default(), "pool", 2);
  for (const std::int64_t cost : {1, 1'000, 1'000'000}) {
    for (const std::int64_t total : {0, 1, 7, 1'000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(total));
      pool.ParallelFor(total, Params::Adaptive(cost), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit.load(), 1);
    }
  }
}

TEST(CompatPoolTest, ParallelForOfCostlyUnitsUsesMoreThanOneCall) {
  Pool pool(tsl::Env::Default(), "pool", 2);
  std::atomic<int> calls{0};
  pool.ParallelFor(100, Params::Adaptive(1'000'000), [&](std::int64_t, std::int64_t) { ++calls; });
  EXPECT_GT(calls.load(), 1);
}

TEST(CompatPoolTest, ParallelForOfCheapUnitsIsOneCall) {
  Pool pool(tsl::Env::Default(), "pool", 2);
  std::atomic<int> calls{0};
  pool.ParallelFor(100, Params::Adaptive(1), [&](std::int64_t begin, std::int64_t end) {
    EXPECT_EQ(end - begin, 100);
    ++calls;
  });
  EXPECT_EQ(calls.load(), 1);
}

TEST(CompatPoolTest, ParallelForInFixedBlocksHasCallsOfThatLength) {
  Pool pool(tsl::Env::Default(), "pool", 2);
  std::atomic<int> calls{0};
  pool.ParallelFor(100, Params::Fixed(25), [&](std::int64_t begin, std::int64_t end) {
    EXPECT_LE(end - begin, 25);
    ++calls;
  });
  EXPECT_GE(calls.load(), 4);
  std::atomic<int> units{0};
  pool.ParallelFor(10, [&](std::int64_t begin, std::int64_t end) { units += static_cast<int>(end - begin); });
  EXPECT_EQ(units.load(), 10);
}

TEST(CompatPoolTest, IsAnExecutorForValues) {
  Pool pool(tsl::Env::Default(), "pool", 2);
  tsl::AsyncValueRef<int> value = tsl::MakeAvailableAsyncValueRef<int>(20);
  const tsl::AsyncValueRef<int> twice = value.Map(*pool.AsExecutor(), [](int number) { return 2 * number; });
  tsl::BlockUntilReady(twice);
  EXPECT_EQ(*twice, 40);
}

TEST(CompatPoolTest, WorkerIdsAreSmall) {
  Pool pool(tsl::Env::Default(), "pool", 3);
  std::atomic<std::int64_t> units{0};
  pool.ParallelForWithWorkerId(100, Params::Adaptive(1'000'000), [&](std::int64_t begin, std::int64_t end, int id) {
    EXPECT_GE(id, 0);
    EXPECT_LE(id, 3);
    units += end - begin;
  });
  EXPECT_EQ(units.load(), 100);
}

TEST(CompatQueueTest, AnUnboundedQueueRunsTasksThatBlockEachOther) {
  // Each waits for the next one, so they need as many threads.
  constexpr std::size_t kTasks = 8;
  std::vector<tsl::AsyncValueRef<tsl::Chain>> done;
  for (std::size_t i = 0; i < kTasks; ++i) done.push_back(tsl::MakeConstructedAsyncValueRef<tsl::Chain>());
  {
    tsl::UnboundedWorkQueue queue(tsl::Env::Default(), "queue");
    for (std::size_t i = 0; i < kTasks; ++i) {
      queue.Schedule([&done, i] {
        if (i + 1 < kTasks) tsl::BlockUntilReady(done[i + 1]);
        done[i].SetStateConcrete();
      });
    }
    tsl::BlockUntilReady(done[0]);
  }
  for (const auto& value : done) EXPECT_TRUE(value.IsConcrete());
}

TEST(CompatQueueTest, ValuesAreSetOnAPoolAndReadHere) {
  Pool pool(tsl::Env::Default(), "pool", 2);
  tsl::AsyncValueRef<int> value = tsl::MakeUnconstructedAsyncValueRef<int>();
  tsl::AsyncValueRef<int> twice = value.Map([](int number) { return 2 * number; });
  pool.Schedule([value] { value.emplace(4); });
  tsl::BlockUntilReady(twice);
  EXPECT_EQ(*twice, 8);
}

}  // namespace
