// Purlin, another Rust static library and Debian's abseil in a shared library that Python loads beside TensorFlow and
// JAX (python/together_test.py): they work together, in a child made by fork(), and while the process ends. The library
// is there twice, linked in two ways, so that two Purlins are in one process.
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <iostream>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "purlin/adapters/absl.h"
#include "purlin/adapters/pjrt_tables.h"
#include "purlin/purlin.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

extern "C" std::int64_t second_rust_sum(std::int64_t count);
extern "C" std::int32_t second_rust_catches_a_panic();

namespace {

using purlin::adapters::FromAbsl;
using purlin::adapters::FromPjrt;
using purlin::adapters::ToAbsl;
using purlin::adapters::ToPjrt;

constexpr int kQueued = 200;
constexpr std::string_view kGiven = "given to another Purlin";

// Never destroyed: tasks run while the process ends.
purlin::ThreadPoolAsyncWorkRunner& Pool() {
  static auto& pool =
      *new purlin::ThreadPoolAsyncWorkRunner(purlin::ThreadPoolAsyncWorkRunner::Create({2, "together"}).value());
  return pool;
}
const purlin::Client& Client() {
  static const purlin::Client& client = *new purlin::Client(purlin::Client::Create().value());
  return client;
}

// An array goes in, a task of a pool computes on it when it is ready, and the answer comes out of a copy. 0, or the
// line of what is wrong.
int BuffersAndEvents() {
  std::vector<std::int64_t> numbers(1000), copy(1000);
  std::iota(numbers.begin(), numbers.end(), std::int64_t{1});
  const std::size_t size = numbers.size() * sizeof(std::int64_t);
  const purlin::MemorySpace space = Client().devices()[0].default_memory_space();
  const purlin::StatusOr<purlin::Buffer> buffer =
      purlin::Buffer::FromHost(numbers.data(), size, purlin::DType::kS64, {1000}, space);
  if (!buffer.ok()) return __LINE__;
  purlin::EventPromise promise("summed");
  const purlin::Event summed = promise.event();
  std::int64_t sum = 0;
  const purlin::Status scheduled =
      Pool().ScheduleWhenReady({buffer->ready_event()}, [&sum, &buffer, promise = std::move(promise)]() mutable {
        const purlin::StatusOr<purlin::RawBuffer> memory = buffer->RawAlias();
        if (!memory.ok()) return;
        const auto* const data = static_cast<const std::int64_t*>(memory->host_pointer());
        sum = std::accumulate(data, data + 1000, std::int64_t{0});
        promise.SetReady();
      });
  if (!scheduled.ok() || !summed.Wait().ok() || sum != 500500) return __LINE__;
  if (!buffer->CopyToHost(copy.data(), size).Wait().ok() || copy != numbers) return __LINE__;
  const purlin::Event dropped = purlin::EventPromise("dropped").event();
  return purlin::IsInternal(dropped.Wait()) ? 0 : __LINE__;
}

int Abseil() {
  absl::Status theirs = absl::DataLossError("lost");
  theirs.SetPayload("url", absl::Cord(std::string(1000, 'x')));
  if (ToAbsl(FromAbsl(theirs)) != theirs) return __LINE__;
  purlin::EventPromise promise("any invocable");
  const purlin::Event called = promise.event();
  absl::AnyInvocable<void() &&> task = [promise = std::move(promise)]() mutable { promise.SetReady(); };
  return Pool().Schedule(FromAbsl(std::move(task))).ok() && called.Wait().ok() ? 0 : __LINE__;
}

// Everything that starts no thread, which may be done while another thread forks. 0, or the line of what is wrong.
int RoundWithoutThreads() {
  if (const int wrong = BuffersAndEvents(); wrong != 0) return wrong;
  if (const int wrong = Abseil(); wrong != 0) return wrong;
  return second_rust_catches_a_panic() == 1 ? 0 : __LINE__;
}

// 0, or the line of what is wrong.
int Round() {
  if (const int wrong = RoundWithoutThreads(); wrong != 0) return wrong;
  if (second_rust_sum(1000) != 500500) return __LINE__;
  // The other library by a task of the pool.
  return purlin::MakeFutureOn(Pool(), [] { return second_rust_sum(100); }).Await().value_or(-1) == 5050 ? 0 : __LINE__;
}

// Does work, and itself again, beside forks: no thread that another library than Purlin starts, for glibc 2.36 frees
// thread-local memory twice in a child that was forked in between (rust/base/src/sync/spawn.rs).
void GoOn() {
  if (RoundWithoutThreads() != 0) std::abort();
  if (!Pool().Schedule(GoOn).ok()) std::abort();
}

// What a child may: be refused, lose nothing, and count for itself.
int InChild() {
  purlin::EventPromise owed("owed");
  const purlin::Event event = owed.event();
  const purlin::Status refused = Pool().Schedule([owed = std::move(owed)]() mutable { owed.SetReady(); });
  if (!purlin::IsFailedPrecondition(refused) || event.state() != purlin::EventState::kError) return __LINE__;
  if (!purlin::IsFailedPrecondition(Pool().Shutdown())) return __LINE__;
  purlin::StatusOr<purlin::ThreadPoolAsyncWorkRunner> own = purlin::ThreadPoolAsyncWorkRunner::Create({1, "child"});
  if (!own.ok() || purlin::MakeFutureOn(*own, [] { return 7; }).Await().value_or(0) != 7) return __LINE__;
  int calls = 0;
  if (!Pool().ParallelFor(3, purlin::Grain(1), [&calls](std::size_t, std::size_t) { ++calls; }).ok() || calls != 3)
    return __LINE__;
  absl::Status theirs = absl::NotFoundError("absl's in a child");
  return ToAbsl(FromAbsl(theirs)) == theirs ? 0 : __LINE__;
}

// Lives until the static objects go, on the main thread, whose thread-locals have gone already.
struct AtExit {
  ~AtExit() {
    if (tell < 0) return;
    int wrong = Round();
    if (ran.load() != 0) wrong = __LINE__;
    begun.set_value();
    pool.reset();  // Waits for what is queued, if it is there.
    if (ran.load() != expected) wrong = __LINE__;
    const std::string said = wrong == 0 ? "right" : "line " + std::to_string(wrong);
    if (write(tell, said.data(), said.size()) < 0) std::abort();
  }
  int tell = -1;
  int expected = 0;
  std::atomic<int> ran{0};
  std::promise<void> begun;
  std::optional<purlin::ThreadPoolAsyncWorkRunner> pool;
};
AtExit at_exit;

// What the two Purlins of one process do with each other's events.
std::optional<purlin::EventPromise> given;
std::optional<purlin::Event> taken;

}  // namespace

/// Everything once, here and in tasks. 0, or the line of what is wrong.
EXPORTED int together_round() { return Round(); }

/// From now on the pool is never idle.
EXPORTED int together_go_on() { return Pool().Schedule(GoOn).ok() && Pool().Schedule(GoOn).ok() ? 0 : __LINE__; }

/// Static objects, as they go, work once more and write to `fd` how that went. With `queue`, one of them is a pool that
/// then has tasks in its queue, all of which run.
EXPORTED int together_at_exit(int fd, int queue) {
  at_exit.tell = fd;
  if (queue == 0) return 0;
  purlin::StatusOr<purlin::ThreadPoolAsyncWorkRunner> pool = purlin::ThreadPoolAsyncWorkRunner::Create({1, "static"});
  if (!pool.ok()) return __LINE__;
  at_exit.pool.emplace(*std::move(pool));
  // Holds its one thread until then. It wakes up in between: for one that only slept the pool would start another.
  const purlin::Status held = at_exit.pool->Schedule([begun = at_exit.begun.get_future()] {
    while (begun.wait_for(std::chrono::milliseconds(5)) == std::future_status::timeout) {
    }
  });
  if (!held.ok()) return __LINE__;
  for (; at_exit.expected < kQueued; ++at_exit.expected) {
    const purlin::Status queued = at_exit.pool->Schedule([] { at_exit.ran += second_rust_sum(1) == 1 ? 1 : 0; });
    if (!queued.ok()) return __LINE__;
  }
  return 0;
}

/// The number of a child, which ends by _exit() or, with `whole`, by exit(): 0, or the line of what is wrong.
EXPORTED int together_fork(int whole) {
  const pid_t child = fork();
  if (child != 0) return static_cast<int>(child);
  at_exit.tell = -1;
  const int wrong = InChild();
  if (whole != 0) std::exit(wrong);
  _exit(wrong);
}

/// What a child by fork() does, for a child that another library has made: 0, or the line of what is wrong.
EXPORTED int together_in_child() { return InChild(); }

/// After so many seconds, if the process still lives, stderr says what Purlin knows of it.
EXPORTED void together_watch(int seconds) {
  std::thread([seconds] {
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    std::cerr << "Purlin's stalls:\n" << purlin::DumpStalls() << std::endl;
  }).detach();
}

/// A reference to an event that is pending here.
EXPORTED void together_give(PurlinPjrtDeviceEvent* event) {
  given.emplace(purlin::Label("given to another Purlin"));
  *event = ToPjrt(given->event());
}
/// Takes such a reference over.
EXPORTED void together_take(const PurlinPjrtDeviceEvent* event) { taken = FromPjrt(*event); }
/// What was given fails.
EXPORTED int together_settle() { return given->SetError(purlin::DataLossError("told across")) ? 0 : __LINE__; }
/// Waits for what was taken: 1 if it failed as it should.
EXPORTED int together_told() {
  const purlin::Status status = taken->Wait();
  return purlin::IsDataLoss(status) && status.message().find("told across") != std::string::npos ? 1 : 0;
}
/// Whether this Purlin names the event that was given among its own pending ones.
EXPORTED int together_knows() { return purlin::DumpStalls().find(kGiven) != std::string::npos ? 1 : 0; }

/// Calls `call` in a task of this pool and answers what it answers.
EXPORTED int together_in_task(int (*call)()) { return purlin::MakeFutureOn(Pool(), call).Await().value_or(-1); }
/// Which of this pool's threads this is; -1: none.
EXPORTED int together_thread() {
  const std::optional<std::size_t> thread = Pool().CurrentThreadId();
  return thread ? static_cast<int>(*thread) : -1;
}
