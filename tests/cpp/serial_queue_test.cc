#include "purlin/serial_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/cpp/testing.h"

namespace purlin {
namespace {

using Pool = ThreadPoolAsyncWorkRunner;

/// An executor of the user's: keeps tasks until RunAll.
class Keeper final : public Executor {
 public:
  explicit Keeper(std::atomic<int>* ends = nullptr) : ends_(ends) {}
  ~Keeper() override {
    if (ends_ != nullptr) ends_->fetch_add(1);
  }
  Status Execute(Task task) override {
    if (refuses) return UnavailableError("the keeper is full");
    tasks.push_back(std::move(task));
    return OkStatus();
  }
  void RunAll() {
    while (!tasks.empty()) {
      Task task = std::move(tasks.front());
      tasks.pop_front();
      std::move(task).Run();
    }
  }
  std::deque<Task> tasks;
  bool refuses = false;

 private:
  std::atomic<int>* ends_;
};

TEST(SerialQueueTest, DrainingAnEmptyQueueReturnsAtOnce) {
  const Pool pool = Pool::Create({1, "serial"}).value();
  const SerialQueue queue(pool);
  EXPECT_TRUE(queue.Drain().ok());
  EXPECT_TRUE(queue.Drain().ok());
  EXPECT_TRUE(queue.Drained().IsReady());
  EXPECT_FALSE(queue.HasBacklog());
}

TEST(SerialQueueTest, TasksRunOneAtATimeInOrder) {
  const Pool pool = Pool::Create({4, "serial"}).value();
  SerialQueue queue(pool);
  std::vector<int> order;  // Not guarded: the queue is the guard.
  for (int round = 1; round <= 5; ++round) {
    for (int i = 0; i < 200; ++i)
      ASSERT_TRUE(queue.Schedule([&order] { order.push_back(static_cast<int>(order.size())); }).ok());
    ASSERT_TRUE(queue.Drain().ok());
    ASSERT_EQ(order.size(), 200U * static_cast<unsigned>(round));
  }
  for (int i = 0; i < static_cast<int>(order.size()); ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(SerialQueueTest, DrainsOfAnIdleQueueReturnAgainAndOnManyThreads) {
  const Pool pool = Pool::Create({2, "serial"}).value();
  SerialQueue queue(pool);
  int ran = 0;  // Not guarded: every drain sees what ran before it.
  for (int round = 1; round <= 3; ++round) {
    ASSERT_TRUE(queue.Schedule([&ran] { ++ran; }).ok());
    EXPECT_TRUE(queue.Drain().ok());
    EXPECT_TRUE(queue.Drain().ok());
    Together(4, [&](int) {
      EXPECT_TRUE(queue.Drain().ok());
      EXPECT_EQ(ran, round);
    });
    EXPECT_FALSE(queue.HasBacklog());
  }
}

TEST(SerialQueueTest, R7ATaskThatDrainsItsOwnQueueIsTold) {
  const Pool pool = Pool::Create({1, "serial"}).value();
  SerialQueue queue(pool, "self");
  Status status;
  ASSERT_TRUE(queue.Schedule([&] { status = queue.Drain(); }).ok());
  ASSERT_TRUE(queue.Drain().ok());
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("'self'"), std::string::npos) << status;
}

TEST(SerialQueueTest, RunsOnAnExecutorOfTheUsersAndLetsItGo) {
  std::atomic<int> ends{0};
  int ran = 0;
  {
    auto keeper = std::make_shared<Keeper>(&ends);
    StatusOr<SerialQueue> queue = SerialQueue::Create(keeper, "kept");
    ASSERT_TRUE(queue.ok()) << queue.status();
    ASSERT_TRUE(queue->Schedule([&ran] { ++ran; }).ok());
    const Event drained = queue->Drained();
    ASSERT_TRUE(queue->Schedule([&ran] { ++ran; }).ok());
    EXPECT_EQ(keeper->tasks.size(), 1U) << "one pump for both";
    EXPECT_TRUE(queue->HasBacklog());
    keeper->RunAll();
    EXPECT_EQ(ran, 2);
    EXPECT_TRUE(drained.Wait().ok());
    EXPECT_FALSE(queue->HasBacklog());
    EXPECT_EQ(ends.load(), 0);
  }
  EXPECT_EQ(ends.load(), 1);
  EXPECT_TRUE(IsInvalidArgument(SerialQueue::Create(nullptr).status()));
}

TEST(SerialQueueTest, R2AnExecutorThatRefusesOrDropsLosesNothing) {
  auto keeper = std::make_shared<Keeper>();
  SerialQueue queue = SerialQueue::Create(keeper).value();
  for (const bool refuses : {true, false}) {
    keeper->refuses = refuses;
    EventPromise promise("owed");
    const Event owed = promise.event();
    const Status status = queue.Schedule([promise = std::move(promise)]() mutable { promise.SetReady(); });
    EXPECT_EQ(IsUnavailable(status), refuses) << status;
    if (!refuses) {
      const Event drained = queue.Drained();
      keeper->tasks.clear();
      EXPECT_TRUE(IsCancelled(drained.error())) << drained.error();
    }
    EXPECT_TRUE(IsInternal(owed.error())) << owed.error();
    EXPECT_FALSE(queue.HasBacklog());
  }
}

TEST(SerialQueueTest, R8AClosedQueueRefusesAndStillRunsWhatItHas) {
  auto keeper = std::make_shared<Keeper>();
  int ran = 0;
  {
    SerialQueue queue = SerialQueue::Create(keeper).value();
    SerialQueue copy = queue;
    const SerialQueue moved = std::move(copy);
    ASSERT_TRUE(queue.Schedule([&ran] { ++ran; }).ok());
    moved.Close();
    EXPECT_TRUE(IsCancelled(queue.Schedule([&ran] { ++ran; })));
  }
  keeper->RunAll();
  EXPECT_EQ(ran, 1);
}

TEST(SerialQueueTest, R8AShutdownDrainsOrDestroysWhatIsQueuedAndKeepsItsTimeout) {
  {
    ThreadPoolAsyncWorkRunner pool = ThreadPoolAsyncWorkRunner::Create({}).value();
    SerialQueue queue(pool);
    int ran = 0;
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(queue.Schedule([&ran] { ++ran; }).ok());
    EXPECT_EQ(queue.Shutdown(), OkStatus());
    EXPECT_EQ(ran, 10);
    EXPECT_TRUE(IsCancelled(queue.Schedule([&ran] { ++ran; })));
    EXPECT_EQ(queue.Shutdown(), OkStatus()) << "again";
  }
  for (const ShutdownMode mode : {ShutdownMode::kCancelPending, ShutdownMode::kDrain}) {
    auto keeper = std::make_shared<Keeper>();
    SerialQueue queue = SerialQueue::Create(keeper).value();
    EventPromise owed("owed");
    const Event event = owed.event();
    ASSERT_TRUE(queue.Schedule([owed = std::move(owed)]() mutable { owed.SetReady(); }).ok());
    const Status status = queue.Shutdown({mode, /*timeout_ns=*/0});
    EXPECT_EQ(status.code(), mode == ShutdownMode::kDrain ? StatusCode::kDeadlineExceeded : StatusCode::kOk) << status;
    EXPECT_EQ(event.state(), EventState::kError) << "the task was destroyed uncalled";
    keeper->RunAll();
  }
}

TEST(SerialQueueTest, PendingTasksCanBeDestroyedAndTheQueueGoesOn) {
  auto keeper = std::make_shared<Keeper>();
  SerialQueue queue = SerialQueue::Create(keeper).value();
  int ran = 0;
  ASSERT_TRUE(queue.Schedule([&ran] { ran += 100; }).ok());
  EXPECT_EQ(queue.CancelPending(), 1U);
  ASSERT_TRUE(queue.Schedule([&ran] { ++ran; }).ok());
  keeper->RunAll();
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace purlin
