// Exceptions in coroutines. Compiled with exceptions and RTTI, as exception_test.cc.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "purlin/coroutine.h"

namespace purlin {
namespace {

CoTask<int> Throws(Event event) {
  const Status status = co_await event;
  throw std::runtime_error("no such layer");
  co_return status.ok() ? 1 : 2;
}

TEST(CoroutineExceptionTest, FromABodyIsTheErrorOfTheTask) {
  EventPromise gate("gate");
  const AsyncValueRef<int> pending = Throws(gate.event()).Start("layer");
  gate.SetReady();
  for (const Status& error : {pending.GetError(), Throws(Event()).Start().GetError()}) {
    EXPECT_TRUE(IsInternal(error)) << error;
    EXPECT_NE(error.message().find("no such layer"), std::string::npos) << error;
  }
}

TEST(CoroutineExceptionTest, ThatIsNoStdExceptionIsToo) {
  auto throws = []() -> CoTask<> {
    throw 5;
    co_return;
  };
  EXPECT_TRUE(IsInternal(throws().Start().error()));
}

TEST(CoroutineExceptionTest, ReachesTheAwaitingTaskAsAnError) {
  auto outer = []() -> CoTask<std::string> {
    StatusOr<int> inner = co_await Throws(Event());
    co_return std::string(inner.status().message());
  };
  const AsyncValueRef<std::string> seen = outer().Start();
  ASSERT_TRUE(seen.IsConcrete()) << seen.GetError();
  EXPECT_NE(seen->find("no such layer"), std::string::npos);
}

struct ThrowsWhenMoved {
  explicit ThrowsWhenMoved(int left_in) : left(left_in) {}
  ThrowsWhenMoved(ThrowsWhenMoved&& other) : left(other.left - 1) {
    if (left < 0) throw std::runtime_error("moved too often");
  }
  int left;
};

TEST(CoroutineExceptionTest, FromAMoveOfTheResultIsItsError) {
  auto make = [](int moves) -> CoTask<ThrowsWhenMoved> { co_return ThrowsWhenMoved(moves); };
  bool arrived = false;
  for (int moves = 0; moves < 10; ++moves) {
    const AsyncValueRef<ThrowsWhenMoved> result = make(moves).Start();
    ASSERT_TRUE(result.IsAvailable());
    arrived = result.IsConcrete();
    if (!arrived) {
      EXPECT_NE(result.GetError().message().find("moved too often"), std::string::npos) << result.GetError();
    }
  }
  EXPECT_TRUE(arrived) << "with enough moves to spend";
}

}  // namespace
}  // namespace purlin
