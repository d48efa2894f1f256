// Every class of Purlin's, made before a fork() that is taken while eight threads work, answers at once in the child:
// with a value or with kFailedPrecondition. What is made in the child works there.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/cpp/fork_fixture.h"

namespace purlin {
namespace {

using std::chrono::milliseconds;

#define MUST(condition) \
  if (!(condition)) return #condition

/// True for what may be answered in a child.
bool Answered(const Status& status) { return status.ok() || IsFailedPrecondition(status); }
bool Refused(const Status& status) {
  return IsFailedPrecondition(status) && status.message().find("fork") != std::string_view::npos;
}

/// How far a client's work is when the process forks.
struct Devices {
  explicit Devices(std::string_view platform)
      : client(Client::Create(Of(platform)).value()),
        space(client.devices()[0].default_memory_space()),
        pinned(client.devices()[0].memory_space("pinned_host").value()),
        raw(RawBuffer::Allocate(space, kBytes).value()),
        other(RawBuffer::Allocate(space, kBytes).value()),
        waits(raw.CopyTo(other, {gate.event()})),
        buffer(Buffer::CreateUninitialized(Shape(DType::kU8, {kBytes}), space).value()),
        held(Buffer::CreateUninitialized(Shape(DType::kU8, {kBytes}), space).value()),
        donated(Buffer::CreateUninitialized(Shape(DType::kU8, {kBytes}), space).value()),
        channel(RawBuffer::CreateChannel(space, 64).value()),
        buffer_channel(Buffer::CreateChannel(Shape(DType::kU8, {64}), space).value()),
        has_bytes(platform != "null"),
        manager(AsyncHostToDeviceTransferManager::Create({{Shape(DType::kU8, {kBytes})}}, space).value()),
        mapping(client.DmaMap(bytes.data(), bytes.size()).value()) {
    if (!has_bytes) return;
    staging.emplace(StagingPool::Create(pinned, Small()).value());
    lease.emplace(staging->TryAcquire().value());
    copier.emplace(*staging);
  }

  static ClientOptions Of(std::string_view platform) {
    ClientOptions options;
    options.worker_count = 2;
    options.platform = platform;
    return options;
  }

  static StagingOptions Small() {
    StagingOptions options;
    options.lease_bytes = 1024;
    options.lease_count = 2;
    return options;
  }

  static constexpr std::int64_t kBytes = 300000;
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(kBytes);
  EventPromise gate{"gate"};
  Client client;
  MemorySpace space;
  MemorySpace pinned;
  RawBuffer raw;
  RawBuffer other;
  Event waits;
  Buffer buffer;
  Buffer held;
  Buffer donated;
  std::pair<RawBuffer, RawBufferPromise> channel;
  std::pair<Buffer, BufferPromise> buffer_channel;
  /// The platform "null" has none.
  bool has_bytes;
  AsyncHostToDeviceTransferManager manager;
  DmaMapping mapping;
  std::optional<StagingPool> staging;
  std::optional<StagingLease> lease;
  std::optional<StagingCopier> copier;
};

struct World {
  World() {
    static_cast<void>(queue.Schedule([gate = gate.event()] { static_cast<void>(gate.Wait()); }));
    static_cast<void>(elastic_queue.Schedule([gate = gate.event()] { static_cast<void>(gate.Wait()); }));
  }
  // What the threads of this process wait for ends first.
  ~World() { gate.SetReady(); }

  ThreadPoolAsyncWorkRunner pool = ThreadPoolAsyncWorkRunner::Create({2, "forked"}).value();
  ElasticPool elastic = ElasticPool::Create(ElasticPoolOptions()).value();
  SerialQueue queue{pool};
  SerialQueue elastic_queue = SerialQueue::Create(std::make_shared<ElasticPool>(elastic)).value();
  SerialQueue idle_queue{pool};
  EventPromise gate{"gate of tasks"};
  EventPromise promise{"pending in the parent"};
  Event pending = promise.event();
  std::pair<Promise<int>, Future<int>> future = MakePromise<int>("future of the parent");
  AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  ScopedAsyncValue<int> stored;
  Timer timer = Timer::After(std::chrono::hours(1));
  Event limited = WithTimeout(pending, std::chrono::hours(1));
  Semaphore semaphore{"semaphore", 1};
  std::optional<Permit> permit = semaphore.Acquire(1).value();
  CancelSource source;
  CancelToken token = source.token();
  StreamEventMap streams;
  UserContext context = UserContext::Create("of the parent");
  std::optional<Watchdog> watchdog = Watchdog::Start(WatchdogOptions()).value();
};

struct Case {
  const char* name;
  std::function<const char*(World&)> call;
};

const std::vector<Case>& Cases() {
  static const auto* const cases = new std::vector<Case>{
      {"Event.Wait",
       [](World& world) -> const char* {
         MUST(Refused(world.pending.Wait()));
         return nullptr;
       }},
      {"Event.WaitFor",
       [](World& world) -> const char* {
         MUST(Refused(world.pending.WaitFor(std::chrono::hours(1))));
         return nullptr;
       }},
      {"Event.OnReady",
       [](World& world) -> const char* {
         int calls = 0;
         world.pending.OnReady([&calls](const Status& status) { calls += Refused(status) ? 1 : 100; });
         MUST(calls == 1);
         return nullptr;
       }},
      {"EventPromise.SetReady",
       [](World& world) -> const char* {
         MUST(!world.promise.SetReady());
         EventPromise own("own");
         const Event event = own.event();
         std::thread([&own] { own.SetReady(); }).join();
         MUST(event.Wait().ok());
         return nullptr;
       }},
      {"WhenAll",
       [](World& world) -> const char* {
         EventPromise own("own");
         const Event both = WhenAll({own.event(), world.pending});
         own.SetReady();
         MUST(Refused(both.Wait()));
         MUST(AfterAll({world.pending}).Wait().ok());
         return nullptr;
       }},
      {"Future.Await",
       [](World& world) -> const char* {
         MUST(IsFailedPrecondition(world.future.second.Await().status()));
         MUST(IsFailedPrecondition(world.future.second.AwaitFor(std::chrono::hours(1)).status()));
         MUST(IsFailedPrecondition(world.future.second.Map([](int x) { return x; }).Await().status()));
         MUST(!world.future.first.Set(1));
         return nullptr;
       }},
      {"MakeFutureOn",
       [](World& world) -> const char* {
         MUST(!MakeFutureOn(world.pool, [] { return 1; }).Await().ok());
         MUST(!MakeFutureOn(world.elastic, [] { return 1; }).Await().ok());
         return nullptr;
       }},
      {"AsyncValueRef",
       [](World& world) -> const char* {
         MUST(Refused(world.value.Wait()));
         MUST(world.value.IsError() && IsFailedPrecondition(world.value.GetError()));
         MUST(IsFailedPrecondition(world.value.Map([](int x) { return x; }).GetError()));
         return nullptr;
       }},
      {"AsyncValue in memory of its owner's",
       [](World& world) -> const char* {
         const Status status = world.stored.AsPtr().Wait();
         MUST(Refused(status) && status.message().find("fork_calls_test.cc") != std::string_view::npos);
         MUST(world.stored.AsPtr().IsUnavailable());
         MUST(world.stored.AsPtr().emplace(3) && *world.stored.AsPtr() == 3);
         ScopedAsyncValue<int> own;
         std::thread thread([&own] { own.AsPtr().emplace(4); });
         MUST(own.AsPtr().Wait().ok());
         thread.join();
         MUST(*own.AsPtr() == 4);
         return nullptr;
       }},
      {"ThreadPoolAsyncWorkRunner.Schedule",
       [](World& world) -> const char* {
         EventPromise owed("owed");
         const Event event = owed.event();
         MUST(Refused(world.pool.Schedule([owed = std::move(owed)]() mutable { owed.SetReady(); })));
         MUST(event.state() == EventState::kError);
         MUST(Refused(world.pool.ScheduleWhenReady({}, [] {})));
         return nullptr;
       }},
      {"ThreadPoolAsyncWorkRunner.ScheduleWhenReady",
       [](World& world) -> const char* {
         EventPromise own("own");
         EventPromise owed("owed");
         const Event event = owed.event();
         MUST(Answered(
             world.pool.ScheduleWhenReady({own.event()}, [owed = std::move(owed)]() mutable { owed.SetReady(); })));
         own.SetReady();
         MUST(!event.Wait().ok());
         MUST(Answered(world.pool.ScheduleWhenReady({world.pending}, [] {})));
         return nullptr;
       }},
      {"ThreadPoolAsyncWorkRunner.ParallelFor",
       [](World& world) -> const char* {
         std::atomic<int> calls{0};
         MUST(world.pool.ParallelFor(100, Grain(1), [&calls](std::size_t, std::size_t) { ++calls; }).ok() &&
              calls == 100);
         MUST(world.pool.NumThreads() == 2 && !world.pool.CurrentThreadId().has_value());
         MUST(!world.pool.Describe().empty());
         return nullptr;
       }},
      {"ThreadPoolAsyncWorkRunner.Shutdown",
       [](World& world) -> const char* {
         MUST(Refused(world.pool.Shutdown()));
         ShutdownOptions options;
         options.mode = ShutdownMode::kCancelPending;
         options.timeout_ns = 1000000000;
         MUST(Refused(world.pool.Shutdown(options)));
         return nullptr;
       }},
      {"ElasticPool.Schedule",
       [](World& world) -> const char* {
         EventPromise owed("owed");
         const Event event = owed.event();
         MUST(Refused(world.elastic.Schedule([owed = std::move(owed)]() mutable { owed.SetReady(); })));
         MUST(event.state() == EventState::kError);
         static_cast<void>(world.elastic.NumThreads() + world.elastic.NumIdle());
         return nullptr;
       }},
      {"ElasticPool.Shutdown",
       [](World& world) -> const char* {
         MUST(Refused(world.elastic.Shutdown()));
         ShutdownOptions options;
         options.timeout_ns = 1000000000;
         MUST(Refused(world.elastic.Shutdown(options)));
         MUST(Refused(world.elastic.ShutdownCancelPending()));
         MUST(Refused(world.elastic.ShutdownBy(std::chrono::steady_clock::now())));
         return nullptr;
       }},
      {"SerialQueue",
       [](World& world) -> const char* {
         for (SerialQueue* queue : {&world.queue, &world.elastic_queue, &world.idle_queue}) {
           EventPromise owed("owed");
           const Event event = owed.event();
           MUST(Refused(queue->Schedule([owed = std::move(owed)]() mutable { owed.SetReady(); })));
           MUST(event.state() == EventState::kError);
           MUST(Answered(queue->Drain()));
           MUST(Refused(queue->Shutdown()));
           MUST(Answered(queue->Drained().Wait()));
           static_cast<void>(queue->HasBacklog());
           queue->Close();
           static_cast<void>(queue->CancelPending());
         }
         return nullptr;
       }},
      {"Timer of the parent",
       [](World& world) -> const char* {
         MUST(Refused(world.timer.event().Wait()));
         static_cast<void>(world.timer.Cancel());
         MUST(Refused(world.limited.Wait()));
         return nullptr;
       }},
      {"Timer",
       [](World&) -> const char* {
         MUST(Timer::After(milliseconds(1)).event().Wait().ok());
         MUST(Timer::At(std::chrono::steady_clock::now()).event().Wait().ok());
         Timer detached = Timer::After(milliseconds(1));
         const Event event = detached.event();
         detached.Detach();
         MUST(event.Wait().ok());
         return nullptr;
       }},
      {"WithTimeout",
       [](World& world) -> const char* {
         MUST(Refused(WithTimeout(world.pending, milliseconds(1)).Wait()));
         EventPromise own("own");
         MUST(IsDeadlineExceeded(WithTimeout(own.event(), milliseconds(1)).Wait()));
         MUST(IsDeadlineExceeded(own.event().WaitFor(milliseconds(1))));
         return nullptr;
       }},
      {"Semaphore",
       [](World& world) -> const char* {
         MUST(Refused(world.semaphore.Acquire(1).status()));
         MUST(Refused(world.semaphore.AcquireFor(1, std::chrono::hours(1)).status()));
         MUST(!world.semaphore.TryAcquire(1).ok());
         int told = 0;
         world.semaphore.AcquireAsync(1,
                                      [&told](StatusOr<Permit> permit) { told += Refused(permit.status()) ? 1 : 100; });
         MUST(told == 1);
         world.permit.reset();
         MUST(world.semaphore.Acquire(1).ok());
         world.semaphore.Close();
         const Semaphore own("own", 1);
         std::optional<Permit> permit = own.Acquire(1).value();
         MUST(IsDeadlineExceeded(own.AcquireFor(1, milliseconds(1)).status()));
         return nullptr;
       }},
      {"CancelSource of the parent",
       [](World& world) -> const char* {
         bool called = false;
         const CancelRegistration listens = world.token.OnCancel([&called](const Status&) { called = true; });
         MUST(!world.source.Cancel() && !called && !world.token.IsCancelled() && world.token.IsRetired());
         MUST(IsFailedPrecondition(world.token.event().Wait()));
         const CancelSource below(world.token);
         MUST(below.Cancel());
         return nullptr;
       }},
      {"CancelSource",
       [](World&) -> const char* {
         bool called = false;
         const CancelSource own;
         const CancelRegistration listens = own.token().OnCancel([&called](const Status&) { called = true; });
         MUST(own.Cancel() && called && own.token().IsCancelled());
         return nullptr;
       }},
      {"StreamEventMap",
       [](World& world) -> const char* {
         world.streams.Record(1, world.pending);
         MUST(world.streams.size() == 1 && !world.streams.All().Wait().ok());
         world.streams.Forget(1);
         world.streams.Clear();
         return nullptr;
       }},
      {"UserContext",
       [](World& world) -> const char* {
         const UserContext own = UserContext::Create("of the child");
         MUST(!own.DebugString().empty() && !world.context.DebugString().empty());
         MUST(!UserContext::LookupAll().empty());
         return nullptr;
       }},
      {"DumpStalls",
       [](World&) -> const char* {
         MUST(!DumpStalls().empty());
         return nullptr;
       }},
      {"Watchdog",
       [](World& world) -> const char* {
         world.watchdog.reset();
         MUST(Watchdog::Start(WatchdogOptions()).ok());
         return nullptr;
       }},
      {"ThreadPoolAsyncWorkRunner, made in the child",
       [](World&) -> const char* {
         ThreadPoolAsyncWorkRunner own = ThreadPoolAsyncWorkRunner::Create({2, "child"}).value();
         MUST(MakeFutureOn(own, [] { return 7; }).Await().value() == 7);
         std::atomic<int> calls{0};
         MUST(own.ParallelFor(100, Grain(1), [&calls](std::size_t, std::size_t) { ++calls; }).ok() && calls == 100);
         SerialQueue queue(own);
         MUST(queue.Schedule([&calls] { ++calls; }).ok() && queue.Drain().ok() && calls == 101);
         MUST(own.Shutdown().ok());
         return nullptr;
       }},
      {"ElasticPool, made in the child",
       [](World&) -> const char* {
         ElasticPool own = ElasticPool::Create(ElasticPoolOptions()).value();
         MUST(MakeFutureOn(own, [] { return 7; }).Await().value() == 7);
         MUST(own.Shutdown().ok());
         return nullptr;
       }},
  };
  return *cases;
}

TEST(ForkCallsTest, EveryCallInAChildOfABusyProcessAnswers) {
  PURLIN_SKIP_UNLESS_FORKS(true);
  const Load load;
  World world;
  for (const Case& one : Cases()) {
    EXPECT_EQ(InChild([&](const Doing& doing) {
                doing.Note(one.name);
                return one.call(world);
              }),
              "");
  }
}

TEST(ForkCallsTest, EveryCallInAChildOfAnIdleProcessAnswers) {
  PURLIN_SKIP_UNLESS_FORKS(false);
  World world;
  for (const Case& one : Cases()) {
    EXPECT_EQ(InChild([&](const Doing& doing) {
                doing.Note(one.name);
                return one.call(world);
              }),
              "");
  }
}

struct DeviceCase {
  const char* name;
  std::function<const char*(Devices&)> call;
};

const std::vector<DeviceCase>& DeviceCases() {
  static const auto* const cases = new std::vector<DeviceCase>{
      {"Client.Shutdown",
       [](Devices& of) -> const char* {
         MUST(Refused(of.client.Shutdown()));
         ShutdownOptions options;
         options.mode = ShutdownMode::kCancelPending;
         MUST(Refused(of.client.Shutdown(options)));
         return nullptr;
       }},
      {"Client's accounting",
       [](Devices& of) -> const char* {
         MUST(!of.client.Describe().empty() && of.client.devices().size() == 1);
         MUST(!of.space.DebugString().empty());
         MUST(of.space.Stats().bytes_in_use > 0);
         static_cast<void>(of.space.Report());
         of.space.Trim();
         of.space.ClearPeakMemoryUsage();
         MUST(Refused(of.client.runner().Schedule([] {})));
         return nullptr;
       }},
      {"RawBuffer.Allocate",
       [](Devices& of) -> const char* {
         MUST(Refused(RawBuffer::Allocate(of.space, 64).status()));
         MUST(Refused(RawBuffer::Allocate(of.space, 64 << 20).status()));
         AllocOptions options;
         options.oom = OomPolicy::kWait;
         MUST(Refused(RawBuffer::Allocate(of.space, 64, options).status()));
         MUST(Answered(RawBuffer::CreateChannel(of.space, 64).status()));
         return nullptr;
       }},
      {"RawBuffer's copies",
       [](Devices& of) -> const char* {
         MUST(!of.waits.Wait().ok());
         MUST(Answered(of.raw.CopyFromHost(of.bytes.data(), 0, 16).Wait()));
         MUST(Answered(of.raw.CopyToHost(of.bytes.data(), 0, 16).Wait()));
         MUST(Answered(of.raw.CopyFromHost(of.bytes.data(), 0, of.bytes.size()).Wait()));
         MUST(Answered(of.raw.CopyTo(of.other).Wait()));
         MUST(Answered(of.raw.CopyTo(of.other, {of.gate.event()}).Wait()));
         MUST(of.raw.Slice(0, 8).ok());
         MUST(!of.channel.first.allocation_event().Wait().ok());
         return nullptr;
       }},
      {"RawBufferPromise",
       [](Devices& of) -> const char* {
         static_cast<void>(of.channel.second.Fail(AbortedError("in the child")));
         static_cast<void>(of.buffer_channel.second.Fail(AbortedError("in the child")));
         return nullptr;
       }},
      {"Buffer's reads",
       [](Devices& of) -> const char* {
         MUST(Answered(of.buffer.CopyToHost(of.bytes.data(), of.bytes.size()).Wait()));
         MUST(Answered(of.buffer.CopyRawToHost(of.bytes.data(), 0, 16).Wait()));
         MUST(Answered(of.buffer.CopyToMemorySpace(of.pinned).status()));
         MUST(!of.buffer_channel.first.ready_event().Wait().ok());
         return nullptr;
       }},
      {"Buffer::FromHost",
       [](Devices& of) -> const char* {
         const std::int64_t dims[] = {16};
         MUST(Refused(Buffer::FromHost(of.bytes.data(), DType::kU8, dims, of.space).status()));
         MUST(Answered(Buffer::CreateUninitialized(Shape(DType::kU8, {16}), of.space).status()));
         MUST(Answered(Buffer::CreateToken(of.space).status()));
         MUST(Answered(Buffer::CreateError(AbortedError("x"), Shape(DType::kU8, {16}), of.space).status()));
         return nullptr;
       }},
      {"Buffer's holds",
       [](Devices& of) -> const char* {
         // The usage hold and the donation are those of a thread that is not here.
         MUST(IsFailedPrecondition(of.held.Donate("child").status()));
         MUST(of.held.AcquireUsageHold().ok());
         MUST(IsFailedPrecondition(of.donated.AcquireUsageHold().status()));
         MUST(IsFailedPrecondition(of.donated.AcquireExternalReference().status()));
         MUST(IsFailedPrecondition(of.donated.Donate("child").status()));
         MUST(of.buffer.AcquireUsageHold().ok());
         MUST(of.buffer.Donate("child").ok());
         of.buffer.Delete();
         return nullptr;
       }},
      {"StagingPool",
       [](Devices& of) -> const char* {
         if (!of.has_bytes) return nullptr;
         MUST(of.staging->TryAcquire().ok());
         StatusOr<StagingLease> last = of.staging->Acquire();
         MUST(last.ok());
         MUST(IsFailedPrecondition(of.staging->Acquire().status()));
         MUST(Answered(of.copier->Read(of.raw, [](StatusOr<StagedPiece>) {}).Wait()));
         std::pair<StagingSink, Event> sink = StagingSink::Create(of.raw);
         MUST(Answered(sink.first.Put(0, 16, *std::move(last))));
         MUST(Answered(sink.first.Poison(AbortedError("x"))));
         static_cast<void>(sink.second.Wait());
         MUST(!StagingPool::Create(of.pinned).ok());
         return nullptr;
       }},
      {"AsyncHostToDeviceTransferManager",
       [](Devices& of) -> const char* {
         MUST(Answered(of.manager.TransferRawDataToBuffer(0, of.bytes.data(), of.bytes.size())));
         const StatusOr<Buffer> buffer = of.manager.RetrieveBuffer(0);
         MUST(buffer.ok());
         static_cast<void>(buffer->ready_event().Wait());
         static_cast<void>(of.manager.ready_event().Wait());
         static_cast<void>(of.manager.SetBufferError(0, AbortedError("x")));
         return nullptr;
       }},
      {"DmaMapping",
       [](Devices& of) -> const char* {
         MUST(Answered(of.mapping.Unmap()));
         MUST(Answered(of.client.DmaMap(of.bytes.data(), of.bytes.size()).status()));
         return nullptr;
       }},
      {"Client, made in the child",
       [](Devices& of) -> const char* {
         const Client own = Client::Create(Devices::Of(of.client.platform_name())).value();
         const MemorySpace space = own.devices()[0].default_memory_space();
         const RawBuffer buffer = RawBuffer::Allocate(space, of.bytes.size()).value();
         MUST(buffer.CopyFromHost(of.bytes.data(), 0, of.bytes.size()).Wait().ok());
         std::vector<std::uint8_t> back(of.bytes.size());
         MUST(!of.has_bytes || buffer.CopyToHost(back.data(), 0, back.size()).Wait().ok());
         MUST(RawBuffer::Allocate(space, 64 << 20).ok());
         MUST(own.Shutdown().ok());
         return nullptr;
       }},
  };
  return *cases;
}

void EveryDeviceCallAnswers(std::string_view platform) {
  Devices of(platform);
  // Of a thread of their own, which a child has not.
  std::optional<UsageHold> hold;
  std::optional<DonationHold> donation;
  std::thread([&] {
    hold = of.held.AcquireUsageHold().value();
    donation = of.donated.Donate("parent").value();
  }).join();
  for (const DeviceCase& one : DeviceCases()) {
    EXPECT_EQ(InChild([&](const Doing& doing) {
                doing.Note(one.name);
                return one.call(of);
              }),
              "");
  }
  of.gate.SetReady();
  EXPECT_TRUE(of.waits.Wait().ok()) << "the parent goes on";
}

class ForkPlatformTest : public testing::TestWithParam<const char*> {};

TEST_P(ForkPlatformTest, EveryCallOfAClientAnswers) {
  PURLIN_SKIP_UNLESS_FORKS(false);
  EveryDeviceCallAnswers(GetParam());
}

TEST_P(ForkPlatformTest, EveryCallOfAClientAnswersUnderLoad) {
  PURLIN_SKIP_UNLESS_FORKS(true);
  const Load load;
  EveryDeviceCallAnswers(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Platforms, ForkPlatformTest, testing::Values("host", "null", "sim"));

TEST(ForkCallsTest, DestructorsInAChildEnd) {
  PURLIN_SKIP_UNLESS_FORKS(false);
  for (const char* platform : {"host", "null", "sim"}) {
    auto world = std::make_unique<World>();
    auto of = std::make_unique<Devices>(platform);
    EXPECT_EQ(InChild([&](const Doing& doing) -> const char* {
                doing.Note("the destructors of what a client has");
                of.reset();
                doing.Note("the destructors of the rest");
                world.reset();
                return nullptr;
              }),
              "");
    of->gate.SetReady();
  }
}

}  // namespace
}  // namespace purlin
