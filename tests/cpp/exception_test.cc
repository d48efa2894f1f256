// Exceptions of user code stop at the boundary. Compiled with exceptions; the library is compiled without.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/async_value_storage.h"
#include "purlin/cancel.h"
#include "purlin/elastic_pool.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/inline_executor.h"
#include "purlin/semaphore.h"
#include "purlin/serial_queue.h"
#include "purlin/stall.h"
#include "purlin/user_context.h"

#if !defined(__cpp_exceptions)
#error "this file tests exceptions"
#endif

namespace purlin {
namespace {

/// What `f` prints on stderr.
template <typename F>
std::string StderrOf(F f) {
  testing::internal::CaptureStderr();
  f();
  return testing::internal::GetCapturedStderr();
}

TEST(ExceptionTest, FromAWaiterIsReportedAndTheOthersRun) {
  EventPromise promise("p");
  std::vector<int> ran;
  promise.event().OnReady([&ran] { ran.push_back(1); });
  promise.event().OnReady([] { throw std::runtime_error("waiter boom"); });
  promise.event().OnReady([&ran] { ran.push_back(3); });
  const std::string text = StderrOf([&promise] { EXPECT_TRUE(promise.SetReady()); });
  EXPECT_EQ(ran, (std::vector<int>{1, 3}));
  EXPECT_EQ(text, "purlin: exception in waiter: waiter boom\n");
}

TEST(ExceptionTest, FromAWaiterOfATerminalEventIsReported) {
  const std::string text = StderrOf([] { Event::Ready().OnReady([] { throw std::runtime_error("at once"); }); });
  EXPECT_EQ(text, "purlin: exception in waiter: at once\n");
}

TEST(ExceptionTest, ThatIsNoStdExceptionIsReportedAsThat) {
  const std::string text = StderrOf([] { Event::Ready().OnReady([] { throw 42; }); });
  EXPECT_EQ(text, "purlin: exception in waiter: not a std::exception\n");
}

TEST(ExceptionTest, FromATaskIsReportedAndThePoolLives) {
  StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({1, "throwing"});
  ASSERT_TRUE(pool.ok()) << pool.status();
  EventPromise promise("owed by the task that throws");
  const Event event = promise.event();
  std::atomic<int> ran{0};
  const std::string text = StderrOf([&] {
    ASSERT_TRUE(pool->Schedule([promise = std::move(promise)] { throw std::runtime_error("task boom"); }).ok());
    ASSERT_TRUE(pool->Schedule([&ran] { ran.fetch_add(1); }).ok());
    ASSERT_TRUE(pool->Shutdown().ok());
  });
  EXPECT_EQ(ran.load(), 1);
  EXPECT_EQ(text, "purlin: exception in task: task boom\n");
  EXPECT_TRUE(IsInternal(event.error())) << "the closure was destroyed, and with it the promise";
}

TEST(ExceptionTest, FromALoopBodyIsInternalAndTheOtherRangesRun) {
  StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({2, "loop"});
  ASSERT_TRUE(pool.ok()) << pool.status();
  std::vector<std::atomic<int>> visits(10);
  Status status;
  const std::string text = StderrOf([&] {
    status = pool->ParallelFor(visits.size(), Grain(1), [&visits](std::size_t begin, std::size_t) {
      visits[begin].fetch_add(1);
      if (begin == 3 || begin == 7) throw std::runtime_error("loop boom");
    });
  });
  EXPECT_TRUE(IsInternal(status)) << status;
  EXPECT_NE(status.message().find("[3, 4) threw"), std::string::npos) << status;
  EXPECT_NE(text.find("purlin: exception in ParallelFor: loop boom\n"), std::string::npos) << text;
  for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit.load(), 1);
}

TEST(ExceptionTest, FromADeferredWaiterIsReported) {
  std::vector<EventPromise> promises;
  for (int i = 0; i < 100; ++i) promises.emplace_back("link");
  for (std::size_t i = 0; i + 1 < promises.size(); ++i) {
    promises[i].event().OnReady([&promises, i] {
      promises[i + 1].SetReady();
      if (i == 90) throw std::runtime_error("deep boom");
    });
  }
  const std::string text = StderrOf([&promises] { promises[0].SetReady(); });
  EXPECT_EQ(text, "purlin: exception in waiter: deep boom\n");
  EXPECT_TRUE(promises.back().event().IsReady());
}

/// Its constructor throws if `throws`.
struct Thrower {
  explicit Thrower(bool throws) {
    if (throws) throw std::runtime_error("constructor boom");
  }
};

TEST(ExceptionTest, FromAConstructorOfAValueIsItsError) {
  const Status expected = InternalError("making the value threw: constructor boom");
  auto emplaced = MakeUnconstructedAsyncValueRef<Thrower>();
  Status seen;
  emplaced.AndThen([&seen](Status status) { seen = std::move(status); });
  EXPECT_TRUE(emplaced.emplace(true)) << "the value was completed, with an error";
  EXPECT_EQ(emplaced.GetError(), expected);
  EXPECT_EQ(seen, expected);
  EXPECT_FALSE(emplaced.emplace(false));
  EXPECT_EQ(MakeAvailableAsyncValueRef<Thrower>(true).GetError(), expected);
  EXPECT_EQ(MakeConstructedAsyncValueRef<Thrower>(true).GetError(), expected);
  EXPECT_TRUE(MakeConstructedAsyncValueRef<Thrower>(false).IsConstructed());
  ScopedAsyncValue<Thrower> scoped(ScopedAsyncValue<Thrower>::Available{}, true);
  EXPECT_EQ(scoped.AsPtr().GetError(), expected);
  auto indirect = MakeIndirectAsyncValueRef<Thrower>();
  EXPECT_TRUE(indirect.emplace(true));
  EXPECT_EQ(indirect.GetError(), expected);
}

TEST(ExceptionTest, FromAMapperIsTheErrorOfTheResult) {
  auto throws = [](int) -> int { throw std::runtime_error("mapper boom"); };
  auto tries = [](int) -> StatusOr<int> { throw std::runtime_error("mapper boom"); };
  auto flat = [](int) -> AsyncValueRef<int> { throw 42; };
  auto pending = MakeUnconstructedAsyncValueRef<int>();
  for (const AsyncValueRef<int>& value : {MakeAvailableAsyncValueRef<int>(1), pending}) {
    const std::vector<AsyncValueRef<int>> results{value.Map(throws), value.TryMap(tries), value.FlatMap(flat)};
    pending.emplace(1);
    EXPECT_EQ(results[0].GetError(), InternalError("making the value threw: mapper boom"));
    EXPECT_EQ(results[1].GetError(), InternalError("making the value threw: mapper boom"));
    EXPECT_EQ(results[2].GetError(), InternalError("FlatMap's function threw what is no std::exception"));
  }
}

TEST(ExceptionTest, FromAnExecutorFailsTheResult) {
  struct ThrowingExecutor final : Executor {
    Status Execute(Task) override { throw std::runtime_error("executor boom"); }
  };
  ThrowingExecutor executor;
  EXPECT_EQ(MakeAsyncValueRef(executor, [] { return 1; }).GetError(),
            InternalError("Executor::Execute threw: executor boom"));
}

TEST(ExceptionTest, FromAWaiterOfAValueIsReportedAndTheOthersRun) {
  auto value = MakeUnconstructedAsyncValueRef<int>();
  int ran = 0;
  value.AndThen([](Status) { throw std::runtime_error("waiter boom"); });
  value.AndThen([&ran] { ++ran; });
  const std::string text = StderrOf([&value] { EXPECT_TRUE(value.emplace(1)); });
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(text, "purlin: exception in waiter: waiter boom\n");
}

TEST(ExceptionTest, LeavesTheUserContextAsItWas) {
  const UserContext outer = UserContext::Create("outer");
  const UserContext inner = UserContext::Create("inner");
  const UserContextScope scope(outer);
  auto throwing = WithUserContext(inner, [] { throw std::runtime_error("boom"); });
  EXPECT_THROW(throwing(), std::runtime_error);
  EXPECT_EQ(CurrentUserContext(), outer);
  EventPromise promise("p");
  promise.OnReady(throwing);
  const std::string text = StderrOf([&promise] { EXPECT_TRUE(promise.SetReady()); });
  EXPECT_EQ(text, "purlin: exception in waiter: boom\n");
  EXPECT_EQ(CurrentUserContext(), outer);
}

TEST(ExceptionTest, FromAnOriginIsReportedAndSaid) {
  const UserContext context = UserContext::Create([]() -> std::string { throw std::runtime_error("no text"); });
  std::string rendered;
  const std::string text = StderrOf([&] { rendered = context.DebugString(); });
  EXPECT_EQ(text, "purlin: exception in user context: no text\n");
  EXPECT_EQ(rendered, "(the closure that renders this context threw)");
}

TEST(ExceptionTest, FromACancelCallbackIsReportedAndTheOthersRun) {
  const CancelSource source;
  int ran = 0;
  const CancelRegistration bad = source.token().OnCancel([] { throw std::runtime_error("cancel boom"); });
  const CancelRegistration good = source.token().OnCancel([&ran] { ++ran; });
  const std::string text = StderrOf([&source] { EXPECT_TRUE(source.Cancel()); });
  EXPECT_EQ(text, "purlin: exception in callback: cancel boom\n");
  EXPECT_EQ(ran, 1);
}

TEST(ExceptionTest, FromASemaphoresCallbackGivesItsUnitsBack) {
  const Semaphore semaphore("s", 1);
  const std::string text = StderrOf([&] { semaphore.AcquireAsync(1, [](const StatusOr<Permit>&) { throw 1; }); });
  EXPECT_EQ(text, "purlin: exception in callback: not a std::exception\n");
  EXPECT_EQ(semaphore.available(), 1U);
}

TEST(ExceptionTest, FromATaskOfASerialQueueIsReportedUnderItsLabelAndTheNextOneRuns) {
  SerialQueue queue = SerialQueue::Create(std::make_shared<InlineExecutor>()).value();
  int ran = 0;
  const std::string text = StderrOf([&] {
    EXPECT_TRUE(queue.Schedule([] { throw std::runtime_error("boom"); }, "appending").ok());
    EXPECT_TRUE(queue.Schedule([&ran] { ++ran; }).ok());
  });
  EXPECT_EQ(text, "purlin: exception in appending: boom\n");
  EXPECT_EQ(ran, 1);
}

TEST(ExceptionTest, FromATaskOfAnElasticPoolIsReportedUnderItsLabelAndTheNextOneRuns) {
  ElasticPoolOptions options;
  options.max_threads = 1;
  ElasticPool pool = ElasticPool::Create(options).value();
  std::atomic<int> ran{0};
  const std::string text = StderrOf([&] {
    EXPECT_TRUE(pool.Schedule([] { throw std::runtime_error("boom"); }, "loading").ok());
    EXPECT_TRUE(pool.Schedule([&ran] { ran.fetch_add(1); }).ok());
    EXPECT_TRUE(pool.Shutdown().ok());
  });
  EXPECT_EQ(text, "purlin: exception in loading: boom\n");
  EXPECT_EQ(ran.load(), 1);
}

TEST(ExceptionTest, FromAnExecutorOfTheUsersIsAnErrorAndTheTaskIsDestroyed) {
  struct Throwing final : Executor {
    Status Execute(Task) override { throw std::runtime_error("executor boom"); }
  };
  SerialQueue queue = SerialQueue::Create(std::make_shared<Throwing>()).value();
  EventPromise promise("owed");
  const Event owed = promise.event();
  Status status;
  const std::string text =
      StderrOf([&] { status = queue.Schedule([promise = std::move(promise)]() mutable { promise.SetReady(); }); });
  EXPECT_TRUE(IsInternal(status)) << status;
  EXPECT_EQ(text, "purlin: exception in Executor::Execute: executor boom\n");
  EXPECT_TRUE(IsInternal(owed.error())) << owed.error();
  EXPECT_FALSE(queue.HasBacklog());
}

TEST(ExceptionTest, FromASinkOfAWatchdogIsReportedAndItGoesOn) {
  WatchdogOptions options;
  options.older_than = std::chrono::milliseconds(20);
  options.action = WatchdogAction::kPoison;
  options.sink = [](std::string_view) { throw std::runtime_error("sink boom"); };
  EventPromise promise("stuck");
  const std::string text = StderrOf([&] {
    const StatusOr<Watchdog> watchdog = Watchdog::Start(std::move(options));
    ASSERT_TRUE(watchdog.ok()) << watchdog.status();
    EXPECT_TRUE(IsDeadlineExceeded(promise.event().Wait()));
  });
  EXPECT_NE(text.find("purlin: exception in Watchdog sink: sink boom\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace purlin
