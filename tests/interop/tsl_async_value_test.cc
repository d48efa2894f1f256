// purlin/adapters/tsl_async_value.h, with the tsl that is inside TensorFlow.
#include "purlin/adapters/tsl_async_value.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "purlin/executor.h"
#include "purlin/stall.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

using adapters::AsyncValueOwner;
using adapters::ForwardToTsl;
using adapters::FromTsl;
using adapters::ToAbsl;
using adapters::ToTsl;
using adapters::ToTslFuture;

absl::Status TheirError() {
  absl::Status error = absl::DataLossError("bits fell over");
  error.SetPayload("type.googleapis.com/bits", absl::Cord(absl::string_view("\0\xff", 2)));
  error.SetPayload("type.googleapis.com/more", absl::Cord("x"));
  return error;
}
Status OurError() { return adapters::FromAbsl(TheirError()); }

struct KeptPayload : tsl::AsyncPayload::KeepOnError {
  explicit KeptPayload(int v) : counted(v) {}
  Counted counted;
};

// tsl -> Purlin ------------------------------------------------------------------------------------------------------

TEST(FromTslTest, AnEventHappensWithAPendingValue) {
  const NoLeak no_leak;
  const auto value = tsl::MakeUnconstructedAsyncValueRef<Counted>();
  const Event event = FromTsl(value);
  EXPECT_EQ(event.state(), EventState::kUnavailable);
  int calls = 0;
  event.OnReady([&](const Status& status) { calls += status.ok() ? 1 : 100; });
  value.emplace(7);
  EXPECT_EQ(event.state(), EventState::kReady);
  EXPECT_EQ(calls, 1);
}

TEST(FromTslTest, WhatIsAvailableCrossesAtOnce) {
  EXPECT_EQ(FromTsl(tsl::MakeAvailableAsyncValueRef<int>(7)).state(), EventState::kReady);
  const tsl::AsyncValueRef<int> failed = TheirError();
  EXPECT_EQ(FromTsl(failed).error(), OurError());
}

TEST(FromTslTest, AnErrorCrossesWithItsPayloads) {
  const NoLeak no_leak;
  const auto value = tsl::MakeConstructedAsyncValueRef<Counted>(7);
  const Event event = FromTsl(value);
  value.SetError(TheirError());
  EXPECT_EQ(event.state(), EventState::kError);
  EXPECT_EQ(event.error(), OurError());
  EXPECT_EQ(ToAbsl(event.error()), TheirError());
}

TEST(FromTslTest, AnIndirectValueCrossesWhenItIsForwarded) {
  for (const bool fails : {false, true}) {
    auto indirect = tsl::MakeIndirectAsyncValue();
    const Event event = FromTsl(indirect.get());
    const auto value = tsl::MakeUnconstructedAsyncValueRef<int>();
    indirect->ForwardTo(value.CopyRCRef());
    EXPECT_FALSE(event.IsReady());
    fails ? value.SetError(TheirError()) : value.emplace(1);
    EXPECT_EQ(event.Wait(), fails ? OurError() : OkStatus());
  }
}

TEST(FromTslTest, AStatusInAPayloadCountsAsTheError) {
  const auto status = tsl::MakeUnconstructedAsyncValueRef<absl::Status>();
  const auto status_or = tsl::MakeUnconstructedAsyncValueRef<absl::StatusOr<int>>();
  const Event of_status = FromTsl(status);
  const Event of_status_or = FromTsl(status_or);
  status.emplace(TheirError());
  status_or.emplace(absl::StatusOr<int>(TheirError()));
  EXPECT_EQ(of_status.error(), OurError());
  EXPECT_EQ(of_status_or.error(), OurError());
  EXPECT_EQ(FromTsl(status).error(), OurError());
  EXPECT_EQ(FromTsl(tsl::MakeAvailableAsyncValueRef<absl::StatusOr<int>>(1)).error(), OkStatus());
}

TEST(FromTslTest, NullsAreErrorsThatSaySo) {
  EXPECT_EQ(FromTsl(static_cast<tsl::AsyncValue*>(nullptr)).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FromTsl(tsl::AsyncValueRef<int>()).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FromTsl(tsl::AsyncValueRef<absl::Status>()).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FromTsl(tsl::Future<>()).Await().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(FromTsl(tsl::Future<int>()).Await().status().code(), StatusCode::kFailedPrecondition);
}

TEST(FromTslTest, AValueThatItsOwnerDropsUnsetFailsTheEvent) {
  const NoLeak no_leak;
  Event event;
  {
    const AsyncValueOwner<Counted> owner(tsl::MakeUnconstructedAsyncValueRef<Counted>());
    event = FromTsl(owner.value());
    EXPECT_FALSE(event.IsReady());
  }
  EXPECT_EQ(event.error().code(), StatusCode::kInternal);
  EXPECT_EQ(event.error().message(), "a tsl::AsyncValue was dropped unset");
}

TEST(FromTslTest, AnOwnerThatMovesOnOrWhoseValueIsSetFailsNothing) {
  const NoLeak no_leak;
  AsyncValueOwner<Counted> first(tsl::MakeUnconstructedAsyncValueRef<Counted>());
  const Event event = FromTsl(first.value());
  {
    AsyncValueOwner<Counted> second(std::move(first));
    EXPECT_FALSE(event.IsReady());
    second.value().emplace(7);
  }
  EXPECT_EQ(event.error(), OkStatus());
  AsyncValueOwner<Counted> assigned(tsl::MakeUnconstructedAsyncValueRef<Counted>());
  const Event given_up = FromTsl(assigned.value());
  assigned = AsyncValueOwner<Counted>(nullptr);
  EXPECT_EQ(given_up.error().code(), StatusCode::kInternal);
}

TEST(FromTslTest, APendingCrossingIsNamedInAStallReport) {
  const auto value = tsl::MakeUnconstructedAsyncValueRef<int>();
  const Event event = FromTsl(value);
  const std::string report = DumpStalls();
  EXPECT_NE(report.find("tsl::AsyncValue"), std::string::npos) << report;
  EXPECT_NE(report.find("tsl_async_value_test.cc"), std::string::npos) << report;
  value.emplace(1);
}

TEST(FromTslTest, TheEventMayBeDroppedFirst) {
  const NoLeak no_leak;
  const auto value = tsl::MakeUnconstructedAsyncValueRef<Counted>();
  {
    const Event event = FromTsl(value);
  }
  value.emplace(7);
}

// Purlin -> tsl ------------------------------------------------------------------------------------------------------

TEST(ToTslTest, AValueIsPublishedWithAPendingEvent) {
  const NoLeak no_leak;
  EventPromise promise("p");
  const auto value = ToTsl<Counted>(promise.event(), 7);
  EXPECT_TRUE(value.IsConstructed());
  int heard = 0;
  value.AndThen([&](absl::StatusOr<Counted*> result) { heard = (*result)->value; });
  promise.SetReady();
  EXPECT_TRUE(value.IsConcrete());
  EXPECT_EQ(heard, 7);
  EXPECT_TRUE(value.GetAsyncValue()->IsType<Counted>()) << "XLA asks for the exact type";
}

TEST(ToTslTest, WhatHasHappenedCrossesAtOnce) {
  const NoLeak no_leak;
  EXPECT_EQ(ToTsl<Counted>(Event(), 7)->value, 7);
  const tsl::AsyncValueRef<tsl::Chain> failed = ToTsl(Event::Error(OurError()));
  EXPECT_EQ(failed.GetError(), TheirError());
}

TEST(ToTslTest, AnErrorCrossesWithItsPayloads) {
  const NoLeak no_leak;
  EventPromise promise("p");
  const auto value = ToTsl<Counted>(promise.event(), 7);
  promise.SetError(OurError());
  EXPECT_EQ(value.GetError(), TheirError());
}

TEST(ToTslTest, APayloadThatIsKeptOnErrorIsKept) {
  const NoLeak no_leak;
  EventPromise promise("p");
  const auto value = ToTsl<KeptPayload>(promise.event(), 7);
  promise.SetError(OurError());
  EXPECT_EQ(value.GetError(), TheirError());
  EXPECT_EQ(value.GetAsyncValue()->get<KeptPayload>().counted.value, 7);
}

TEST(ToTslTest, APromiseThatIsDroppedUnsetFailsTheValue) {
  const NoLeak no_leak;
  tsl::AsyncValueRef<Counted> value;
  {
    EventPromise promise("weights copied");
    value = ToTsl<Counted>(promise.event(), 7);
  }
  EXPECT_EQ(value.GetError().code(), absl::StatusCode::kInternal);
  EXPECT_NE(value.GetError().message().find("weights copied"), absl::string_view::npos);
}

TEST(ToTslTest, TheValueMayBeDroppedFirst) {
  const NoLeak no_leak;
  EventPromise promise("p");
  {
    const auto value = ToTsl<Counted>(promise.event(), 7);
  }
  EXPECT_TRUE(promise.SetReady());
}

TEST(ToTslTest, BlockUntilReadyWaitsForAnEventOfAnotherThread) {
  auto pool = ThreadPoolAsyncWorkRunner::Create({});
  ASSERT_TRUE(pool.ok()) << pool.status();
  EventPromise promise("p");
  const auto value = ToTsl<int>(promise.event(), 7);
  EXPECT_TRUE(pool->Schedule([promise = std::move(promise)]() mutable { promise.SetReady(); }).ok());
  tsl::BlockUntilReady(value.GetAsyncValue());
  EXPECT_EQ(*value, 7);
}

TEST(ForwardToTslTest, CompletesAValueOfSomebodyElse) {
  struct NoDefault {
    explicit NoDefault(int) {}
  };
  EventPromise promise("p");
  const auto unconstructed = tsl::MakeUnconstructedAsyncValueRef<int>();
  const auto constructed = tsl::MakeConstructedAsyncValueRef<int>(7);
  const auto no_default = tsl::MakeUnconstructedAsyncValueRef<NoDefault>();
  const auto available = tsl::MakeAvailableAsyncValueRef<int>(8);
  ForwardToTsl(promise.event(), unconstructed.CopyRef());
  ForwardToTsl(promise.event(), constructed.CopyRef());
  ForwardToTsl(promise.event(), no_default.CopyRef());
  ForwardToTsl(promise.event(), available.CopyRef());
  ForwardToTsl(promise.event(), tsl::AsyncValueRef<int>());
  promise.SetReady();
  EXPECT_EQ(*unconstructed, 0);
  EXPECT_EQ(*constructed, 7);
  EXPECT_EQ(no_default.GetError().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(*available, 8);
}

// Futures ------------------------------------------------------------------------------------------------------------

TEST(TslFutureTest, ValuesCrossBothWays) {
  auto [theirs, their_future] = tsl::MakePromise<std::string>();
  const Future<std::string> ours = FromTsl(std::move(their_future));
  const tsl::Future<std::string> again = ToTsl(ours);
  EXPECT_FALSE(ours.IsReady());
  theirs.Set(std::string("value"));
  EXPECT_EQ(*ours.Await(), "value");
  EXPECT_EQ(*again.Await(), "value");
  EXPECT_EQ(*FromTsl(tsl::Future<int>(7)).Await(), 7);
  EXPECT_EQ(*ToTsl(Future<int>(7)).Await(), 7);
}

TEST(TslFutureTest, MoveOnlyValuesAreMovedThrough) {
  const NoLeak no_leak;
  auto [theirs, their_future] = tsl::MakePromise<std::unique_ptr<Counted>>();
  Future<std::unique_ptr<Counted>> ours = FromTsl(std::move(their_future));
  tsl::Future<std::unique_ptr<Counted>> again = ToTsl(std::move(ours));
  auto payload = std::make_unique<Counted>(7);
  Counted* const address = payload.get();
  theirs.Set(std::move(payload));
  absl::StatusOr<std::unique_ptr<Counted>> result = std::move(again).Await();
  EXPECT_EQ(result->get(), address);
}

TEST(TslFutureTest, ErrorsCrossBothWaysWithTheirPayloads) {
  auto [theirs, their_future] = tsl::MakePromise<int>();
  const Future<int> ours = FromTsl(std::move(their_future));
  const tsl::Future<int> again = ToTsl(ours);
  theirs.Set(TheirError());
  EXPECT_EQ(ours.Await().status(), OurError());
  EXPECT_EQ(again.Await().status(), TheirError());
}

TEST(TslFutureTest, OfNothingCrossesBothWays) {
  for (const bool fails : {false, true}) {
    EventPromise promise("p");
    const tsl::Future<> theirs = ToTslFuture(promise.event());
    const Future<> ours = FromTsl(theirs);
    const tsl::Future<> again = ToTsl(ours);
    EXPECT_FALSE(theirs.IsReady() || ours.IsReady() || again.IsReady());
    promise.Set(fails ? OurError() : OkStatus());
    EXPECT_EQ(theirs.Await(), fails ? TheirError() : absl::OkStatus());
    EXPECT_EQ(ours.Await(), fails ? OurError() : OkStatus());
    EXPECT_EQ(again.Await(), theirs.Await());
    EXPECT_EQ(ToTslFuture(promise.event()).Await(), theirs.Await()) << "at once";
  }
}

TEST(TslFutureTest, PromisesThatAreDroppedUnsetFailTheOtherSide) {
  const NoLeak no_leak;
  Future<Counted> ours;
  {
    auto [promise, future] = tsl::MakePromise<Counted>();
    ours = FromTsl(std::move(future));
  }
  EXPECT_EQ(ours.Await().status().code(), StatusCode::kInternal);
  EXPECT_EQ(ours.Await().status().message(), "Promise destroyed without being set");
  tsl::Future<Counted> theirs;
  {
    auto [promise, future] = MakePromise<Counted>("the loss");
    theirs = ToTsl(std::move(future));
  }
  EXPECT_EQ(theirs.Await().status().code(), absl::StatusCode::kInternal);
  EXPECT_NE(theirs.Await().status().message().find("the loss"), absl::string_view::npos);
  tsl::Future<> of_nothing;
  {
    const EventPromise promise("nothing");
    of_nothing = ToTslFuture(promise.event());
  }
  EXPECT_EQ(of_nothing.Await().code(), absl::StatusCode::kInternal);
}

TEST(TslFutureTest, AnInvalidFutureOfOursIsAnError) {
  EXPECT_EQ(ToTsl(Future<int>()).Await().status().code(), absl::StatusCode::kFailedPrecondition);
}

// Both ---------------------------------------------------------------------------------------------------------------

TEST(TslCrossingTest, AChainThatGoesToAndFroNeedsLittleStack) {
  OnSmallStack([] {
    EventPromise promise("first");
    Event last = promise.event();
    for (int link = 0; link < 100000; ++link) last = FromTsl(ToTsl(last));
    promise.SetError(OurError());
    EXPECT_EQ(last.error(), OurError());
  });
}

TEST(TslCrossingTest, SettersAndCrossingsRace) {
  const NoLeak no_leak;
  for (int round = 0; round < 2000; ++round) {
    EventPromise promise("p");
    const Event event = promise.event();
    const auto value = tsl::MakeUnconstructedAsyncValueRef<Counted>();
    Event from_tsl;
    tsl::AsyncValueRef<Counted> to_tsl;
    Together(2, [&](int index) {
      if (index == 0) {
        promise.SetError(OurError());
        value.emplace(round);
      } else {
        to_tsl = ToTsl<Counted>(event, round);
        from_tsl = FromTsl(value);
      }
    });
    ASSERT_EQ(from_tsl.error(), OkStatus());
    ASSERT_TRUE(from_tsl.IsReady());
    ASSERT_EQ(to_tsl.GetError(), TheirError());
  }
}

}  // namespace
}  // namespace purlin
