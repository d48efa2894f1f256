// The last event of each stream.
#include "purlin/stream_event_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/event.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

TEST(StreamEventMapTest, TheLastEventOfAStreamIsWhatWasRecordedLast) {
  StreamEventMap map;
  EXPECT_EQ(map.Last(1), Event::Ready());
  EXPECT_TRUE(map.All().IsReady());
  EventPromise first("first");
  EventPromise second("second");
  EventPromise other("other");
  EXPECT_EQ(map.Exchange(1, first.event()), Event::Ready());
  EXPECT_EQ(map.Exchange(1, second.event()), first.event());
  map.Record(2, other.event());
  EXPECT_EQ(map.Last(1), second.event());
  EXPECT_EQ(map.Last(2), other.event());
  EXPECT_EQ(map.size(), 2U);
  const Event all = map.All();
  other.SetError(AbortedError("x"));
  EXPECT_FALSE(all.IsReady()) << "the second is pending";
  second.SetReady();
  EXPECT_EQ(all.error(), AbortedError("x"));
  map.Forget(2);
  map.Forget(3);
  EXPECT_EQ(map.Last(2), Event::Ready());
  map.Clear();
  EXPECT_EQ(map.size(), 0U);
}

TEST(StreamEventMapTest, R3AWaiterOfAnEventThatGoesMayUseTheMap) {
  StreamEventMap map;
  int calls = 0;
  const auto give_up = [&](auto end) {
    auto value = MakeUnconstructedAsyncValueRef<int>("given up");
    value.AndThen([&](const Status& status) { calls += IsInternal(status) && map.Last(2).IsReady() ? 1 : 100; });
    map.Record(1, value.AsEvent());
    value = nullptr;
    end();  // The map's was the last reference: its waiter runs here.
  };
  give_up([&] { map.Record(1, Event::Ready()); });
  give_up([&] { map.Forget(1); });
  give_up([&] { map.Clear(); });
  EXPECT_EQ(calls, 3);
}

TEST(StreamEventMapTest, ThreadsThatRecordOnOneStreamAreChained) {
  constexpr int kEach = 1'000;
  StreamEventMap map;
  std::vector<EventPromise> promises(4 * kEach);
  std::atomic<int> first{0};
  Together(4, [&](int index) {
    for (int i = 0; i < kEach; ++i) {
      EventPromise& promise = promises[static_cast<std::size_t>(index * kEach + i)];
      const Event before = map.Exchange(7, promise.event());
      if (before == Event::Ready()) first.fetch_add(1);
      std::move(promise).Forward(before);  // Work on a stream is over after what came before it.
    }
  });
  EXPECT_EQ(first.load(), 1) << "each has another one before it, but for the first of all";
  EXPECT_TRUE(map.Last(7).Wait().ok());
}

}  // namespace
}  // namespace purlin
