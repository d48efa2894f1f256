// The life of one value: states, which of two setters wins, what is destroyed when, storage, payloads that errors keep.
#include "purlin/async_value.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/async_value_storage.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

// States --------------------------------------------------------------------------------------------------------------

TEST(AsyncValueTest, ConstructedToError) {
  NoLeak no_leak;
  auto value = MakeConstructedAsyncValueRef<Counted>(123);
  bool called = false;
  EXPECT_EQ(value.state(), AsyncValueState::kConstructed);
  EXPECT_TRUE(value.IsConstructed());
  EXPECT_FALSE(value.IsConcrete());
  EXPECT_EQ(value->value, 123) << "whoever completes the value works on the payload";
  value.AndThen([&called] { called = true; });
  EXPECT_FALSE(called);
  const int alive = Counted::alive;
  EXPECT_TRUE(value.SetError(InternalError("test error")));
  EXPECT_TRUE(called);
  EXPECT_TRUE(value.IsAvailable());
  EXPECT_FALSE(value.IsConcrete());
  EXPECT_TRUE(value.IsError());
  EXPECT_EQ(value.GetError(), InternalError("test error"));
  EXPECT_EQ(Counted::alive, alive - 1) << "the error destroys the payload";
  EXPECT_EQ(value.GetIfConstructed(), nullptr);
}

TEST(AsyncValueTest, ConstructedToConcrete) {
  auto value = MakeConstructedAsyncValueRef<int>(123);
  bool called = false;
  value.AndThen([&called] { called = true; });
  EXPECT_TRUE(value.IsConstructed());
  EXPECT_EQ(value.GetIfConcrete(), nullptr) << "not published";
  EXPECT_TRUE(value.SetStateConcrete());
  EXPECT_TRUE(called);
  EXPECT_TRUE(value.IsConcrete());
  EXPECT_FALSE(value.IsConstructed());
  EXPECT_FALSE(value.IsError());
  ASSERT_NE(value.GetIfConcrete(), nullptr);
  EXPECT_EQ(*value.GetIfConcrete(), 123);
}

TEST(AsyncValueTest, UnconstructedEmplace) {
  auto value = MakeUnconstructedAsyncValueRef<int>();
  EXPECT_EQ(value.state(), AsyncValueState::kUnconstructed);
  EXPECT_FALSE(value.IsConstructed());
  EXPECT_TRUE(value.IsUnavailable());
  value.AndThen([] { SUCCEED(); });
  EXPECT_TRUE(value.emplace(123));
  EXPECT_TRUE(value.IsConcrete());
  EXPECT_EQ(value.get(), 123);
}

TEST(AsyncValueTest, AnUnconstructedValueCannotBePublished) {
  auto value = MakeUnconstructedAsyncValueRef<int>();
  EXPECT_FALSE(value.SetStateConcrete());
  EXPECT_TRUE(value.IsUnavailable());
  EXPECT_TRUE(value.emplace(1));
}

TEST(AsyncValueTest, AddAndDropRef) {
  NoLeak no_leak;
  AsyncValueRef<Counted> second;
  {
    auto first = MakeConstructedAsyncValueRef<Counted>(123);
    EXPECT_TRUE(first.IsUnique());
    EXPECT_EQ(first.NumRef(), 1U);
    second = first;
    EXPECT_FALSE(first.IsUnique());
    EXPECT_EQ(first.NumRef(), 2U);
    const Event event = first.AsEvent();
    EXPECT_EQ(first.NumRef(), 3U) << "an event is one more reference to the same cell";
  }
  EXPECT_TRUE(second.IsUnique());
  EXPECT_EQ(second->value, 123);
}

TEST(AsyncValueTest, MoveOnlyCallback) {
  auto value = MakeUnconstructedAsyncValueRef<int>();
  struct OnceOnly {
    std::unique_ptr<int> owned = std::make_unique<int>(42);
    int* seen;
    void operator()() && { *seen = *std::exchange(owned, nullptr); }
  };
  int seen = 0;
  OnceOnly waiter;
  waiter.seen = &seen;
  value.AndThen(std::move(waiter));
  value.emplace(1);
  EXPECT_EQ(seen, 42);
  OnceOnly again;
  again.seen = &seen;
  seen = 0;
  value.AndThen(std::move(again));
  EXPECT_EQ(seen, 42);
}

// The first wins ------------------------------------------------------------------------------------------------------

TEST(AsyncValueTest, TheFirstCompletionWinsAndLaterOnesChangeNothing) {
  NoLeak no_leak;
  auto value = MakeUnconstructedAsyncValueRef<Counted>();
  EXPECT_TRUE(value.emplace(1));
  const int made = Counted::made;
  EXPECT_FALSE(value.emplace(2));
  EXPECT_EQ(Counted::made, made) << "the second constructor does not run";
  EXPECT_FALSE(value.SetError(InternalError("late")));
  EXPECT_FALSE(value.SetStateConcrete());
  EXPECT_FALSE(value.emplace(StatusOr<Counted>(AbortedError("late"))));
  EXPECT_EQ(value->value, 1);
  EXPECT_FALSE(value.IsError());

  auto failed = MakeUnconstructedAsyncValueRef<Counted>();
  EXPECT_TRUE(failed.SetError(AbortedError("first")));
  EXPECT_FALSE(failed.emplace(2));
  EXPECT_FALSE(failed.SetError(InternalError("late")));
  EXPECT_EQ(failed.GetError(), AbortedError("first"));
}

TEST(AsyncValueTest, EmplaceReplacesAPayloadThatWasNotPublished) {
  NoLeak no_leak;
  auto value = MakeConstructedAsyncValueRef<Counted>(1);
  const int alive = Counted::alive;
  EXPECT_TRUE(value.emplace(2));
  EXPECT_EQ(Counted::alive, alive);
  EXPECT_EQ(value->value, 2);
}

TEST(AsyncValueTest, EmplaceTakesAStatusOr) {
  auto value = MakeUnconstructedAsyncValueRef<int>();
  EXPECT_TRUE(value.emplace(StatusOr<int>(5)));
  EXPECT_EQ(*value, 5);
  auto failed = MakeUnconstructedAsyncValueRef<int>();
  const StatusOr<int> error = NotFoundError("nothing");
  EXPECT_TRUE(failed.emplace(error));
  EXPECT_EQ(failed.GetError(), NotFoundError("nothing"));
}

TEST(AsyncValueTest, AnOkErrorIsABugOfTheCallerAndBecomesInternal) {
  auto value = MakeUnconstructedAsyncValueRef<int>();
  EXPECT_TRUE(value.SetError(OkStatus()));
  EXPECT_TRUE(IsInternal(value.GetError()));
  EXPECT_TRUE(IsInternal(AsyncValueRef<int>(OkStatus()).GetError()));
  EXPECT_TRUE(IsInternal(AsyncValueRef<int>(MakeErrorAsyncValueRef(OkStatus())).GetError()));
}

// Payloads ------------------------------------------------------------------------------------------------------------

struct Kept : KeepOnError {
  explicit Kept(int v) : counted(v) {}
  Counted counted;
};

TEST(AsyncValueTest, KeepPayloadOnError) {
  NoLeak no_leak;
  {
    auto value = MakeConstructedAsyncValueRef<Kept>(42);
    EXPECT_EQ(value->counted.value, 42);
    EXPECT_TRUE(value.SetError(InternalError("oh no")));
    EXPECT_TRUE(value.IsError());
    EXPECT_EQ(value.GetError(), InternalError("oh no"));
    ASSERT_NE(value.GetIfConstructed(), nullptr);
    EXPECT_EQ(value->counted.value, 42);
    EXPECT_EQ(value.GetIfConcrete(), nullptr);
  }
  {
    auto value = MakeAvailableAsyncValueRef<Kept>(42);
    EXPECT_FALSE(value.SetError(InternalError("too late")));
    EXPECT_EQ(value->counted.value, 42);
  }
  auto unconstructed = MakeUnconstructedAsyncValueRef<Kept>();
  EXPECT_TRUE(unconstructed.SetError(InternalError("oh no")));
  EXPECT_EQ(unconstructed.GetIfConstructed(), nullptr);
}

TEST(AsyncValueTest, AForwardedErrorShowsTheKeptPayload) {
  NoLeak no_leak;
  auto source = MakeConstructedAsyncValueRef<Kept>(42);
  auto shown = MakeIndirectAsyncValueRef<Kept>();
  EXPECT_TRUE(shown.ForwardTo(source));
  source.SetError(InternalError("oh no"));
  source.reset();
  EXPECT_EQ(shown.GetError(), InternalError("oh no"));
  ASSERT_NE(shown.GetIfConstructed(), nullptr);
  EXPECT_EQ(shown->counted.value, 42);
}

template <std::size_t kAlign>
void ExpectAligned() {
  struct alignas(kAlign) Wide {
    explicit Wide(int v) : value(v) {}
    int value;
    Counted counted;
  };
  NoLeak no_leak;
  std::vector<AsyncValueRef<Wide>> values;
  for (int i = 0; i < 10; ++i) {
    values.push_back(MakeAvailableAsyncValueRef<Wide>(i));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&values.back().get()) % kAlign, 0U);
  }
  for (int i = 0; i < 10; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)]->value, i);
  ScopedAsyncValue<Wide> scoped(typename ScopedAsyncValue<Wide>::Available{}, 3);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&scoped.AsPtr().get()) % kAlign, 0U);
}

TEST(AsyncValueTest, PayloadsAreAligned) {
  ExpectAligned<8>();
  ExpectAligned<16>();
  ExpectAligned<32>();
  ExpectAligned<64>();
  ExpectAligned<128>();
  ExpectAligned<4096>();
}

TEST(AsyncValueTest, LargePayloadsAreWhole) {
  struct Large {
    std::array<int, 10'000> numbers{};
    Counted counted;
  };
  NoLeak no_leak;
  auto value = MakeConstructedAsyncValueRef<Large>();
  for (std::size_t i = 0; i < value->numbers.size(); ++i) value->numbers[i] = static_cast<int>(i);
  value.SetStateConcrete();
  EXPECT_EQ(value->numbers[9'999], 9'999);
}

TEST(AsyncValueTest, MoveOnlyAndImmovablePayloads) {
  auto owned = MakeAvailableAsyncValueRef<std::unique_ptr<int>>(std::make_unique<int>(7));
  EXPECT_EQ(**owned, 7);
  auto later = MakeUnconstructedAsyncValueRef<std::unique_ptr<int>>();
  EXPECT_TRUE(later.emplace(StatusOr<std::unique_ptr<int>>(std::make_unique<int>(8))));
  EXPECT_EQ(**later, 8);
  auto atomic = MakeUnconstructedAsyncValueRef<std::atomic<int>>();
  EXPECT_TRUE(atomic.emplace(9));
  EXPECT_EQ(atomic->load(), 9);
}

TEST(AsyncValueTest, AggregatesAndSeveralArguments) {
  struct Point {
    int x;
    int y;
  };
  EXPECT_EQ((MakeAvailableAsyncValueRef<Point>(1, 2)->y), 2);
  EXPECT_EQ((MakeConstructedAsyncValueRef<Point>(1, 2)->x), 1);
  EXPECT_EQ(*MakeAvailableAsyncValueRef<std::string>(std::size_t{3}, 'x'), "xxx");
  EXPECT_EQ(*MakeAvailableAsyncValueRef<std::string>("abc"), "abc");
  EXPECT_EQ(*MakeAvailableAsyncValueRef<int>(), 0);
}

// Names ---------------------------------------------------------------------------------------------------------------

TEST(AsyncValueTest, ValuesKnowTheirLabelAndPlace) {
  const SourceLocation here = SourceLocation::Current();
  auto unconstructed = MakeUnconstructedAsyncValueRef<int>("weights");
  auto constructed = MakeConstructedAsyncValueRef<int>(Named("bias"), 1);
  auto indirect = MakeIndirectAsyncValueRef<int>("shown");
  auto mapped = unconstructed.Map([](int i) { return i; }, "mapped");
  auto plain = MakeConstructedAsyncValueRef<int>(1);
  EXPECT_EQ(unconstructed.AsEvent().label(), "weights");
  EXPECT_EQ(constructed.AsEvent().label(), "bias");
  EXPECT_EQ(indirect.AsEvent().label(), "shown");
  EXPECT_EQ(mapped.AsEvent().label(), "mapped");
  std::uint32_t line = here.line();
  for (const Event& event :
       {unconstructed.AsEvent(), constructed.AsEvent(), indirect.AsEvent(), mapped.AsEvent(), plain.AsEvent()}) {
    EXPECT_STREQ(event.location().file(), here.file());
    EXPECT_EQ(event.location().line(), ++line);
  }
}

// A value is an event -------------------------------------------------------------------------------------------------

TEST(AsyncValueTest, IsAnEvent) {
  NoLeak no_leak;
  auto value = MakeUnconstructedAsyncValueRef<Counted>();
  const Event event = value.AsEvent();
  EXPECT_FALSE(event.IsReady());
  Status seen = UnknownError("not called");
  event.OnReady([&seen](const Status& status) { seen = status; });
  EXPECT_TRUE(event.HasWaiters());
  value.emplace(3);
  EXPECT_TRUE(seen.ok());
  value.reset();
  EXPECT_EQ(event.state(), EventState::kReady);

  auto failed = MakeUnconstructedAsyncValueRef<Counted>();
  const Event all = WhenAll({event, failed.AsEvent()});
  failed.SetError(AbortedError("x"));
  EXPECT_EQ(all.error(), AbortedError("x"));
}

TEST(AsyncValueTest, WaitingEndsWithTheValueOrInTime) {
  auto value = MakeUnconstructedAsyncValueRef<int>("slow");
  const Status late = value.WaitFor(std::chrono::milliseconds(1));
  EXPECT_TRUE(IsDeadlineExceeded(late));
  EXPECT_NE(late.message().find("'slow'"), std::string_view::npos) << late;
  EXPECT_TRUE(value.IsUnavailable());
  std::thread setter([value] { value.emplace(42); });
  EXPECT_TRUE(BlockUntilReady(value).ok());
  EXPECT_EQ(*value, 42);
  setter.join();
  EXPECT_TRUE(value.Wait().ok());
  EXPECT_TRUE(BlockUntilReady(value.AsPtr()).ok());

  auto failed = MakeUnconstructedAsyncValueRef<int>();
  std::thread failer([failed] { failed.SetError(AbortedError("x")); });
  EXPECT_EQ(BlockUntilReady(failed), AbortedError("x"));
  failer.join();
}

// Every waiter is notified --------------------------------------------------------------------------------------------

TEST(AsyncValueTest, TheLastReferenceOfAnUnsetValueTellsItsWaiters) {
  NoLeak no_leak;
  auto value = MakeUnconstructedAsyncValueRef<Counted>("never set");
  std::vector<Status> seen;
  value.AndThen([&seen](Status status) { seen.push_back(std::move(status)); });
  value.AndThen([&seen](StatusOr<Counted*> result) { seen.push_back(result.status()); });
  value.reset();
  ASSERT_EQ(seen.size(), 2U);
  for (const Status& status : seen) {
    EXPECT_TRUE(IsInternal(status)) << status;
    EXPECT_NE(status.message().find("'never set'"), std::string_view::npos) << status;
    EXPECT_NE(std::string(status.location().file()).find("async_value_test.cc"), std::string::npos);
  }
  auto constructed = MakeConstructedAsyncValueRef<Counted>(1);
  constructed.AndThen([&seen](Status status) { seen.push_back(std::move(status)); });
  constructed.reset();
  EXPECT_EQ(seen.size(), 3U);
}

TEST(AsyncValueTest, AnUnsetValueWithoutWaitersJustGoes) {
  NoLeak no_leak;
  {
    auto unconstructed = MakeUnconstructedAsyncValueRef<Counted>();
  }
  {
    auto constructed = MakeConstructedAsyncValueRef<Counted>(1);
  }
  {
    auto indirect = MakeIndirectAsyncValueRef<Counted>();
  }
}

TEST(AsyncValueTest, AWaiterMayKeepTheValueThatWasAbandoned) {
  auto value = MakeUnconstructedAsyncValueRef<int>("revived");
  AsyncValueRef<int> kept;
  value.AndThen([&kept, borrowed = value.AsPtr()] { kept = borrowed.CopyRef(); });
  value.reset();
  ASSERT_TRUE(kept);
  EXPECT_TRUE(IsInternal(kept.GetError()));
}

// Waiters that turn on the value --------------------------------------------------------------------------------------

TEST(AsyncValueTest, WaitersRunInOrderAndMayAttachAgain) {
  auto value = MakeUnconstructedAsyncValueRef<int>();
  std::string order;
  value.AndThen([&] {
    order += 'a';
    value.AndThen([&order] { order += 'b'; });
  });
  value.AndThen([&order] { order += 'c'; });
  value.AndThen([&order] { order += 'd'; });
  value.emplace(1);
  EXPECT_EQ(order, "abcd");
}

TEST(AsyncValueTest, SettingTheSameValueFromItsWaiterAnswersFalse) {
  auto value = MakeUnconstructedAsyncValueRef<int>();
  int calls = 0;
  value.AndThen([&] {
    ++calls;
    EXPECT_FALSE(value.emplace(2));
    EXPECT_FALSE(value.SetError(InternalError("x")));
  });
  EXPECT_TRUE(value.emplace(1));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(*value, 1);
}

TEST(AsyncValueTest, WaitersMayCompleteOtherValues) {
  auto first = MakeUnconstructedAsyncValueRef<int>();
  auto second = MakeUnconstructedAsyncValueRef<int>();
  first.AndThen([&](StatusOr<int*> value) { second.emplace(**value + 1); });
  first.emplace(1);
  EXPECT_EQ(*second, 2);
}

// Caller's storage ----------------------------------------------------------------------------------------------------

TEST(AsyncValueTest, StackAllocatedAsyncValue) {
  NoLeak no_leak;
  const int alive = Counted::alive;
  {
    AsyncValueStorage<Counted> storage;
    AsyncValueOwningRef<Counted> owner = MakeConstructedAsyncValueRef<Counted>(storage, 42);
    const AsyncValuePtr<Counted> value = owner.AsPtr();
    bool called = false;
    value.AndThen([&called] { called = true; });
    EXPECT_TRUE(value.IsConstructed());
    EXPECT_TRUE(value.SetStateConcrete());
    EXPECT_TRUE(called);
    EXPECT_EQ(value->value, 42);
    EXPECT_EQ(owner->value, 42);
    EXPECT_EQ(Counted::alive, alive + 1);
    {
      const AsyncValueRef<Counted> reference = owner.AsRef();
      const AsyncValueRef<Counted> copy = reference;
      const Event event = value.AsEvent();
    }
    EXPECT_EQ(Counted::alive, alive + 1) << "references do not count";
    AsyncValueOwningRef<Counted> moved = std::move(owner);
    EXPECT_FALSE(owner);  // NOLINT(bugprone-use-after-move): what is tested.
    EXPECT_EQ(moved->value, 42);
  }
  EXPECT_EQ(Counted::alive, alive) << "destroyed once";
}

TEST(AsyncValueTest, StorageMayBeUsedAgain) {
  NoLeak no_leak;
  AsyncValueStorage<Counted> storage;
  for (int i = 0; i < 3; ++i) {
    AsyncValueOwningRef<Counted> owner = MakeAvailableAsyncValueRef<Counted>(storage, i);
    EXPECT_EQ(owner->value, i);
  }
  AsyncValueOwningRef<Counted> failed = MakeUnconstructedAsyncValueRef<Counted>(storage);
  failed.AsPtr().SetError(AbortedError("x"));
  EXPECT_EQ(failed.AsPtr().GetError(), AbortedError("x"));
}

TEST(AsyncValueTest, AnOwnerThatGoesUnsetTellsItsWaiters) {
  Status seen;
  {
    ScopedAsyncValue<int> value("scoped");
    value.AsPtr().AndThen([&seen](Status status) { seen = std::move(status); });
  }
  EXPECT_TRUE(IsInternal(seen)) << seen;
  EXPECT_NE(seen.message().find("'scoped'"), std::string_view::npos) << seen;
}

// Threads -------------------------------------------------------------------------------------------------------------

TEST(AsyncValueRaceTest, OfRacingCompletionsOneWinsAndPayloadsAreCounted) {
  NoLeak no_leak;
  constexpr std::size_t kRounds = 2'000;
  std::vector<AsyncValueRef<Counted>> values;
  for (std::size_t i = 0; i < kRounds; ++i) {
    values.push_back(i % 2 == 0 ? MakeUnconstructedAsyncValueRef<Counted>() : MakeConstructedAsyncValueRef<Counted>(9));
  }
  std::vector<std::atomic<int>> wins(kRounds);
  std::vector<std::atomic<int>> waiters(kRounds);
  Together(4, [&](int index) {
    for (std::size_t i = 0; i < kRounds; ++i) {
      bool won = false;
      if (index == 0) won = values[i].emplace(1);
      if (index == 1) won = values[i].SetError(AbortedError("x"));
      if (index == 2) won = values[i].SetStateConcrete();
      if (won) wins[i].fetch_add(1);
      values[i].AndThen([&waiters, i](StatusOr<Counted*> result) {
        EXPECT_TRUE(result.ok() ? (*result)->value == 1 || (*result)->value == 9 : IsAborted(result.status()));
        waiters[i].fetch_add(1);
      });
    }
  });
  for (std::size_t i = 0; i < kRounds; ++i) {
    EXPECT_EQ(wins[i].load(), 1) << i;
    EXPECT_EQ(waiters[i].load(), 4) << i;
  }
}

TEST(AsyncValueRaceTest, ReadersSeeWhatWasForwardedAtAnyMoment) {
  NoLeak no_leak;
  constexpr std::size_t kRounds = 2'000;
  std::vector<AsyncValueRef<Counted>> sources;
  std::vector<AsyncValueRef<Counted>> shown;
  for (std::size_t i = 0; i < kRounds; ++i) {
    sources.push_back(MakeUnconstructedAsyncValueRef<Counted>());
    shown.push_back(MakeIndirectAsyncValueRef<Counted>());
  }
  std::vector<std::atomic<int>> forwarded(kRounds);
  Together(4, [&](int index) {
    for (std::size_t i = 0; i < kRounds; ++i) {
      if (index == 0) {
        i % 3 == 0 ? sources[i].SetError(AbortedError("x")) : sources[i].emplace(static_cast<int>(i));
      } else if (index < 3) {
        if (shown[i].ForwardTo(sources[i])) forwarded[i].fetch_add(1);
      } else {
        while (shown[i].IsUnavailable()) std::this_thread::yield();
        if (i % 3 == 0) {
          EXPECT_EQ(shown[i].GetError(), AbortedError("x"));
        } else {
          EXPECT_EQ(shown[i]->value, static_cast<int>(i));
          EXPECT_FALSE(shown[i].GetErrorIfPresent().has_value());
        }
      }
    }
  });
  for (std::size_t i = 0; i < kRounds; ++i) EXPECT_EQ(forwarded[i].load(), 1) << i;
}

TEST(AsyncValueRaceTest, ReferencesGoOnAnyThread) {
  NoLeak no_leak;
  for (int round = 0; round < 200; ++round) {
    auto value = MakeUnconstructedAsyncValueRef<Counted>();
    std::atomic<int> seen{0};
    for (int i = 0; i < 4; ++i) value.AndThen([&seen] { seen.fetch_add(1); });
    std::vector<AsyncValueRef<Counted>> references(4, value);
    value.reset();
    Together(4, [&](int index) {
      AsyncValueRef<Counted> mine = std::move(references[static_cast<std::size_t>(index)]);
      if (index == 0 && round % 2 == 0) mine.emplace(1);
    });
    EXPECT_EQ(seen.load(), 4) << "set, or abandoned by whoever was last";
  }
}

}  // namespace
}  // namespace purlin
