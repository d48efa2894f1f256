// AsyncValueRef, AsyncValuePtr, casts, storage, CountDownAsyncValueRef, RunWhenReady.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/async_value_cast.h"
#include "purlin/async_value_storage.h"
#include "purlin/count_down.h"
#include "purlin/run_when_ready.h"
#include "tests/cpp/testing.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

using std::chrono::seconds;

TEST(AsyncValueMisuse, NullIsAnErrorThatSaysSo) {
  const AsyncValueRef<int> null;
  EXPECT_FALSE(null);
  EXPECT_TRUE(null.IsAvailable());
  EXPECT_TRUE(null.IsError());
  EXPECT_EQ(null.state(), AsyncValueState::kError);
  EXPECT_EQ(null.GetIfConcrete(), nullptr);
  EXPECT_EQ(null.GetIfConstructed(), nullptr);
  EXPECT_TRUE(Fails(null.GetError(), StatusCode::kFailedPrecondition, {"null"}));
  EXPECT_TRUE(Fails(null.Wait(), StatusCode::kFailedPrecondition, {"null"}));
  EXPECT_TRUE(Fails(null.WaitFor(seconds(0)), StatusCode::kFailedPrecondition, {"null"}));
  EXPECT_TRUE(Fails(null.AsEvent(), StatusCode::kFailedPrecondition, {"null"}));
  EXPECT_EQ(null.NumRef(), 0U);
  EXPECT_FALSE(null.IsUnique());
}

TEST(AsyncValueMisuse, NothingIsSetThroughNull) {
  const AsyncValueRef<int> null;
  EXPECT_FALSE(null.emplace(1));
  EXPECT_FALSE(null.SetStateConcrete());
  EXPECT_FALSE(null.SetError(InternalError("x")));
  EXPECT_FALSE(null.ForwardTo(MakeAvailableAsyncValueRef<int>(1)));
}

TEST(AsyncValueMisuse, VerbsOfNullFailTheirResults) {
  const AsyncValueRef<int> null;
  DeferredExecutor executor;
  EXPECT_TRUE(Fails(null.Map([](int v) { return v; }).GetError(), StatusCode::kFailedPrecondition, {"null"}));
  EXPECT_TRUE(Fails(null.Map(executor, [](int v) { return v; }).GetError(), StatusCode::kFailedPrecondition, {"null"}));
  EXPECT_TRUE(Fails(null.TryMap([](int v) { return StatusOr<int>(v); }).GetError(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(null.FlatMap([](int v) { return MakeAvailableAsyncValueRef<int>(v); }).GetError(),
                    StatusCode::kFailedPrecondition));
  EXPECT_EQ(executor.tasks, 0);
  int calls = 0;
  null.AndThen([&calls](Status status) { calls += IsFailedPrecondition(status) ? 1 : 100; });
  null.AndThen([&calls] { ++calls; });
  EXPECT_EQ(calls, 2);
}

TEST(AsyncValueMisuse, AMovedFromReferenceIsNull) {
  AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>("moved");
  AsyncValueRef<int> taken = std::move(value);
  EXPECT_FALSE(value);
  EXPECT_FALSE(value.emplace(1));
  value.reset();
  EXPECT_TRUE(taken.emplace(2));
}

TEST(AsyncValueMisuse, TheSecondCompletionIsToldAndChangesNothing) {
  NoLeak no_leak;
  const auto value = MakeUnconstructedAsyncValueRef<Counted>("twice");
  EXPECT_TRUE(value.emplace(1));
  EXPECT_FALSE(value.emplace(2));
  EXPECT_FALSE(value.SetError(InternalError("late")));
  EXPECT_FALSE(value.SetStateConcrete());
  EXPECT_FALSE(value.ForwardTo(MakeAvailableAsyncValueRef<Counted>(3)));
  EXPECT_EQ(value->value, 1);
}

TEST(AsyncValueMisuse, SettingInItsOwnWaiterAnswersFalse) {
  const auto value = MakeUnconstructedAsyncValueRef<int>("own waiter");
  bool again = true, failed = true;
  value.AndThen([&] {
    again = value.emplace(2);
    failed = value.SetError(InternalError("inside"));
  });
  EXPECT_TRUE(value.emplace(1));
  EXPECT_FALSE(again);
  EXPECT_FALSE(failed);
  EXPECT_EQ(*value, 1);
}

TEST(AsyncValueMisuse, WhatWasNotConstructedCannotBePublished) {
  const auto value = MakeUnconstructedAsyncValueRef<int>("empty");
  EXPECT_FALSE(value.SetStateConcrete());
  EXPECT_EQ(value.GetIfConcrete(), nullptr);
  EXPECT_TRUE(value.emplace(1));
}

TEST(AsyncValueMisuse, AConstructedValueThatIsNeverPublishedTellsItsWaiters) {
  NoLeak no_leak;
  Status seen;
  {
    auto value = MakeConstructedAsyncValueRef<Counted>(Named(Label("never published")), 1);
    value.AndThen([&seen](Status status) { seen = status; });
  }
  EXPECT_TRUE(Fails(seen, StatusCode::kInternal, {"'never published'"}));
}

TEST(AsyncValueMisuse, TheLastReferenceOfAnUnsetValueTellsByName) {
  Status seen;
  {
    auto value = MakeUnconstructedAsyncValueRef<int>("given up");
    value.AndThen([&seen](Status status) { seen = status; });
  }
  EXPECT_TRUE(Fails(seen, StatusCode::kInternal, {"'given up'"}));
}

TEST(AsyncValueMisuse, AnErrorThatIsOkIsABugOfTheCaller) {
  EXPECT_TRUE(Fails(AsyncValueRef<int>(OkStatus()).GetError(), StatusCode::kInternal, {"OK"}));
  const AsyncValueRef<int> made = MakeErrorAsyncValueRef(OkStatus());
  EXPECT_TRUE(Fails(made.GetError(), StatusCode::kInternal, {"OK"}));
  const auto value = MakeUnconstructedAsyncValueRef<int>("ok");
  EXPECT_TRUE(value.SetError(OkStatus()));
  EXPECT_TRUE(Fails(value.GetError(), StatusCode::kInternal, {"OK status"}));
}

TEST(AsyncValueMisuse, ANullSharedPointerIsAnError) {
  EXPECT_TRUE(Fails(MakeAsyncValueRefFromSharedPtr(std::shared_ptr<int>()).GetError(), StatusCode::kInvalidArgument,
                    {"null shared_ptr"}));
}

TEST(AsyncValueMisuse, AForwardToItselfFails) {
  const auto value = MakeIndirectAsyncValueRef<int>("circle of one");
  EXPECT_TRUE(value.ForwardTo(value));
  EXPECT_TRUE(Fails(value.WaitFor(seconds(20)), StatusCode::kInternal, {"itself"}));
}

TEST(AsyncValueMisuse, AForwardToNullFails) {
  const auto value = MakeIndirectAsyncValueRef<int>("to null");
  EXPECT_TRUE(value.ForwardTo(AsyncValueRef<int>()));
  EXPECT_TRUE(value.IsError());
}

TEST(AsyncValueMisuse, WhatIsForwardedIsNotSetAnyMore) {
  const auto value = MakeIndirectAsyncValueRef<int>("forwarded");
  auto target = MakeUnconstructedAsyncValueRef<int>("target");
  EXPECT_TRUE(value.ForwardTo(target));
  EXPECT_FALSE(value.emplace(1));
  EXPECT_FALSE(value.SetError(InternalError("late")));
  EXPECT_FALSE(value.ForwardTo(MakeAvailableAsyncValueRef<int>(3)));
  target.reset();
  EXPECT_TRUE(Fails(value.WaitFor(seconds(20)), StatusCode::kInternal, {"'target'"}));
}

TEST(AsyncValueMisuse, AnInlineValueIsNotForwarded) {
  const auto value = MakeUnconstructedAsyncValueRef<int>("inline");
  EXPECT_FALSE(value.ForwardTo(MakeAvailableAsyncValueRef<int>(1)));
  EXPECT_TRUE(value.emplace(2));
}

TEST(AsyncValueMisuse, ALongChainOfForwardsCollapsesAndIsDropped) {
  NoLeak no_leak;
  auto last = MakeIndirectAsyncValueRef<Counted>("end");
  AsyncValueRef<Counted> first = last;
  for (int i = 0; i < 100000; ++i) {
    auto link = MakeIndirectAsyncValueRef<Counted>("link");
    EXPECT_TRUE(link.ForwardTo(first));
    first = link;
  }
  EXPECT_TRUE(last.emplace(5));
  EXPECT_EQ(first->value, 5);
}

TEST(AsyncValueMisuse, AWaiterMayDropTheValueInItsOwnCall) {
  NoLeak no_leak;
  auto value = std::make_unique<AsyncValueRef<Counted>>(MakeUnconstructedAsyncValueRef<Counted>("dropped inside"));
  const AsyncValueRef<Counted> setter = *value;
  value->AndThen([&value] { value.reset(); });
  EXPECT_TRUE(setter.emplace(1));
  EXPECT_EQ(value, nullptr);
}

TEST(AsyncValueMisuse, AnExecutorThatRefusesFailsTheResultWithItsReason) {
  RefusingExecutor executor(UnavailableError("closed on Sundays"));
  const auto value = MakeAvailableAsyncValueRef<int>(1);
  EXPECT_TRUE(Fails(value.Map(executor, [](int v) { return v; }).Wait(), StatusCode::kUnavailable, {"Sundays"}));
  EXPECT_TRUE(Fails(MakeAsyncValueRef(executor, [] { return 1; }).Wait(), StatusCode::kUnavailable, {"Sundays"}));
  EXPECT_TRUE(Fails(TryMakeAsyncValueRef(executor, [] { return StatusOr<int>(1); }).Wait(), StatusCode::kUnavailable,
                    {"Sundays"}));
}

TEST(AsyncValueMisuse, AnExecutorThatDropsItsTasksFailsTheResult) {
  LyingExecutor executor;
  const auto value = MakeAvailableAsyncValueRef<int>(1);
  EXPECT_TRUE(Fails(value.Map(executor, [](int v) { return v; }).WaitFor(seconds(20)), StatusCode::kCancelled));
  EXPECT_TRUE(Fails(MakeAsyncValueRef(executor, [] { return 1; }).WaitFor(seconds(20)), StatusCode::kCancelled));
}

TEST(AsyncValueMisuse, AWaiterOfARefusingExecutorIsDestroyedUncalled) {
  NoLeak no_leak;
  RefusingExecutor executor;
  bool called = false;
  const auto value = MakeAvailableAsyncValueRef<int>(1);
  value.AndThen(executor, [&called, kept = Counted(1)] { called = true; });
  EXPECT_FALSE(called);
}

TEST(AsyncValueMisuse, AResultThatIsCancelledFirstIsLeftAlone) {
  auto value = MakeUnconstructedAsyncValueRef<int>("input");
  bool called = false;
  const auto result = value.Map([&called](int v) {
    called = true;
    return v;
  });
  EXPECT_TRUE(result.SetError(CancelledError("by its user")));
  EXPECT_TRUE(value.emplace(1));
  EXPECT_FALSE(called);
  EXPECT_TRUE(Fails(result.GetError(), StatusCode::kCancelled, {"by its user"}));
}

TEST(AsyncValueMisuse, AFlatMapThatAnswersNullFails) {
  const auto value = MakeUnconstructedAsyncValueRef<int>("input");
  const auto flat = value.FlatMap([](int) { return AsyncValueRef<int>(); });
  value.emplace(1);
  EXPECT_TRUE(Fails(flat.WaitFor(seconds(20)), StatusCode::kFailedPrecondition));
}

TEST(AsyncValueMisuse, AFlatMapThatAnswersItselfFails) {
  const auto value = MakeUnconstructedAsyncValueRef<int>("input");
  AsyncValueRef<int> flat;
  flat = value.FlatMap([&flat](int) { return flat; });
  value.emplace(1);
  EXPECT_TRUE(Fails(flat.WaitFor(seconds(20)), StatusCode::kInternal));
}

TEST(AsyncValueMisuse, EightThreadsSetOneValue) {
  NoLeak no_leak;
  for (int round = 0; round < 200; ++round) {
    const auto value = MakeUnconstructedAsyncValueRef<Counted>("raced");
    std::atomic<int> winners{0};
    Together(8, [&](int i) { winners += i % 3 == 0 ? value.SetError(AbortedError("raced")) : value.emplace(i); });
    EXPECT_EQ(winners.load(), 1);
  }
}

TEST(AsyncValuePtrMisuse, NullIsAnErrorThatSaysSo) {
  const AsyncValuePtr<int> null;
  EXPECT_FALSE(null);
  EXPECT_FALSE(null.CopyRef());
  EXPECT_TRUE(Fails(null.GetError(), StatusCode::kFailedPrecondition, {"null"}));
  EXPECT_TRUE(Fails(BlockUntilReady(null), StatusCode::kFailedPrecondition, {"null"}));
}

struct Base {
  virtual ~Base() = default;
  int base = 1;
};
struct Derived final : Base {
  int derived = 2;
};
struct Other final : Base {};

TEST(AsyncValueCastMisuse, ToAnotherTypeGivesNull) {
  const AsyncValueRef<Base> value = MakeAvailableAsyncValueRef<Derived>();
  EXPECT_TRUE(Isa<Derived>(value));
  EXPECT_FALSE(Isa<Other>(value));
  EXPECT_FALSE(DynCast<Other>(value));
  EXPECT_FALSE(Cast<Other>(value));
  EXPECT_FALSE(DynCastOrNull<Other>(AsyncValueRef<Base>()));
  EXPECT_FALSE(Isa<Derived>(AsyncValueRef<Base>()));
}

TEST(AsyncValueCastMisuse, ABaseHasNoRoomForItsOwnKind) {
  const AsyncValueRef<Derived> derived = MakeUnconstructedAsyncValueRef<Derived>("derived");
  const AsyncValueRef<Base> base = derived;
  EXPECT_FALSE(base.emplace());
  EXPECT_TRUE(derived.emplace());
}

TEST(AsyncValueStorageMisuse, AnOwnerThatIsEmptyShowsNull) {
  AsyncValueOwningRef<int> empty;
  EXPECT_FALSE(empty);
  EXPECT_FALSE(empty.AsPtr());
  EXPECT_FALSE(empty.AsRef());
  AsyncValueOwningRef<int> again = std::move(empty);
  EXPECT_FALSE(again);
}

TEST(AsyncValueStorageMisuse, AnOwnerThatGoesEarlyTellsItsWaiters) {
  Status seen;
  AsyncValueStorage<int> storage;
  {
    const AsyncValueOwningRef<int> owner = MakeUnconstructedAsyncValueRef<int>(storage, "early");
    owner.AsPtr().AndThen([&seen](Status status) { seen = status; });
  }
  EXPECT_TRUE(Fails(seen, StatusCode::kInternal, {"'early'"}));
  const AsyncValueOwningRef<int> again = MakeAvailableAsyncValueRef<int>(storage, 3);
  EXPECT_EQ(*again, 3);
}

TEST(CountDownMisuse, NullCountsNothing) {
  CountDownAsyncValueRef<Chain> null;
  EXPECT_FALSE(null.CountDown());
  EXPECT_FALSE(null.CountDown(5, InternalError("x")));
  EXPECT_EQ(null.left(), 0U);
  EXPECT_FALSE(null.AsRef());
  EXPECT_FALSE(null.AsPtr());
}

TEST(CountDownMisuse, MoreThanIsLeftIsRefusedWhole) {
  CountDownAsyncValueRef<Chain> count(3);
  EXPECT_FALSE(count.CountDown(4, InternalError("not used")));
  EXPECT_FALSE(count.CountDown(std::numeric_limits<std::size_t>::max()));
  EXPECT_FALSE(count.CountDown(0));
  EXPECT_EQ(count.left(), 3U);
  EXPECT_TRUE(count.CountDown(3));
  EXPECT_FALSE(count.CountDown());
  EXPECT_TRUE(Ok(count.AsRef().Wait()));
}

TEST(CountDownMisuse, ADroppedCountFailsWithTheNumberLeft) {
  AsyncValueRef<Chain> value;
  {
    CountDownAsyncValueRef<Chain> count(7);
    value = count.AsRef();
    count.CountDown(2);
  }
  EXPECT_TRUE(Fails(value.Wait(), StatusCode::kInternal, {"5 left"}));
}

TEST(CountDownMisuse, AnUnknownPolicyFailsFromTheBeginning) {
  CountDownOptions options;
  options.policy = static_cast<ErrorPolicy>(-4);
  CountDownAsyncValueRef<Chain> count(2, options);
  EXPECT_TRUE(Fails(count.AsRef().Wait(), StatusCode::kInvalidArgument, {"-4"}));
  EXPECT_FALSE(count.CountDown(2));
}

TEST(CountDownMisuse, AWaiterMayDropTheCounterThatRunsIt) {
  auto count = std::make_unique<CountDownAsyncValueRef<Chain>>(1);
  CountDownAsyncValueRef<Chain> mine = *count;
  count->AsRef().AndThen([&count] { count.reset(); });
  EXPECT_TRUE(mine.CountDown());
  EXPECT_EQ(count, nullptr);
}

TEST(CountDownMisuse, OfANullValue) {
  CountDownAsyncValueRef<int> count(AsyncValueRef<int>(), 1);
  EXPECT_FALSE(count.AsRef());
  static_cast<void>(count.CountDown());
  EXPECT_EQ(count.left(), 0U);
}

TEST(CountDownMisuse, OfAValueThatSomebodyElseSet) {
  const auto value = MakeUnconstructedAsyncValueRef<int>("taken");
  CountDownAsyncValueRef<int> count(value, 2);
  EXPECT_TRUE(value.emplace(9));
  EXPECT_FALSE(count.CountDown(2));
  EXPECT_EQ(*value, 9);
}

TEST(RunWhenReadyMisuse, OfNothingRunsAtOnce) {
  int calls = 0;
  RunWhenReady(std::vector<AsyncValueRef<int>>(), [&calls] { ++calls; });
  RunWhenReady(std::vector<AsyncValueRef<int>>(), [&calls](Status status) { calls += status.ok() ? 1 : 100; });
  EXPECT_EQ(calls, 2);
}

TEST(RunWhenReadyMisuse, NullMembersAreErrors) {
  Status seen;
  const auto pending = MakeUnconstructedAsyncValueRef<int>("pending");
  RunWhenReady({AsyncValueRef<int>(), pending}, [&seen](Status status) { seen = status; });
  EXPECT_TRUE(pending.emplace(1));
  EXPECT_TRUE(Fails(seen, StatusCode::kFailedPrecondition, {"null"}));
}

TEST(RunWhenReadyMisuse, ARefusingExecutorDestroysTheClosureUncalled) {
  NoLeak no_leak;
  RefusingExecutor executor;
  bool called = false;
  RunWhenReady(std::vector<AsyncValueRef<int>>{MakeAvailableAsyncValueRef<int>(1)}, executor,
               [&called, kept = Counted(1)] { called = true; });
  EXPECT_FALSE(called);
}

TEST(RunWhenReadyMisuse, ADroppedMemberRunsItAllTheSame) {
  Status seen;
  auto first = MakeUnconstructedAsyncValueRef<int>("dropped");
  auto second = MakeUnconstructedAsyncValueRef<int>("set");
  RunWhenReady({first, second}, [&seen](Status status) { seen = status; });
  first.reset();
  second.emplace(1);
  EXPECT_TRUE(Fails(seen, StatusCode::kInternal, {"'dropped'"}));
}

}  // namespace
}  // namespace purlin
