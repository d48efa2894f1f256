// Code that speaks abseil adopts Purlin: a function keeps its signature, and a queue of closures becomes a pool.
//
// `before` is the existing code; `after` has the same signatures over Purlin. main runs both and compares.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "purlin/adapters/absl.h"
#include "purlin/purlin.h"

namespace before {

absl::StatusOr<int> Sum(absl::Span<const int> numbers) {
  if (numbers.empty()) return absl::InvalidArgumentError("nothing to sum");
  int sum = 0;
  for (const int number : numbers) sum += number;
  return sum;
}

class Worker {
 public:
  absl::Status Schedule(absl::AnyInvocable<void() &&> work) {
    queue_.push_back(std::move(work));
    return absl::OkStatus();
  }
  void Finish() {
    for (auto& work : queue_) std::move(work)();
    queue_.clear();
  }

 private:
  std::vector<absl::AnyInvocable<void() &&>> queue_;
};

}  // namespace before

namespace after {

// The new body returns a purlin::StatusOr; one call at the border keeps every caller as it is.
purlin::StatusOr<int> SumWithPurlin(purlin::Span<const int> numbers) {
  if (numbers.empty()) return purlin::InvalidArgumentError("nothing to sum");
  int sum = 0;
  for (const int number : numbers) sum += number;
  return sum;
}
absl::StatusOr<int> Sum(absl::Span<const int> numbers) { return purlin::adapters::ToAbsl(SumWithPurlin(numbers)); }

// Each closure is scheduled on a pool as it is.
class Worker {
 public:
  absl::Status Schedule(absl::AnyInvocable<void() &&> work) {
    return purlin::adapters::ToAbsl(pool_.Schedule(purlin::adapters::FromAbsl(std::move(work))));
  }
  void Finish() { pool_.Shutdown().IgnoreError(); }

 private:
  purlin::ThreadPoolAsyncWorkRunner pool_ = purlin::ThreadPoolAsyncWorkRunner::Create({}).value();
};

}  // namespace after

template <typename Worker, typename Sum>
std::string Run(Sum sum) {
  std::string text = sum({}).status().ToString();
  auto total = std::make_shared<int>(0);
  {
    Worker worker;
    const std::vector<int> numbers = {1, 2, 3};
    absl::Status status = worker.Schedule([total, result = sum(numbers)] { *total = *result; });
    text += " " + status.ToString();
    worker.Finish();
  }
  return text + " " + std::to_string(*total);
}

int main() {
  const std::string was = Run<before::Worker>(before::Sum);
  const std::string is = Run<after::Worker>(after::Sum);
  std::printf("before: %s\nafter:  %s\n", was.c_str(), is.c_str());
  return was == is ? 0 : 1;
}
