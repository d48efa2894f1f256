// Purlin: why nothing happens.
//
//   std::cerr << purlin::DumpStalls();                                    // now, from anywhere, a debugger too
//   purlin::StatusOr<purlin::Watchdog> watchdog = purlin::Watchdog::Start({std::chrono::seconds(30)});
//
// A report names each pending event with its label, place, age and user context, who owes it, and who waits for it;
// each thread that sleeps on an event, with the tasks it runs; what each pool and queue is doing; and each cycle of
// waits as a sentence. Of each event it says whether a watchdog can poison it, and why not. It needs the cooperation of
// nobody who is stuck. Nothing is recorded for it beforehand but what events carry anyway. Not seen: events in the
// caller's own storage. The owner of an event is known for what tasks compute (MakeFutureOn, Map on an executor), for
// joins and forwards; of others the promise's label and place are given.
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
/// are upper bounds. Takes locks of Purlin for moments; runs no code of yours, but for user contexts' origins. Memory
/// that its last owner drops while the report reads it is freed a moment later, by a thread of the report's.
PURLIN_API std::string DumpStalls(std::chrono::nanoseconds older_than = std::chrono::nanoseconds(0));

/// What a watchdog does about a stall, after it has been reported.
enum class WatchdogAction : int {
  /// Nothing.
  kReport = 0,
  /// Where a thread sleeps on an event that is too old, the promises of yours that the event waits for, itself one
  /// perhaps, fail with kDeadlineExceeded, if they are too old themselves; completing them later is too late, and says
  /// so. Promises of yours are EventPromise, Promise, and values that were made unconstructed, constructed or
  /// indirect. Nothing else is poisoned, because it stands for what goes on: what tasks owe (but where tasks wait for
  /// what they owe each other, one of the waits ends with kDeadlineExceeded, naming the cycle, and its event stays
  /// pending), copies, loops, shutdowns, what EventPromise::Guarding() and MakeGuardingPromise() made, and what memory
  /// is kept until (RawBuffer::RetainUntil, UsageHold::ReleaseAfter, the ready event of Buffer::FromRaw).
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
  /// Called with the report, on the watchdog's thread; without one, the report goes to stderr. What it throws is
  /// reported and swallowed. It may end watchdogs, start others and call DumpStalls().
  std::function<void(std::string_view report)> sink = nullptr;
};

/// A thread that looks for stalls until this is destroyed, which blocks until the thread has ended; not in a sink, its
/// own or another watchdog's: there the thread ends behind, once its own sink has returned. Each event is reported
/// once, within a quarter of `older_than` of becoming too old, and once more if a cycle closes later. Move-only.
class [[nodiscard]] Watchdog final : public internal::Handle<Watchdog, internal::WatchdogRep> {
 public:
  /// Starts the thread. kInvalidArgument: `older_than` is less than 10 ms, or there is no such action.
  /// kResourceExhausted: the system refused the thread. The parameter is not for users: it keeps code with and without
  /// exceptions apart.
  template <typename Mode = internal::WithExceptions>
  static StatusOr<Watchdog> Start(WatchdogOptions options) {
    if (options.sink) {
      // Here, where the user's code is compiled: the library knows no exceptions.
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
