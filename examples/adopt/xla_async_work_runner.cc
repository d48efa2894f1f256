// Code over xla::AsyncWorkRunner adopts Purlin's pool: the runner is replaced, all code that takes one stays.
//
// `before` makes XLA's runner over TSL's threads. `after` puts the pool that the rest of the program has behind the
// same interface. main runs both, with a value that becomes available and one that fails, and compares.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "purlin/adapters/xla_async_work_runner.h"
#include "purlin/purlin.h"
#include "xla/pjrt/async_work_runner.h"
#include "xla/pjrt/thread_pool_async_work_runner.h"
#include "xla/tsl/concurrency/async_value_ref.h"
#include "xla/tsl/concurrency/chain.h"
#include "xla/tsl/platform/env.h"
#include "xla/tsl/platform/threadpool.h"

namespace before {

std::unique_ptr<xla::AsyncWorkRunner> MakeRunner() {
  static tsl::thread::ThreadPool threads(tsl::Env::Default(), "runner", 2);
  return xla::MakeThreadPoolAsyncWorkRunner(&threads);
}

}  // namespace before

namespace after {

std::unique_ptr<xla::AsyncWorkRunner> MakeRunner() {
  static purlin::ThreadPoolAsyncWorkRunner pool = purlin::ThreadPoolAsyncWorkRunner::Create({}).value();
  return std::make_unique<purlin::adapters::XlaAsyncWorkRunner>(pool);
}

}  // namespace after

// The part of the code that does not change: work that waits for a value, and reports whether it became available.
tsl::AsyncValueRef<std::string> Report(xla::AsyncWorkRunner& runner, const tsl::AsyncValueRef<int>& value) {
  auto report = tsl::MakeUnconstructedAsyncValueRef<std::string>();
  const std::vector<tsl::RCReference<tsl::AsyncValue>> values = {value.CopyRCRef()};
  runner.ScheduleWhenReady(values, [value, report] {
    report.emplace(value.IsError() ? value.GetError().ToString() : std::to_string(value.get()));
  });
  return report;
}

std::string Run(std::unique_ptr<xla::AsyncWorkRunner> runner) {
  std::string text;
  for (const bool fails : {false, true}) {
    const auto value = tsl::MakeUnconstructedAsyncValueRef<int>();
    const auto report = Report(*runner, value);
    fails ? value.SetError(absl::DataLossError("the input was lost")) : value.emplace(42);
    tsl::BlockUntilReady(report.GetAsyncValue());
    text += report.get() + "; ";
  }
  return text;
}

int main() {
  const std::string was = Run(before::MakeRunner());
  const std::string is = Run(after::MakeRunner());
  std::printf("before: %s\nafter:  %s\n", was.c_str(), is.c_str());
  return was == is ? 0 : 1;
}
