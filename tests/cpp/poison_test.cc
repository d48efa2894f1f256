// What a watchdog poisons from C++, and what it leaves alone: rust/async/src/stall/poison_tests.rs has the rest.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/buffer.h"
#include "purlin/client.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/promise.h"
#include "purlin/raw_buffer.h"
#include "purlin/stall.h"
#include "tests/cpp/poisoner.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

TEST(PoisonTest, ParallelForIsNotEnded) {
  EventPromise gate = EventPromise::Guarding("gate");
  const Event open = gate.event();
  ExpectNotPoisoned("ParallelFor", std::move(gate), [open] {
    StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({2, "loop"});
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> others{0};
    std::atomic<int> calls{0};
    const Status status = pool->ParallelFor(8, Grain(1), [&](std::size_t, std::size_t) {
      if (std::this_thread::get_id() != caller) {
        others.fetch_add(1);
        Block(open);
      }
      while (others.load() == 0) std::this_thread::yield();
      calls.fetch_add(1);
    });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(calls.load(), 8);
  });
}

TEST(PoisonTest, ACopyThatGoesOnIsNotEnded) {
  StatusOr<Client> client = Client::Create();
  ASSERT_TRUE(client.ok());
  const MemorySpace space = client->devices()[0].default_memory_space();
  StatusOr<RawBuffer> memory = RawBuffer::Allocate(space, 64);
  ASSERT_TRUE(memory.ok());
  EventPromise gate = EventPromise::Guarding("gate");
  const Event open = gate.event();
  ExpectNotPoisoned("copy", std::move(gate), [&memory, open] {
    std::vector<unsigned char> bytes(64);
    const Event copied = memory->CopyToHost(bytes.data(), 0, bytes.size(), {open});
    EXPECT_TRUE(copied.Wait().ok());
    EXPECT_TRUE(open.IsReady());
  });
}

TEST(PoisonTest, ACopyThatWaitsForAUsersPromiseDoesNotHappen) {
  StatusOr<Client> client = Client::Create();
  ASSERT_TRUE(client.ok());
  StatusOr<RawBuffer> memory = RawBuffer::Allocate(client->devices()[0].default_memory_space(), 64);
  ASSERT_TRUE(memory.ok());
  EventPromise gate("poison: dependency");
  std::vector<unsigned char> bytes(64, 7);
  const Event copied = memory->CopyToHost(bytes.data(), 0, bytes.size(), {gate.event()});
  StatusOr<Watchdog> watchdog = Poisoner();
  const Status status = copied.Wait();
  EXPECT_TRUE(IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(Has(std::string(status.message()), "event 'poison: dependency' was poisoned")) << status;
  EXPECT_FALSE(gate.SetReady());
  EXPECT_EQ(bytes, std::vector<unsigned char>(64, 7));
}

TEST(PoisonTest, WhatMemoryIsKeptUntilIsNotPoisoned) {
  StatusOr<Client> client = Client::Create();
  ASSERT_TRUE(client.ok());
  StatusOr<RawBuffer> memory = RawBuffer::Allocate(client->devices()[0].default_memory_space(), 64);
  ASSERT_TRUE(memory.ok());
  EventPromise used("poison: used until");
  const Event events[] = {used.event(), Event::Ready(), used.event()};
  const Event until = WhenAll(events);
  memory->RetainUntil(until);
  const Event event = used.event();
  ExpectNotPoisoned("poison: used until", std::move(used), [event] { EXPECT_TRUE(event.Wait().ok()); });
}

TEST(PoisonTest, AFutureThatIsMappedFailsThroughItsPromise) {
  auto [promise, future] = MakePromise<int>("poison: root");
  bool called = false;
  const Future<int> mapped = future.Map([&called](int value) {
    called = true;
    return value;
  });
  StatusOr<Watchdog> watchdog = Poisoner();
  EXPECT_TRUE(IsDeadlineExceeded(mapped.Await().status()));
  EXPECT_FALSE(promise.Set(1)) << "too late";
  EXPECT_FALSE(called);
}

TEST(PoisonTest, TasksThatWaitForEachOtherAreToldSo) {
  StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({2, "selfish"});
  ASSERT_TRUE(pool.ok());
  auto [give, given] = MakePromise<Event>("poison: given");
  const Future<> one = MakeFutureOn(*pool, [given = given] { return given.Await()->Wait(); }, "poison: selfish");
  const Future<> other = MakeFutureOn(*pool, [one = one.AsEvent()] { return one.Wait(); }, "poison: no better");
  give.Set(other.AsEvent());
  StatusOr<Watchdog> watchdog = Poisoner();
  for (const Status& status : {one.Await(), other.Await()}) {
    EXPECT_TRUE(IsDeadlineExceeded(status)) << status;
    EXPECT_TRUE(Has(std::string(status.message()), "is owed by task 'poison: selfish'")) << status;
  }
}

TEST(PoisonTest, ATaskThatWaitsForItsOwnFutureIsToldSoAtOnce) {
  StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({1, "selfish"});
  ASSERT_TRUE(pool.ok());
  auto [give, given] = MakePromise<Event>("poison: given");
  const Future<> result = MakeFutureOn(*pool, [given = given] { return given.Await()->Wait(); }, "poison: selfish");
  give.Set(result.AsEvent());
  const Status status = result.Await();
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(Has(std::string(status.message()), "is owed by task 'poison: selfish', which this thread runs"))
      << status;
}

TEST(PoisonTest, APromiseThatWasPoisonedMayBeForwarded) {
  EventPromise promise("poison: then forwarded");
  const EventPromise other = EventPromise::Guarding("pending");
  const Event event = promise.event();
  {
    StatusOr<Watchdog> watchdog = Poisoner();
    EXPECT_TRUE(IsDeadlineExceeded(event.Wait()));
  }
  std::move(promise).Forward(other.event());
  EXPECT_TRUE(IsDeadlineExceeded(event.error()));
}

TEST(WatchdogTest, IsEndedInItsOwnSink) {
  for (int round = 0; round < 20; ++round) {
    std::optional<Watchdog> watchdog;
    std::atomic<bool> started{false};
    EventPromise ended = EventPromise::Guarding("ended");
    WatchdogOptions options;
    options.older_than = std::chrono::milliseconds(10);
    options.sink = [&, once = std::make_shared<std::atomic<bool>>(false)](std::string_view) {
      while (!started.load()) std::this_thread::yield();
      if (once->exchange(true)) return;
      watchdog.reset();
      EXPECT_FALSE(DumpStalls().empty());
      ended.SetReady();
    };
    const EventPromise stalled("poison: stalled");
    StatusOr<Watchdog> begun = Watchdog::Start(std::move(options));
    ASSERT_TRUE(begun.ok());
    watchdog.emplace(*std::move(begun));
    started.store(true);
    EXPECT_TRUE(ended.event().Wait().ok());
  }
}

TEST(WatchdogTest, TwoThatEndEachOtherInTheirSinks) {
  std::optional<Watchdog> dogs[2];
  std::atomic<int> inside{0};
  std::atomic<bool> started{false};
  EventPromise ended[2] = {EventPromise::Guarding("ended"), EventPromise::Guarding("ended")};
  const EventPromise stalled("poison: stalled");
  for (int i = 0; i < 2; ++i) {
    WatchdogOptions options;
    options.older_than = std::chrono::milliseconds(10);
    options.sink = [&, i, once = std::make_shared<std::atomic<bool>>(false)](std::string_view) {
      if (once->exchange(true)) return;
      while (!started.load()) std::this_thread::yield();
      // Both are inside.
      inside.fetch_add(1);
      while (inside.load() < 2) std::this_thread::yield();
      dogs[1 - i].reset();
      ended[i].SetReady();
    };
    StatusOr<Watchdog> begun = Watchdog::Start(std::move(options));
    ASSERT_TRUE(begun.ok());
    dogs[i].emplace(*std::move(begun));
  }
  started.store(true);
  EXPECT_TRUE(ended[0].event().Wait().ok());
  EXPECT_TRUE(ended[1].event().Wait().ok());
}

TEST(WatchdogTest, MovedFromEndsNothing) {
  StatusOr<Watchdog> first = Poisoner();
  ASSERT_TRUE(first.ok());
  Watchdog second(*std::move(first));
  *first = std::move(second);
  second = *std::move(first);
  const EventPromise stalled("poison: still watched");
  EXPECT_TRUE(IsDeadlineExceeded(stalled.event().Wait()));
}

}  // namespace
}  // namespace purlin
