#include "purlin/task_options.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <string>
#include <utility>

#include "purlin/executor.h"
#include "purlin/inline_executor.h"

namespace purlin {
namespace {

using std::chrono::hours;
using std::chrono::steady_clock;

/// A task that owes an event.
struct Owing {
  EventPromise promise{"owed"};
  Event event = promise.event();
  Task Take() {
    return Task([promise = std::move(promise)]() mutable { promise.SetReady(); });
  }
};

TEST(TaskOptionsTest, WithoutConditionsTheTaskRuns) {
  InlineExecutor executor;
  Owing owing;
  EXPECT_TRUE(executor.ExecuteWith(owing.Take(), TaskOptions()).ok());
  EXPECT_TRUE(owing.event.Wait().ok());
}

TEST(TaskOptionsTest, R2WhatMustNotRunIsDestroyedBeforeTheAnswer) {
  InlineExecutor executor;
  const CancelSource source;
  source.Cancel(AbortedError("enough"));
  TaskOptions cancelled;
  cancelled.cancel = source.token();
  Owing first;
  EXPECT_EQ(executor.ExecuteWith(first.Take(), cancelled), AbortedError("enough"));
  EXPECT_TRUE(IsInternal(first.event.error())) << "what it owed is told";
  for (const steady_clock::time_point past : {steady_clock::now() - hours(1), steady_clock::time_point::min()}) {
    TaskOptions late;
    late.deadline = past;
    late.label = "too late";
    Owing second;
    const Status status = executor.ExecuteWith(second.Take(), late);
    EXPECT_TRUE(IsDeadlineExceeded(status)) << status;
    EXPECT_NE(status.message().find("'too late'"), std::string::npos) << status;
    EXPECT_TRUE(second.event.IsReady());
  }
}

TEST(TaskOptionsTest, R2ATaskOfAPoolThatIsCancelledBeforeItsTurnIsDestroyedAndCounted) {
  StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({1, "options"});
  ASSERT_TRUE(pool.ok()) << pool.status();
  std::promise<void> gate;     // Not an event: a spare thread would stand in for a task that waits for one.
  std::promise<void> started;  // Before that, tasks of high priority would overtake it.
  ASSERT_TRUE(pool->Schedule([&started, open = gate.get_future()] {
                    started.set_value();
                    open.wait();
                  })
                  .ok());
  started.get_future().wait();
  const CancelSource source;
  TaskOptions options;
  options.cancel = source.token();
  options.deadline = steady_clock::now() + hours(1);
  options.priority = Priority::kHigh;
  options.may_block = true;
  Owing cancelled;
  ASSERT_TRUE(pool->ExecuteWith(cancelled.Take(), options).ok());
  options.cancel = CancelToken();
  Owing free;
  ASSERT_TRUE(pool->ExecuteWith(free.Take(), options).ok());
  const std::uint64_t before = CountDroppedTasks().cancelled;
  source.Cancel();
  gate.set_value();
  EXPECT_TRUE(free.event.Wait().ok());
  EXPECT_TRUE(IsInternal(cancelled.event.Wait()));
  ASSERT_TRUE(pool->Shutdown().ok());
  EXPECT_EQ(CountDroppedTasks().cancelled, before + 1);
}

TEST(TaskOptionsTest, AnEmptyTaskIsRefused) {
  InlineExecutor executor;
  Task task([] {});
  std::move(task).Run();
  EXPECT_TRUE(IsInvalidArgument(executor.ExecuteWith(Task::Adopt(nullptr), TaskOptions())));
  EXPECT_TRUE(IsInvalidArgument(executor.Execute(Task::Adopt(nullptr))));
}

TEST(InlineExecutorTest, AChainOfAMillionTasksNeedsNoStack) {
  InlineExecutor executor;
  struct Link {
    InlineExecutor* executor;
    int* left;
    void operator()() const {
      if (--*left > 0) static_cast<void>(executor->Execute(Link(*this)));
    }
  };
  int left = 1'000'000;
  EXPECT_TRUE(executor.Execute(Link{&executor, &left}).ok());
  EXPECT_EQ(left, 0);
}

}  // namespace
}  // namespace purlin
