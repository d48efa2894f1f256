// Purlin's column of the rows about pools.
#include <cstdio>
#include <utility>

#include "ours.h"
#include "pool_rows.h"
#include "purlin/executor.h"
#include "step_rows.h"

namespace {

class OurPool {
 public:
  static constexpr bool kParallelFor = true;
  static constexpr bool kJoin = true;
  explicit OurPool(int threads = 2) : runner_(Make(threads)) {}

  template <typename F>
  void Schedule(F&& f) {
    runner_.Schedule(std::forward<F>(f)).IgnoreError();
  }
  void ParallelFor(std::uint32_t* data, std::size_t count) {
    runner_.ParallelFor(count, [data](std::size_t begin, std::size_t end) { bench_loop_body(data, begin, end); })
        .IgnoreError();
  }
  std::uint64_t Fib(int n) {
    if (n < 2) return static_cast<std::uint64_t>(n);
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    runner_.Join([&] { a = Fib(n - 1); }, [&] { b = Fib(n - 2); }).IgnoreError();
    return a + b;
  }

 private:
  static purlin::ThreadPoolAsyncWorkRunner Make(int threads) {
    purlin::ThreadPoolOptions options;
    options.thread_count = static_cast<std::size_t>(threads);
    auto runner = purlin::ThreadPoolAsyncWorkRunner::Create(options);
    if (!runner.ok()) {
      std::fprintf(stderr, "purlin_bench: %s\n", runner.status().ToString().c_str());
      std::abort();
    }
    return *std::move(runner);
  }
  purlin::ThreadPoolAsyncWorkRunner runner_;
};

}  // namespace

OpList PoolOps() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> all = PoolRows<OurPool>::Table("purlin");
    for (const Op& op : StepRows<StepOn<OurPool>>::Table("purlin")) all.push_back(op);
    return all;
  }();
  return {ops.data(), ops.size()};
}
