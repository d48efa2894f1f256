// purlin/adapters/std.h where nothing is thrown; adapters_std_exception_test.cc has the rest.
#include "purlin/adapters/std.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "purlin/elastic_pool.h"
#include "purlin/promise.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

using adapters::FromStd;
using adapters::ToStd;

class FromStdTest : public testing::Test {
 protected:
  ElasticPool pool_ = ElasticPool::Create({}).value();
};

TEST_F(FromStdTest, ValuesOfEveryFormCross) {
  std::promise<int> number;
  const Future<int> of_number = FromStd(number.get_future(), pool_);
  EXPECT_FALSE(of_number.IsReady());
  number.set_value(7);
  EXPECT_EQ(*of_number.Await(), 7);
  std::promise<void> nothing;
  const Future<> of_nothing = FromStd(nothing.get_future(), pool_);
  nothing.set_value();
  EXPECT_TRUE(of_nothing.Await().ok());
}

TEST_F(FromStdTest, AMoveOnlyValueIsMoved) {
  const NoLeak no_leak;
  std::promise<std::unique_ptr<Counted>> promise;
  Future<std::unique_ptr<Counted>> future = FromStd(promise.get_future(), pool_);
  auto payload = std::make_unique<Counted>(7);
  Counted* const address = payload.get();
  promise.set_value(std::move(payload));
  EXPECT_EQ(std::move(future).Await()->get(), address);
}

TEST_F(FromStdTest, AStatusInItIsTheResultItself) {
  std::promise<Status> status;
  const Future<> of_status = FromStd(status.get_future(), pool_);
  status.set_value(AbortedError("x"));
  EXPECT_EQ(of_status.Await(), AbortedError("x"));
  std::promise<StatusOr<int>> status_or;
  const Future<int> of_status_or = FromStd(status_or.get_future(), pool_);
  status_or.set_value(DataLossError("y"));
  EXPECT_EQ(of_status_or.Await().status(), DataLossError("y"));
}

TEST_F(FromStdTest, SharedFuturesAreCopied) {
  std::promise<std::string> promise;
  const std::shared_future<std::string> shared = promise.get_future().share();
  const Future<std::string> first = FromStd(shared, pool_);
  const Future<std::string> second = FromStd(shared, pool_);
  promise.set_value("value");
  EXPECT_EQ(*first.Await(), "value");
  EXPECT_EQ(*second.Await(), "value");
  EXPECT_EQ(shared.get(), "value");
}

TEST_F(FromStdTest, ADeferredFunctionRunsInTheTask) {
  const std::thread::id here = std::this_thread::get_id();
  const auto ran = FromStd(std::async(std::launch::deferred, [] { return std::this_thread::get_id(); }), pool_);
  EXPECT_NE(*ran.Await(), here);
}

TEST_F(FromStdTest, WithoutAStateItIsAnError) {
  EXPECT_EQ(FromStd(std::future<int>(), pool_).Await().status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(FromStd(std::shared_future<void>(), pool_).Await().code(), StatusCode::kFailedPrecondition);
}

TEST_F(FromStdTest, AnExecutorThatRefusesOrDropsTheTaskFailsIt) {
  std::promise<int> promise;
  const std::shared_future<int> shared = promise.get_future().share();
  RefusingExecutor refuses;
  EXPECT_EQ(FromStd(shared, refuses).Await().status().code(), StatusCode::kUnavailable);
  DeferredExecutor drops;
  const Future<int> dropped = FromStd(shared, drops);
  EXPECT_FALSE(dropped.IsReady());
  drops.DropAll();
  EXPECT_EQ(dropped.Await().status().code(), StatusCode::kCancelled);
}

TEST(ToStdTest, AnEventThatHappensOrFails) {
  EventPromise happens("happens");
  std::future<Status> happened = ToStd(happens.event());
  EXPECT_EQ(happened.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  happens.SetReady();
  EXPECT_EQ(happened.get(), OkStatus());
  Status error = DataLossError("x");
  error.SetPayload("url", "bytes");
  EXPECT_EQ(ToStd(Event::Error(error)).get(), error);
  EXPECT_EQ(ToStd(Event()).get(), OkStatus());
}

TEST(ToStdTest, FuturesOfEveryForm) {
  const NoLeak no_leak;
  auto [number, number_future] = MakePromise<int>();
  std::future<StatusOr<int>> of_number = ToStd(number_future);
  number.Set(7);
  EXPECT_EQ(*of_number.get(), 7);
  auto [only, only_future] = MakePromise<std::unique_ptr<Counted>>();
  std::future<StatusOr<std::unique_ptr<Counted>>> of_only = ToStd(std::move(only_future));
  only.Set(std::make_unique<Counted>(8));
  EXPECT_EQ((*of_only.get())->value, 8);
  EXPECT_EQ(ToStd(Future<>(AbortedError("x"))).get(), AbortedError("x"));
  EXPECT_EQ(ToStd(Future<int>()).get().status().code(), StatusCode::kFailedPrecondition);
}

TEST(ToStdTest, APromiseThatIsDroppedUnsetIsAnErrorThatNamesIt) {
  std::future<Status> future;
  {
    const EventPromise promise("the loss");
    future = ToStd(promise.event());
  }
  const Status status = future.get();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("the loss"), std::string_view::npos);
}

TEST(ToStdTest, TheFutureMayBeDroppedFirstAndDoesNotBlock) {
  EventPromise promise("p");
  {
    const std::future<Status> dropped = ToStd(promise.event());
  }
  EXPECT_TRUE(promise.SetReady());
}

TEST(ToStdTest, AWaitingThreadIsWoken) {
  for (int round = 0; round < 200; ++round) {
    EventPromise promise("p");
    std::future<Status> future = ToStd(promise.event());
    Together(2, [&](int index) {
      if (index == 0) {
        promise.SetReady();
      } else {
        EXPECT_TRUE(future.get().ok());
      }
    });
  }
}

}  // namespace
}  // namespace purlin
