// A value of tsl's, as XLA's C++ code hands it out, and a task of Purlin's that waits for it.
#include <cstdio>
#include <utility>

#include "purlin/adapters/tsl_async_value.h"
#include "purlin/purlin.h"
#include "xla/tsl/concurrency/async_value_ref.h"

int main() {
  auto pool = purlin::ThreadPoolAsyncWorkRunner::Create({}).value();
  const auto value = tsl::MakeUnconstructedAsyncValueRef<int>();
  purlin::EventPromise promise("printed");
  const purlin::Event printed = promise.event();
  auto print = [value, promise = std::move(promise)](const purlin::Status& status) mutable {
    if (status.ok()) std::printf("%d\n", value.get());
    promise.Set(status);
  };
  if (!pool.ScheduleWhenReady({purlin::adapters::FromTsl(value)}, std::move(print), "print").ok()) return 1;
  value.emplace(42);
  return printed.Wait().ok() ? 0 : 1;
}
