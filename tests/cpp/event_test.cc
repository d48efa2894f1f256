#include "purlin/event.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace purlin {
namespace {

using std::chrono::nanoseconds;

TEST(EventTest, DefaultHasHappened) {
  const Event event;
  EXPECT_TRUE(event.IsReady());
  EXPECT_EQ(event.state(), EventState::kReady);
  EXPECT_TRUE(event.error().ok());
  EXPECT_EQ(event.label(), "");
  EXPECT_TRUE(event.Wait().ok());
  EXPECT_TRUE(event.WaitFor(nanoseconds(0)).ok());
  EXPECT_EQ(event, Event::Ready());
}

TEST(EventTest, PendingThenReady) {
  EventPromise promise("weights copied");
  const Event event = promise.event();
  EXPECT_FALSE(event.IsReady());
  EXPECT_EQ(event.state(), EventState::kUnavailable);
  EXPECT_TRUE(event.error().ok());
  EXPECT_EQ(event.label(), "weights copied");
  EXPECT_TRUE(promise.SetReady());
  EXPECT_TRUE(event.IsReady());
  EXPECT_EQ(event.state(), EventState::kReady);
  EXPECT_TRUE(event.Wait().ok());
}

TEST(EventTest, PendingThenError) {
  EventPromise promise("p");
  const Event event = promise.event();
  EXPECT_TRUE(promise.SetError(DataLossError("cable cut")));
  EXPECT_TRUE(event.IsReady());
  EXPECT_EQ(event.state(), EventState::kError);
  EXPECT_EQ(event.error(), DataLossError("cable cut"));
  EXPECT_EQ(event.Wait(), DataLossError("cable cut"));
  EXPECT_EQ(event.WaitFor(nanoseconds(0)), DataLossError("cable cut"));
}

TEST(EventTest, BornInError) {
  const Event event = Event::Error(NotFoundError("no such file"));
  EXPECT_EQ(event.state(), EventState::kError);
  EXPECT_EQ(event.Wait(), NotFoundError("no such file"));
}

TEST(EventTest, TheFirstSetWinsAndTheSecondIsTold) {
  EventPromise ready("p");
  EXPECT_TRUE(ready.SetReady());
  EXPECT_FALSE(ready.SetReady());
  EXPECT_FALSE(ready.SetError(InternalError("late")));
  EXPECT_EQ(ready.event().state(), EventState::kReady);

  EventPromise failed("p");
  EXPECT_TRUE(failed.SetError(AbortedError("first")));
  EXPECT_FALSE(failed.SetError(InternalError("late")));
  EXPECT_FALSE(failed.SetReady());
  EXPECT_EQ(failed.event().error(), AbortedError("first"));
}

TEST(EventTest, SetChoosesByTheStatus) {
  EventPromise ready("p");
  EXPECT_TRUE(ready.Set(OkStatus()));
  EXPECT_EQ(ready.event().state(), EventState::kReady);
  EventPromise failed("p");
  EXPECT_TRUE(failed.Set(AbortedError("x")));
  EXPECT_EQ(failed.event().error(), AbortedError("x"));
}

TEST(EventTest, AnOkErrorIsABugAndSaysWhere) {
  EventPromise promise("p");
  EXPECT_TRUE(promise.SetError(OkStatus()));
  const std::uint32_t line = __LINE__ - 1;
  const Status error = promise.event().error();
  EXPECT_TRUE(IsInternal(error));
  EXPECT_EQ(error.location().line(), line);
}

TEST(EventTest, ADroppedPromiseFailsItsEventAndNamesIt) {
  std::optional<EventPromise> promise(std::in_place, "gradients");
  const Event event = promise->event();
  std::string seen;
  event.OnReady([&seen](const Status& status) { seen = status.ToString(); });
  promise.reset();
  EXPECT_EQ(event.state(), EventState::kError);
  EXPECT_TRUE(IsInternal(event.error()));
  EXPECT_NE(event.error().message().find("'gradients'"), std::string::npos) << event.error();
  EXPECT_EQ(seen, event.error().ToString()) << "waiters run as ever";
}

TEST(EventTest, ThePlaceOfADroppedPromiseIsWhereItWasMade) {
  Event event;
  {
    const EventPromise promise("p", SourceLocation("maker.cc", 12));
    event = promise.event();
  }
  EXPECT_STREQ(event.error().location().file(), "maker.cc");
  EXPECT_EQ(event.error().location().line(), 12U);
}

TEST(EventTest, APromiseThatWasSetMayGo) {
  Event event;
  {
    EventPromise promise("p");
    event = promise.event();
    promise.SetReady();
  }
  EXPECT_TRUE(event.Wait().ok());
}

TEST(EventTest, AMovedFromPromiseOwesNothing) {
  EventPromise from("p");
  const Event event = from.event();
  EventPromise to = std::move(from);
  EXPECT_FALSE(from.SetReady());  // NOLINT(bugprone-use-after-move): the contract.
  EXPECT_FALSE(from.SetError(InternalError("x")));
  EXPECT_EQ(from.event(), Event::Ready());
  EXPECT_FALSE(event.IsReady());
  EXPECT_TRUE(to.SetReady());
  EXPECT_TRUE(event.Wait().ok());
}

TEST(EventTest, AssigningToAPromiseAbandonsWhatItOwed) {
  EventPromise promise("old");
  const Event old_event = promise.event();
  promise = EventPromise("new");
  EXPECT_TRUE(IsInternal(old_event.error()));
  EXPECT_FALSE(promise.event().IsReady());
  EXPECT_TRUE(promise.SetReady());
}

TEST(EventTest, CopiesAreTheSameEvent) {
  EventPromise promise("p");
  const Event a = promise.event();
  Event b = a;
  Event c = std::move(b);
  EXPECT_EQ(b, Event::Ready());  // NOLINT(bugprone-use-after-move): the contract.
  EXPECT_EQ(a, c);
  EXPECT_NE(a, Event::Ready());
  EXPECT_NE(a, EventPromise("q").event());
  Event& same = c;
  c = same;
  c = std::move(same);
  EXPECT_EQ(a, c);
  promise.SetReady();
  EXPECT_TRUE(c.IsReady());
}

TEST(EventTest, AnEventOutlivesItsPromise) {
  auto promise = std::make_unique<EventPromise>("p");
  Event event = promise->event();
  promise->SetError(AbortedError("kept"));
  promise.reset();
  EXPECT_EQ(event.error(), AbortedError("kept"));
}

TEST(EventTest, WaitersRunInTheOrderInWhichTheyCame) {
  EventPromise promise("p");
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) promise.event().OnReady([&order, i] { order.push_back(i); });
  EXPECT_TRUE(order.empty());
  promise.SetReady();
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(EventTest, AWaiterOfATerminalEventRunsAtOnce) {
  int ran = 0;
  Event::Ready().OnReady([&ran] { ++ran; });
  EXPECT_EQ(ran, 1);
  Event::Error(AbortedError("x")).OnReady([&ran](const Status& status) { ran += IsAborted(status) ? 1 : 100; });
  EXPECT_EQ(ran, 2);
  EventPromise promise("p");
  promise.SetReady();
  promise.event().OnReady([&ran](const Status& status) { ran += status.ok() ? 1 : 100; });
  EXPECT_EQ(ran, 3);
}

TEST(EventTest, WaitersMayBeMoveOnlyAndMutable) {
  EventPromise promise("p");
  int sum = 0;
  auto five = std::make_unique<int>(5);
  promise.event().OnReady([&sum, five = std::move(five)]() mutable { sum += (*five)++; });
  promise.SetReady();
  EXPECT_EQ(sum, 5);
  promise.event().OnReady([&sum, six = std::make_unique<int>(6)](Status status) { sum += status.ok() ? *six : 0; });
  EXPECT_EQ(sum, 11);
}

/// Counts how often it is called and how many of its moved copies are destroyed alive.
struct Witness {
  explicit Witness(int* calls_in, int* ends_in) : calls(calls_in), ends(ends_in) {}
  Witness(Witness&& other) noexcept : calls(other.calls), ends(std::exchange(other.ends, nullptr)) {}
  ~Witness() {
    if (ends != nullptr) ++*ends;
  }
  void operator()() const { ++*calls; }
  int* calls;
  int* ends;
};

TEST(EventTest, WaitersAreCalledOnceAndDestroyedOnce) {
  int calls = 0;
  int ends = 0;
  EventPromise promise("p");
  promise.event().OnReady(Witness(&calls, &ends));
  EXPECT_EQ(calls + ends, 0);
  promise.SetReady();
  promise.SetReady();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(ends, 1);
  promise.event().OnReady(Witness(&calls, &ends));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(ends, 2);
}

TEST(EventTest, AWaiterMayAttachToItsOwnEvent) {
  EventPromise promise("p");
  const Event event = promise.event();
  std::vector<int> order;
  event.OnReady([&] {
    order.push_back(1);
    event.OnReady([&] { order.push_back(2); });
  });
  event.OnReady([&] { order.push_back(3); });
  promise.SetReady();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3})) << "the event is terminal, so 2 runs at once";
}

TEST(EventTest, AWaiterMayDropTheLastReferences) {
  auto promise = std::make_unique<EventPromise>("p");
  auto event = std::make_unique<Event>(promise->event());
  int ran = 0;
  event->OnReady([&] {
    event.reset();
    promise.reset();
    ++ran;
  });
  event->OnReady([&ran](const Status& status) { ran += status.ok() ? 1 : 100; });
  promise->SetReady();
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(promise, nullptr);
}

TEST(EventTest, AWaiterOfAFailedEventMayDropTheLastReferences) {
  auto promise = std::make_unique<EventPromise>("p");
  int ran = 0;
  promise->event().OnReady([&](const Status& status) {
    promise.reset();
    ran += IsAborted(status) ? 1 : 100;
  });
  promise->event().OnReady([&ran](const Status& status) { ran += IsAborted(status) ? 1 : 100; });
  promise->SetError(AbortedError("x"));
  EXPECT_EQ(ran, 2);
}

TEST(EventTest, WaitForGivesUpAndNamesTheEvent) {
  EventPromise promise("slow copy");
  const Event event = promise.event();
  for (const nanoseconds timeout : {nanoseconds(0), nanoseconds(-5), nanoseconds(1'000'000)}) {
    const Status status = event.WaitFor(timeout);
    EXPECT_TRUE(IsDeadlineExceeded(status)) << status;
    EXPECT_NE(status.message().find("'slow copy'"), std::string::npos) << status;
    EXPECT_NE(status.message().find("event_test.cc"), std::string::npos) << status;
  }
  EXPECT_EQ(event.state(), EventState::kUnavailable) << "it stays pending";
  promise.SetReady();
  EXPECT_TRUE(event.WaitFor(std::chrono::hours(1)).ok());
}

TEST(EventTest, ReferencesSaturateInsteadOfOverflowing) {
  EventPromise promise("p");
  // Laundered: gcc otherwise takes the header's first member for the whole object.
  internal::EventHeader* header = std::launder(promise.event().header());
  header->refs.store(internal::kRefsSaturated - 1);
  {
    const Event a = promise.event();
    const Event b = promise.event();
    const Event c = b;
    EXPECT_GE(header->refs.load(), internal::kRefsSaturated);
  }
  EXPECT_EQ(header->refs.load(), internal::kRefsSaturated) << "a saturated count stays";
  header->refs.store(1);  // So that the promise frees it after all.
}

TEST(EventTest, BelongsToAStreamIfItsMakerSaysSo) {
  constexpr std::uint32_t kLine = __LINE__ + 1;
  EventPromise promise(DefinitionStream{0x1234, 7}, "on a stream");
  const Event event = promise.event();
  for (const bool set : {false, true}) {
    if (set) promise.SetReady();
    ASSERT_TRUE(event.definition_stream().has_value()) << set;
    EXPECT_EQ(event.definition_stream()->stream, 0x1234U);
    EXPECT_EQ(event.definition_stream()->sequence_number, 7U);
    EXPECT_EQ(event.label(), "on a stream");
    EXPECT_EQ(event.location().line(), kLine);
  }
  EXPECT_FALSE(Event().definition_stream().has_value()) << "nobody asked a null event for its table";
  EXPECT_FALSE(EventPromise("plain").event().definition_stream().has_value());
  EXPECT_FALSE(Event::Error(AbortedError("x")).definition_stream().has_value());
  Event dropped;
  {
    const EventPromise lost(DefinitionStream{1, 1}, "lost");
    dropped = lost.event();
  }
  EXPECT_NE(dropped.error().message().find("'lost'"), std::string::npos) << dropped.error();
  EXPECT_EQ(dropped.definition_stream()->stream, 1U);
}

TEST(EventTest, KnowsItsWaitersAndReferences) {
  EventPromise promise("counted");
  const Event event = promise.event();
  EXPECT_EQ(event.NumRef(), 2U);
  EXPECT_FALSE(event.HasWaiters());
  event.OnReady([] {});
  EXPECT_TRUE(event.HasWaiters());
  {
    const Event copy = event;
    EXPECT_EQ(event.NumRef(), 3U);
  }
  promise.SetReady();
  EXPECT_FALSE(event.HasWaiters());
  EXPECT_EQ(event.NumRef(), 2U);
  EXPECT_EQ(Event().NumRef(), 0U);
  EXPECT_FALSE(Event().HasWaiters());
}

TEST(WhenAllTest, NothingOrOnlyReadyEventsIsReadyWithoutAnEvent) {
  EventPromise promise("p");
  promise.SetReady();
  EXPECT_EQ(WhenAll({}), Event::Ready());
  EXPECT_EQ(WhenAll({Event::Ready(), Event()}), Event::Ready());
  EXPECT_EQ(WhenAll({promise.event(), Event()}).state(), EventState::kReady);
}

TEST(WhenAllTest, CompletesWithTheLast) {
  std::vector<EventPromise> promises;
  std::vector<Event> events;
  for (int i = 0; i < 5; ++i) events.push_back(promises.emplace_back("p").event());
  const Event all = WhenAll(events);
  for (const std::size_t i : {3U, 0U, 4U, 1U}) {
    promises[i].SetReady();
    EXPECT_FALSE(all.IsReady());
  }
  promises[2].SetReady();
  EXPECT_EQ(all.state(), EventState::kReady);
}

TEST(WhenAllTest, TheErrorOfTheLowestIndexWinsWhoeverCameFirst) {
  for (const bool ascending : {true, false}) {
    std::vector<EventPromise> promises;
    std::vector<Event> events;
    for (int i = 0; i < 3; ++i) events.push_back(promises.emplace_back("p").event());
    const Event all = WhenAll(events);
    for (int step = 0; step < 3; ++step) {
      EXPECT_FALSE(all.IsReady()) << "an error does not complete it early";
      const int i = ascending ? step : 2 - step;
      if (i == 0) {
        promises[0].SetReady();
      } else {
        promises[static_cast<std::size_t>(i)].SetError(AbortedError(std::to_string(i)));
      }
    }
    EXPECT_EQ(all.error(), AbortedError("1"));
  }
}

TEST(WhenAllTest, KnowsErrorsThatAreThereAlready) {
  const Event failed = Event::Error(AbortedError("x"));
  EXPECT_EQ(WhenAll({Event(), failed}).error(), AbortedError("x"));
  EXPECT_EQ(WhenAll({failed}).error(), AbortedError("x"));
  EXPECT_EQ(WhenAll({failed, Event::Error(InternalError("y"))}).error(), AbortedError("x"));
  EventPromise promise("p");
  const Event all = WhenAll({failed, promise.event()});
  EXPECT_FALSE(all.IsReady());
  promise.SetError(InternalError("y"));
  EXPECT_EQ(all.error(), AbortedError("x"));
}

TEST(WhenAllTest, TheSameEventMayStandTwice) {
  EventPromise promise("p");
  const Event all = WhenAll({promise.event(), promise.event(), Event()});
  EXPECT_FALSE(all.IsReady());
  promise.SetReady();
  EXPECT_TRUE(all.Wait().ok());
}

TEST(WhenAllTest, ADroppedPromiseFailsIt) {
  Event all;
  {
    const EventPromise promise("lost");
    all = WhenAll({promise.event(), Event()});
  }
  EXPECT_NE(all.error().message().find("'lost'"), std::string::npos) << all.error();
}

TEST(WhenAllTest, MayBeNested) {
  EventPromise a("a");
  EventPromise b("b");
  EventPromise c("c");
  const Event all = WhenAll({WhenAll({a.event(), b.event()}), c.event()});
  c.SetReady();
  b.SetError(AbortedError("b"));
  EXPECT_FALSE(all.IsReady());
  a.SetReady();
  EXPECT_EQ(all.error(), AbortedError("b"));
}

}  // namespace
}  // namespace purlin
