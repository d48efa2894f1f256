// The work of the rows named "step": a graph of tasks of 1 to 50 us with joins, two to four of them ready at a time, as
// XLA's CPU thunk executor makes them. A thread that has run a task goes on with the first that became ready by it and
// schedules the others.
//
// A pool P is made by P(threads) and has Schedule(f), as in pool_rows.h; StepOn<P> runs the graph on it. A peer that
// has graphs of its own has a class like StepOn (peers/tbb.cc).
#ifndef PURLIN_BENCHES_STEP_ROWS_H_
#define PURLIN_BENCHES_STEP_ROWS_H_

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

#include "latch.h"
#include "op.h"
#include "pool_rows.h"

/// Work that takes a fixed number of instructions, each of which waits for the one before.
inline void Spin(std::uint32_t rounds) {
  std::uint64_t value = rounds;
  for (std::uint32_t i = 0; i < rounds; ++i) value = value * 6364136223846793005U + 1442695040888963407U;
  Touch(value);
}

/// Rounds of Spin in a microsecond of this machine, when nothing else uses the core.
inline double SpinsPerMicrosecond() {
  static const double spins = [] {
    constexpr std::uint32_t kRounds = 100000;
    std::uint64_t best = ~std::uint64_t{0};
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t start = Nanoseconds();
      Spin(kRounds);
      best = std::min(best, Nanoseconds() - start);
    }
    return kRounds * 1000.0 / static_cast<double>(best);
  }();
  return spins;
}

struct StepTask {
  std::uint32_t spins;
  std::uint32_t parents = 0;
  std::vector<std::uint32_t> next;
};

/// The same graph for every column: layers of two to four tasks, each behind one or two of the layer before, none of
/// which is left without a successor. Times are as often between 1 and 2 us as between 25 and 50.
inline std::vector<StepTask> MakeStep(std::size_t count) {
  std::mt19937 random(count);
  std::vector<StepTask> tasks;
  std::size_t before = 0;  // Where the layer before begins; it ends where this one does.
  while (tasks.size() < count) {
    const std::size_t begin = tasks.size();
    const std::size_t width = std::min<std::size_t>(2 + random() % 3, count - begin);
    for (std::size_t i = 0; i < width; ++i) {
      const double us = std::exp(std::log(50.0) * static_cast<double>(random()) / 4294967296.0);
      tasks.push_back({static_cast<std::uint32_t>(us * SpinsPerMicrosecond()), 0, {}});
    }
    const auto link = [&](std::size_t from, std::size_t to) {
      std::vector<std::uint32_t>& next = tasks[from].next;
      if (std::find(next.begin(), next.end(), to) != next.end()) return;
      next.push_back(static_cast<std::uint32_t>(to));
      ++tasks[to].parents;
    };
    for (std::size_t from = before; from < begin; ++from) link(from, begin + from % width);
    for (std::size_t to = begin; before < begin && to < begin + width; ++to)
      link(before + random() % (begin - before), to);
    before = begin;
  }
  return tasks;
}

/// One graph, run again and again.
class StepRun {
 public:
  explicit StepRun(std::size_t count) : tasks_(MakeStep(count)), left_(count), ready_at_(count), delay_(count) {}

  const std::vector<StepTask>& tasks() const { return tasks_; }
  void Reset() {
    for (std::size_t i = 0; i < tasks_.size(); ++i) left_[i].store(tasks_[i].parents, std::memory_order_relaxed);
    std::fill(delay_.begin(), delay_.end(), 0);
    done_.Reset(tasks_.size());
  }
  /// Does the work of a task and calls `first(next)` with one that is ready by it, `other(next)` with the rest.
  template <typename First, typename Other>
  void Do(std::uint32_t at, First&& first, Other&& other) {
    Spin(tasks_[at].spins);
    bool is_first = true;
    for (const std::uint32_t next : tasks_[at].next) {
      if (left_[next].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
      if (std::exchange(is_first, false)) {
        first(next);
      } else {
        ready_at_[next] = Nanoseconds();
        other(next);
      }
    }
    done_.Down();
  }
  void Handed(std::uint32_t at) { ready_at_[at] = Nanoseconds(); }
  /// Begins a task that another thread may have handed over.
  void Begin(std::uint32_t at) {
    if (ready_at_[at] != 0) delay_[at] = Nanoseconds() - std::exchange(ready_at_[at], 0);
  }
  void Wait() { done_.Wait(); }
  /// In ns, of the tasks that were handed over: so many of 100 waited less.
  std::uint64_t Delay(std::size_t percent) {
    std::vector<std::uint64_t> all;
    std::copy_if(delay_.begin(), delay_.end(), std::back_inserter(all), [](std::uint64_t ns) { return ns != 0; });
    if (all.empty()) return 1;
    std::sort(all.begin(), all.end());
    return std::max<std::uint64_t>(1, all[std::min(all.size() - 1, all.size() * percent / 100)]);
  }

 private:
  std::vector<StepTask> tasks_;
  std::vector<std::atomic<std::uint32_t>> left_;
  std::vector<std::uint64_t> ready_at_;
  std::vector<std::uint64_t> delay_;
  Latch done_;
};

/// A step on a pool that schedules closures.
template <typename P>
class StepOn {
 public:
  StepOn(int threads, StepRun& run) : pool_(threads), run_(run) {}
  void Start() {
    for (std::uint32_t i = 0; i < run_.tasks().size() && run_.tasks()[i].parents == 0; ++i) {
      run_.Handed(i);
      Schedule(i);
    }
    run_.Wait();
  }

 private:
  void Schedule(std::uint32_t at) {
    pool_.Schedule([this, at] {
      run_.Begin(at);
      Go(at);
    });
  }
  void Go(std::uint32_t at) {
    constexpr std::uint32_t kNone = ~std::uint32_t{0};
    while (at != kNone) {
      std::uint32_t after = kNone;
      run_.Do(at, [&](std::uint32_t next) { after = next; }, [&](std::uint32_t next) { Schedule(next); });
      at = after;
    }
  }
  P pool_;
  StepRun& run_;
};

/// Every task after the other, without a pool.
class StepAlone {
 public:
  StepAlone(int, StepRun& run) : run_(run) {}
  void Start() {
    // Parents stand before their children.
    for (std::uint32_t i = 0; i < run_.tasks().size(); ++i) run_.Do(i, [](std::uint32_t) {}, [](std::uint32_t) {});
  }

 private:
  StepRun& run_;
};

/// The rows of S, which is made by S(threads, run) and has Start(), which returns after the last task.
template <typename S>
struct StepRows {
  enum Measure { kTime, kCpu, kMedianDelay, kTailDelay };

  template <std::size_t kTasks, int kThreads, Measure kMeasure>
  static std::uint64_t Run(std::uint64_t) {
    auto [run, step] = Made<kTasks, kThreads>();
    run.Reset();
    const std::uint64_t before = ProcessCpu();
    step.Start();
    if constexpr (kMeasure == kCpu) return ProcessCpu() - before;
    if constexpr (kMeasure == kMedianDelay) return run.Delay(50);
    if constexpr (kMeasure == kTailDelay) return run.Delay(99);
    return 0;
  }

  static std::vector<Op> Table(const char* peer) {
    std::vector<Op> ops = OneThread(peer);
    const std::vector<Op> more = {
        {"step: 200 tasks, 1 thread", peer, 200, &Run<200, 1, kTime>, kThreads},
        {"step: 200 tasks, 4 threads", peer, 200, &Run<200, 4, kTime>, kThreads},
        {"step: 200 tasks, 8 threads", peer, 200, &Run<200, 8, kTime>, kThreads},
        {"step: 200 tasks, 16 threads", peer, 200, &Run<200, 16, kTime>, kThreads},
        {"step: 200 tasks, 16 threads: CPU", peer, 200, &Run<200, 16, kCpu>, kThreads},
        {"step: 200 tasks, 1 thread: half wait less", peer, 1, &Run<200, 1, kMedianDelay>, kThreads},
        {"step: 200 tasks, 2 threads: half wait less", peer, 1, &Run<200, 2, kMedianDelay>, kThreads},
        {"step: 200 tasks, 16 threads: half wait less", peer, 1, &Run<200, 16, kMedianDelay>, kThreads},
        {"step: 200 tasks, 1 thread: 99 of 100 wait less", peer, 1, &Run<200, 1, kTailDelay>, kThreads},
        {"step: 200 tasks, 2 threads: 99 of 100 wait less", peer, 1, &Run<200, 2, kTailDelay>, kThreads},
        {"step: 200 tasks, 16 threads: 99 of 100 wait less", peer, 1, &Run<200, 16, kTailDelay>, kThreads},
    };
    ops.insert(ops.end(), more.begin(), more.end());
    return ops;
  }

  /// Those in which the work itself, on one thread, is a column.
  static std::vector<Op> OneThread(const char* peer) {
    return {
        {"step: 200 tasks, 2 threads", peer, 200, &Run<200, 2, kTime>, kThreads},
        {"step: 200 tasks, 2 threads: CPU", peer, 200, &Run<200, 2, kCpu>, kThreads},
        {"step: 2000 tasks, 2 threads", peer, 2000, &Run<2000, 2, kTime>, kLong},
    };
  }

 private:
  // Never destroyed, as the pools of pool_rows.h.
  template <std::size_t kTasks, int kThreads>
  static std::pair<StepRun&, S&> Made() {
    static StepRun* run = new StepRun(kTasks);
    static S* step = new S(kThreads, *run);
    return {*run, *step};
  }
};

#endif  // PURLIN_BENCHES_STEP_ROWS_H_
