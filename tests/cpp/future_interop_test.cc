// Values and events as futures: what interop with asynchronous values promises.
//
// A value is an event (AsEvent), so MakeFutureWhenReady takes one value, or several of different types; a value of a T
// becomes a Future<T> that shares it. A future of an event does not keep the value: its owner holds a
// reference, and when the last one is dropped unset, the future fails instead of staying pending.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/future.h"
#include "purlin/join_futures.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

TEST(FutureInteropTest, OfSeveralValuesIsReadyAfterTheLast) {
  const auto number = MakeUnconstructedAsyncValueRef<int>();
  const auto text = MakeUnconstructedAsyncValueRef<std::string>();
  const std::vector<Event> events{number.AsEvent(), text.AsEvent()};
  const Future<> future = MakeFutureWhenReady(events);
  EXPECT_FALSE(future.IsReady());
  text.emplace("text");
  EXPECT_FALSE(future.IsReady());
  number.emplace(1);
  EXPECT_TRUE(future.IsReady());
  EXPECT_TRUE(future.Await().ok());
}

TEST(FutureInteropTest, OfSeveralValuesNeedsNoReferenceOfTheCallers) {
  const NoLeak no_leak;
  Future<> future;
  auto first = MakeUnconstructedAsyncValueRef<Counted>();
  auto second = MakeUnconstructedAsyncValueRef<Counted>();
  {
    const std::vector<AsyncValueRef<Counted>> callers{first, second};
    const std::vector<Event> events{callers[0].AsEvent(), callers[1].AsEvent()};
    future = MakeFutureWhenReady(events);
  }
  first.emplace(1);
  first.reset();
  EXPECT_FALSE(future.IsReady());
  second.emplace(2);
  second.reset();
  EXPECT_TRUE(future.Await().ok());
}

TEST(FutureInteropTest, OfSeveralValuesFailsWithTheFirstErrorByIndex) {
  const auto good = MakeUnconstructedAsyncValueRef<int>();
  const auto one = MakeUnconstructedAsyncValueRef<int>();
  const auto two = MakeUnconstructedAsyncValueRef<int>();
  const std::vector<Event> events{good.AsEvent(), one.AsEvent(), two.AsEvent()};
  const Future<> future = MakeFutureWhenReady(events);
  two.SetError(DataLossError("two"));
  Status error = AbortedError("one");
  error.SetPayload("type", "payload");
  one.SetError(error);
  EXPECT_FALSE(future.IsReady()) << "it waits for all";
  good.emplace(1);
  EXPECT_EQ(future.Await(), error) << "with its payloads";
}

TEST(FutureInteropTest, OfAvailableValuesIsReadyNow) {
  const std::vector<Event> good{MakeAvailableAsyncValueRef<int>(1).AsEvent(),
                                MakeAvailableAsyncValueRef<std::string>("x").AsEvent()};
  EXPECT_TRUE(MakeFutureWhenReady(good).IsReady());
  EXPECT_TRUE(MakeFutureWhenReady(good).Await().ok());
  const std::vector<Event> bad{good[0], AsyncValueRef<int>(AbortedError("x")).AsEvent()};
  EXPECT_TRUE(MakeFutureWhenReady(bad).IsReady());
  EXPECT_EQ(MakeFutureWhenReady(bad).Await(), AbortedError("x"));
  EXPECT_TRUE(MakeFutureWhenReady(std::vector<Event>()).IsReady());
}

TEST(FutureInteropTest, OfOneValueBecomesReadyWithIt) {
  const NoLeak no_leak;
  auto value = MakeUnconstructedAsyncValueRef<Counted>();
  const Future<> future = MakeFutureWhenReady(value.AsEvent());
  EXPECT_EQ(value.NumRef(), 1U) << "a future of its event does not keep the value";
  EXPECT_FALSE(future.IsReady());
  value.emplace(1);
  value.reset();
  EXPECT_TRUE(future.Await().ok());
}

TEST(FutureInteropTest, OfOneValueFailsAsItDoes) {
  const auto value = MakeUnconstructedAsyncValueRef<int>();
  const Future<> pending = MakeFutureWhenReady(value.AsEvent());
  value.SetError(AbortedError("x"));
  EXPECT_EQ(pending.Await(), AbortedError("x"));
  EXPECT_EQ(MakeFutureWhenReady(value.AsEvent()).Await(), AbortedError("x"));
}

TEST(FutureInteropTest, OfAValueThatIsDroppedUnsetFailsAndNamesIt) {
  auto value = MakeUnconstructedAsyncValueRef<int>("never set");
  auto other = MakeUnconstructedAsyncValueRef<int>();
  const Future<> one = MakeFutureWhenReady(value.AsEvent());
  std::vector<Event> events{value.AsEvent(), other.AsEvent()};
  const Future<> both = MakeFutureWhenReady(events);
  events.clear();
  value.reset();
  EXPECT_TRUE(IsInternal(one.Await())) << one.Await();
  EXPECT_NE(one.Await().message().find("'never set'"), std::string::npos) << one.Await();
  EXPECT_FALSE(both.IsReady());
  other.emplace(1);
  EXPECT_NE(both.Await().message().find("'never set'"), std::string::npos) << both.Await();
}

TEST(FutureInteropTest, JoinsOfValuesThatAreDroppedUnsetFailAndLeakNothing) {
  const NoLeak no_leak;
  auto value = MakeUnconstructedAsyncValueRef<Counted>("never set");
  auto set = MakeUnconstructedAsyncValueRef<Counted>();
  const Future<std::vector<Counted>> row =
      JoinFutures(std::vector<Future<Counted>>{Future<Counted>(value), Future<Counted>(set), Future<Counted>(value)});
  const auto pair = JoinFutures(Future<Counted>(set), Future<Counted>(value));
  const Future<std::vector<Counted>> good =
      JoinFutures(std::vector<Future<Counted>>{Future<Counted>(set), Future<Counted>(set)});
  EXPECT_EQ(value.NumRef(), 1U) << "joins keep nobody alive";
  value.reset();
  set.emplace(1);
  set.reset();
  EXPECT_NE(row.Await().status().message().find("'never set'"), std::string::npos) << row.Await().status();
  EXPECT_NE(pair.Await().status().message().find("'never set'"), std::string::npos) << pair.Await().status();
  ASSERT_TRUE(good.AwaitPointer().ok());
  EXPECT_EQ((**good.AwaitPointer())[1].value, 1);
}

TEST(FutureInteropTest, AFutureOfAValueSharesAndKeepsItsPayload) {
  const NoLeak no_leak;
  auto value = MakeUnconstructedAsyncValueRef<Counted>();
  const Future<Counted> future(value);
  const Counted* published = nullptr;
  value.AndThen([&published](StatusOr<Counted*> result) { published = *result; });
  value.emplace(42);
  value.reset();
  ASSERT_TRUE(future.IsReady());
  EXPECT_EQ(*future.AwaitPointer(), published) << "shown, not copied";
  EXPECT_EQ((*future.AwaitPointer())->value, 42);
  const Future<int> failed{AsyncValueRef<int>(AbortedError("x"))};
  EXPECT_EQ(failed.Await().status(), AbortedError("x"));
}

TEST(FutureInteropTest, ValuesThatAreSetOnOtherThreadsCompleteItOnce) {
  constexpr std::size_t kRounds = 300;
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::vector<AsyncValueRef<int>> values;
    for (int i = 0; i < 6; ++i) values.push_back(MakeUnconstructedAsyncValueRef<int>());
    std::atomic<int> told{0};
    Together(3, [&](int index) {
      if (index == 0) {
        std::vector<Event> events;
        for (const auto& value : values) events.push_back(value.AsEvent());
        MakeFutureWhenReady(events).OnReady([&told](Status status) { told.fetch_add(IsAborted(status) ? 1 : 100); });
      } else {
        for (std::size_t i = static_cast<std::size_t>(index - 1); i < values.size(); i += 2) {
          i == 3 ? values[i].SetError(AbortedError("x")) : values[i].emplace(1);
        }
      }
    });
    ASSERT_EQ(told.load(), 1);
  }
}

TEST(FutureInteropTest, LastReferencesRaceWithTheJoinAndItEnds) {
  const NoLeak no_leak;
  for (int round = 0; round < 300; ++round) {
    std::vector<AsyncValueRef<Counted>> values;
    for (int i = 0; i < 4; ++i) values.push_back(MakeUnconstructedAsyncValueRef<Counted>());
    std::vector<Future<Counted>> members;
    for (const auto& value : values) members.emplace_back(value);
    std::atomic<int> told{0};
    Together(3, [&](int index) {
      if (index == 0) {
        JoinFutures(std::move(members)).OnReady([&](StatusOr<const std::vector<Counted>*> joined) {
          told.fetch_add(round % 2 == 0 ? joined.ok() : IsInternal(joined.status()));
        });
      } else {
        for (std::size_t i = static_cast<std::size_t>(index - 1); i < values.size(); i += 2) {
          if (round % 2 == 0 || i != 2) values[i].emplace(1);
          values[i].reset();
        }
      }
    });
    ASSERT_EQ(told.load(), 1);
  }
}

}  // namespace
}  // namespace purlin
