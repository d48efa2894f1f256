#include "purlin/elastic_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <thread>
#include <utility>

namespace purlin {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

ElasticPoolOptions Options(std::size_t max_threads, nanoseconds idle_timeout) {
  ElasticPoolOptions options;
  options.max_threads = max_threads;
  options.idle_timeout = idle_timeout;
  options.name = "elastic";
  return options;
}

TEST(ElasticPoolTest, OptionsThatMakeNoSenseAreRefusedAndNamed) {
  EXPECT_TRUE(IsInvalidArgument(ElasticPool::Create(Options(0, hours(1))).status()));
  EXPECT_TRUE(IsInvalidArgument(ElasticPool::Create(Options(4097, hours(1))).status()));
  ElasticPoolOptions options = Options(1, hours(1));
  options.stack_size_bytes = static_cast<std::size_t>(-1);
  EXPECT_TRUE(IsInvalidArgument(ElasticPool::Create(options).status()));
  for (const std::string_view name : {std::string_view(), std::string_view("a\0b", 3), std::string_view("\xff")}) {
    options = Options(1, hours(1));
    options.name = name;
    EXPECT_TRUE(IsInvalidArgument(ElasticPool::Create(options).status()));
  }
}

TEST(ElasticPoolTest, TasksThatBlockGetAThreadEachUpToTheCap) {
  ElasticPool pool = ElasticPool::Create(Options(3, hours(1))).value();
  EXPECT_EQ(pool.NumThreads(), 0U);
  EventPromise gate("gate");
  std::atomic<int> inside{0};
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(pool.Schedule([&inside, open = gate.event()] {
                      inside.fetch_add(1);
                      static_cast<void>(open.Wait());
                    })
                    .ok());
  }
  while (inside.load() < 3) std::this_thread::yield();
  EXPECT_EQ(pool.NumThreads(), 3U);
  gate.SetReady();
  EXPECT_TRUE(pool.Shutdown().ok());
  EXPECT_EQ(inside.load(), 5);
  EXPECT_EQ(pool.NumThreads(), 0U);
  EXPECT_TRUE(IsCancelled(pool.Schedule([] {})));
}

TEST(ElasticPoolTest, IdleThreadsGo) {
  ElasticPool pool = ElasticPool::Create(Options(2, nanoseconds(-1))).value();
  std::atomic<int> ran{0};
  for (int i = 1; i <= 50; ++i) {
    ASSERT_TRUE(pool.Schedule([&ran] { ran.fetch_add(1); }).ok());
    while (pool.NumThreads() > 0) std::this_thread::yield();
    ASSERT_EQ(ran.load(), i);
  }
}

TEST(ElasticPoolTest, R8ShutdownsThatDoNotDrainDestroyWhatIsQueued) {
  for (const bool by_deadline : {false, true}) {
    ElasticPool pool = ElasticPool::Create(Options(1, hours(1))).value();
    EventPromise gate("gate");
    EventPromise started("started");
    EventPromise promise("owed");
    const Event owed = promise.event();
    ASSERT_TRUE(pool.Schedule([&started, open = gate.event()] {
                      started.SetReady();
                      static_cast<void>(open.Wait());
                    })
                    .ok());
    ASSERT_TRUE(started.event().Wait().ok());
    ASSERT_TRUE(pool.Schedule([promise = std::move(promise)]() mutable { promise.SetReady(); }).ok());
    if (by_deadline) {
      const Status status = pool.ShutdownBy(steady_clock::now());
      EXPECT_TRUE(IsDeadlineExceeded(status)) << status;
    } else {
      owed.OnReady([&gate] { gate.SetReady(); });
      EXPECT_TRUE(pool.ShutdownCancelPending().ok());
    }
    EXPECT_TRUE(IsInternal(owed.Wait())) << owed.error();
    gate.SetReady();
    EXPECT_TRUE(pool.Shutdown().ok());
  }
}

TEST(ElasticPoolTest, R7ATaskCannotShutItsOwnPoolDown) {
  ElasticPool pool = ElasticPool::Create(Options(1, hours(1))).value();
  EventPromise done("done");
  const Event event = done.event();
  ASSERT_TRUE(pool.Schedule([&pool, &done] { done.Set(pool.Shutdown()); }).ok());
  EXPECT_TRUE(IsFailedPrecondition(event.Wait())) << event.error();
}

TEST(ElasticPoolTest, TheLastHandleDrains) {
  std::atomic<int> ran{0};
  {
    ElasticPool pool = ElasticPool::Create(Options(1, hours(1))).value();
    ElasticPool copy = pool;
    const ElasticPool moved = std::move(copy);
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(pool.Schedule([&ran] { ran.fetch_add(1); }).ok());
  }
  EXPECT_EQ(ran.load(), 100);
}

}  // namespace
}  // namespace purlin
