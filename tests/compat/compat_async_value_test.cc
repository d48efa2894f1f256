// References to values, by tsl's names. See api.h.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/compat/api.h"

namespace {

using tsl::AsyncValuePtr;
using tsl::AsyncValueRef;
using tsl::MakeAvailableAsyncValueRef;
using tsl::MakeConstructedAsyncValueRef;
using tsl::MakeUnconstructedAsyncValueRef;

absl::Status Broken() { return absl::AbortedError("broken"); }

/// Counts the ends of what it stands for.
struct Counted {
  explicit Counted(int* ends_in) : ends(ends_in) {}
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { ++*ends; }
  int* ends;
};

// States --------------------------------------------------------------------------------------------------------------

TEST(CompatValueTest, AnUnconstructedValueIsUnavailable) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  EXPECT_TRUE(value.IsUnavailable());
  EXPECT_TRUE(value.IsUnconstructed());
  EXPECT_FALSE(value.IsAvailable());
  EXPECT_FALSE(value.IsConstructed());
  EXPECT_FALSE(value.IsConcrete());
  EXPECT_FALSE(value.IsError());
  value.emplace(1);
}

TEST(CompatValueTest, AConstructedValueIsUnavailable) {
  const AsyncValueRef<int> value = MakeConstructedAsyncValueRef<int>(3);
  EXPECT_TRUE(value.IsConstructed());
  EXPECT_TRUE(value.IsUnavailable());
  EXPECT_EQ(value.get(), 3) << "for its producer";
  value.SetStateConcrete();
}

TEST(CompatValueTest, AnAvailableValueIsConcrete) {
  const AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(3);
  EXPECT_TRUE(value.IsAvailable());
  EXPECT_TRUE(value.IsConcrete());
  EXPECT_FALSE(value.IsError());
  EXPECT_EQ(value.get(), 3);
}

TEST(CompatValueTest, EmplaceMakesAValueAvailable) {
  const AsyncValueRef<std::string> value = MakeUnconstructedAsyncValueRef<std::string>();
  value.emplace(3U, 'x');
  EXPECT_TRUE(value.IsConcrete());
  EXPECT_EQ(value.get(), "xxx");
}

TEST(CompatValueTest, EmplaceOfAStatusOrPublishesItsValue) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  value.emplace(absl::StatusOr<int>(4));
  EXPECT_EQ(*value, 4);
}

TEST(CompatValueTest, EmplaceOfAStatusOrPublishesItsError) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  value.emplace(absl::StatusOr<int>(Broken()));
  EXPECT_TRUE(value.IsError());
  EXPECT_EQ(value.GetError(), Broken());
}

TEST(CompatValueTest, EmplaceReplacesWhatWasConstructed) {
  const AsyncValueRef<std::string> value = MakeConstructedAsyncValueRef<std::string>("first");
  value.emplace("second");
  EXPECT_EQ(*value, "second");
}

TEST(CompatValueTest, SetStateConcretePublishesWhatWasConstructed) {
  const AsyncValueRef<int> value = MakeConstructedAsyncValueRef<int>(5);
  value.get() = 6;
  value.SetStateConcrete();
  EXPECT_TRUE(value.IsConcrete());
  EXPECT_EQ(*value, 6);
}

TEST(CompatValueTest, SetErrorMakesAnErrorOfAnUnconstructedValue) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  value.SetError(Broken());
  EXPECT_TRUE(value.IsAvailable());
  EXPECT_TRUE(value.IsError());
  EXPECT_FALSE(value.IsConcrete());
  EXPECT_EQ(value.GetError(), Broken());
}

TEST(CompatValueTest, SetErrorDestroysWhatWasConstructed) {
  int ends = 0;
  const AsyncValueRef<Counted> value = MakeConstructedAsyncValueRef<Counted>(&ends);
  value.SetError(Broken());
  EXPECT_EQ(ends, 1);
  EXPECT_TRUE(value.IsError());
}

TEST(CompatValueTest, AnErrorKeepsCodeAndMessage) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  value.SetError(absl::NotFoundError("no file"));
  EXPECT_TRUE(absl::IsNotFound(value.GetError()));
  EXPECT_EQ(value.GetError().message(), "no file");
}

TEST(CompatValueTest, GetErrorIfPresentTellsAnErrorFromAValue) {
  EXPECT_FALSE(MakeAvailableAsyncValueRef<int>(1).GetErrorIfPresent());
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  value.SetError(Broken());
  ASSERT_TRUE(value.GetErrorIfPresent());
  EXPECT_EQ(*value.GetErrorIfPresent(), Broken());
}

// Making and converting -----------------------------------------------------------------------------------------------

TEST(CompatValueTest, AStatusConvertsToAnError) {
  const auto make = []() -> AsyncValueRef<int> { return Broken(); };
  EXPECT_TRUE(make().IsError());
  EXPECT_EQ(make().GetError(), Broken());
}

TEST(CompatValueTest, AStatusIsAnErrorAlsoWhereThePayloadIsAStatusOr) {
  const auto make = []() -> AsyncValueRef<absl::StatusOr<int>> { return Broken(); };
  EXPECT_TRUE(make().IsError());
}

TEST(CompatValueTest, AStatusOrMayBeAPayload) {
  const AsyncValueRef<absl::StatusOr<int>> value = MakeAvailableAsyncValueRef<absl::StatusOr<int>>(Broken());
  EXPECT_TRUE(value.IsConcrete());
  EXPECT_EQ(value->status(), Broken());
}

TEST(CompatValueTest, MakeErrorAsyncValueRefIsOfEveryType) {
  const AsyncValueRef<int> number = tsl::MakeErrorAsyncValueRef(Broken());
  const AsyncValueRef<std::string> text = tsl::MakeErrorAsyncValueRef(Broken());
  EXPECT_EQ(number.GetError(), Broken());
  EXPECT_EQ(text.GetError(), Broken());
}

TEST(CompatValueTest, AnErrorIsAssigned) {
  AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(1);
  value = tsl::MakeErrorAsyncValueRef(Broken());
  EXPECT_TRUE(value.IsError());
}

TEST(CompatValueTest, NullIsFalse) {
  AsyncValueRef<int> value = nullptr;
  EXPECT_FALSE(value);
  value = MakeAvailableAsyncValueRef<int>(1);
  EXPECT_TRUE(value);
  value = nullptr;
  EXPECT_FALSE(value);
  EXPECT_FALSE(AsyncValueRef<int>());
}

TEST(CompatValueTest, CopyingSharesTheValue) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  const AsyncValueRef<int> copy = value.CopyRef();
  const AsyncValueRef<int> other = value;  // NOLINT(performance-unnecessary-copy-initialization): the point.
  value.emplace(7);
  EXPECT_EQ(*copy, 7);
  EXPECT_EQ(*other, 7);
  EXPECT_TRUE(copy == value);
  EXPECT_TRUE(MakeAvailableAsyncValueRef<int>(7) != value);
}

TEST(CompatValueTest, IsUniqueCountsReferences) {
  AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(1);
  EXPECT_TRUE(value.IsUnique());
  {
    const AsyncValueRef<int> copy = value.CopyRef();
    EXPECT_FALSE(value.IsUnique());
  }
  EXPECT_TRUE(value.IsUnique());
}

TEST(CompatValueTest, MovingLeavesNull) {
  AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(1);
  const AsyncValueRef<int> taken = std::move(value);
  EXPECT_FALSE(value);  // NOLINT(bugprone-use-after-move): the contract.
  EXPECT_TRUE(taken.IsUnique());
}

TEST(CompatValueTest, ResetDropsTheReference) {
  int ends = 0;
  AsyncValueRef<Counted> value = MakeAvailableAsyncValueRef<Counted>(&ends);
  AsyncValueRef<Counted> copy = value;
  value.reset();
  EXPECT_FALSE(value);
  EXPECT_EQ(ends, 0);
  copy.reset();
  EXPECT_EQ(ends, 1);
}

TEST(CompatValueTest, ThePayloadMayBeMoveOnly) {
  const AsyncValueRef<std::unique_ptr<int>> value =
      MakeAvailableAsyncValueRef<std::unique_ptr<int>>(std::make_unique<int>(3));
  EXPECT_EQ(**value, 3);
}

TEST(CompatValueTest, ThePayloadNeedNotBeMovable) {
  const AsyncValueRef<std::atomic<int>> value = MakeUnconstructedAsyncValueRef<std::atomic<int>>();
  value.emplace(4);
  EXPECT_EQ(value->load(), 4);
}

struct Base {
  int base = 1;
};
struct Derived : Base {
  int derived = 2;
};

TEST(CompatValueTest, ADerivedPayloadConvertsToItsBase) {
  const AsyncValueRef<Derived> derived = MakeAvailableAsyncValueRef<Derived>();
  const AsyncValueRef<Base> base = derived;
  EXPECT_EQ(base->base, 1);
  EXPECT_EQ(base.get<Derived>().derived, 2);
  derived->base = 5;
  EXPECT_EQ(base->base, 5);
}

// Waiters -------------------------------------------------------------------------------------------------------------

TEST(CompatValueTest, AWaiterRunsWhenTheValueIsSet) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  int calls = 0;
  value.AndThen([&] { ++calls; });
  EXPECT_EQ(calls, 0);
  value.emplace(1);
  EXPECT_EQ(calls, 1);
}

TEST(CompatValueTest, AWaiterOfAnAvailableValueRunsAtOnce) {
  int calls = 0;
  MakeAvailableAsyncValueRef<int>(1).AndThen([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(CompatValueTest, EachOfSeveralWaitersRunsOnce) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  std::vector<int> calls(100, 0);
  for (int& call : calls) value.AndThen([&call] { ++call; });
  value.emplace(1);
  EXPECT_EQ(calls, std::vector<int>(100, 1));
}

TEST(CompatValueTest, AWaiterMayTakeTheStatus) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  absl::Status seen;
  value.AndThen([&](absl::Status status) { seen = std::move(status); });
  value.SetError(Broken());
  EXPECT_EQ(seen, Broken());
  seen = Broken();
  MakeAvailableAsyncValueRef<int>(1).AndThen([&](absl::Status status) { seen = std::move(status); });
  EXPECT_EQ(seen, absl::OkStatus());
}

TEST(CompatValueTest, AWaiterMayTakeAPointerOrTheError) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  int seen = 0;
  value.AndThen([&](absl::StatusOr<int*> result) { seen = **result; });
  value.emplace(9);
  EXPECT_EQ(seen, 9);
  const AsyncValueRef<int> failed = MakeUnconstructedAsyncValueRef<int>();
  absl::Status error;
  failed.AndThen([&](absl::StatusOr<int*> result) { error = result.status(); });
  failed.SetError(Broken());
  EXPECT_EQ(error, Broken());
}

TEST(CompatValueTest, AWaiterMayBeMoveOnly) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  int seen = 0;
  value.AndThen([&seen, owned = std::make_unique<int>(6)] { seen = *owned; });
  value.emplace(1);
  EXPECT_EQ(seen, 6);
}

TEST(CompatValueTest, AWaiterMayOwnTheLastReference) {
  int ends = 0;
  AsyncValueRef<Counted> value = MakeConstructedAsyncValueRef<Counted>(&ends);
  const AsyncValuePtr<Counted> ptr = value.AsPtr();
  ptr.AndThen([owned = std::move(value)] {});
  EXPECT_EQ(ends, 0);
  ptr.SetStateConcrete();
  EXPECT_EQ(ends, 1);
}

TEST(CompatValueTest, AWaiterMayAttachAnother) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  int calls = 0;
  value.AndThen([&] { value.AndThen([&] { ++calls; }); });
  value.emplace(1);
  EXPECT_EQ(calls, 1);
}

TEST(CompatValueTest, HasWaiterIsTrueWhileOneWaits) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  EXPECT_FALSE(value.HasWaiter());
  value.AndThen([] {});
  EXPECT_TRUE(value.HasWaiter());
  value.emplace(1);
  EXPECT_FALSE(value.HasWaiter());
}

TEST(CompatValueTest, AWaiterOnAnExecutorIsATask) {
  LaterExecutor executor;
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  int calls = 0;
  value.AndThen(executor, [&] { ++calls; });
  EXPECT_EQ(executor.waiting(), 0U);
  value.emplace(1);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(executor.RunAll(), 1U);
  EXPECT_EQ(calls, 1);
}

TEST(CompatValueTest, AWaiterOnAnExecutorIsATaskAlsoOfAnAvailableValue) {
  LaterExecutor executor;
  int seen = 0;
  MakeAvailableAsyncValueRef<int>(8).AndThen(executor, [&](absl::StatusOr<int*> value) { seen = **value; });
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(executor.RunAll(), 1U);
  EXPECT_EQ(seen, 8) << "the task keeps the value";
}

TEST(CompatValueTest, WaitersSeeWhatOtherThreadsSet) {
  const AsyncValueRef<std::string> value = MakeUnconstructedAsyncValueRef<std::string>();
  std::thread setter([&] { value.emplace("from a thread"); });
  tsl::BlockUntilReady(value);
  EXPECT_EQ(*value, "from a thread");
  setter.join();
}

TEST(CompatValueTest, BlockUntilReadyReturnsAtOnceForAnError) {
  const AsyncValueRef<int> value = tsl::MakeErrorAsyncValueRef(Broken());
  tsl::BlockUntilReady(value);
  tsl::BlockUntilReady(value.AsPtr());
  EXPECT_TRUE(value.IsError());
}

// Maps ----------------------------------------------------------------------------------------------------------------

TEST(CompatMapTest, MapsAnAvailableValueAtOnce) {
  AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(4);
  const AsyncValueRef<std::string> text = value.Map([](int number) { return std::to_string(number); });
  EXPECT_TRUE(text.IsConcrete());
  EXPECT_EQ(*text, "4");
}

TEST(CompatMapTest, MapsAPendingValueOnceItIsThere) {
  AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  const AsyncValueRef<int> twice = value.Map([](int number) { return 2 * number; });
  EXPECT_TRUE(twice.IsUnavailable());
  value.emplace(4);
  EXPECT_EQ(*twice, 8);
}

TEST(CompatMapTest, MapsToATypeThatIsNamedAndNeedNotBeMovable) {
  AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  const AsyncValueRef<std::atomic<int>> mapped = value.Map<std::atomic<int>>([](int number) { return number; });
  value.emplace(4);
  EXPECT_EQ(mapped->load(), 4);
}

TEST(CompatMapTest, AnErrorPassesByTheFunction) {
  AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  int calls = 0;
  const AsyncValueRef<int> mapped = value.Map([&](int number) { return ++calls, number; });
  value.SetError(Broken());
  EXPECT_EQ(mapped.GetError(), Broken());
  EXPECT_EQ(calls, 0);
  AsyncValueRef<int> failed = tsl::MakeErrorAsyncValueRef(Broken());
  EXPECT_TRUE(failed.Map([&](int number) { return ++calls, number; }).IsError());
  EXPECT_EQ(calls, 0);
}

TEST(CompatMapTest, AChainOfMapsIsDoneInItsOrder) {
  AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  const AsyncValueRef<int> end =
      value.Map([](int x) { return x + 1; }).Map([](int x) { return x * 2; }).Map([](int x) { return x - 3; });
  value.emplace(4);
  EXPECT_EQ(*end, 7);
}

TEST(CompatMapTest, AStatusThatTheFunctionReturnsIsAPayload) {
  AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(1);
  const AsyncValueRef<absl::Status> mapped = value.Map([](int) { return Broken(); });
  EXPECT_TRUE(mapped.IsConcrete());
  EXPECT_EQ(*mapped, Broken());
}

TEST(CompatMapTest, MapOnAnExecutorIsATask) {
  LaterExecutor executor;
  AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(4);
  const AsyncValueRef<int> mapped = value.Map(executor, [](int number) { return number + 1; });
  value.reset();
  EXPECT_TRUE(mapped.IsUnavailable());
  EXPECT_EQ(executor.RunAll(), 1U);
  EXPECT_EQ(*mapped, 5);
}

TEST(CompatMapTest, TryMapTakesTheValueOutOfAStatusOr) {
  AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  const AsyncValueRef<int> mapped = value.TryMap([](int number) -> absl::StatusOr<int> { return number + 1; });
  value.emplace(1);
  EXPECT_EQ(*mapped, 2);
}

TEST(CompatMapTest, TryMapTakesTheError) {
  AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(1);
  const AsyncValueRef<int> mapped = value.TryMap([](int) -> absl::StatusOr<int> { return Broken(); });
  EXPECT_EQ(mapped.GetError(), Broken());
  AsyncValueRef<int> again = mapped;
  EXPECT_EQ(again.TryMap([](int number) -> absl::StatusOr<int> { return number; }).GetError(), Broken());
}

TEST(CompatMapTest, TryMapMayNameItsType) {
  AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  const AsyncValueRef<std::atomic<int>> mapped =
      value.TryMap<std::atomic<int>>([](int number) -> absl::StatusOr<int> { return number; });
  value.emplace(3);
  EXPECT_EQ(mapped->load(), 3);
}

TEST(CompatMapTest, TryMapOnAnExecutorIsATask) {
  LaterExecutor executor;
  AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  const AsyncValueRef<int> mapped =
      value.TryMap(executor, [](int) -> absl::StatusOr<int> { return absl::OutOfRangeError("far"); });
  value.emplace(3);
  EXPECT_TRUE(mapped.IsUnavailable());
  EXPECT_EQ(executor.RunAll(), 1U);
  EXPECT_TRUE(absl::IsOutOfRange(mapped.GetError()));
}

TEST(CompatMapTest, FlatMapGivesTheInnerValue) {
  AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(4);
  const AsyncValueRef<int> inner = MakeUnconstructedAsyncValueRef<int>();
  const AsyncValueRef<int> flat = value.FlatMap([&](int) { return inner; });
  EXPECT_TRUE(flat.IsUnavailable());
  inner.emplace(9);
  EXPECT_EQ(*flat, 9);
}

TEST(CompatMapTest, FlatMapOfAPendingValueShowsTheInnerOneLater) {
  AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  const AsyncValueRef<std::unique_ptr<int>> inner = MakeUnconstructedAsyncValueRef<std::unique_ptr<int>>();
  const AsyncValueRef<std::unique_ptr<int>> flat = value.FlatMap([&](int) { return inner; });
  value.emplace(1);
  EXPECT_TRUE(flat.IsUnavailable());
  inner.emplace(std::make_unique<int>(2));
  EXPECT_EQ(flat->get(), inner->get()) << "the same value, not a copy";
}

TEST(CompatMapTest, FlatMapTakesErrorsOfBothValues) {
  AsyncValueRef<int> outer = MakeUnconstructedAsyncValueRef<int>();
  const AsyncValueRef<int> flat = outer.FlatMap([](int) { return MakeAvailableAsyncValueRef<int>(1); });
  outer.SetError(Broken());
  EXPECT_EQ(flat.GetError(), Broken());
  AsyncValueRef<int> good = MakeUnconstructedAsyncValueRef<int>();
  const AsyncValueRef<int> inner_fails =
      good.FlatMap([](int) { return AsyncValueRef<int>(tsl::MakeErrorAsyncValueRef(Broken())); });
  good.emplace(1);
  EXPECT_EQ(inner_fails.GetError(), Broken());
}

TEST(CompatMapTest, FlatMapOnAnExecutorIsATask) {
  LaterExecutor executor;
  AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(4);
  const AsyncValueRef<int> flat =
      value.FlatMap(executor, [](int number) { return MakeAvailableAsyncValueRef<int>(number + 1); });
  EXPECT_TRUE(flat.IsUnavailable());
  EXPECT_EQ(executor.RunAll(), 1U);
  EXPECT_EQ(*flat, 5);
}

TEST(CompatMapTest, APointerMapsAsAReferenceDoes) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  AsyncValuePtr<int> ptr = value.AsPtr();
  const AsyncValueRef<int> mapped = ptr.Map([](int number) { return number + 1; });
  const AsyncValueRef<int> tried = ptr.TryMap([](int) -> absl::StatusOr<int> { return Broken(); });
  const AsyncValueRef<int> flat = ptr.FlatMap([](int number) { return MakeAvailableAsyncValueRef<int>(number); });
  value.emplace(3);
  EXPECT_EQ(*mapped, 4);
  EXPECT_EQ(tried.GetError(), Broken());
  EXPECT_EQ(*flat, 3);
}

TEST(CompatMapTest, MakeAsyncValueRefCallsItsFunctionInATask) {
  LaterExecutor executor;
  const AsyncValueRef<int> inferred = tsl::MakeAsyncValueRef(executor, [] { return 4; });
  const AsyncValueRef<std::atomic<int>> named = tsl::MakeAsyncValueRef<std::atomic<int>>(executor, [] { return 5; });
  EXPECT_TRUE(inferred.IsUnavailable());
  EXPECT_EQ(executor.RunAll(), 2U);
  EXPECT_EQ(*inferred, 4);
  EXPECT_EQ(named->load(), 5);
}

TEST(CompatMapTest, TryMakeAsyncValueRefTakesTheStatusOrApart) {
  LaterExecutor executor;
  const AsyncValueRef<int> good = tsl::TryMakeAsyncValueRef(executor, []() -> absl::StatusOr<int> { return 4; });
  const AsyncValueRef<int> bad = tsl::TryMakeAsyncValueRef(executor, []() -> absl::StatusOr<int> { return Broken(); });
  EXPECT_EQ(executor.RunAll(), 2U);
  EXPECT_EQ(*good, 4);
  EXPECT_EQ(bad.GetError(), Broken());
}

// Pointers, casts, several values -------------------------------------------------------------------------------------

TEST(CompatPtrTest, APointerCountsNoReference) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  const AsyncValuePtr<int> ptr = value.AsPtr();
  EXPECT_TRUE(value.IsUnique());
  EXPECT_TRUE(ptr);
  EXPECT_TRUE(ptr == AsyncValuePtr<int>(value));
  ptr.emplace(3);
  EXPECT_EQ(*value, 3);
  EXPECT_EQ(*ptr, 3);
  EXPECT_FALSE(AsyncValuePtr<int>());
}

TEST(CompatPtrTest, CopyRefOfAPointerCounts) {
  const AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(1);
  const AsyncValueRef<int> copy = value.AsPtr().CopyRef();
  EXPECT_FALSE(value.IsUnique());
  EXPECT_EQ(*copy, 1);
}

TEST(CompatPtrTest, FailsAndWaitsThroughAPointer) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  const AsyncValuePtr<int> ptr = value.AsPtr();
  absl::Status seen;
  ptr.AndThen([&](absl::Status status) { seen = std::move(status); });
  EXPECT_TRUE(ptr.HasWaiter());
  ptr.SetError(Broken());
  EXPECT_EQ(seen, Broken());
  EXPECT_TRUE(ptr.IsError());
  EXPECT_EQ(ptr.GetError(), Broken());
}

TEST(CompatCastTest, IsaKnowsTheTypeThatTheValueWasMadeAs) {
  const AsyncValueRef<Base> base = MakeAvailableAsyncValueRef<Derived>();
  const AsyncValueRef<Base> plain = MakeAvailableAsyncValueRef<Base>();
  EXPECT_TRUE(tsl::Isa<Base>(base));
  EXPECT_TRUE(tsl::Isa<Derived>(base));
  EXPECT_FALSE(tsl::Isa<Derived>(plain));
  EXPECT_TRUE(tsl::Isa<Derived>(base.AsPtr()));
}

TEST(CompatCastTest, IsaIsTrueOfAnErrorThatWasMadeAsOne) {
  const AsyncValueRef<Base> error = tsl::MakeErrorAsyncValueRef(Broken());
  EXPECT_TRUE(tsl::Isa<Base>(error));
#ifndef PURLIN_COMPAT_UPSTREAM  // The wheel's library has another number for the type of such errors than this program.
  EXPECT_TRUE(tsl::Isa<Derived>(error));
#endif
}

TEST(CompatCastTest, CastsDown) {
  const AsyncValueRef<Base> base = MakeAvailableAsyncValueRef<Derived>();
  const AsyncValueRef<Derived> derived = tsl::Cast<Derived>(base);
  EXPECT_EQ(derived->derived, 2);
  EXPECT_EQ(tsl::Cast<Derived>(base.AsPtr())->derived, 2);
}

TEST(CompatCastTest, DynCastOfAnotherTypeIsNull) {
  const AsyncValueRef<Base> plain = MakeAvailableAsyncValueRef<Base>();
  EXPECT_FALSE(tsl::DynCast<Derived>(plain));
  EXPECT_FALSE(tsl::DynCast<Derived>(plain.AsPtr()));
  const AsyncValueRef<Base> base = MakeUnconstructedAsyncValueRef<Derived>();
  const AsyncValueRef<Derived> derived = tsl::DynCast<Derived>(base);
  ASSERT_TRUE(derived);
  derived.emplace();
  EXPECT_EQ(base->base, 1);
}

TEST(CompatManyTest, RunWhenReadyRunsAfterTheLast) {
  const std::vector<AsyncValueRef<int>> values = {MakeUnconstructedAsyncValueRef<int>(),
                                                  MakeUnconstructedAsyncValueRef<int>()};
  int calls = 0;
  tsl::RunWhenReady(absl::Span<const AsyncValueRef<int>>(values), [&] { ++calls; });
  values[1].emplace(1);
  EXPECT_EQ(calls, 0);
  values[0].emplace(1);
  EXPECT_EQ(calls, 1);
}

TEST(CompatManyTest, RunWhenReadyOfAvailableOnesRunsAtOnce) {
  const std::vector<AsyncValueRef<int>> values = {MakeAvailableAsyncValueRef<int>(1),
                                                  AsyncValueRef<int>(tsl::MakeErrorAsyncValueRef(Broken()))};
  const std::vector<AsyncValuePtr<int>> ptrs = {values[0].AsPtr(), values[1].AsPtr()};
  int calls = 0;
  tsl::RunWhenReady(absl::Span<const AsyncValueRef<int>>(values), [&] { ++calls; });
  tsl::RunWhenReady(absl::Span<const AsyncValuePtr<int>>(ptrs), [&] { ++calls; });
  EXPECT_EQ(calls, 2);
}

// Counting down -------------------------------------------------------------------------------------------------------

TEST(CompatCountDownTest, OfNothingIsAvailable) {
  const tsl::CountDownAsyncValueRef<int> none(0, 42);
  EXPECT_TRUE(none.AsRef().IsConcrete());
  EXPECT_EQ(*none.AsRef(), 42);
}

TEST(CompatCountDownTest, TheLastCountPublishesThePayload) {
  tsl::CountDownAsyncValueRef<int> count(2, 42);
  const AsyncValueRef<int> value = count.AsRef();
  EXPECT_FALSE(count.CountDown());
  EXPECT_EQ(count.count(), 1);
  EXPECT_TRUE(value.IsUnavailable());
  EXPECT_TRUE(count.CountDown());
  EXPECT_EQ(*value, 42);
}

TEST(CompatCountDownTest, CountsSeveralAtOnce) {
  tsl::CountDownAsyncValueRef<tsl::Chain> count(3);
  EXPECT_FALSE(count.CountDown(2));
  EXPECT_TRUE(count.CountDown(1));
  EXPECT_TRUE(count.AsPtr().IsConcrete());
}

TEST(CompatCountDownTest, AnErrorComesAfterAllAreCounted) {
  tsl::CountDownAsyncValueRef<tsl::Chain> count(2);
  EXPECT_FALSE(count.CountDown(Broken()));
  EXPECT_TRUE(count.is_error());
  EXPECT_TRUE(count.AsPtr().IsUnavailable());
  EXPECT_TRUE(count.CountDown());
  EXPECT_EQ(count.AsRef().GetError(), Broken());
}

TEST(CompatCountDownTest, CompletesAValueThatItWasGiven) {
  const AsyncValueRef<std::string> value = MakeConstructedAsyncValueRef<std::string>("made before");
  tsl::CountDownAsyncValueRef<std::string> count(value, 1);
  EXPECT_TRUE(count.CountDown());
  EXPECT_EQ(*value, "made before");
}

TEST(CompatCountDownTest, CopiesShareTheCount) {
  tsl::CountDownAsyncValueRef<tsl::Chain> count(2);
  tsl::CountDownAsyncValueRef<tsl::Chain> copy = count;
  EXPECT_FALSE(copy.CountDown());
  EXPECT_TRUE(count.CountDown());
  EXPECT_TRUE(copy.AsRef().IsConcrete());
  EXPECT_FALSE(tsl::CountDownAsyncValueRef<tsl::Chain>());
}

TEST(CompatCountDownTest, ThreadsCountToTheEnd) {
  constexpr int kThreads = 4;
  constexpr int kCounts = 500;
  tsl::CountDownAsyncValueRef<tsl::Chain> count(kThreads * kCounts);
  std::atomic<int> last{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([count, &last]() mutable {
      for (int k = 0; k < kCounts; ++k) last += count.CountDown() ? 1 : 0;
    });
  }
  tsl::BlockUntilReady(count.AsRef());
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(last.load(), 1);
}

// Values in the caller's storage --------------------------------------------------------------------------------------

TEST(CompatScopedTest, IsUnconstructedWithoutATag) {
  const tsl::ScopedAsyncValue<int> scoped;
  EXPECT_TRUE(scoped.AsPtr().IsUnavailable());
  scoped.AsPtr().emplace(3);
  EXPECT_EQ(*scoped.AsRef(), 3);
}

TEST(CompatScopedTest, ATagSaysWhatItBeginsAs) {
  using Scoped = tsl::ScopedAsyncValue<int>;
  const Scoped constructed(Scoped::ConstructedTag{}, 4);
  EXPECT_TRUE(constructed.AsPtr().IsUnavailable());
  constructed.AsPtr().SetStateConcrete();
  EXPECT_EQ(*constructed.AsPtr(), 4);
  const Scoped available(Scoped::AvailableTag{}, 5);
  EXPECT_TRUE(available.AsPtr().IsConcrete());
  EXPECT_EQ(*available.AsPtr(), 5);
}

TEST(CompatScopedTest, ItsEndDestroysThePayload) {
  int ends = 0;
  {
    using Scoped = tsl::ScopedAsyncValue<Counted>;
    const Scoped scoped(Scoped::AvailableTag{}, &ends);
    EXPECT_EQ(ends, 0);
  }
  EXPECT_EQ(ends, 1);
}

TEST(CompatScopedTest, StorageHasAnOwner) {
  int ends = 0;
  tsl::internal::AsyncValueStorage<Counted> storage;
  {
    const tsl::AsyncValueOwningRef<Counted> owner = tsl::MakeConstructedAsyncValueRef<Counted>(storage, &ends);
    EXPECT_TRUE(owner.AsPtr().IsUnavailable());
    owner.AsPtr().SetStateConcrete();
    EXPECT_TRUE(owner.AsRef().IsConcrete());
    EXPECT_EQ(ends, 0);
  }
  EXPECT_EQ(ends, 1);
}

}  // namespace
