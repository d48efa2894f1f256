// Purlin inside a shared library that Python loads: the archive is in it, and none of its names are seen outside.
#include <cstdint>

#include "purlin/purlin.h"

/// Sums 0 to `count` - 1 in tasks of a pool; -1 if anything failed.
extern "C" __attribute__((visibility("default"))) std::int64_t purlin_together_sum(std::int64_t count) {
  auto pool = purlin::ThreadPoolAsyncWorkRunner::Create({});
  if (!pool.ok()) return -1;
  const auto sum = [count] { return count * (count - 1) / 2; };
  return purlin::MakeFutureOn(*pool, sum).Await().value_or(-1);
}
