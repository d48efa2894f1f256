// Rule 3: no stranger's code under our locks. A waiter, a task, an executor and the destructors of their closures may
// call everything again, and may wait for other threads that do.
//
// Here: strangers that wait for another thread which uses the same object: under a lock of ours that would be a
// deadlock. Elsewhere: attaching and dropping inside waiters in event_test.cc and async_value_test.cc, joins inside
// callbacks in future_join_test.cc, nesting in event_stack_test.cc.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

#include "purlin/async_value.h"
#include "purlin/count_down.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

using Pool = ThreadPoolAsyncWorkRunner;

/// Calls `f` on another thread and waits for it.
template <typename F>
void Elsewhere(F f) {
  std::thread(std::move(f)).join();
}

/// Calls `f` when it is destroyed, unless it was moved from.
template <typename F>
struct AtEnd {
  explicit AtEnd(F call) : f(std::move(call)) {}
  AtEnd(AtEnd&& other) noexcept : f(std::move(other.f)), armed(std::exchange(other.armed, false)) {}
  ~AtEnd() {
    if (armed) f();
  }
  F f;
  bool armed = true;
};

TEST(R3NoStrangersUnderLocks, WhileAWaiterRunsOtherThreadsUseItsEvent) {
  for (const bool fails : {false, true}) {
    EventPromise promise("p");
    const Event event = promise.event();
    const Event joined = WhenAll({event, Event()});
    int ran = 0;
    event.OnReady([&] {
      Elsewhere([&] {
        const Event copy = event;
        event.OnReady([&ran] { ++ran; });
        ran += copy.WaitFor(std::chrono::hours(1)).ok() == fails ? 100 : 1;
        ran += promise.SetReady() ? 100 : 1;
        WhenAll({copy, event}).OnReady([&ran] { ++ran; });
      });
    });
    event.OnReady([&ran] { ++ran; });
    promise.Set(fails ? AbortedError("x") : OkStatus());
    EXPECT_EQ(ran, 5);
    EXPECT_TRUE(joined.IsReady());
  }
}

TEST(R3NoStrangersUnderLocks, WhileAWaiterRunsOtherThreadsUseItsValue) {
  const NoLeak no_leak;
  const auto value = MakeUnconstructedAsyncValueRef<Counted>();
  const auto shown = MakeIndirectAsyncValueRef<Counted>();
  ASSERT_TRUE(shown.ForwardTo(value));
  int ran = 0;
  value.AndThen([&] {
    Elsewhere([&] {
      value.AndThen([&ran] { ++ran; });
      ran += value.Wait().ok() && value->value == 4 ? 1 : 100;
      ran += value.SetError(AbortedError("late")) ? 100 : 1;
      ran += *value.Map([](Counted& counted) { return counted.value; }) == 4 ? 1 : 100;
    });
  });
  shown.AndThen([&] { Elsewhere([&] { ran += shown.CopyRef()->value == 4 ? 1 : 100; }); });
  value.emplace(4);
  EXPECT_EQ(ran, 5);
}

TEST(R3NoStrangersUnderLocks, WhileAWaiterOfACountDownRunsOtherThreadsCount) {
  CountDownAsyncValueRef<Chain> all(2);
  bool counted_below_zero = true;
  all.AsRef().AndThen([&] { Elsewhere([&] { counted_below_zero = all.CountDown(AbortedError("late")); }); });
  all.CountDown();
  EXPECT_TRUE(all.CountDown());
  EXPECT_FALSE(counted_below_zero);
}

TEST(R3NoStrangersUnderLocks, TheDestructorOfAWaiterMayUseItsEvent) {
  EventPromise promise("p");
  const Event event = promise.event();
  int ran = 0;
  event.OnReady([end = AtEnd([&] {
                   Elsewhere([&] { event.OnReady([&ran] { ++ran; }); });
                   event.OnReady([&ran] { ++ran; });
                 })] {});
  promise.SetReady();
  EXPECT_EQ(ran, 2);
}

TEST(R3NoStrangersUnderLocks, TheDestructorOfAPayloadMayUseOtherValues) {
  const auto other = MakeUnconstructedAsyncValueRef<int>();
  struct Payload {
    AsyncValueRef<int> next;
    explicit Payload(AsyncValueRef<int> n) : next(std::move(n)) {}
    Payload(Payload&&) = default;
    ~Payload() {
      if (next) Elsewhere([this] { next.emplace(1); });
    }
  };
  auto value = MakeConstructedAsyncValueRef<Payload>(other);
  int ran = 0;
  other.AndThen([&ran] { ++ran; });
  value.SetError(AbortedError("x"));
  EXPECT_EQ(ran, 1) << "the error destroyed the payload, which completed the other value";
}

TEST(R3NoStrangersUnderLocks, TheDestructorOfARefusedTaskMayUseThePool) {
  Pool pool = Pool::Create({1, "test"}).value();
  ASSERT_TRUE(pool.Shutdown().ok());
  Status inner;
  EXPECT_TRUE(IsCancelled(pool.Schedule([end = AtEnd([&] {
                                           Elsewhere([&] { inner = pool.Schedule([] {}); });
                                           static_cast<void>(pool.Shutdown());
                                         })] {})));
  EXPECT_TRUE(IsCancelled(inner)) << inner;
}

TEST(R3NoStrangersUnderLocks, TheDestructorOfATaskThatRanMayUseThePool) {
  Pool pool = Pool::Create({1, "test"}).value();
  EventPromise done("done");
  const Event event = done.event();
  ASSERT_TRUE(pool.Schedule([end = AtEnd([&pool, &done] {
                               Elsewhere([&] { EXPECT_TRUE(pool.Schedule([&done] { done.SetReady(); }).ok()); });
                             })] {})
                  .ok());
  EXPECT_TRUE(event.Wait().ok());
}

/// Completes what it was asked for, and uses the value on another thread, before it has taken the task.
class NosyExecutor final : public Executor {
 public:
  Status Execute(Task task) override {
    Elsewhere([this] { value.AndThen([this] { ++ran; }); });
    std::move(task).Run();
    return OkStatus();
  }
  AsyncValueRef<int> value;
  int ran = 0;
};

TEST(R3NoStrangersUnderLocks, AnExecutorMayUseTheValueWhoseTaskItIsGiven) {
  NosyExecutor executor;
  executor.value = MakeUnconstructedAsyncValueRef<int>();
  int ran = 0;
  executor.value.AndThen(executor, [&ran] { ++ran; });
  const auto mapped = executor.value.Map(executor, [](int& n) { return n + 1; });
  executor.value.emplace(1);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(*mapped, 2);
  EXPECT_EQ(executor.ran, 2);
}

}  // namespace
}  // namespace purlin
