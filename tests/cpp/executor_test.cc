#include "purlin/executor.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/future.h"
#include "purlin/promise.h"
#include "tests/cpp/testing.h"
namespace purlin {
namespace {

using Pool = ThreadPoolAsyncWorkRunner;

Pool MakePool(std::size_t thread_count) { return Pool::Create({thread_count, "test"}).value(); }

TEST(ThreadPoolTest, HasAsManyThreadsAsAsked) {
  const Pool pool = MakePool(3);
  EXPECT_EQ(pool.NumThreads(), 3U);
  EXPECT_NE(pool.Describe().find('3'), std::string::npos) << pool.Describe();
}

TEST(ThreadPoolTest, AThreadKnowsItsNumberInItsOwnPoolOnly) {
  Pool mine = MakePool(1);
  Pool other = MakePool(1);
  EXPECT_FALSE(mine.CurrentThreadId().has_value());
  std::optional<std::size_t> in_mine;
  std::optional<std::size_t> in_other = 7;
  ASSERT_TRUE(mine.Schedule([&] {
                    in_mine = mine.CurrentThreadId();
                    in_other = other.CurrentThreadId();
                  })
                  .ok());
  ASSERT_TRUE(mine.Shutdown().ok());
  EXPECT_EQ(in_mine, std::optional<std::size_t>(0));
  EXPECT_FALSE(in_other.has_value());
}

/// While a thread of a pool waits for an event, a spare runs what is queued, under a number that no other thread has.
TEST(ThreadPoolTest, ASpareThreadHasANumberOfItsOwn) {
  std::vector<std::optional<std::size_t>> ids(4);
  Pool pool = MakePool(2);
  AllAtOnce(
      ids.size(), [&](auto task) { ASSERT_TRUE(pool.Schedule(std::move(task)).ok()); },
      [&](std::size_t i) { ids[i] = pool.CurrentThreadId(); });
  std::set<std::size_t> different;
  std::size_t spares = 0;
  for (const std::optional<std::size_t>& id : ids) {
    ASSERT_TRUE(id.has_value()) << "a spare is a thread of the pool";
    different.insert(*id);
    spares += *id >= pool.NumThreads() ? 1 : 0;
  }
  EXPECT_EQ(different.size(), ids.size()) << "four tasks that run at once";
  EXPECT_GE(spares, 2U) << "the pool has two threads, of which one may sleep";
  EXPECT_TRUE(pool.Shutdown().ok());
}

TEST(ThreadPoolTest, ZeroThreadsTakesWhatTheMachineAllows) {
  StatusOr<Pool> pool = Pool::Create({});
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_GE(pool->NumThreads(), 1U);
  EXPECT_NE(pool->Describe().find(std::to_string(pool->NumThreads())), std::string::npos) << pool->Describe();
}

TEST(ThreadPoolTest, RefusesOptionsThatMakeNoSenseAndNamesThem) {
  StatusOr<Pool> pool = Pool::Create({4097, "x"});
  EXPECT_TRUE(IsInvalidArgument(pool.status())) << pool.status();
  EXPECT_NE(pool.status().message().find("4097"), std::string::npos) << pool.status();
  for (const std::string_view name : {std::string_view(""), std::string_view("a\0b", 3), std::string_view("a\xff")}) {
    pool = Pool::Create({1, name});
    EXPECT_TRUE(IsInvalidArgument(pool.status())) << pool.status();
  }
}

TEST(ThreadPoolTest, RunsEveryTaskOnce) {
  Pool pool = MakePool(4);
  constexpr std::size_t kTasks = 10'000;
  std::vector<std::atomic<int>> runs(kTasks);
  for (std::size_t i = 0; i < kTasks; ++i) {
    ASSERT_TRUE(pool.Schedule([&runs, i] { runs[i].fetch_add(1); }).ok());
  }
  ASSERT_TRUE(pool.Shutdown().ok());
  for (const std::atomic<int>& run : runs) ASSERT_EQ(run.load(), 1);
}

TEST(ThreadPoolTest, TasksMaySchedule) {
  Pool pool = MakePool(2);
  EventPromise done("done");
  const Event event = done.event();
  ASSERT_TRUE(pool.Schedule([&pool, done = std::move(done)]() mutable {
                    static_cast<void>(pool.Schedule([done = std::move(done)]() mutable { done.SetReady(); }));
                  })
                  .ok());
  EXPECT_TRUE(event.Wait().ok());
}

TEST(ThreadPoolTest, TasksRunOnThePoolsThreads) {
  Pool pool = MakePool(2);
  EventPromise done("done");
  const Event event = done.event();
  std::thread::id ran_on;
  ASSERT_TRUE(pool.Schedule([&] {
                    ran_on = std::this_thread::get_id();
                    done.SetReady();
                  })
                  .ok());
  ASSERT_TRUE(event.Wait().ok());
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

TEST(ThreadPoolTest, NoTaskRunsOnWhoSchedulesHoweverLongTheQueueIs) {
  constexpr int kTasks = 10'000;
  Pool pool = MakePool(1);
  EventPromise gate("gate");
  const Event open = gate.event();
  ASSERT_TRUE(pool.Schedule([open] { open.WaitFor(std::chrono::hours(1)).IgnoreError(); }).ok());
  std::atomic<int> here{0};
  std::atomic<int> elsewhere{0};
  const std::thread::id caller = std::this_thread::get_id();
  for (int i = 0; i < kTasks; ++i) {
    ASSERT_TRUE(pool.Schedule([&, caller] { ++(std::this_thread::get_id() == caller ? here : elsewhere); }).ok());
  }
  gate.SetReady();
  ASSERT_TRUE(pool.Shutdown().ok());
  EXPECT_EQ(here.load(), 0);
  EXPECT_EQ(elsewhere.load(), kTasks);
}

TEST(ThreadPoolTest, TheLastHandleDrains) {
  std::atomic<int> ran{0};
  {
    std::optional<Pool> pool(MakePool(2));
    const Pool copy = *pool;
    Pool assigned = MakePool(1);
    assigned = copy;
    Pool moved = std::move(assigned);
    for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(pool->Schedule([&ran] { ran.fetch_add(1); }).ok());
    pool.reset();
    ASSERT_TRUE(moved.Schedule([&ran] { ran.fetch_add(1); }).ok()) << "the other handles keep it";
  }
  EXPECT_EQ(ran.load(), 1'001);
}

/// Counts its calls, and the ends of what it stands for (not of moved-from copies).
struct Counted {
  Counted(std::atomic<int>* calls_in, std::atomic<int>* ends_in) : calls(calls_in), ends(ends_in) {}
  Counted(Counted&& other) noexcept : calls(other.calls), ends(std::exchange(other.ends, nullptr)) {}
  ~Counted() {
    if (ends != nullptr) ends->fetch_add(1);
  }
  void operator()() const { calls->fetch_add(1); }
  std::atomic<int>* calls;
  std::atomic<int>* ends;
};

TEST(ThreadPoolTest, AfterShutdownTasksAreRefusedAndDestroyedBeforeTheAnswer) {
  Pool pool = MakePool(1);
  ASSERT_TRUE(pool.Shutdown().ok());
  ASSERT_TRUE(pool.Shutdown().ok()) << "again";
  std::atomic<int> calls{0};
  std::atomic<int> ends{0};
  EXPECT_TRUE(IsCancelled(pool.Schedule(Counted(&calls, &ends))));
  EXPECT_EQ(ends.load(), 1);
  EXPECT_TRUE(IsCancelled(pool.ScheduleWhenReady({}, Counted(&calls, &ends))));
  EXPECT_EQ(ends.load(), 2);
  EXPECT_EQ(calls.load(), 0);

  EventPromise promise("owed");
  const Event event = promise.event();
  EXPECT_TRUE(IsCancelled(pool.Schedule([promise = std::move(promise)]() mutable { promise.SetReady(); })));
  EXPECT_EQ(event.state(), EventState::kError) << "what the task owed is told";
  EXPECT_NE(event.error().message().find("'owed'"), std::string::npos) << event.error();
}

TEST(ThreadPoolTest, ShutdownOnAThreadOfThePoolIsRefused) {
  Pool pool = MakePool(1);
  Status answer;
  EventPromise done("done");
  const Event event = done.event();
  ASSERT_TRUE(pool.Schedule([&] {
                    answer = pool.Shutdown();
                    done.SetReady();
                  })
                  .ok());
  ASSERT_TRUE(event.Wait().ok());
  EXPECT_TRUE(IsFailedPrecondition(answer)) << answer;
  EXPECT_TRUE(pool.Schedule([] {}).ok()) << "nothing happened";
}

TEST(ThreadPoolTest, AnEmptyTaskIsRefused) {
  Pool pool = MakePool(1);
  Task task([] {});
  std::move(task).Run();
  EXPECT_TRUE(IsInvalidArgument(pool.Execute(std::move(task))));  // NOLINT(bugprone-use-after-move): the point.
}

TEST(ScheduleWhenReadyTest, RunsAfterAllEvents) {
  Pool pool = MakePool(2);
  EventPromise a("a");
  EventPromise b("b");
  EventPromise done("done");
  const Event event = done.event();
  std::atomic<bool> early{true};
  ASSERT_TRUE(pool.ScheduleWhenReady({a.event(), Event(), b.event()},
                                     [&early, done = std::move(done)]() mutable {
                                       done.Set(early.load() ? InternalError("too early") : OkStatus());
                                     })
                  .ok());
  a.SetReady();
  EXPECT_FALSE(event.IsReady());
  early = false;
  b.SetReady();
  EXPECT_TRUE(event.Wait().ok()) << event.error();
}

TEST(ScheduleWhenReadyTest, WithoutPendingEventsRunsSoon) {
  Pool pool = MakePool(1);
  for (const bool some : {false, true}) {
    EventPromise done("done");
    const Event event = done.event();
    const std::vector<Event> events(some ? 3 : 0);
    ASSERT_TRUE(pool.ScheduleWhenReady(events, [done = std::move(done)]() mutable { done.SetReady(); }).ok());
    EXPECT_TRUE(event.Wait().ok());
  }
}

TEST(ScheduleWhenReadyTest, RunsAfterFailedEventsToo) {
  Pool pool = MakePool(1);
  EventPromise failing("failing");
  EventPromise done("done");
  const Event event = done.event();
  ASSERT_TRUE(pool.ScheduleWhenReady({failing.event()}, [&done] { done.SetReady(); }).ok());
  failing.SetError(AbortedError("x"));
  EXPECT_TRUE(event.Wait().ok());
}

TEST(ScheduleWhenReadyTest, TellsAClosureThatAsksWhichErrorCameFirstByIndex) {
  Pool pool = MakePool(2);
  EventPromise a("a");
  EventPromise b("b");
  EventPromise done("done");
  const Event event = done.event();
  ASSERT_TRUE(
      pool.ScheduleWhenReady({Event(), a.event(), b.event()}, [&done](const Status& status) { done.SetError(status); })
          .ok());
  b.SetError(InternalError("b"));
  a.SetError(AbortedError("a"));
  EXPECT_EQ(event.Wait(), AbortedError("a"));

  EventPromise good("good");
  const Event good_event = good.event();
  ASSERT_TRUE(pool.ScheduleWhenReady({Event()}, [&good](Status status) { good.Set(std::move(status)); }).ok());
  EXPECT_TRUE(good_event.Wait().ok());
}

TEST(ScheduleWhenReadyTest, RunsAfterValuesAndFuturesToo) {
  Pool pool = MakePool(1);
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>("value");
  const std::vector<AsyncValueRef<int>> values = {value, MakeAvailableAsyncValueRef<int>(2)};
  auto [promise, future] = MakePromise<int>("future");
  auto [sum, total] = MakePromise<int>("sum");
  ASSERT_TRUE(
      pool.ScheduleWhenReady(values, [&values, sum = std::move(sum)]() mutable { sum.Set(*values[0] + *values[1]); })
          .ok());
  auto [told, tells] = MakePromise<>("told");
  ASSERT_TRUE(
      pool.ScheduleWhenReady({future}, [told = std::move(told)](Status status) mutable { told.Set(std::move(status)); })
          .ok());
  EXPECT_FALSE(total.IsReady());
  value.emplace(1);
  EXPECT_EQ(*total.Await(), 3);
  EXPECT_FALSE(tells.IsReady());
  promise.Set(AbortedError("x"));
  EXPECT_TRUE(IsAborted(tells.Await()));
}

TEST(ScheduleWhenReadyTest, WhatStillWaitsAtShutdownIsDestroyedUncalled) {
  Pool pool = MakePool(1);
  std::atomic<int> calls{0};
  std::atomic<int> ends{0};
  EventPromise promise("late");
  ASSERT_TRUE(pool.ScheduleWhenReady({promise.event()}, Counted(&calls, &ends)).ok());
  ASSERT_TRUE(pool.Shutdown().ok());
  EXPECT_EQ(ends.load(), 0);
  promise.SetReady();
  EXPECT_EQ(calls.load(), 0);
  EXPECT_EQ(ends.load(), 1);
}

TEST(ScheduleWhenReadyTest, WhatStillWaitsWhenTheLastHandleGoesIsDestroyedUncalled) {
  std::atomic<int> calls{0};
  std::atomic<int> ends{0};
  EventPromise promise("late");
  {
    Pool pool = MakePool(1);
    ASSERT_TRUE(pool.ScheduleWhenReady({promise.event()}, Counted(&calls, &ends)).ok());
  }
  promise.SetReady();
  EXPECT_EQ(calls.load(), 0);
  EXPECT_EQ(ends.load(), 1);
}

/// Calls ParallelFor and checks that the ranges cover [0, count) once each and are no longer than `grain`.
void ExpectCovers(AsyncWorkRunner& runner, std::size_t count, std::size_t grain) {
  std::vector<std::atomic<int>> visits(count);
  std::atomic<std::size_t> longest{0};
  const Status status = runner.ParallelFor(count, Grain(grain), [&](std::size_t begin, std::size_t end) {
    EXPECT_LT(begin, end);
    EXPECT_LE(end, count);
    std::size_t seen = longest.load();
    while (seen < end - begin && !longest.compare_exchange_weak(seen, end - begin)) {
    }
    for (std::size_t i = begin; i < end; ++i) visits[i].fetch_add(1);
  });
  EXPECT_TRUE(status.ok()) << status;
  for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit.load(), 1);
  EXPECT_LE(longest.load(), grain == 0 ? count : grain);
}

TEST(ParallelForTest, CoversTheRangeOnceInPiecesOfAtMostAGrain) {
  Pool pool = MakePool(3);
  for (const std::size_t count : {0U, 1U, 2U, 7U, 100U, 1'000U}) {
    for (const std::size_t grain : {0U, 1U, 3U, 100U, 5'000U}) ExpectCovers(pool, count, grain);
  }
}

TEST(ParallelForTest, ExtremeGrainsAreFine) {
  Pool pool = MakePool(2);
  ExpectCovers(pool, 10, static_cast<std::size_t>(-1));
}

template <typename Runner, typename Number, typename = void>
struct TakesABareNumber : std::false_type {};
template <typename Runner, typename Number>
struct TakesABareNumber<Runner, Number,
                        std::void_t<decltype(std::declval<Runner&>().ParallelFor(
                            1, std::declval<Number>(), std::declval<void (*)(std::size_t, std::size_t)>()))>>
    : std::true_type {};

TEST(ParallelForTest, ABareNumberIsNeitherAGrainNorACost) {
  static_assert(TakesABareNumber<Pool, Grain>::value);
  static_assert(!TakesABareNumber<Pool, int>::value && !TakesABareNumber<Pool, std::int64_t>::value &&
                !TakesABareNumber<Pool, std::size_t>::value && !TakesABareNumber<Pool, double>::value);
}

TEST(ParallelForTest, IdsAreUniqueAmongTheCallsThatRun) {
  Pool pool = MakePool(3);
  std::vector<std::atomic<int>> running(pool.NumThreads() + 1);
  std::vector<std::atomic<int>> visits(1'000);
  const Status status =
      pool.ParallelForWithWorkerId(visits.size(), Grain(1), [&](std::size_t begin, std::size_t end, std::size_t id) {
        ASSERT_LT(id, running.size());
        EXPECT_EQ(running[id].fetch_add(1), 0) << "two calls have the id " << id;
        for (std::size_t i = begin; i < end; ++i) visits[i].fetch_add(1);
        running[id].fetch_sub(1);
      });
  EXPECT_TRUE(status.ok()) << status;
  for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit.load(), 1);
}

TEST(ParallelForTest, IdsStayFewHoweverManyCallsBlock) {
  Pool pool = MakePool(2);
  std::vector<std::atomic<int>> running(pool.NumThreads() + 1);
  std::atomic<int> calls{0};
  // Each call waits for a task of the pool, so spare threads begin further ranges, more than there are ids.
  const Status status = pool.ParallelForWithWorkerId(200, Grain(1), [&](std::size_t, std::size_t, std::size_t id) {
    ASSERT_LT(id, running.size());
    EXPECT_EQ(running[id].fetch_add(1), 0);
    EXPECT_TRUE(MakeFutureOn(pool, [] {}).Await().ok());
    running[id].fetch_sub(1);
    ++calls;
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(calls.load(), 200);
  EXPECT_TRUE(pool.ParallelForWithWorkerId(3, [&](std::size_t, std::size_t, std::size_t) { ++calls; }).ok());
  const std::function<void(std::size_t, std::size_t, std::size_t)> none;
  EXPECT_TRUE(IsInvalidArgument(pool.ParallelForWithWorkerId(3, none)));
}

TEST(ParallelForTest, NestsInAFullPool) {
  Pool pool = MakePool(2);
  std::atomic<int> cells{0};
  std::array<EventPromise, 2> done = {EventPromise("a"), EventPromise("b")};
  for (EventPromise& promise : done) {
    ASSERT_TRUE(pool.Schedule([&pool, &cells, &promise] {
                      promise.Set(pool.ParallelFor(4, Grain(1), [&](std::size_t, std::size_t) {
                        static_cast<void>(
                            pool.ParallelFor(4, Grain(1), [&](std::size_t, std::size_t) { cells.fetch_add(1); }));
                      }));
                    })
                    .ok());
  }
  EXPECT_TRUE(done[0].event().Wait().ok());
  EXPECT_TRUE(done[1].event().Wait().ok());
  EXPECT_EQ(cells.load(), 2 * 4 * 4);
}

TEST(ParallelForTest, UsesIdleWorkers) {
  Pool pool = MakePool(1);
  EventPromise both("both");
  const Event event = both.event();
  std::atomic<int> inside{0};
  const Status status = pool.ParallelFor(2, Grain(1), [&](std::size_t, std::size_t) {
    if (inside.fetch_add(1) == 1) both.SetReady();
    static_cast<void>(event.Wait());  // Returns only if the two calls are on two threads.
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(ParallelForTest, BodyMayBeANamedMutableObject) {
  Pool pool = MakePool(1);
  std::atomic<std::size_t> sum{0};
  auto body = [&sum](std::size_t begin, std::size_t end) mutable { sum.fetch_add(end - begin); };
  EXPECT_TRUE(pool.ParallelFor(10, Grain(2), body).ok());
  EXPECT_EQ(sum.load(), 10U);
}

TEST(ThreadPoolTest, TasksThatWaitForTasksOfTheirOwnPoolEnd) {
  constexpr std::size_t kThreads = 3;
  Pool pool = MakePool(kThreads);
  for (int round = 0; round < 1'000; ++round) {
    std::vector<Event> outer;
    for (std::size_t i = 0; i < kThreads; ++i) {
      EventPromise done("outer");
      outer.push_back(done.event());
      ASSERT_TRUE(pool.Schedule([&pool, done = std::move(done)]() mutable {
                        std::vector<Event> inner;
                        for (std::size_t j = 0; j < kThreads; ++j) {
                          EventPromise promise("inner");
                          inner.push_back(promise.event());
                          static_cast<void>(
                              pool.Schedule([promise = std::move(promise)]() mutable { promise.SetReady(); }));
                        }
                        done.Set(WhenAll(inner).Wait());
                      })
                      .ok());
    }
    ASSERT_TRUE(WhenAll(outer).Wait().ok());
  }
}

int Fib(Pool& pool, int n) {
  if (n < 2) return n;
  int a = 0;
  int b = 0;
  EXPECT_TRUE(pool.Join([&] { a = Fib(pool, n - 1); }, [&] { b = Fib(pool, n - 2); }).ok());
  return a + b;
}

TEST(JoinTest, CallsBothOutsideInsideAndAfterShutdown) {
  Pool pool = MakePool(2);
  EXPECT_EQ(Fib(pool, 12), 144);
  EventPromise done("done");
  const Event event = done.event();
  int inside = 0;
  ASSERT_TRUE(pool.Schedule([&] {
                    inside = Fib(pool, 15);
                    done.SetReady();
                  })
                  .ok());
  ASSERT_TRUE(event.Wait().ok());
  EXPECT_EQ(inside, 610);
  ASSERT_TRUE(pool.Shutdown().ok());
  EXPECT_EQ(Fib(pool, 10), 55);
}

TEST(JoinTest, LendsTheSecondCallToAnIdleWorker) {
  Pool pool = MakePool(2);
  EventPromise both("both");
  const Event event = both.event();
  std::atomic<int> inside{0};
  auto meet = [&] {
    if (inside.fetch_add(1) == 1) both.SetReady();
    while (!event.IsReady()) std::this_thread::yield();  // Ends only if the two calls are on two threads.
  };
  EXPECT_TRUE(pool.Join(meet, meet).ok());
}

TEST(ShutdownTest, CancellingDestroysWhatHasNotBegun) {
  Pool pool = MakePool(1);
  EventPromise begun("begun");
  EventPromise gate("gate");
  ASSERT_TRUE(pool.Schedule([&begun, open = gate.event()] {
                    begun.SetReady();
                    while (!open.IsReady()) std::this_thread::yield();
                  })
                  .ok());
  ASSERT_TRUE(begun.event().Wait().ok());
  std::atomic<int> calls{0};
  std::atomic<int> ends{0};
  ASSERT_TRUE(pool.Schedule(Counted(&calls, &ends)).ok());
  Status shutdown;
  std::thread other([&] { shutdown = pool.Shutdown({ShutdownMode::kCancelPending, -1}); });
  while (ends.load() == 0) std::this_thread::yield();
  gate.SetReady();
  other.join();
  EXPECT_TRUE(shutdown.ok()) << shutdown;
  EXPECT_EQ(calls.load(), 0);
}

TEST(ShutdownTest, ADeadlineThatPassesNamesWhatRuns) {
  Pool pool = MakePool(1);
  EventPromise begun("begun");
  EventPromise gate("gate");
  ASSERT_TRUE(pool.Schedule(
                      [&begun, open = gate.event()] {
                        begun.SetReady();
                        while (!open.IsReady()) std::this_thread::yield();
                      },
                      Label("slow kernel"))
                  .ok());
  ASSERT_TRUE(begun.event().Wait().ok());
  const Status late = pool.Shutdown({ShutdownMode::kDrain, 1'000'000});
  EXPECT_TRUE(IsDeadlineExceeded(late)) << late;
  EXPECT_NE(late.message().find("'slow kernel'"), std::string::npos) << late;
  gate.SetReady();
  EXPECT_TRUE(pool.Shutdown().ok());
}

/// A runner of the user's: everything inline.
class InlineRunner final : public AsyncWorkRunner {
 public:
  Status Execute(Task task) override {
    std::move(task).Run();
    return OkStatus();
  }
  Status ExecuteWhenReady(Span<const Event> events, Task task) override {
    WhenAll(events).OnReady([task = std::move(task)]() mutable { std::move(task).Run(); });
    return OkStatus();
  }
  Status ParallelForRanges(std::size_t count, std::size_t, bool (*call)(void*, std::size_t, std::size_t),
                           void* data) override {
    return count == 0 || call(data, 0, count) ? OkStatus() : InternalError("threw");
  }
};

TEST(AsyncWorkRunnerTest, MayBeTheUsersOwn) {
  InlineRunner runner;
  int ran = 0;
  EXPECT_TRUE(runner.Schedule([&ran] { ++ran; }).ok());
  EXPECT_EQ(ran, 1);
  EventPromise promise("p");
  EXPECT_TRUE(
      runner.ScheduleWhenReady({promise.event()}, [&ran](const Status& status) { ran += IsAborted(status) ? 1 : 100; })
          .ok());
  EXPECT_EQ(ran, 1);
  promise.SetError(AbortedError("x"));
  EXPECT_EQ(ran, 2);
  ExpectCovers(runner, 10, 0);
}

TEST(AsyncWorkRunnerTest, AnInlineRunnerRunsATaskAfterTheLastOfItsEvents) {
  InlineRunner runner;
  EventPromise first("first");
  EventPromise second("second");
  int ran = 0;
  ASSERT_TRUE(runner.ScheduleWhenReady({first.event(), Event(), second.event()}, [&ran] { ++ran; }).ok());
  second.SetError(AbortedError("x"));
  EXPECT_EQ(ran, 0);
  first.SetReady();
  EXPECT_EQ(ran, 1) << "on the thread that completed the last, before SetReady returned";
}

}  // namespace
}  // namespace purlin
