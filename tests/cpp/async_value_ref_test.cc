// References to values: making, waiting, mapping, forwarding, casting, and which reference keeps what alive.
#include "purlin/async_value.h"

#include <gtest/gtest.h>

#include <any>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/async_value_cast.h"
#include "purlin/async_value_storage.h"
#include "purlin/inline_executor.h"
#include "purlin/run_when_ready.h"
#include "tests/cpp/counting_allocations.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

// Making --------------------------------------------------------------------------------------------------------------

TEST(AsyncValueRefTest, MakeUnconstructedStatusOrOfAny) {
  auto value = MakeUnconstructedAsyncValueRef<StatusOr<std::any>>();
  EXPECT_TRUE(value.IsUnavailable());
  auto move_only = MakeUnconstructedAsyncValueRef<StatusOr<std::unique_ptr<int>>>();
  EXPECT_TRUE(move_only.IsUnavailable());
}

TEST(AsyncValueRefTest, MakeUnconstructedStatusOr) {
  auto value = MakeUnconstructedAsyncValueRef<StatusOr<int32_t>>();
  EXPECT_TRUE(value.IsUnavailable());
  EXPECT_TRUE(value.emplace(StatusOr<int32_t>(AbortedError("a payload"))));
  EXPECT_TRUE(value.IsConcrete()) << "a StatusOr payload is a value, whatever it holds";
  EXPECT_EQ(value->status(), AbortedError("a payload"));
}

TEST(AsyncValueRefTest, MakeConstructedStatusOr) {
  auto value = MakeConstructedAsyncValueRef<StatusOr<int32_t>>(42);
  EXPECT_TRUE(value.IsUnavailable());
  EXPECT_EQ(value->value(), 42);
}

TEST(AsyncValueRefTest, MakeAvailableStatusOr) {
  auto value = MakeAvailableAsyncValueRef<StatusOr<int32_t>>(42);
  EXPECT_TRUE(value.IsAvailable());
  EXPECT_EQ(value->value(), 42);
}

TEST(AsyncValueRefTest, ImplicitStatusConversion) {
  auto make = []() -> AsyncValueRef<int32_t> { return InternalError("oh no"); };
  const AsyncValueRef<int32_t> value = make();
  EXPECT_TRUE(value.IsAvailable());
  EXPECT_TRUE(value.IsError());
  EXPECT_EQ(value.GetError(), InternalError("oh no"));
  EXPECT_EQ(value.GetErrorIfPresent(), std::optional<Status>(InternalError("oh no")));
  EXPECT_EQ(value.GetIfConcrete(), nullptr);
  EXPECT_EQ(value.GetIfConstructed(), nullptr);
}

TEST(AsyncValueRefTest, ImplicitStatusConversionWithStatusOrPayload) {
  auto make = []() -> AsyncValueRef<StatusOr<int32_t>> { return InternalError("oh no"); };
  EXPECT_TRUE(make().IsError());
}

TEST(AsyncValueRefTest, ImplicitStatusConversionWithStatusPayload) {
  auto make = []() -> AsyncValueRef<Status> { return InternalError("oh no"); };
  EXPECT_TRUE(make().IsError());
  EXPECT_EQ(*MakeAvailableAsyncValueRef<Status>(AbortedError("a payload")), AbortedError("a payload"));
}

TEST(AsyncValueRefTest, OneErrorStandsForEveryType) {
  const ErrorAsyncValueRef error = MakeErrorAsyncValueRef(AbortedError("x"));
  const AsyncValueRef<int> number = error;
  const AsyncValueRef<std::string> text = error;
  EXPECT_EQ(number.GetError(), AbortedError("x"));
  EXPECT_EQ(text.GetError(), AbortedError("x"));
  EXPECT_EQ(number.AsEvent(), text.AsEvent());
  EXPECT_FALSE(number.emplace(1));
  EXPECT_FALSE(number.ForwardTo(MakeAvailableAsyncValueRef<int>(1)));
}

TEST(AsyncValueRefTest, MakeAsyncValueRef) {
  DeferredExecutor executor;
  AsyncValueRef<int32_t> inferred = MakeAsyncValueRef(executor, [] { return 1; });
  AsyncValueRef<float> converted = MakeAsyncValueRef<float>(executor, [] { return 2; });
  AsyncValueRef<StatusOr<int>> payload = MakeAsyncValueRef(executor, [] { return StatusOr<int>(AbortedError("p")); });
  AsyncValueRef<Chain> nothing = MakeAsyncValueRef(executor, [] {});
  AsyncValueRef<int32_t> tried = TryMakeAsyncValueRef(executor, []() -> StatusOr<int32_t> { return 3; });
  AsyncValueRef<float> tried_converted = TryMakeAsyncValueRef<float>(executor, []() -> StatusOr<int32_t> { return 4; });
  AsyncValueRef<int32_t> failed =
      TryMakeAsyncValueRef(executor, []() -> StatusOr<int32_t> { return InternalError("test"); });
  AsyncValueRef<Chain> status = TryMakeAsyncValueRef(executor, [] { return AbortedError("test"); });
  EXPECT_EQ(executor.tasks, 8);
  EXPECT_TRUE(inferred.IsUnavailable());
  executor.RunAll();
  EXPECT_EQ(*inferred, 1);
  EXPECT_EQ(*converted, 2.0f);
  EXPECT_EQ(payload->status(), AbortedError("p"));
  EXPECT_TRUE(nothing.IsConcrete());
  EXPECT_EQ(*tried, 3);
  EXPECT_EQ(*tried_converted, 4.0f);
  EXPECT_EQ(failed.GetError(), InternalError("test"));
  EXPECT_EQ(status.GetError(), AbortedError("test"));
}

// References ----------------------------------------------------------------------------------------------------------

TEST(AsyncValueRefTest, ValueCheck) {
  struct Wrapped {
    int32_t value;
  };
  auto value = MakeAvailableAsyncValueRef<Wrapped>(42);
  EXPECT_EQ(value.get().value, 42);
  EXPECT_EQ(value->value, 42);
  EXPECT_EQ((*value).value, 42);
  EXPECT_EQ(value.AsPtr()->value, 42);
  EXPECT_EQ(value.GetIfConcrete()->value, 42);
}

TEST(AsyncValueRefTest, ValueCheckThroughReleaseAndAdopt) {
  auto value = MakeAvailableAsyncValueRef<int32_t>(42);
  const AsyncValuePtr<int32_t> given = value.release();
  EXPECT_FALSE(value);
  EXPECT_EQ(given.NumRef(), 1U);
  const auto back = AsyncValueRef<int32_t>::Adopt(given.header());
  EXPECT_EQ(*back, 42);
  EXPECT_TRUE(back.IsUnique());
}

TEST(AsyncValueRefTest, CopyRef) {
  auto value = MakeAvailableAsyncValueRef<int32_t>(42);
  EXPECT_TRUE(value.IsUnique());
  auto copy = value.CopyRef();
  EXPECT_FALSE(value.IsUnique());
  EXPECT_EQ(value.get(), copy.get());
  EXPECT_EQ(&value.get(), &copy.get());
  EXPECT_EQ(value, copy);
  copy.reset();
  EXPECT_TRUE(value.IsUnique());
  EXPECT_NE(value, copy);
}

TEST(AsyncValueRefTest, AssigningAReferenceToItselfKeepsTheValue) {
  NoLeak no_leak;
  auto value = MakeAvailableAsyncValueRef<Counted>(42);
  auto& alias = value;
  value = alias;
  EXPECT_EQ(value->value, 42);
  EXPECT_TRUE(value.IsUnique());
  value = std::move(alias);
  ASSERT_TRUE(value);
  EXPECT_EQ(value->value, 42);
  EXPECT_TRUE(value.IsUnique());
}

TEST(AsyncValueRefTest, Nullptr) {
  AsyncValueRef<int> value(nullptr);
  EXPECT_FALSE(value);
  value = MakeAvailableAsyncValueRef<int>(1);
  EXPECT_TRUE(value);
  value = nullptr;
  EXPECT_FALSE(value);
}

TEST(AsyncValueRefTest, NullCountsAsAnError) {
  const AsyncValueRef<int> null;
  EXPECT_TRUE(null.IsAvailable());
  EXPECT_TRUE(null.IsError());
  EXPECT_EQ(null.state(), AsyncValueState::kError);
  EXPECT_TRUE(IsFailedPrecondition(null.GetError()));
  EXPECT_TRUE(IsFailedPrecondition(null.Wait()));
  EXPECT_TRUE(IsFailedPrecondition(null.AsEvent().error()));
  EXPECT_EQ(null.NumRef(), 0U);
  EXPECT_EQ(null.GetIfConcrete(), nullptr);
  EXPECT_EQ(null.GetIfConstructed(), nullptr);
  EXPECT_FALSE(null.emplace(1));
  EXPECT_FALSE(null.SetError(AbortedError("x")));
  EXPECT_FALSE(null.SetStateConcrete());
  EXPECT_FALSE(null.ForwardTo(MakeAvailableAsyncValueRef<int>(1)));
  EXPECT_FALSE(null.HasWaiter());
  EXPECT_FALSE(null.IsUnique());
  CountingExecutor executor;
  int calls = 0;
  null.AndThen([&calls] { ++calls; });
  null.AndThen([&calls](Status status) { calls += IsFailedPrecondition(status) ? 10 : 1'000; });
  null.AndThen(executor,
               [&calls](StatusOr<int*> value) { calls += IsFailedPrecondition(value.status()) ? 100 : 10'000; });
  EXPECT_EQ(calls, 111);
  EXPECT_TRUE(IsFailedPrecondition(null.Map([](int i) { return i; }).GetError()));
  EXPECT_TRUE(IsFailedPrecondition(null.Map(executor, [](int i) { return i; }).GetError()));
  EXPECT_TRUE(IsFailedPrecondition(null.FlatMap([](int) { return AsyncValueRef<int>(); }).GetError()));
}

// Completing and waiting ----------------------------------------------------------------------------------------------

TEST(AsyncValueRefTest, ConstructedToError) {
  auto value = MakeConstructedAsyncValueRef<int32_t>(42);
  EXPECT_FALSE(value.IsConcrete());
  EXPECT_FALSE(value.IsAvailable());
  value.SetError(CancelledError("cancelled"));
  EXPECT_TRUE(value.IsAvailable());
  EXPECT_TRUE(value.IsError());
  EXPECT_FALSE(value.IsConcrete());
}

TEST(AsyncValueRefTest, ConstructedToConcrete) {
  auto value = MakeConstructedAsyncValueRef<int32_t>(42);
  value.SetStateConcrete();
  EXPECT_TRUE(value.IsAvailable());
  EXPECT_TRUE(value.IsConcrete());
  EXPECT_EQ(value.get(), 42);
}

TEST(AsyncValueRefTest, UnconstructedEmplace) {
  auto value = MakeUnconstructedAsyncValueRef<int32_t>();
  value.emplace(42);
  EXPECT_TRUE(value.IsConcrete());
  EXPECT_EQ(42, value.get());
}

TEST(AsyncValueRefTest, AndThen) {
  auto value = MakeUnconstructedAsyncValueRef<int32_t>();
  EXPECT_FALSE(value.IsConcrete());
  EXPECT_FALSE(value.HasWaiter());
  bool executed = false;
  value.AndThen([&executed] { executed = true; });
  EXPECT_TRUE(value.HasWaiter());
  EXPECT_FALSE(executed);
  value.emplace(42);
  EXPECT_FALSE(value.HasWaiter());
  EXPECT_TRUE(executed);
}

TEST(AsyncValueRefTest, AndThenError) {
  auto value = MakeConstructedAsyncValueRef<int32_t>(42);
  Status seen;
  value.AndThen([&seen](Status status) { seen = std::move(status); });
  value.SetError(InternalError("test error"));
  EXPECT_EQ(seen, InternalError("test error"));
}

TEST(AsyncValueRefTest, AndThenNoError) {
  auto value = MakeUnconstructedAsyncValueRef<int32_t>();
  Status seen = UnknownError("not called");
  value.AndThen([&seen](const Status& status) { seen = status; });
  value.emplace(42);
  EXPECT_TRUE(seen.ok());
}

TEST(AsyncValueRefTest, AndThenStatusOrError) {
  auto value = MakeConstructedAsyncValueRef<int32_t>(42);
  Status seen;
  value.AndThen([&seen](StatusOr<int32_t*> result) { seen = result.status(); });
  value.SetError(InternalError("test error"));
  EXPECT_EQ(seen, InternalError("test error"));
}

TEST(AsyncValueRefTest, AndThenStatusOrNoError) {
  auto value = MakeUnconstructedAsyncValueRef<int32_t>();
  int32_t seen = 0;
  value.AndThen([&seen](StatusOr<int32_t*> result) { seen = **result; });
  value.emplace(42);
  EXPECT_EQ(seen, 42);
  value.AndThen([&seen](StatusOr<int32_t*> result) { seen += **result; });
  EXPECT_EQ(seen, 84) << "available: at once";
}

TEST(AsyncValueRefTest, AndThenOnAnExecutorAlwaysRunsInATask) {
  NoLeak no_leak;
  DeferredExecutor executor;
  auto value = MakeUnconstructedAsyncValueRef<Counted>();
  int seen = 0;
  value.AndThen(executor, [&seen] { seen += 1; });
  value.AndThen(executor, [&seen](Status status) { seen += status.ok() ? 10 : 1'000; });
  value.AndThen(executor, [&seen](StatusOr<Counted*> result) { seen += (*result)->value; });
  EXPECT_EQ(executor.tasks, 0);
  value.emplace(100);
  EXPECT_EQ(executor.tasks, 3);
  EXPECT_EQ(seen, 0);
  value.AndThen(executor, [&seen] { seen += 5; });
  EXPECT_EQ(executor.tasks, 4) << "also when the value is there";
  value.reset();
  executor.RunAll();
  EXPECT_EQ(seen, 116) << "the tasks kept the value alive";
}

TEST(AsyncValueRefTest, AWaiterThatAnExecutorRefusesIsDestroyed) {
  NoLeak no_leak;
  RefusingExecutor executor;
  auto value = MakeUnconstructedAsyncValueRef<int>();
  EventPromise promise("owed");
  const Event owed = promise.event();
  value.AndThen(executor, [promise = std::move(promise), counted = Counted(1)] { FAIL(); });
  value.emplace(1);
  EXPECT_TRUE(IsInternal(owed.error()));
}

TEST(AsyncValueRefTest, AnUnsetValueDoesNotLeakItsExecutorWaiters) {
  NoLeak no_leak;
  CountingExecutor executor;
  auto value = MakeUnconstructedAsyncValueRef<int>();
  Status seen;
  value.AndThen(executor, [&seen, counted = Counted(1)](Status status) { seen = std::move(status); });
  value.reset();
  EXPECT_TRUE(IsInternal(seen)) << "no cycle between the value and its waiter";
}

TEST(AsyncValueRefTest, BlockUntilReady) {
  auto value = MakeAvailableAsyncValueRef<int32_t>(42);
  EXPECT_TRUE(BlockUntilReady(value).ok());
  EXPECT_EQ(BlockUntilReady(AsyncValueRef<int>(AbortedError("x"))), AbortedError("x"));
}

// Map -----------------------------------------------------------------------------------------------------------------

TEST(AsyncValueRefTest, MapAvailable) {
  auto value = MakeAvailableAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped = value.Map([](int32_t v) -> float { return static_cast<float>(v); });
  EXPECT_TRUE(mapped.IsAvailable());
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValueRefTest, MapUnavailable) {
  auto value = MakeConstructedAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped = value.Map([](int32_t v) -> float { return static_cast<float>(v); });
  EXPECT_FALSE(mapped.IsAvailable());
  value.SetStateConcrete();
  EXPECT_TRUE(mapped.IsAvailable());
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValueRefTest, MapToNonMovable) {
  auto value = MakeAvailableAsyncValueRef<int32_t>(42);
  AsyncValueRef<std::atomic<int32_t>> mapped = value.Map<std::atomic<int32_t>>([](int32_t v) { return v; });
  EXPECT_EQ(mapped->load(), 42);
  auto pending = MakeUnconstructedAsyncValueRef<int32_t>();
  AsyncValueRef<std::atomic<int32_t>> later = pending.Map([](int32_t v) { return std::atomic<int32_t>(v); });
  pending.emplace(43);
  EXPECT_EQ(later->load(), 43) << "built in place";
}

TEST(AsyncValueRefTest, MapTakesThePayloadByReferenceOrAPointerToTheValue) {
  auto value = MakeAvailableAsyncValueRef<int32_t>(42);
  value.Map([](int32_t& v) { return ++v; }).reset();
  EXPECT_EQ(*value, 43);
  auto mapped = value.Map([](AsyncValuePtr<int32_t> v) { return *v + 1; });
  EXPECT_EQ(*mapped, 44);
}

TEST(AsyncValueRefTest, MapOfAFunctionThatReturnsNothingIsAChain) {
  auto value = MakeUnconstructedAsyncValueRef<int32_t>();
  int32_t seen = 0;
  AsyncValueRef<Chain> done = value.Map([&seen](int32_t v) { seen = v; });
  value.emplace(42);
  EXPECT_TRUE(done.IsConcrete());
  EXPECT_EQ(seen, 42);
  EXPECT_TRUE(value.Map([](int32_t) {}).IsConcrete());
}

TEST(AsyncValueRefTest, MapError) {
  auto value = AsyncValueRef<int32_t>(InternalError("error"));
  AsyncValueRef<float> mapped = value.Map([](int32_t) -> float {
    ADD_FAILURE() << "errors pass by the function";
    return 0;
  });
  EXPECT_TRUE(mapped.IsError());
  EXPECT_EQ(mapped.GetError(), InternalError("error"));
}

TEST(AsyncValueRefTest, MapUnavailableError) {
  auto value = MakeConstructedAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped = value.Map([](int32_t) -> float {
    ADD_FAILURE() << "errors pass by the function";
    return 0;
  });
  EXPECT_FALSE(mapped.IsAvailable());
  Status error = InternalError("error");
  error.SetPayload("type", "payload");
  value.SetError(error);
  EXPECT_TRUE(mapped.IsError());
  EXPECT_EQ(mapped.GetError(), error) << "with its payloads";
}

TEST(AsyncValueRefTest, MapMultipleTimes) {
  auto value = MakeConstructedAsyncValueRef<int32_t>(0);
  auto plus_one = [](int32_t v) { return v + 1; };
  AsyncValueRef<int32_t> mapped =
      value.Map(plus_one).Map(plus_one).Map(plus_one).Map(plus_one).Map(plus_one).Map(plus_one);
  value.SetStateConcrete();
  EXPECT_EQ(mapped.get(), 6);
}

TEST(AsyncValueRefTest, MapOfAPendingValueAllocatesNothing) {
  NoLeak no_leak;
  auto value = MakeUnconstructedAsyncValueRef<int32_t>();
  {
    auto warm = MakeUnconstructedAsyncValueRef<int32_t>().Map([](int32_t v) { return v; });
  }
  EXPECT_EQ(AllocationsOf([&] {
              auto mapped = value.Map([](int32_t v) { return v + 1; });
              value.emplace(1);
              if (*mapped != 2) std::abort();
            }),
            0);
}

TEST(AsyncValueRefTest, AMappedValueThatWasCancelledIsLeftAlone) {
  auto value = MakeUnconstructedAsyncValueRef<int32_t>();
  auto mapped = value.Map([](int32_t v) {
    ADD_FAILURE() << "nobody needs it any more";
    return v;
  });
  EXPECT_TRUE(mapped.SetError(CancelledError("cancelled")));
  value.emplace(1);
  EXPECT_EQ(mapped.GetError(), CancelledError("cancelled"));
}

TEST(AsyncValueRefTest, TryMap) {
  auto value = MakeAvailableAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped = value.TryMap([](int32_t v) -> StatusOr<float> { return static_cast<float>(v); });
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValueRefTest, TryMapError) {
  auto value = MakeUnconstructedAsyncValueRef<int32_t>();
  AsyncValueRef<float> mapped = value.TryMap([](int32_t) -> StatusOr<float> { return InternalError("error"); });
  AsyncValueRef<float> again = mapped.TryMap([](float v) -> StatusOr<float> { return v; });
  value.emplace(1);
  EXPECT_EQ(mapped.GetError(), InternalError("error"));
  EXPECT_EQ(again.GetError(), InternalError("error"));
}

TEST(AsyncValueRefTest, TryMapConstructible) {
  struct X {
    explicit X(float v) : value(v) {}
    X(const X&) = delete;
    X& operator=(const X&) = delete;
    float value;
  };
  auto value = MakeAvailableAsyncValueRef<int32_t>(42);
  AsyncValueRef<X> mapped = value.TryMap<X>([](int32_t v) -> StatusOr<float> { return static_cast<float>(v); });
  EXPECT_EQ(mapped->value, 42.0f);
}

TEST(AsyncValueRefTest, TryMapOfAStatusIsAChain) {
  auto value = MakeAvailableAsyncValueRef<int32_t>(42);
  AsyncValueRef<Chain> good = value.TryMap([](int32_t) { return OkStatus(); });
  AsyncValueRef<Chain> bad = value.TryMap([](int32_t) { return AbortedError("x"); });
  EXPECT_TRUE(good.IsConcrete());
  EXPECT_EQ(bad.GetError(), AbortedError("x"));
}

TEST(AsyncValueRefTest, FlatMapAvailable) {
  auto value = MakeAvailableAsyncValueRef<int32_t>(42);
  auto inner = MakeUnconstructedAsyncValueRef<float>();
  AsyncValueRef<float> mapped = value.FlatMap([&inner](int32_t) { return inner; });
  EXPECT_EQ(mapped, inner) << "no cell in between";
  inner.emplace(42.0f);
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValueRefTest, FlatMapUnavailable) {
  NoLeak no_leak;
  auto value = MakeConstructedAsyncValueRef<int32_t>(42);
  auto inner = MakeUnconstructedAsyncValueRef<Counted>();
  AsyncValueRef<Counted> mapped = value.FlatMap([&inner](int32_t) { return inner; });
  EXPECT_FALSE(mapped.IsAvailable());
  value.SetStateConcrete();
  EXPECT_FALSE(mapped.IsAvailable()) << "the inner value is pending";
  inner.emplace(42);
  EXPECT_EQ(mapped->value, 42);
  EXPECT_EQ(&mapped.get(), &inner.get()) << "shown, not copied";
  inner.reset();
  EXPECT_EQ(mapped->value, 42) << "and kept alive";
}

TEST(AsyncValueRefTest, FlatMapAvailableError) {
  auto value = AsyncValueRef<int32_t>(InternalError("error"));
  AsyncValueRef<float> mapped = value.FlatMap([](int32_t) { return MakeAvailableAsyncValueRef<float>(1.0f); });
  EXPECT_EQ(mapped.GetError(), InternalError("error"));
}

TEST(AsyncValueRefTest, FlatMapUnavailableError) {
  auto value = MakeConstructedAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> outer = value.FlatMap([](int32_t) { return MakeAvailableAsyncValueRef<float>(1.0f); });
  value.SetError(InternalError("error"));
  EXPECT_EQ(outer.GetError(), InternalError("error"));
  auto source = MakeConstructedAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> inner = source.FlatMap([](int32_t) -> AsyncValueRef<float> { return AbortedError("inner"); });
  AsyncValueRef<float> null = source.FlatMap([](int32_t) { return AsyncValueRef<float>(); });
  source.SetStateConcrete();
  EXPECT_EQ(inner.GetError(), AbortedError("inner"));
  EXPECT_TRUE(IsFailedPrecondition(null.GetError()));
}

// Forwarding ----------------------------------------------------------------------------------------------------------

TEST(AsyncValueRefTest, ForwardToAvailableAndPending) {
  NoLeak no_leak;
  auto source = MakeUnconstructedAsyncValueRef<Counted>();
  auto shown = MakeIndirectAsyncValueRef<Counted>();
  auto again = MakeIndirectAsyncValueRef<Counted>();
  EXPECT_FALSE(shown.IsUnique()) << "not resolved";
  EXPECT_TRUE(shown.ForwardTo(source));
  EXPECT_TRUE(again.ForwardTo(shown));
  EXPECT_TRUE(shown.IsUnavailable());
  source.emplace(42);
  EXPECT_EQ(&again.get(), &source.get());
  auto late = MakeIndirectAsyncValueRef<Counted>();
  EXPECT_TRUE(late.ForwardTo(again));
  source.reset();
  shown.reset();
  again.reset();
  EXPECT_EQ(late->value, 42);
  EXPECT_TRUE(late.IsUnique());
  auto second = late;
  EXPECT_FALSE(late.IsUnique());
}

TEST(AsyncValueRefTest, ForwardingIsACompletionAndTheFirstWins) {
  auto source = MakeUnconstructedAsyncValueRef<int>();
  auto shown = MakeIndirectAsyncValueRef<int>();
  EXPECT_TRUE(shown.ForwardTo(source));
  EXPECT_FALSE(shown.ForwardTo(MakeAvailableAsyncValueRef<int>(1)));
  EXPECT_FALSE(shown.SetError(AbortedError("late")));
  EXPECT_FALSE(shown.emplace(2));
  source.emplace(3);
  EXPECT_EQ(*shown, 3);
  EXPECT_FALSE(MakeUnconstructedAsyncValueRef<int>().ForwardTo(source)) << "an inline value cannot show another";
}

TEST(AsyncValueRefTest, AnIndirectValueMayBeEmplacedOrFail) {
  NoLeak no_leak;
  auto shown = MakeIndirectAsyncValueRef<Counted>();
  EXPECT_TRUE(shown.emplace(5));
  EXPECT_EQ(shown->value, 5);
  EXPECT_FALSE(shown.emplace(6));
  auto failed = MakeIndirectAsyncValueRef<Counted>();
  EXPECT_TRUE(failed.SetError(AbortedError("x")));
  EXPECT_FALSE(failed.ForwardTo(shown));
  EXPECT_EQ(failed.GetError(), AbortedError("x"));
}

TEST(AsyncValueRefTest, ForwardingToNothingOrToItselfIsAnError) {
  auto null = MakeIndirectAsyncValueRef<int>();
  EXPECT_TRUE(null.ForwardTo(nullptr));
  EXPECT_TRUE(IsFailedPrecondition(null.GetError()));
  auto self = MakeIndirectAsyncValueRef<int>();
  EXPECT_TRUE(self.ForwardTo(self));
  EXPECT_TRUE(IsInternal(self.GetError()));
}

TEST(AsyncValueRefTest, ASourceThatIsDroppedUnsetFailsWhatShowsIt) {
  auto source = MakeUnconstructedAsyncValueRef<int>("source");
  auto shown = MakeIndirectAsyncValueRef<int>();
  shown.ForwardTo(std::move(source));
  EXPECT_TRUE(IsInternal(shown.GetError()));
  EXPECT_NE(shown.GetError().message().find("'source'"), std::string_view::npos);
}

TEST(AsyncValueRefTest, SharedPtrAsyncValueOwnerAndUpcast) {
  NoLeak no_leak;
  struct A {
    explicit A(int v) : counted(v) {}
    Counted counted;
  };
  struct B : A {
    using A::A;
  };
  std::shared_ptr<B> owner = std::make_shared<B>(42);
  const std::weak_ptr<B> alive = owner;
  AsyncValueRef<B> b = MakeAsyncValueRefFromSharedPtr(owner);
  owner.reset();
  EXPECT_TRUE(b.IsConcrete());
  EXPECT_EQ(b->counted.value, 42);
  AsyncValueRef<A> a = b;
  EXPECT_EQ(a->counted.value, 42);
  EXPECT_TRUE(Isa<B>(a));
  auto shown = MakeIndirectAsyncValueRef<A>();
  shown.ForwardTo(a);
  a.reset();
  b.reset();
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(shown->counted.value, 42);
  shown.reset();
  EXPECT_TRUE(alive.expired());
  EXPECT_TRUE(IsInvalidArgument(MakeAsyncValueRefFromSharedPtr(std::shared_ptr<int>()).GetError()));
}

// Several values ------------------------------------------------------------------------------------------------------

TEST(AsyncValueRefTest, RunWhenReady) {
  std::vector<AsyncValueRef<int>> values{MakeAvailableAsyncValueRef<int>(1), MakeAvailableAsyncValueRef<int>(2)};
  int calls = 0;
  EXPECT_EQ(AllocationsOf([&] {
              RunWhenReady(values, [&calls] { ++calls; });
              RunWhenReady(values, [&calls](Status status) { calls += status.ok() ? 10 : 1'000; });
            }),
            0)
      << "all are available";
  EXPECT_EQ(calls, 11);
  RunWhenReady(std::vector<AsyncValueRef<int>>(), [&calls] { ++calls; });
  EXPECT_EQ(calls, 12);
}

TEST(AsyncValueRefTest, RunWhenReadyTakesEvents) {
  EventPromise first("first");
  EventPromise second("second");
  const std::vector<Event> events = {first.event(), second.event()};
  int calls = 0;
  Status seen;
  RunWhenReady(events, [&] { ++calls; });
  RunWhenReady(Span<const Event>(events), [&](Status status) { seen = std::move(status); });
  RunWhenReady({first.event(), second.event()}, [&](const Status& status) { calls += status.ok() ? 10 : 100; });
  InlineExecutor inline_executor;
  RunWhenReady(events, inline_executor, [&](const Status&) { ++calls; });
  second.SetError(AbortedError("x"));
  EXPECT_EQ(calls, 0);
  first.SetReady();
  EXPECT_EQ(calls, 102);
  EXPECT_TRUE(IsAborted(seen));
  RunWhenReady(Span<const Event>(), [&] { ++calls; });
  EXPECT_EQ(calls, 103);
  EXPECT_TRUE(IsAborted(BlockUntilReady(events[1])));
  EXPECT_TRUE(BlockUntilReady(Event::Ready()).ok());
}

TEST(AsyncValueRefTest, RunWhenReadyWaitsForTheLastOfSeveral) {
  for (std::size_t pending = 1; pending <= 3; ++pending) {
    std::vector<AsyncValueRef<int>> values;
    for (std::size_t i = 0; i < 4; ++i) {
      values.push_back(i < pending ? MakeUnconstructedAsyncValueRef<int>() : MakeAvailableAsyncValueRef<int>(1));
    }
    CountingExecutor executor;
    int calls = 0;
    Status first;
    RunWhenReady(values, [&calls] { ++calls; });
    RunWhenReady(values, [&calls, &first](Status status) {
      ++calls;
      first = std::move(status);
    });
    RunWhenReady(values, executor, [&calls] { ++calls; });
    RunWhenReady(values, executor, [&calls](const Status& status) { calls += status.ok() ? 100 : 1; });
    for (std::size_t i = pending; i-- > 0;) {
      EXPECT_EQ(calls, 0);
      values[i].SetError(AbortedError(std::to_string(i)));
    }
    EXPECT_EQ(calls, 4);
    EXPECT_EQ(first, AbortedError("0")) << "the lowest index, not the first in time";
    EXPECT_EQ(executor.tasks, 2);
  }
}

TEST(AsyncValueRaceTest, RunWhenReadyRunsOnce) {
  constexpr std::size_t kRounds = 300;
  for (std::size_t round = 0; round < kRounds; ++round) {
    std::vector<AsyncValueRef<int>> values;
    for (int i = 0; i < 8; ++i) values.push_back(MakeUnconstructedAsyncValueRef<int>());
    std::atomic<int> calls{0};
    Together(3, [&](int index) {
      if (index == 0) {
        RunWhenReady(values, [&calls] { calls.fetch_add(1); });
      } else {
        for (std::size_t i = static_cast<std::size_t>(index - 1); i < 8; i += 2) values[i].emplace(1);
      }
    });
    EXPECT_EQ(calls.load(), 1);
  }
}

// Lifetimes -----------------------------------------------------------------------------------------------------------

TEST(AsyncValueRefTest, RecursiveOwnership) {
  // The waiter owns the value that it waits for, and destroys it.
  struct WaiterState {
    WaiterState(AsyncValueRef<int32_t> v, bool* gone) : value(std::move(v)), destroyed(gone) {}
    ~WaiterState() { *destroyed = true; }
    AsyncValueRef<int32_t> value;
    bool* destroyed;
  };
  auto value = MakeConstructedAsyncValueRef<int32_t>(42);
  const AsyncValuePtr<int32_t> borrowed = value.AsPtr();
  bool destroyed = false;
  auto state = std::make_unique<WaiterState>(std::move(value), &destroyed);
  borrowed.AndThen([state = std::move(state)]() mutable { state.reset(); });
  borrowed.SetStateConcrete();
  EXPECT_TRUE(destroyed);
}

TEST(AsyncValueRefTest, UnconstructedScopedAsyncValue) {
  NoLeak no_leak;
  ScopedAsyncValue<Counted> value;
  EXPECT_EQ(value.AsPtr().state(), AsyncValueState::kUnconstructed);
  value.AsPtr().emplace(1);
  EXPECT_EQ(value.AsPtr()->value, 1);
}

TEST(AsyncValueRefTest, ConstructedScopedAsyncValue) {
  NoLeak no_leak;
  ScopedAsyncValue<Counted> value(ScopedAsyncValue<Counted>::Constructed{}, 1);
  EXPECT_TRUE(value.AsPtr().IsConstructed());
  EXPECT_EQ(value.AsRef()->value, 1);
}

TEST(AsyncValueRefTest, AvailableScopedAsyncValue) {
  NoLeak no_leak;
  ScopedAsyncValue<Counted> value(ScopedAsyncValue<Counted>::Available{}, 1);
  EXPECT_TRUE(value.AsPtr().IsConcrete());
  EXPECT_EQ(*value.AsRef().Map([](Counted& v) { return v.value + 1; }), 2);
}

TEST(AsyncValueRefTest, ErrorScopedAsyncValue) {
  ScopedAsyncValue<int32_t> value(ScopedAsyncValue<int32_t>::Error{}, InternalError("error"));
  EXPECT_EQ(value.AsPtr().GetError(), InternalError("error"));
}

TEST(AsyncValueRefTest, StaticScopedAsyncValue) {
  static ScopedAsyncValue<int32_t> value(ScopedAsyncValue<int32_t>::Available{}, 42);
  EXPECT_EQ(*value.AsPtr(), 42);
  const AsyncValueRef<int32_t> reference = value.AsRef();
  EXPECT_EQ(*reference, 42);
}

TEST(AsyncValueRefTest, ScopedAsyncValueDestroyed) {
  const int alive = Counted::alive;
  {
    ScopedAsyncValue<Counted> value(ScopedAsyncValue<Counted>::Constructed{}, 1);
    EXPECT_EQ(Counted::alive, alive + 1);
  }
  EXPECT_EQ(Counted::alive, alive);
}

}  // namespace
}  // namespace purlin
