// Callbacks that enter what calls them, in ways that the tests of each class do not walk: waits for what their own
// thread is about to complete, ends of what runs them, and destructors that begin anew.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/buffer.h"
#include "purlin/cancel.h"
#include "purlin/client.h"
#include "purlin/future.h"
#include "purlin/inline_executor.h"
#include "purlin/raw_buffer.h"
#include "purlin/semaphore.h"
#include "purlin/serial_queue.h"
#include "purlin/stall.h"
#include "purlin/timer.h"
#include "purlin/transfer.h"
#include "purlin/user_context.h"
#include "tests/cpp/testing.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

/// Calls a function when it is destroyed, once.
class AtEnd final {
 public:
  explicit AtEnd(std::function<void()> f) : f_(std::make_unique<std::function<void()>>(std::move(f))) {}
  AtEnd(AtEnd&&) noexcept = default;
  AtEnd& operator=(AtEnd&&) = delete;
  ~AtEnd() {
    if (f_ != nullptr) (*f_)();
  }

 private:
  std::unique_ptr<std::function<void()>> f_;
};

Client ClientOf(std::string_view platform) {
  ClientOptions options;
  options.platform = platform;
  options.worker_count = 1;
  return Client::Create(options).value();
}

// Waits ---------------------------------------------------------------------------------------------------------------

TEST(ReentryMisuse, AReleaseThatWaitsForTheCopyThatLetsGoOfItsMemory) {
  for (const std::string_view platform : {"host", "sim"}) {
    const Client client = ClientOf(platform);
    alignas(64) static unsigned char bytes[64];
    unsigned char out[64];
    EventPromise gate("gate");
    Event copied;
    std::promise<Status> inside;
    {
      const StatusOr<RawBuffer> memory = RawBuffer::Import(SpaceOf(client), bytes, 64, Mutability::kImmutable,
                                                           [&] { inside.set_value(copied.Wait()); });
      ASSERT_TRUE(Ok(memory));
      copied = memory->CopyToHost(out, 0, 64, {gate.event()});
    }
    gate.SetReady();
    const Status answer = inside.get_future().get();
    EXPECT_TRUE(answer.ok() || Fails(answer, StatusCode::kFailedPrecondition, {"'copy'"})) << platform << answer;
    EXPECT_TRUE(Ok(copied)) << platform;
  }
}

TEST(ReentryMisuse, AnOnDoneThatWaitsForItsOwnBuffer) {
  for (const std::string_view platform : {"host", "sim"}) {
    const Client client = ClientOf(platform);
    std::vector<std::uint8_t> bytes(1 << 20, 7);
    FromHostOptions options;
    options.semantics = HostBufferSemantics::kImmutableUntilTransferCompletes;
    EventPromise start("start");
    options.alloc.after = start.event();
    Event ready;
    std::promise<Status> inside;
    const StatusOr<FromHostResult> result =
        Buffer::FromHost(bytes.data(), DType::kU8, std::vector<std::int64_t>{1 << 20}, SpaceOf(client), options,
                         [&](Status) { inside.set_value(ready.Wait()); });
    ASSERT_TRUE(Ok(result));
    ready = result->buffer.ready_event();
    start.SetReady();
    const Status answer = inside.get_future().get();
    EXPECT_TRUE(answer.ok() || Fails(answer, StatusCode::kFailedPrecondition)) << platform << answer;
    EXPECT_TRUE(Ok(ready)) << platform;
  }
}

TEST(ReentryMisuse, AnOnDoneOfATransferThatWaitsForItsBuffer) {
  for (const std::string_view platform : {"host", "sim"}) {
    const Client client = ClientOf(platform);
    std::vector<std::uint8_t> bytes(1 << 20, 7);
    const std::vector<std::int64_t> dims = {1 << 20};
    const TransferSpec specs[] = {{Shape(DType::kU8, dims)}};
    AsyncHostToDeviceTransferManager transfer =
        AsyncHostToDeviceTransferManager::Create(specs, SpaceOf(client)).value();
    const Event ready = transfer.RetrieveBuffer(0)->ready_event();
    const Event all = transfer.ready_event();
    std::promise<Status> inside;
    std::promise<Status> of_all;
    ASSERT_TRUE(Ok(transfer.TransferRawDataToBuffer(0, bytes.data(), bytes.size(), [&](Status) {
      inside.set_value(ready.Wait());
      of_all.set_value(all.Wait());
    })));
    for (std::promise<Status>* each : {&inside, &of_all}) {
      const Status answer = each->get_future().get();
      EXPECT_TRUE(answer.ok() || Fails(answer, StatusCode::kFailedPrecondition)) << platform << answer;
    }
    EXPECT_TRUE(Ok(ready)) << platform;
  }
}

TEST(ReentryMisuse, AWaiterOnTheSimulatorsThreadMayWaitForItsDevice) {
  const Client client = ClientOf("sim");
  const RawBuffer memory = RawBuffer::Allocate(SpaceOf(client), 64).value();
  unsigned char bytes[64] = {7};
  unsigned char out[64] = {};
  EventPromise gate("gate");
  const Event written = memory.CopyFromHost(bytes, 0, 64, {gate.event()});
  std::promise<Status> inside;
  written.OnReady([&] { inside.set_value(memory.CopyToHost(out, 0, 64, {written}).Wait()); });
  gate.SetReady();
  EXPECT_TRUE(Ok(inside.get_future().get()));
  EXPECT_EQ(out[0], 7);
}

TEST(ReentryMisuse, WaitersOnTheSimulatorsThreadMayWaitAHundredDeep) {
  const Client client = ClientOf("sim");
  const RawBuffer memory = RawBuffer::Allocate(SpaceOf(client), 64).value();
  unsigned char bytes[64] = {7};
  ASSERT_TRUE(Ok(memory.CopyFromHost(bytes, 0, 64)));
  unsigned char out[64] = {};
  std::atomic<int> deep{0};
  std::function<Status(int)> read = [&](int left) -> Status {
    const Event copied = memory.CopyToHost(out, 0, 64);
    EventPromise told("told");
    const Event over = told.event();
    copied.OnReady([&, left] {
      deep.fetch_add(1);
      if (left > 0) {
        EXPECT_TRUE(Ok(read(left - 1)));
      }
      told.SetReady();
    });
    return over.Wait();
  };
  EXPECT_TRUE(Ok(read(100)));
  EXPECT_EQ(deep.load(), 101);
}

TEST(ReentryMisuse, AnEndOfAContextThatWaitsForItsPool) {
  auto pool = PoolOf(1);
  std::promise<Status> inside;
  {
    const auto at_end = std::make_shared<AtEnd>([&] {
      EventPromise done("done");
      const Event event = done.event();
      EXPECT_TRUE(Ok(pool.Schedule([promise = std::move(done)]() mutable { promise.SetReady(); })));
      inside.set_value(event.Wait());
    });
    const UserContextScope scope(UserContext::Create([at_end] { return std::string("waits"); }));
    ASSERT_TRUE(Ok(pool.Schedule([] {})));
  }
  EXPECT_TRUE(Ok(inside.get_future().get()));
}

TEST(ReentryMisuse, AnEndOfAContextThatWaitsForTheEventWhoseWaiterHeldIt) {
  EventPromise promise("held");
  const Event event = promise.event();
  Status inside = InternalError("not called");
  {
    const auto at_end = std::make_shared<AtEnd>([&] { inside = event.Wait(); });
    const UserContextScope scope(UserContext::Create([at_end] { return std::string("waits"); }));
    event.OnReady([] {});
  }
  promise.SetReady();
  EXPECT_TRUE(Ok(inside));
}

// Cancellation --------------------------------------------------------------------------------------------------------

TEST(ReentryMisuse, ACancelCallbackThatCancelsDropsAndRegistersOnItsWayOut) {
  auto source = std::make_unique<CancelSource>("source");
  const CancelToken token = source->token();
  int calls = 0;
  bool again = true;
  std::vector<CancelRegistration> registrations;
  AtEnd at_end([&] {
    again = CancelSource(*source).Cancel();
    registrations.push_back(token.OnCancel([&calls] { ++calls; }));
    source.reset();
    registrations.clear();
  });
  registrations.push_back(token.OnCancel([&calls, kept = std::move(at_end)] { ++calls; }));
  const CancelSource keeps = *source;
  EXPECT_TRUE(keeps.Cancel());
  EXPECT_FALSE(again);
  EXPECT_EQ(calls, 2);
}

TEST(ReentryMisuse, ACallbackThatIsDroppedWithTheLastSourceMayAskAgain) {
  CancelToken token;
  bool retired = false;
  bool called = false;
  std::vector<CancelRegistration> registrations;
  {
    const CancelSource source("source");
    token = source.token();
    AtEnd at_end([&] {
      retired = token.IsRetired();
      registrations.push_back(token.OnCancel([&called] { called = true; }));
      EXPECT_TRUE(Fails(token.event(), StatusCode::kFailedPrecondition, {"source"}));
    });
    registrations.push_back(token.OnCancel([&called, kept = std::move(at_end)] { called = true; }));
  }
  EXPECT_TRUE(retired);
  EXPECT_FALSE(called);
}

TEST(ReentryMisuse, ACancelCallbackMayWaitForItsToken) {
  const CancelSource source("source");
  Status inside;
  const CancelRegistration registration = source.token().OnCancel([&] { inside = source.token().event().Wait(); });
  EXPECT_TRUE(source.Cancel());
  EXPECT_TRUE(Ok(inside));
}

// Executors -----------------------------------------------------------------------------------------------------------

TEST(ReentryMisuse, AnInlineExecutorThatIsGivenAMillionTasksByTasks) {
  OnSmallStack([] {
    InlineExecutor executor;
    int left = 1000000;
    struct Again {
      InlineExecutor* executor;
      int* left;
      void operator()() const {
        if (--*left > 0) executor->Execute(Task(Again{executor, left})).IgnoreError();
      }
    };
    EXPECT_TRUE(Ok(executor.Execute(Task(Again{&executor, &left}))));
    EXPECT_EQ(left, 0);
  });
}

TEST(ReentryMisuse, AnInlineExecutorThatIsGivenAMillionTasksByTheirEnds) {
  OnSmallStack([] {
    InlineExecutor executor;
    int left = 1000000;
    struct Again {
      InlineExecutor* executor;
      int* left;
      Again(InlineExecutor* of, int* count) : executor(of), left(count) {}
      Again(Again&& other) noexcept : executor(std::exchange(other.executor, nullptr)), left(other.left) {}
      Again& operator=(Again&&) = delete;
      void operator()() const {}
      ~Again() {
        if (executor != nullptr && --*left > 0) executor->Execute(Task(Again(executor, left))).IgnoreError();
      }
    };
    EXPECT_TRUE(Ok(executor.Execute(Task(Again(&executor, &left)))));
    EXPECT_EQ(left, 0);
  });
}

TEST(ReentryMisuse, ASerialQueueThatEndsWithItsExecutorInItsOwnTask) {
  auto queue =
      std::make_unique<std::optional<SerialQueue>>(SerialQueue::Create(std::make_shared<InlineExecutor>()).value());
  int runs = 0;
  Status drained;
  Event behind;
  EXPECT_TRUE(Ok((*queue)->Schedule([&] {
    behind = (*queue)->Drained();
    EXPECT_TRUE(Ok((*queue)->Schedule([&runs] { ++runs; })));
    drained = (*queue)->Drain();
    queue.reset();
    ++runs;
  })));
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(Fails(drained, StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Ok(behind));
}

TEST(ReentryMisuse, ASerialQueueWhosePoolEndsInItsOwnTask) {
  std::promise<Status> shut;
  Event behind;
  {
    auto pool = std::make_shared<std::optional<ThreadPoolAsyncWorkRunner>>(PoolOf(1));
    auto queue = std::make_shared<std::optional<SerialQueue>>(std::in_place, **pool);
    EventPromise gate("gate");
    ASSERT_TRUE(Ok((*queue)->Schedule([&shut, pool, queue, open = gate.event()] {
      static_cast<void>(open.Wait());
      queue->reset();
      Status answer = (*pool)->Shutdown();
      pool->reset();
      shut.set_value(std::move(answer));
    })));
    behind = (*queue)->Drained();
    gate.SetReady();
  }
  EXPECT_TRUE(Fails(shut.get_future().get(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Ok(behind));
}

TEST(ReentryMisuse, ATaskOfASerialQueueWhoseEndSchedulesAndDropsTheQueue) {
  auto pool = PoolOf(1);
  std::promise<void> second;
  auto queue = std::make_shared<SerialQueue>(pool);
  AtEnd at_end([&second, queue]() mutable {
    EXPECT_TRUE(Ok(queue->Schedule([&second] { second.set_value(); })));
    queue.reset();
  });
  SerialQueue* const borrowed = queue.get();
  queue.reset();
  ASSERT_TRUE(Ok(borrowed->Schedule([kept = std::move(at_end)] {})));
  second.get_future().wait();
}

// Semaphores and timers -----------------------------------------------------------------------------------------------

TEST(ReentryMisuse, ACallbackThatHoldsAPermitGoesWithItsSemaphore) {
  NoLeak no_leak;
  Status told;
  std::optional<Semaphore> semaphore(std::in_place, "semaphore", 2U);
  Permit held = semaphore->Acquire(1).value();
  std::optional<Permit> other = semaphore->Acquire(1).value();
  semaphore->AcquireAsync(
      2, [&told, kept = Counted(1), mine = std::move(held)](StatusOr<Permit> permit) { told = permit.status(); });
  semaphore->AcquireAsync(1, [&semaphore, kept = Counted(1)](StatusOr<Permit>) { semaphore.reset(); });
  semaphore->Close();
  EXPECT_TRUE(Fails(told, StatusCode::kCancelled, {"semaphore"}));
  EXPECT_FALSE(semaphore.has_value());
  other.reset();
}

TEST(ReentryMisuse, APermitThatGoesInACallbackEndsTheSemaphoreThatCallsIt) {
  std::optional<Semaphore> semaphore(std::in_place, "semaphore", 1U);
  std::optional<Permit> permit = semaphore->Acquire(1).value();
  int granted = 0;
  for (int i = 0; i < 3; ++i) {
    semaphore->AcquireAsync(1, [&semaphore, &granted](StatusOr<Permit> mine) {
      semaphore.reset();
      granted += mine.ok() ? 1 : 0;
    });
  }
  permit.reset();
  EXPECT_EQ(granted, 3) << "what was asked for is granted, although nobody has the semaphore any more";
}

TEST(ReentryMisuse, ATimerThatIsCancelledAndDestroyedInItsOwnWaiter) {
  // A timer that fired before its waiter came runs it at once, here: then once more, with twice the time.
  std::thread::id ran = std::this_thread::get_id();
  for (milliseconds delay(1); ran == std::this_thread::get_id(); delay *= 2) {
    std::optional<Timer> timer = Timer::After(delay, "own");
    std::promise<bool> inside;
    const Event event = timer->event();
    event.OnReady([&] {
      ran = std::this_thread::get_id();
      const bool cancelled = timer->Cancel();
      timer.reset();
      inside.set_value(cancelled);
    });
    EXPECT_FALSE(inside.get_future().get()) << "too late";
    EXPECT_TRUE(Ok(event));
  }
}

TEST(ReentryMisuse, AWaiterThatACancelledTimerRunsMayCancelItAgain) {
  std::optional<Timer> timer = Timer::After(hours(1), "own");
  bool again = true;
  timer->event().OnReady([&] {
    again = timer->Cancel();
    timer.reset();
  });
  Timer moved = *std::exchange(timer, std::nullopt);
  timer.emplace(std::move(moved));
  EXPECT_TRUE(timer->Cancel());
  EXPECT_FALSE(again);
}

// Watchdogs -----------------------------------------------------------------------------------------------------------

TEST(ReentryMisuse, AWatchdogThatIsStartedInASink) {
  const EventPromise stuck("stuck");
  std::promise<Status> begun;
  std::promise<void> inner_told;
  std::optional<Watchdog> inner;
  std::atomic<bool> first{true};
  std::atomic<bool> inner_first{true};
  WatchdogOptions options;
  options.older_than = milliseconds(10);
  options.sink = [&](std::string_view) {
    if (!first.exchange(false)) return;
    WatchdogOptions again;
    again.older_than = milliseconds(10);
    again.sink = [&](std::string_view) {
      if (inner_first.exchange(false)) inner_told.set_value();
    };
    StatusOr<Watchdog> started = Watchdog::Start(std::move(again));
    begun.set_value(started.status());
    if (started.ok()) inner.emplace(*std::move(started));
  };
  {
    const StatusOr<Watchdog> outer = Watchdog::Start(std::move(options));
    ASSERT_TRUE(Ok(outer));
    EXPECT_TRUE(Ok(begun.get_future().get()));
    inner_told.get_future().wait();
  }
  inner.reset();
}

}  // namespace
}  // namespace purlin
