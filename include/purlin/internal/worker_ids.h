// Purlin: loops whose calls are numbered by what runs them. Not for users; see executor.h.
//
// An id is free, or one call has it. A range that finds none free is left to a call that has one, which runs it before
// it gives the id back: while a range is left, all ids are taken, so none is forgotten, and no thread waits.
#ifndef PURLIN_INTERNAL_WORKER_IDS_H_
#define PURLIN_INTERNAL_WORKER_IDS_H_

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "purlin/internal/guard.h"
#include "purlin/internal/mutex.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// One loop. `F` is called as `body(begin, end, id)`.
template <typename F>
class WorkerIds final {
 public:
  /// Ids from 0 to `count - 1`.
  WorkerIds(std::size_t count, F& body) : body_(body) {
    free_.reserve(count);
    for (std::size_t id = count; id > 0; --id) free_.push_back(id - 1);
  }
  WorkerIds(const WorkerIds&) = delete;
  WorkerIds& operator=(const WorkerIds&) = delete;

  /// A call of a loop over ranges; `data` is a WorkerIds.
  static bool Call(void* data, std::size_t begin, std::size_t end) {
    return static_cast<WorkerIds*>(data)->Run(begin, end);
  }

 private:
  using Range = std::pair<std::size_t, std::size_t>;

  bool Run(std::size_t begin, std::size_t end) {
    Range range(begin, end);
    std::size_t id = 0;
    {
      const std::lock_guard<Mutex> lock(mutex_);
      if (free_.empty()) {
        left_.push_back(range);
        return true;
      }
      id = free_.back();
      free_.pop_back();
    }
    bool ok = true;
    for (;;) {
      ok = GuardedOk("ParallelForWithWorkerId", [&] { body_(range.first, range.second, id); }) && ok;
      const std::lock_guard<Mutex> lock(mutex_);
      if (left_.empty()) {
        free_.push_back(id);
        return ok;
      }
      range = left_.back();
      left_.pop_back();
    }
  }

  F& body_;
  Mutex mutex_;
  std::vector<std::size_t> free_;
  std::vector<Range> left_;
};

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_WORKER_IDS_H_
