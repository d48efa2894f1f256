// Rule 2: no completion is lost. To drop a promise, a value, a task or an executor completes what it owed with an error
// that names it.
//
// Here: drops that travel through several parts, race with new waiters, or meet threads that sleep. Elsewhere: one
// dropped promise in event_test.cc, one unset value in async_value_test.cc, executors that drop a task of Map or
// AndThen in async_value_executor_test.cc, futures in future_test.cc and promise_test.cc, serial queues in
// serial_queue_test.cc, coroutines in coroutine_test.cc, chains of a million in event_stack_test.cc and
// async_value_stack_test.cc.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/count_down.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/run_when_ready.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

using Pool = ThreadPoolAsyncWorkRunner;

/// A closure that owes an event.
struct Debtor {
  EventPromise promise;
  void operator()() { promise.SetReady(); }
};

TEST(R2NoLostCompletion, ADroppedPromiseFailsWhoFollowsIt) {
  Event event;
  {
    const EventPromise source("source");
    EventPromise follower("follower");
    event = follower.event();
    std::move(follower).Forward(source.event());
    EXPECT_FALSE(event.IsReady());
  }
  EXPECT_NE(event.error().message().find("'source'"), std::string::npos) << event.error();
}

TEST(R2NoLostCompletion, ADropTravelsThroughEveryPart) {
  Pool pool = Pool::Create({2, "test"}).value();
  auto promise = std::make_optional<EventPromise>("first");
  const Event joined = WhenAll({Event(), promise->event()});
  CountDownAsyncValueRef<Chain> counter(1);
  joined.OnReady([counter](const Status& status) mutable { counter.CountDown(status); });
  const auto mapped = counter.AsRef().Map(pool, [](Chain&) { return 1; });
  const auto shown = MakeIndirectAsyncValueRef<int>();
  ASSERT_TRUE(shown.ForwardTo(mapped));
  EventPromise last("last");
  const Event end = last.event();
  ASSERT_TRUE(pool.ScheduleWhenReady({shown.AsEvent()},
                                     [last = std::move(last)](const Status& status) mutable { last.Set(status); })
                  .ok());
  promise.reset();
  const Status error = end.Wait();
  EXPECT_TRUE(IsInternal(error)) << error;
  EXPECT_NE(error.message().find("'first'"), std::string::npos) << error;
}

TEST(R2NoLostCompletion, SleepersOfADroppedPromiseWake) {
  auto promise = std::make_optional<EventPromise>("dropped");
  const Event event = promise->event();
  std::atomic<int> woken{0};
  Together(4, [&](int index) {
    if (index == 0) return promise.reset();
    const Status status = index == 1 ? event.WaitFor(std::chrono::hours(1)) : event.Wait();
    if (IsInternal(status)) woken.fetch_add(1);
  });
  EXPECT_EQ(woken.load(), 3);
}

TEST(R2NoLostCompletion, WhoAttachesWhileAPromiseIsDroppedIsToldOnce) {
  constexpr std::size_t kRounds = 2'000;
  std::vector<std::optional<EventPromise>> promises(kRounds);
  std::vector<Event> events;
  for (auto& promise : promises) events.push_back(promise.emplace("raced").event());
  std::vector<std::atomic<int>> told(kRounds);
  Together(3, [&](int index) {
    for (std::size_t i = 0; i < kRounds; ++i) {
      if (index == 0) {
        promises[i].reset();
      } else {
        events[i].OnReady([&told, i](const Status& status) { told[i].fetch_add(IsInternal(status) ? 1 : 100); });
      }
    }
  });
  for (std::size_t i = 0; i < kRounds; ++i) ASSERT_EQ(told[i].load(), 2) << i;
}

TEST(R2NoLostCompletion, ExecutorsThatTakeNoTaskFailWhatRunWhenReadyOwes) {
  RefusingExecutor refusing;
  LyingExecutor lying;
  DeferredExecutor dropping;
  for (Executor* executor :
       {static_cast<Executor*>(&refusing), static_cast<Executor*>(&lying), static_cast<Executor*>(&dropping)}) {
    for (const bool pending : {false, true}) {
      const std::vector<AsyncValueRef<int>> values = {MakeUnconstructedAsyncValueRef<int>(),
                                                      MakeUnconstructedAsyncValueRef<int>()};
      if (!pending) {
        for (const auto& value : values) value.emplace(1);
      }
      EventPromise owed("owed");
      const Event event = owed.event();
      RunWhenReady(values, *executor, Debtor{std::move(owed)});
      for (const auto& value : values) value.emplace(1);
      dropping.DropAll();
      ASSERT_EQ(event.state(), EventState::kError);
      EXPECT_NE(event.error().message().find("'owed'"), std::string::npos) << event.error();
    }
  }
}

TEST(R2NoLostCompletion, WhatWaitsForEventsWhenItsPoolGoesFailsWhatItOwes) {
  EventPromise gate("gate");
  EventPromise owed("owed");
  const Event event = owed.event();
  {
    Pool pool = Pool::Create({1, "test"}).value();
    ASSERT_TRUE(pool.ScheduleWhenReady({gate.event()}, Debtor{std::move(owed)}).ok());
  }
  gate.SetReady();
  EXPECT_EQ(event.state(), EventState::kError);
  EXPECT_NE(event.error().message().find("'owed'"), std::string::npos) << event.error();
}

TEST(R2NoLostCompletion, TasksDroppedOnManyThreadsFailEveryResultOnce) {
  constexpr std::size_t kTasks = 500;
  std::vector<DeferredExecutor> executors(4);
  std::vector<AsyncValueRef<int>> results(4 * kTasks);
  std::atomic<std::size_t> told{0};
  Together(4, [&](int index) {
    DeferredExecutor& mine = executors[static_cast<std::size_t>(index)];
    for (std::size_t i = 0; i < kTasks; ++i) {
      AsyncValueRef<int>& result = results[static_cast<std::size_t>(index) * kTasks + i];
      result = MakeAsyncValueRef(mine, [] { return 1; }, "dropped");
      result.AndThen([&told](const Status& status) { told.fetch_add(IsCancelled(status) ? 1 : 1'000'000); });
    }
    mine.DropAll();
  });
  EXPECT_EQ(told.load(), 4 * kTasks);
}

TEST(R2NoLostCompletion, NullValuesAmongSeveralAreErrorsAndNotWaitedFor) {
  auto pending = MakeUnconstructedAsyncValueRef<int>();
  const std::vector<AsyncValueRef<int>> values = {nullptr, pending};
  int plain = 0;
  Status seen;
  RunWhenReady(values, [&plain] { ++plain; });
  RunWhenReady(values, [&seen](Status status) { seen = std::move(status); });
  EXPECT_EQ(plain, 0);
  pending.emplace(1);
  EXPECT_EQ(plain, 1);
  EXPECT_TRUE(IsFailedPrecondition(seen)) << seen;
}

}  // namespace
}  // namespace purlin
