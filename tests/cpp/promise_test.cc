// Promises: set once, never forgotten.
#include "purlin/promise.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace purlin {
namespace {

TEST(PromiseTest, R1TheFirstSetWinsAndTheSecondIsTold) {
  auto [promise, future] = MakePromise<int>("p");
  EXPECT_TRUE(promise.Set(1));
  EXPECT_FALSE(promise.Set(2));
  EXPECT_FALSE(promise.Set(AbortedError("late")));
  EXPECT_FALSE(promise.Emplace(3));
  EXPECT_EQ(*future.Await(), 1);
}

TEST(PromiseTest, AnEmptyPromiseOwesNothing) {
  Promise<int> empty;
  EXPECT_FALSE(static_cast<bool>(empty));
  EXPECT_FALSE(empty.Set(1));
  EXPECT_FALSE(empty.future().IsValid());
  auto [promise, future] = MakePromise<>("p");
  Promise<> taken = std::move(promise);
  EXPECT_FALSE(promise.Set());  // NOLINT(bugprone-use-after-move)
  EXPECT_FALSE(future.IsReady());
  EXPECT_TRUE(taken.Set());
  EXPECT_TRUE(future.Await().ok());
}

TEST(PromiseTest, R2ADroppedPromiseFailsItsFutureAndNamesIt) {
  Future<int> future;
  Status seen;
  {
    auto made = MakePromise<int>("weights");
    future = made.second;
    future.OnReady([&seen](StatusOr<int> value) { seen = value.status(); });
  }
  EXPECT_TRUE(IsInternal(seen));
  EXPECT_NE(seen.message().find("'weights'"), std::string_view::npos) << seen;
  EXPECT_NE(std::string_view(seen.location().file()).find("promise_test.cc"), std::string_view::npos) << seen;
}

TEST(PromiseTest, R2APromiseThatIsAssignedOverFailsItsFuture) {
  auto [first, lost] = MakePromise<int>("lost");
  auto [second, kept] = MakePromise<int>("kept");
  first = std::move(second);
  EXPECT_TRUE(IsInternal(lost.Await().status()));
  EXPECT_TRUE(first.Set(1));
  EXPECT_EQ(*kept.Await(), 1);
}

TEST(PromiseTest, KnowsWhetherSomebodyLooks) {
  Promise<int> promise("p");
  EXPECT_TRUE(promise.IsUniqueReference());
  {
    Future<int> future = promise.future();
    EXPECT_FALSE(promise.IsUniqueReference());
  }
  EXPECT_TRUE(promise.IsUniqueReference());
  promise.future().OnReady([](StatusOr<int>) {});
  EXPECT_FALSE(promise.IsUniqueReference());
  promise.Set(1);
}

TEST(PromiseTest, ForwardsToAnotherFuture) {
  auto [source, value] = MakePromise<int>("source");
  auto [target, future] = MakePromise<int>("target");
  std::move(target).Forward(value);
  EXPECT_FALSE(future.IsReady());
  source.Set(4);
  EXPECT_EQ(*future.Await(), 4);
  auto [owner, owned] = MakePromise<std::unique_ptr<int>>("owned");
  std::move(owner).Forward(Future<std::unique_ptr<int>>(std::make_unique<int>(5)));
  EXPECT_EQ(**std::move(owned).Await(), 5);
}

TEST(SharedPromiseTest, R1TheFirstOfManyThreadsWins) {
  for (int round = 0; round < 100; ++round) {
    auto [promise, future] = MakeSharedPromise<int>("raced");
    std::atomic<int> winner{-1};
    std::atomic<int> wins{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([promise = promise, i, &winner, &wins] {
        if (promise.Set(i)) {
          winner = i;
          ++wins;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wins, 1);
    EXPECT_EQ(*future.Await(), winner);
  }
}

TEST(SharedPromiseTest, ASetFromInsideACallbackAnswersFalse) {
  auto [promise, future] = MakeSharedPromise<int>("again");
  bool again = true;
  future.OnReady([promise = promise, &again](StatusOr<int>) { again = promise.Set(2); });
  EXPECT_TRUE(promise.Set(1));
  EXPECT_FALSE(again);
  EXPECT_EQ(*future.Await(), 1);
}

TEST(SharedPromiseTest, R2TheLastCopyFailsTheFuture) {
  auto [promise, future] = MakePromise<std::unique_ptr<int>>("shared");
  SharedPromise<std::unique_ptr<int>> shared = std::move(promise).ToShared();
  {
    SharedPromise<std::unique_ptr<int>> copy = shared;
    shared = {};
    EXPECT_FALSE(future.IsReady());
  }
  EXPECT_TRUE(IsInternal(std::move(future).Await().status()));
  EXPECT_FALSE(shared.Set(std::make_unique<int>(1)));
}

}  // namespace
}  // namespace purlin
