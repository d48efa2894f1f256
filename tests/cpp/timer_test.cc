// Times are never asserted: that a timer does not come early is tested in Rust, with a clock that a test moves.
#include "purlin/timer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

namespace purlin {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::steady_clock;

TEST(TimerTest, HappensWhenItsTimeComesAndAtOnceWhenThatHasPassed) {
  const Timer near = Timer::After(microseconds(50), "near");
  const Timer past = Timer::At(steady_clock::now() - hours(1), "past");
  const Timer least = Timer::At(steady_clock::time_point::min());
  const Timer negative = Timer::After(-hours(1));
  EXPECT_TRUE(near.event().Wait().ok());
  EXPECT_TRUE(past.event().Wait().ok());
  EXPECT_TRUE(least.event().Wait().ok());
  EXPECT_TRUE(negative.event().Wait().ok());
  EXPECT_EQ(near.event().label(), "near");
}

TEST(TimerTest, R2CancellingOrDestroyingItTells) {
  Timer timer = Timer::At(steady_clock::time_point::max(), "far");
  const Event cancelled = timer.event();
  EXPECT_TRUE(timer.Cancel());
  EXPECT_FALSE(timer.Cancel());
  EXPECT_TRUE(IsCancelled(cancelled.error()));
  EXPECT_NE(cancelled.error().message().find("'far'"), std::string::npos) << cancelled.error();
  Event dropped;
  {
    Timer mine = Timer::After(hours(1));
    dropped = mine.event();
    mine = Timer::After(hours(2));
    EXPECT_TRUE(IsCancelled(dropped.error())) << "assigning cancels what was there";
    dropped = mine.event();
  }
  EXPECT_TRUE(IsCancelled(dropped.error()));
}

TEST(TimerTest, ADetachedOneHappensWithoutAnOwner) {
  Timer timer = Timer::After(microseconds(50));
  const Event event = timer.event();
  timer.Detach();
  EXPECT_TRUE(timer.event().IsReady()) << "empty";
  EXPECT_TRUE(event.Wait().ok());
}

TEST(WithDeadlineTest, R7FailsAtTheDeadlineAndNamesTheEvent) {
  EventPromise promise("copy");
  const Event event = WithTimeout(promise.event(), microseconds(50));
  const Status status = event.Wait();
  EXPECT_TRUE(IsDeadlineExceeded(status)) << status;
  EXPECT_NE(status.message().find("'copy'"), std::string::npos) << status;
  EXPECT_FALSE(promise.event().IsReady());
  EXPECT_TRUE(promise.SetReady());
  EXPECT_TRUE(IsDeadlineExceeded(event.error()));
}

TEST(WithDeadlineTest, CompletesAsTheEventDoes) {
  EventPromise good("good");
  EventPromise bad("bad");
  const Event good_event = WithTimeout(good.event(), hours(1));
  const Event bad_event = WithDeadline(bad.event(), steady_clock::now() + hours(1));
  good.SetReady();
  bad.SetError(AbortedError("x"));
  EXPECT_TRUE(good_event.Wait().ok());
  EXPECT_EQ(bad_event.Wait(), AbortedError("x"));
  EXPECT_EQ(WithTimeout(good.event(), hours(1)), good.event());
  EXPECT_TRUE(WithTimeout(Event(), hours(0)).IsReady());
}

}  // namespace
}  // namespace purlin
