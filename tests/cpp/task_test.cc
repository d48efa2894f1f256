// Tasks: closures that are called once or destroyed uncalled, and what they cost.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/event.h"
#include "purlin/executor.h"
#include "tests/cpp/counting_allocations.h"
#include "tests/cpp/sanitizers.h"

namespace purlin {
namespace {

/// Counts its calls, and the ends of what it stands for (not of moved-from copies).
struct Counted {
  Counted(int* calls_in, int* ends_in) : calls(calls_in), ends(ends_in) {}
  Counted(Counted&& other) noexcept : calls(other.calls), ends(std::exchange(other.ends, nullptr)) {}
  ~Counted() {
    if (ends != nullptr) ++*ends;
  }
  void operator()() const { ++*calls; }
  int* calls;
  int* ends;
};

/// A closure of `kBytes` bytes.
template <std::size_t kBytes>
struct Sized {
  std::array<unsigned char, kBytes> bytes{};
  void operator()() const {}
};

template <typename F>
int AllocationsOfTask(F f) {
  return AllocationsOf([&] {
    Task task(std::move(f));
    std::move(task).Run();
  });
}

TEST(TaskTest, RunsOnceAndDestroysTheClosure) {
  int calls = 0;
  int ends = 0;
  Task task(Counted(&calls, &ends));
  EXPECT_TRUE(task);
  EXPECT_EQ(calls + ends, 0);
  std::move(task).Run();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(ends, 1);
  EXPECT_FALSE(task);     // NOLINT(bugprone-use-after-move): the contract.
  std::move(task).Run();  // NOLINT(bugprone-use-after-move): nothing happens.
  EXPECT_EQ(calls, 1);
}

/// Callable as an rvalue only, and counts as what it was called.
struct CalledOnce {
  int* calls;
  void operator()() && { ++*calls; }
  void operator()() & = delete;
};

TEST(TaskTest, IsCalledAsAnRvalueAndCallsItsClosureSo) {
  int calls = 0;
  Task task(CalledOnce{&calls});
  std::move(task)();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(task);  // NOLINT(bugprone-use-after-move): the contract.
  static_assert(std::is_invocable_v<Task> && !std::is_invocable_v<Task&>);
  struct Lvalue {
    int* calls;
    void operator()() & { ++*calls; }
  };
  Task(Lvalue{&calls}).Run();
  Task(Task(CalledOnce{&calls})).Run();
  EXPECT_EQ(calls, 3);
}

TEST(TaskTest, ClosuresThatAreCalledOnceRunWhereverATaskOrAWaiterDoes) {
  int calls = 0;
  {
    auto pool = ThreadPoolAsyncWorkRunner::Create({1, "once"}).value();
    EXPECT_TRUE(pool.Schedule(CalledOnce{&calls}).ok());
    EXPECT_TRUE(pool.ScheduleWhenReady({Event::Ready()}, CalledOnce{&calls}).ok());
    EXPECT_TRUE(pool.Shutdown().ok());
  }
  EventPromise promise;
  promise.event().OnReady(CalledOnce{&calls});
  Event::Ready().OnReady(CalledOnce{&calls});
  EXPECT_EQ(calls, 3);
  promise.SetReady();
  EXPECT_EQ(calls, 4);
}

TEST(TaskTest, DestroysAnUncalledClosureOnce) {
  int calls = 0;
  int ends = 0;
  {
    const Task task(Counted(&calls, &ends));
  }
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(ends, 1);
}

TEST(TaskTest, MovesWithoutMovingTheClosure) {
  int calls = 0;
  int ends = 0;
  Task a(Counted(&calls, &ends));
  Task b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): the contract.
  Task c([] {});
  c = std::move(b);
  EXPECT_EQ(ends, 0);
  c = Task([] {});
  EXPECT_EQ(calls, 0) << "assigning destroys what was there, uncalled";
  EXPECT_EQ(ends, 1);
}

TEST(TaskTest, IsOneWordAndMoveOnly) {
  static_assert(sizeof(Task) == sizeof(void*));
  static_assert(!std::is_copy_constructible_v<Task> && std::is_nothrow_move_constructible_v<Task>);
}

TEST(TaskTest, ClosuresMayBeMoveOnlyMutableAndOfAnyAlignment) {
  int sum = 0;
  std::move(Task([&sum, five = std::make_unique<int>(5)]() mutable { sum += (*five)++; })).Run();
  EXPECT_EQ(sum, 5);
  struct alignas(64) Wide {
    int value = 7;
  };
  std::uintptr_t address = 1;
  std::move(Task([&address, wide = Wide()] { address = reinterpret_cast<std::uintptr_t>(&wide) % 64; })).Run();
  EXPECT_EQ(address, 0U);
}

TEST(TaskTest, SmallClosuresCostNoAllocation) {
  EXPECT_EQ(AllocationsOfTask(Sized<1>()), 0);
  EXPECT_EQ(AllocationsOfTask(Sized<40>()), 0) << "in a node";
  EXPECT_EQ(AllocationsOfTask(Sized<41>()), 0) << "in a wide node";
  EXPECT_EQ(AllocationsOfTask(Sized<104>()), 0) << "in a wide node";
  EXPECT_EQ(AllocationsOfTask(Sized<105>()), 1) << "behind a pointer";
  struct alignas(16) Aligned {
    void operator()() const {}
  };
  EXPECT_EQ(AllocationsOfTask(Aligned()), 1) << "alignment above 8 is not";
}

TEST(TaskTest, NodesAreRecycled) {
  if (kAddressSanitizer) GTEST_SKIP() << "AddressSanitizer gets every block from the system";
  void* first = internal::AllocateBlock(internal::BlockClass::kNode);
  internal::FreeBlock(internal::BlockClass::kNode, first);
  void* second = internal::AllocateBlock(internal::BlockClass::kNode);
  EXPECT_EQ(first, second);
  internal::FreeBlock(internal::BlockClass::kNode, second);
}

TEST(TaskTest, SchedulingSmallClosuresOnAPoolCostsNoAllocation) {
  StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({2, "count"});
  ASSERT_TRUE(pool.ok()) << pool.status();
  constexpr int kTasks = 1'000;
  std::atomic<int> left{kTasks};
  EventPromise done("done");
  const Event event = done.event();
  const int before = allocations.load();
  for (int i = 0; i < kTasks; ++i) {
    const Status status = pool->Schedule([&left, &done] {
      if (left.fetch_sub(1) == 1) done.SetReady();
    });
    if (!status.ok()) ADD_FAILURE() << status;
  }
  static_cast<void>(event.Wait());
  EXPECT_EQ(allocations.load() - before, 0);
}

TEST(TaskTest, NodesMayBeFreedOnAnotherThread) {
  StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({1, "free"});
  ASSERT_TRUE(pool.ok()) << pool.status();
  std::atomic<int> ran{0};
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(pool->Schedule([&ran] { ran.fetch_add(1); }).ok());
  ASSERT_TRUE(pool->Shutdown().ok());
  EXPECT_EQ(ran.load(), 10'000);
}

}  // namespace
}  // namespace purlin
