// A child made by fork() calls every class: each call answers at once, by a value or kFailedPrecondition, and
// destructors end.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/async_value_storage.h"
#include "purlin/buffer.h"
#include "purlin/cancel.h"
#include "purlin/client.h"
#include "purlin/count_down.h"
#include "purlin/elastic_pool.h"
#include "purlin/future.h"
#include "purlin/join_events.h"
#include "purlin/join_futures.h"
#include "purlin/npy.h"
#include "purlin/promise.h"
#include "purlin/semaphore.h"
#include "purlin/serial_queue.h"
#include "purlin/staging.h"
#include "purlin/stall.h"
#include "purlin/timer.h"
#include "purlin/trace.h"
#include "purlin/transfer.h"
#include "purlin/user_context.h"
#include "tests/cpp/raw_bytes.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

bool Refused(const Status& status) {
  return IsFailedPrecondition(status) && status.message().find("fork") != std::string_view::npos;
}
template <typename T>
bool Refused(const StatusOr<T>& result) {
  return Refused(result.status());
}

class ForkMisuse : public testing::Test {
 protected:
  void SetUp() override { PURLIN_SKIP_UNLESS_FORKS(false); }
};

TEST_F(ForkMisuse, AnEventOfTheParentsHasFailedInTheChild) {
  EventPromise promise("before the fork");
  const Event event = promise.event();
  int parents = 0;
  event.OnReady([&parents] { ++parents; });
  EXPECT_EQ(InChild([&] {
              int calls = 0;
              event.OnReady([&calls] { ++calls; });
              if (!Refused(event.Wait()) || !Refused(event.WaitFor(hours(1))) || calls != 1) return 1;
              if (promise.SetReady() || parents != 0) return 2;
              EventPromise inside("inside");
              const Event mine = inside.event();
              if (!Refused(WhenAll({event, Event()}).Wait()) || !AfterAll({event}).Wait().ok()) return 3;
              return inside.SetReady() && mine.Wait().ok() ? 0 : 4;
            }),
            "exit 0");
  EXPECT_FALSE(event.IsReady());
  EXPECT_TRUE(promise.SetReady());
  EXPECT_EQ(parents, 1);
}

TEST_F(ForkMisuse, ValuesAndFuturesOfTheParentsHaveFailedInTheChild) {
  const auto value = MakeUnconstructedAsyncValueRef<int>("before the fork");
  auto [promise, future] = MakePromise<int>("before the fork");
  const Future<std::vector<int>> all = JoinFutures(std::vector<Future<int>>{future, future});
  CountDownAsyncValueRef<Chain> count(2);
  EXPECT_EQ(InChild([&, &p = promise, &f = future] {
              if (value.emplace(1) || !Refused(value.Wait())) return 1;
              if (!Refused(value.Map([](int v) { return v; }).Wait())) return 2;
              if (p.Set(3) || !Refused(f.Await()) || !IsFailedPrecondition(all.Await().status())) return 3;
              static_cast<void>(count.CountDown(2));
              if (!Refused(count.AsRef().Wait())) return 4;
              auto [own, mine] = MakePromise<int>("inside");
              return own.Set(5) && *mine.Await() == 5 ? 0 : 5;
            }),
            "exit 0");
  EXPECT_TRUE(promise.Set(1));
  EXPECT_TRUE(value.emplace(1));
  EXPECT_TRUE(count.CountDown(2));
}

TEST_F(ForkMisuse, WhatTheChildMakesOfAValueInAnOwnersMemoryFailsOrEndsWithIt) {
  AsyncValueStorage<int> storage;
  AsyncValueOwningRef<int> owner = MakeUnconstructedAsyncValueRef<int>(storage, "in its owner's memory");
  const Event event = owner.AsRef().AsEvent();
  EXPECT_EQ(InChild([&] {
              EventPromise set("set");
              EventPromise forwarded("forwarded");
              const Event copy = forwarded.event();
              const Event joined = WhenAll({event, set.event()});
              const Event twice = WhenAll({joined, copy});
              std::move(forwarded).Forward(event);
              const AsyncValueRef<int> mapped = owner.AsPtr().Map([](int value) { return value + 1; });
              for (const Event& waits : {event, joined, twice, copy, mapped.AsEvent()}) {
                if (!Fails(waits.Wait(), StatusCode::kFailedPrecondition, {"in its owner's memory", "fork"})) return 1;
                if (!Fails(waits.WaitFor(hours(1)), StatusCode::kFailedPrecondition, {"fork"})) return 2;
              }
              // One that the child makes is waited for.
              AsyncValueStorage<int> own;
              AsyncValueOwningRef<int> mine = MakeUnconstructedAsyncValueRef<int>(own, "the child's");
              const Event later = WhenAll({mine.AsRef().AsEvent(), set.event()});
              std::thread setter([&] {
                mine.AsPtr().emplace(7);
                set.SetReady();
              });
              const Status waited = later.Wait();
              setter.join();
              if (!waited.ok()) return 3;
              // The child may complete it.
              owner.AsPtr().emplace(1);
              return joined.Wait().ok() && twice.Wait().ok() && copy.Wait().ok() && mapped.get() == 2 ? 0 : 4;
            }),
            "exit 0");
  EXPECT_TRUE(owner.AsPtr().emplace(3));
}

TEST_F(ForkMisuse, APoolRefusesInTheChildAndItsHandleGoes) {
  std::optional<ThreadPoolAsyncWorkRunner> pool = PoolOf(2, "forked");
  EXPECT_EQ(InChild([&] {
              EventPromise owed("owed");
              const Event event = owed.event();
              if (!Refused(pool->Schedule([owed = std::move(owed)] {})) || !event.IsReady()) return 1;
              if (!Refused(pool->ExecuteWith(Task([] {}), TaskOptions()))) return 2;
              if (!Refused(pool->Shutdown())) return 3;
              int calls = 0;
              if (!pool->ParallelFor(4, Grain(1), [&calls](std::size_t, std::size_t) { ++calls; }).ok() || calls != 4)
                return 4;
              const Status joined = pool->Join([&calls] { ++calls; }, [&calls] { ++calls; });
              if (!(joined.ok() && calls == 6) && !Refused(joined)) return 5;
              if (pool->Describe().empty() || pool->NumThreads() != 2) return 6;
              pool.reset();
              return 0;
            }),
            "exit 0");
  EXPECT_TRUE(Ok(pool->Shutdown()));
}

TEST_F(ForkMisuse, WhatTheChildMakesWorks) {
  auto pool = PoolOf(1);
  const Client client = HostClient();
  EXPECT_EQ(InChild([] {
              auto own = PoolOf(1, "child");
              EventPromise done("done");
              const Event event = done.event();
              if (!own.Schedule([done = std::move(done)]() mutable { done.SetReady(); }).ok()) return 1;
              if (!event.Wait().ok() || !Timer::After(milliseconds(1)).event().Wait().ok()) return 2;
              const Client mine = HostClient();
              return BytesIn(FilledIn(SpaceOf(mine), {1, 2})) == Bytes{1, 2} ? 0 : 3;
            }),
            "exit 0");
  EXPECT_TRUE(Ok(pool.Schedule([] {})));
}

TEST_F(ForkMisuse, AnElasticPoolRefusesInTheChildAndItsHandleGoes) {
  std::optional<ElasticPool> pool = ElasticPool::Create({}).value();
  EXPECT_TRUE(Ok(pool->Schedule([] {})));
  EXPECT_EQ(InChild([&] {
              EventPromise owed("owed");
              const Event event = owed.event();
              if (!Refused(pool->Schedule([owed = std::move(owed)] {})) || !event.IsReady()) return 1;
              if (!Refused(pool->Shutdown())) return 2;
              if (!Refused(pool->ShutdownBy(steady_clock::now()))) return 3;
              pool.reset();
              return 0;
            }),
            "exit 0");
}

TEST_F(ForkMisuse, ASerialQueueRefusesInTheChildAndItsHandleGoes) {
  auto pool = PoolOf(1);
  std::optional<SerialQueue> queue{SerialQueue(pool)};
  EXPECT_EQ(InChild([&] {
              EventPromise owed("owed");
              const Event event = owed.event();
              if (queue->Schedule([owed = std::move(owed)] {}).ok() || !event.IsReady()) return 1;
              static_cast<void>(queue->Drained().WaitFor(seconds(1)).ok());
              queue->Close();
              static_cast<void>(queue->CancelPending());
              queue.reset();
              return 0;
            }),
            "exit 0");
}

TEST_F(ForkMisuse, TimersOfTheParentsHaveFailedInTheChild) {
  EXPECT_TRUE(Ok(Timer::After(milliseconds(1)).event()));
  Timer before = Timer::After(hours(1), "before the fork");
  const Event event = before.event();
  EventPromise promise("before the fork");
  EXPECT_EQ(InChild([&] {
              if (!Refused(event.Wait()) || !Refused(WithTimeout(promise.event(), hours(1)).Wait())) return 1;
              static_cast<void>(before.Cancel());
              return before.event().IsReady() ? 0 : 2;
            }),
            "exit 0");
  EXPECT_TRUE(before.Cancel());
  promise.SetReady();
}

TEST_F(ForkMisuse, AWatchdogsHandleGoesInTheChild) {
  WatchdogOptions options;
  options.older_than = milliseconds(10);
  options.sink = [](std::string_view) {};
  auto watchdog = std::make_unique<StatusOr<Watchdog>>(Watchdog::Start(std::move(options)));
  ASSERT_TRUE(Ok(*watchdog));
  EXPECT_EQ(InChild([&] {
              if (DumpStalls().empty()) return 1;
              watchdog.reset();
              return 0;
            }),
            "exit 0");
}

TEST_F(ForkMisuse, ASemaphoreAndTokensAnswerInTheChild) {
  const Semaphore semaphore("forked", 2);
  Permit permit = semaphore.Acquire(1).value();
  const CancelSource source("forked");
  EXPECT_EQ(InChild([&] {
              permit.Release();
              const Status status = semaphore.AcquireFor(2, milliseconds(1)).status();
              if (!status.ok() && !IsFailedPrecondition(status)) return 1;
              static_cast<void>(source.Cancel());
              const CancelSource own("own");
              int calls = 0;
              const auto registration = own.token().OnCancel([&calls] { ++calls; });
              return own.Cancel() && calls == 1 ? 0 : 2;
            }),
            "exit 0");
  EXPECT_EQ(semaphore.available(), 1U);
  EXPECT_TRUE(source.Cancel());
}

TEST_F(ForkMisuse, AClientOfTheParentsIsAsOneThatWasShutDown) {
  auto client = std::make_unique<Client>(HostClient());
  auto memory = std::make_unique<RawBuffer>(FilledIn(SpaceOf(*client), {1, 2, 3}));
  EXPECT_EQ(InChild([&] {
              std::uint8_t out[3] = {};
              if (!IsFailedPrecondition(memory->CopyToHost(out, 0, 3).Wait())) return 1;
              if (!IsFailedPrecondition(RawBuffer::Allocate(SpaceOf(*client), 100).status())) return 2;
              if (static_cast<const std::uint8_t*>(memory->host_pointer())[2] != 3) return 3;
              if (!IsFailedPrecondition(client->Shutdown())) return 4;
              if (client->Describe().empty() || SpaceOf(*client).Report().DebugString().empty()) return 5;
              memory.reset();
              client.reset();
              return 0;
            }),
            "exit 0");
  EXPECT_EQ(BytesIn(*memory), (Bytes{1, 2, 3}));
}

TEST_F(ForkMisuse, AChildThatExitsWithLivingStatics) {
  static std::optional<Client> client;
  static std::optional<ElasticPool> elastic;
  static std::optional<Timer> timer;
  client = HostClient();
  elastic = ElasticPool::Create({}).value();
  EXPECT_TRUE(Ok(elastic->Schedule([] {})));
  timer = Timer::After(hours(1));
  EXPECT_EQ(InChild([]() -> int {
              std::atexit([] {
                client.reset();
                elastic.reset();
                timer.reset();
              });
              std::exit(0);
            }),
            "exit 0");
  client.reset();
  elastic.reset();
  timer.reset();
}

TEST_F(ForkMisuse, ForksBesideThreadsThatUseEverything) {
  PURLIN_SKIP_UNLESS_FORKS(true);
  const Client client = HostClient();
  auto pool = PoolOf(2);
  std::atomic<bool> stop{false};
  std::vector<std::thread> load;
  for (int i = 0; i < 4; ++i) {
    load.emplace_back([&] {
      while (!stop.load()) {
        const UserContextScope scope(UserContext::Create("load"));
        EventPromise promise("load");
        static_cast<void>(pool.Schedule([] {}).ok());
        const Timer timer = Timer::After(milliseconds(1));
        static_cast<void>(RawBuffer::Allocate(SpaceOf(client), 1000).ok());
        promise.SetReady();
      }
    });
  }
  int hung = 0;
  for (int i = 0; i < 20 && hung == 0; ++i) {
    const std::string ended = InChild([&] {
      static_cast<void>(UserContext::Create("child").DebugString());
      static_cast<void>(pool.Schedule([] {}).ok());
      static_cast<void>(Timer::After(milliseconds(1)).event().WaitFor(seconds(1)).ok());
      static_cast<void>(RawBuffer::Allocate(SpaceOf(client), 1000).ok());
      static_cast<void>(DumpStalls().size());
      EventPromise promise("child");
      return promise.SetReady() ? 0 : 1;
    });
    if (ended != "exit 0") ++hung;
  }
  stop.store(true);
  for (std::thread& thread : load) thread.join();
  EXPECT_EQ(hung, 0);
}

TEST_F(ForkMisuse, BuffersAndTransfersAnswerInTheChild) {
  const Client client = HostClient();
  const std::uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  auto buffer = std::make_unique<Buffer>(Buffer::FromHost(bytes, 8, DType::kU8, {8}, SpaceOf(client)).value());
  EXPECT_EQ(InChild([&] {
              std::uint8_t out[8] = {};
              const Status read = buffer->CopyToHost(out, 8).WaitFor(seconds(5));
              if (!(read.ok() && out[7] == 8) && !Refused(read)) return 1;
              const auto made = Buffer::FromHost(bytes, 8, DType::kU8, {8}, SpaceOf(client));
              if (!made.ok() && !Refused(made)) return 2;
              const auto hold = buffer->AcquireUsageHold();
              if (!hold.ok() && !Refused(hold)) return 3;
              auto manager = AsyncHostToDeviceTransferManager::Create({{Shape(DType::kU8, {8})}}, SpaceOf(client));
              if (!manager.ok()) return Refused(manager) ? 0 : 4;
              const Status sent = manager->TransferRawDataToBuffer(0, bytes, 8);
              if (!sent.ok() && !Refused(sent)) return 5;
              const Status ready = manager->RetrieveBuffer(0)->ready_event().WaitFor(seconds(5));
              return ready.ok() || Refused(ready) ? 0 : 6;
            }),
            "exit 0");
}

TEST_F(ForkMisuse, StagingAnswersInTheChild) {
  const Client client = HostClient();
  StagingOptions options;
  options.lease_bytes = 64;
  options.lease_count = 2;
  const StagingPool pool = StagingPool::Create(SpaceOf(client), options).value();
  StagingCopier copier(pool);
  const RawBuffer source = FilledIn(SpaceOf(client), Bytes(200, 1));
  EXPECT_EQ(InChild([&] {
              {
                const auto lease = pool.Acquire();
              }
              const Status read = copier.Read(source, [](StatusOr<StagedPiece>) {}).WaitFor(seconds(5));
              return read.ok() || Refused(read) ? 0 : 1;
            }),
            "exit 0");
}

TEST_F(ForkMisuse, ContextsAndReportsAnswerInTheChild) {
  const UserContext context = UserContext::Create("before the fork");
  EXPECT_EQ(InChild([&] {
              const UserContextScope scope(context);
              if (CurrentUserContext().DebugString() != "before the fork") return 1;
              if (!UserContext::Create("inside") || UserContext::LookupAll().empty()) return 2;
              return DumpStalls().empty() ? 3 : 0;
            }),
            "exit 0");
}

TEST_F(ForkMisuse, ATraceThatIsRecordedIsTheParents) {
  const std::string path = testing::TempDir() + "purlin_fork_misuse_" + std::to_string(getpid()) + ".json";
  ASSERT_TRUE(Ok(StartTrace(path)));
  EXPECT_EQ(InChild([] {
              const Status stopped = StopTrace();
              return stopped.ok() || IsFailedPrecondition(stopped) ? 0 : 1;
            }),
            "exit 0");
  EXPECT_TRUE(Ok(StopTrace()));
  EXPECT_EQ(unlink(path.c_str()), 0);
}

TEST_F(ForkMisuse, AGrandchild) {
  const auto pool = std::make_unique<ThreadPoolAsyncWorkRunner>(PoolOf(1));
  EXPECT_EQ(
      InChild([&] { return InChild([&] { return Refused(pool->Schedule([] {})) ? 0 : 1; }) == "exit 0" ? 0 : 1; }),
      "exit 0");
}

}  // namespace
}  // namespace purlin
