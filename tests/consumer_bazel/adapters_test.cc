// Adapters from another Bazel workspace: one whose other side is the standard library, and one that calls functions of
// Purlin's archive.
#include <cstdio>
#include <future>
#include <utility>

#include "purlin/adapters/pjrt_tables.h"
#include "purlin/adapters/std.h"
#include "purlin/purlin.h"

namespace {

bool StdFuturesCross() {
  purlin::StatusOr<purlin::ElasticPool> pool = purlin::ElasticPool::Create({});
  if (!pool.ok()) return false;
  std::promise<int> promise;
  const purlin::Future<int> number = purlin::adapters::FromStd(promise.get_future(), *pool);
  promise.set_value(41);
  const purlin::StatusOr<int> next = purlin::adapters::ToStd(number.Map([](int value) { return value + 1; })).get();
  return next.ok() && *next == 42;
}

bool ErrorsCrossPjrtsTables() {
  const purlin::Status lost = purlin::DataLossError("half a file");
  return purlin::adapters::FromPjrt(purlin::adapters::ToPjrt(lost)) == lost;
}

bool Passed(const char* name, bool passed) {
  std::printf("%s: %s\n", name, passed ? "passed" : "FAILED");
  return passed;
}

}  // namespace

int main() {
  bool passed = Passed("StdFuturesCross", StdFuturesCross());
  passed &= Passed("ErrorsCrossPjrtsTables", ErrorsCrossPjrtsTables());
  return passed ? 0 : 1;
}
