// tsl::AsyncValue and tsl::Future, of the wheel of tensorflow-cpu.
#include <memory>

#include "absl/types/span.h"
#include "event_rows.h"
#include "peers/tsl.h"
#include "xla/tsl/concurrency/async_value.h"
#include "xla/tsl/concurrency/async_value_ref.h"
#include "xla/tsl/concurrency/future.h"

namespace {

struct AsyncValue {
  using Value = tsl::AsyncValueRef<int>;
  using Ref = tsl::AsyncValueRef<int>;
  static constexpr bool kMap = true;
  static constexpr bool kAll = true;
  static Value Make() { return tsl::MakeUnconstructedAsyncValueRef<int>(); }
  static Ref RefOf(const Value& value) { return value.CopyRef(); }
  static void Set(Value& value) { value.emplace(42); }
  template <typename F>
  static void Then(const Ref& ref, F&& f) {
    ref.AndThen(std::forward<F>(f));
  }
  static bool IsReady(const Ref& ref) { return ref.IsAvailable(); }
  static void Wait(const Ref& ref) { tsl::BlockUntilReady(ref.GetAsyncValue()); }
  static Ref Map(const Ref& ref) {
    return ref.AsPtr().Map([](int value) { return value + 1; });
  }
  template <typename F>
  static void AllThen(const Ref* refs, std::size_t count, F&& f) {
    tsl::RunWhenReady(absl::MakeConstSpan(refs, count), std::forward<F>(f));
  }
};

struct Future {
  struct Value {
    tsl::Promise<int> promise;
    tsl::Future<int> future;
  };
  using Ref = tsl::Future<int>;
  static constexpr bool kMap = true;
  static constexpr bool kAll = false;
  static Value Make() {
    auto [promise, future] = tsl::MakePromise<int>();
    return {std::move(promise), std::move(future)};
  }
  static Ref RefOf(const Value& value) { return value.future; }
  static void Set(Value& value) { value.promise.Set(42); }
  template <typename F>
  static void Then(const Ref& ref, F&& f) {
    ref.OnReady([f = std::forward<F>(f)](const absl::StatusOr<int>&) mutable { f(); });
  }
  static bool IsReady(const Ref& ref) { return ref.IsReady(); }
  static void Wait(const Ref& ref) { static_cast<void>(ref.Await()); }
  static Ref Map(const Ref& ref) {
    return ref.Map([](int value) { return value + 1; });
  }
};

}  // namespace

std::vector<Op> TslEventOps() {
  std::vector<Op> ops = EventRows<AsyncValue>::Table("tsl::AsyncValue", "");
  for (const Op& op : EventRows<Future>::Table("tsl::Future", "future: ")) ops.push_back(op);
  return ops;
}
