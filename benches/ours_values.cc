// Purlin's columns of the rows about events with a value in them: AsyncValueRef<int> and Future<int>, as far as this
// tree has them. They stand beside tsl's of the same names.
#include "event_rows.h"
#include "ours.h"

#if __has_include("purlin/async_value.h") && __has_include("purlin/run_when_ready.h")
#include "purlin/async_value.h"
#include "purlin/run_when_ready.h"

namespace {

struct AsyncValue {
  using Value = purlin::AsyncValueRef<int>;
  using Ref = purlin::AsyncValueRef<int>;
  static constexpr bool kMap = true;
  static constexpr bool kAll = true;
  static Value Make() { return purlin::MakeUnconstructedAsyncValueRef<int>("bench"); }
  static Ref RefOf(const Value& value) { return value.CopyRef(); }
  static void Set(Value& value) { value.emplace(42); }
  template <typename F>
  static void Then(const Ref& ref, F&& f) {
    ref.AndThen(std::forward<F>(f));
  }
  static bool IsReady(const Ref& ref) { return ref.IsAvailable(); }
  static void Wait(const Ref& ref) { ref.Wait().IgnoreError(); }
  static Ref Map(const Ref& ref) {
    return ref.Map([](int value) { return value + 1; }, "bench");
  }
  template <typename F>
  static void AllThen(const Ref* refs, std::size_t count, F&& f) {
    purlin::RunWhenReady(purlin::Span<const Ref>(refs, count), std::forward<F>(f));
  }
};

}  // namespace

OpList ValueOps() {
  static const std::vector<Op> ops = EventRows<AsyncValue>::Table("purlin", "");
  return {ops.data(), ops.size()};
}
#else
OpList ValueOps() { return {nullptr, 0}; }
#endif

#if __has_include("purlin/future.h")
#include "purlin/future.h"
#include "purlin/promise.h"

namespace {

struct Future {
  struct Value {
    purlin::Promise<int> promise;
    purlin::Future<int> future;
  };
  using Ref = purlin::Future<int>;
  static constexpr bool kMap = true;
  static constexpr bool kAll = false;
  static Value Make() {
    auto [promise, future] = purlin::MakePromise<int>("bench");
    return {std::move(promise), std::move(future)};
  }
  static Ref RefOf(const Value& value) { return value.future; }
  static void Set(Value& value) { value.promise.Set(42); }
  template <typename F>
  static void Then(const Ref& ref, F&& f) {
    ref.OnReady([f = std::forward<F>(f)](purlin::StatusOr<const int*>) mutable { f(); });
  }
  static bool IsReady(const Ref& ref) { return ref.IsReady(); }
  static void Wait(const Ref& ref) { static_cast<void>(ref.Await()); }
  static Ref Map(const Ref& ref) {
    return ref.Map([](int value) { return value + 1; });
  }
};

}  // namespace

OpList FutureOps() {
  static const std::vector<Op> ops = EventRows<Future>::Table("purlin", "future: ");
  return {ops.data(), ops.size()};
}
#else
OpList FutureOps() { return {nullptr, 0}; }
#endif
