// Rule 10: error paths have the same accounting as success: references, payloads, closures and tasks.
//
// Each case runs once to a value and once to an error, and the counts must be equal at the end. Elsewhere: errors by
// exceptions in exception_test.cc and coroutine_exception_test.cc, memory in buffer_test.cc and raw_buffer_test.cc.
#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/count_down.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/run_when_ready.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

using Pool = ThreadPoolAsyncWorkRunner;

/// Completes `value` with a value or with an error.
template <typename T>
void Complete(const AsyncValueRef<T>& value, bool fails) {
  if (fails) {
    EXPECT_TRUE(value.SetError(AbortedError("x")));
  } else {
    EXPECT_TRUE(value.emplace(1));
  }
}

class R10ErrorPathsKeepTheAccounting : public testing::TestWithParam<bool> {
 protected:
  bool fails() const { return GetParam(); }

 private:
  NoLeak no_leak_;
};

INSTANTIATE_TEST_SUITE_P(ValueAndError, R10ErrorPathsKeepTheAccounting, testing::Bool(),
                         [](const auto& instance) { return instance.param ? "Error" : "Value"; });

TEST_P(R10ErrorPathsKeepTheAccounting, OfWaitersAndTheirClosures) {
  const int alive = Counted::alive.load();
  const auto value = MakeUnconstructedAsyncValueRef<Counted>();
  int called = 0;
  value.AndThen([&called, held = Counted(0)] { ++called; });
  value.AndThen([&called, held = Counted(0)](const Status&) { ++called; });
  value.AndThen([&called, held = Counted(0)](StatusOr<Counted*>) { ++called; });
  EXPECT_EQ(Counted::alive.load(), alive + 3);
  Complete(value, fails());
  EXPECT_EQ(called, 3);
  EXPECT_EQ(Counted::alive.load(), alive + (fails() ? 0 : 1)) << "the payload, and no closure";
  EXPECT_EQ(value.NumRef(), 1U);
  EXPECT_FALSE(value.HasWaiter());
}

TEST_P(R10ErrorPathsKeepTheAccounting, OfMapsAndTheirClosures) {
  const auto value = MakeUnconstructedAsyncValueRef<Counted>();
  DeferredExecutor executor;
  const auto mapped = value.Map([held = Counted(0)](Counted& counted) { return Counted(counted.value); });
  const auto tried = value.TryMap([held = Counted(0)](Counted& counted) -> StatusOr<Counted> { return counted; });
  const auto flat = value.FlatMap([held = Counted(0)](Counted&) { return MakeAvailableAsyncValueRef<Counted>(2); });
  const auto later = value.Map(executor, [held = Counted(0)](Counted& counted) { return Counted(counted.value); });
  Complete(value, fails());
  EXPECT_EQ(executor.tasks, fails() ? 0 : 1) << "an error needs no task";
  executor.RunAll();
  for (const AsyncValueRef<Counted>* result : {&mapped, &tried, &flat, &later}) {
    ASSERT_TRUE(result->IsAvailable());
    EXPECT_EQ(result->GetError(), fails() ? AbortedError("x") : OkStatus());
    EXPECT_EQ(result->NumRef(), 1U);
  }
  EXPECT_EQ(value.NumRef(), 1U);
}

TEST_P(R10ErrorPathsKeepTheAccounting, OfFunctionsThatFail) {
  const auto value = MakeAvailableAsyncValueRef<Counted>(1);
  const bool fail = fails();
  const auto tried = value.TryMap([fail, held = Counted(0)](Counted& counted) -> StatusOr<Counted> {
    if (fail) return AbortedError("x");
    return counted;
  });
  const auto flat = value.FlatMap([fail, held = Counted(0)](Counted&) -> AsyncValueRef<Counted> {
    if (fail) return AbortedError("x");
    return MakeAvailableAsyncValueRef<Counted>(2);
  });
  EXPECT_EQ(tried.IsError(), fail);
  EXPECT_EQ(flat.IsError(), fail);
  EXPECT_EQ(value.NumRef(), 1U);
}

TEST_P(R10ErrorPathsKeepTheAccounting, OfPayloadsThatWereNotPublished) {
  const int alive = Counted::alive.load();
  const auto value = MakeConstructedAsyncValueRef<Counted>(1);
  if (fails()) {
    EXPECT_TRUE(value.SetError(AbortedError("x")));
    EXPECT_EQ(Counted::alive.load(), alive) << "the error destroyed it";
  } else {
    EXPECT_TRUE(value.SetStateConcrete());
    EXPECT_EQ(Counted::alive.load(), alive + 1);
  }
}

TEST_P(R10ErrorPathsKeepTheAccounting, OfForwards) {
  const auto source = MakeUnconstructedAsyncValueRef<Counted>();
  {
    const auto shown = MakeIndirectAsyncValueRef<Counted>();
    ASSERT_TRUE(shown.ForwardTo(source));
    Complete(source, fails());
    EXPECT_EQ(shown.IsError(), fails());
    EXPECT_EQ(source.NumRef(), fails() ? 1U : 2U) << "what shows a value keeps it; an error is shared by itself";
  }
  EXPECT_EQ(source.NumRef(), 1U);
}

TEST_P(R10ErrorPathsKeepTheAccounting, OfJoins) {
  EventPromise a("a");
  EventPromise b("b");
  const std::vector<Event> events = {a.event(), b.event()};
  const Event all = WhenAll(events);
  int called = 0;
  all.OnReady([&called, held = Counted(0)] { ++called; });
  a.Set(fails() ? AbortedError("x") : OkStatus());
  EXPECT_EQ(called, 0);
  b.SetReady();
  EXPECT_EQ(called, 1);
  EXPECT_EQ(all.error(), fails() ? AbortedError("x") : OkStatus());
  EXPECT_EQ(all.NumRef(), 1U);
  for (const Event& event : events) EXPECT_EQ(event.NumRef(), 2U) << "its promise and this list";
}

TEST_P(R10ErrorPathsKeepTheAccounting, OfRunWhenReady) {
  CountingExecutor executor;
  const std::vector<AsyncValueRef<Counted>> values = {MakeUnconstructedAsyncValueRef<Counted>(),
                                                      MakeUnconstructedAsyncValueRef<Counted>()};
  int called = 0;
  RunWhenReady(values, [&called, held = Counted(0)] { ++called; });
  RunWhenReady(values, [&called, held = Counted(0)](const Status&) { ++called; });
  RunWhenReady(values, executor, [&called, held = Counted(0)](const Status&) { ++called; });
  for (const auto& value : values) Complete(value, fails());
  EXPECT_EQ(called, 3);
  EXPECT_EQ(executor.tasks, 1);
  for (const auto& value : values) EXPECT_EQ(value.NumRef(), 1U);
}

TEST_P(R10ErrorPathsKeepTheAccounting, OfCountDowns) {
  for (const bool fail_fast : {false, true}) {
    CountDownAsyncValueRef<Counted> counter(3, {ErrorPolicy::kFirstInTime, fail_fast});
    const AsyncValueRef<Counted> value = counter.AsRef();
    counter.CountDown(fails() ? AbortedError("x") : OkStatus());
    EXPECT_EQ(counter.left(), 2U);
    EXPECT_EQ(value.IsAvailable(), fails() && fail_fast);
    counter.CountDown();
    counter.CountDown();
    EXPECT_EQ(counter.left(), 0U);
    EXPECT_EQ(value.GetError(), fails() ? AbortedError("x") : OkStatus());
    counter = CountDownAsyncValueRef<Counted>();
    EXPECT_EQ(value.NumRef(), 1U);
  }
}

TEST_P(R10ErrorPathsKeepTheAccounting, OfTasksThatWaitForEvents) {
  Pool pool = Pool::Create({1, "test"}).value();
  EventPromise gate("gate");
  EventPromise done("done");
  Status seen = InternalError("not called");
  ASSERT_TRUE(pool.ScheduleWhenReady({gate.event()},
                                     [&, held = Counted(0)](const Status& status) {
                                       seen = status;
                                       done.SetReady();
                                     })
                  .ok());
  gate.Set(fails() ? AbortedError("x") : OkStatus());
  ASSERT_TRUE(done.event().Wait().ok());
  ASSERT_TRUE(pool.Shutdown().ok());
  EXPECT_EQ(seen, fails() ? AbortedError("x") : OkStatus());
  EXPECT_EQ(gate.event().NumRef(), 2U) << "its promise, and the one that was just made";
}

TEST_P(R10ErrorPathsKeepTheAccounting, OfExecutorsThatRefuse) {
  RefusingExecutor refusing;
  CountingExecutor accepting;
  Executor& executor = fails() ? static_cast<Executor&>(refusing) : accepting;
  const auto value = MakeAvailableAsyncValueRef<Counted>(1);
  const auto mapped = value.Map(executor, [held = Counted(0)](Counted& counted) { return Counted(counted.value); });
  value.AndThen(executor, [held = Counted(0)] {});
  EXPECT_EQ(mapped.IsError(), fails());
  EXPECT_EQ(value.NumRef(), 1U);
  EXPECT_EQ(mapped.NumRef(), 1U);
}

TEST_P(R10ErrorPathsKeepTheAccounting, OfWaitsThatGiveUp) {
  const auto value = MakeUnconstructedAsyncValueRef<Counted>();
  if (fails()) {
    EXPECT_TRUE(IsDeadlineExceeded(value.WaitFor(std::chrono::nanoseconds(1'000))));
  }
  EXPECT_EQ(value.NumRef(), 1U);
  value.emplace(1);
  EXPECT_TRUE(value.Wait().ok());
  EXPECT_EQ(value.NumRef(), 1U);
}

}  // namespace
}  // namespace purlin
