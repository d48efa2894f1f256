// Purlin: a lock for headers that a fork() never copies while it is held, which a std::mutex alone does not promise.
// Not for users.
#ifndef PURLIN_INTERNAL_MUTEX_H_
#define PURLIN_INTERNAL_MUTEX_H_

#include <mutex>

#include "purlin/internal/abi.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// For std::lock_guard. Code that runs while it is held calls no code of the user's: a fork() by another thread waits
/// for it.
class Mutex final {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() {
    const void* const place = EnterLock();
    mutex_.lock();
    place_ = place;
  }
  void unlock() {
    const void* const place = place_;
    mutex_.unlock();
    LeaveLock(place);
  }

 private:
  std::mutex mutex_;
  /// Behind the lock: the argument of LeaveLock().
  const void* place_ = nullptr;
};

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_MUTEX_H_
