#include "purlin/count_down.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/cpp/testing.h"

namespace purlin {
namespace {

TEST(CountDownTest, CountDownZero) {
  CountDownAsyncValueRef<int> count_down(MakeConstructedAsyncValueRef<int>(42), 0);
  EXPECT_TRUE(count_down.AsRef().IsConcrete());
  EXPECT_EQ(*count_down.AsPtr(), 42);
  EXPECT_FALSE(count_down.CountDown()) << "nothing is left to count";
}

TEST(CountDownTest, CountDownSuccess) {
  CountDownAsyncValueRef<int> count_down(MakeConstructedAsyncValueRef<int>(42), 2);
  AsyncValueRef<int> value = count_down.AsRef();
  bool called = false;
  value.AndThen([&called] { called = true; });
  EXPECT_EQ(count_down.left(), 2U);
  EXPECT_FALSE(count_down.CountDown());
  EXPECT_EQ(count_down.left(), 1U);
  EXPECT_FALSE(called);
  EXPECT_TRUE(count_down.CountDown()) << "the completer is told";
  EXPECT_TRUE(called);
  EXPECT_EQ(*value, 42);
}

TEST(CountDownTest, CountDownError) {
  CountDownAsyncValueRef<int> count_down(2);
  AsyncValueRef<int> value = count_down.AsRef();
  EXPECT_FALSE(count_down.CountDown(InternalError("error")));
  EXPECT_FALSE(value.IsAvailable()) << "without fail_fast all are counted";
  EXPECT_TRUE(count_down.CountDown());
  EXPECT_EQ(value.GetError(), InternalError("error"));
}

TEST(CountDownTest, TheCountComesBeforeWhatTheValueIsMadeOf) {
  CountDownAsyncValueRef<int> one(1, 42);
  EXPECT_TRUE(one.AsPtr().IsConstructed());
  EXPECT_EQ(one.count(), 1U);
  EXPECT_TRUE(one.CountDown());
  EXPECT_EQ(*one.AsRef(), 42);
  const CountDownAsyncValueRef<int> none(0, 43);
  ASSERT_TRUE(none) << "0 is a count, and no null value";
  EXPECT_EQ(*none.AsRef(), 43);
  const CountDownAsyncValueRef<std::string> text(0, 3U, 'x');
  EXPECT_EQ(*text.AsRef(), "xxx");
  static_assert(!std::is_constructible_v<CountDownAsyncValueRef<int>, std::nullptr_t, int>);
}

TEST(CountDownTest, KnowsThatAnErrorWasCountedBeforeTheEnd) {
  CountDownAsyncValueRef<Chain> all(3);
  EXPECT_FALSE(all.is_error());
  all.CountDown();
  EXPECT_FALSE(all.is_error());
  all.CountDown(AbortedError("x"));
  EXPECT_TRUE(all.is_error());
  EXPECT_TRUE(all.AsPtr().IsUnavailable());
  EXPECT_EQ(all.count(), 1U);
  all.CountDown();
  EXPECT_TRUE(all.is_error());
  EXPECT_FALSE(CountDownAsyncValueRef<Chain>().is_error());
}

TEST(CountDownTest, CopiesShareTheCounter) {
  CountDownAsyncValueRef<Chain> first(3);
  CountDownAsyncValueRef<Chain> second = first;
  EXPECT_FALSE(first.CountDown());
  EXPECT_TRUE(second.CountDown(2));
  EXPECT_TRUE(first.AsRef().IsConcrete());
  EXPECT_EQ(first.AsRef(), second.AsRef());
}

TEST(CountDownTest, CountingBelowZeroAnswersFalseAndChangesNothing) {
  CountDownAsyncValueRef<Chain> count_down(2);
  EXPECT_FALSE(count_down.CountDown(3));
  EXPECT_FALSE(count_down.CountDown(3, AbortedError("not counted")));
  EXPECT_FALSE(count_down.CountDown(0));
  EXPECT_EQ(count_down.left(), 2U);
  EXPECT_TRUE(count_down.CountDown(2));
  EXPECT_FALSE(count_down.CountDown());
  EXPECT_FALSE(count_down.CountDown(AbortedError("late")));
  EXPECT_TRUE(count_down.AsRef().IsConcrete());
}

Status ErrorUnder(ErrorPolicy policy) {
  CountDownOptions options;
  options.policy = policy;
  CountDownAsyncValueRef<Chain> count_down(5, options);
  count_down.CountDown(1, AbortedError("b"), 1);
  Status first_by_index = NotFoundError("a");
  first_by_index.SetPayload("type", "payload");
  count_down.CountDown(1, first_by_index, 0);
  count_down.CountDown();
  count_down.CountDown(1, DataLossError("c"), 2);
  count_down.CountDown(1, CancelledError("a again"), 0);
  return count_down.AsRef().GetError();
}

TEST(CountDownTest, ThePolicyChoosesTheError) {
  EXPECT_EQ(ErrorUnder(CountDownOptions().policy), AbortedError("b")) << "by default the first in time";
  EXPECT_EQ(ErrorUnder(ErrorPolicy::kFirstInTime), AbortedError("b"));
  EXPECT_EQ(ErrorUnder(ErrorPolicy::kFirstByIndex).message(), "a");
  EXPECT_TRUE(ErrorUnder(ErrorPolicy::kFirstByIndex).GetPayload("type").has_value()) << "nothing is flattened";
  EXPECT_EQ(ErrorUnder(ErrorPolicy::kLastInTime), CancelledError("a again"));
  const Status all = ErrorUnder(ErrorPolicy::kAll);
  EXPECT_EQ(all.message(), "4 of 5 failed: [0] NOT_FOUND: a; [0] CANCELLED: a again; [1] ABORTED: b; [2] DATA_LOSS: c");
  EXPECT_TRUE(IsNotFound(all));
  EXPECT_TRUE(all.GetPayload("type").has_value());
}

TEST(CountDownTest, AllCountsThingsAndListsThoseWithoutAnIndexLast) {
  CountDownOptions options;
  options.policy = ErrorPolicy::kAll;
  CountDownAsyncValueRef<Chain> count_down(7, options);
  count_down.CountDown(3, AbortedError("three of them"));
  count_down.CountDown(2);
  count_down.CountDown(1, DataLossError("named"), 4);
  EXPECT_TRUE(count_down.CountDown(CancelledError("later")));
  EXPECT_EQ(count_down.AsRef().GetError(),
            DataLossError("5 of 7 failed: [4] DATA_LOSS: named; ABORTED: three of them; CANCELLED: later"));
}

TEST(CountDownTest, AllOfOneErrorIsThatErrorWithItsPayloads) {
  CountDownOptions options;
  options.policy = ErrorPolicy::kAll;
  CountDownAsyncValueRef<Chain> count_down(1, options);
  Status error = AbortedError("x");
  error.SetPayload("type", "payload");
  EXPECT_TRUE(count_down.CountDown(error));
  EXPECT_EQ(count_down.AsRef().GetError(), error);
}

TEST(CountDownTest, FailFastCompletesWithTheFirstError) {
  CountDownOptions options;
  options.fail_fast = true;
  CountDownAsyncValueRef<int> count_down(4, options);
  EXPECT_FALSE(count_down.CountDown());
  EXPECT_TRUE(count_down.CountDown(AbortedError("first")));
  EXPECT_EQ(count_down.AsRef().GetError(), AbortedError("first"));
  EXPECT_FALSE(count_down.CountDown(DataLossError("second")));
  EXPECT_FALSE(count_down.CountDown());
  EXPECT_EQ(count_down.left(), 0U);
  EXPECT_EQ(count_down.AsRef().GetError(), AbortedError("first"));
}

TEST(CountDownTest, APayloadThatIsNotThereIsMadeAtTheEnd) {
  CountDownAsyncValueRef<int> made(MakeUnconstructedAsyncValueRef<int>(), 1);
  EXPECT_TRUE(made.CountDown());
  EXPECT_EQ(*made.AsRef(), 0);
  struct NotDefault {
    explicit NotDefault(int) {}
  };
  CountDownAsyncValueRef<NotDefault> failed(MakeUnconstructedAsyncValueRef<NotDefault>(), 1);
  EXPECT_TRUE(failed.CountDown());
  EXPECT_TRUE(IsFailedPrecondition(failed.AsRef().GetError()));
}

TEST(CountDownTest, AValueThatSomebodyCompletedIsLeftAlone) {
  auto value = MakeConstructedAsyncValueRef<int>(1);
  CountDownAsyncValueRef<int> count_down(value, 1);
  EXPECT_TRUE(value.SetError(CancelledError("cancelled")));
  EXPECT_FALSE(count_down.CountDown());
  EXPECT_EQ(value.GetError(), CancelledError("cancelled"));
}

TEST(CountDownTest, TheLastCopyThatGoesEarlyFailsTheValue) {
  NoLeak no_leak;
  AsyncValueRef<Counted> value;
  {
    CountDownAsyncValueRef<Counted> count_down(3);
    value = count_down.AsRef();
    CountDownAsyncValueRef<Counted> copy = count_down;
    copy.CountDown(AbortedError("counted"));
  }
  EXPECT_TRUE(IsInternal(value.GetError()));
  EXPECT_NE(value.GetError().message().find("2 left"), std::string_view::npos) << value.GetError();
}

TEST(CountDownTest, NullCountsNothing) {
  CountDownAsyncValueRef<int> null;
  EXPECT_FALSE(null);
  EXPECT_FALSE(null.CountDown());
  EXPECT_EQ(null.left(), 0U);
  EXPECT_FALSE(null.AsRef());
}

TEST(CountDownTest, AWaiterMayDropTheLastCopy) {
  auto count_down = std::make_optional<CountDownAsyncValueRef<int>>(std::size_t{1});
  bool called = false;
  count_down->AsPtr().AndThen([&] {
    called = true;
    count_down.reset();
  });
  EXPECT_TRUE(count_down->CountDown());
  EXPECT_TRUE(called);
  CountDownOptions options;
  options.fail_fast = true;
  auto failing = std::make_optional<CountDownAsyncValueRef<int>>(std::size_t{2}, options);
  failing->AsPtr().AndThen([&] { failing.reset(); });
  EXPECT_TRUE(failing->CountDown(AbortedError("x")));
  EXPECT_FALSE(failing.has_value());
}

TEST(CountDownRaceTest, OneOfManyThreadsCompletes) {
  NoLeak no_leak;
  constexpr std::size_t kRounds = 500;
  std::vector<CountDownAsyncValueRef<Counted>> count_downs;
  for (std::size_t i = 0; i < kRounds; ++i) {
    CountDownOptions options;
    options.fail_fast = i % 4 == 3;
    count_downs.emplace_back(std::size_t{8}, options);
  }
  std::vector<std::atomic<int>> completed(kRounds);
  std::vector<std::atomic<int>> waiters(kRounds);
  for (std::size_t i = 0; i < kRounds; ++i) {
    count_downs[i].AsPtr().AndThen([&waiters, i] { waiters[i].fetch_add(1); });
  }
  Together(4, [&](int index) {
    for (std::size_t i = 0; i < kRounds; ++i) {
      for (int n = 0; n < 2; ++n) {
        const bool fails = i % 2 == 1 && index < 2;
        if (count_downs[i].CountDown(fails ? AbortedError(std::to_string(index)) : OkStatus())) {
          completed[i].fetch_add(1);
        }
      }
    }
  });
  for (std::size_t i = 0; i < kRounds; ++i) {
    EXPECT_EQ(completed[i].load(), 1) << i;
    EXPECT_EQ(waiters[i].load(), 1) << i;
    EXPECT_EQ(IsAborted(count_downs[i].AsRef().GetError()), i % 2 == 1) << i;
  }
}

/// Returns when both of two threads are in the round, so that they count at the same time.
void Meet(std::atomic<std::size_t>& arrived, std::size_t round) {
  arrived.fetch_add(1);
  while (arrived.load() < 2 * (round + 1)) std::this_thread::yield();
}

TEST(CountDownRaceTest, FailFastLosesNoErrorToALastCountThatSucceeds) {
  constexpr std::size_t kRounds = 50'000;
  CountDownOptions options;
  options.fail_fast = true;
  std::vector<CountDownAsyncValueRef<Chain>> counters;
  for (std::size_t i = 0; i < kRounds; ++i) counters.emplace_back(2, options);
  std::atomic<std::size_t> completed{0};
  std::atomic<std::size_t> arrived{0};
  Together(2, [&](int index) {
    for (std::size_t i = 0; i < kRounds; ++i) {
      CountDownAsyncValueRef<Chain> counter = counters[i];
      const Status status = index == 0 ? OkStatus() : AbortedError("x");
      Meet(arrived, i);
      if (counter.CountDown(status)) completed.fetch_add(1);
    }
  });
  for (std::size_t i = 0; i < kRounds; ++i) ASSERT_TRUE(IsAborted(counters[i].AsRef().GetError())) << i;
  EXPECT_EQ(completed.load(), kRounds);
}

// Two of two are counted, and two of three once: the thread that comes second finds one left, and counts nothing.
TEST(CountDownRaceTest, ThreadsCountWhatIsLeftAndNoMore) {
  constexpr std::size_t kRounds = 100'000;
  std::vector<CountDownAsyncValueRef<Chain>> counters;
  for (std::size_t i = 0; i < kRounds; ++i) counters.emplace_back(2 + i % 2);
  std::atomic<std::size_t> completed{0};
  std::atomic<std::size_t> arrived{0};
  Together(2, [&](int) {
    for (std::size_t i = 0; i < kRounds; ++i) {
      Meet(arrived, i);
      if (counters[i].CountDown(1 + i % 2)) completed.fetch_add(1);
    }
  });
  for (std::size_t i = 0; i < kRounds; ++i) ASSERT_EQ(counters[i].left(), i % 2) << i;
  EXPECT_EQ(completed.load(), kRounds / 2);
}

}  // namespace
}  // namespace purlin
