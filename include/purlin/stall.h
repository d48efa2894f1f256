// Purlin: reports of what is pending, for programs that make no progress.
//
// ```cpp
// #include <iostream>
//
// purlin::WatchdogOptions options;
// options.older_than = std::chrono::seconds(30);
// purlin::StatusOr<purlin::Watchdog> watchdog = purlin::Watchdog::Start(options);  // reports to stderr
// if (!watchdog.ok()) return watchdog.status();
// std::cerr << purlin::DumpStalls();  // a report now, on any thread, also called by a debugger
// ```
//
// A report names each pending event with its label, place, age and user context, the owner that has to complete it, and
// what waits for it; each thread that sleeps on an event, with the tasks that it runs; the state of each pool and
// queue; and each cycle of waits as a sentence. For each event it says whether a watchdog can poison it, and if not,
// why. It needs no cooperation of the threads that are stuck. Nothing is recorded for it beforehand but what events
// carry anyway. Events in the caller's own storage are not shown. The owner of an event is known for results of tasks
// (MakeFutureOn, Map on an executor), for joins and for forwards; of others the promise's label and place are shown.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_STALL_H_
#define PURLIN_STALL_H_

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "purlin/export.h"
#include "purlin/internal/guard.h"
#include "purlin/internal/handle.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

namespace internal {
struct WatchdogRep;
}  // namespace internal

/// A report of events that have been pending for at least `older_than`, and of all threads that sleep on an event. Ages
/// are upper bounds. Takes locks of Purlin for moments; runs no code of the user's, except origins of user contexts.
/// Memory whose last owner drops it while the report reads it is freed a moment later, by a thread that the report
/// starts.
PURLIN_API std::string DumpStalls(std::chrono::nanoseconds older_than = std::chrono::nanoseconds(0));

/// What a watchdog does about a stall, after it has been reported.
enum class WatchdogAction : int {
  /// Nothing.
  kReport = 0,
  /// If a thread sleeps on an event that is too old, the user's promises that the event waits for (perhaps its own)
  /// fail with kDeadlineExceeded if they are too old themselves; a later set returns false. The user's promises are
  /// EventPromise, Promise, and values that were made unconstructed, constructed or indirect. Nothing else is poisoned,
  /// because it stands for work in progress: results of tasks, copies, loops, shutdowns, events of
  /// EventPromise::Guarding() and MakeGuardingPromise(), and events until which memory is kept (RawBuffer::RetainUntil,
  /// UsageHold::ReleaseAfter, the ready event of Buffer::FromRaw). Only where tasks wait for each other's results, one
  /// of the waits ends with kDeadlineExceeded, naming the cycle, and its event stays pending.
  kPoison = 1,
  /// The process ends by SIGABRT.
  kAbort = 2,
};

/// How to watch.
struct WatchdogOptions {
  /// How long an event may be pending; at least 10 ms.
  std::chrono::nanoseconds older_than = std::chrono::seconds(10);
  /// What to do then.
  WatchdogAction action = WatchdogAction::kReport;
  /// Called with the report, on the watchdog's thread; without one, the report goes to stderr. An exception from it is
  /// reported and swallowed. It may destroy watchdogs, start others and call DumpStalls().
  std::function<void(std::string_view report)> sink = nullptr;
};

/// A thread that looks for stalls until this is destroyed, which blocks until the thread has ended. A watchdog that is
/// destroyed in a sink, its own or another watchdog's, does not block; its thread ends once its own sink has returned.
/// Each event is reported once, within a quarter of `older_than` of becoming too old, and once more if a cycle closes
/// later. Move-only.
class [[nodiscard]] Watchdog final : public internal::Handle<Watchdog, internal::WatchdogRep> {
 public:
  /// Starts the thread. kInvalidArgument: `older_than` is less than 10 ms, or there is no such action.
  /// kResourceExhausted: the system refused the thread. Do not pass `Mode`: it keeps code with and without exceptions
  /// apart.
  template <typename Mode = internal::WithExceptions>
  static StatusOr<Watchdog> Start(WatchdogOptions options) {
    if (options.sink) {
      // Inline, to be compiled with the user's code: the library has no exceptions.
      options.sink = [sink = std::move(options.sink)](std::string_view report) {
        static_cast<void>(internal::GuardedOk("Watchdog sink", [&] { sink(report); }, Mode()));
      };
    }
    return StartGuarded(std::move(options));
  }

  /// Leaves `other` without a thread.
  Watchdog(Watchdog&& other) noexcept = default;
  /// Stops what was here.
  Watchdog& operator=(Watchdog&& other) noexcept = default;
  /// Stops.
  PURLIN_API ~Watchdog();

 private:
  using Handle::Handle;

  PURLIN_API static StatusOr<Watchdog> StartGuarded(WatchdogOptions options);
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_STALL_H_
