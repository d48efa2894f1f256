// A serial queue over an executor that throws: before it takes the queue's work, after it has taken it, after it has
// run it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>

#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/serial_queue.h"

namespace purlin {
namespace {

enum class When { kBefore, kAfter, kInside };

class ThrowingExecutor final : public Executor {
 public:
  ThrowingExecutor(When when, ThreadPoolAsyncWorkRunner pool) : when_(when), pool_(std::move(pool)) {}
  Status Execute(Task task) override {
    if (when_ == When::kAfter) static_cast<void>(pool_.Execute(std::move(task)));
    if (when_ == When::kInside) std::move(task).Run();
    throw std::runtime_error("expected by a test");
  }

 private:
  When when_;
  ThreadPoolAsyncWorkRunner pool_;
};

TEST(SerialQueueExceptionTest, AnExecutorThatThrowsLosesNothingAndStopsNothing) {
  // More than the queue runs before it asks its executor again, from inside a task.
  constexpr int kTasks = 200;
  for (const When when : {When::kBefore, When::kAfter, When::kInside}) {
    ThreadPoolAsyncWorkRunner pool = ThreadPoolAsyncWorkRunner::Create({1, "throws"}).value();
    SerialQueue queue = SerialQueue::Create(std::make_shared<ThrowingExecutor>(when, pool)).value();
    std::atomic<int> ran{0};
    EventPromise owed("owed");
    const Event told = owed.event();
    const Status first = queue.Schedule([&ran, queue, owed = std::move(owed)]() mutable {
      for (int i = 0; i < kTasks; ++i) EXPECT_TRUE(queue.Schedule([&ran] { ++ran; }).ok());
      owed.SetReady();
    });
    EXPECT_EQ(first.ok(), when != When::kBefore) << first;
    EXPECT_EQ(told.WaitFor(std::chrono::seconds(60)).ok(), when != When::kBefore);
    EXPECT_TRUE(queue.Drained().WaitFor(std::chrono::seconds(60)).ok()) << "a queue whose executor throws goes on";
    EXPECT_EQ(ran, when == When::kBefore ? 0 : kTasks);
    EXPECT_EQ(told.state(), when == When::kBefore ? EventState::kError : EventState::kReady);
    EXPECT_FALSE(queue.HasBacklog());
  }
}

}  // namespace
}  // namespace purlin
