// Closures of every size about the edges of the classes of nodes, many at once: no byte of one is another one's.
// rust/async/src/closure_tests.rs does the same to Rust's. A node that is too small for its closure shares bytes with
// its neighbour, whichever of the two is written last; with AddressSanitizer each node is a block of the system's, and
// the first write behind it is reported.
//
// A waiter's node is 16 bytes and the closure, a task's 24; in a user context there is a second node (in Rust the
// closure grows by 8: sizes "less a context" are the edges there). A class has 64 or 128 bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <future>
#include <initializer_list>
#include <mutex>
#include <utility>
#include <vector>

#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/user_context.h"

namespace purlin {
namespace {

/// More than one thread keeps of a class, so that they come from several batches.
constexpr std::size_t kPending = 256;
/// The first round takes blocks upwards, later ones in the reverse of the order in which blocks were freed: downwards,
/// then upwards again.
constexpr int kRounds = 3;

using Bytes = std::vector<unsigned char>;

/// The bytes of the closures that have run.
std::mutex mutex;
std::vector<Bytes> ran;

/// Bytes that no other closure of the test has.
template <std::size_t kSize>
std::array<unsigned char, kSize> BytesOf(std::size_t number) {
  std::array<unsigned char, kSize> bytes{};
  for (std::size_t at = 0; at < kSize; ++at) {
    const std::uint64_t mixed = (std::uint64_t{number} * 0x9e3779b9U) ^ (std::uint64_t{at} * 0x85ebca6bU);
    bytes[at] = static_cast<unsigned char>(mixed >> 16);
  }
  return bytes;
}

template <std::size_t kSize>
auto ClosureOf(std::size_t number) {
  auto closure = [bytes = BytesOf<kSize>(number)] {
    const std::lock_guard<std::mutex> lock(mutex);
    ran.emplace_back(bytes.begin(), bytes.end());
  };
  static_assert(sizeof(closure) == kSize);
  return closure;
}

/// All have run, in any order.
template <std::size_t kSize>
void ExpectAll(const char* what) {
  std::vector<Bytes> expected;
  for (std::size_t i = 0; i < kPending; ++i) {
    const auto bytes = BytesOf<kSize>(i);
    expected.emplace_back(bytes.begin(), bytes.end());
  }
  std::vector<Bytes> found = std::exchange(ran, {});
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  ASSERT_TRUE(found == expected) << "the bytes of " << what << " of " << kSize << " bytes are not their own";
}

template <std::size_t kSize>
void WaitersOfOneEventKeepTheirBytes() {
  EventPromise all("of all");
  for (std::size_t i = 0; i < kPending; ++i) all.event().OnReady(ClosureOf<kSize>(i));
  all.SetReady();
  ExpectAll<kSize>("waiters of one event");
}

template <std::size_t kSize>
void WaitersBetweenOthersKeepTheirBytes() {
  std::vector<EventPromise> promises;
  for (std::size_t i = 0; i < kPending; ++i) {
    promises.emplace_back("of one");
    const Event event = promises.back().event();
    event.OnReady(ClosureOf<kSize>(i));
    // A small one and a large one behind it.
    event.OnReady([] {});
    event.OnReady([bytes = BytesOf<96>(i), i] { EXPECT_EQ(bytes, BytesOf<96>(i)); });
  }
  for (EventPromise& promise : promises) promise.SetReady();
  ExpectAll<kSize>("waiters between others");
}

/// The queue of a pool links the nodes, which nothing else does.
template <std::size_t kSize>
void TasksInAQueueKeepTheirBytes() {
  ThreadPoolAsyncWorkRunner pool = ThreadPoolAsyncWorkRunner::Create({1, "sizes"}).value();
  std::promise<void> begun;
  std::promise<void> gate;
  ASSERT_TRUE(pool.Schedule([&] {
                    begun.set_value();
                    gate.get_future().wait();
                  })
                  .ok());
  begun.get_future().wait();
  for (std::size_t i = 0; i < kPending; ++i) ASSERT_TRUE(pool.Schedule(ClosureOf<kSize>(i)).ok());
  gate.set_value();
  ASSERT_TRUE(pool.Shutdown().ok());
  ExpectAll<kSize>("tasks in a queue");
}

template <std::size_t kSize>
void TasksKeepTheirBytes() {
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < kPending; ++i) tasks.emplace_back(ClosureOf<kSize>(i));
  for (Task& task : tasks) std::move(task).Run();
  ExpectAll<kSize>("tasks");
}

/// Stops at the first that fails: what another node has written over may be an address.
template <std::size_t kSize>
void Rounds(std::initializer_list<void (*)()> checks) {
  for (int round = 0; round < kRounds; ++round) {
    for (const auto check : checks) {
      if (!testing::Test::HasFatalFailure()) check();
    }
  }
}

template <std::size_t... kSizes>
void Waiters() {
  (Rounds<kSizes>({&WaitersOfOneEventKeepTheirBytes<kSizes>, &WaitersBetweenOthersKeepTheirBytes<kSizes>}), ...);
}

template <std::size_t... kSizes>
void Tasks() {
  (Rounds<kSizes>({&TasksInAQueueKeepTheirBytes<kSizes>, &TasksKeepTheirBytes<kSizes>}), ...);
}

// Without a user context and in one, which a second node has. Each in a process of its own (ctest), whose first
// blocks are taken upwards.
#define CLOSURES_OF_SIZES(name, ...)                             \
  TEST(WaiterSizeTest, name) { Waiters<__VA_ARGS__>(); }         \
  TEST(TaskSizeTest, name) { Tasks<__VA_ARGS__>(); }             \
  TEST(WaiterSizeTest, name##InAContext) {                       \
    const UserContextScope scope(UserContext::Create("a test")); \
    Waiters<__VA_ARGS__>();                                      \
  }                                                              \
  TEST(TaskSizeTest, name##InAContext) {                         \
    const UserContextScope scope(UserContext::Create("a test")); \
    Tasks<__VA_ARGS__>();                                        \
  }

CLOSURES_OF_SIZES(SmallOnes, 1, 8, 31)
CLOSURES_OF_SIZES(OnesAsLargeAsATasksNodeLessAContext, 32)
CLOSURES_OF_SIZES(OnesLargerThanATasksNodeLessAContext, 33)
CLOSURES_OF_SIZES(OnesThatFillATasksNode, 39, 40)
CLOSURES_OF_SIZES(OnesThatAreTooLargeForASmallTasksNode, 41)
CLOSURES_OF_SIZES(OnesThatFillAWaitersNode, 47, 48)
CLOSURES_OF_SIZES(OnesThatAreTooLargeForASmallWaitersNode, 49)
CLOSURES_OF_SIZES(OnesOf56Bytes, 55, 56, 57)
CLOSURES_OF_SIZES(OnesAsLargeAsANode, 63, 64, 65)
CLOSURES_OF_SIZES(OnesThatFillATasksWideNode, 95, 96, 103, 104)
CLOSURES_OF_SIZES(OnesThatAreTooLargeForATasksWideNode, 105, 97)
CLOSURES_OF_SIZES(OnesThatFillAWaitersWideNode, 111, 112)
CLOSURES_OF_SIZES(OnesThatAreTooLargeForAWaitersWideNode, 113)
CLOSURES_OF_SIZES(OnesLargerThanAnyNode, 127, 128, 129, 200)

}  // namespace
}  // namespace purlin
