// Borrowed pointers to values: the same verbs as references, and no reference counted.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/async_value_cast.h"
#include "purlin/run_when_ready.h"
#include "purlin/span.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

TEST(AsyncValuePtrTest, Construct) {
  auto ref = MakeAvailableAsyncValueRef<int32_t>(42);
  const AsyncValuePtr<int32_t> ptr = ref.AsPtr();
  EXPECT_EQ(ptr.get(), 42);
  EXPECT_EQ(*ptr, 42);
  EXPECT_EQ(ref.NumRef(), 1U) << "borrowed, not counted";
  EXPECT_EQ(ptr, AsyncValuePtr<int32_t>(ref));
  EXPECT_TRUE(ptr);
  EXPECT_FALSE(AsyncValuePtr<int32_t>(nullptr));
  EXPECT_NE(ptr, AsyncValuePtr<int32_t>());
  static_assert(std::is_trivially_copyable_v<AsyncValuePtr<int32_t>>, "copying costs nothing");
}

TEST(AsyncValuePtrTest, CopyRef) {
  auto ref = MakeAvailableAsyncValueRef<int32_t>(42);
  const AsyncValuePtr<int32_t> ptr = ref.AsPtr();
  EXPECT_TRUE(ref.IsUnique());
  AsyncValueRef<int32_t> copy = ptr.CopyRef();
  EXPECT_EQ(copy, ref);
  EXPECT_FALSE(ref.IsUnique());
  EXPECT_FALSE(AsyncValuePtr<int32_t>().CopyRef());
}

TEST(AsyncValuePtrTest, Emplace) {
  auto ref = MakeUnconstructedAsyncValueRef<int32_t>();
  const AsyncValuePtr<int32_t> ptr = ref.AsPtr();
  EXPECT_TRUE(ptr.emplace(42));
  EXPECT_EQ(ptr.get(), 42);
  EXPECT_FALSE(ptr.emplace(43));
  EXPECT_EQ(*ref, 42);
}

TEST(AsyncValuePtrTest, SetError) {
  auto ref = MakeUnconstructedAsyncValueRef<int32_t>();
  const AsyncValuePtr<int32_t> ptr = ref.AsPtr();
  EXPECT_TRUE(ptr.SetError(InternalError("error")));
  EXPECT_TRUE(ptr.IsError());
  EXPECT_EQ(ref.GetError(), InternalError("error"));
}

TEST(AsyncValuePtrTest, SetStateConcreteAndForwardTo) {
  auto ref = MakeConstructedAsyncValueRef<int32_t>(42);
  auto shown = MakeIndirectAsyncValueRef<int32_t>();
  EXPECT_TRUE(shown.AsPtr().ForwardTo(ref));
  EXPECT_TRUE(ref.AsPtr().IsConstructed());
  EXPECT_TRUE(ref.AsPtr().SetStateConcrete());
  EXPECT_EQ(shown.AsPtr().get(), 42);
}

TEST(AsyncValuePtrTest, AndThen) {
  auto ref = MakeUnconstructedAsyncValueRef<int32_t>();
  const AsyncValuePtr<int32_t> ptr = ref.AsPtr();
  EXPECT_FALSE(ptr.IsConcrete());
  EXPECT_FALSE(ptr.HasWaiter());
  bool executed = false;
  ptr.AndThen([&executed] { executed = true; });
  EXPECT_TRUE(ptr.HasWaiter());
  EXPECT_FALSE(executed);
  ptr.emplace(42);
  EXPECT_FALSE(ptr.HasWaiter());
  EXPECT_TRUE(executed);
}

TEST(AsyncValuePtrTest, AndThenError) {
  auto ref = MakeUnconstructedAsyncValueRef<int32_t>();
  Status seen;
  ref.AsPtr().AndThen([&seen](Status status) { seen = std::move(status); });
  ref.SetError(InternalError("error"));
  EXPECT_EQ(seen, InternalError("error"));
}

TEST(AsyncValuePtrTest, AndThenNoError) {
  auto ref = MakeUnconstructedAsyncValueRef<int32_t>();
  Status seen = UnknownError("not called");
  ref.AsPtr().AndThen([&seen](Status status) { seen = std::move(status); });
  ref.emplace(42);
  EXPECT_TRUE(seen.ok());
}

TEST(AsyncValuePtrTest, AndThenStatusOrError) {
  auto ref = MakeUnconstructedAsyncValueRef<int32_t>();
  Status seen;
  ref.AsPtr().AndThen([&seen](StatusOr<int32_t*> result) { seen = result.status(); });
  ref.SetError(InternalError("error"));
  EXPECT_EQ(seen, InternalError("error"));
}

TEST(AsyncValuePtrTest, AndThenStatusOrNoError) {
  auto ref = MakeUnconstructedAsyncValueRef<int32_t>();
  int32_t seen = 0;
  ref.AsPtr().AndThen([&seen](StatusOr<int32_t*> result) { seen = **result; });
  ref.emplace(42);
  EXPECT_EQ(seen, 42);
}

TEST(AsyncValuePtrTest, MapAvailable) {
  auto ref = MakeAvailableAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped = ref.AsPtr().Map([](int32_t v) { return static_cast<float>(v); });
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValuePtrTest, MapUnavailable) {
  auto ref = MakeUnconstructedAsyncValueRef<int32_t>();
  AsyncValueRef<float> mapped = ref.AsPtr().Map([](int32_t v) { return static_cast<float>(v); });
  EXPECT_FALSE(mapped.IsAvailable());
  ref.emplace(42);
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValuePtrTest, MapToNonMovable) {
  auto ref = MakeAvailableAsyncValueRef<int32_t>(42);
  AsyncValueRef<std::atomic<int32_t>> mapped = ref.AsPtr().Map<std::atomic<int32_t>>([](int32_t v) { return v; });
  EXPECT_EQ(mapped->load(), 42);
}

TEST(AsyncValuePtrTest, MapError) {
  auto ref = AsyncValueRef<int32_t>(InternalError("error"));
  AsyncValueRef<float> mapped = ref.AsPtr().Map([](int32_t) { return 1.0f; });
  EXPECT_EQ(mapped.GetError(), InternalError("error"));
}

TEST(AsyncValuePtrTest, MapUnavailableError) {
  auto ref = MakeConstructedAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped = ref.AsPtr().Map([](int32_t) { return 1.0f; });
  ref.SetError(InternalError("error"));
  EXPECT_EQ(mapped.GetError(), InternalError("error"));
}

TEST(AsyncValuePtrTest, MapMultipleTimes) {
  auto ref = MakeUnconstructedAsyncValueRef<int32_t>();
  auto plus_one = [](int32_t v) { return v + 1; };
  auto mapped = ref.AsPtr().Map(plus_one).AsPtr().Map(plus_one).AsPtr().Map(plus_one);
  ref.emplace(0);
  EXPECT_EQ(mapped.get(), 3) << "the waiters keep the values in between alive";
}

TEST(AsyncValuePtrTest, MapToStatus) {
  auto ref = MakeAvailableAsyncValueRef<int32_t>(42);
  AsyncValueRef<Status> mapped = ref.AsPtr().Map([](int32_t) -> Status { return InternalError("a payload"); });
  ASSERT_TRUE(mapped.IsConcrete()) << "a Status is a value like others";
  EXPECT_EQ(mapped.get(), InternalError("a payload"));
}

TEST(AsyncValuePtrTest, MapToStatusOr) {
  auto ref = MakeUnconstructedAsyncValueRef<int32_t>();
  AsyncValueRef<StatusOr<float>> mapped = ref.AsPtr().Map([](int32_t v) -> StatusOr<float> {
    if (v == 0) return InternalError("a payload");
    return static_cast<float>(v);
  });
  ref.emplace(42);
  ASSERT_TRUE(mapped.IsConcrete());
  EXPECT_EQ(mapped->value(), 42.0f);
}

TEST(AsyncValuePtrTest, TryMap) {
  auto ref = MakeAvailableAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped = ref.AsPtr().TryMap([](int32_t v) -> StatusOr<float> { return static_cast<float>(v); });
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValuePtrTest, TryMapError) {
  auto ref = MakeAvailableAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped = ref.AsPtr().TryMap([](int32_t) -> StatusOr<float> { return InternalError("error"); });
  EXPECT_EQ(mapped.GetError(), InternalError("error"));
}

TEST(AsyncValuePtrTest, TryMapConstructible) {
  struct X {
    explicit X(float v) : value(v) {}
    float value;
  };
  auto ref = MakeAvailableAsyncValueRef<int32_t>(42);
  AsyncValueRef<X> mapped = ref.AsPtr().TryMap<X>([](int32_t v) -> StatusOr<float> { return static_cast<float>(v); });
  EXPECT_EQ(mapped->value, 42.0f);
}

TEST(AsyncValuePtrTest, FlatMapAvailable) {
  auto ref = MakeAvailableAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped =
      ref.AsPtr().FlatMap([](int32_t v) { return MakeAvailableAsyncValueRef<float>(static_cast<float>(v)); });
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValuePtrTest, FlatMapUnavailable) {
  auto ref = MakeUnconstructedAsyncValueRef<int32_t>();
  AsyncValueRef<float> mapped =
      ref.AsPtr().FlatMap([](int32_t v) { return MakeAvailableAsyncValueRef<float>(static_cast<float>(v)); });
  EXPECT_FALSE(mapped.IsAvailable());
  ref.emplace(42);
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValuePtrTest, MapAvailableOnExecutor) {
  DeferredExecutor executor;
  auto ref = MakeAvailableAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped = ref.AsPtr().Map(executor, [](int32_t v) { return static_cast<float>(v); });
  ref.reset();
  EXPECT_FALSE(mapped.IsAvailable());
  EXPECT_EQ(executor.tasks, 1);
  executor.RunAll();
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValuePtrTest, MapErrorOnExecutor) {
  DeferredExecutor executor;
  auto ref = MakeConstructedAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped = ref.AsPtr().Map(executor, [](int32_t) { return 1.0f; });
  ref.SetError(CancelledError("error"));
  EXPECT_EQ(mapped.GetError(), CancelledError("error"));
  EXPECT_EQ(executor.tasks, 0);
}

TEST(AsyncValuePtrTest, MapUnavailableOnExecutor) {
  DeferredExecutor executor;
  auto ref = MakeConstructedAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped = ref.AsPtr().Map(executor, [](int32_t v) { return static_cast<float>(v); });
  ref.SetStateConcrete();
  ref.reset();
  executor.RunAll();
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValuePtrTest, TryMapOnExecutor) {
  DeferredExecutor executor;
  auto ref = MakeConstructedAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped =
      ref.AsPtr().TryMap(executor, [](int32_t v) -> StatusOr<float> { return static_cast<float>(v); });
  ref.SetStateConcrete();
  ref.reset();
  executor.RunAll();
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValuePtrTest, TryMapErrorOnExecutor) {
  DeferredExecutor executor;
  auto ref = MakeConstructedAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped =
      ref.AsPtr().TryMap(executor, [](int32_t) -> StatusOr<float> { return CancelledError("error"); });
  ref.SetStateConcrete();
  executor.RunAll();
  EXPECT_EQ(mapped.GetError(), CancelledError("error"));
}

TEST(AsyncValuePtrTest, FlatMapAvailableOnExecutor) {
  DeferredExecutor executor;
  auto ref = MakeAvailableAsyncValueRef<int32_t>(42);
  AsyncValueRef<float> mapped =
      ref.AsPtr().FlatMap(executor, [](int32_t v) { return MakeAvailableAsyncValueRef<float>(static_cast<float>(v)); });
  EXPECT_FALSE(mapped.IsAvailable());
  executor.RunAll();
  EXPECT_EQ(mapped.get(), 42.0f);
}

TEST(AsyncValuePtrTest, BlockUntilReady) {
  auto ref = MakeAvailableAsyncValueRef<int32_t>(42);
  EXPECT_TRUE(BlockUntilReady(ref.AsPtr()).ok());
}

TEST(AsyncValuePtrTest, RunWhenReady) {
  auto first = MakeAvailableAsyncValueRef<int32_t>(42);
  auto second = MakeUnconstructedAsyncValueRef<int32_t>();
  int calls = 0;
  const std::vector<AsyncValuePtr<int32_t>> both{first.AsPtr(), second.AsPtr()};
  const std::array<AsyncValuePtr<int32_t>, 1> one{first.AsPtr()};
  RunWhenReady(both, [&calls] { calls += 1; });
  RunWhenReady(Span<const AsyncValuePtr<int32_t>>(both), [&calls] { calls += 10; });
  RunWhenReady({first.AsPtr(), second.AsPtr()}, [&calls] { calls += 100; });
  RunWhenReady(one, [&calls] { calls += 1'000; });
  EXPECT_EQ(calls, 1'000);
  second.emplace(1);
  EXPECT_EQ(calls, 1'111);
}

struct A {
  virtual ~A() = default;
  int32_t value = 1;
};
struct B : A {};
struct C : B {};

TEST(AsyncValuePtrTest, Isa) {
  EXPECT_FALSE(Isa<A>(AsyncValuePtr<A>()));
  AsyncValueRef<A> b = MakeAvailableAsyncValueRef<B>();
  EXPECT_TRUE(Isa<A>(b.AsPtr()));
  EXPECT_TRUE(Isa<B>(b.AsPtr()));
  EXPECT_FALSE(Isa<C>(b.AsPtr()));
  AsyncValueRef<A> error = InternalError("error");
  EXPECT_TRUE(Isa<C>(error.AsPtr()));
}

TEST(AsyncValuePtrTest, DynCast) {
  AsyncValueRef<A> b = MakeAvailableAsyncValueRef<B>();
  EXPECT_TRUE(DynCast<B>(b.AsPtr()));
  EXPECT_TRUE(DynCast<A>(b.AsPtr()));
  EXPECT_FALSE(DynCast<C>(b.AsPtr()));
  EXPECT_FALSE(DynCastOrNull<B>(AsyncValuePtr<A>()));
  EXPECT_EQ(b.NumRef(), 1U);
}

TEST(AsyncValuePtrTest, Cast) {
  AsyncValueRef<A> b = MakeAvailableAsyncValueRef<B>();
  const AsyncValuePtr<B> cast = Cast<B>(b.AsPtr());
  EXPECT_EQ(cast->value, 1);
  EXPECT_EQ(Cast<A>(cast), b.AsPtr());
}

}  // namespace
}  // namespace purlin
