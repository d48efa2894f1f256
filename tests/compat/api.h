// What the tests of this folder are written against: the API of tsl and abseil, upstream's own or Purlin's.
//
// PURLIN_COMPAT_UPSTREAM: the headers and libraries of the wheel of tensorflow-cpu. Else purlin/compat/tsl.h. The tests
// use only what both have and what means the same, and pass on both: that is what they prove.
#ifndef PURLIN_TESTS_COMPAT_API_H_
#define PURLIN_TESTS_COMPAT_API_H_

#if defined(PURLIN_COMPAT_UPSTREAM)

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tsl/platform/env.h"
#include "tsl/platform/threadpool.h"
#include "tsl/platform/unbounded_work_queue.h"
#include "xla/tsl/concurrency/async_value.h"
#include "xla/tsl/concurrency/async_value_ref.h"
#include "xla/tsl/concurrency/chain.h"
#include "xla/tsl/concurrency/executor.h"
#include "xla/tsl/concurrency/future.h"
#include "xla/tsl/concurrency/ref_count.h"
#include "xla/tsl/platform/errors.h"
#include "xla/tsl/platform/statusor.h"

#else

#include "purlin/compat/tsl.h"

namespace tsl = purlin::compat::tsl;
namespace absl = purlin::compat::absl;

#endif

#include <cstddef>
#include <utility>
#include <vector>

/// Runs tasks when it is told to.
class LaterExecutor final : public tsl::Executor {
 public:
  void Execute(Task task) final { tasks_.push_back(std::move(task)); }

  /// Runs what is there, and what that adds; how many there were.
  std::size_t RunAll() {
    std::size_t ran = 0;
    while (!tasks_.empty()) {
      std::vector<Task> tasks = std::move(tasks_);
      tasks_.clear();
      for (Task& task : tasks) std::move(task)();
      ran += tasks.size();
    }
    return ran;
  }
  std::size_t waiting() const { return tasks_.size(); }

 private:
  std::vector<Task> tasks_;
};

#endif  // PURLIN_TESTS_COMPAT_API_H_
