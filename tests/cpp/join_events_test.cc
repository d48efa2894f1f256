// Joins of events whose error policy the caller names. WhenAll with the default policy is in event_test.cc.
#include "purlin/join_events.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/error_policy.h"
#include "purlin/event.h"

namespace purlin {
namespace {

struct Three {
  EventPromise promises[3] = {EventPromise("a"), EventPromise("b"), EventPromise("c")};
  std::vector<Event> events = {promises[0].event(), promises[1].event(), promises[2].event()};
};

JoinOptions With(ErrorPolicy policy) {
  JoinOptions options;
  options.policy = policy;
  return options;
}

TEST(JoinEventsTest, WaitsForAllAndFailsAsThePolicySays) {
  const std::vector<std::pair<ErrorPolicy, std::string>> expected{
      {ErrorPolicy::kFirstByIndex, "zero"}, {ErrorPolicy::kFirstInTime, "two"}, {ErrorPolicy::kLastInTime, "zero"}};
  for (const auto& [policy, message] : expected) {
    Three three;
    const Event all = WhenAll(three.events, With(policy));
    three.promises[2].SetError(DataLossError("two"));
    three.promises[1].SetReady();
    EXPECT_FALSE(all.IsReady());
    three.promises[0].SetError(AbortedError("zero"));
    EXPECT_EQ(all.error().message(), message);
  }
  Three three;
  const Event all = WhenAll(three.events, With(ErrorPolicy::kAll));
  three.promises[2].SetError(DataLossError("two"));
  three.promises[1].SetReady();
  three.promises[0].SetError(AbortedError("zero"));
  EXPECT_TRUE(IsAborted(all.error())) << all.error();
  EXPECT_NE(all.error().message().find("two"), std::string_view::npos) << all.error();
  EXPECT_NE(all.error().message().find("zero"), std::string_view::npos) << all.error();
}

TEST(JoinEventsTest, FailsFastIfAsked) {
  Three three;
  const Event all = WhenAll(three.events, {ErrorPolicy::kLastInTime, /*fail_fast=*/true});
  three.promises[1].SetError(DataLossError("one"));
  EXPECT_TRUE(IsDataLoss(all.error()));
  three.promises[0].SetError(AbortedError("zero"));
  three.promises[2].SetReady();
  EXPECT_TRUE(IsDataLoss(all.error())) << "a terminal state does not change";
}

TEST(JoinEventsTest, OfOneOrOfReadyEventsNeedsNoEvent) {
  EventPromise promise("one");
  EXPECT_EQ(WhenAll({promise.event()}, With(ErrorPolicy::kLastInTime)), promise.event());
  EXPECT_EQ(WhenAll({Event(), Event()}, With(ErrorPolicy::kAll)).NumRef(), 0U);
  EXPECT_TRUE(WhenAll({}, With(ErrorPolicy::kFirstInTime)).IsReady());
  EXPECT_EQ(AfterAll({}).NumRef(), 0U);
}

TEST(AfterAllTest, HappensAfterTheLastWhateverBecameOfThem) {
  Event all;
  {
    Three three;
    all = AfterAll(three.events);
    three.promises[0].SetError(AbortedError("zero"));
    three.promises[1].SetReady();
    EXPECT_FALSE(all.IsReady());
  }
  EXPECT_EQ(all.state(), EventState::kReady) << "the third was given up";
  EXPECT_EQ(AfterAll({Event::Error(AbortedError("x")), Event()}).state(), EventState::kReady);
}

TEST(AfterAllTest, HappensOnceWhenItsEventsRace) {
  for (int round = 0; round < 100; ++round) {
    Three three;
    int calls = 0;
    const Event all = AfterAll(three.events);
    all.OnReady([&calls] { ++calls; });
    std::vector<std::thread> threads;
    for (EventPromise& promise : three.promises) {
      threads.emplace_back([&promise] { promise.SetError(AbortedError("x")); });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(all.Wait().ok());
    ASSERT_EQ(calls, 1);
  }
}

TEST(FirstErrorOfTest, LooksAtWhatHasFailedByNowAndWaitsForNothing) {
  EventPromise pending("pending");
  const Event first = Event::Error(DataLossError("first"));
  const Event second = Event::Error(AbortedError("second"));
  EXPECT_TRUE(FirstErrorOf({}).ok());
  EXPECT_TRUE(FirstErrorOf({pending.event(), Event()}).ok());
  EXPECT_EQ(FirstErrorOf({pending.event(), first, second}), DataLossError("first"));
  pending.SetError(InternalError("pending"));
  EXPECT_TRUE(IsInternal(FirstErrorOf({pending.event(), first, second})));
}

TEST(DeleteWhenReadyTest, KeepsTheObjectUntilTheEventIsTerminal) {
  auto object = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = object;
  {
    EventPromise promise("uses it");
    DeleteWhenReady(promise.event(), std::move(object));
    EXPECT_FALSE(watch.expired());
    promise.SetReady();
    EXPECT_TRUE(watch.expired());
  }
  object = std::make_shared<int>(2);
  const std::weak_ptr<int> other = object;
  {
    EventPromise dropped("dropped");
    DeleteWhenReady(dropped.event(), std::make_unique<std::shared_ptr<int>>(std::move(object)));
    EXPECT_FALSE(other.expired());
  }
  EXPECT_TRUE(other.expired()) << "also when it fails";
  object = std::make_shared<int>(3);
  const std::weak_ptr<int> last = object;
  DeleteWhenReady(Event::Ready(), std::move(object));
  EXPECT_TRUE(last.expired()) << "at once";
}

TEST(JoinEventsTest, KnowWhereTheyWereMade) {
  EventPromise a("a");
  EventPromise b("b");
  const std::vector<Event> events = {a.event(), b.event()};
  const std::uint32_t here = __LINE__;
  EXPECT_EQ(WhenAll(events).location().line(), here + 1);
  EXPECT_EQ(WhenAll(events, With(ErrorPolicy::kFirstInTime)).location().line(), here + 2);
  EXPECT_EQ(AfterAll(events).location().line(), here + 3);
  EXPECT_NE(std::string(AfterAll(events).location().file()).find("join_events_test.cc"), std::string::npos);
}

}  // namespace
}  // namespace purlin
