// Waits where the waiting thread blocks what it waits for: in tasks of the pool that is to run that, on the thread of
// the timers, in waiters of what ends. Each ends, with an error if it must; a hang ends the process by the limit of
// `MustEnd`.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/client.h"
#include "purlin/elastic_pool.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/raw_buffer.h"
#include "purlin/stall.h"
#include "purlin/timer.h"

namespace purlin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Waits on a thread without a pool; what does not end in a minute hangs, and its destructors would.
void MustEnd(const Event& event) {
  if (IsDeadlineExceeded(event.WaitFor(seconds(60)))) {
    std::fprintf(stderr, "hangs: %s\n", std::string(event.label()).c_str());
    std::_Exit(3);
  }
}

ElasticPool Elastic(std::size_t max_threads) {
  ElasticPoolOptions options;
  options.max_threads = max_threads;
  options.name = "elastic";
  return ElasticPool::Create(options).value();
}

ThreadPoolAsyncWorkRunner Pool(std::size_t threads) {
  return ThreadPoolAsyncWorkRunner::Create({threads, "waits"}).value();
}

/// A task that schedules the next and waits for it, `depth` times; the depth it came to, or -1.
int Descend(ThreadPoolAsyncWorkRunner& pool, int depth) {
  if (depth == 0) return 0;
  EventPromise done("deeper");
  const Event event = done.event();
  int below = -1;
  const Status scheduled = pool.Schedule([&pool, &below, depth, done = std::move(done)]() mutable {
    below = Descend(pool, depth - 1);
    done.SetReady();
  });
  // Without a limit in this test's process: `below` is lent until the event.
  if (!scheduled.ok() || !event.Wait().ok() || below < 0) return -1;
  return below + 1;
}

TEST(PoolWaitsTest, ScheduleAndWaitMayBeAThousandDeepOnOneThread) {
  ThreadPoolAsyncWorkRunner pool = Pool(1);
  EventPromise done("recursion");
  const Event ended = done.event();
  std::atomic<int> depth{-1};
  ASSERT_TRUE(pool.Schedule([&, done = std::move(done)]() mutable {
                    depth = Descend(pool, 1000);
                    done.SetReady();
                  })
                  .ok());
  MustEnd(ended);
  EXPECT_EQ(depth, 1000);
}

/// `count` tasks that wait for the last one that is scheduled; what their waits say.
template <typename AnyPool>
std::vector<Status> WaitForTheLast(AnyPool& pool, int count) {
  EventPromise opens("opened by the last");
  std::vector<Status> answers(static_cast<std::size_t>(count));
  std::vector<Event> over;
  for (Status& answer : answers) {
    EventPromise done("a task that waits");
    over.push_back(done.event());
    Status scheduled = pool.Schedule([&answer, opened = opens.event(), done = std::move(done)]() mutable {
      answer = opened.Wait();
      done.SetReady();
    });
    EXPECT_TRUE(scheduled.ok()) << scheduled;
  }
  EXPECT_TRUE(pool.Schedule([opens = std::move(opens)]() mutable { opens.SetReady(); }).ok());
  for (const Event& event : over) MustEnd(event);
  return answers;
}

TEST(PoolWaitsTest, FiftyTasksOnTwoThreadsMayWaitForOneThatIsQueuedBehindThem) {
  ThreadPoolAsyncWorkRunner pool = Pool(2);
  for (const Status& answer : WaitForTheLast(pool, 50)) EXPECT_TRUE(answer.ok()) << answer;
}

TEST(PoolWaitsTest, TasksOfAnElasticPoolAtItsCapMayWaitForOneThatIsQueuedBehindThem) {
  ElasticPool pool = Elastic(2);
  for (const Status& answer : WaitForTheLast(pool, 6)) EXPECT_TRUE(answer.ok()) << answer;
}

/// No process of this user may start a thread from here on.
void RefuseThreads() {
  const rlimit none = {1, 1};
  if (setrlimit(RLIMIT_NPROC, &none) != 0) std::_Exit(10);
  // The limit does not bind root.
  if (geteuid() == 0 && setuid(65534) != 0) std::_Exit(11);
}

/// Exits unless some of `answers` are errors, each of which begins with `beginning` and names the wait.
void MustBeGivenUp(const std::vector<Status>& answers, const std::string& beginning) {
  bool given_up = false;
  for (const Status& answer : answers) {
    if (answer.ok()) continue;
    given_up = true;
    if (!IsResourceExhausted(answer)) std::_Exit(12);
    const std::string message(answer.message());
    if (message.find(beginning) != 0) std::_Exit(13);
    if (message.find("the wait for event 'opened by the last'") == std::string::npos) std::_Exit(14);
  }
  if (!given_up) std::_Exit(15);
}

/// As WaitWithoutAFurtherThread, for an elastic pool that has as many threads as it may.
[[noreturn]] void WaitAtTheCapWithoutAFurtherThread() {
  ElasticPool pool = Elastic(1);
  EventPromise begins("begins");
  const Event begun = begins.event();
  if (!pool.Schedule([begins = std::move(begins)]() mutable { begins.SetReady(); }).ok()) std::_Exit(9);
  MustEnd(begun);
  RefuseThreads();
  MustBeGivenUp(WaitForTheLast(pool, 2), "pool 'elastic' cannot go on: all of its threads wait");
  std::_Exit(0);
}

TEST(PoolWaitsTest, AtItsCapAnElasticPoolThatGetsNoThreadSaysSoFromAWait) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(WaitAtTheCapWithoutAFurtherThread(), testing::ExitedWithCode(0), "");
}

/// Exits with 0 if waits that cannot be met otherwise end with an error that names the pool, and the pool lives on.
[[noreturn]] void WaitWithoutAFurtherThread() {
  ThreadPoolAsyncWorkRunner pool = Pool(2);
  RefuseThreads();
  MustBeGivenUp(WaitForTheLast(pool, 60), "pool 'waits' cannot go on: all of its 2 threads and 0 spares wait");
  EventPromise done("the pool lives on");
  const Event event = done.event();
  if (!pool.Schedule([done = std::move(done)]() mutable { done.SetReady(); }).ok()) std::_Exit(16);
  MustEnd(event);
  std::_Exit(0);
}

TEST(PoolWaitsTest, WhenTheSystemRefusesAThreadAWaitSaysSoAndNamesThePool) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(WaitWithoutAFurtherThread(), testing::ExitedWithCode(0), "");
}

TEST(PoolWaitsTest, AWaitForATimerOnTheThreadOfTheTimersEnds) {
  // A timer that is due before the waiter is attached runs it here, which shows nothing.
  const std::thread::id here = std::this_thread::get_id();
  bool elsewhere = false;
  while (!elsewhere) {
    EventPromise done("a wait on the thread of the timers");
    const Event ended = done.event();
    const Timer outer = Timer::After(milliseconds(1), "outer");
    Status inner;
    outer.event().OnReady([&inner, &elsewhere, here, done = std::move(done)](const Status&) mutable {
      elsewhere = std::this_thread::get_id() != here;
      const Timer timer = Timer::After(milliseconds(1), "inner");
      inner = timer.event().Wait();
      const EventPromise never("never");
      const Status late = WithTimeout(never.event(), milliseconds(1)).Wait();
      if (inner.ok() && !IsDeadlineExceeded(late)) inner = InternalError("a deadline did not come");
      done.SetReady();
    });
    MustEnd(ended);
    EXPECT_TRUE(inner.ok()) << inner;
  }
}

TEST(PoolWaitsTest, TheLastHandleOfAnElasticPoolDoesNotWaitForWhatADeadlineHasLeft) {
  EventPromise opens("opens");
  EventPromise done("the slow task");
  const Event ended = done.event();
  EventPromise gone("the last handle");
  const Event went = gone.event();
  std::thread closing([opened = opens.event(), done = std::move(done), gone = std::move(gone)]() mutable {
    {
      ElasticPoolOptions options;
      options.max_threads = 1;
      ElasticPool pool = ElasticPool::Create(options).value();
      EventPromise begins("begins");
      const Event begun = begins.event();
      EXPECT_TRUE(pool.Schedule([opened, begins = std::move(begins), done = std::move(done)]() mutable {
                        begins.SetReady();
                        EXPECT_TRUE(opened.Wait().ok());
                        done.SetReady();
                      })
                      .ok());
      EXPECT_TRUE(begun.Wait().ok());
      EXPECT_TRUE(IsDeadlineExceeded(pool.ShutdownBy(std::chrono::steady_clock::now())));
    }
    gone.SetReady();
  });
  MustEnd(went);
  opens.SetReady();
  MustEnd(ended);
  closing.join();
}

TEST(PoolWaitsTest, AWaiterThatAShutdownRunsCannotShutItsClientDown) {
  Status answer;
  EventPromise done("a shutdown inside a shutdown");
  const Event ended = done.event();
  std::thread closing([&answer, done = std::move(done)]() mutable {
    Client client = Client::Create({}).value();
    const EventPromise never("never");
    AllocOptions after;
    after.after = never.event();
    const RawBuffer later = RawBuffer::Allocate(client.devices()[0].default_memory_space(), 64, after).value();
    later.allocation_event().OnReady([&client, &answer](const Status&) { answer = client.Shutdown(); });
    EXPECT_TRUE(client.Shutdown({ShutdownMode::kCancelPending, -1}).ok());
    done.SetReady();
  });
  MustEnd(ended);
  closing.join();
  EXPECT_TRUE(IsFailedPrecondition(answer)) << answer;
}

/// Calls `f` in a waiter on the timers' thread.
template <typename F>
void OnTheTimersThread(F f) {
  const std::thread::id here = std::this_thread::get_id();
  bool there = false;
  // A timer that is due before the waiter is attached runs it here: then once more, with twice the time.
  for (milliseconds delay(1); !there; delay *= 2) {
    EventPromise done("a waiter on the timers' thread");
    const Event ended = done.event();
    const Timer timer = Timer::After(delay, "outer");
    timer.event().OnReady([&f, &there, here, done = std::move(done)](const Status&) mutable {
      there = std::this_thread::get_id() != here;
      if (there) f();
      done.SetReady();
    });
    MustEnd(ended);
  }
}

TEST(PoolWaitsTest, TheLastHandleOfAnElasticPoolMayGoOnTheTimersThreadWhileItsTaskWaitsForATimer) {
  std::optional<ElasticPool> pool(Elastic(1));
  EventPromise opens("opens");
  EventPromise begins("begins");
  const Event begun = begins.event();
  ASSERT_TRUE(pool->Schedule([opened = opens.event(), begins = std::move(begins)]() mutable {
                    begins.SetReady();
                    EXPECT_TRUE(opened.Wait().ok());
                  })
                  .ok());
  MustEnd(begun);
  OnTheTimersThread([&pool, &opens] {
    const Timer next = Timer::After(milliseconds(1), "next");
    next.event().OnReady([&opens](const Status&) { opens.SetReady(); });
    pool.reset();
  });
  EXPECT_TRUE(opens.event().IsReady());
}

TEST(PoolWaitsTest, AWatchdogMayBeEndedOnTheTimersThreadWhileItsSinkWaitsForATimer) {
  EventPromise opens("opens");
  EventPromise begins("begins");
  const Event begun = begins.event();
  WatchdogOptions options;
  options.older_than = milliseconds(10);
  options.sink = [&begins, opened = opens.event()](std::string_view) {
    begins.SetReady();
    EXPECT_TRUE(opened.Wait().ok());
  };
  std::optional<Watchdog> watchdog(Watchdog::Start(std::move(options)).value());
  MustEnd(begun);
  OnTheTimersThread([&watchdog, &opens] {
    const Timer next = Timer::After(milliseconds(1), "next");
    next.event().OnReady([&opens](const Status&) { opens.SetReady(); });
    watchdog.reset();
  });
  EXPECT_TRUE(opens.event().IsReady());
}

/// Shuts a pool down when its thread ends.
struct ShutsDown final {
  ThreadPoolAsyncWorkRunner* pool = nullptr;
  std::atomic<int>* refused = nullptr;
  ~ShutsDown() {
    if (pool != nullptr && IsFailedPrecondition(pool->Shutdown())) ++*refused;
  }
};

TEST(PoolWaitsTest, AThreadLocalOfAPoolsThreadCannotShutThePoolDown) {
  for (const int count : {1, 3}) {
    std::atomic<int> begun{0};
    std::atomic<int> refused{0};
    EventPromise done("the end of a pool whose threads shut it down");
    const Event ended = done.event();
    ThreadPoolAsyncWorkRunner pool = Pool(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(pool.Schedule([&pool, &begun, &refused, count] {
                        static thread_local ShutsDown at_end;
                        at_end.pool = &pool;
                        at_end.refused = &refused;
                        ++begun;
                        while (begun < count) std::this_thread::yield();
                      })
                      .ok());
    }
    std::thread closing([&pool, done = std::move(done)]() mutable {
      EXPECT_TRUE(pool.Shutdown().ok());
      done.SetReady();
    });
    MustEnd(ended);
    closing.join();
    EXPECT_EQ(refused, count);
  }
}

}  // namespace
}  // namespace purlin
