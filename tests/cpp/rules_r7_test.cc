// Rule 7: every wait can end by a local deadline, and says what it waited for; a wait that ended so changes nothing.
//
// Here: waits of every kind that are still pending, and waits that end early beside others that do not. Elsewhere:
// timeouts of one event in event_test.cc and, raced, in event_race_test.cc, of one value in async_value_test.cc, of
// futures in future_test.cc, of semaphores in semaphore_test.cc, deadlines of events in timer_test.cc, pools that
// cannot wait for themselves in executor_test.cc, elastic_pool_test.cc and serial_queue_test.cc.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/count_down.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

using std::chrono::nanoseconds;
using Pool = ThreadPoolAsyncWorkRunner;

/// Sleeps until `event` has a waiter.
void AwaitWaiter(const Event& event) {
  while (!event.HasWaiters()) std::this_thread::yield();
}

TEST(R7EveryWaitHasADeadline, PendingEventsOfEveryOriginGiveUpAndStayPending) {
  Pool pool = Pool::Create({1, "test"}).value();
  EventPromise promise("origin");
  auto value = MakeUnconstructedAsyncValueRef<int>("origin");
  const auto shown = MakeIndirectAsyncValueRef<int>("shown");
  ASSERT_TRUE(shown.ForwardTo(value));
  const CountDownAsyncValueRef<Chain> counter(2, {}, "counter");
  EventPromise follower("follower");
  const Event followed = follower.event();
  std::move(follower).Forward(promise.event());
  EventPromise owed("owed");
  const Event scheduled = owed.event();
  ASSERT_TRUE(pool.ScheduleWhenReady({promise.event()}, [&owed] { owed.SetReady(); }).ok());
  const std::vector<Event> events = {promise.event(),
                                     value.AsEvent(),
                                     shown.AsEvent(),
                                     counter.AsRef().AsEvent(),
                                     followed,
                                     scheduled,
                                     WhenAll({promise.event(), value.AsEvent()}),
                                     value.Map([](int& n) { return n; }, "mapped").AsEvent(),
                                     value.Map(pool, [](int& n) { return n; }, "in a task").AsEvent()};
  for (const Event& event : events) {
    for (const nanoseconds timeout : {nanoseconds::min(), nanoseconds(0), nanoseconds(100'000)}) {
      const Status status = event.WaitFor(timeout);
      EXPECT_TRUE(IsDeadlineExceeded(status)) << event.label() << ": " << status;
      EXPECT_NE(status.message().find("'" + std::string(event.label()) + "'"), std::string::npos) << status;
    }
    EXPECT_EQ(event.state(), EventState::kUnavailable) << event.label();
  }
  promise.SetReady();
  value.emplace(1);
  CountDownAsyncValueRef<Chain> rest = counter;
  rest.CountDown(2);
  for (const Event& event : events) EXPECT_TRUE(event.WaitFor(std::chrono::hours(1)).ok()) << event.label();
}

TEST(R7EveryWaitHasADeadline, ReadyOnesAnswerWhateverTheDeadline) {
  const auto value = MakeAvailableAsyncValueRef<int>(1);
  for (const nanoseconds timeout : {nanoseconds::min(), nanoseconds(-1), nanoseconds(0), nanoseconds::max()}) {
    EXPECT_TRUE(Event().WaitFor(timeout).ok());
    EXPECT_TRUE(value.WaitFor(timeout).ok());
    EXPECT_TRUE(IsFailedPrecondition(AsyncValueRef<int>().WaitFor(timeout))) << "null is an error, and not waited for";
  }
}

TEST(R7EveryWaitHasADeadline, BlockUntilReadyOfAPendingValueEndsWithIt) {
  for (const bool fails : {false, true}) {
    const auto value = MakeUnconstructedAsyncValueRef<int>();
    std::atomic<int> right{0};
    Together(4, [&](int index) {
      if (index == 0) {
        AwaitWaiter(value.AsEvent());
        fails ? value.SetError(AbortedError("x")) : value.emplace(3);
        return;
      }
      const Status status = index == 1 ? BlockUntilReady(value.AsPtr()) : BlockUntilReady(value);
      if (fails ? IsAborted(status) : status.ok() && *value == 3) right.fetch_add(1);
    });
    EXPECT_EQ(right.load(), 3);
  }
}

TEST(R7EveryWaitHasADeadline, AWaitThatGivesUpDisturbsNoOther) {
  EventPromise promise("p");
  const Event event = promise.event();
  std::atomic<int> gave_up{0};
  std::atomic<int> saw_it{0};
  int called = 0;
  event.OnReady([&called] { ++called; });
  Together(4, [&](int index) {
    if (index == 0) {
      while (gave_up.load() < 2) std::this_thread::yield();
      EXPECT_FALSE(event.IsReady());
      promise.SetReady();
    } else if (index == 1) {
      if (event.WaitFor(nanoseconds::max()).ok()) saw_it.fetch_add(1);
    } else {
      if (IsDeadlineExceeded(event.WaitFor(std::chrono::microseconds(50)))) gave_up.fetch_add(1);
      if (event.Wait().ok()) saw_it.fetch_add(1);
    }
  });
  EXPECT_EQ(saw_it.load(), 3);
  EXPECT_EQ(called, 1);
}

}  // namespace
}  // namespace purlin
