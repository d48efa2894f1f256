// The work of every row about events, written once for all kinds of them, so that each column does the same.
//
// A kind K of event says how it does things, in static functions:
//   Value Make()              a new pending one, with what sets it         Set(Value&)         makes it happen
//   Ref RefOf(Value&)         a shared reference                           Then(ref, f)        calls f() when it
//   happens IsReady(ref), Wait(ref) Ref Map(const Ref&)       [kMap] one that happens after it, by a function of the
//   value AllThen(refs, count, f)   [kAll] calls f() when all have happened
#ifndef PURLIN_BENCHES_EVENT_ROWS_H_
#define PURLIN_BENCHES_EVENT_ROWS_H_

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "op.h"

template <typename K>
struct EventRows {
  using Ref = typename K::Ref;

  static std::uint64_t MakeSetDrop(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      auto value = K::Make();
      Touch(value);
      K::Set(value);
    }
    return 0;
  }

  // Waiters of 16 bytes.
  template <std::uint64_t kWaiters>
  static std::uint64_t FanOut(std::uint64_t count) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      auto value = K::Make();
      Ref ref = K::RefOf(value);
      for (std::uint64_t w = 0; w < kWaiters; ++w) K::Then(ref, [&sum, w] { sum += w | 1; });
      K::Set(value);
    }
    if (sum < count * kWaiters) std::abort();
    return 0;
  }

  // `count` links of a hundred each.
  static std::uint64_t Chain(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; i += 100) {
      auto value = K::Make();
      Ref last = K::RefOf(value);
      for (int link = 0; link < 100; ++link) last = K::Map(last);
      K::Set(value);
      if (!K::IsReady(last)) std::abort();
    }
    return 0;
  }
  static std::uint64_t MapAndSet(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      auto value = K::Make();
      Ref mapped = K::Map(K::RefOf(value));
      K::Set(value);
      if (!K::IsReady(mapped)) std::abort();
    }
    return 0;
  }

  static std::uint64_t IsReady(std::uint64_t count) {
    auto value = K::Make();
    K::Set(value);
    Ref ref = K::RefOf(value);
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      Touch(ref);
      sum += K::IsReady(ref) ? 1 : 0;
    }
    if (sum != count) std::abort();
    return 0;
  }
  static std::uint64_t WaitOnReady(std::uint64_t count) {
    auto value = K::Make();
    K::Set(value);
    Ref ref = K::RefOf(value);
    for (std::uint64_t i = 0; i < count; ++i) {
      Touch(ref);
      K::Wait(ref);
    }
    return 0;
  }
  static std::uint64_t ThenOnReady(std::uint64_t count) {
    auto value = K::Make();
    K::Set(value);
    Ref ref = K::RefOf(value);
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      Touch(ref);
      K::Then(ref, [&sum, i] { sum += i | 1; });
      Touch(sum);
    }
    if (sum < count) std::abort();
    return 0;
  }
  static std::uint64_t CopyRef(std::uint64_t count) {
    auto value = K::Make();
    Ref ref = K::RefOf(value);
    for (std::uint64_t i = 0; i < count; ++i) {
      Ref copy(ref);
      Touch(copy);
    }
    K::Set(value);
    return 0;
  }

  // Making and setting the values is part of it.
  template <std::size_t kValues>
  static std::uint64_t All(std::uint64_t count) {
    std::uint64_t calls = 0;
    std::vector<typename K::Value> values;
    std::vector<Ref> refs;
    values.reserve(kValues);
    refs.reserve(kValues);
    for (std::uint64_t i = 0; i < count; ++i) {
      for (std::size_t v = 0; v < kValues; ++v) {
        values.push_back(K::Make());
        refs.push_back(K::RefOf(values.back()));
      }
      K::AllThen(refs.data(), kValues, [&calls] { ++calls; });
      for (auto& value : values) K::Set(value);
      refs.clear();
      values.clear();
    }
    if (calls != count) std::abort();
    return 0;
  }
  static std::uint64_t AllOfReady(std::uint64_t count) {
    std::uint64_t calls = 0;
    std::vector<Ref> refs;
    for (int v = 0; v < 4; ++v) {
      auto value = K::Make();
      K::Set(value);
      refs.push_back(K::RefOf(value));
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      Touch(refs);
      K::AllThen(refs.data(), 4, [&calls] { ++calls; });
    }
    if (calls != count) std::abort();
    return 0;
  }

  // From just before Set to just after Wait on a thread that has had time to fall asleep. Answers its own time.
  static std::uint64_t BlockedWait(std::uint64_t count) {
    using Clock = std::chrono::steady_clock;
    std::atomic<Ref*> handed{nullptr};
    std::atomic<bool> stop{false};
    std::atomic<Clock::rep> woken{0};
    std::thread waiter([&] {
      while (!stop.load(std::memory_order_acquire)) {
        Ref* ref = handed.exchange(nullptr);
        if (ref == nullptr) {
          std::this_thread::yield();
          continue;
        }
        K::Wait(*ref);
        woken.store(Clock::now().time_since_epoch().count());
      }
    });
    Clock::rep total = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      auto value = K::Make();
      Ref ref = K::RefOf(value);
      woken.store(0);
      handed.store(&ref);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      const Clock::rep start = Clock::now().time_since_epoch().count();
      K::Set(value);
      while (woken.load() == 0) std::this_thread::yield();
      total += woken.load() - start;
    }
    stop.store(true, std::memory_order_release);
    waiter.join();
    return static_cast<std::uint64_t>(total);
  }

  // The table for `peer`; names get `prefix` in front. Lives until the end of the process.
  static std::vector<Op> Table(const char* peer, const char* prefix) {
    static std::deque<std::string> names;
    std::vector<Op> ops;
    const auto add = [&](const char* row, std::uint64_t batch, std::uint64_t (*run)(std::uint64_t),
                         std::uint32_t kind = kOneThread) {
      names.push_back(std::string(prefix) + row);
      ops.push_back(Op{names.back().c_str(), peer, batch, run, kind});
    };
    add("make, set, drop", 10000, &MakeSetDrop);
    add("make, 1 waiter, set, drop", 10000, &FanOut<1>);
    add("make, 10 waiters, set, drop", 1500, &FanOut<10>);
    add("make, 1000 waiters, set, drop", 20, &FanOut<1000>);
    if constexpr (K::kMap) {
      add("map, per link of 100", 5000, &Chain);
      add("map a pending one, set", 5000, &MapAndSet);
    }
    add("is ready", 200000, &IsReady);
    add("wait on ready", 200000, &WaitOnReady);
    add("attach to ready", 200000, &ThenOnReady);
    add("copy and drop a reference", 200000, &CopyRef);
    if constexpr (K::kAll) {
      add("run when 4 ready", 2000, &All<4>);
      add("run when 100 ready", 80, &All<100>);
      add("run when ready, 4 of 4 are", 20000, &AllOfReady);
    }
    add("blocked wait to wake", 4, &BlockedWait, kThreads);
    return ops;
  }
};

#endif  // PURLIN_BENCHES_EVENT_ROWS_H_
