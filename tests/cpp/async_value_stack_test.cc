// Chains of a million values need no more stack than a short one, completed, failed or freed.
#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "purlin/async_value.h"
#include "tests/cpp/sanitizers.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

constexpr int kLinks = kMillion;

TEST(AsyncValueStackTest, AMillionMapsRun) {
  OnSmallStack([] {
    auto first = MakeUnconstructedAsyncValueRef<int>();
    AsyncValueRef<int> last = first;
    for (int i = 0; i < kLinks; ++i) last = last.Map([](int v) { return v + 1; });
    first.emplace(0);
    EXPECT_EQ(*last, kLinks);
  });
}

TEST(AsyncValueStackTest, AMillionMapsFailWhenTheirSourceIsDropped) {
  OnSmallStack([] {
    auto first = MakeUnconstructedAsyncValueRef<int>("first");
    AsyncValueRef<int> last = first;
    for (int i = 0; i < kLinks; ++i) last = last.Map([](int v) { return v + 1; });
    first.reset();
    EXPECT_TRUE(IsInternal(last.GetError()));
    EXPECT_NE(last.GetError().message().find("'first'"), std::string_view::npos);
  });
}

TEST(AsyncValueStackTest, AMillionMapsOnAnInlineExecutorRun) {
  OnSmallStack([] {
    CountingExecutor executor;
    auto first = MakeUnconstructedAsyncValueRef<int>();
    AsyncValueRef<int> last = first;
    for (int i = 0; i < kLinks; ++i) last = last.Map(executor, [](int v) { return v + 1; });
    first.emplace(0);
    EXPECT_EQ(*last, kLinks);
  });
}

TEST(AsyncValueStackTest, AMillionForwardsShowTheirEnd) {
  OnSmallStack([] {
    NoLeak no_leak;
    auto first = MakeUnconstructedAsyncValueRef<Counted>();
    AsyncValueRef<Counted> last = first;
    for (int i = 0; i < kLinks; ++i) {
      auto next = MakeIndirectAsyncValueRef<Counted>();
      next.ForwardTo(last);
      last = next;
    }
    first.emplace(42);
    EXPECT_EQ(&last.get(), &first.get());
    first.reset();
    EXPECT_EQ(last->value, 42);
  });
}

AsyncValueRef<int> Countdown(int left, AsyncValueRef<int>* gate) {
  if (left == 0) return MakeAvailableAsyncValueRef<int>(42);
  auto step = MakeUnconstructedAsyncValueRef<int>();
  *gate = step;
  return step.FlatMap([left, gate](int) { return Countdown(left - 1, gate); });
}

TEST(AsyncValueStackTest, ALoopOfAMillionFlatMapsEnds) {
  OnSmallStack([] {
    AsyncValueRef<int> gate;
    AsyncValueRef<int> result = Countdown(kLinks, &gate);
    while (result.IsUnavailable()) {
      const AsyncValueRef<int> open = std::move(gate);
      ASSERT_TRUE(open.emplace(0));
    }
    EXPECT_EQ(*result, 42);
  });
}

struct Node {
  AsyncValueRef<Node> next;
  Counted counted;
};

TEST(AsyncValueStackTest, AListOfAMillionPayloadsIsFreed) {
  OnSmallStack([] {
    NoLeak no_leak;
    AsyncValueRef<Node> head;
    for (int i = 0; i < kLinks; ++i) head = MakeAvailableAsyncValueRef<Node>(std::move(head), Counted(i));
    head.reset();
  });
}

TEST(AsyncValueStackTest, AMillionValuesOwnedByOneAnothersWaitersAreFreed) {
  OnSmallStack([] {
    NoLeak no_leak;
    int told = 0;
    AsyncValueRef<Counted> head = MakeUnconstructedAsyncValueRef<Counted>();
    for (int i = 0; i < kLinks; ++i) {
      auto next = MakeConstructedAsyncValueRef<Counted>(i);
      next.AndThen([owned = std::move(head), &told](Status status) { told += IsInternal(status) ? 1 : 0; });
      head = std::move(next);
    }
    head.reset();
    EXPECT_EQ(told, kLinks);
  });
}

}  // namespace
}  // namespace purlin
