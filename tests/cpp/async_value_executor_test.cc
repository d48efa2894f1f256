// Values that are mapped and made in tasks, and executors that refuse, drop or run them at once.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/executor.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

TEST(AsyncValueExecutorTest, MapAvailableOnExecutor) {
  DeferredExecutor executor;
  auto value = MakeAvailableAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped = value.Map(executor, [](int32_t v) -> float { return static_cast<float>(v); });
  value.reset();
  EXPECT_FALSE(mapped.IsAvailable());
  EXPECT_EQ(executor.tasks, 1);
  executor.RunAll();
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValueExecutorTest, MapUnavailableOnExecutor) {
  NoLeak no_leak;
  DeferredExecutor executor;
  auto value = MakeConstructedAsyncValueRef<Counted>(42);
  AsyncValueRef<int> mapped = value.Map(executor, [](Counted& v) { return v.value; });
  value.SetStateConcrete();
  value.reset();
  EXPECT_FALSE(mapped.IsAvailable());
  EXPECT_EQ(executor.tasks, 1);
  executor.RunAll();
  EXPECT_EQ(*mapped, 42) << "the task kept the source alive";
}

TEST(AsyncValueExecutorTest, MapErrorOnExecutor) {
  DeferredExecutor executor;
  auto value = MakeConstructedAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped = value.Map(executor, [](int32_t) { return 1.0f; });
  value.SetError(CancelledError("error"));
  EXPECT_EQ(mapped.GetError(), CancelledError("error"));
  AsyncValueRef<float> again = value.Map(executor, [](int32_t) { return 1.0f; });
  EXPECT_EQ(again.GetError(), CancelledError("error"));
  EXPECT_EQ(executor.tasks, 0) << "an error needs no task";
}

TEST(AsyncValueExecutorTest, TryMapOnExecutor) {
  DeferredExecutor executor;
  auto value = MakeConstructedAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped =
      value.TryMap(executor, [](int32_t v) -> StatusOr<float> { return static_cast<float>(v); });
  value.SetStateConcrete();
  value.reset();
  EXPECT_FALSE(mapped.IsAvailable());
  EXPECT_EQ(executor.tasks, 1);
  executor.RunAll();
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValueExecutorTest, TryMapErrorOnExecutor) {
  DeferredExecutor executor;
  auto value = MakeConstructedAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped =
      value.TryMap(executor, [](int32_t) -> StatusOr<float> { return CancelledError("error"); });
  value.SetStateConcrete();
  executor.RunAll();
  EXPECT_EQ(executor.tasks, 1);
  EXPECT_EQ(mapped.GetError(), CancelledError("error"));
}

TEST(AsyncValueExecutorTest, FlatMapAvailableOnExecutor) {
  DeferredExecutor executor;
  auto value = MakeConstructedAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped =
      value.FlatMap(executor, [](int32_t v) { return MakeAvailableAsyncValueRef<float>(static_cast<float>(v)); });
  value.SetStateConcrete();
  value.reset();
  EXPECT_FALSE(mapped.IsAvailable());
  EXPECT_EQ(executor.tasks, 1);
  executor.RunAll();
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValueExecutorTest, FlatMapDeferredAsyncValueOnExecutor) {
  DeferredExecutor outer;
  DeferredExecutor inner;
  auto value = MakeUnconstructedAsyncValueRef<std::unique_ptr<int32_t>>();
  AsyncValueRef<std::unique_ptr<int32_t>> mapped =
      value.FlatMap(outer, [&inner](AsyncValuePtr<std::unique_ptr<int32_t>> ptr) {
        return MakeAsyncValueRef<std::unique_ptr<int32_t>>(
            inner, [ref = ptr.CopyRef()] { return std::make_unique<int32_t>(**ref + 1); });
      });
  value.emplace(std::make_unique<int32_t>(42));
  value.reset();
  EXPECT_FALSE(mapped.IsAvailable());
  outer.RunAll();
  EXPECT_FALSE(mapped.IsAvailable());
  inner.RunAll();
  EXPECT_EQ(**mapped, 43);
}

TEST(AsyncValueExecutorTest, ADroppedTaskFailsTheResult) {
  NoLeak no_leak;
  DeferredExecutor executor;
  auto value = MakeAvailableAsyncValueRef<Counted>(1);
  std::vector<AsyncValueRef<int>> results;
  results.push_back(value.Map(executor, [](Counted& v) { return v.value; }, "mapped"));
  results.push_back(value.TryMap(executor, [](Counted& v) -> StatusOr<int> { return v.value; }, "mapped"));
  results.push_back(value.FlatMap(executor, [](Counted&) { return MakeAvailableAsyncValueRef<int>(1); }, "mapped"));
  results.push_back(MakeAsyncValueRef(executor, [counted = Counted(1)] { return counted.value; }, "mapped"));
  results.push_back(TryMakeAsyncValueRef(executor, []() -> StatusOr<int> { return 1; }, "mapped"));
  EXPECT_EQ(executor.tasks, 5);
  executor.DropAll();
  for (const AsyncValueRef<int>& result : results) {
    EXPECT_TRUE(IsCancelled(result.GetError())) << result.GetError();
    EXPECT_NE(result.GetError().message().find("'mapped'"), std::string_view::npos) << result.GetError();
  }
}

TEST(AsyncValueExecutorTest, ARefusalOfTheExecutorIsTheErrorOfTheResult) {
  NoLeak no_leak;
  RefusingExecutor executor;
  auto available = MakeAvailableAsyncValueRef<int>(1);
  EXPECT_EQ(available.Map(executor, [](int v) { return v; }).GetError(), UnavailableError("no threads today"));
  EXPECT_EQ(MakeAsyncValueRef(executor, [counted = Counted(1)] { return 1; }).GetError(),
            UnavailableError("no threads today"));
  auto pending = MakeUnconstructedAsyncValueRef<int>();
  auto mapped = pending.FlatMap(executor, [](int) { return MakeAvailableAsyncValueRef<int>(1); });
  pending.emplace(1);
  EXPECT_EQ(mapped.GetError(), UnavailableError("no threads today"));
  LyingExecutor lying;
  EXPECT_TRUE(IsCancelled(available.Map(lying, [](int v) { return v; }).GetError()));
}

TEST(AsyncValueExecutorTest, InlineExecutorsNest) {
  CountingExecutor executor;
  auto value = MakeUnconstructedAsyncValueRef<int>();
  auto mapped =
      value.Map(executor, [](int v) { return v + 1; })
          .FlatMap(executor, [&executor](int v) { return MakeAsyncValueRef(executor, [v] { return v + 1; }); })
          .Map(executor, [](int v) { return v + 1; });
  value.emplace(0);
  EXPECT_EQ(*mapped, 3);
  EXPECT_EQ(executor.tasks, 4);
}

TEST(AsyncValueExecutorTest, AStoppedPoolFailsTheResult) {
  StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({1, "stopped"});
  ASSERT_TRUE(pool.ok()) << pool.status();
  auto value = MakeUnconstructedAsyncValueRef<int>();
  auto mapped = value.Map(*pool, [](int v) { return v; });
  auto in_time = MakeAsyncValueRef(*pool, [] { return 1; });
  EXPECT_TRUE(in_time.Wait().ok());
  ASSERT_TRUE(pool->Shutdown().ok());
  value.emplace(1);
  EXPECT_TRUE(IsCancelled(mapped.GetError())) << mapped.GetError();
}

}  // namespace
}  // namespace purlin
