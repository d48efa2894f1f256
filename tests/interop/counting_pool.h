// A pool of Eigen's shape on the way to another, which counts what it is given.
#ifndef PURLIN_TESTS_INTEROP_COUNTING_POOL_H_
#define PURLIN_TESTS_INTEROP_COUNTING_POOL_H_

#include <atomic>
#include <functional>
#include <utility>

namespace purlin {

/// `Interface` is Eigen's or TSL's. `pool` outlives this.
template <typename Interface>
class CountingPool final : public Interface {
 public:
  explicit CountingPool(Interface& pool) : pool_(pool) {}
  void Schedule(std::function<void()> closure) override {
    ++closures;
    pool_.Schedule(std::move(closure));
  }
  int NumThreads() const override { return pool_.NumThreads(); }
  int CurrentThreadId() const override { return pool_.CurrentThreadId(); }
  std::atomic<int> closures{0};

 private:
  Interface& pool_;
};

}  // namespace purlin

#endif  // PURLIN_TESTS_INTEROP_COUNTING_POOL_H_
