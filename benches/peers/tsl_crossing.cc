// What it costs to cross between tsl and Purlin (include/purlin/adapters/tsl_async_value.h), beside the same work on
// one side. A library of its own: its Purlin is that of the program, so there is one runtime.
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "op.h"
#include "purlin/adapters/tsl_async_value.h"
#include "purlin/event.h"
#include "purlin/future.h"
#include "purlin/promise.h"
#include "xla/tsl/concurrency/async_value_ref.h"
#include "xla/tsl/concurrency/future.h"

namespace {

using purlin::adapters::FromTsl;
using purlin::adapters::ToTsl;

// Calls `work(calls)` `count` times; it adds one to `calls`.
template <typename F>
std::uint64_t Each(std::uint64_t count, F work) {
  std::uint64_t calls = 0;
  for (std::uint64_t i = 0; i < count; ++i) work(calls);
  if (calls != count) std::abort();
  return 0;
}

// A tsl value is made, a waiter is added, the value is set and dropped.
std::uint64_t ValueInTsl(std::uint64_t count) {
  return Each(count, [](std::uint64_t& calls) {
    const auto value = tsl::MakeUnconstructedAsyncValueRef<int>();
    value.AndThen([&calls] { ++calls; });
    value.emplace(42);
  });
}
std::uint64_t ValueToEvent(std::uint64_t count) {
  return Each(count, [](std::uint64_t& calls) {
    const auto value = tsl::MakeUnconstructedAsyncValueRef<int>();
    FromTsl(value).OnReady([&calls] { ++calls; });
    value.emplace(42);
  });
}

// An event is made, a waiter is added, the event is set and dropped.
std::uint64_t EventInPurlin(std::uint64_t count) {
  return Each(count, [](std::uint64_t& calls) {
    purlin::EventPromise promise("bench");
    promise.OnReady([&calls] { ++calls; });
    promise.SetReady();
  });
}
std::uint64_t EventToValue(std::uint64_t count) {
  return Each(count, [](std::uint64_t& calls) {
    purlin::EventPromise promise("bench");
    ToTsl(promise.event()).AndThen([&calls] { ++calls; });
    promise.SetReady();
  });
}

std::uint64_t FutureInTsl(std::uint64_t count) {
  return Each(count, [](std::uint64_t& calls) {
    auto [promise, future] = tsl::MakePromise<int>();
    future.OnReady([&calls](const absl::StatusOr<int>&) { ++calls; });
    promise.Set(42);
  });
}
std::uint64_t FutureFromTsl(std::uint64_t count) {
  return Each(count, [](std::uint64_t& calls) {
    auto [promise, future] = tsl::MakePromise<int>();
    FromTsl(std::move(future)).OnReady([&calls](const purlin::StatusOr<int>&) { ++calls; });
    promise.Set(42);
  });
}
std::uint64_t FutureToTsl(std::uint64_t count) {
  return Each(count, [](std::uint64_t& calls) {
    auto [promise, future] = purlin::MakePromise<int>("bench");
    ToTsl(std::move(future)).OnReady([&calls](const absl::StatusOr<int>&) { ++calls; });
    promise.Set(42);
  });
}

// What has happened already.
std::uint64_t ReadyValueToEvent(std::uint64_t count) {
  const auto value = tsl::MakeAvailableAsyncValueRef<int>(42);
  return Each(count, [&value](std::uint64_t& calls) { calls += FromTsl(value).IsReady() ? 1 : 0; });
}
std::uint64_t ReadyEventToValue(std::uint64_t count) {
  purlin::EventPromise promise("bench");
  promise.SetReady();
  return Each(count, [event = promise.event()](std::uint64_t& calls) { calls += ToTsl(event).IsAvailable() ? 1 : 0; });
}

constexpr Op kOps[] = {
    {"crossing: tsl value, 1 waiter", "purlin", 5000, &ValueToEvent, kOneThread},
    {"crossing: tsl value, 1 waiter", "tsl::AsyncValue, no crossing", 5000, &ValueInTsl, kOneThread},
    {"crossing: event, 1 waiter in tsl", "purlin", 5000, &EventToValue, kOneThread},
    {"crossing: event, 1 waiter in tsl", "purlin::Event, no crossing", 5000, &EventInPurlin, kOneThread},
    {"crossing: tsl future, 1 waiter", "purlin", 5000, &FutureFromTsl, kOneThread},
    {"crossing: tsl future, 1 waiter", "tsl::Future, no crossing", 5000, &FutureInTsl, kOneThread},
    {"crossing: future, 1 waiter in tsl", "purlin", 5000, &FutureToTsl, kOneThread},
    {"crossing: tsl value that is ready", "purlin", 100000, &ReadyValueToEvent, kOneThread},
    {"crossing: event that is ready, to tsl", "purlin", 10000, &ReadyEventToValue, kOneThread},
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Op* bench_ops(std::size_t* count) {
  *count = sizeof(kOps) / sizeof(kOps[0]);
  return kOps;
}
