// Purlin and another Rust static library in one program: both run, and a panic in either is caught on its own side.
#include <cstdint>
#include <cstdio>
#include <utility>

#include "purlin/purlin.h"

extern "C" std::int64_t second_rust_sum(std::int64_t count);
extern "C" std::int32_t second_rust_catches_a_panic();

int main() {
  purlin::StatusOr<purlin::ThreadPoolAsyncWorkRunner> runner = purlin::ThreadPoolAsyncWorkRunner::Create({2, "second"});
  if (!runner.ok()) {
    std::fprintf(stderr, "%s\n", runner.status().ToString().c_str());
    return 1;
  }
  std::int64_t sum = 0;
  std::int32_t caught = 0;
  purlin::EventPromise promise("second Rust library");
  purlin::Event done = promise.event();
  purlin::Status scheduled = runner->Schedule([&sum, &caught, promise = std::move(promise)]() mutable {
    sum = second_rust_sum(1000);
    caught = second_rust_catches_a_panic();
    promise.SetReady();
  });
  if (!scheduled.ok() || !done.Wait().ok()) return 1;
  if (sum != 500500 || caught != 1) {
    std::fprintf(stderr, "second Rust library: sum %lld, panic caught %d\n", static_cast<long long>(sum), caught);
    return 1;
  }
  // A promise that goes away makes Purlin's own error path run.
  purlin::Event orphan = purlin::EventPromise("orphan").event();
  return orphan.Wait().code() == purlin::StatusCode::kInternal ? 0 : 1;
}
