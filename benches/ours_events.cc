// purlin::Event in the rows about events. It is the column "purlin" only where AsyncValueRef, which carries a value as
// tsl's does (ours_values.cc), is not there yet.
#include "event_rows.h"
#include "ours.h"
#include "purlin/event.h"

namespace {

struct PlainEvent {
  using Value = purlin::EventPromise;
  using Ref = purlin::Event;
  static constexpr bool kMap = true;
  static constexpr bool kAll = true;
  static Value Make() { return purlin::EventPromise("bench"); }
  static Ref RefOf(const Value& value) { return value.event(); }
  static void Set(Value& value) { value.SetReady(); }
  template <typename F>
  static void Then(const Ref& ref, F&& f) {
    ref.OnReady(std::forward<F>(f));
  }
  static bool IsReady(const Ref& ref) { return ref.IsReady(); }
  static void Wait(const Ref& ref) { ref.Wait().IgnoreError(); }
  static Ref Map(const Ref& ref) {
    purlin::EventPromise next("bench");
    Ref mapped = next.event();
    ref.OnReady([next = std::move(next)]() mutable { next.SetReady(); });
    return mapped;
  }
  template <typename F>
  static void AllThen(const Ref* refs, std::size_t count, F&& f) {
    purlin::WhenAll({refs, count}).OnReady(std::forward<F>(f));
  }
};

}  // namespace

OpList EventOps() {
  static const std::vector<Op> ops = EventRows<PlainEvent>::Table(
#if __has_include("purlin/async_value.h") && __has_include("purlin/run_when_ready.h")
      "purlin::Event",
#else
      "purlin",
#endif
      "");
  return {ops.data(), ops.size()};
}
