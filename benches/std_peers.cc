// What the standard library offers for the same work: a mutex, a condition and a list of callbacks; std::promise; one
// queue behind one lock; and for blocked threads the futex itself, the least that any library can cost.
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>

#include "event_rows.h"
#include "latch.h"
#include "ours.h"
#include "pool_rows.h"
#include "step_rows.h"

namespace {

class LockedState {
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
  bool IsReady() {
    std::lock_guard<std::mutex> lock(mutex_);
    return ready_;
  }
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    condition_.wait(lock, [this] { return ready_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool ready_ = false;
  std::vector<std::function<void()>> waiters_;
};

struct LockedEvent {
  using Value = std::shared_ptr<LockedState>;
  using Ref = std::shared_ptr<LockedState>;
  static constexpr bool kMap = true;
  static constexpr bool kAll = false;
  static Value Make() { return std::make_shared<LockedState>(); }
  static Ref RefOf(const Value& value) { return value; }
  static void Set(Value& value) { value->Set(); }
  template <typename F>
  static void Then(const Ref& ref, F&& f) {
    ref->OnReady(std::forward<F>(f));
  }
  static bool IsReady(const Ref& ref) { return ref->IsReady(); }
  static void Wait(const Ref& ref) { ref->Wait(); }
  static Ref Map(const Ref& ref) {
    Ref next = Make();
    ref->OnReady([next] { next->Set(); });
    return next;
  }
};

// Only what std::promise can do.
std::uint64_t PromiseMakeSetDrop(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) std::promise<int>().set_value(42);
  return 0;
}

struct Futex {
  struct Word {
    std::atomic<std::uint32_t> set{0};
  };
  using Value = std::unique_ptr<Word>;
  using Ref = Word*;
  static Value Make() { return std::make_unique<Word>(); }
  static Ref RefOf(const Value& value) { return value.get(); }
  static void Set(Value& value) {
    value->set.store(1, std::memory_order_release);
    FutexWake(value->set);
  }
  static void Wait(Ref ref) {
    while (ref->set.load(std::memory_order_acquire) == 0) FutexWait(ref->set, 0);
  }
};

class LockedQueue {
 public:
  static constexpr bool kParallelFor = false;
  static constexpr bool kJoin = false;
  explicit LockedQueue(int threads = 2) {
    for (int i = 0; i < threads; ++i) std::thread([this] { Work(); }).detach();
  }
  template <typename F>
  void Schedule(F&& f) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      tasks_.emplace_back(std::forward<F>(f));
    }
    condition_.notify_one();
  }

 private:
  [[noreturn]] void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      condition_.wait(lock, [this] { return !tasks_.empty(); });
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
};

// What a second of rest costs the process by itself.
std::uint64_t IdleWithoutPool(std::uint64_t) {
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const std::uint64_t before = ProcessCpu();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return ProcessCpu() - before;
}

// The loop itself, on one thread.
std::uint64_t PlainLoop(std::uint64_t) {
  static std::vector<std::uint32_t> data(kLoopItems);
  bench_loop_body(data.data(), 0, data.size());
  return 0;
}

OpList Keep(const std::vector<Op>& ops) { return {ops.data(), ops.size()}; }

}  // namespace

OpList StdEventOps() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> all = EventRows<LockedEvent>::Table("mutex + condition", "");
    all.push_back({"make, set, drop", "std::promise", 10000, &PromiseMakeSetDrop, kOneThread});
    all.push_back({"blocked wait to wake", "futex", 4, &EventRows<Futex>::BlockedWait, kThreads});
    return all;
  }();
  return Keep(ops);
}

OpList StdPoolOps() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> all = PoolRows<LockedQueue>::Table("one locked queue");
    for (const Op& op : StepRows<StepOn<LockedQueue>>::Table("one locked queue")) all.push_back(op);
    for (const Op& op : StepRows<StepAlone>::OneThread("one thread")) all.push_back(op);
    all.push_back({"parked pool: CPU ns in a second of rest", "no pool", 1, &IdleWithoutPool, kOnce});
    all.push_back({"parallel loop, per item", "one thread", kLoopItems, &PlainLoop, kThreads});
    return all;
  }();
  return Keep(ops);
}
