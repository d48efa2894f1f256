// Chains of completions need no more stack than a short one. Run on threads whose stack would not last otherwise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/event.h"
#include "tests/cpp/sanitizers.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

constexpr std::size_t kLinks = kMillion;

TEST(EventStackTest, AMillionLinksComplete) {
  OnSmallStack([] {
    std::vector<EventPromise> promises;
    promises.reserve(kLinks);
    for (std::size_t i = 0; i < kLinks; ++i) promises.emplace_back("link");
    std::size_t completed = 0;
    for (std::size_t i = 0; i + 1 < kLinks; ++i) {
      promises[i].event().OnReady([&promises, &completed, i] {
        ++completed;
        promises[i + 1].SetReady();
      });
    }
    promises[0].SetReady();
    EXPECT_TRUE(promises.back().event().IsReady()) << "all of the chain, before SetReady returned";
    EXPECT_EQ(completed, kLinks - 1);
  });
}

TEST(EventStackTest, AMillionDroppedPromisesFailOneAnother) {
  OnSmallStack([] {
    EventPromise first("first");
    Event event = first.event();
    for (std::size_t i = 0; i < kLinks; ++i) {
      EventPromise next("next");
      Event next_event = next.event();
      event.OnReady([owed = std::move(next)](const Status& status) mutable { owed.SetError(status); });
      event = next_event;
    }
    first.SetError(AbortedError("root cause"));
    EXPECT_EQ(event.error(), AbortedError("root cause"));
  });
}

TEST(EventStackTest, AMillionForwardedPromisesFollowTheFirst) {
  OnSmallStack([] {
    for (const bool dropped : {false, true}) {
      EventPromise first("first");
      Event last = first.event();
      for (std::size_t i = 0; i < kLinks; ++i) {
        EventPromise next("next");
        Event next_event = next.event();
        std::move(next).Forward(last);
        last = std::move(next_event);
      }
      EXPECT_FALSE(last.IsReady());
      if (!dropped) first.SetError(AbortedError("root cause"));
      first = EventPromise("another");
      EXPECT_EQ(last.error().message().find("'first'") == std::string_view::npos, !dropped) << last.error();
      EXPECT_EQ(IsAborted(last.error()), !dropped) << last.error();
    }
  });
}

/// Attaches itself to a terminal event again and again, from inside itself.
struct Recursion {
  const Event* event;
  std::size_t* left;
  void operator()() const {
    if (*left == 0) return;
    --*left;
    event->OnReady(Recursion(*this));
  }
};

TEST(EventStackTest, AMillionWaitersInsideWaitersOfReadyEventsRun) {
  OnSmallStack([] {
    for (const Event& event : {Event::Ready(), Event::Error(AbortedError("x"))}) {
      std::size_t left = kLinks;
      event.OnReady(Recursion{&event, &left});
      EXPECT_EQ(left, 0U);
    }
  });
}

TEST(EventStackTest, BothKindsOfNestingTogetherStayBounded) {
  OnSmallStack([] {
    constexpr std::size_t kSteps = 100'000;
    struct Step {
      std::size_t* left;
      void operator()() const {
        if (*left == 0) return;
        --*left;
        EventPromise promise("step");
        const Event event = promise.event();
        event.OnReady([step = *this] { Event::Ready().OnReady(Step(step)); });
        promise.SetReady();
      }
    };
    std::size_t left = kSteps;
    Event::Ready().OnReady(Step{&left});
    EXPECT_EQ(left, 0U);
  });
}

TEST(EventStackTest, NestingIsAtMost32Deep) {
  constexpr std::size_t kChain = 1'000;
  std::vector<EventPromise> promises;
  for (std::size_t i = 0; i < kChain; ++i) promises.emplace_back("link");
  int depth = 0;
  int deepest = 0;
  for (std::size_t i = 0; i + 1 < kChain; ++i) {
    promises[i].event().OnReady([&, i] {
      deepest = std::max(deepest, ++depth);
      promises[i + 1].SetReady();
      --depth;
    });
  }
  promises[0].SetReady();
  EXPECT_TRUE(promises.back().event().IsReady());
  EXPECT_GT(deepest, 1) << "short chains run nested, without a queue";
  EXPECT_LE(deepest, 32);
}

TEST(EventStackTest, QueuedWaitersKeepTheirOrder) {
  std::vector<int> order;
  std::vector<EventPromise> promises;
  for (int i = 0; i < 100; ++i) promises.emplace_back("link");
  for (std::size_t i = 0; i + 1 < promises.size(); ++i) {
    promises[i].event().OnReady([&, i] { promises[i + 1].SetReady(); });
  }
  for (int i = 0; i < 10; ++i) promises.back().event().OnReady([&order, i] { order.push_back(i); });
  promises[0].SetReady();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

}  // namespace
}  // namespace purlin
