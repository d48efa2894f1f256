// Where Purlin behaves otherwise than tsl under the same name: rows of docs/adopting.md that no other test is of.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/async_value_cast.h"
#include "purlin/compat/tsl.h"
#include "purlin/executor.h"
#include "purlin/status.h"

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
