// Rule 8: shutdown in numbered steps: refuse what comes, run what is queued, join, and nothing lives.
//
// Here: shutdown while others schedule, and what tasks of a pool that shuts down may do. Elsewhere: one shutdown, the
// last handle and a shutdown on the pool's own thread in executor_test.cc, elastic pools in elastic_pool_test.cc,
// queues in serial_queue_test.cc, semaphores in semaphore_test.cc, forked processes in executor_fork_test.cc.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <future>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

using Pool = ThreadPoolAsyncWorkRunner;

Pool MakePool(std::size_t thread_count) { return Pool::Create({thread_count, "test"}).value(); }

TEST(R8Shutdown, EveryTaskOfARaceRunsOrIsRefusedAndDestroyed) {
  const NoLeak no_leak;
  for (int round = 0; round < 20; ++round) {
    Pool pool = MakePool(2);
    std::atomic<int> ran{0};
    std::atomic<int> refused{0};
    Together(4, [&](int index) {
      if (index == 0) {
        EXPECT_TRUE(pool.Shutdown().ok());
        return;
      }
      for (int i = 0; i < 200; ++i) {
        const Status status =
            pool.Schedule([&ran, payload = Counted(i)] { ran.fetch_add(payload.value >= 0 ? 1 : 0); });
        if (!status.ok()) {
          EXPECT_TRUE(IsCancelled(status)) << status;
          refused.fetch_add(1);
        }
      }
    });
    ASSERT_TRUE(pool.Shutdown().ok());
    EXPECT_EQ(ran.load() + refused.load(), 600);
  }
}

TEST(R8Shutdown, OfEventsThatCompleteMeanwhileNoTaskIsLost) {
  for (int round = 0; round < 20; ++round) {
    Pool pool = MakePool(2);
    std::vector<EventPromise> gates;
    std::vector<Event> owed;
    for (int i = 0; i < 100; ++i) {
      EventPromise promise("owed");
      owed.push_back(promise.event());
      const EventPromise& gate = gates.emplace_back("gate");
      ASSERT_TRUE(
          pool.ScheduleWhenReady({gate.event()}, [promise = std::move(promise)]() mutable { promise.SetReady(); })
              .ok());
    }
    Together(2, [&](int index) {
      if (index == 0) {
        for (EventPromise& gate : gates) gate.SetReady();
      } else {
        EXPECT_TRUE(pool.Shutdown().ok());
      }
    });
    for (const Event& event : owed) {
      ASSERT_TRUE(event.IsReady()) << "ran before the shutdown ended, or was destroyed when its gate completed";
      if (!event.error().ok()) {
        ASSERT_NE(event.error().message().find("'owed'"), std::string::npos) << event.error();
      }
    }
  }
}

TEST(R8Shutdown, AllWhoShutDownWaitForTheEnd) {
  Pool pool = MakePool(1);
  EventPromise gate("gate");
  EventPromise started("started");
  std::atomic<bool> ended{false};
  ASSERT_TRUE(pool.Schedule([&] {
                    started.SetReady();
                    static_cast<void>(gate.event().Wait());
                    ended = true;
                  })
                  .ok());
  ASSERT_TRUE(started.event().Wait().ok());
  std::atomic<int> saw_the_end{0};
  Together(4, [&](int index) {
    if (index == 0) {
      gate.SetReady();
    } else if (pool.Shutdown().ok() && ended.load()) {
      saw_the_end.fetch_add(1);
    }
  });
  EXPECT_EQ(saw_the_end.load(), 3);
}

TEST(R8Shutdown, WhatIsQueuedRunsInOrderBeforeItEnds) {
  Pool pool = MakePool(1);
  // Not an event: the pool would give the waiting task a spare thread, and begin with what is queued.
  std::promise<void> gate;
  std::vector<int> ran;
  ASSERT_TRUE(pool.Schedule([open = gate.get_future()] { open.wait(); }).ok());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(pool.Schedule([&ran, i] { ran.push_back(i); }).ok());
  Together(2, [&](int index) {
    if (index == 0) {
      EXPECT_TRUE(pool.Shutdown().ok());
    } else {
      gate.set_value();
    }
  });
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(ran, expected);
}

TEST(R8Shutdown, TasksThatComeFromTasksMeanwhileLoseNothing) {
  Pool pool = MakePool(2);
  EventPromise gate("gate");
  const Event open = gate.event();
  std::vector<Event> owed;
  for (int i = 0; i < 50; ++i) {
    EventPromise promise("child");
    owed.push_back(promise.event());
    ASSERT_TRUE(pool.Schedule([&pool, open, promise = std::move(promise)]() mutable {
                      static_cast<void>(open.Wait());
                      pool.Schedule([promise = std::move(promise)]() mutable { promise.SetReady(); }).IgnoreError();
                    })
                    .ok());
  }
  Together(2, [&](int index) {
    if (index == 0) {
      EXPECT_TRUE(pool.Shutdown().ok());
    } else {
      gate.SetReady();
    }
  });
  for (const Event& event : owed) EXPECT_TRUE(event.IsReady()) << "it ran, or it was refused and told";
}

TEST(R8Shutdown, EveryHandleAndEveryWayInRefusesAfterwards) {
  const NoLeak no_leak;
  Pool pool = MakePool(1);
  Pool other = pool;
  ASSERT_TRUE(pool.Shutdown().ok());
  EXPECT_TRUE(IsCancelled(other.Schedule([payload = Counted(1)] {})));
  EXPECT_TRUE(IsCancelled(other.Execute(Task([payload = Counted(1)] {}))));
  EXPECT_TRUE(IsCancelled(other.ScheduleWhenReady({Event()}, [payload = Counted(1)] {})));
  EXPECT_TRUE(IsCancelled(MakeAsyncValueRef(other, [payload = Counted(1)] { return 1; }).GetError()));
  EXPECT_TRUE(other.Shutdown().ok()) << "again, by another handle";
}

}  // namespace
}  // namespace purlin
