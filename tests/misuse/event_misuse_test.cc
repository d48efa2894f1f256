// Event, EventPromise, joins of events, StreamEventMap, Status, StatusOr, Span.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/join_events.h"
#include "purlin/stall.h"
#include "purlin/stream_event_map.h"
#include "tests/cpp/testing.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr auto kNever = static_cast<ErrorPolicy>(77);

TEST(EventMisuse, AMovedFromEventHasHappened) {
  EventPromise promise("moved");
  Event event = promise.event();
  const Event taken = std::move(event);
  EXPECT_TRUE(event.IsReady());
  EXPECT_EQ(event.state(), EventState::kReady);
  EXPECT_TRUE(Ok(event.Wait()));
  EXPECT_EQ(event.label(), "");
  EXPECT_EQ(event.NumRef(), 0U);
  EXPECT_FALSE(event.definition_stream().has_value());
  promise.SetReady();
}

TEST(EventMisuse, AssigningAnEventToItselfChangesNothing) {
  EventPromise promise("self");
  Event event = promise.event();
  Event& same = event;
  event = same;
  event = std::move(same);
  EXPECT_FALSE(event.IsReady());
  EXPECT_EQ(event.NumRef(), 2U);
  promise.SetReady();
}

TEST(EventMisuse, TheSecondSetIsToldSo) {
  EventPromise promise("twice");
  EXPECT_TRUE(promise.SetReady());
  EXPECT_FALSE(promise.SetReady());
  EXPECT_FALSE(promise.SetError(InternalError("late")));
  EXPECT_TRUE(Ok(promise.event()));
}

TEST(EventMisuse, TheFirstErrorStays) {
  EventPromise promise("twice");
  EXPECT_TRUE(promise.SetError(DataLossError("first")));
  EXPECT_FALSE(promise.SetError(InternalError("second")));
  EXPECT_FALSE(promise.SetReady());
  EXPECT_TRUE(Fails(promise.event(), StatusCode::kDataLoss, {"first"}));
}

TEST(EventMisuse, AMovedFromPromiseOwesNothing) {
  EventPromise promise("moved");
  EventPromise taken = std::move(promise);
  EXPECT_FALSE(promise.SetReady());
  EXPECT_FALSE(promise.SetError(InternalError("nobody")));
  EXPECT_FALSE(promise.Set(OkStatus()));
  EXPECT_TRUE(promise.event().IsReady());
  std::move(promise).Forward(Event::Error(InternalError("nobody")));
  int calls = 0;
  promise.OnReady([&calls] { ++calls; });
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(taken.event().IsReady());
  taken.SetReady();
}

TEST(EventMisuse, AnErrorThatIsOkIsABugOfTheCaller) {
  EventPromise promise("ok");
  EXPECT_TRUE(promise.SetError(OkStatus()));
  EXPECT_TRUE(Fails(promise.event(), StatusCode::kInternal, {"OK status"}));
  EXPECT_TRUE(Fails(Event::Error(OkStatus()), StatusCode::kInternal, {"OK status"}));
}

TEST(EventMisuse, ADroppedPromiseFailsByName) {
  Event event;
  {
    event = EventPromise("dropped").event();
  }
  EXPECT_TRUE(Fails(event, StatusCode::kInternal, {"'dropped'"}));
  EXPECT_NE(std::string(event.error().location().file()).find("event_misuse_test.cc"), std::string::npos);
}

TEST(EventMisuse, AnAssignedPromiseIsDroppedFirst) {
  EventPromise promise("old");
  const Event old = promise.event();
  promise = EventPromise("new");
  EXPECT_TRUE(Fails(old, StatusCode::kInternal, {"'old'"}));
  EXPECT_FALSE(promise.event().IsReady());
  promise.SetReady();
}

TEST(EventMisuse, SettingInAWaiterOfTheSameEventAnswersFalse) {
  EventPromise promise("own waiter");
  bool answered = true;
  promise.OnReady([&] { answered = promise.SetError(InternalError("inside")); });
  EXPECT_TRUE(promise.SetReady());
  EXPECT_FALSE(answered);
  EXPECT_TRUE(Ok(promise.event()));
}

TEST(EventMisuse, WaitingInAWaiterOfTheSameEventAnswersAtOnce) {
  EventPromise promise("own waiter");
  Status seen = InternalError("not called");
  const Event event = promise.event();
  event.OnReady([&] { seen = event.Wait(); });
  promise.SetReady();
  EXPECT_TRUE(Ok(seen));
}

TEST(EventMisuse, AttachingInAWaiterOfTheSameEventRunsOnce) {
  EventPromise promise("again");
  int calls = 0;
  const Event event = promise.event();
  event.OnReady([&] {
    event.OnReady([&] { ++calls; });
    ++calls;
  });
  promise.SetReady();
  EXPECT_EQ(calls, 2);
}

TEST(EventMisuse, AWaiterMayDestroyThePromise) {
  auto promise = std::make_unique<EventPromise>("destroyed inside");
  const Event event = promise->event();
  event.OnReady([&] { promise.reset(); });
  EXPECT_TRUE(EventPromise(std::move(*promise)).SetReady());
  EXPECT_TRUE(Ok(event));
  EXPECT_EQ(promise, nullptr);
}

TEST(EventMisuse, AWaiterMayDropTheLastReference) {
  auto event = std::make_unique<Event>();
  EventPromise promise("last");
  *event = promise.event();
  event->OnReady([&] { event.reset(); });
  promise.SetReady();
  EXPECT_EQ(event, nullptr);
}

TEST(EventMisuse, AnEventThatFollowsItselfFails) {
  EventPromise promise("circle of one");
  const Event event = promise.event();
  std::move(promise).Forward(event);
  EXPECT_TRUE(Fails(event.WaitFor(seconds(10)), StatusCode::kInternal, {"'circle of one'"}));
}

TEST(EventMisuse, ATimeoutThatIsNegativeOrEnormousIsOne) {
  EventPromise promise("patient");
  const Event event = promise.event();
  EXPECT_TRUE(Fails(event.WaitFor(nanoseconds(-1)), StatusCode::kDeadlineExceeded, {"'patient'"}));
  EXPECT_TRUE(Fails(event.WaitFor(nanoseconds::min()), StatusCode::kDeadlineExceeded, {"'patient'"}));
  std::thread setter([&] { promise.SetReady(); });
  EXPECT_TRUE(Ok(event.WaitFor(nanoseconds::max())));
  setter.join();
}

TEST(EventMisuse, ALabelThatIsNullIsEmpty) {
  const char* nothing = nullptr;
  EventPromise promise{Label(nothing)};
  EXPECT_EQ(promise.event().label(), "");
  const Event event = promise.event();
  {
    const EventPromise gone = std::move(promise);
  }
  EXPECT_TRUE(Fails(event, StatusCode::kInternal));
}

TEST(EventMisuse, ALabelThatIsNotUtf8IsShownAllTheSame) {
  Event event;
  {
    event = EventPromise(Label("caf\xE9 \xFF\xFE")).event();
  }
  EXPECT_TRUE(Fails(event, StatusCode::kInternal, {"caf\xEF\xBF\xBD"}));
}

TEST(EventMisuse, AStreamWithoutANumberIsNone) {
  EventPromise promise(DefinitionStream{0, 0}, "no stream");
  const auto definition = promise.event().definition_stream();
  EXPECT_TRUE(!definition.has_value() || (definition->stream == 0 && definition->sequence_number == 0));
  promise.SetReady();
}

TEST(EventMisuse, ManySettersOneWinner) {
  for (int round = 0; round < 200; ++round) {
    EventPromise promise("raced");
    std::atomic<int> winners{0}, calls{0};
    promise.OnReady([&] { ++calls; });
    Together(8, [&](int i) { winners += (i % 2 == 0 ? promise.SetReady() : promise.SetError(AbortedError("raced"))); });
    EXPECT_EQ(winners.load(), 1);
    EXPECT_EQ(calls.load(), 1);
  }
}

TEST(EventMisuse, AWaiterThatBlocksOnTheNextEventOfTheSameThreadIsNamed) {
  // What a waiter waits for is set by this thread later: never. With a limit it says so.
  EventPromise first("first"), second("second");
  Status seen;
  first.OnReady([&] { seen = second.event().WaitFor(nanoseconds(1)); });
  first.SetReady();
  EXPECT_TRUE(Fails(seen, StatusCode::kDeadlineExceeded, {"'second'"}));
  second.SetReady();
}

TEST(EventMisuse, AMillionReferencesAndBack) {
  EventPromise promise("popular");
  std::vector<Event> copies(1000000, promise.event());
  EXPECT_EQ(promise.event().NumRef(), 1000002U);
  copies.clear();
  EXPECT_EQ(promise.event().NumRef(), 2U);
  promise.SetReady();
}

TEST(EventMisuse, AChainOfForwardsThatIsDroppedFailsEverybody) {
  std::vector<Event> all;
  {
    EventPromise root("root");
    Event last = root.event();
    for (int i = 0; i < 100000; ++i) {
      EventPromise link("link");
      Event next = link.event();
      std::move(link).Forward(last);
      last = next;
      if (i % 10000 == 0) all.push_back(next);
    }
  }
  for (const Event& event : all) EXPECT_TRUE(Fails(event, StatusCode::kInternal, {"'root'"}));
}

// Joins ---------------------------------------------------------------------------------------------------------------

TEST(JoinMisuse, OfNothingIsReady) {
  EXPECT_TRUE(WhenAll(Span<const Event>()).IsReady());
  EXPECT_TRUE(AfterAll({}).IsReady());
  EXPECT_TRUE(FirstErrorOf({}).ok());
  EXPECT_TRUE(WhenAll(Span<const Event>(), JoinOptions()).IsReady());
}

TEST(JoinMisuse, AnUnknownPolicyIsAnErrorThatNamesIt) {
  JoinOptions options;
  options.policy = kNever;
  EventPromise promise("member");
  const Event members[] = {promise.event(), Event()};
  EXPECT_TRUE(Fails(WhenAll(members, options).WaitFor(seconds(10)), StatusCode::kInvalidArgument, {"77"}));
  promise.SetReady();
}

TEST(JoinMisuse, OfTheSameEventManyTimes) {
  EventPromise promise("member");
  const std::vector<Event> members(10000, promise.event());
  const Event all = WhenAll(members);
  EXPECT_FALSE(all.IsReady());
  promise.SetError(DataLossError("once"));
  EXPECT_TRUE(Fails(all, StatusCode::kDataLoss, {"once"}));
}

TEST(JoinMisuse, AMemberThatIsDroppedFailsTheJoin) {
  Event all;
  {
    EventPromise dropped("dropped member");
    const Event members[] = {dropped.event(), Event(), Event()};
    all = WhenAll(members);
  }
  EXPECT_TRUE(Fails(all, StatusCode::kInternal, {"'dropped member'"}));
}

TEST(JoinMisuse, MovedFromMembersCountAsReady) {
  EventPromise promise("one");
  Event one = promise.event();
  const Event taken = std::move(one);
  const Event members[] = {one, one};
  EXPECT_TRUE(WhenAll(members).IsReady());
  promise.SetReady();
}

TEST(JoinMisuse, OfAHundredThousandMembers) {
  std::vector<EventPromise> promises(100000);
  std::vector<Event> members;
  for (const EventPromise& promise : promises) members.push_back(promise.event());
  const Event all = WhenAll(members);
  const Event any = AfterAll(members);
  promises[77].SetError(DataLossError("the 78th"));
  for (EventPromise& promise : promises) promise.SetReady();
  EXPECT_TRUE(Fails(all, StatusCode::kDataLoss, {"the 78th"}));
  EXPECT_TRUE(Ok(any));
}

TEST(JoinMisuse, FailFastAndAllErrorsAtOnce) {
  EventPromise never("never");
  JoinOptions options;
  options.policy = ErrorPolicy::kAll;
  options.fail_fast = true;
  const Event members[] = {never.event(), Event::Error(AbortedError("early"))};
  EXPECT_TRUE(Fails(WhenAll(members, options), StatusCode::kAborted, {"early"}));
  never.SetReady();
}

TEST(JoinMisuse, AnObjectKeptUntilAnEventGoesWithADroppedPromise) {
  const auto object = std::make_shared<int>(1);
  {
    const EventPromise promise("keeper");
    DeleteWhenReady(promise.event(), object);
    EXPECT_EQ(object.use_count(), 2);
  }
  EXPECT_EQ(object.use_count(), 1);
}

TEST(CycleMisuse, APromiseThatFollowsAJoinOfItselfFails) {
  EventPromise promise("follows its join");
  const Event event = promise.event();
  EventPromise other("other");
  const Event all = WhenAll({event, other.event()});
  std::move(promise).Forward(all);
  other.SetReady();
  EXPECT_TRUE(Fails(all.WaitFor(seconds(20)), StatusCode::kInternal, {"'follows its join'"})) << DumpStalls();
}

TEST(CycleMisuse, TwoPromisesThatFollowEachOtherFail) {
  EventPromise a("a of a circle"), b("b of a circle");
  const Event ea = a.event(), eb = b.event();
  std::move(a).Forward(eb);
  std::move(b).Forward(ea);
  EXPECT_TRUE(Fails(ea.WaitFor(seconds(20)), StatusCode::kInternal, {"'a of a circle'"})) << DumpStalls();
  EXPECT_TRUE(Fails(eb.WaitFor(seconds(20)), StatusCode::kInternal));
}

TEST(CycleMisuse, AThousandPromisesInARingFail) {
  std::vector<EventPromise> promises;
  std::vector<Event> events;
  for (int i = 0; i < 1000; ++i) {
    promises.emplace_back("of a ring");
    events.push_back(promises.back().event());
  }
  for (std::size_t i = 0; i < promises.size(); ++i) {
    std::move(promises[i]).Forward(events[(i + 1) % events.size()]);
  }
  for (const Event& event : events) EXPECT_TRUE(Fails(event.WaitFor(seconds(20)), StatusCode::kInternal));
}

// StreamEventMap ------------------------------------------------------------------------------------------------------

TEST(StreamEventMapMisuse, WhatIsNotThereIsReady) {
  StreamEventMap map;
  EXPECT_TRUE(map.Last(0).IsReady());
  EXPECT_TRUE(map.Last(std::numeric_limits<std::uintptr_t>::max()).IsReady());
  EXPECT_TRUE(map.All().IsReady());
  map.Forget(7);
  map.Clear();
  EXPECT_EQ(map.size(), 0U);
}

TEST(StreamEventMapMisuse, ReplacingAnEventMayRunAWaiterThatUsesTheMap) {
  StreamEventMap map;
  std::size_t seen = 99;
  struct AtEnd {
    StreamEventMap* map;
    std::size_t* seen;
    explicit AtEnd(StreamEventMap* m, std::size_t* s) : map(m), seen(s) {}
    AtEnd(AtEnd&& other) noexcept : map(std::exchange(other.map, nullptr)), seen(other.seen) {}
    ~AtEnd() {
      if (map != nullptr) *seen = map->size();
    }
  };
  {
    EventPromise promise("kept by the map alone");
    promise.OnReady([at_end = AtEnd(&map, &seen)] {});
    map.Record(1, promise.event());
    map.Record(1, Event());
    map.Record(2, Event());
    map.Clear();
  }
  EXPECT_EQ(seen, 0U);
}

// Status --------------------------------------------------------------------------------------------------------------

TEST(StatusMisuse, ACodeOutsideOfTheRangeIsUnknown) {
  EXPECT_EQ(Status(static_cast<StatusCode>(17), "17").code(), StatusCode::kUnknown);
  EXPECT_EQ(Status(static_cast<StatusCode>(-1), "-1").code(), StatusCode::kUnknown);
  EXPECT_EQ(Status(static_cast<StatusCode>(std::numeric_limits<int>::max()), "max").code(), StatusCode::kUnknown);
  EXPECT_EQ(StatusCodeToString(static_cast<StatusCode>(99)), "");
}

TEST(StatusMisuse, OkWithAMessageIsOk) {
  const Status status(StatusCode::kOk, "all is lost");
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.message(), "");
}

TEST(StatusMisuse, BytesThatAreNotTextAreReplaced) {
  const Status status = InternalError(std::string_view("a\0b\xFF", 4));
  EXPECT_EQ(status.message(), std::string_view("a\0b\xEF\xBF\xBD", 6));
}

TEST(StatusMisuse, AMovedFromStatusIsOk) {
  Status status = InternalError("gone");
  const Status taken = std::move(status);
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.ToString(), "OK");
  EXPECT_FALSE(status.ErasePayload("x"));
  EXPECT_EQ(taken.message(), "gone");
}

TEST(StatusMisuse, OkHasNoPayloads) {
  Status status;
  status.SetPayload("url", "bytes");
  EXPECT_TRUE(status.ok());
  EXPECT_FALSE(status.GetPayload("url").has_value());
}

TEST(StatusMisuse, APayloadOfAnyBytesComesBack) {
  Status status = InternalError("with");
  const std::string bytes("\0\xFF\0", 3);
  status.SetPayload("", bytes);
  status.SetPayload("u", "");
  EXPECT_EQ(status.GetPayload(""), bytes);
  EXPECT_EQ(status.GetPayload("u"), "");
}

TEST(StatusMisuse, AnEnormousMessage) {
  const std::string text(std::size_t{16} << 20, 'x');
  EXPECT_EQ(InternalError(text).message().size(), text.size());
}

TEST(StatusOrMisuse, MadeOfOkIsInternal) {
  EXPECT_TRUE(Fails(StatusOr<int>(OkStatus()), StatusCode::kInternal, {"OK status"}));
}

TEST(StatusOrMisuse, TheValueOfAnErrorEndsTheProcessAndSaysWhy) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  StatusOr<int> result = DataLossError("nothing to read");
  EXPECT_DEATH(static_cast<void>(result.value()), "DATA_LOSS: nothing to read");
  EXPECT_DEATH(static_cast<void>(*result), "DATA_LOSS: nothing to read");
}

TEST(StatusOrMisuse, AnErrorThatWasMovedOutIsStillNoValue) {
  StatusOr<int> result = DataLossError("moved out");
  const Status taken = std::move(result).status();
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.value_or(3), 3);
}

}  // namespace
}  // namespace purlin
