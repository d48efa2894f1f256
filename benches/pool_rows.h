// The work of every row about pools, written once for all of them.
//
// A pool P has two workers and is made by P(). It says what it can:
//   Schedule(f)                 runs f() some time, on a worker (some peers: on the caller, when their queue is full)
//   ParallelFor(data, count)    [kParallelFor] bench_loop_body over all of data
//   Fib(n)                      [kJoin] fork-join inside the pool
#ifndef PURLIN_BENCHES_POOL_ROWS_H_
#define PURLIN_BENCHES_POOL_ROWS_H_

#include <time.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "latch.h"
#include "op.h"

constexpr std::uint64_t kFibNodes = 242785;  // Calls of fib(25).
constexpr std::size_t kLoopItems = 1000000;

inline std::uint64_t Nanoseconds() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

// What the process has computed so far, in ns. Not getrusage(), which learns of threads that run at their next tick.
inline std::uint64_t ProcessCpu() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000U + static_cast<std::uint64_t>(now.tv_nsec);
}

template <typename P>
struct PoolRows {
  // Shared by the rows; never destroyed, because some peers' destructors wait for what has gone before them.
  static P& Pool() {
    static P* pool = new P();
    return *pool;
  }
  static Latch& Done() {
    static Latch latch;
    return latch;
  }

  template <std::size_t kBytes>
  static void Post(std::uint64_t count) {
    Latch* done = &Done();
    std::array<std::uint64_t, kBytes / 8 - 1> payload{};
    for (std::uint64_t i = 0; i < count; ++i) {
      payload[0] = i;
      Pool().Schedule([done, payload] {
        if (payload[0] == ~std::uint64_t{0}) std::abort();
        done->Down();
      });
    }
  }
  template <std::size_t kBytes>
  static std::uint64_t Outside(std::uint64_t count) {
    Done().Reset(count);
    Post<kBytes>(count);
    Done().Wait();
    return 0;
  }

  // The second producer lives for the whole run of the row; its start is not timed.
  static std::uint64_t TwoProducers(std::uint64_t count) {
    std::atomic<int> ready{0};
    std::thread other([&] {
      ready.store(1);
      while (ready.load() != 2) std::this_thread::yield();
      Post<16>(count / 2);
    });
    while (ready.load() != 1) std::this_thread::yield();
    Done().Reset(count / 2 * 2);
    const std::uint64_t start = Nanoseconds();
    ready.store(2);
    Post<16>(count / 2);
    Done().Wait();
    const std::uint64_t elapsed = Nanoseconds() - start;
    other.join();
    return elapsed;
  }

  static std::uint64_t Inside(std::uint64_t count) {
    Done().Reset(count + 1);
    Pool().Schedule([count] {
      Post<16>(count);
      Done().Down();
    });
    Done().Wait();
    return 0;
  }

  static void Tree(int n) {
    if (n >= 2) {
      Pool().Schedule([n] { Tree(n - 1); });
      Pool().Schedule([n] { Tree(n - 2); });
    }
    Done().Down();
  }
  static std::uint64_t TaskTree(std::uint64_t) {
    Done().Reset(kFibNodes);
    Pool().Schedule([] { Tree(25); });
    Done().Wait();
    return 0;
  }

  static std::uint64_t JoinTree(std::uint64_t) {
    static std::uint64_t result = 0;
    Done().Reset(1);
    Pool().Schedule([] {
      result = Pool().Fib(25);
      Done().Down();
    });
    Done().Wait();
    if (result != 75025) std::abort();
    return 0;
  }

  // Workers get time to fall asleep before each post. Answers its own time: of the post alone, or until the task ran.
  template <bool kRoundTrip>
  static std::uint64_t Parked(std::uint64_t count) {
    std::uint64_t total = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      Latch* done = &Done();
      done->Reset(1);
      const std::uint64_t start = Nanoseconds();
      Pool().Schedule([done] { done->Down(); });
      const std::uint64_t posted = Nanoseconds();
      done->Wait();
      total += (kRoundTrip ? Nanoseconds() : posted) - start;
    }
    return total;
  }

  // CPU time in ns of a second without any work, after a task and 200 ms to calm down.
  static std::uint64_t Idle(std::uint64_t) {
    Outside<16>(100);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const std::uint64_t before = ProcessCpu();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return ProcessCpu() - before;
  }

  static std::uint64_t Loop(std::uint64_t) {
    static std::vector<std::uint32_t> data(kLoopItems);
    Pool().ParallelFor(data.data(), data.size());
    return 0;
  }

  static std::vector<Op> Table(const char* peer) {
    std::vector<Op> ops = {
        {"parked pool: CPU ns in a second of rest", peer, 1, &Idle, kOnce},
        {"schedule from outside, 16 B", peer, 4000, &Outside<16>, kThreads},
        {"schedule from outside, 16 B, 900 at once", peer, 900, &Outside<16>, kThreads},
        {"schedule from outside, 64 B", peer, 4000, &Outside<64>, kThreads},
        {"schedule from outside, 2 producers, 16 B", peer, 4000, &TwoProducers, kThreads},
        {"spawn from inside, 16 B", peer, 4000, &Inside, kThreads},
        {"spawn from inside, 16 B, 900 at once", peer, 900, &Inside, kThreads},
        {"tree of tasks fib(25), per task", peer, kFibNodes, &TaskTree, kThreads},
        {"post to parked workers", peer, 10, &Parked<false>, kThreads},
        {"post to parked workers and wait", peer, 10, &Parked<true>, kThreads},
    };
    if constexpr (P::kJoin) ops.push_back({"fork-join fib(25), per call", peer, kFibNodes, &JoinTree, kThreads});
    if constexpr (P::kParallelFor) ops.push_back({"parallel loop, per item", peer, kLoopItems, &Loop, kThreads});
    return ops;
  }
};

#endif  // PURLIN_BENCHES_POOL_ROWS_H_
