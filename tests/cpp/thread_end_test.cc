// What a task does to its thread and its process: ends it, asks for the end of the process, needs a stack.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "purlin/elastic_pool.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/timer.h"

namespace purlin {
namespace {

ThreadPoolAsyncWorkRunner Pool(std::size_t threads) {
  return ThreadPoolAsyncWorkRunner::Create({threads, "ends"}).value();
}

/// Ends with 3 if `run` on a thread of a pool has not ended the process in a minute.
template <typename F>
void OnAPool(F run) {
  const ThreadPoolAsyncWorkRunner pool = Pool(2);
  ThreadPoolAsyncWorkRunner busy = pool;
  std::atomic<bool> begun{false};
  static_cast<void>(busy.Schedule([&begun] {
    begun = true;
    for (;;) std::this_thread::yield();
  }));
  while (!begun) std::this_thread::yield();
  static_cast<void>(busy.Schedule(run));
  std::this_thread::sleep_for(std::chrono::minutes(1));
  std::_Exit(3);
}

class ThreadEndTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ThreadEndTest, ATaskThatEndsItsThreadEndsTheProcessWithAMessage) {
  EXPECT_DEATH(OnAPool([] { pthread_exit(nullptr); }), "FATAL: exception not rethrown");
}

TEST_F(ThreadEndTest, ATaskWhoseThreadIsCancelledEndsTheProcessWithAMessage) {
  EXPECT_DEATH(OnAPool([] {
                 pthread_cancel(pthread_self());
                 pthread_testcancel();
               }),
               "FATAL: exception not rethrown");
}

TEST_F(ThreadEndTest, ATaskThatAsksForTheEndOfTheProcessGetsItWhileOthersWork) {
  EXPECT_EXIT(OnAPool([] { std::exit(7); }), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(
      {
        // A pool that ends with the process, in one of its own tasks.
        static ThreadPoolAsyncWorkRunner pool = Pool(2);
        static_cast<void>(pool.Schedule([] { std::exit(7); }));
        std::this_thread::sleep_for(std::chrono::minutes(1));
        std::_Exit(3);
      },
      testing::ExitedWithCode(7), "");
}

/// Bytes of stack of this thread.
std::size_t StackSize() {
  pthread_attr_t attributes;
  std::size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  pthread_attr_getstacksize(&attributes, &size);
  pthread_attr_destroy(&attributes);
  return size;
}

/// Exits with 0 if the threads of each kind have the stacks that executor.h says.
[[noreturn]] void LookAtStacks() {
  constexpr std::size_t kOurs = 2U << 20;
  // Rust's std reads it once, when it is first to choose a size.
  setenv("RUST_MIN_STACK", "67108864", 1);
  std::atomic<int> looked{0};
  std::atomic<bool> right{true};
  const auto look = [&] {
    // glibc takes a guard page of it, or lends the stack of a thread that has ended, up to four times as large.
    const std::size_t size = StackSize();
    if (size < kOurs / 2 || size > 4 * kOurs) {
      char name[16] = {};
      pthread_getname_np(pthread_self(), name, sizeof(name));
      std::fprintf(stderr, "thread %s has a stack of %zu bytes\n", name, size);
      right = false;
    }
    ++looked;
  };
  ThreadPoolAsyncWorkRunner pool = Pool(1);
  static_cast<void>(pool.Schedule(look));
  ElasticPool elastic = ElasticPool::Create({}).value();
  static_cast<void>(elastic.Schedule(look));
  // A timer that is due before the waiter is attached runs it here, which says nothing of the timers' thread.
  const pthread_t here = pthread_self();
  std::atomic<bool> elsewhere{false};
  for (int i = 0; i < 60000 && !elsewhere; ++i) {
    EventPromise told("looked");
    const Event over = told.event();
    const Timer timer = Timer::After(std::chrono::milliseconds(1), "stack");
    timer.event().OnReady([&, told = std::move(told)]() mutable {
      if (pthread_equal(pthread_self(), here) == 0 && !elsewhere.exchange(true)) look();
      told.SetReady();
    });
    static_cast<void>(over.Wait());
  }
  for (int i = 0; i < 60000 && looked < 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::_Exit(looked == 3 && right ? 0 : 1);
}

TEST_F(ThreadEndTest, TheEnvironmentDoesNotSetTheStacksOfOurThreads) {
  EXPECT_EXIT(LookAtStacks(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace purlin
