// What closes a cycle fails, with an error that names it: events, promises, values, futures, joins, in any mixture. And
// nothing of it is left behind.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/event.h"
#include "purlin/future.h"
#include "purlin/join_futures.h"
#include "purlin/promise.h"
#include "purlin/stall.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// `status` is that of what closed a cycle through an event of each of these labels.
void ExpectCycle(const Status& status, const std::vector<std::string>& labels) {
  EXPECT_TRUE(IsInternal(status)) << status;
  const std::string message(status.message());
  EXPECT_TRUE(Has(message, "would wait for itself: event '")) << message;
  for (const std::string& label : labels) EXPECT_TRUE(Has(message, "event '" + label + "' (made at ")) << message;
}

TEST(CycleTest, TwoPromisesThatAreForwardedToEachOtherFail) {
  EventPromise a("cycle: a");
  EventPromise b("cycle: b");
  const Event of_a = a.event();
  const Event of_b = b.event();
  std::move(a).Forward(of_b);
  EXPECT_FALSE(of_a.IsReady());
  std::move(b).Forward(of_a);
  ExpectCycle(of_a.error(), {"cycle: a", "cycle: b"});
  EXPECT_EQ(of_a.error(), of_b.error());
}

TEST(CycleTest, APromiseThatIsForwardedToAJoinOfItselfFails) {
  EventPromise a("cycle: joined");
  const EventPromise other("cycle: other");
  const EventPromise third("cycle: third");
  const std::array<Event, 3> events{other.event(), a.event(), third.event()};
  const Event all = WhenAll(events);
  std::move(a).Forward(all);
  ExpectCycle(events[1].error(), {"cycle: joined", "WhenAll"});
  EXPECT_FALSE(all.IsReady()) << "the others are pending";
}

TEST(CycleTest, APromiseThatIsForwardedToItsOwnFutureFailsAndIsFreed) {
  const NoLeak no_leak;
  auto [promise, future] = MakePromise<Counted>("cycle: own");
  std::move(promise).Forward(future);
  ExpectCycle(future.Await().status(), {"cycle: own"});
}

TEST(CycleTest, PromisesOfFuturesThroughMapsFail) {
  const NoLeak no_leak;
  auto [a, of_a] = MakePromise<Counted>("cycle: of a");
  auto [b, of_b] = MakePromise<Counted>("cycle: of b");
  std::move(a).Forward(of_b.Map([](const Counted& value) { return value; }, Label("cycle: map")));
  std::move(b).Forward(of_a.Map([](const Counted& value) { return value; }));
  ExpectCycle(of_b.Await().status(), {"cycle: of a", "cycle: of b", "cycle: map"});
  EXPECT_TRUE(IsInternal(of_a.Await().status()));
}

TEST(CycleTest, TwoIndirectValuesFailAndAreFreed) {
  const NoLeak no_leak;
  const AsyncValueRef<Counted> a = MakeIndirectAsyncValueRef<Counted>("cycle: indirect a");
  const AsyncValueRef<Counted> b = MakeIndirectAsyncValueRef<Counted>("cycle: indirect b");
  EXPECT_TRUE(a.ForwardTo(b));
  EXPECT_FALSE(a.IsAvailable());
  b.ForwardTo(a);
  ExpectCycle(a.GetError(), {"cycle: indirect a", "cycle: indirect b"});
  EXPECT_EQ(a.GetError(), b.GetError());
  EXPECT_EQ(a.NumRef(), 1U);
  EXPECT_EQ(b.NumRef(), 1U);
}

TEST(CycleTest, AFlatMapThatAnswersWithWhatWaitsForItFails) {
  const AsyncValueRef<int> source = MakeUnconstructedAsyncValueRef<int>("cycle: source");
  AsyncValueRef<int> answer;
  const AsyncValueRef<int> flat = source.FlatMap([&answer](int&) { return std::move(answer); }, "cycle: flat");
  answer = flat.Map([](int& value) { return value + 1; }, "cycle: plus one");
  const AsyncValueRef<int> plus_one = answer;
  EXPECT_TRUE(source.emplace(1));
  ExpectCycle(flat.GetError(), {"cycle: flat", "cycle: plus one"});
  EXPECT_TRUE(plus_one.IsError());
}

TEST(CycleTest, AMixtureOfEventsFuturesJoinsAndLargeValuesFails) {
  using Large = std::array<char, 1000>;
  EventPromise event("cycle: event");
  const Event of_event = event.event();
  auto [promise, future] = MakePromise<Large>("cycle: large");
  const Future<> ready = MakeFutureWhenReady(of_event);
  const std::vector<Future<>> members{ready, ready, ready};
  const Future<> joined = JoinFutures(Span<const Future<>>(members));
  std::move(promise).Forward(joined.Map([] { return Large{}; }));
  EXPECT_FALSE(future.IsReady());
  std::move(event).Forward(future.AsEvent());
  ExpectCycle(of_event.error(), {"cycle: event", "cycle: large"});
  EXPECT_TRUE(future.IsReady());
}

TEST(CycleTest, AChainIsNone) {
  std::vector<EventPromise> promises;
  std::vector<Event> events;
  for (int i = 0; i < 1000; ++i) {
    promises.emplace_back("link");
    events.push_back(promises.back().event());
  }
  // From the middle outwards, so that many of them are followed already.
  for (std::size_t i = 0; i < 499; ++i) {
    std::move(promises[499 - i]).Forward(events[500 - i]);
    std::move(promises[500 + i]).Forward(events[501 + i]);
  }
  EXPECT_FALSE(events[1].IsReady());
  promises[999].SetReady();
  EXPECT_TRUE(events[1].Wait().ok());
}

TEST(CycleTest, ThreadsThatCloseCyclesTogetherDoNotMissThem) {
  for (int round = 0; round < 300; ++round) {
    constexpr int kThreads = 3;
    std::vector<EventPromise> promises;
    std::vector<AsyncValueRef<int>> values;
    std::vector<Event> events;
    for (int i = 0; i < kThreads; ++i) {
      promises.emplace_back("cycle: promise of a thread");
      values.push_back(MakeIndirectAsyncValueRef<int>("cycle: value of a thread"));
      events.push_back(promises.back().event());
    }
    Together(kThreads, [&](int thread) {
      const std::size_t i = static_cast<std::size_t>(thread);
      const std::size_t next = (i + 1) % kThreads;
      std::move(promises[i]).Forward(events[next]);
      values[i].ForwardTo(values[next]);
    });
    for (int i = 0; i < kThreads; ++i) {
      ASSERT_TRUE(IsInternal(events[static_cast<std::size_t>(i)].error())) << DumpStalls();
      ASSERT_TRUE(IsInternal(values[static_cast<std::size_t>(i)].GetError())) << DumpStalls();
    }
  }
}

}  // namespace
}  // namespace purlin
