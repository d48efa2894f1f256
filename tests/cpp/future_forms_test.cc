// Every form of a future (of nothing, of a value that can be copied, of one that can only be moved) with every verb:
// what comes out, what is copied, how many tasks it takes. The verbs' own rules are in future_test.cc, what they do
// when something goes wrong in future_contract_test.cc.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/inline_executor.h"
#include "purlin/join_futures.h"
#include "purlin/promise.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

using Owned = std::unique_ptr<int>;

Future<Owned> OwnedFuture(int value) { return std::make_unique<int>(value); }

/// Can neither be copied nor moved, so it is made where it stays.
struct Pinned {
  explicit Pinned(int value) : value(value) {}
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  int value;
};

/// Made of what a map returned.
struct Doubled {
  explicit Doubled(int from) : value(2 * from) {}
  int value;
};

/// A function of this return type is a function that may fail.
Future<int> ParsePositive(int value) {
  if (value < 0) return InvalidArgumentError("negative");
  return value;
}

TEST(FutureFormsTest, AFunctionThatReturnsAFutureMayReturnAStatusOrAValue) {
  EXPECT_EQ(*ParsePositive(3).Await(), 3);
  EXPECT_TRUE(IsInvalidArgument(ParsePositive(-3).Await().status()));
  Status checked = InternalError("checked");
  auto checks = [&]() -> Future<> { return checked; };
  EXPECT_TRUE(IsInternal(checks().Await()));
  checked = OkStatus();
  EXPECT_TRUE(checks().Await().ok());
}

TEST(FutureFormsTest, CallbacksAndReadinessOfEachForm) {
  auto [nothing_promise, nothing] = MakePromise<>("nothing");
  auto [number_promise, number] = MakePromise<int>("number");
  auto [owned_promise, owned] = MakePromise<Owned>("owned");
  int calls = 0;
  nothing.OnReady([&calls](const Status& status) { calls += status.ok() ? 1 : 0; });
  number.OnReady([&calls](const StatusOr<int>& value) { calls += *value; });
  owned.OnReady([&calls](StatusOr<const Owned*> value) { calls += ***value; });
  EXPECT_FALSE(nothing.IsReady() || number.IsReady() || owned.IsReady());
  EXPECT_FALSE(nothing.IsKnownReady());
  nothing_promise.Set();
  number_promise.Set(10);
  owned_promise.Set(std::make_unique<int>(100));
  EXPECT_TRUE(nothing.IsReady() && number.IsReady() && owned.IsReady());
  EXPECT_TRUE(number.IsKnownReady());
  EXPECT_EQ(calls, 111);
}

TEST(FutureFormsTest, AMoveOnlyValueIsNotTakenFromAFutureThatIsKept) {
  using Kept = decltype(std::declval<const Future<Owned>&>().Await());
  static_assert(!std::is_move_constructible_v<Kept> && !std::is_convertible_v<Kept, StatusOr<Owned>>,
                "it would outlive the future's value");
  static_assert(std::is_same_v<decltype(*std::declval<Kept>()), const Owned&>, "others may look at it, too");
  static_assert(std::is_same_v<decltype(std::declval<Kept>().value()), const Owned&>, "others may look at it, too");
  const Future<Owned> future = OwnedFuture(4);
  const StatusOr<Owned>& shown = future.Await();
  EXPECT_EQ(**shown, 4);
  EXPECT_EQ(**future.Await(), 4);
  EXPECT_EQ(future.Await()->get(), shown->get());
}

TEST(FutureFormsTest, AssigningMovesAndSharesAsConstructingDoes) {
  Future<int> number = 1;
  Future<int> other;
  other = number;
  EXPECT_EQ(other.async_value(), number.async_value()) << "a copy is the same value";
  other = std::move(number);
  EXPECT_FALSE(number.IsValid());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(*other.Await(), 1);
  Future<Owned> owned = OwnedFuture(2);
  owned = OwnedFuture(3);
  Future<Owned> taken;
  taken = std::move(owned);
  EXPECT_FALSE(owned.IsValid());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(**std::move(taken).Await(), 3);
}

TEST(FutureFormsTest, GetReadyFutureOfEachForm) {
  auto [number_promise, number] = MakePromise<int>("number");
  auto [owned_promise, owned] = MakePromise<Owned>("owned");
  auto [failing_promise, failing] = MakePromise<Owned>("failing");
  Future<> a = number.GetReadyFuture();
  Future<> b = owned.GetReadyFuture();
  Future<> c = failing.GetReadyFuture();
  EXPECT_FALSE(a.IsReady() || b.IsReady() || c.IsReady());
  number_promise.Set(1);
  owned_promise.Set(std::make_unique<int>(2));
  failing_promise.Set(AbortedError("x"));
  EXPECT_TRUE(a.Await().ok());
  EXPECT_TRUE(b.Await().ok());
  EXPECT_TRUE(IsAborted(c.Await()));
  EXPECT_TRUE(IsAborted(failing.GetReadyFuture().Await())) << "of one that has failed before";
}

// Map -----------------------------------------------------------------------------------------------------------------

TEST(FutureFormsTest, MapsOfNothing) {
  auto [promise, future] = MakePromise<>("nothing");
  Future<> nothing = future.Map([] {});
  Future<> status = future.Map([] { return OkStatus(); });
  Future<> failed = future.Map([] { return AbortedError("by f"); });
  Future<int> value = future.Map([] { return 1; });
  Future<int> tried = future.Map([]() -> StatusOr<int> { return 2; });
  Future<int> denied = future.Map([]() -> StatusOr<int> { return DataLossError("by f"); });
  Future<Owned> owned = future.Map([] { return std::make_unique<int>(3); });
  EXPECT_FALSE(nothing.IsReady() || value.IsReady() || owned.IsReady());
  promise.Set();
  EXPECT_TRUE(nothing.Await().ok());
  EXPECT_TRUE(status.Await().ok());
  EXPECT_TRUE(IsAborted(failed.Await()));
  EXPECT_EQ(*value.Await(), 1);
  EXPECT_EQ(*tried.Await(), 2);
  EXPECT_TRUE(IsDataLoss(denied.Await().status()));
  EXPECT_EQ(**std::move(owned).Await(), 3);
}

TEST(FutureFormsTest, MapsOfAFailedNothingCallNothing) {
  auto [promise, future] = MakePromise<>("nothing");
  int calls = 0;
  Future<> nothing = future.Map([&calls] { ++calls; });
  Future<> status = future.Map([&calls] {
    ++calls;
    return OkStatus();
  });
  Future<int> value = future.Map([&calls]() -> StatusOr<int> { return ++calls; });
  promise.Set(NotFoundError("x"));
  EXPECT_TRUE(IsNotFound(nothing.Await()));
  EXPECT_TRUE(IsNotFound(status.Await()));
  EXPECT_TRUE(IsNotFound(value.Await().status()));
  EXPECT_EQ(calls, 0);
}

TEST(FutureFormsTest, MapsOfAMoveOnlyValueToEverything) {
  auto tried = [](Owned value) -> StatusOr<Owned> { return std::make_unique<int>(*value + 1); };
  auto denied = [](Owned) -> StatusOr<Owned> { return DataLossError("by f"); };
  auto checked = [](Owned value) { return *value == 1 ? OkStatus() : AbortedError("not one"); };
  for (const bool pending : {false, true}) {
    std::vector<Promise<Owned>> promises;
    auto source = [&] {
      auto [promise, future] = MakePromise<Owned>("owned");
      promises.push_back(std::move(promise));
      if (!pending) promises.back().Set(std::make_unique<int>(1));
      return std::move(future);
    };
    Future<Owned> value = source().Map([](Owned from) { return std::make_unique<int>(*from + 1); });
    Future<Owned> again = source().Map(tried);
    Future<Owned> failed = source().Map(denied);
    Future<> status = source().Map(checked);
    Future<> nothing = source().Map([](const Owned&) {});
    for (Promise<Owned>& promise : promises) promise.Set(std::make_unique<int>(1));
    EXPECT_EQ(**std::move(value).Await(), 2);
    EXPECT_EQ(**std::move(again).Await(), 2);
    EXPECT_TRUE(IsDataLoss(std::move(failed).Await().status()));
    EXPECT_TRUE(status.Await().ok());
    EXPECT_TRUE(nothing.Await().ok());
  }
}

TEST(FutureFormsTest, MapsOfAFailedMoveOnlyValueCallNothing) {
  auto [promise, future] = MakePromise<Owned>("owned");
  int calls = 0;
  Future<int> by_reference = future.Map([&calls](const Owned&) { return ++calls; });
  Future<Owned> by_move = std::move(future).Map([&calls](Owned value) -> StatusOr<Owned> {
    ++calls;
    return value;
  });
  promise.Set(NotFoundError("x"));
  EXPECT_TRUE(IsNotFound(by_reference.Await().status()));
  EXPECT_TRUE(IsNotFound(std::move(by_move).Await().status()));
  EXPECT_EQ(calls, 0);
}

TEST(FutureFormsTest, AnExplicitResultIsMadeInPlace) {
  auto [promise, future] = MakePromise<int>("number");
  Future<Doubled> doubled = future.Map<Doubled>([](int value) { return value; });
  Future<Pinned> pinned = future.Map<Pinned>([](int value) { return value; });
  auto [owned_promise, owned] = MakePromise<Owned>("owned");
  Future<Doubled> of_owned = std::move(owned).Map<Doubled>([](Owned value) { return *value; });
  promise.Set(4);
  owned_promise.Set(std::make_unique<int>(5));
  EXPECT_EQ(doubled.Await()->value, 8);
  EXPECT_EQ((*pinned.AwaitPointer())->value, 4);
  EXPECT_EQ(of_owned.Await()->value, 10);
}

TEST(FutureFormsTest, AnRvalueMapDoesNotStealWhatIsShared) {
  auto [promise, future] = MakePromise<std::string>("shared");
  Future<std::string> copy = future;
  Future<std::string> mapped = std::move(future).Map([](std::string value) { return std::move(value) + "!"; });
  promise.Set(std::string(100, 'x'));
  EXPECT_EQ(mapped.Await()->size(), 101U);
  EXPECT_EQ(copy.Await()->size(), 100U);
  Future<std::string> ready = copy;
  EXPECT_EQ(std::move(ready).Map([](std::string value) { return value.size(); }).Await().value(), 100U);
  EXPECT_EQ(copy.Await()->size(), 100U);
}

TEST(FutureFormsTest, NothingIsComputedForNobodyInAnyForm) {
  DeferredExecutor executor;
  int calls = 0;
  auto [nothing_promise, nothing] = MakePromise<>("nothing");
  auto [number_promise, number] = MakePromise<int>("number");
  auto [owned_promise, owned] = MakePromise<Owned>("owned");
  auto drop = [](auto) {};
  drop(nothing.Map([&calls] { ++calls; }));
  drop(nothing.Map(executor, [&calls] { ++calls; }));
  drop(number.Map([&calls](int) { return ++calls; }));
  drop(number.Map(executor, [&calls](int) { return ++calls; }));
  drop(number.Map(executor, [&calls](int) { return Future<int>(++calls); }));
  drop(number.Detach(executor));
  drop(std::move(number).Map(executor, [&calls](int) { return ++calls; }));
  drop(std::move(owned).Map(executor, [&calls](Owned) { return ++calls; }));
  auto [other_promise, other] = MakePromise<Owned>("other");
  drop(std::move(other).Detach(executor));
  nothing_promise.Set();
  number_promise.Set(1);
  owned_promise.Set(std::make_unique<int>(1));
  other_promise.Set(std::make_unique<int>(1));
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(executor.tasks, 0);
}

TEST(FutureFormsTest, OnReadyOnAnExecutorOfEachForm) {
  CountingExecutor executor;
  auto [nothing_promise, nothing] = MakePromise<>("nothing");
  auto [number_promise, number] = MakePromise<int>("number");
  auto [owned_promise, owned] = MakePromise<Owned>("owned");
  int sum = 0;
  nothing.OnReady(executor, [&sum](const Status& status) { sum += status.ok() ? 1 : 0; });
  number.OnReady(executor, [&sum](const StatusOr<int>& value) { sum += *value; });
  std::move(owned).OnReady(executor, [&sum](StatusOr<Owned> value) { sum += **value; });
  EXPECT_EQ(executor.tasks, 0);
  nothing_promise.Set();
  number_promise.Set(10);
  owned_promise.Set(std::make_unique<int>(100));
  EXPECT_EQ(executor.tasks, 3);
  EXPECT_EQ(sum, 111);
}

// Executors -----------------------------------------------------------------------------------------------------------

TEST(FutureFormsTest, ACallbackOfAnRvalueGetsACopyOfWhatIsShared) {
  auto [promise, future] = MakePromise<std::string>("shared");
  Future<std::string> copy = future;
  std::string got;
  std::move(future).OnReady([&got](StatusOr<std::string> value) { got = *std::move(value); });
  EXPECT_FALSE(future.IsValid());  // NOLINT(bugprone-use-after-move)
  promise.Set(std::string(100, 'x'));
  EXPECT_EQ(got.size(), 100U);
  EXPECT_EQ(copy.Await()->size(), 100U);
}

TEST(FutureFormsTest, AMapOnAnExecutorIsOneTaskAlsoOfAReadyFuture) {
  DeferredExecutor executor;
  auto [promise, future] = MakePromise<int>("number");
  Future<int> pending = future.Map(executor, [](int value) { return value + 1; });
  EXPECT_EQ(executor.tasks, 0) << "there is nothing to compute yet";
  promise.Set(1);
  Future<int> ready = future.Map(executor, [](int value) { return value + 2; });
  EXPECT_EQ(executor.tasks, 2);
  EXPECT_FALSE(pending.IsReady() || ready.IsReady());
  executor.RunAll();
  EXPECT_EQ(*pending.Await(), 2);
  EXPECT_EQ(*ready.Await(), 3);
}

TEST(FutureFormsTest, ADetachedFutureTakesOneTaskHoweverManyMapsFollow) {
  DeferredExecutor executor;
  auto [promise, future] = MakePromise<int>("number");
  Future<int> detached = future.Detach(executor);
  Future<int> mapped = detached.Map([](int value) { return value + 1; }).Map([](int value) { return value + 1; });
  auto [owned_promise, owned] = MakePromise<Owned>(executor, "owned");
  promise.Set(1);
  owned_promise.Set(std::make_unique<int>(5));
  EXPECT_FALSE(detached.IsReady() || owned.IsReady());
  executor.RunAll();
  EXPECT_EQ(*mapped.Await(), 3);
  EXPECT_EQ(**std::move(owned).Await(), 5);
  EXPECT_EQ(executor.tasks, 2);
}

TEST(FutureFormsTest, AMoveOnlyValueIsMovedOutOfADetachedFuture) {
  DeferredExecutor executor;
  auto [promise, future] = MakePromise<Owned>("owned");
  Future<Owned> detached = std::move(future).Detach(executor);
  promise.Set(std::make_unique<int>(7));
  executor.RunAll();
  EXPECT_EQ(**std::move(detached).Await(), 7);
  EXPECT_EQ(executor.tasks, 1);
}

TEST(FutureFormsTest, EveryFormMapsOnAPoolAfterItsPromiseIsGone) {
  constexpr int kEach = 100;
  StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({2, "forms"});
  ASSERT_TRUE(pool.ok());
  std::vector<Future<int>> mapped;
  std::vector<Future<Owned>> moved;
  const std::thread::id setter = std::this_thread::get_id();
  for (int i = 0; i < kEach; ++i) {
    auto [nothing_promise, nothing] = MakePromise<>("nothing");
    auto [number_promise, number] = MakePromise<int>("number");
    auto [owned_promise, owned] = MakePromise<Owned>("owned");
    auto [taken_promise, taken] = MakePromise<Owned>("taken");
    auto [detached_promise, detached] = MakePromise<int>("detached");
    auto here = [setter](int value) { return std::this_thread::get_id() == setter ? -1 : value; };
    mapped.push_back(nothing.Map(*pool, [here, i] { return here(i); }));
    mapped.push_back(number.Map(*pool, here));
    mapped.push_back(owned.Map(*pool, [here](const Owned& value) { return here(*value); }));
    mapped.push_back(detached.Detach(*pool).Map(here));
    moved.push_back(std::move(taken).Map(*pool, [](Owned value) { return value; }));
    nothing_promise.Set();
    number_promise.Set(i);
    owned_promise.Set(std::make_unique<int>(i));
    taken_promise.Set(std::make_unique<int>(i));
    detached_promise.Set(i);
  }
  for (std::size_t i = 0; i < mapped.size(); ++i) EXPECT_EQ(*mapped[i].Await(), static_cast<int>(i / 4));
  for (int i = 0; i < kEach; ++i) EXPECT_EQ(**std::move(moved[static_cast<std::size_t>(i)]).Await(), i);
}

TEST(FutureFormsTest, MakeFutureOnTakesItsTypeFromTheFunction) {
  DeferredExecutor executor;
  auto nothing = MakeFutureOn(executor, [] {});
  auto status = MakeFutureOn(executor, [] { return AbortedError("by f"); });
  auto value = MakeFutureOn(executor, [] { return 1; });
  auto tried = MakeFutureOn(executor, []() -> StatusOr<Owned> { return std::make_unique<int>(2); });
  auto flat = MakeFutureOn(executor, [] { return Future<int>(3); });
  auto in_place = MakeFutureOn<Doubled>(executor, [] { return 4; });
  static_assert(std::is_same_v<decltype(nothing), Future<>> && std::is_same_v<decltype(status), Future<>>);
  static_assert(std::is_same_v<decltype(value), Future<int>> && std::is_same_v<decltype(tried), Future<Owned>>);
  static_assert(std::is_same_v<decltype(flat), Future<int>> && std::is_same_v<decltype(in_place), Future<Doubled>>);
  EXPECT_EQ(executor.tasks, 6);
  EXPECT_FALSE(nothing.IsReady());
  executor.RunAll();
  EXPECT_TRUE(nothing.Await().ok());
  EXPECT_TRUE(IsAborted(status.Await()));
  EXPECT_EQ(*value.Await(), 1);
  EXPECT_EQ(**std::move(tried).Await(), 2);
  EXPECT_EQ(*flat.Await(), 3);
  EXPECT_EQ(in_place.Await()->value, 8);
}

// Flatten -------------------------------------------------------------------------------------------------------------

TEST(FutureFormsTest, MapsToFuturesFlattenInEveryForm) {
  auto [number_promise, number] = MakePromise<int>("number");
  auto [owned_promise, owned] = MakePromise<Owned>("owned");
  auto [nothing_promise, nothing] = MakePromise<>("nothing");
  Future<int> copied = number.Map([](int value) { return Future<int>(value + 1); });
  Future<int> of_rvalue = Future<int>(number).Map([](int value) { return Future<int>(value + 2); });
  Future<> to_nothing = number.Map([](int) { return Future<>(OkStatus()); });
  Future<> to_error = number.Map([](int) { return Future<>(AbortedError("inner")); });
  Future<Owned> moved = std::move(owned).Map([](Owned value) { return Future<Owned>(std::move(value)); });
  Future<int> from_nothing = nothing.Map([] { return Future<int>(3); });
  Future<> nothing_to_nothing = nothing.Map([] { return Future<>(OkStatus()); });
  EXPECT_FALSE(copied.IsReady() || to_nothing.IsReady() || from_nothing.IsReady());
  number_promise.Set(0);
  owned_promise.Set(std::make_unique<int>(9));
  nothing_promise.Set();
  EXPECT_EQ(*copied.Await(), 1);
  EXPECT_EQ(*of_rvalue.Await(), 2);
  EXPECT_TRUE(to_nothing.Await().ok());
  EXPECT_TRUE(IsAborted(to_error.Await()));
  EXPECT_EQ(**std::move(moved).Await(), 9);
  EXPECT_EQ(*from_nothing.Await(), 3);
  EXPECT_TRUE(nothing_to_nothing.Await().ok());
}

TEST(FutureFormsTest, AMapToAFutureOfAReadyOrFailedOneAnswersAtOnce) {
  EXPECT_EQ(*Future<int>(1).Map([](int value) { return Future<int>(value + 1); }).Await(), 2);
  int calls = 0;
  Future<int> failed = Future<int>(AbortedError("outer")).Map([&calls](int) { return Future<int>(++calls); });
  EXPECT_TRUE(failed.IsReady());
  EXPECT_TRUE(IsAborted(failed.Await().status()));
  EXPECT_EQ(calls, 0);
}

TEST(FutureFormsTest, AMapMayNameTheFutureThatItReturns) {
  auto [promise, future] = MakePromise<int>("number");
  Future<int> copied = future.Map<int>([](int value) { return Future<int>(value); });
  Future<Owned> moved = future.Map<Owned>([](int value) { return OwnedFuture(value); });
  Future<> nothing = future.Map<void>([](int) { return Future<>(OkStatus()); });
  Future<Future<int>> nested = future.Map<Future<int>>([](int value) { return Future<int>(value); });
  promise.Set(6);
  EXPECT_EQ(*copied.Await(), 6);
  EXPECT_EQ(*nested.Await()->Await(), 6);
  EXPECT_EQ(**std::move(moved).Await(), 6);
  EXPECT_TRUE(nothing.Await().ok());
}

TEST(FutureFormsTest, AMoveOnlyValueIsShownToThoseThatDoNotTakeIt) {
  auto [promise, future] = MakePromise<Owned>("owned");
  std::vector<int> seen;
  future.OnReady([&](const StatusOr<Owned>& value) { seen.push_back(**value); });
  future.OnReady([&](StatusOr<const Owned*> value) { seen.push_back(***value); });
  promise.Set(std::make_unique<int>(7));
  EXPECT_EQ(**future.Await(), 7);
  EXPECT_EQ(future.Await()->get(), future.async_value()->get()) << "the value itself, not a copy";
  EXPECT_EQ(**future.AwaitFor(std::chrono::seconds(0)), 7);
  static_assert(std::is_same_v<decltype(*future.Await()), const Owned&>, "it cannot be moved out");
  InlineExecutor inline_executor;
  future.OnReady(inline_executor, [&](const StatusOr<Owned>& value) { seen.push_back(**value); });
  EXPECT_EQ(seen, (std::vector<int>{7, 7, 7}));
  EXPECT_EQ(**std::move(future).Await(), 7) << "still there for the one that takes it";
}

TEST(FutureFormsTest, AMoveOnlyErrorIsShownToo) {
  const Future<Owned> failed = AbortedError("x");
  EXPECT_TRUE(IsAborted(failed.Await().status()));
  Status seen;
  failed.OnReady([&](const StatusOr<Owned>& value) { seen = value.status(); });
  EXPECT_TRUE(IsAborted(seen));
}

TEST(FutureFormsTest, AStatusOrThatShowsAValueKeepsShowingItWhenMoved) {
  Owned owned = std::make_unique<int>(3);
  StatusOr<Owned> shown(internal::Shown<Owned>{&owned});
  StatusOr<Owned> moved = std::move(shown);
  EXPECT_EQ(moved->get(), owned.get());
  moved = StatusOr<Owned>(std::make_unique<int>(4));
  EXPECT_EQ(**moved, 4);
  EXPECT_EQ(*owned, 3) << "nothing was taken";
  moved = StatusOr<Owned>(internal::Shown<Owned>{&owned});
  EXPECT_EQ(moved->get(), owned.get());
  moved = AbortedError("x");
  EXPECT_FALSE(moved.ok());
}

TEST(FutureFormsTest, AFutureIsMadeOfAnEvent) {
  EventPromise promise("done");
  const Future<> future = promise.event();
  EXPECT_FALSE(future.IsReady());
  promise.SetError(AbortedError("x"));
  EXPECT_TRUE(IsAborted(future.Await()));
  const auto answer = [](const Event& event) -> Future<> { return event; };
  EXPECT_TRUE(answer(Event::Ready()).Await().ok());
}

TEST(FutureFormsTest, MakeFutureOnOfAStatusMayNameAValue) {
  InlineExecutor inline_executor;
  const Future<int> failed = MakeFutureOn<int>(inline_executor, [] { return AbortedError("x"); });
  EXPECT_TRUE(IsAborted(failed.Await().status()));
  const Future<int> wrong = MakeFutureOn<int>(inline_executor, [] { return OkStatus(); });
  EXPECT_TRUE(IsInternal(wrong.Await().status())) << "there is no value";
}

TEST(FutureFormsTest, ASharedPromiseIsUsedAsASharedPointer) {
  auto [promise, future] = MakePromise<int>("number");
  std::function<void(int)> set = [shared = std::move(promise).ToShared()](int value) { shared->Set(value); };
  const std::function<void(int)> copy = set;
  copy(5);
  set(6);
  EXPECT_EQ(*future.Await(), 5);
  const SharedPromise<int> none;
  EXPECT_FALSE(none);
}

TEST(FutureFormsTest, FlattenOfARvalueMovesTheInnerFuture) {
  auto [outer, nested] = MakePromise<Future<Owned>>("outer");
  Future<Owned> flat = std::move(nested).Flatten();
  auto [inner, owned] = MakePromise<Owned>("inner");
  outer.Set(std::move(owned));
  EXPECT_FALSE(flat.IsReady());
  inner.Set(std::make_unique<int>(4));
  EXPECT_EQ(**std::move(flat).Await(), 4);
  EXPECT_EQ(*Future<Future<int>>(Future<int>(5)).Flatten().Await(), 5) << "one that can be copied";
  EXPECT_TRUE(Future<Future<>>(Future<>(OkStatus())).Flatten().Await().ok());
}

// Joins ---------------------------------------------------------------------------------------------------------------

TEST(FutureFormsTest, JoinsOfEachFormFailWithTheErrorOfAMember) {
  auto [a, number] = MakePromise<int>("number");
  auto [b, owned] = MakePromise<Owned>("owned");
  std::vector<Future<Owned>> owneds;
  owneds.push_back(std::move(owned));
  owneds.push_back(OwnedFuture(2));
  Future<std::vector<int>> numbers = JoinFutures(std::vector<Future<int>>{number, Future<int>(2)});
  Future<std::vector<Owned>> all_owned = JoinFutures(std::move(owneds));
  Future<std::tuple<int, Owned>> both = JoinFutures(number, OwnedFuture(3));
  a.Set(AbortedError("a"));
  b.Set(DataLossError("b"));
  EXPECT_TRUE(IsAborted(numbers.Await().status()));
  EXPECT_TRUE(IsDataLoss(std::move(all_owned).Await().status()));
  EXPECT_TRUE(IsAborted(std::move(both).Await().status()));
}

TEST(FutureFormsTest, MoveOnlyMembersMakeATypeOfTheCallers) {
  struct Both {
    Both(Owned first, int second) : sum(*first + second) {}
    int sum;
  };
  auto [promise, owned] = MakePromise<Owned>("owned");
  Future<Both> both = JoinFuturesTo<Both>(JoinOptions(), std::move(owned), Future<int>(2));
  Future<std::tuple<Owned, int>> tuple = JoinFutures(OwnedFuture(1), Future<int>(2));
  promise.Set(std::make_unique<int>(40));
  EXPECT_EQ(both.Await()->sum, 42);
  EXPECT_EQ(*std::get<0>(*std::move(tuple).Await()), 1);
}

// Promises ------------------------------------------------------------------------------------------------------------

TEST(FutureFormsTest, ASharedPromiseOfAMoveOnlyValueKeepsTheFirst) {
  auto [promise, future] = MakeSharedPromise<Owned>("owned");
  const SharedPromise<Owned> copy = promise;
  EXPECT_TRUE(promise.Set(std::make_unique<int>(1)));
  EXPECT_FALSE(copy.Set(std::make_unique<int>(2)));
  EXPECT_EQ(**std::move(future).Await(), 1);
}

TEST(FutureFormsTest, MakingAPromiseSharedLeavesItEmpty) {
  auto [promise, future] = MakePromise<int>("shared");
  SharedPromise<int> shared = std::move(promise).ToShared();
  EXPECT_FALSE(static_cast<bool>(promise));  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(shared.Set(3));
  EXPECT_EQ(*shared.future().Await(), 3);
  EXPECT_EQ(*future.Await(), 3);
}

}  // namespace
}  // namespace purlin
