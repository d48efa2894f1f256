// Futures: making, waiting, callbacks, mapping. Promises are in promise_test.cc, joins in future_join_test.cc.
#include "purlin/future.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/executor.h"
#include "purlin/inline_executor.h"
#include "purlin/promise.h"
#include "tests/cpp/sanitizers.h"

namespace purlin {
namespace {

/// Counts the tasks it is given; runs them, keeps them, or refuses them.
class TestExecutor final : public Executor {
 public:
  enum class Mode { kRun, kKeep, kDrop, kRefuse };
  explicit TestExecutor(Mode mode = Mode::kRun) : mode_(mode) {}
  Status Execute(Task task) override {
    ++tasks;
    switch (mode_) {
      case Mode::kRun:
        std::move(task).Run();
        break;
      case Mode::kKeep:
        kept.push_back(std::move(task));
        break;
      case Mode::kDrop:
        break;
      case Mode::kRefuse:
        return UnavailableError("busy");
    }
    return OkStatus();
  }
  int tasks = 0;
  std::vector<Task> kept;

 private:
  Mode mode_;
};

using Owned = std::unique_ptr<int>;

/// Counts its copies.
struct Counted {
  explicit Counted(int* copies) : copies(copies) {}
  Counted(const Counted& other) : copies(other.copies) { ++*copies; }
  Counted(Counted&&) noexcept = default;
  Counted& operator=(const Counted&) = delete;
  Counted& operator=(Counted&&) = delete;
  ~Counted() = default;
  int* copies;
};

TEST(FutureTest, IsInvalidByDefaultAndAnswersWithAnError) {
  Future<int> future;
  EXPECT_FALSE(future.IsValid());
  EXPECT_TRUE(future.IsReady());
  EXPECT_TRUE(IsFailedPrecondition(future.Await().status()));
  EXPECT_TRUE(IsFailedPrecondition(future.Map([](int) { return 1; }).Await().status()));
  Status seen;
  Future<>().OnReady([&seen](Status status) { seen = std::move(status); });
  EXPECT_TRUE(IsFailedPrecondition(seen));
}

TEST(FutureTest, IsMadeReadyFromValuesAndStatuses) {
  Future<int> value = 7;
  Future<int> error = NotFoundError("x");
  Future<int> either = StatusOr<int>(8);
  Future<> ok = OkStatus();
  Future<> failed = AbortedError("y");
  EXPECT_EQ(*value.Await(), 7);
  EXPECT_TRUE(IsNotFound(error.Await().status()));
  EXPECT_EQ(*either.Await(), 8);
  EXPECT_TRUE(ok.Await().ok());
  EXPECT_TRUE(IsAborted(failed.Await()));
  EXPECT_TRUE(IsInternal(Future<int>(OkStatus()).Await().status()));
}

TEST(FutureTest, CopiesShareAndMovesTake) {
  auto [promise, future] = MakePromise<std::string>("s");
  Future<std::string> copy = future;
  Future<std::string> taken = std::move(future);
  EXPECT_FALSE(future.IsValid());  // NOLINT(bugprone-use-after-move)
  EXPECT_FALSE(copy.IsReady());
  EXPECT_TRUE(promise.Set("value"));
  EXPECT_EQ(*copy.Await(), "value");
  EXPECT_EQ(*taken.Await(), "value");
  EXPECT_EQ(**taken.AwaitPointer(), "value");
}

TEST(FutureTest, AMoveOnlyValueIsMovedOut) {
  auto [promise, future] = MakePromise<Owned>("owned");
  static_assert(!std::is_copy_constructible_v<Future<Owned>>);
  EXPECT_TRUE(promise.Set(std::make_unique<int>(3)));
  EXPECT_EQ(***future.AwaitPointer(), 3);
  StatusOr<Owned> value = std::move(future).Await();
  EXPECT_EQ(**value, 3);
}

TEST(FutureTest, AwaitBlocksUntilAnotherThreadSets) {
  for (int i = 0; i < 50; ++i) {
    auto [promise, future] = MakePromise<int>("late");
    std::thread setter([promise = std::move(promise), i]() mutable { EXPECT_TRUE(promise.Set(i)); });
    EXPECT_EQ(*future.Await(), i);
    setter.join();
  }
}

TEST(FutureTest, R7AWaitWithATimeoutLeavesTheFuturePending) {
  auto [promise, future] = MakePromise<int>("slow");
  EXPECT_TRUE(IsDeadlineExceeded(future.AwaitFor(std::chrono::milliseconds(1)).status()));
  EXPECT_TRUE(promise.Set(1));
  EXPECT_EQ(*future.AwaitFor(std::chrono::nanoseconds(0)), 1);
}

TEST(FutureTest, OnReadyIsCalledOnceInOrderWhateverItAsksFor) {
  auto [promise, future] = MakePromise<int>("f");
  std::vector<int> seen;
  future.OnReady([&seen](StatusOr<int> value) { seen.push_back(*value); });
  future.OnReady([&seen](const StatusOr<int>& value) { seen.push_back(*value + 1); });
  future.OnReady([&seen](StatusOr<const int*> value) { seen.push_back(**value + 2); });
  EXPECT_TRUE(seen.empty());
  promise.Set(10);
  future.OnReady([&seen](StatusOr<int> value) { seen.push_back(*value + 3); });
  EXPECT_EQ(seen, (std::vector<int>{10, 11, 12, 13}));
}

TEST(FutureTest, OnReadyOfAnRvalueGetsAMoveOnlyValue) {
  auto [promise, future] = MakePromise<Owned>("owned");
  Owned got;
  std::move(future).OnReady([&got](StatusOr<Owned> value) { got = *std::move(value); });
  promise.Set(std::make_unique<int>(5));
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(*got, 5);
}

TEST(FutureTest, OnReadyOnAnExecutorIsAlwaysATask) {
  TestExecutor executor;
  int calls = 0;
  auto [promise, future] = MakePromise<int>("f");
  future.OnReady(executor, [&calls](StatusOr<int>) { ++calls; });
  EXPECT_EQ(executor.tasks, 0);
  promise.Set(1);
  future.OnReady(executor, [&calls](StatusOr<int>) { ++calls; });
  Future<>(OkStatus()).OnReady(executor, [&calls](Status) { ++calls; });
  EXPECT_EQ(executor.tasks, 3);
  EXPECT_EQ(calls, 3);
}

TEST(FutureMapTest, MapsWhateverTheFunctionReturns) {
  auto [promise, future] = MakePromise<int>("f");
  Future<std::string> text = future.Map([](int v) { return std::to_string(v); });
  Future<> nothing = future.Map([](int) {});
  Future<> status = future.Map([](int) { return AbortedError("by f"); });
  Future<float> tried = future.Map([](int v) -> StatusOr<float> { return static_cast<float>(v) / 2; });
  Future<float> failed = future.Map([](int) -> StatusOr<float> { return DataLossError("gone"); });
  Future<int> flat = future.Map([](int v) -> Future<int> { return v * 2; });
  Future<std::string> in_place = future.Map<std::string>([](int) { return "text"; });
  EXPECT_FALSE(text.IsReady() || nothing.IsReady() || flat.IsReady());
  promise.Set(5);
  EXPECT_EQ(*text.Await(), "5");
  EXPECT_TRUE(nothing.Await().ok());
  EXPECT_TRUE(IsAborted(status.Await()));
  EXPECT_FLOAT_EQ(*tried.Await(), 2.5F);
  EXPECT_TRUE(IsDataLoss(failed.Await().status()));
  EXPECT_EQ(*flat.Await(), 10);
  EXPECT_EQ(*in_place.Await(), "text");
  EXPECT_EQ(*future.Map([](int v) { return v + 1; }).Await(), 6) << "ready: at once";
}

TEST(FutureMapTest, ErrorsPassByTheFunctionButNotByTheExecutor) {
  TestExecutor executor;
  auto [promise, future] = MakePromise<int>("f");
  int calls = 0;
  Future<int> mapped = future.Map([&calls](int) { return ++calls; });
  Future<int> on = future.Map(executor, [&calls](int) { return ++calls; });
  Status error = DataLossError("with a payload");
  error.SetPayload("type", "bytes");
  promise.Set(error);
  EXPECT_EQ(mapped.Await().status(), error);
  EXPECT_EQ(on.Await().status(), error);
  EXPECT_EQ(future.Map([&calls](int) { return ++calls; }).Await().status(), error);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(executor.tasks, 1) << "so that nothing of on's runs on the thread that sets";
}

TEST(FutureMapTest, NothingIsComputedForNobody) {
  TestExecutor executor;
  int calls = 0;
  auto count = [&calls](int) { ++calls; };
  auto [promise, future] = MakePromise<int>("f");
  {
    Future<> dropped = future.Map(count);
  }
  {
    Future<> dropped = future.Map(executor, count);
  }
  {
    Future<> dropped = future.MapAlways(count);
  }
  {
    Future<> dropped = future.MapAlways(executor, count);
  }
  promise.Set(1);
  EXPECT_EQ(calls, 2) << "MapAlways is for effects";
  EXPECT_EQ(executor.tasks, 1);
}

TEST(FutureMapTest, AWaiterOnADroppedResultCountsAsSomebody) {
  int calls = 0;
  auto [promise, future] = MakePromise<int>("f");
  future.Map([&calls](int v) { return calls += v; }).OnReady([&calls](StatusOr<int>) { ++calls; });
  promise.Set(1);
  EXPECT_EQ(calls, 2);
}

TEST(FutureMapTest, MapsMoveOnlyValuesByReferenceOrByMove) {
  auto [promise, future] = MakePromise<Owned>("owned");
  Future<int> read = future.Map([](const Owned& value) { return *value; });
  Future<Owned> moved = std::move(future).Map([](Owned value) {
    ++*value;
    return value;
  });
  promise.Set(std::make_unique<int>(1));
  EXPECT_EQ(*read.Await(), 1);
  EXPECT_EQ(**std::move(moved).Await(), 2);
}

TEST(FutureMapTest, DoesNotCopyTheValue) {
  int copies = 0;
  TestExecutor executor;
  auto [promise, future] = MakePromise<Counted>("counted");
  Future<int> mapped = future.Map([](const Counted&) { return 1; });
  Future<int> on = future.Map(executor, [](const Counted&) { return 2; });
  Future<Counted> detached = future.Detach(executor);
  promise.Emplace(&copies);
  EXPECT_EQ(*mapped.Await() + *on.Await(), 3);
  EXPECT_TRUE(detached.AwaitPointer().ok());
  EXPECT_EQ(copies, 0);
}

TEST(FutureMapTest, SugarKeepsErrorsAndValues) {
  auto [promise, future] = MakePromise<int>("f");
  Future<std::string> to = future.MapTo(std::string("done"));
  Future<> ready = future.GetReadyFuture();
  promise.Set(1);
  EXPECT_EQ(*to.Await(), "done");
  EXPECT_TRUE(ready.Await().ok());
  EXPECT_EQ(*Future<>(OkStatus()).MapTo(3).Await(), 3);
  EXPECT_TRUE(IsAborted(Future<int>(AbortedError("a")).GetReadyFuture().Await()));
  EXPECT_TRUE(IsAborted(Future<int>(AbortedError("a")).MapTo(1).Await().status()));
}

TEST(FutureMapTest, FlattensOneLevel) {
  EXPECT_EQ(*Future<Future<int>>(Future<int>(3)).Flatten().Await(), 3);
  auto [outer, nested] = MakePromise<Future<int>>("outer");
  auto [inner, value] = MakePromise<int>("inner");
  Future<int> flat = nested.Flatten();
  outer.Set(value);
  EXPECT_FALSE(flat.IsReady());
  inner.Set(4);
  EXPECT_EQ(*flat.Await(), 4);
  auto [owner, owned] = MakePromise<Future<Owned>>("owned");
  Future<Owned> flat_owned = std::move(owned).Flatten();
  owner.Set(Future<Owned>(std::make_unique<int>(5)));
  EXPECT_EQ(**std::move(flat_owned).Await(), 5);
  auto [failing, failed] = MakePromise<Future<int>>("failing");
  Future<int> flat_failed = failed.Flatten();
  failing.Set(AbortedError("no inner"));
  EXPECT_TRUE(IsAborted(flat_failed.Await().status()));
}

TEST(FutureExecutorTest, DetachRunsCallbacksOnTheExecutorAndOnlyIfSomebodyListens) {
  TestExecutor executor(TestExecutor::Mode::kKeep);
  auto [promise, future] = MakePromise<int>(executor, "detached");
  int calls = 0;
  future.OnReady([&calls](StatusOr<int> value) { calls += *value; });
  promise.Set(2);
  EXPECT_EQ(calls, 0) << "not on the thread that sets";
  ASSERT_EQ(executor.kept.size(), 1U);
  std::move(executor.kept[0]).Run();
  EXPECT_EQ(calls, 2);
  auto [unheard, dropped] = MakePromise<int>(executor, "unheard");
  dropped = Future<int>();
  unheard.Set(1);
  EXPECT_EQ(executor.tasks, 1);
  EXPECT_EQ(*Future<int>(3).Detach(executor).Await(), 3) << "ready: itself";
  EXPECT_EQ(executor.tasks, 1);
}

TEST(FutureExecutorTest, DetachCarriesErrorsToTheExecutorToo) {
  TestExecutor executor(TestExecutor::Mode::kKeep);
  auto [promise, future] = MakePromise<int>(executor, "detached");
  promise.Set(AbortedError("x"));
  EXPECT_FALSE(future.IsReady());
  std::move(executor.kept.at(0)).Run();
  EXPECT_TRUE(IsAborted(future.Await().status()));
}

TEST(FutureExecutorTest, R2ATaskThatIsDroppedOrRefusedFailsItsFuture) {
  TestExecutor drops(TestExecutor::Mode::kDrop);
  TestExecutor refuses(TestExecutor::Mode::kRefuse);
  EXPECT_TRUE(IsCancelled(MakeFutureOn(drops, [] { return 1; }).Await().status()));
  EXPECT_EQ(MakeFutureOn(refuses, [] { return 1; }).Await().status(), UnavailableError("busy"));
  auto [promise, future] = MakePromise<int>("f");
  Future<int> mapped = future.Map(refuses, [](int v) { return v; });
  Future<int> detached = future.Detach(drops);
  promise.Set(1);
  EXPECT_EQ(mapped.Await().status(), UnavailableError("busy"));
  EXPECT_TRUE(IsCancelled(detached.Await().status()));
}

TEST(FutureExecutorTest, MakesFuturesOnPools) {
  StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({2, "futures"});
  ASSERT_TRUE(pool.ok());
  std::vector<Future<int>> futures;
  for (int i = 0; i < 100; ++i) {
    futures.push_back(MakeFutureOn(*pool, [i] { return i; }).Map(*pool, [](int v) { return v * 2; }));
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(*futures[static_cast<std::size_t>(i)].Await(), 2 * i);
  Future<> none = MakeFutureOn(*pool, [] {});
  Future<int> inner = MakeFutureOn(*pool, [&pool]() -> Future<int> { return MakeFutureOn(*pool, [] { return 9; }); });
  EXPECT_TRUE(none.Await().ok());
  EXPECT_EQ(*inner.Await(), 9);
}

TEST(FutureTest, FollowsEvents) {
  EventPromise promise("e");
  Future<> future = MakeFutureWhenReady(promise.event());
  EXPECT_FALSE(future.IsReady());
  promise.SetError(AbortedError("e"));
  EXPECT_TRUE(IsAborted(future.Await()));
  EXPECT_TRUE(MakeFutureWhenReady(Event::Ready()).Await().ok());
  Future<> value = MakeFutureWhenReady(Future<int>(1).AsEvent());
  EXPECT_TRUE(value.Await().ok());
}

TEST(FutureStackTest, AMillionMapsNeedNoStack) {
  std::thread([] {
    auto [promise, future] = MakePromise<int>("first");
    Future<int> last = future;
    for (int i = 0; i < kMillion; ++i) last = last.MapAlways([](int v) { return v + 1; });
    future = Future<int>();
    promise.Set(0);
    EXPECT_EQ(*last.Await(), kMillion);
  }).join();
}

TEST(FutureStackTest, AMillionMapsOfADroppedPromiseNeedNoStack) {
  std::thread([] {
    Future<int> last;
    {
      auto [promise, future] = MakePromise<int>("first");
      last = future;
      for (int i = 0; i < kMillion; ++i) last = last.Map([](int v) { return v + 1; });
    }
    EXPECT_TRUE(IsInternal(last.Await().status()));
  }).join();
}

}  // namespace
}  // namespace purlin
