// What the basic operations cost, beside what the standard library offers for the same work.
//
// Every row is measured in rounds; ours and the peer take turns within a round, so that a noisy machine disturbs both
// alike. Printed are the minimum and the median over the rounds in ns per operation, heap allocations per operation,
// and the ratio of the minima. Compare ratios: absolute times belong to the machine and the moment.
//
//   make bench        (or: build/release/benches/core_bench [rounds])
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/event.h"
#include "purlin/executor.h"

namespace {
std::atomic<std::size_t> allocations{0};
}  // namespace

// Counts what C++ allocates. Rust's allocations go to malloc without passing here: an event is one more.
void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

// The textbook event: a mutex, a condition and a list of callbacks behind a shared_ptr.
class StdEvent {
 public:
  void OnReady(std::function<void()> waiter) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!ready_) return waiters_.push_back(std::move(waiter));
    }
    waiter();
  }
  void Set() {
    std::vector<std::function<void()>> waiters;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ready_ = true;
      waiters.swap(waiters_);
    }
    condition_.notify_all();
    for (const auto& waiter : waiters) waiter();
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool ready_ = false;
  std::vector<std::function<void()>> waiters_;
};

// The textbook pool: one queue behind one lock.
class StdPool {
 public:
  explicit StdPool(std::size_t threads) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  }
  ~StdPool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
    }
    condition_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void Schedule(std::function<void()> task) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    condition_.notify_one();
  }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      condition_.wait(lock, [this] { return closed_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable condition_;
  std::deque<std::function<void()>> tasks_;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

struct Samples {
  std::vector<double> ns;
  double allocations = 0;
};

// One turn: `count` operations in one call of `work`.
void Measure(Samples& samples, std::size_t count, const std::function<void(std::size_t)>& work) {
  const std::size_t before = allocations.load();
  const auto start = std::chrono::steady_clock::now();
  work(count);
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  samples.ns.push_back(elapsed.count() / static_cast<double>(count));
  samples.allocations = static_cast<double>(allocations.load() - before) / static_cast<double>(count);
}

void Compare(const char* operation, const char* peer, int rounds, std::size_t count,
             const std::function<void(std::size_t)>& ours, const std::function<void(std::size_t)>& theirs) {
  Samples mine;
  Samples other;
  for (int round = 0; round < rounds; ++round) {
    Measure(mine, count, ours);
    Measure(other, count, theirs);
  }
  std::sort(mine.ns.begin(), mine.ns.end());
  std::sort(other.ns.begin(), other.ns.end());
  std::printf("| %-24s | %8.1f | %8.1f | %5.2f | %-22s | %8.1f | %8.1f | %5.2f | %5.2f |\n", operation, mine.ns.front(),
              mine.ns[mine.ns.size() / 2], mine.allocations, peer, other.ns.front(), other.ns[other.ns.size() / 2],
              other.allocations, mine.ns.front() / other.ns.front());
}

// Schedules `count` tasks of 16 bytes and waits for the last.
template <typename Schedule>
void RunAll(std::size_t count, const Schedule& schedule) {
  std::atomic<std::size_t> left{count};
  std::promise<void> done;
  for (std::size_t i = 0; i < count; ++i) {
    schedule([&left, &done] {
      if (left.fetch_sub(1) == 1) done.set_value();
    });
  }
  done.get_future().wait();
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 31;
  purlin::ThreadPoolOptions options;
  options.thread_count = 2;
  auto pool = purlin::ThreadPoolAsyncWorkRunner::Create(options);
  if (!pool.ok()) {
    std::fprintf(stderr, "%s\n", pool.status().ToString().c_str());
    return 1;
  }
  StdPool std_pool(2);
  std::printf(
      "| operation                | min ns   | med ns   | alloc | peer                   | min ns   | med ns   "
      "| alloc | ratio |\n|---|---|---|---|---|---|---|---|---|\n");

  Compare(
      "make, set, drop", "mutex+condition event", rounds, 20000,
      [](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) purlin::EventPromise("bench").SetReady();
      },
      [](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) std::make_shared<StdEvent>()->Set();
      });
  Compare(
      "make, set, drop", "std::promise", rounds, 20000,
      [](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) purlin::EventPromise("bench").SetReady();
      },
      [](std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) std::promise<void>().set_value();
      });
  Compare(
      "copy and drop a reference", "shared_ptr", rounds, 200000,
      [](std::size_t count) {
        purlin::EventPromise promise("bench");
        const purlin::Event event = promise.event();
        for (std::size_t i = 0; i < count; ++i) purlin::Event copy(event);
        promise.SetReady();
      },
      [](std::size_t count) {
        const auto event = std::make_shared<StdEvent>();
        for (std::size_t i = 0; i < count; ++i) auto copy(event);
      });
  for (const std::size_t waiters : {1U, 10U, 100U}) {
    const std::string name = "make, " + std::to_string(waiters) + " OnReady, set";
    Compare(
        name.c_str(), "mutex+condition event", rounds, 20000 / waiters,
        [waiters](std::size_t count) {
          std::size_t calls = 0;
          for (std::size_t i = 0; i < count; ++i) {
            purlin::EventPromise promise("bench");
            for (std::size_t w = 0; w < waiters; ++w) promise.event().OnReady([&calls] { ++calls; });
            promise.SetReady();
          }
          if (calls != count * waiters) std::abort();
        },
        [waiters](std::size_t count) {
          std::size_t calls = 0;
          for (std::size_t i = 0; i < count; ++i) {
            auto event = std::make_shared<StdEvent>();
            for (std::size_t w = 0; w < waiters; ++w) event->OnReady([&calls] { ++calls; });
            event->Set();
          }
          if (calls != count * waiters) std::abort();
        });
  }
  Compare(
      "schedule 2000, wait", "one locked queue", rounds, 2000,
      [&pool](std::size_t count) {
        RunAll(count, [&pool](auto task) { pool->Schedule(std::move(task)).IgnoreError(); });
      },
      [&std_pool](std::size_t count) {
        RunAll(count, [&std_pool](auto task) { std_pool.Schedule(std::move(task)); });
      });
  return 0;
}
