// Stall reports and the watchdog, from C++. What the reports say in detail is tested in rust/async/src/stall.
#include "purlin/stall.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>

#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/promise.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(StallTest, NamesPendingEventsOfBothLanguages) {
  EventPromise promise("copy of the weights");
  auto [set, future] = MakePromise<int>("a value");
  const std::string report = DumpStalls();
  EXPECT_TRUE(Has(report, "event 'copy of the weights' made at ")) << report;
  EXPECT_TRUE(Has(report, "stall_test.cc")) << report;
  EXPECT_TRUE(Has(report, "event 'a value'")) << report;
  EXPECT_FALSE(Has(DumpStalls(std::chrono::hours(1)), "copy of the weights"));
  promise.SetReady();
  set.Set(1);
  EXPECT_FALSE(Has(DumpStalls(), "copy of the weights"));
}

TEST(StallTest, NamesSleepingThreadsAndTheirTasks) {
  StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({1, "stuck"});
  ASSERT_TRUE(pool.ok());
  EventPromise promise("never");
  const Event event = promise.event();
  ASSERT_TRUE(pool->Schedule([event] { event.Wait().IgnoreError(); }, "kernel").ok());
  std::string report;
  while (!Has(report, "thread 'stuck/0' has slept")) report = DumpStalls();
  EXPECT_TRUE(Has(report, "in task 'kernel'")) << report;
  EXPECT_TRUE(Has(report, "pool 'stuck'")) << report;
  promise.SetReady();
}

TEST(StallTest, ThreadsMakeAndFreeEventsWhileTheyAreListed) {
  std::atomic<bool> enough{false};
  EventPromise stays("stays");
  Together(3, [&](int thread) {
    if (thread == 0) {
      for (int i = 0; i < 200; ++i) EXPECT_TRUE(Has(DumpStalls(), "event 'stays' made at "));
      enough.store(true);
      return;
    }
    // Cells of both languages: one takes what the other has freed.
    while (!enough.load()) {
      const EventPromise one("of C++");
      const EventPromise other("of C++, too");
      const Event events[] = {one.event(), other.event()};
      EXPECT_FALSE(WhenAll(events).IsReady());
    }
  });
  stays.SetReady();
}

TEST(StallTest, AReportIsNeverEmpty) {
  const Event ready = Event::Ready();
  EXPECT_FALSE(DumpStalls().empty()) << "a report always has its first line";
  EXPECT_TRUE(ready.IsReady());
}

TEST(WatchdogTest, RefusesToLookTooOften) {
  WatchdogOptions options;
  options.older_than = std::chrono::milliseconds(1);
  EXPECT_TRUE(IsInvalidArgument(Watchdog::Start(options).status()));
}

TEST(WatchdogTest, PoisonsWhatAThreadSleepsOnAndTellsWhy) {
  std::promise<std::string> told;
  WatchdogOptions options;
  options.older_than = std::chrono::milliseconds(20);
  options.action = WatchdogAction::kPoison;
  bool first = true;
  options.sink = [&told, &first](std::string_view report) {
    if (first && Has(std::string(report), "'stuck for ever'")) {
      first = false;
      told.set_value(std::string(report));
    }
  };
  EventPromise promise("stuck for ever");
  StatusOr<Watchdog> watchdog = Watchdog::Start(std::move(options));
  ASSERT_TRUE(watchdog.ok()) << watchdog.status();
  const Status status = promise.event().Wait();
  EXPECT_TRUE(IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(Has(told.get_future().get(), "stuck for ever"));
  EXPECT_FALSE(promise.SetReady()) << "too late";
}

}  // namespace
}  // namespace purlin
