// Future, Promise, SharedPromise, joins of futures.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "purlin/future.h"
#include "purlin/join_futures.h"
#include "purlin/promise.h"
#include "tests/cpp/testing.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(FutureMisuse, AnInvalidFutureIsAnErrorEverywhere) {
  const Future<int> invalid;
  EXPECT_FALSE(invalid.IsValid());
  EXPECT_TRUE(invalid.IsReady());
  EXPECT_TRUE(Fails(invalid.Await(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(invalid.AwaitFor(seconds(0)), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(invalid.AwaitPointer(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(invalid.AsEvent(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(invalid.GetReadyFuture().Await(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(invalid.MapTo(3).Await(), StatusCode::kFailedPrecondition));
  Status seen;
  invalid.OnReady([&seen](StatusOr<int> result) { seen = result.status(); });
  EXPECT_TRUE(Fails(seen, StatusCode::kFailedPrecondition));
}

TEST(FutureMisuse, VerbsOfAnInvalidFutureCallNobody) {
  const Future<int> invalid;
  CountingExecutor executor;
  bool called = false;
  const auto map = [&called](int) { called = true; };
  EXPECT_TRUE(Fails(invalid.Map(map).Await(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(invalid.Map(executor, map).Await(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(invalid.MapAlways(map).Await(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(invalid.Detach(executor).Await(), StatusCode::kFailedPrecondition));
  EXPECT_FALSE(called);
}

TEST(FutureMisuse, AMovedFromFutureIsInvalid) {
  auto [promise, future] = MakePromise<std::unique_ptr<int>>("moved");
  Future<std::unique_ptr<int>> taken = std::move(future);
  EXPECT_FALSE(future.IsValid());
  EXPECT_TRUE(Fails(std::move(future).Await(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(promise.Set(std::make_unique<int>(1)));
  EXPECT_EQ(**std::move(taken).Await(), 1);
  EXPECT_FALSE(taken.IsValid());
}

TEST(FutureMisuse, OkIsNoValue) { EXPECT_TRUE(Fails(Future<int>(OkStatus()).Await(), StatusCode::kInternal, {"OK"})); }

TEST(FutureMisuse, ADeadlineThatIsNegative) {
  auto [promise, future] = MakePromise<int>("patient");
  EXPECT_TRUE(Fails(future.AwaitFor(nanoseconds(-5)), StatusCode::kDeadlineExceeded, {"'patient'"}));
  promise.Set(1);
}

TEST(FutureMisuse, ARefusingExecutorFailsTheResult) {
  RefusingExecutor executor(UnavailableError("no seats"));
  EXPECT_TRUE(Fails(MakeFutureOn(executor, [] { return 1; }).Await(), StatusCode::kUnavailable, {"no seats"}));
  EXPECT_TRUE(Fails(Future<int>(1).Map(executor, [](int v) { return v; }).Await(), StatusCode::kUnavailable));
  auto [promise, future] = MakePromise<int>("to a full house");
  const Future<int> detached = future.Detach(executor);
  promise.Set(1);
  EXPECT_TRUE(Fails(detached.AwaitFor(seconds(20)), StatusCode::kUnavailable, {"no seats"}));
}

TEST(FutureMisuse, AnExecutorThatDropsTasksFailsTheResult) {
  LyingExecutor executor;
  EXPECT_TRUE(Fails(MakeFutureOn(executor, [] { return 1; }).AwaitFor(seconds(20)), StatusCode::kCancelled));
  auto [promise, future] = MakePromise<int>("to a liar");
  const Future<int> detached = future.Detach(executor);
  promise.Set(1);
  EXPECT_TRUE(Fails(detached.AwaitFor(seconds(20)), StatusCode::kCancelled));
}

TEST(FutureMisuse, AFunctionThatAnswersAnInvalidFuture) {
  auto [promise, future] = MakePromise<int>("outer");
  const Future<int> flat = future.Map([](int) { return Future<int>(); });
  promise.Set(1);
  EXPECT_TRUE(Fails(flat.AwaitFor(seconds(20)), StatusCode::kFailedPrecondition));
}

TEST(FutureMisuse, AFunctionThatAnswersItsOwnFuture) {
  auto [promise, future] = MakePromise<int>("outer");
  Future<int> flat;
  flat = future.Map([&flat](int) { return flat; });
  promise.Set(1);
  EXPECT_TRUE(Fails(flat.AwaitFor(seconds(20)), StatusCode::kInternal));
}

TEST(FutureMisuse, AnEventThatFailedMakesAFailedFuture) {
  EXPECT_TRUE(Fails(MakeFutureWhenReady(Event::Error(DataLossError("x"))).Await(), StatusCode::kDataLoss, {"x"}));
  Future<> future;
  {
    const EventPromise promise("dropped");
    future = MakeFutureWhenReady(promise.event());
  }
  EXPECT_TRUE(Fails(future.AwaitFor(seconds(20)), StatusCode::kInternal, {"'dropped'"}));
}

TEST(PromiseMisuse, AnEmptyPromiseOwesNothing) {
  Promise<int> empty;
  EXPECT_FALSE(empty);
  EXPECT_FALSE(empty.Set(1));
  EXPECT_FALSE(empty.Emplace(1));
  EXPECT_FALSE(empty.future().IsValid());
  EXPECT_FALSE(empty.IsUniqueReference());
  std::move(empty).Forward(Future<int>(1));
  Promise<> nothing;
  EXPECT_FALSE(nothing.Set());
}

TEST(PromiseMisuse, TheSecondSetIsToldSo) {
  NoLeak no_leak;
  auto [promise, future] = MakePromise<Counted>("twice");
  EXPECT_TRUE(promise.Emplace(1));
  EXPECT_FALSE(promise.Emplace(2));
  EXPECT_FALSE(promise.Set(InternalError("late")));
  EXPECT_EQ(future.Await()->value, 1);
}

TEST(PromiseMisuse, ADroppedPromiseFailsByName) {
  Future<int> future;
  {
    future = MakePromise<int>("dropped").second;
  }
  EXPECT_TRUE(Fails(future.Await(), StatusCode::kInternal, {"'dropped'"}));
}

TEST(PromiseMisuse, SettingInItsOwnWaiterAnswersFalse) {
  auto [promise, future] = MakePromise<int>("own waiter");
  bool answered = true;
  future.OnReady([&answered, &p = promise](StatusOr<int>) { answered = p.Set(2); });
  EXPECT_TRUE(promise.Set(1));
  EXPECT_FALSE(answered);
}

TEST(PromiseMisuse, AWaiterMayDestroyThePromise) {
  auto pair = std::make_unique<std::pair<Promise<int>, Future<int>>>(MakePromise<int>("destroyed inside"));
  Promise<int>& promise = pair->first;
  const Future<int> future = pair->second;
  int seen = 0;
  future.OnReady([&](StatusOr<int> result) {
    seen = *result;
    pair.reset();
  });
  EXPECT_TRUE(promise.Set(7));
  EXPECT_EQ(seen, 7);
}

TEST(PromiseMisuse, AForwardToAnInvalidFutureFails) {
  auto [promise, future] = MakePromise<int>("forwarded");
  std::move(promise).Forward(Future<int>());
  EXPECT_TRUE(Fails(future.AwaitFor(seconds(20)), StatusCode::kFailedPrecondition));
  EXPECT_FALSE(promise.Set(1));
}

TEST(SharedPromiseMisuse, AnEmptyOneOwesNothing) {
  const SharedPromise<int> empty;
  EXPECT_FALSE(empty.Set(1));
  EXPECT_FALSE(empty.Emplace(1));
  EXPECT_FALSE(empty.future().IsValid());
  const SharedPromise<int> of_empty{Promise<int>()};
  EXPECT_FALSE(of_empty.Set(1));
}

TEST(SharedPromiseMisuse, TheLastCopyThatGoesFailsByName) {
  Future<int> future;
  {
    auto [promise, pending] = MakeSharedPromise<int>("dropped by all");
    future = pending;
    const SharedPromise<int> copy = promise;
    EXPECT_FALSE(future.IsReady());
  }
  EXPECT_TRUE(Fails(future.Await(), StatusCode::kInternal, {"'dropped by all'"}));
}

TEST(SharedPromiseMisuse, EightCopiesSetTogether) {
  for (int round = 0; round < 200; ++round) {
    auto [promise, future] = MakeSharedPromise<int>("raced");
    std::atomic<int> winners{0};
    Together(8, [&winners, &shared = promise](int i) { winners += shared.Set(i); });
    EXPECT_EQ(winners.load(), 1);
    EXPECT_TRUE(Ok(future.Await()));
  }
}

TEST(JoinFuturesMisuse, OfNothingIsReady) {
  EXPECT_TRUE(Ok(JoinFutures(Span<const Future<>>()).Await()));
  EXPECT_EQ(JoinFutures(std::vector<Future<int>>()).Await()->size(), 0U);
}

TEST(JoinFuturesMisuse, WithAnInvalidMemberIsInvalid) {
  EXPECT_FALSE(JoinFutures(std::vector<Future<int>>{Future<int>(1), Future<int>()}).IsValid());
  const Future<> members[] = {Future<>(OkStatus()), Future<>()};
  EXPECT_FALSE(JoinFutures(members).IsValid());
  EXPECT_FALSE(JoinFutures(Future<int>(1), Future<float>()).IsValid());
}

TEST(JoinFuturesMisuse, AnUnknownPolicyIsAnErrorThatNamesIt) {
  JoinOptions options;
  options.policy = static_cast<ErrorPolicy>(1234);
  auto [promise, future] = MakePromise<int>("member");
  EXPECT_TRUE(Fails(JoinFutures(std::vector<Future<int>>{future}, options).AwaitFor(seconds(20)),
                    StatusCode::kInvalidArgument, {"1234"}));
  EXPECT_TRUE(Fails(MakeFutureWhenReady({Event()}, options).Await(), StatusCode::kInvalidArgument, {"1234"}));
  promise.Set(1);
}

TEST(JoinFuturesMisuse, ADroppedMemberFailsTheJoin) {
  Future<std::vector<int>> all;
  {
    auto [promise, future] = MakePromise<int>("dropped member");
    auto [kept, other] = MakePromise<int>("other member");
    all = JoinFutures(std::vector<Future<int>>{future, other});
    kept.Set(1);
  }
  EXPECT_TRUE(Fails(all.AwaitFor(seconds(20)), StatusCode::kInternal, {"'dropped member'"}));
}

TEST(JoinFuturesMisuse, TheSameMemberTwiceIsCopied) {
  auto [promise, future] = MakePromise<int>("twice");
  const Future<std::vector<int>> all = JoinFutures(std::vector<Future<int>>{future, future});
  promise.Set(4);
  EXPECT_EQ(*all.Await(), (std::vector<int>{4, 4}));
}

}  // namespace
}  // namespace purlin
