// Eigen's NonBlockingThreadPool, of libeigen3-dev.
#define EIGEN_USE_THREADS
#include <unsupported/Eigen/CXX11/ThreadPool>

#include "pool_rows.h"

namespace {

class Pool {
 public:
  static constexpr bool kParallelFor = false;
  static constexpr bool kJoin = false;
  template <typename F>
  void Schedule(F&& f) {
    pool_.Schedule(std::forward<F>(f));
  }

 private:
  Eigen::ThreadPool pool_{2};
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Op* bench_ops(std::size_t* count) {
  static const std::vector<Op> ops = PoolRows<Pool>::Table("Eigen");
  *count = ops.size();
  return ops.data();
}
