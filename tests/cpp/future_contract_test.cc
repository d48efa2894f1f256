// What futures promise where the futures of tsl break: completions that are lost, sets that collide, callbacks on the
// wrong thread or under a lock, deep stacks, and what is allocated. Only calls that every form of the API has.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/inline_executor.h"
#include "purlin/join_futures.h"
#include "purlin/promise.h"
#include "tests/cpp/counting_allocations.h"
#include "tests/cpp/sanitizers.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

constexpr int kLinks = kMillion;

/// Allocations of the second of two calls of `f`; the first fills the thread's lists.
template <typename F>
int AllocationsWhenWarm(F f) {
  f();
  return AllocationsOf(f);
}

Status WithPayload() {
  Status error = DataLossError("torn page", SourceLocation("disk.cc", 7));
  error.SetPayload("type/page", "42");
  return error;
}

void ExpectWithPayload(const Status& status) {
  EXPECT_TRUE(IsDataLoss(status)) << status.message();
  EXPECT_EQ(status.message(), "torn page");
  EXPECT_EQ(status.GetPayload("type/page"), "42");
  EXPECT_EQ(status.location().line(), 7U);
}

// Row 5: lost completions ---------------------------------------------------------------------------------------------

TEST(FutureContractTest, EveryFormOnAnExecutorThatDropsTasksFails) {
  LyingExecutor dropping;
  RefusingExecutor refusing(ResourceExhaustedError("the queue is full"));
  for (Executor* executor : {static_cast<Executor*>(&dropping), static_cast<Executor*>(&refusing)}) {
    std::vector<Future<>> ends;
    ends.push_back(Future<int>(1).Map(*executor, [](int) {}));
    ends.push_back(Future<>(OkStatus()).Map(*executor, [] {}));
    ends.push_back(Future<int>(1).Map(*executor, [](int) { return Future<>(OkStatus()); }));
    ends.push_back(Future<int>(1).MapAlways(*executor, [](int) {}));
    ends.push_back(MakeFutureOn(*executor, [] {}));
    {
      auto [promise, future] = MakePromise<>("pending");
      ends.push_back(future.Map(*executor, [] {}));
      ends.push_back(future.Detach(*executor));
      auto [owed, observed] = MakePromise<>("owed by a callback");
      ends.push_back(observed);
      future.OnReady(*executor, [owed = std::move(owed)](const Status&) mutable { owed.Set(OkStatus()); });
      promise.Set(OkStatus());
    }
    auto [detached_promise, detached] = MakePromise<>(*executor, "detached");
    ends.push_back(std::move(detached));
    detached_promise.Set(OkStatus());
    for (std::size_t i = 0; i < ends.size(); ++i) {
      ASSERT_TRUE(ends[i].IsReady()) << i;
      EXPECT_FALSE(ends[i].Await().ok()) << i;
    }
    if (executor == &refusing) {
      EXPECT_TRUE(IsResourceExhausted(ends[0].Await())) << ends[0].Await().message();
      EXPECT_TRUE(IsResourceExhausted(ends[4].Await())) << ends[4].Await().message();
      EXPECT_TRUE(IsResourceExhausted(ends[6].Await())) << ends[6].Await().message();
    }
  }
}

TEST(FutureContractTest, TasksThatAreDroppedLaterFailWhatTheyOwe) {
  Future<int> mapped;
  Future<int> detached;
  {
    DeferredExecutor executor;
    auto [promise, future] = MakePromise<int>("source");
    mapped = future.Map(executor, [](int v) { return v; });
    detached = future.Detach(executor);
    promise.Set(1);
    EXPECT_EQ(executor.tasks, 2);
    EXPECT_FALSE(mapped.IsReady());
    EXPECT_FALSE(detached.IsReady());
  }
  EXPECT_TRUE(IsCancelled(mapped.Await().status()));
  EXPECT_TRUE(IsCancelled(detached.Await().status()));
}

TEST(FutureContractTest, APromiseLostInAnyWayFailsTheWholeChain) {
  auto [promise, future] = MakePromise<int>("weights");
  Future<> end = future.Map([](int v) { return Future<int>(v); }).GetReadyFuture();
  Future<> joined = JoinFutures(std::vector<Future<>>{end, Future<>(OkStatus())});
  promise = Promise<int>();
  ASSERT_TRUE(joined.IsReady());
  const Status error = joined.Await();
  EXPECT_TRUE(IsInternal(error));
  EXPECT_NE(error.message().find("weights"), std::string_view::npos) << error.message();
}

TEST(FutureContractTest, AFutureThatFollowsItselfFails) {
  auto [promise, future] = MakePromise<int>("source");
  Future<int> self;
  self = future.Map([&self](int) { return self; });
  promise.Set(1);
  ASSERT_TRUE(self.IsReady());
  EXPECT_TRUE(IsInternal(self.Await().status()));
}

TEST(FutureContractTest, AnInvalidInnerFutureFails) {
  Future<int> future = Future<int>(1).Map([](int) { return Future<int>(); });
  EXPECT_TRUE(IsFailedPrecondition(future.Await().status()));
}

// Row 12: errors ------------------------------------------------------------------------------------------------------

TEST(FutureContractTest, ErrorsKeepAllTheySayOnEveryWay) {
  InlineExecutor executor;
  auto [promise, future] = MakePromise<int>("source");
  std::vector<Future<>> ends;
  ends.push_back(future.Map([](int) {}));
  ends.push_back(future.Map(executor, [](int) {}));
  ends.push_back(future.Map([](int) { return Future<>(OkStatus()); }));
  ends.push_back(future.GetReadyFuture());
  ends.push_back(future.Detach(executor).GetReadyFuture());
  ends.push_back(MakeFutureWhenReady(future.AsEvent()));
  ends.push_back(JoinFutures(std::vector<Future<>>{ends[0], ends[1]}));
  ends.push_back(JoinFutures(std::vector<Future<int>>{future, Future<int>(1)}).GetReadyFuture());
  auto [forwarded, forward_end] = MakePromise<int>("forwarded");
  std::move(forwarded).Forward(future);
  ends.push_back(forward_end.GetReadyFuture());
  ends.push_back(Future<int>(1).Map([](int) -> StatusOr<int> { return WithPayload(); }).GetReadyFuture());
  promise.Set(WithPayload());
  for (const Future<>& end : ends) {
    ASSERT_TRUE(end.IsReady()) << &end - ends.data();
    ExpectWithPayload(end.Await());
  }
}

// Which thread --------------------------------------------------------------------------------------------------------

/// Runs `set`, then what `executor` keeps on another thread, and expects that `future`'s callbacks ran only there.
template <typename Set>
void ExpectOffTheSetter(DeferredExecutor& executor, const Future<>& future, Set set) {
  bool called = false;
  bool setting = true;
  bool on_setter = false;
  future.OnReady([&](const Status&) {
    called = true;
    on_setter = setting;
  });
  set();
  setting = false;
  executor.RunAll();
  EXPECT_TRUE(called);
  EXPECT_FALSE(on_setter);
}

TEST(FutureContractTest, ExecutorFormsNeverCallBackOnTheSetterOfAValue) {
  DeferredExecutor executor;
  auto [a, mapped] = MakePromise<int>("a");
  ExpectOffTheSetter(executor, mapped.Map(executor, [](int) {}), [&a = a] { a.Set(1); });
  auto [b, detached] = MakePromise<int>("b");
  ExpectOffTheSetter(executor, detached.Detach(executor).GetReadyFuture(), [&b = b] { b.Set(1); });
}

TEST(FutureContractTest, ExecutorFormsNeverCallBackOnTheSetterOfAnError) {
  DeferredExecutor executor;
  auto [a, mapped] = MakePromise<int>("a");
  ExpectOffTheSetter(executor, mapped.Map(executor, [](int) {}), [&a = a] { a.Set(AbortedError("e")); });
  auto [b, detached] = MakePromise<int>("b");
  ExpectOffTheSetter(executor, detached.Detach(executor).GetReadyFuture(), [&b = b] { b.Set(AbortedError("e")); });
  auto [c, flat] = MakePromise<int>("c");
  ExpectOffTheSetter(executor, flat.Map(executor, [](int) { return Future<>(OkStatus()); }),
                     [&c = c] { c.Set(AbortedError("e")); });
}

// Rows 6 and 8: collisions --------------------------------------------------------------------------------------------

TEST(FutureContractTest, ACallbackMayDestroyThePromiseThatIsSetting) {
  auto [made, future] = MakePromise<std::string>("destroyed");
  auto promise = std::make_unique<Promise<std::string>>(std::move(made));
  const std::string text(100, 'x');
  std::vector<std::string> seen;
  future.OnReady([&](const StatusOr<std::string>&) { promise.reset(); });
  future.OnReady([&](const StatusOr<std::string>& value) { seen.push_back(*value); });
  future.OnReady([&](const StatusOr<std::string>& value) { seen.push_back(*value); });
  future = Future<std::string>();
  Promise<std::string>& setting = *promise;
  EXPECT_TRUE(setting.Set(text));
  EXPECT_EQ(seen, (std::vector<std::string>{text, text}));
}

TEST(FutureContractTest, ACallbackMayDropTheLastSharedPromise) {
  auto [made, future] = MakeSharedPromise<std::string>("dropped");
  SharedPromise<std::string> promise = std::move(made);
  made = SharedPromise<std::string>();
  const std::string text(100, 'y');
  int calls = 0;
  future.OnReady([&](const StatusOr<std::string>&) { promise = SharedPromise<std::string>(); });
  future.OnReady([&](const StatusOr<std::string>& value) { calls += *value == text ? 1 : 0; });
  future = Future<std::string>();
  EXPECT_TRUE(promise.Set(text));
  EXPECT_EQ(calls, 1);
}

TEST(FutureContractTest, RacingSetsHaveOneWinnerWhomAllCallbacksSee) {
  for (int round = 0; round < 300; ++round) {
    auto [promise, future] = MakeSharedPromise<int>("race");
    std::atomic<int> wins{0};
    std::atomic<int> winner{-1};
    std::atomic<int> calls{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i, copy = promise, watched = future] {
        while (!go.load()) std::this_thread::yield();
        watched.OnReady([&](const StatusOr<int>&) { calls.fetch_add(1); });
        if (copy.Set(i)) {
          wins.fetch_add(1);
          winner.store(i);
        }
      });
    }
    go.store(true);
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(wins.load(), 1);
    ASSERT_EQ(*future.Await(), winner.load());
    ASSERT_EQ(calls.load(), 4);
  }
}

TEST(FutureContractTest, DropsRaceWithCallbacksAndNoneIsLost) {
  for (int round = 0; round < 500; ++round) {
    auto [promise, future] = MakePromise<int>("race");
    std::atomic<int> calls{0};
    std::thread dropper([gone = std::move(promise)]() mutable { Promise<int> here = std::move(gone); });
    Future<int> mapped = future.Map([](int v) { return v; });
    mapped.OnReady([&](const StatusOr<int>&) { calls.fetch_add(1); });
    dropper.join();
    ASSERT_TRUE(mapped.IsReady());
    ASSERT_EQ(calls.load(), 1);
  }
}

// Joins ---------------------------------------------------------------------------------------------------------------

TEST(FutureContractTest, AJoinHoldsNoLockWhileItsCallbacksRun) {
  auto [a, first] = MakePromise<>("a");
  auto [b, second] = MakePromise<>("b");
  auto [c, third] = MakePromise<>("c");
  Future<> joined = JoinFutures(std::vector<Future<>>{first, second, third}, [] {
    JoinOptions options;
    options.fail_fast = true;
    return options;
  }());
  int calls = 0;
  joined.OnReady([&, &b = b, &c = c](const Status&) {
    ++calls;
    b.Set(AbortedError("second"));  // Re-enters the join.
    c.Set(OkStatus());
  });
  a.Set(AbortedError("first"));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(joined.Await().message(), "first");
}

TEST(FutureContractTest, PoliciesAgreeWhetherTheMembersWereReadyBeforeOrNot) {
  const auto policies = {ErrorPolicy::kFirstByIndex, ErrorPolicy::kAll};
  for (const ErrorPolicy policy : policies) {
    JoinOptions options;
    options.policy = policy;
    auto [a, first] = MakePromise<>("a");
    auto [b, second] = MakePromise<>("b");
    Future<> before = JoinFutures(std::vector<Future<>>{first, second}, options);
    a.Set(AbortedError("first"));
    b.Set(DataLossError("second"));
    Future<> after = JoinFutures(std::vector<Future<>>{first, second}, options);
    EXPECT_EQ(before.Await(), after.Await());
  }
}

// Copies --------------------------------------------------------------------------------------------------------------

struct MoveCounter {
  static inline int copies = 0;
  explicit MoveCounter(int v) : value(v) {}
  MoveCounter(const MoveCounter& other) : value(other.value) { ++copies; }
  MoveCounter(MoveCounter&&) noexcept = default;
  MoveCounter& operator=(const MoveCounter&) = delete;
  MoveCounter& operator=(MoveCounter&&) = delete;
  ~MoveCounter() = default;
  int value;
};

TEST(FutureContractTest, ValuesAreNotCopiedOnTheirWay) {
  InlineExecutor executor;
  auto [promise, future] = MakePromise<MoveCounter>("counted");
  MoveCounter::copies = 0;
  Future<int> mapped = future.Map([](const MoveCounter& v) { return v.value; });
  Future<int> on_executor = future.Map(executor, [](const MoveCounter& v) { return v.value; });
  Future<MoveCounter> detached = future.Detach(executor);
  Future<MoveCounter> flat = Future<int>(1).Map([&future = future](int) { return future; });
  Future<> ready = future.GetReadyFuture();
  promise.Set(MoveCounter(5));
  EXPECT_EQ(*mapped.Await() + *on_executor.Await(), 10);
  EXPECT_TRUE(detached.IsReady() && flat.IsReady() && ready.IsReady());
  EXPECT_EQ(MoveCounter::copies, 0);
}

TEST(FutureContractTest, ACallbackByPointerCopiesNothing) {
  auto [promise, future] = MakePromise<MoveCounter>("counted");
  MoveCounter::copies = 0;
  int seen = 0;
  future.OnReady([&](StatusOr<const MoveCounter*> v) { seen += (*v)->value; });
  promise.Set(MoveCounter(5));
  future.OnReady([&](StatusOr<const MoveCounter*> v) { seen += (*v)->value; });
  EXPECT_EQ(seen, 10);
  EXPECT_EQ(MoveCounter::copies, 0);
}

// Allocations ---------------------------------------------------------------------------------------------------------

TEST(FutureContractTest, PendingAndReadyMapsAllocateNothing) {
  EXPECT_EQ(AllocationsWhenWarm([] {
              auto [promise, future] = MakePromise<int>("counted");
              Future<int> mapped = future.Map([](int v) { return v + 1; });
              promise.Set(1);
            }),
            0);
  EXPECT_EQ(AllocationsWhenWarm([] {
              auto [promise, future] = MakePromise<int>("counted");
              Future<int> mapped = future.Map([](int v) { return Future<int>(v + 1); });
              promise.Set(1);
            }),
            0);
  EXPECT_EQ(AllocationsWhenWarm([] { static_cast<void>(Future<>(OkStatus()).Map([] {}).Await()); }), 0);
  EXPECT_EQ(AllocationsWhenWarm([] { static_cast<void>(Future<int>(1).GetReadyFuture().Await()); }), 0);
}

TEST(FutureContractTest, AJoinOfReadyFuturesAllocatesNoState) {
  const std::vector<Future<>> ready(8, Future<>(OkStatus()));
  EXPECT_EQ(AllocationsWhenWarm([&] { static_cast<void>(JoinFutures(ready).Await()); }), 0);
  Future<int> a(1);
  Future<int> b(2);
  EXPECT_EQ(AllocationsWhenWarm([&] { static_cast<void>(JoinFutures(a, b).IsReady()); }), 0) << "a tuple";
}

TEST(FutureContractTest, JoinsOfSpansCopyOrTakeTheMembers) {
  auto [promise, pending] = MakePromise<int>("pending");
  const std::vector<Future<int>> numbers{pending, Future<int>(2)};
  Future<std::vector<int>> copied = JoinFutures(Span<const Future<int>>(numbers));
  EXPECT_TRUE(numbers[1].IsValid());
  promise.Set(1);
  EXPECT_EQ(*copied.Await(), (std::vector<int>{1, 2}));
  std::vector<Future<std::unique_ptr<int>>> boxes;
  boxes.emplace_back(std::make_unique<int>(3));
  Future<std::vector<std::unique_ptr<int>>> taken = JoinFutures(Span<Future<std::unique_ptr<int>>>(boxes));
  EXPECT_FALSE(boxes[0].IsValid());
  EXPECT_EQ(*std::move(taken).Await()->at(0), 3);
}

// Stack ---------------------------------------------------------------------------------------------------------------

TEST(FutureContractStackTest, AMillionMapsThatAreSet) {
  OnSmallStack([] {
    auto [promise, future] = MakePromise<int>("first");
    Future<int> last = std::move(future);
    for (int i = 0; i < kLinks; ++i) last = last.Map([](int v) { return v + 1; });
    promise.Set(0);
    EXPECT_EQ(*last.Await(), kLinks);
  });
}

TEST(FutureContractStackTest, AMillionMapsThatAreDropped) {
  OnSmallStack([] {
    Future<int> last;
    {
      auto [promise, future] = MakePromise<int>("first");
      last = std::move(future);
      for (int i = 0; i < kLinks; ++i) last = last.Map([](int v) { return v + 1; });
    }
    EXPECT_TRUE(IsInternal(last.Await().status()));
  });
}

TEST(FutureContractStackTest, AMillionFlattenedMaps) {
  OnSmallStack([] {
    auto [promise, future] = MakePromise<int>("first");
    Future<int> last = std::move(future);
    for (int i = 0; i < kLinks; ++i) last = last.Map([](int v) { return Future<int>(v + 1); });
    promise.Set(0);
    EXPECT_EQ(*last.Await(), kLinks);
  });
}

TEST(FutureContractStackTest, AMillionFuturesEachOfWhichFollowsTheNext) {
  // The inner futures are pending, so links wait for links: from the far end to the near one.
  OnSmallStack([] {
    auto [promise, future] = MakePromise<int>("last");
    Future<int> inner = std::move(future);
    for (int i = 0; i < kLinks; ++i) {
      inner = Future<>(OkStatus()).Map([inner = std::move(inner)] { return inner; });
    }
    promise.Set(7);
    EXPECT_EQ(*inner.Await(), 7);
  });
}

TEST(FutureContractStackTest, AMillionDetachedOnAnInlineExecutor) {
  OnSmallStack([] {
    InlineExecutor executor;
    auto [promise, future] = MakePromise<int>("first");
    Future<int> last = std::move(future);
    for (int i = 0; i < kLinks; ++i) last = last.Detach(executor);
    promise.Set(7);
    EXPECT_EQ(*last.Await(), 7);
  });
}

TEST(FutureContractStackTest, AMillionMapsOnAnInlineExecutor) {
  OnSmallStack([] {
    InlineExecutor executor;
    auto [promise, future] = MakePromise<int>("first");
    Future<int> last = std::move(future);
    for (int i = 0; i < kLinks; ++i) last = last.Map(executor, [](int v) { return v + 1; });
    promise.Set(0);
    EXPECT_EQ(*last.Await(), kLinks);
  });
}

struct Link {
  Future<std::shared_ptr<Link>> next;
};

TEST(FutureContractStackTest, AMillionFuturesInsideFuturesAreFreed) {
  OnSmallStack([] {
    Future<std::shared_ptr<Link>> head;
    for (int i = 0; i < kLinks; ++i) head = std::make_shared<Link>(Link{std::move(head)});
    EXPECT_TRUE(head.IsReady());
  });
}

TEST(FutureContractStackTest, APromiseInAClosureInACallbackAMillionDeep) {
  // Each callback owns the promise of the next; all are dropped at once.
  OnSmallStack([] {
    auto [first, head] = MakePromise<>("first");
    Future<> last = head;
    for (int i = 0; i < kLinks; ++i) {
      auto [promise, future] = MakePromise<>("link");
      last.OnReady([owed = std::move(promise)](const Status&) { static_cast<void>(owed); });
      last = std::move(future);
    }
    head = Future<>();
    first = Promise<>();
    EXPECT_TRUE(last.IsReady());
  });
}

TEST(FutureContractStackTest, AJoinOfAJoinAHundredThousandDeep) {
  OnSmallStack([] {
    auto [promise, future] = MakePromise<>("first");
    Future<> last = std::move(future);
    for (int i = 0; i < kLinks / 10; ++i) {
      last = JoinFutures(std::vector<Future<>>{std::move(last), Future<>(OkStatus())});
    }
    promise.Set(OkStatus());
    EXPECT_TRUE(last.Await().ok());
  });
}

}  // namespace
}  // namespace purlin
