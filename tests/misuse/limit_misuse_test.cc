// Limits of the system, each in a process of its own: no threads, no memory, no descriptors, a full disk; and reports
// beside load.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/buffer.h"
#include "purlin/client.h"
#include "purlin/elastic_pool.h"
#include "purlin/event.h"
#include "purlin/join_events.h"
#include "purlin/npy.h"
#include "purlin/raw_buffer.h"
#include "purlin/stall.h"
#include "purlin/timer.h"
#include "purlin/trace.h"
#include "tests/cpp/testing.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool Limit(int what, rlim_t most) {
  const rlimit limit{most, most};
  return setrlimit(what, &limit) == 0;
}
int Code(const Status& status) { return static_cast<int>(status.code()); }
const std::string kExhausted = "exit " + std::to_string(static_cast<int>(StatusCode::kResourceExhausted));

class LimitMisuse : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitizer) GTEST_SKIP() << "sanitizers need what is taken away";
    // A limit on threads does not bind root.
    if (getuid() == 0 && setgid(65534) == 0 && setuid(65534) != 0) GTEST_SKIP() << "there is no other user";
  }
};

TEST_F(LimitMisuse, WithoutThreadsAPoolIsRefusedByNumber) {
  EXPECT_EQ(InChild([] {
              if (!Limit(RLIMIT_NPROC, 0)) return 99;
              ThreadPoolOptions options;
              options.thread_count = 2;
              return Code(ThreadPoolAsyncWorkRunner::Create(options).status());
            }),
            kExhausted);
}

TEST_F(LimitMisuse, WithoutThreadsAClientIsRefused) {
  EXPECT_EQ(InChild([] { return Limit(RLIMIT_NPROC, 0) ? Code(Client::Create().status()) : 99; }), kExhausted);
}

TEST_F(LimitMisuse, WithoutThreadsAnElasticPoolRefusesItsFirstTask) {
  EXPECT_EQ(InChild([] {
              auto pool = ElasticPool::Create({}).value();
              if (!Limit(RLIMIT_NPROC, 0)) return 99;
              EventPromise owed("owed");
              const Event event = owed.event();
              const Status refused = pool.Schedule([owed = std::move(owed)] {});
              return event.IsReady() ? Code(refused) : 98;
            }),
            kExhausted);
}

TEST_F(LimitMisuse, WithoutThreadsATimerFails) {
  EXPECT_EQ(InChild([] {
              if (!Limit(RLIMIT_NPROC, 0)) return 99;
              return Code(Timer::After(milliseconds(1)).event().Wait());
            }),
            kExhausted);
  EXPECT_EQ(InChild([] {
              if (!Limit(RLIMIT_NPROC, 0)) return 99;
              const EventPromise promise("never");
              return Code(WithTimeout(promise.event(), milliseconds(1)).Wait());
            }),
            kExhausted);
}

TEST_F(LimitMisuse, WithoutThreadsAWatchdogIsRefused) {
  EXPECT_EQ(InChild([] { return Limit(RLIMIT_NPROC, 0) ? Code(Watchdog::Start({}).status()) : 99; }), kExhausted);
}

TEST_F(LimitMisuse, WithoutAddressSpaceALargeAllocationIsRefused) {
  EXPECT_EQ(InChild([] {
              const Client client = HostClient(1, 1);
              if (!Limit(RLIMIT_AS, std::size_t{1} << 30)) return 99;
              return Code(RawBuffer::Allocate(SpaceOf(client), std::size_t{1} << 32).status());
            }),
            kExhausted);
}

TEST_F(LimitMisuse, WithoutAddressSpaceAllocationsEndInAnErrorAndComeBack) {
  EXPECT_EQ(InChild([] {
              const Client client = HostClient(1, 1);
              if (!Limit(RLIMIT_AS, std::size_t{2} << 30)) return 99;
              std::vector<RawBuffer> all;
              for (;;) {
                auto one = RawBuffer::Allocate(SpaceOf(client), std::size_t{64} << 20);
                if (!one.ok()) {
                  if (Code(one.status()) != Code(ResourceExhaustedError(""))) return 98;
                  break;
                }
                all.push_back(*std::move(one));
                if (all.size() > 100) return 97;
              }
              all.clear();
              return RawBuffer::Allocate(SpaceOf(client), std::size_t{64} << 20).ok() ? 0 : 96;
            }),
            "exit 0");
}

TEST_F(LimitMisuse, WithoutDescriptorsFilesAreRefusedAndNothingElse) {
  EXPECT_EQ(InChild([] {
              const Client client = HostClient(1, 1);
              if (!Limit(RLIMIT_NOFILE, 3)) return 99;
              const Status read = ReadNpy("/etc/hostname", SpaceOf(client)).status();
              if (read.ok() || read.message().find("/etc/hostname") == std::string_view::npos) return 98;
              if (StartTrace("/tmp/purlin_no_descriptors.json").ok()) return 97;
              if (DumpStalls().empty()) return 96;
              return RawBuffer::Allocate(SpaceOf(client), 4096).ok() ? 0 : 95;
            }),
            "exit 0");
}

TEST_F(LimitMisuse, AFileThatMayNotGrowIsAnErrorAndLeavesNothing) {
  const std::string folder = testing::TempDir() + "purlin_limit_misuse_" + std::to_string(getpid());
  ASSERT_TRUE(std::filesystem::create_directories(folder));
  EXPECT_EQ(InChild([&folder] {
              const Client client = HostClient(1, 1);
              const std::vector<std::uint8_t> bytes(1 << 20, 1);
              const auto buffer = Buffer::FromHost(bytes.data(), bytes.size(), DType::kU8, {1 << 20}, SpaceOf(client));
              signal(SIGXFSZ, SIG_IGN);
              if (!Limit(RLIMIT_FSIZE, 4096)) return 99;
              const Status written = WriteNpy(folder + "/big.npy", *buffer);
              return !written.ok() && written.message().find("big.npy") != std::string_view::npos ? 0 : 98;
            }),
            "exit 0");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

// Waits ---------------------------------------------------------------------------------------------------------------

Status ScheduleAndWait(ThreadPoolAsyncWorkRunner& pool, int depth) {
  if (depth == 0) return OkStatus();
  EventPromise promise("one deeper");
  const Event done = promise.event();
  const Status refused = pool.Schedule(
      [&pool, depth, promise = std::move(promise)]() mutable { promise.Set(ScheduleAndWait(pool, depth - 1)); });
  return refused.ok() ? done.Wait() : refused;
}

TEST(WaitMisuse, ScheduleAndWaitThreeHundredDeepOnOneThread) {
  auto pool = PoolOf(1);
  EXPECT_TRUE(Ok(ScheduleAndWait(pool, 300)));
}

/// So many tasks wait for one that is queued behind them, and all end.
template <typename Pool>
void WaitForOneBehindThem(Pool& pool, std::size_t tasks) {
  EventPromise last("queued behind all of them");
  const Event event = last.event();
  std::vector<EventPromise> promises(tasks);
  std::vector<Event> all;
  for (EventPromise& promise : promises) {
    all.push_back(promise.event());
    ASSERT_TRUE(Ok(pool.Schedule([event, promise = std::move(promise)]() mutable { promise.Set(event.Wait()); })));
  }
  ASSERT_TRUE(Ok(pool.Schedule([&last] { last.SetReady(); })));
  EXPECT_TRUE(Ok(WhenAll(all)));
}

TEST(WaitMisuse, FiftyTasksOnTwoThreadsWaitForOneBehindThem) {
  auto pool = PoolOf(2);
  WaitForOneBehindThem(pool, 50);
}

TEST(WaitMisuse, TasksOfAnElasticPoolOfOneThreadWaitForOneBehindThem) {
  ElasticPoolOptions options;
  options.max_threads = 1;
  auto pool = ElasticPool::Create(options).value();
  WaitForOneBehindThem(pool, 3);
}

TEST(WaitMisuse, AWaiterOnTheTimersThreadMayWaitForATimer) {
  Timer outer = Timer::After(milliseconds(1), "outer");
  EventPromise told("told");
  const Event answer = told.event();
  outer.event().OnReady(
      [told = std::move(told)]() mutable { told.Set(Timer::After(milliseconds(1), "inner").event().Wait()); });
  EXPECT_TRUE(Ok(answer));
  EXPECT_TRUE(Ok(Timer::After(milliseconds(1), "the next").event()));
}

TEST(WaitMisuse, AWaiterThatAShutdownFailsCannotShutTheClientDown) {
  const Client client = HostClient();
  EventPromise gate("never in time");
  const RawBuffer memory = RawBuffer::Allocate(SpaceOf(client), 16).value();
  static std::uint8_t out[16];
  const Event copied = memory.CopyToHost(out, 0, 16, {gate.event()});
  Status inside;
  copied.OnReady([&] { inside = client.Shutdown(); });
  ShutdownOptions options;
  options.mode = ShutdownMode::kCancelPending;
  static_cast<void>(client.Shutdown(options).ok());
  EXPECT_TRUE(Fails(copied, StatusCode::kCancelled, {"never in time"}));
  EXPECT_TRUE(Fails(inside, StatusCode::kFailedPrecondition));
  gate.SetReady();
}

TEST(WaitMisuse, AWaitInATaskForWhatItsOwnThreadDoesLaterIsReported) {
  auto pool = PoolOf(1, "stuck");
  EventPromise later("set later by the same task");
  const Event event = later.event();
  EventPromise told("told");
  const Event answer = told.event();
  ASSERT_TRUE(Ok(pool.Schedule([&, told = std::move(told)]() mutable {
    const Status status = event.WaitFor(milliseconds(20));
    later.SetReady();
    told.Set(status);
  })));
  EXPECT_TRUE(Fails(answer, StatusCode::kDeadlineExceeded, {"set later by the same task"}));
}

TEST(WaitMisuse, ATaskThatWaitsForItsOwnResultOrThatOfOneFurtherOutIsToldSo) {
  auto pool = PoolOf(1, "selfish");
  EventPromise start("start");
  const Event started = start.event();
  Event own;
  std::vector<Status> inside;
  const AsyncValueRef<int> outer = MakeAsyncValueRef(
      pool,
      [&] {
        EXPECT_TRUE(Ok(started));
        inside.push_back(own.Wait());
        const AsyncValueRef<int> inner = MakeAsyncValueRef(
            pool,
            [&] {
              inside.push_back(WhenAll({own, Event()}).Wait());
              return 1;
            },
            "inner");
        EXPECT_TRUE(Ok(inner.Wait()));
        EXPECT_TRUE(Fails(own.WaitFor(milliseconds(1)), StatusCode::kDeadlineExceeded)) << "one may look";
        return 2;
      },
      "selfish");
  own = outer.AsEvent();
  start.SetReady();
  EXPECT_TRUE(Ok(own));
  ASSERT_EQ(inside.size(), 2U);
  for (const Status& status : inside) {
    EXPECT_TRUE(Fails(status, StatusCode::kFailedPrecondition, {"'selfish'", "is owed by task 'selfish'"}));
  }
}

TEST(WaitMisuse, TheLastHandleOfAnElasticPoolAfterADeadlineThatPassed) {
  std::atomic<bool> go{false}, ended{false};
  {
    auto pool = ElasticPool::Create({}).value();
    std::atomic<bool> begun{false};
    ASSERT_TRUE(Ok(pool.Schedule([&] {
      begun.store(true);
      while (!go.load()) std::this_thread::yield();
      ended.store(true);
    })));
    while (!begun.load()) std::this_thread::yield();
    EXPECT_TRUE(Fails(pool.ShutdownBy(std::chrono::steady_clock::now()), StatusCode::kDeadlineExceeded));
  }
  EXPECT_FALSE(ended.load());
  go.store(true);
  while (!ended.load()) std::this_thread::yield();
}

// Reports beside load -------------------------------------------------------------------------------------------------

TEST(LoadMisuse, TwentyFourThreadsAllocateBesideReportsOfEveryKind) {
  const Client client = HostClient(2, 2, std::size_t{64} << 20);
  const MemorySpace space = SpaceOf(client);
  std::atomic<bool> stop{false};
  std::vector<std::thread> reporters;
  reporters.emplace_back([&] {
    while (!stop.load()) static_cast<void>(DumpStalls().size());
  });
  reporters.emplace_back([&] {
    while (!stop.load()) static_cast<void>(space.Report().ToJson().size());
  });
  Together(24, [&](int index) {
    for (int i = 0; i < (kThreadSanitizer ? 40 : 200); ++i) {
      const auto size = static_cast<std::size_t>((index * 7919 + i * 104729) % 300000);
      const auto memory = RawBuffer::Allocate(space, size);
      EXPECT_TRUE(memory.ok() || IsResourceExhausted(memory.status())) << memory.status();
      const bool whole = !memory.ok() || memory->Slice(0, size / 2).ok();
      const bool refused = i % 50 != 0 || !RawBuffer::Allocate(space, std::size_t{1} << 40).ok();
      EXPECT_TRUE(whole && refused);
    }
  });
  stop.store(true);
  for (std::thread& reporter : reporters) reporter.join();
  ExpectAllIsFreed(space);
}

TEST(LoadMisuse, TwentyFourThreadsMakeAndDeleteBuffersBesideReports) {
  const Client client = HostClient(1, 2);
  const MemorySpace space = SpaceOf(client);
  std::atomic<bool> stop{false};
  std::thread reporter([&] {
    while (!stop.load()) {
      static_cast<void>(DumpStalls().size());
      static_cast<void>(space.Report().DebugString().size());
    }
  });
  Together(24, [&](int) {
    const std::uint8_t bytes[64] = {};
    for (int i = 0; i < (kThreadSanitizer ? 40 : 200); ++i) {
      const auto buffer = Buffer::FromHost(bytes, 64, DType::kU8, {64}, space);
      ASSERT_TRUE(Ok(buffer));
      if (i % 2 == 0) buffer->Delete();
    }
  });
  stop.store(true);
  reporter.join();
}

TEST(LoadMisuse, AWatchdogWatchesTwentyFourAllocatingThreads) {
  const Client client = HostClient(1, 2);
  WatchdogOptions options;
  options.older_than = milliseconds(10);
  options.sink = [](std::string_view) {};
  const auto watchdog = Watchdog::Start(std::move(options));
  ASSERT_TRUE(Ok(watchdog));
  Together(24, [&](int) {
    for (int i = 0; i < (kThreadSanitizer ? 40 : 200); ++i) {
      EventPromise promise("short");
      EXPECT_TRUE(Ok(RawBuffer::Allocate(SpaceOf(client), 4096)));
      promise.SetReady();
    }
  });
}

}  // namespace
}  // namespace purlin
