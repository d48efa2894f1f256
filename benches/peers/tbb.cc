// oneTBB, of libtbb-dev: an arena of two workers. From outside a task is enqueued, which is how TBB takes work that no
// thread waits for. From inside it is spawned in a task group.
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "pool_rows.h"

namespace {

thread_local bool inside = false;

class Pool {
 public:
  static constexpr bool kParallelFor = true;
  static constexpr bool kJoin = true;
  template <typename F>
  void Schedule(F&& f) {
    if (inside) return group_.run(std::forward<F>(f));
    arena_.enqueue([f = std::forward<F>(f)] {
      inside = true;
      f();
    });
  }
  void ParallelFor(std::uint32_t* data, std::size_t count) {
    loops_.execute([=] {
      tbb::parallel_for(
          tbb::blocked_range<std::size_t>(0, count),
          [data](const tbb::blocked_range<std::size_t>& range) { bench_loop_body(data, range.begin(), range.end()); });
    });
  }
  std::uint64_t Fib(int n) {
    if (n < 2) return static_cast<std::uint64_t>(n);
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    tbb::parallel_invoke([&] { a = Fib(n - 1); }, [&] { b = Fib(n - 2); });
    return a + b;
  }

 private:
  tbb::global_control threads_{tbb::global_control::max_allowed_parallelism, 3};
  tbb::task_arena arena_{2, 0};
  tbb::task_arena loops_{3, 1};  // Two workers and the caller, as for the others.
  tbb::task_group group_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Op* bench_ops(std::size_t* count) {
  static const std::vector<Op> ops = PoolRows<Pool>::Table("oneTBB");
  *count = ops.size();
  return ops.data();
}
