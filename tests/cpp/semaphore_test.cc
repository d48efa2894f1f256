#include "purlin/semaphore.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace purlin {
namespace {

TEST(SemaphoreTest, UnitsAreTakenAndGivenBack) {
  const Semaphore semaphore("s", 3);
  StatusOr<Permit> two = semaphore.TryAcquire(2);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->amount(), 2U);
  EXPECT_EQ(semaphore.available(), 1U);
  EXPECT_TRUE(IsUnavailable(semaphore.TryAcquire(2).status()));
  StatusOr<Permit> one = semaphore.Acquire(1);
  ASSERT_TRUE(one.ok());
  two->Release();
  two->Release();
  EXPECT_EQ(two->amount(), 0U);
  EXPECT_EQ(semaphore.available(), 2U) << "released once";
  *one = semaphore.TryAcquire(2).value();
  EXPECT_EQ(semaphore.available(), 1U) << "assigning gives back what was there";
  const Permit moved = std::move(one).value();
  EXPECT_EQ(moved.amount(), 2U);
}

TEST(SemaphoreTest, MoreThanTheCapacityIsRefused) {
  const Semaphore semaphore("s", 3);
  EXPECT_TRUE(IsInvalidArgument(semaphore.TryAcquire(4).status()));
  EXPECT_TRUE(IsInvalidArgument(semaphore.Acquire(4).status()));
  Status status;
  semaphore.AcquireAsync(4, [&status](StatusOr<Permit> permit) { status = permit.status(); });
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
}

TEST(SemaphoreTest, ASmallAcquisitionDoesNotOvertakeALargerOne) {
  const Semaphore semaphore("s", 3);
  std::optional<Permit> held = semaphore.TryAcquire(2).value();
  std::vector<std::size_t> granted;
  const auto note = [&granted](StatusOr<Permit> permit) { granted.push_back(permit->amount()); };
  semaphore.AcquireAsync(2, note);
  semaphore.AcquireAsync(1, note);
  EXPECT_TRUE(IsUnavailable(semaphore.TryAcquire(1).status()));
  EXPECT_EQ(semaphore.waiting(), 2U);
  held.reset();
  EXPECT_EQ(granted, (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(semaphore.available(), 3U);
}

TEST(SemaphoreTest, R7AWaitEndsAtItsTimeOrWhenItIsCancelled) {
  const Semaphore semaphore("s", 1);
  const Permit held = semaphore.TryAcquire(1).value();
  EXPECT_TRUE(IsDeadlineExceeded(semaphore.AcquireFor(1, std::chrono::microseconds(10)).status()));
  EXPECT_TRUE(IsDeadlineExceeded(semaphore.AcquireFor(1, -std::chrono::hours(1)).status()));
  const CancelSource source;
  Status blocked;
  std::thread waiter([&] { blocked = semaphore.Acquire(1, source.token()).status(); });
  while (semaphore.waiting() == 0) std::this_thread::yield();
  Status queued;
  semaphore.AcquireAsync(1, [&queued](StatusOr<Permit> permit) { queued = permit.status(); }, source.token());
  source.Cancel(AbortedError("enough"));
  waiter.join();
  EXPECT_TRUE(IsCancelled(blocked)) << blocked;
  EXPECT_TRUE(IsCancelled(queued)) << queued;
  EXPECT_EQ(semaphore.waiting(), 0U);
}

TEST(SemaphoreTest, R8ClosingFailsWhatWaitsAndWhatComes) {
  const Semaphore semaphore("s", 1);
  std::optional<Permit> held = semaphore.TryAcquire(1).value();
  Status queued;
  semaphore.AcquireAsync(1, [&queued](StatusOr<Permit> permit) { queued = permit.status(); });
  semaphore.Close();
  EXPECT_TRUE(IsCancelled(queued)) << queued;
  EXPECT_TRUE(IsCancelled(semaphore.Acquire(1).status()));
  held.reset();
  EXPECT_EQ(semaphore.available(), 1U);
}

TEST(SemaphoreTest, ThreadsNeverHoldMoreThanTheCapacity) {
  const Semaphore semaphore("s", 2);
  std::atomic<int> held{0};
  std::atomic<int> most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const StatusOr<Permit> permit = semaphore.Acquire(1);
        const int now = held.fetch_add(1) + 1;
        int seen = most.load();
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
        held.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most.load(), 2);
  EXPECT_EQ(semaphore.available(), 2U);
}

TEST(SemaphoreTest, AThreadThatWantsLittleWaitsBehindOneThatWantsMore) {
  const Semaphore semaphore("s", 2);
  std::optional<Permit> held = semaphore.TryAcquire(1).value();
  std::vector<std::size_t> granted;  // Unguarded: a permit of all units excludes the other thread.
  const auto take = [&](std::size_t amount) {
    const StatusOr<Permit> permit = semaphore.Acquire(amount);
    EXPECT_TRUE(permit.ok()) << permit.status();
    granted.push_back(amount);
  };
  std::thread more(take, std::size_t{2});
  while (semaphore.waiting() < 1) std::this_thread::yield();
  std::thread little(take, std::size_t{1});
  while (semaphore.waiting() < 2) std::this_thread::yield();
  EXPECT_EQ(semaphore.available(), 1U) << "what the second one wants is free, and not given to it";
  EXPECT_TRUE(IsUnavailable(semaphore.TryAcquire(1).status()));
  held.reset();
  more.join();
  little.join();
  EXPECT_EQ(granted, (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(semaphore.available(), 2U);
}

}  // namespace
}  // namespace purlin
