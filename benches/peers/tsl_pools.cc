// tsl::thread::ThreadPool, and xla::AsyncWorkRunner on top of it.
#include <memory>

#include "peers/tsl.h"
#include "pool_rows.h"
#include "step_rows.h"
#include "xla/pjrt/async_work_runner.h"
#include "xla/pjrt/thread_pool_async_work_runner.h"
#include "xla/tsl/platform/env.h"
#include "xla/tsl/platform/threadpool.h"

namespace {

class ThreadPool {
 public:
  explicit ThreadPool(int threads = 2) : pool_(tsl::Env::Default(), "tsl_bench", threads) {}
  static constexpr bool kParallelFor = true;
  static constexpr bool kJoin = false;
  template <typename F>
  void Schedule(F&& f) {
    pool_.Schedule(std::forward<F>(f));
  }
  void ParallelFor(std::uint32_t* data, std::size_t count) {
    pool_.ParallelFor(static_cast<std::int64_t>(count), /*cost_per_unit=*/1,
                      [data](std::int64_t begin, std::int64_t end) {
                        bench_loop_body(data, static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
                      });
  }

 private:
  tsl::thread::ThreadPool pool_;
};

class WorkRunner {
 public:
  static constexpr bool kParallelFor = false;
  static constexpr bool kJoin = false;
  template <typename F>
  void Schedule(F&& f) {
    runner_->Schedule(std::forward<F>(f));
  }

 private:
  tsl::thread::ThreadPool pool_{tsl::Env::Default(), "xla_bench", 2};
  std::unique_ptr<xla::AsyncWorkRunner> runner_ = xla::MakeThreadPoolAsyncWorkRunner(&pool_);
};

}  // namespace

std::vector<Op> TslPoolOps() {
  std::vector<Op> ops = PoolRows<ThreadPool>::Table("tsl::ThreadPool");
  for (const Op& op : StepRows<StepOn<ThreadPool>>::Table("tsl::ThreadPool")) ops.push_back(op);
  for (const Op& op : PoolRows<WorkRunner>::Table("xla::AsyncWorkRunner")) ops.push_back(op);
  return ops;
}

extern "C" __attribute__((visibility("default"))) const Op* bench_ops(std::size_t* count) {
  static const std::vector<Op> ops = [] {
    std::vector<Op> all = TslPoolOps();
    for (const Op& op : TslEventOps()) all.push_back(op);
    return all;
  }();
  *count = ops.size();
  return ops.data();
}
