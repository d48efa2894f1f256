// Rule 1: a terminal state is set once; a later set is an answer, never an abort, never corruption.
//
// Here: what the files of the single types leave open. Elsewhere: two sets in a row and racing sets in event_test.cc
// and event_race_test.cc, of values in async_value_test.cc, of forwards in async_value_ref_test.cc, below zero in
// count_down_test.cc, of promises in promise_test.cc, of cancellations in cancel_test.cc.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/count_down.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

TEST(R1SetOnce, AWaiterThatSetsItsOwnEventIsToldFalse) {
  EventPromise promise("p");
  int refused = 0;
  promise.OnReady([&] {
    refused += promise.SetReady() ? 0 : 1;
    refused += promise.SetError(AbortedError("late")) ? 0 : 1;
    refused += promise.Set(OkStatus()) ? 0 : 1;
  });
  EXPECT_TRUE(promise.SetReady());
  EXPECT_EQ(refused, 3);
  EXPECT_EQ(promise.event().state(), EventState::kReady);
}

TEST(R1SetOnce, AForwardedPromiseIsSpentAndItsEventFollows) {
  for (const bool fails : {false, true}) {
    EventPromise source("source");
    EventPromise follower("follower");
    const Event event = follower.event();
    std::move(follower).Forward(source.event());
    EXPECT_FALSE(follower.SetReady());  // NOLINT(bugprone-use-after-move): the point.
    EXPECT_FALSE(follower.SetError(InternalError("x")));
    EXPECT_FALSE(event.IsReady());
    EXPECT_TRUE(source.Set(fails ? AbortedError("source") : OkStatus()));
    EXPECT_EQ(event.error(), fails ? AbortedError("source") : OkStatus());
    EXPECT_EQ(event.state(), fails ? EventState::kError : EventState::kReady);
  }
}

TEST(R1SetOnce, ForwardingAPromiseThatIsSetChangesNothing) {
  EventPromise promise("p");
  promise.SetError(AbortedError("first"));
  const Event event = promise.event();
  std::move(promise).Forward(Event::Ready());
  EXPECT_EQ(event.error(), AbortedError("first"));
}

TEST(R1SetOnce, AnEventForwardedToItselfFailsInsteadOfNeverCompleting) {
  EventPromise promise("p");
  const Event event = promise.event();
  std::move(promise).Forward(event);
  EXPECT_TRUE(IsInternal(event.error())) << event.error();
}

TEST(R1SetOnce, APromiseAssignedToItselfStillOwes) {
  EventPromise promise("p");
  EventPromise& same = promise;
  promise = std::move(same);
  const Event event = promise.event();
  ASSERT_FALSE(event.IsReady()) << "it was not abandoned";
  EXPECT_TRUE(promise.SetReady());
  EXPECT_EQ(event.state(), EventState::kReady);
}

TEST(R1SetOnce, ATaskAssignedToItselfStillRunsOnce) {
  int ran = 0;
  Task task([&ran] { ++ran; });
  Task& same = task;
  task = std::move(same);
  std::move(task).Run();
  std::move(task).Run();  // NOLINT(bugprone-use-after-move): the point.
  EXPECT_EQ(ran, 1);
}

TEST(R1SetOnce, ALosingEmplaceConstructsNothingAndLeavesItsArgument) {
  const NoLeak no_leak;
  const auto value = MakeAvailableAsyncValueRef<std::unique_ptr<int>>(std::make_unique<int>(1));
  auto late = std::make_unique<int>(2);
  EXPECT_FALSE(value.emplace(std::move(late)));
  ASSERT_NE(late, nullptr) << "not moved from";  // NOLINT(bugprone-use-after-move): the point.
  EXPECT_EQ(**value, 1);

  const auto counted = MakeAvailableAsyncValueRef<Counted>(1);
  const int made = Counted::made.load();
  EXPECT_FALSE(counted.emplace(2));
  EXPECT_EQ(Counted::made.load(), made);
}

TEST(R1SetOnce, OfEveryWayToCompleteAnIndirectValueOneWins) {
  const NoLeak no_leak;
  constexpr std::size_t kRounds = 2'000;
  const auto source = MakeAvailableAsyncValueRef<Counted>(7);
  std::vector<AsyncValueRef<Counted>> shown;
  for (std::size_t i = 0; i < kRounds; ++i) shown.push_back(MakeIndirectAsyncValueRef<Counted>());
  std::vector<std::atomic<int>> wins(kRounds);
  std::vector<std::atomic<int>> seen(kRounds);
  Together(4, [&](int index) {
    for (std::size_t i = 0; i < kRounds; ++i) {
      shown[i].AndThen([&seen, i] { seen[i].fetch_add(1); });
      bool won = false;
      if (index == 0) won = shown[i].ForwardTo(source);
      if (index == 1) won = shown[i].SetError(AbortedError("x"));
      if (index == 2) won = shown[i].emplace(8);
      if (index == 3) won = shown[i].ForwardTo(nullptr);
      if (won) wins[i].fetch_add(1);
    }
  });
  for (std::size_t i = 0; i < kRounds; ++i) {
    ASSERT_EQ(wins[i].load(), 1) << i;
    ASSERT_EQ(seen[i].load(), 4) << i;
    ASSERT_TRUE(shown[i].IsError() || shown[i]->value == 7 || shown[i]->value == 8) << i;
  }
}

TEST(R1SetOnce, ACountDownAndACancellationRaceAndOneWins) {
  const NoLeak no_leak;
  for (int round = 0; round < 500; ++round) {
    const CountDownAsyncValueRef<Counted> all(3);
    const AsyncValueRef<Counted> value = all.AsRef();
    std::atomic<int> wins{0};
    std::atomic<int> seen{0};
    value.AndThen([&seen] { seen.fetch_add(1); });
    Together(4, [&](int index) {
      CountDownAsyncValueRef<Counted> mine = all;
      const bool won = index == 3 ? value.SetError(CancelledError("enough")) : mine.CountDown();
      if (won) wins.fetch_add(1);
    });
    ASSERT_EQ(wins.load(), 1);
    ASSERT_EQ(seen.load(), 1);
    ASSERT_EQ(all.left(), 0U) << "counted, whoever won";
  }
}

}  // namespace
}  // namespace purlin
