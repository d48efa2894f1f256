// Task, Executor, ThreadPoolAsyncWorkRunner, ElasticPool, InlineExecutor, SerialQueue, TaskOptions.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/elastic_pool.h"
#include "purlin/executor.h"
#include "purlin/inline_executor.h"
#include "purlin/serial_queue.h"
#include "purlin/task_options.h"
#include "tests/cpp/testing.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

Task Empty() {
  Task task([] {});
  const Task taken = std::move(task);
  return task;
}
StatusOr<ThreadPoolAsyncWorkRunner> Pool(std::size_t threads, std::string_view name) {
  ThreadPoolOptions options;
  options.thread_count = threads;
  options.name = name;
  return ThreadPoolAsyncWorkRunner::Create(options);
}
StatusOr<ElasticPool> Elastic(std::size_t threads, std::string_view name = "elastic", std::size_t stack = 0) {
  ElasticPoolOptions options;
  options.max_threads = threads;
  options.name = name;
  options.stack_size_bytes = stack;
  return ElasticPool::Create(options);
}

/// Holds a task that the test does not wait for: it may end after its test.
struct Gate {
  std::promise<void> begun, go;
};

// Task ----------------------------------------------------------------------------------------------------------------

TEST(TaskMisuse, AnEmptyTaskRunsNothing) {
  Task task = Empty();
  EXPECT_FALSE(task);
  std::move(task).Run();
  std::move(task).Run();
}

TEST(TaskMisuse, ATaskRunsOnce) {
  NoLeak no_leak;
  int calls = 0;
  Task task([&calls, kept = Counted(1)] { ++calls; });
  std::move(task).Run();
  std::move(task).Run();
  EXPECT_EQ(calls, 1);
}

TEST(TaskMisuse, ATaskThatIsReplacedIsDestroyedUncalled) {
  NoLeak no_leak;
  bool called = false;
  Task task([&called, kept = Counted(1)] { called = true; });
  task = Task([] {});
  EXPECT_FALSE(called);
}

TEST(TaskMisuse, AClosureOfAMegabyteAndOneOfOddAlignment) {
  struct alignas(256) Odd {
    char bytes[256] = {};
  };
  struct Huge {
    char bytes[1 << 20] = {};
  };
  const auto huge = std::make_unique<Huge>();
  int calls = 0;
  Task big([&calls, copy = *huge] { calls += copy.bytes[77] + 1; });
  std::move(big).Run();
  Task odd([&calls, odd = Odd()] { calls += reinterpret_cast<std::uintptr_t>(&odd) % 256 == 0 ? 1 : 100; });
  std::move(odd).Run();
  EXPECT_EQ(calls, 2);
}

TEST(TaskMisuse, ATaskMayDestroyWhatHoldsIt) {
  auto holder = std::make_unique<std::optional<Task>>();
  bool called = false;
  holder->emplace([&] {
    holder.reset();
    called = true;
  });
  Task task = std::move(**holder);
  std::move(task).Run();
  EXPECT_TRUE(called);
  EXPECT_EQ(holder, nullptr);
}

// Pool ----------------------------------------------------------------------------------------------------------------

TEST(PoolMisuse, TooManyThreadsAreRefusedByNumber) {
  EXPECT_TRUE(Fails(Pool(4097, "many"), StatusCode::kInvalidArgument, {"4097"}));
  EXPECT_TRUE(Fails(Pool(std::numeric_limits<std::size_t>::max(), "all"), StatusCode::kInvalidArgument,
                    {"18446744073709551615"}));
}

TEST(PoolMisuse, ANameThatIsNoneIsRefused) {
  EXPECT_TRUE(Fails(Pool(1, ""), StatusCode::kInvalidArgument, {"name"}));
  EXPECT_TRUE(Fails(Pool(1, std::string_view("a\0b", 3)), StatusCode::kInvalidArgument, {"name"}));
  EXPECT_TRUE(Fails(Pool(1, "\xFF\xFE"), StatusCode::kInvalidArgument, {"name"}));
}

TEST(PoolMisuse, ANameOfAThousandBytesIsCut) {
  auto pool = Pool(1, std::string(1000, 'x'));
  ASSERT_TRUE(Ok(pool));
  EXPECT_TRUE(Ok(pool->Shutdown()));
}

TEST(PoolMisuse, AnEmptyTaskIsRefused) {
  auto pool = PoolOf(1);
  EXPECT_TRUE(Fails(pool.Execute(Empty()), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(pool.ExecuteWhenReady({}, Empty()), StatusCode::kInvalidArgument));
}

TEST(PoolMisuse, AfterShutdownEverythingIsRefused) {
  NoLeak no_leak;
  auto pool = PoolOf(2, "ended");
  EXPECT_TRUE(Ok(pool.Shutdown()));
  EXPECT_TRUE(Fails(pool.Schedule([kept = Counted(1)] {}), StatusCode::kCancelled, {"ended"}));
  EXPECT_TRUE(Fails(pool.ExecuteWith(Task([] {}), TaskOptions()), StatusCode::kCancelled, {"ended"}));
  EventPromise promise("later"), owed("owed");
  const Event event = owed.event();
  static_cast<void>(pool.ScheduleWhenReady({promise.event()}, [owed = std::move(owed)] {}).ok());
  promise.SetReady();
  EXPECT_TRUE(Fails(event, StatusCode::kInternal, {"'owed'", "ended"}));
  int calls = 0;
  EXPECT_TRUE(Ok(pool.ParallelFor(3, Grain(1), [&calls](std::size_t, std::size_t) { ++calls; })));
  EXPECT_TRUE(Ok(pool.Join([&calls] { ++calls; }, [&calls] { ++calls; })));
  EXPECT_EQ(calls, 5);
  EXPECT_TRUE(Ok(pool.Shutdown()));
}

TEST(PoolMisuse, ShuttingDownFromItsOwnTaskIsRefused) {
  auto pool = PoolOf(1, "own");
  std::promise<Status> answer;
  ASSERT_TRUE(Ok(pool.Schedule([&] { answer.set_value(pool.Shutdown()); })));
  EXPECT_TRUE(Fails(answer.get_future().get(), StatusCode::kFailedPrecondition, {"own"}));
  EXPECT_TRUE(Ok(pool.Schedule([] {})));
}

TEST(PoolMisuse, AnUnknownShutdownModeChangesNothing) {
  auto pool = PoolOf(1);
  ShutdownOptions options;
  options.mode = static_cast<ShutdownMode>(99);
  EXPECT_TRUE(Fails(pool.Shutdown(options), StatusCode::kInvalidArgument, {"99"}));
  EXPECT_TRUE(Ok(pool.Schedule([] {})));
}

TEST(PoolMisuse, AnUnknownPriorityIsRefusedAndTheTaskDestroyed) {
  NoLeak no_leak;
  auto pool = PoolOf(1);
  TaskOptions options;
  options.priority = static_cast<Priority>(42);
  EXPECT_TRUE(Fails(pool.ExecuteWith(Task([kept = Counted(1)] {}), options), StatusCode::kInvalidArgument, {"42"}));
}

/// Drops the last handle of `pool` in a task of its own.
template <typename Pool>
void GoesInItsTask(std::shared_ptr<Pool> pool) {
  std::promise<void> gone;
  ASSERT_TRUE(Ok(pool->Schedule([&gone, kept = pool]() mutable {
    while (kept.use_count() > 1) std::this_thread::yield();
    kept.reset();
    gone.set_value();
  })));
  pool.reset();
  gone.get_future().wait();
}

TEST(PoolMisuse, TheLastHandleMayGoInATaskOfThePool) {
  GoesInItsTask(std::make_shared<ThreadPoolAsyncWorkRunner>(PoolOf(1, "last")));
}

TEST(PoolMisuse, TwoShutdownsAtOnceBothEnd) {
  for (int round = 0; round < 50; ++round) {
    auto pool = PoolOf(2);
    std::atomic<int> calls{0};
    for (int i = 0; i < 100; ++i) static_cast<void>(pool.Schedule([&calls] { ++calls; }).ok());
    Together(3, [&pool](int) { EXPECT_TRUE(Ok(pool.Shutdown())); });
    EXPECT_EQ(calls.load(), 100);
  }
}

TEST(PoolMisuse, SchedulingAgainstShutdownLosesNoTask) {
  for (int round = 0; round < 50; ++round) {
    auto pool = PoolOf(2);
    std::atomic<int> taken{0}, ran{0};
    Together(4, [&](int i) {
      if (i == 0) {
        EXPECT_TRUE(Ok(pool.Shutdown()));
        return;
      }
      for (int j = 0; j < 200; ++j) taken += pool.Schedule([&ran] { ++ran; }).ok() ? 1 : 0;
    });
    EXPECT_TRUE(Ok(pool.Shutdown()));
    EXPECT_EQ(taken.load(), ran.load());
  }
}

TEST(PoolMisuse, ADeadlineThatPassedNamesTheTaskThatRuns) {
  auto pool = PoolOf(1);
  const auto gate = std::make_shared<Gate>();
  ASSERT_TRUE(Ok(pool.Schedule(
      [gate] {
        gate->begun.set_value();
        gate->go.get_future().wait();
      },
      "the slow one")));
  gate->begun.get_future().wait();
  ShutdownOptions options;
  options.timeout_ns = 0;
  EXPECT_TRUE(Fails(pool.Shutdown(options), StatusCode::kDeadlineExceeded, {"the slow one"}));
  gate->go.set_value();
}

TEST(PoolMisuse, ADeadlineOfMinimumMeansForEver) {
  auto pool = PoolOf(1);
  ShutdownOptions options;
  options.timeout_ns = std::numeric_limits<std::int64_t>::min();
  EXPECT_TRUE(Ok(pool.Shutdown(options)));
}

TEST(PoolMisuse, ADeadlineOfMaximumDoesNotOverflow) {
  auto pool = PoolOf(1);
  ShutdownOptions options;
  options.timeout_ns = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(Ok(pool.Shutdown(options)));
}

TEST(PoolMisuse, CancellingDestroysWhatWaitsAndTellsItsPromises) {
  auto pool = PoolOf(1);
  const auto gate = std::make_shared<Gate>();
  ASSERT_TRUE(Ok(pool.Schedule([gate] {
    gate->begun.set_value();
    gate->go.get_future().wait();
  })));
  gate->begun.get_future().wait();
  EventPromise owed("owed by a queued task");
  const Event event = owed.event();
  ASSERT_TRUE(Ok(pool.Schedule([owed = std::move(owed)]() mutable { owed.SetReady(); })));
  ShutdownOptions options;
  options.mode = ShutdownMode::kCancelPending;
  options.timeout_ns = 0;
  EXPECT_TRUE(Fails(pool.Shutdown(options), StatusCode::kDeadlineExceeded));
  EXPECT_TRUE(Fails(event, StatusCode::kInternal, {"'owed by a queued task'"}));
  gate->go.set_value();
}

TEST(PoolMisuse, ParallelForOfNothingAndOfEverything) {
  auto pool = PoolOf(2);
  std::atomic<std::size_t> seen{0};
  EXPECT_TRUE(Ok(pool.ParallelFor(0, [&seen](std::size_t, std::size_t) { ++seen; })));
  EXPECT_EQ(seen.load(), 0U);
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  EXPECT_TRUE(
      Ok(pool.ParallelFor(most, Grain(most), [&seen](std::size_t begin, std::size_t end) { seen += end - begin; })));
  EXPECT_EQ(seen.load(), most);
  seen = 0;
  EXPECT_TRUE(Ok(pool.ParallelFor(most, [&seen](std::size_t begin, std::size_t end) { seen += end - begin; })));
  EXPECT_EQ(seen.load(), most);
}

TEST(PoolMisuse, ParallelForInParallelForInTasks) {
  auto pool = PoolOf(2);
  std::atomic<int> calls{0};
  EXPECT_TRUE(Ok(pool.ParallelFor(8, Grain(1), [&](std::size_t, std::size_t) {
    EXPECT_TRUE(Ok(pool.ParallelFor(8, Grain(1), [&](std::size_t, std::size_t) {
      EXPECT_TRUE(Ok(pool.Join([&] { ++calls; }, [&] { ++calls; })));
    })));
  })));
  EXPECT_EQ(calls.load(), 128);
}

TEST(PoolMisuse, ATaskThatWaitsForItsOwnTasks) {
  auto pool = PoolOf(1);
  std::promise<int> answer;
  ASSERT_TRUE(Ok(pool.Schedule([&] {
    int sum = 0;
    for (int i = 0; i < 100; ++i) {
      EventPromise promise("inner");
      const Event inner = promise.event();
      EXPECT_TRUE(Ok(pool.Schedule([promise = std::move(promise)]() mutable { promise.SetReady(); })));
      sum += inner.Wait().ok() ? 1 : 0;
    }
    answer.set_value(sum);
  })));
  EXPECT_EQ(answer.get_future().get(), 100);
}

TEST(PoolMisuse, AFailedEventDoesNotKeepATaskFromRunning) {
  auto pool = PoolOf(1);
  std::promise<Status> seen;
  ASSERT_TRUE(Ok(pool.ScheduleWhenReady({Event::Error(DataLossError("input"))},
                                        [&seen](const Status& status) { seen.set_value(status); })));
  EXPECT_TRUE(Fails(seen.get_future().get(), StatusCode::kDataLoss, {"input"}));
}

TEST(PoolMisuse, AnEventThatComesAfterShutdownDropsItsTask) {
  auto pool = PoolOf(1);
  EventPromise gate("gate"), owed("owed");
  const Event event = owed.event();
  ASSERT_TRUE(Ok(pool.ScheduleWhenReady({gate.event()}, [owed = std::move(owed)]() mutable { owed.SetReady(); })));
  EXPECT_TRUE(Ok(pool.Shutdown()));
  gate.SetReady();
  EXPECT_TRUE(Fails(event, StatusCode::kInternal, {"'owed'", "shut down"}));
}

TEST(PoolMisuse, AssigningAHandleToItself) {
  auto pool = PoolOf(1);
  auto& same = pool;
  pool = same;
  pool = std::move(same);
  EXPECT_TRUE(Ok(pool.Schedule([] {})));
  EXPECT_EQ(pool.NumThreads(), 1U);
}

// TaskOptions ---------------------------------------------------------------------------------------------------------

TEST(TaskOptionsMisuse, ADeadlineInThePastDestroysTheTaskAndCountsIt) {
  NoLeak no_leak;
  auto pool = PoolOf(1);
  TaskOptions options;
  options.deadline = steady_clock::time_point::min();
  const std::uint64_t before = CountDroppedTasks().late;
  EventPromise owed("owed");
  const Event event = owed.event();
  const Status refused = pool.ExecuteWith(Task([owed = std::move(owed), kept = Counted(1)]() mutable {}), options);
  EXPECT_TRUE(Fails(refused, StatusCode::kDeadlineExceeded));
  EXPECT_TRUE(event.WaitFor(seconds(20)).code() == StatusCode::kDeadlineExceeded ||
              event.WaitFor(seconds(20)).code() == StatusCode::kInternal);
  EXPECT_GE(CountDroppedTasks().late, before);
}

TEST(TaskOptionsMisuse, ADeadlineAtTheEndOfTime) {
  auto pool = PoolOf(1);
  TaskOptions options;
  options.deadline = steady_clock::time_point::max();
  std::promise<void> ran;
  EXPECT_TRUE(Ok(pool.ExecuteWith(Task([&ran] { ran.set_value(); }), options)));
  ran.get_future().wait();
}

TEST(TaskOptionsMisuse, ATokenThatWasCancelledRefusesWithItsReason) {
  NoLeak no_leak;
  auto pool = PoolOf(1);
  CancelSource source("request");
  source.Cancel(AbortedError("the client went away"));
  TaskOptions options;
  options.cancel = source.token();
  EXPECT_TRUE(Fails(pool.ExecuteWith(Task([kept = Counted(1)] {}), options), StatusCode::kAborted, {"went away"}));
}

TEST(TaskOptionsMisuse, AnEmptyTaskWithOptions) {
  auto pool = PoolOf(1);
  EXPECT_TRUE(Fails(pool.ExecuteWith(Empty(), TaskOptions()), StatusCode::kInvalidArgument));
  InlineExecutor inline_executor;
  EXPECT_TRUE(Fails(inline_executor.ExecuteWith(Empty(), TaskOptions()), StatusCode::kInvalidArgument));
}

// InlineExecutor ------------------------------------------------------------------------------------------------------

TEST(InlineExecutorMisuse, AnEmptyTaskIsRefused) {
  InlineExecutor executor;
  EXPECT_TRUE(Fails(executor.Execute(Empty()), StatusCode::kInvalidArgument));
}

// ElasticPool ---------------------------------------------------------------------------------------------------------

TEST(ElasticPoolMisuse, ImpossibleOptionsAreRefusedByValue) {
  EXPECT_TRUE(Fails(Elastic(0), StatusCode::kInvalidArgument, {"0"}));
  EXPECT_TRUE(Fails(Elastic(4097), StatusCode::kInvalidArgument, {"4097"}));
  EXPECT_TRUE(Fails(Elastic(1, ""), StatusCode::kInvalidArgument, {"name"}));
  EXPECT_TRUE(Fails(Elastic(1, std::string_view("\0", 1)), StatusCode::kInvalidArgument, {"name"}));
  EXPECT_TRUE(Fails(Elastic(1, "\xC3"), StatusCode::kInvalidArgument, {"name"}));
  EXPECT_TRUE(Fails(Elastic(1, "stack", std::size_t{1} << 41), StatusCode::kInvalidArgument, {"2199023255552"}));
  EXPECT_TRUE(Fails(Elastic(1, "stack", std::numeric_limits<std::size_t>::max()), StatusCode::kInvalidArgument));
}

TEST(ElasticPoolMisuse, AStackOfOneByteStillRunsTasks) {
  auto pool = Elastic(1, "tiny", 1);
  ASSERT_TRUE(Ok(pool));
  std::promise<void> ran;
  EXPECT_TRUE(Ok(pool->Schedule([&ran] { ran.set_value(); })));
  ran.get_future().wait();
}

TEST(ElasticPoolMisuse, AnIdleTimeThatIsNegativeOrEnormous) {
  for (const auto idle : {std::chrono::nanoseconds::min(), std::chrono::nanoseconds::max()}) {
    ElasticPoolOptions options;
    options.idle_timeout = idle;
    auto pool = ElasticPool::Create(options);
    ASSERT_TRUE(Ok(pool));
    std::promise<void> ran;
    EXPECT_TRUE(Ok(pool->Schedule([&ran] { ran.set_value(); })));
    ran.get_future().wait();
    EXPECT_TRUE(Ok(pool->Shutdown()));
  }
}

TEST(ElasticPoolMisuse, AfterShutdownTasksAreRefusedAndDestroyed) {
  NoLeak no_leak;
  auto pool = Elastic(2, "ended").value();
  EXPECT_TRUE(Ok(pool.Shutdown()));
  EXPECT_TRUE(Fails(pool.Schedule([kept = Counted(1)] {}), StatusCode::kCancelled, {"ended"}));
  EXPECT_TRUE(Ok(pool.Shutdown()));
  EXPECT_TRUE(Ok(pool.ShutdownCancelPending()));
  EXPECT_TRUE(Ok(pool.ShutdownBy(steady_clock::time_point::min())));
}

TEST(ElasticPoolMisuse, ShuttingDownFromItsOwnTaskIsRefused) {
  auto pool = Elastic(1, "own").value();
  std::promise<Status> first, second, third;
  ASSERT_TRUE(Ok(pool.Schedule([&] {
    first.set_value(pool.Shutdown());
    second.set_value(pool.ShutdownCancelPending());
    third.set_value(pool.ShutdownBy(steady_clock::time_point::max()));
  })));
  EXPECT_TRUE(Fails(first.get_future().get(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(second.get_future().get(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(third.get_future().get(), StatusCode::kFailedPrecondition));
}

TEST(ElasticPoolMisuse, AnEmptyTaskIsRefused) {
  auto pool = Elastic(1).value();
  EXPECT_TRUE(Fails(pool.Execute(Empty()), StatusCode::kInvalidArgument));
}

TEST(ElasticPoolMisuse, TheLastHandleMayGoInATaskOfThePool) {
  GoesInItsTask(std::make_shared<ElasticPool>(Elastic(1, "last").value()));
}

TEST(ElasticPoolMisuse, ADeadlineThatPassedCountsWhatRunsAndWhatWaited) {
  NoLeak no_leak;
  auto pool = Elastic(1, "late").value();
  const auto gate = std::make_shared<Gate>();
  ASSERT_TRUE(Ok(pool.Schedule([gate] {
    gate->begun.set_value();
    gate->go.get_future().wait();
  })));
  gate->begun.get_future().wait();
  ASSERT_TRUE(Ok(pool.Schedule([kept = Counted(1)] {})));
  EXPECT_TRUE(Fails(pool.ShutdownBy(steady_clock::now()), StatusCode::kDeadlineExceeded, {"1"}));
  gate->go.set_value();
}

// SerialQueue ---------------------------------------------------------------------------------------------------------

TEST(SerialQueueMisuse, NoExecutorIsRefused) {
  EXPECT_TRUE(Fails(SerialQueue::Create(nullptr), StatusCode::kInvalidArgument, {"no executor"}));
}

TEST(SerialQueueMisuse, AnEmptyTaskIsRefused) {
  auto pool = PoolOf(1);
  SerialQueue queue(pool);
  EXPECT_TRUE(Fails(queue.Execute(Empty()), StatusCode::kInvalidArgument));
}

TEST(SerialQueueMisuse, AfterCloseTasksAreRefusedAndDestroyed) {
  NoLeak no_leak;
  auto pool = PoolOf(1);
  SerialQueue queue(pool, "closed");
  queue.Close();
  queue.Close();
  EXPECT_TRUE(Fails(queue.Schedule([kept = Counted(1)] {}), StatusCode::kCancelled, {"closed"}));
  EXPECT_TRUE(Ok(queue.Drain()));
  EXPECT_EQ(queue.CancelPending(), 0U);
}

TEST(SerialQueueMisuse, DrainingInItsOwnTaskIsRefused) {
  auto pool = PoolOf(1);
  SerialQueue queue(pool, "own");
  std::promise<Status> answer;
  ASSERT_TRUE(Ok(queue.Schedule([&] { answer.set_value(queue.Drain()); })));
  EXPECT_TRUE(Fails(answer.get_future().get(), StatusCode::kFailedPrecondition, {"own"}));
  EXPECT_TRUE(Ok(queue.Drain()));
}

TEST(SerialQueueMisuse, AnExecutorThatRefusesIsToldToTheCaller) {
  NoLeak no_leak;
  auto queue = SerialQueue::Create(std::make_shared<RefusingExecutor>(UnavailableError("on strike"))).value();
  EXPECT_TRUE(Fails(queue.Schedule([kept = Counted(1)] {}), StatusCode::kUnavailable, {"on strike"}));
  EXPECT_FALSE(queue.HasBacklog());
}

TEST(SerialQueueMisuse, AnExecutorThatDropsItsTasksFailsTheDrain) {
  NoLeak no_leak;
  auto queue = SerialQueue::Create(std::make_shared<LyingExecutor>()).value();
  static_cast<void>(queue.Schedule([kept = Counted(1)] {}).ok());
  const Status drained = queue.Drained().WaitFor(seconds(20));
  EXPECT_TRUE(drained.ok() || IsCancelled(drained)) << drained;
  EXPECT_FALSE(queue.HasBacklog());
}

TEST(SerialQueueMisuse, TheLastHandleMayGoInItsOwnTask) {
  auto pool = PoolOf(1);
  auto queue = std::make_shared<SerialQueue>(pool);
  std::promise<void> gone;
  ASSERT_TRUE(Ok(queue->Schedule([&gone, kept = queue]() mutable {
    while (kept.use_count() > 1) std::this_thread::yield();
    kept.reset();
    gone.set_value();
  })));
  queue.reset();
  gone.get_future().wait();
}

TEST(SerialQueueMisuse, OverAPoolThatShutDownTellsWhatItOwed) {
  auto pool = PoolOf(1);
  SerialQueue queue(pool);
  EXPECT_TRUE(Ok(pool.Shutdown()));
  EventPromise owed("owed");
  const Event event = owed.event();
  EXPECT_TRUE(Fails(queue.Schedule([owed = std::move(owed)]() mutable { owed.SetReady(); }), StatusCode::kCancelled));
  EXPECT_TRUE(Fails(event, StatusCode::kInternal, {"'owed'", "shut down"}));
}

TEST(SerialQueueMisuse, AQueueOverAQueueOverAPool) {
  auto pool = PoolOf(1);
  auto inner = std::make_shared<SerialQueue>(pool, "inner");
  auto outer = SerialQueue::Create(inner, "outer").value();
  int order = 0;
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(Ok(outer.Schedule([&order, i] { order += order == i ? 1 : 100000; })));
  }
  EXPECT_TRUE(Ok(outer.Drain()));
  EXPECT_EQ(order, 200);
}

TEST(SerialQueueMisuse, OverAnInlineExecutorATaskThatSchedulesItself) {
  auto queue = SerialQueue::Create(std::make_shared<InlineExecutor>()).value();
  int left = 100000;
  struct Again {
    SerialQueue* queue;
    int* left;
    void operator()() const {
      if (--*left > 0) queue->Schedule(Again{queue, left}).IgnoreError();
    }
  };
  EXPECT_TRUE(Ok(queue.Schedule(Again{&queue, &left})));
  EXPECT_TRUE(Ok(queue.Drain()));
  EXPECT_EQ(left, 0);
}

}  // namespace
}  // namespace purlin
