// What tests share: payloads that are counted, executors, threads that begin together, tasks that are under way at
// once, a small stack, memory that is freed.
#ifndef PURLIN_TESTS_CPP_TESTING_H_
#define PURLIN_TESTS_CPP_TESTING_H_

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/device.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/status.h"

namespace purlin {

/// Counts its objects; `value` is -1 once moved from or destroyed.
struct Counted {
  static inline std::atomic<int> alive{0};
  static inline std::atomic<int> made{0};
  int value;

  explicit Counted(int v = 0) : value(v) { Born(); }
  Counted(const Counted& other) : value(other.value) { Born(); }
  Counted(Counted&& other) noexcept : value(std::exchange(other.value, -1)) { Born(); }
  Counted& operator=(const Counted&) = default;
  ~Counted() {
    value = -1;
    alive.fetch_sub(1);
  }
  static void Born() {
    alive.fetch_add(1);
    made.fetch_add(1);
  }
};

/// Expects that as many objects of Counted are alive at the end of its scope as at the beginning.
class NoLeak {
 public:
  NoLeak() : before_(Counted::alive.load()) {}
  ~NoLeak() { EXPECT_EQ(Counted::alive.load(), before_) << "payloads leaked or were destroyed twice"; }

 private:
  int before_;
};

/// Runs tasks inside Execute, and counts them.
class CountingExecutor final : public Executor {
 public:
  Status Execute(Task task) override {
    ++tasks;
    std::move(task).Run();
    return OkStatus();
  }
  int tasks = 0;
};

/// Keeps tasks until RunAll or DropAll.
class DeferredExecutor final : public Executor {
 public:
  Status Execute(Task task) override {
    ++tasks;
    queue_.push_back(std::move(task));
    return OkStatus();
  }
  void RunAll() {
    while (!queue_.empty()) {
      Task task = std::move(queue_.front());
      queue_.pop_front();
      std::move(task).Run();
    }
  }
  void DropAll() { queue_.clear(); }
  int tasks = 0;

 private:
  std::deque<Task> queue_;
};

/// Refuses every task and says why.
class RefusingExecutor final : public Executor {
 public:
  explicit RefusingExecutor(Status why = UnavailableError("no threads today")) : why_(std::move(why)) {}
  Status Execute(Task task) override {
    Task dropped = std::move(task);
    return why_;
  }

 private:
  Status why_;
};

/// Accepts every task and drops it inside Execute.
class LyingExecutor final : public Executor {
 public:
  Status Execute(Task task) override {
    Task dropped = std::move(task);
    return OkStatus();
  }
};

/// Starts `threads` threads that begin `f(index)` together, and joins them.
template <typename F>
void Together(int threads, F f) {
  std::atomic<int> waiting{threads};
  std::vector<std::thread> started;
  for (int index = 0; index < threads; ++index) {
    started.emplace_back([&waiting, &f, index] {
      waiting.fetch_sub(1);
      while (waiting.load() > 0) std::this_thread::yield();
      f(index);
    });
  }
  for (std::thread& thread : started) thread.join();
}

/// Has tasks under way at once, each of which calls `see(i)` and then waits for an event of Purlin's: of a pool with
/// fewer threads, spares run some. `schedule` takes a closure that may be copied.
template <typename Schedule, typename See>
void AllAtOnce(std::size_t tasks, const Schedule& schedule, const See& see) {
  EventPromise opened("opened");
  std::vector<Event> told;
  for (std::size_t i = 0; i < tasks; ++i) {
    auto promise = std::make_shared<EventPromise>("told");
    told.push_back(promise->event());
    schedule([see, i, promise, open = opened.event()] {
      see(i);
      promise->SetReady();
      static_cast<void>(open.Wait());
    });
  }
  for (const Event& each : told) {
    EXPECT_TRUE(each.WaitFor(std::chrono::minutes(1)).ok()) << "no spare runs what is queued";
  }
  opened.SetReady();
}

/// Calls `f` on a thread with 256 KiB of stack.
template <typename F>
void OnSmallStack(F f) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  auto call = [](void* data) -> void* {
    (*static_cast<F*>(data))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, call, &f), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  ASSERT_EQ(pthread_attr_destroy(&attributes), 0);
}

/// Expects that all memory of `space` is freed: at once, or, of what a report was the last to hold, by a thread of its
/// own.
inline void ExpectAllIsFreed(const MemorySpace& space) {
  const auto long_enough = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (space.Stats().bytes_in_use > 0 && std::chrono::steady_clock::now() < long_enough) std::this_thread::yield();
  EXPECT_EQ(space.Stats().bytes_in_use, 0U);
}

}  // namespace purlin

#endif  // PURLIN_TESTS_CPP_TESTING_H_
