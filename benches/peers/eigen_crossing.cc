// What it costs to cross between Eigen's pools and Purlin's (include/purlin/adapters/eigen_thread_pool.h), beside the
// same work on one side. A library of its own: its Purlin is that of the program, so there is one runtime.
#define EIGEN_USE_THREADS
#include <utility>

#include "pool_rows.h"
#include "purlin/adapters/eigen_thread_pool.h"
#include "purlin/executor.h"

namespace {

purlin::ThreadPoolAsyncWorkRunner MakePool() {
  purlin::ThreadPoolOptions options;
  options.thread_count = 2;
  return purlin::ThreadPoolAsyncWorkRunner::Create(options).value();
}

class PurlinAsEigen {
 public:
  template <typename F>
  void Schedule(F&& f) {
    pool_.Schedule(std::forward<F>(f));
  }

 private:
  purlin::adapters::EigenThreadPool pool_{MakePool()};
};

class EigenAsExecutor {
 public:
  template <typename F>
  void Schedule(F&& f) {
    executor_.Execute(purlin::Task(std::forward<F>(f))).IgnoreError();
  }

 private:
  Eigen::ThreadPool pool_{2};
  purlin::adapters::EigenExecutor executor_{pool_};
};

class EigenAlone {
 public:
  template <typename F>
  void Schedule(F&& f) {
    pool_.Schedule(std::forward<F>(f));
  }

 private:
  Eigen::ThreadPool pool_{2};
};

class PurlinAlone {
 public:
  template <typename F>
  void Schedule(F&& f) {
    pool_.Schedule(std::forward<F>(f)).IgnoreError();
  }

 private:
  purlin::ThreadPoolAsyncWorkRunner pool_ = MakePool();
};

// As many at once as Eigen's queues hold: beyond that its pool runs closures on the thread that gives them.
constexpr Op kOps[] = {
    {"crossing: Purlin's pool as Eigen's, 16 B", "purlin", 900, &PoolRows<PurlinAsEigen>::Outside<16>, kThreads},
    {"crossing: Purlin's pool as Eigen's, 16 B", "Eigen's pool, no crossing", 900, &PoolRows<EigenAlone>::Outside<16>,
     kThreads},
    {"crossing: Eigen's pool as an Executor, 16 B", "purlin", 900, &PoolRows<EigenAsExecutor>::Outside<16>, kThreads},
    {"crossing: Eigen's pool as an Executor, 16 B", "Purlin's pool, no crossing", 900,
     &PoolRows<PurlinAlone>::Outside<16>, kThreads},
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Op* bench_ops(std::size_t* count) {
  *count = sizeof(kOps) / sizeof(kOps[0]);
  return kOps;
}
