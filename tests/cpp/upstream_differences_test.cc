// Where Purlin behaves otherwise than tsl under the same name: rows of docs/adopting.md that no other test is of.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/async_value_cast.h"
#include "purlin/compat/tsl.h"
#include "purlin/executor.h"
#include "purlin/status.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

struct Figure {
  virtual ~Figure() = default;
};
struct Circle final : Figure {};
struct Square final : Figure {};

TEST(UpstreamDifferencesTest, AFailedValueIsOfEveryType) {
  const AsyncValueRef<Figure> figure = MakeConstructedAsyncValueRef<Circle>();
  EXPECT_TRUE(Isa<Circle>(figure));
  EXPECT_FALSE(Isa<Square>(figure));
  EXPECT_FALSE(DynCast<Square>(figure));
  figure.SetError(AbortedError("x"));
  EXPECT_TRUE(Isa<Square>(figure));
  const AsyncValueRef<Square> square = DynCast<Square>(figure);
  ASSERT_TRUE(square);
  EXPECT_TRUE(IsAborted(square.GetError()));
}

TEST(CompatRunnerTest, TasksWaitForReferencesWithoutATypeAndForPointers) {
  ThreadPoolAsyncWorkRunner pool = ThreadPoolAsyncWorkRunner::Create({1, "compat"}).value();
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  using Erased = compat::tsl::RCReference<compat::tsl::AsyncValue>;
  const std::vector<Erased> references = {value.CopyRCRef()};
  const std::vector<compat::tsl::AsyncValue*> pointers = {value.GetAsyncValue()};
  std::atomic<int> seen{0};
  ASSERT_TRUE(pool.ScheduleWhenReady(Span<const Erased>(references), [&] { seen += *value; }).ok());
  ASSERT_TRUE(pool.ScheduleWhenReady(pointers, [&] { seen += *value; }).ok());
  EXPECT_EQ(seen.load(), 0);
  value.emplace(4);
  EXPECT_TRUE(pool.Shutdown().ok());
  EXPECT_EQ(seen.load(), 8);
}

TEST(CompatRunnerTest, AWorkerThreadRunsClosuresInOrderAndAllOfThem) {
  std::vector<int> order;
  {
    compat::xla::WorkerThread thread(compat::tsl::Env::Default(), "worker");
    for (int i = 0; i < 100; ++i) thread.Schedule([&order, i] { order.push_back(i); });
  }
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST(CompatRunnerTest, OfAPromiseOnceTheFirstSetWins) {
  auto [promise, future] = compat::tsl::MakePromiseOnce<int>();
  compat::tsl::PromiseOnce<int> copy = promise;
  copy.Set(1);
  promise.Set(2);
  EXPECT_EQ(*future.Await(), 1);
}

namespace using_tsl {
using compat::tsl::BlockUntilReady;
template <typename Value, typename = void>
struct FindsOne : std::false_type {};
template <typename Value>
struct FindsOne<Value, std::void_t<decltype(BlockUntilReady(std::declval<const Value&>()))>> : std::true_type {};
}  // namespace using_tsl

TEST(UpstreamDifferencesTest, AnUnqualifiedCallIsAmbiguous) {
  static_assert(!using_tsl::FindsOne<AsyncValueRef<int>>::value, "the row of docs/adopting.md is out of date");
  compat::tsl::BlockUntilReady(MakeAvailableAsyncValueRef<int>(1));
}

TEST(UpstreamDifferencesTest, ASpareThreadHasNoNumber) {
  std::vector<int> ids(4, -2);
  compat::tsl::thread::ThreadPool pool(nullptr, "spares", 2);
  AllAtOnce(
      ids.size(), [&](auto task) { pool.Schedule(std::move(task)); },
      [&](std::size_t i) { ids[i] = pool.CurrentThreadId(); });
  std::sort(ids.begin(), ids.end());
  // Four at once, and two threads: at least two are spares.
  EXPECT_EQ(ids[0], -1);
  EXPECT_EQ(ids[1], -1);
  EXPECT_LT(ids[3], pool.NumThreads());
}

TEST(UpstreamDifferencesTest, ErrorsAreValues) {
  const AsyncValueRef<int> failed = AbortedError("x");
  static_assert(std::is_same_v<decltype(failed.GetError()), Status>);
  static_assert(std::is_same_v<decltype(failed.GetErrorIfPresent()), std::optional<Status>>);
  static_assert(!std::is_convertible_v<std::optional<Status>, const Status*>);
  const Status& kept = failed.GetError();  // Lives as long as the reference, as upstream's does.
  EXPECT_TRUE(IsAborted(kept));
  EXPECT_TRUE(IsAborted(*failed.GetErrorIfPresent()));
  EXPECT_FALSE(MakeAvailableAsyncValueRef<int>(1).GetErrorIfPresent().has_value());
}

TEST(UpstreamDifferencesTest, AReleasedReferenceKeepsItsType) {
  AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(4);
  static_assert(std::is_same_v<decltype(value.release()), AsyncValuePtr<int>>);
  const AsyncValuePtr<int> released = value.release();
  EXPECT_FALSE(value);  // NOLINT(bugprone-use-after-move): the contract.
  EXPECT_EQ(released.value()->get<int>(), 4);
  const compat::tsl::RCReference<compat::tsl::AsyncValue> taken = compat::tsl::TakeRef(released.value());
  EXPECT_TRUE(taken->IsUnique());
}

}  // namespace
}  // namespace purlin
