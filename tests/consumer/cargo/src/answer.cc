// The C++ of a Rust program: a task of Purlin's pool computes a value, and an event says when it is there.
#include "purlin/event.h"
#include "purlin/executor.h"

/// 42, or the code of the error.
extern "C" int answer() noexcept {
  purlin::StatusOr<purlin::ThreadPoolAsyncWorkRunner> pool = purlin::ThreadPoolAsyncWorkRunner::Create({});
  if (!pool.ok()) return static_cast<int>(pool.status().code());
  int value = 0;
  purlin::EventPromise promise("answer");
  purlin::Event done = promise.event();
  purlin::Status scheduled = pool->Schedule([&value, &promise] {
    value = 42;
    promise.SetReady();
  });
  if (!scheduled.ok()) return static_cast<int>(scheduled.code());
  purlin::Status waited = done.Wait();
  return waited.ok() ? value : static_cast<int>(waited.code());
}
