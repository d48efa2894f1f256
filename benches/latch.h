// Counts down, and wakes the one thread that waits for zero. The same for every pool, on a bare futex.
#ifndef PURLIN_BENCHES_LATCH_H_
#define PURLIN_BENCHES_LATCH_H_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

/// Sleeps while `word` is `expected`; may return early.
inline void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
/// Wakes one sleeper.
inline void FutexWake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

/// Must outlive the last Down(); the rows keep theirs in static storage for that.
class Latch {
 public:
  void Reset(std::uint64_t count) {
    open_.store(0, std::memory_order_relaxed);
    left_.store(count, std::memory_order_release);
  }
  void Down() {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      open_.store(1, std::memory_order_release);
      FutexWake(open_);
    }
  }
  void Wait() {
    while (open_.load(std::memory_order_acquire) == 0) FutexWait(open_, 0);
  }

 private:
  std::atomic<std::uint64_t> left_{0};
  std::atomic<std::uint32_t> open_{0};
};

#endif  // PURLIN_BENCHES_LATCH_H_
