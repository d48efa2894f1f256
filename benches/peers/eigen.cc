// Eigen's NonBlockingThreadPool, of libeigen3-dev.
#define EIGEN_USE_THREADS
#include <unsupported/Eigen/CXX11/ThreadPool>

#include "pool_rows.h"
#include "step_rows.h"

namespace {

class Pool {
 public:
  explicit Pool(int threads = 2) : pool_(threads) {}
  static constexpr bool kParallelFor = false;
  static constexpr bool kJoin = false;
  template <typename F>
  void Schedule(F&& f) {
    pool_.Schedule(std::forward<F>(f));
  }

 private:
  Eigen::ThreadPool pool_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Op* bench_ops(std::size_t* count) {
  static const std::vector<Op> ops = [] {
    std::vector<Op> all = PoolRows<Pool>::Table("Eigen");
    for (const Op& op : StepRows<StepOn<Pool>>::Table("Eigen")) all.push_back(op);
    return all;
  }();
  *count = ops.size();
  return ops.data();
}
