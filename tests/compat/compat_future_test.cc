// Futures and promises, by tsl's names. See api.h.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/compat/api.h"

namespace {

using tsl::Future;
using tsl::MakePromise;

absl::Status Broken() { return absl::AbortedError("broken"); }

// Of nothing ----------------------------------------------------------------------------------------------------------

TEST(CompatFutureTest, AStatusMakesAReadyFuture) {
  const Future<> good = absl::OkStatus();
  EXPECT_TRUE(good.IsReady());
  EXPECT_TRUE(good.IsKnownReady());
  EXPECT_EQ(good.Await(), absl::OkStatus());
  const auto make = []() -> Future<> { return Broken(); };
  EXPECT_EQ(make().Await(), Broken());
}

TEST(CompatFutureTest, APromiseMakesAFutureReady) {
  auto [promise, future] = MakePromise<>();
  EXPECT_TRUE(future.IsValid());
  EXPECT_FALSE(future.IsReady());
  promise.Set();
  EXPECT_TRUE(future.IsReady());
  EXPECT_EQ(future.Await(), absl::OkStatus());
}

TEST(CompatFutureTest, APromiseMakesAFutureFail) {
  auto [promise, future] = MakePromise<>();
  promise.Set(Broken());
  EXPECT_EQ(future.Await(), Broken());
}

TEST(CompatFutureTest, ADefaultFutureIsInvalid) {
  EXPECT_FALSE(Future<>().IsValid());
  EXPECT_FALSE(Future<int>().IsValid());
  EXPECT_FALSE(tsl::Promise<>());
  EXPECT_FALSE(tsl::Promise<int>());
}

TEST(CompatFutureTest, AFutureOfNothingCanBeCopied) {
  auto [promise, future] = MakePromise<>();
  const Future<> copy = future;  // NOLINT(performance-unnecessary-copy-initialization): the point.
  promise.Set(Broken());
  EXPECT_EQ(copy.Await(), Broken());
  EXPECT_EQ(future.Await(), Broken());
}

TEST(CompatFutureTest, OnReadyTakesTheStatus) {
  auto [promise, future] = MakePromise<>();
  std::vector<absl::Status> seen;
  future.OnReady([&](absl::Status status) { seen.push_back(std::move(status)); });
  future.OnReady([&](const absl::Status& status) { seen.push_back(status); });
  EXPECT_TRUE(seen.empty());
  promise.Set(Broken());
  EXPECT_EQ(seen, std::vector<absl::Status>(2, Broken()));
  future.OnReady([&](absl::Status status) { seen.push_back(std::move(status)); });
  EXPECT_EQ(seen.size(), 3U) << "of a ready future at once";
}

TEST(CompatFutureTest, OnReadyOnAnExecutorIsATask) {
  LaterExecutor executor;
  auto [promise, future] = MakePromise<>();
  absl::Status seen;
  future.OnReady(executor, [&](absl::Status status) { seen = std::move(status); });
  promise.Set(Broken());
  EXPECT_EQ(seen, absl::OkStatus());
  EXPECT_EQ(executor.RunAll(), 1U);
  EXPECT_EQ(seen, Broken());
}

TEST(CompatFutureTest, APromiseThatIsDroppedFailsItsFuture) {
  Future<> future;
  {
    auto [promise, made] = MakePromise<>();
    future = made;
  }
  EXPECT_TRUE(absl::IsInternal(future.Await()));
}

TEST(CompatFutureTest, AwaitWaitsForAnotherThread) {
  auto [promise, future] = MakePromise<std::string>();
  std::thread setter([promise = std::move(promise)]() mutable { promise.Set(std::string("done")); });
  EXPECT_EQ(*future.Await(), "done");
  setter.join();
}

TEST(CompatFutureTest, APromiseGivesFutures) {
  tsl::Promise<int> promise;
  Future<int> kept;
  {
    auto [made, future] = MakePromise<int>();
    promise = std::move(made);
    kept = promise.future();
  }
  promise.Set(3);
  EXPECT_EQ(*kept.Await(), 3);
}

TEST(CompatFutureTest, IsUniqueReferenceSaysWhetherTheResultIsWanted) {
  auto [promise, future] = MakePromise<int>();
  EXPECT_FALSE(promise.IsUniqueReference());
  future = Future<int>();
  EXPECT_TRUE(promise.IsUniqueReference());
  promise.Set(1);
}

TEST(CompatFutureTest, ASharedPromiseGoesIntoAStdFunction) {
  auto [promise, future] = MakePromise<int>();
  const std::function<void(int)> set = [shared = std::move(promise).ToShared()](int value) { shared->Set(value); };
  set(4);
  EXPECT_EQ(*future.Await(), 4);
}

// Of a value ----------------------------------------------------------------------------------------------------------

TEST(CompatFutureTest, AValueMakesAReadyFuture) {
  const auto make = [](bool good) -> Future<std::string> {
    if (!good) return Broken();
    return "text";
  };
  EXPECT_EQ(*make(true).Await(), "text");
  EXPECT_EQ(make(false).Await().status(), Broken());
  const Future<int> of_status_or = absl::StatusOr<int>(4);
  EXPECT_EQ(*of_status_or.Await(), 4);
}

TEST(CompatFutureTest, AFutureOfACopyableValueCanBeCopied) {
  auto [promise, future] = MakePromise<int>();
  const Future<int> copy = future;  // NOLINT(performance-unnecessary-copy-initialization): the point.
  promise.Set(5);
  EXPECT_EQ(*copy.Await(), 5);
  EXPECT_EQ(*future.Await(), 5);
}

TEST(CompatFutureTest, OnReadyTakesAStatusOr) {
  auto [promise, future] = MakePromise<int>();
  int seen = 0;
  future.OnReady([&](absl::StatusOr<int> value) { seen += *value; });
  future.OnReady([&](const absl::StatusOr<int>& value) { seen += *value; });
  promise.Set(5);
  EXPECT_EQ(seen, 10);
}

TEST(CompatFutureTest, APromiseIsSetWithAStatusOr) {
  auto [promise, future] = MakePromise<int>();
  promise.Set(absl::StatusOr<int>(Broken()));
  EXPECT_EQ(future.Await().status(), Broken());
}

TEST(CompatFutureTest, GetReadyFutureForgetsTheValue) {
  auto [promise, future] = MakePromise<int>();
  const Future<> ready = future.GetReadyFuture();
  EXPECT_FALSE(ready.IsReady());
  promise.Set(Broken());
  EXPECT_EQ(ready.Await(), Broken());
}

TEST(CompatFutureTest, AMoveOnlyFutureIsMoveOnly) {
  static_assert(!std::is_copy_constructible_v<Future<std::unique_ptr<int>>>);
  static_assert(std::is_move_constructible_v<Future<std::unique_ptr<int>>>);
  auto [promise, future] = MakePromise<std::unique_ptr<int>>();
  promise.Set(std::make_unique<int>(6));
  EXPECT_EQ(**future.Await(), 6) << "shown";
  const std::unique_ptr<int> taken = *std::move(future).Await();
  EXPECT_EQ(*taken, 6);
}

TEST(CompatFutureTest, AMoveOnlyValueIsShownToOnReady) {
  auto [promise, future] = MakePromise<std::unique_ptr<int>>();
  int seen = 0;
  future.OnReady([&](const absl::StatusOr<std::unique_ptr<int>>& value) { seen = **value; });
  promise.Set(std::make_unique<int>(7));
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(**std::move(future).Await(), 7);
}

TEST(CompatFutureTest, AMoveOnlyValueIsMovedToOnReadyOfAnRvalue) {
  auto [promise, future] = MakePromise<std::unique_ptr<int>>();
  std::unique_ptr<int> taken;
  std::move(future).OnReady([&](absl::StatusOr<std::unique_ptr<int>> value) { taken = *std::move(value); });
  promise.Set(std::make_unique<int>(8));
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(*taken, 8);
}

TEST(CompatFutureTest, AStatusOrOfADerivedPointerSetsAPromise) {
  struct Base {
    virtual ~Base() = default;
    virtual int number() const { return 1; }
  };
  struct Derived final : Base {
    int number() const final { return 2; }
  };
  auto [promise, future] = MakePromise<std::unique_ptr<Base>>();
  promise.Set(std::make_unique<Derived>());
  EXPECT_EQ((*std::move(future).Await())->number(), 2);
}

// Maps ----------------------------------------------------------------------------------------------------------------

TEST(CompatFutureMapTest, MapsAReadyFutureAtOnce) {
  const Future<int> future = 4;
  const Future<std::string> text = future.Map([](int number) { return std::to_string(number); });
  EXPECT_TRUE(text.IsReady());
  EXPECT_EQ(*text.Await(), "4");
}

TEST(CompatFutureMapTest, MapsAPendingFutureLater) {
  auto [promise, future] = MakePromise<int>();
  const Future<int> twice = future.Map([](const int& number) { return 2 * number; });
  EXPECT_FALSE(twice.IsReady());
  promise.Set(4);
  EXPECT_EQ(*twice.Await(), 8);
}

TEST(CompatFutureMapTest, AnErrorPassesByTheFunction) {
  auto [promise, future] = MakePromise<int>();
  int calls = 0;
  const Future<int> mapped = future.Map([&](int number) { return ++calls, number; });
  promise.Set(Broken());
  EXPECT_EQ(mapped.Await().status(), Broken());
  EXPECT_EQ(calls, 0);
}

TEST(CompatFutureMapTest, AStatusOrGivesItsValueOrItsError) {
  const Future<int> future = 4;
  EXPECT_EQ(*future.Map([](int number) -> absl::StatusOr<int> { return number + 1; }).Await(), 5);
  EXPECT_EQ(future.Map([](int) -> absl::StatusOr<int> { return Broken(); }).Await().status(), Broken());
}

TEST(CompatFutureMapTest, AStatusGivesAFutureOfNothing) {
  const Future<int> future = 4;
  const Future<> mapped = future.Map([](int) { return Broken(); });
  EXPECT_EQ(mapped.Await(), Broken());
}

TEST(CompatFutureMapTest, NothingGivesAFutureOfNothing) {
  auto [promise, future] = MakePromise<int>();
  int seen = 0;
  const Future<> mapped = future.Map([&](int number) { seen = number; });
  promise.Set(3);
  EXPECT_EQ(mapped.Await(), absl::OkStatus());
  EXPECT_EQ(seen, 3);
}

TEST(CompatFutureMapTest, TheTypeMayBeNamed) {
  const Future<int> future = 4;
  const Future<std::string> mapped = future.Map<std::string>([](int number) { return number == 4 ? "four" : "other"; });
  EXPECT_EQ(*mapped.Await(), "four");
}

TEST(CompatFutureMapTest, MapsOfNothing) {
  auto [promise, future] = MakePromise<>();
  const Future<int> number = future.Map([] { return 5; });
  const Future<> failed = future.Map([] { return Broken(); });
  promise.Set();
  EXPECT_EQ(*number.Await(), 5);
  EXPECT_EQ(failed.Await(), Broken());
}

TEST(CompatFutureMapTest, MapToGivesAValue) {
  auto [promise, future] = MakePromise<>();
  Future<std::unique_ptr<int>> mapped = future.MapTo(std::make_unique<int>(6));
  EXPECT_FALSE(mapped.IsReady());
  promise.Set();
  EXPECT_EQ(**std::move(mapped).Await(), 6);
}

TEST(CompatFutureMapTest, AMoveOnlyValueIsMovedThrough) {
  auto [promise, future] = MakePromise<std::unique_ptr<int>>();
  Future<std::unique_ptr<int>> mapped = std::move(future).Map([](std::unique_ptr<int> owned) {
    *owned += 1;
    return owned;
  });
  promise.Set(std::make_unique<int>(1));
  EXPECT_EQ(**std::move(mapped).Await(), 2);
}

TEST(CompatFutureMapTest, AMoveOnlyValueMayBeReadOnly) {
  auto [promise, future] = MakePromise<std::unique_ptr<int>>();
  const Future<int> mapped = future.Map([](const std::unique_ptr<int>& owned) { return *owned; });
  promise.Set(std::make_unique<int>(9));
  EXPECT_EQ(*mapped.Await(), 9);
  EXPECT_EQ(**std::move(future).Await(), 9);
}

TEST(CompatFutureMapTest, MapOnAnExecutorIsATask) {
  LaterExecutor executor;
  auto [promise, future] = MakePromise<int>();
  const Future<int> mapped = future.Map(executor, [](int number) { return number + 1; });
  promise.Set(1);
  EXPECT_FALSE(mapped.IsReady());
  EXPECT_EQ(executor.RunAll(), 1U);
  EXPECT_EQ(*mapped.Await(), 2);
}

TEST(CompatFutureMapTest, NothingIsComputedForAResultThatIsGone) {
  LaterExecutor executor;
  auto [promise, future] = MakePromise<int>();
  int calls = 0;
  {
    const Future<int> gone = future.Map(executor, [&](int number) { return ++calls, number; });
  }
  promise.Set(1);
  EXPECT_EQ(executor.RunAll(), 0U);
  EXPECT_EQ(calls, 0);
}

TEST(CompatFutureMapTest, ADetachedFutureRunsItsFunctionsOnTheExecutor) {
  LaterExecutor executor;
  auto [promise, future] = MakePromise<int>(executor);
  int seen = 0;
  future.OnReady([&](absl::StatusOr<int> value) { seen = *value; });
  promise.Set(3);
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(executor.RunAll(), 1U);
  EXPECT_EQ(seen, 3);
}

TEST(CompatFutureMapTest, DetachOfAReadyFutureIsThatFuture) {
  LaterExecutor executor;
  const Future<int> future = 3;
  const Future<int> detached = future.Detach(executor);
  EXPECT_TRUE(detached.IsReady());
  EXPECT_EQ(executor.waiting(), 0U);
}

TEST(CompatFutureMapTest, MakeFutureOnIsATask) {
  LaterExecutor executor;
  const Future<int> number = tsl::MakeFutureOn(executor, [] { return 4; });
  const Future<int> named = tsl::MakeFutureOn<int>(executor, [] { return 5; });
  const Future<int> failed = tsl::MakeFutureOn<int>(executor, [] { return Broken(); });
  const Future<> nothing = tsl::MakeFutureOn(executor, [] { return Broken(); });
  EXPECT_FALSE(number.IsReady());
  EXPECT_EQ(executor.RunAll(), 4U);
  EXPECT_EQ(*number.Await(), 4);
  EXPECT_EQ(*named.Await(), 5);
  EXPECT_EQ(failed.Await().status(), Broken());
  EXPECT_EQ(nothing.Await(), Broken());
}

// Joins ---------------------------------------------------------------------------------------------------------------

TEST(CompatJoinTest, OfNoneIsReady) {
  const std::vector<Future<>> none;
  EXPECT_EQ(tsl::JoinFutures(absl::Span<const Future<>>(none)).Await(), absl::OkStatus());
}

TEST(CompatJoinTest, IsReadyAfterAll) {
  auto [first, one] = MakePromise<>();
  auto [second, two] = MakePromise<>();
  const std::vector<Future<>> futures = {one, two};
  const Future<> all = tsl::JoinFutures(absl::Span<const Future<>>(futures));
  second.Set();
  EXPECT_FALSE(all.IsReady());
  first.Set();
  EXPECT_EQ(all.Await(), absl::OkStatus());
}

TEST(CompatJoinTest, FailsWithTheErrorOfAMemberAfterAll) {
  auto [first, one] = MakePromise<>();
  auto [second, two] = MakePromise<>();
  const std::vector<Future<>> futures = {one, two};
  const Future<> all = tsl::JoinFutures(absl::Span<const Future<>>(futures));
  second.Set(Broken());
  EXPECT_FALSE(all.IsReady());
  first.Set();
  EXPECT_EQ(all.Await(), Broken());
}

}  // namespace
