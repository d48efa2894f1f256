// Purlin: events that happen at a time, and deadlines on events.
//
// ```cpp
// purlin::EventPromise promise("answer");
// const purlin::Event answer = purlin::WithTimeout(promise.event(), std::chrono::seconds(5));
// purlin::Timer reminder = purlin::Timer::After(std::chrono::seconds(1), "reminder");
// reminder.event().OnReady([](const purlin::Status& status) {
//   if (status.ok()) { /* a second has passed; kCancelled if the timer was destroyed before */ }
// });
// promise.SetReady();
// return answer.Wait();
// ```
//
// The clock is monotonic (std::chrono::steady_clock). One thread serves all timers of the process: it starts with the
// first, sleeps until the next one is due, and ends when there has been none for a while. Waiters of these events run
// on it and delay other timers if they take long. A waiter that waits for an event there delays no timer: another
// thread takes over. If the system refuses that thread, timers go on inside the wait, at most 16 deep; beyond that
// Event::Wait returns kResourceExhausted, unless its event is guarding (event.h): such a wait goes on, to 256 deep. In
// a child made by fork() the timers of the parent do not happen, and their events have failed (event.h); new ones
// happen.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_TIMER_H_
#define PURLIN_TIMER_H_

#include <chrono>
#include <utility>

#include "purlin/event.h"
#include "purlin/export.h"
#include "purlin/internal/handle.h"
#include "purlin/label.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

namespace internal {
struct TimerRep;
}  // namespace internal

/// Owns an event that happens at a time. Destroying it cancels the event. Move-only, one word.
class [[nodiscard]] Timer final : public internal::Handle<Timer, internal::TimerRep> {
 public:
  /// A timer whose event happens at `time`, or soon if that has passed. Never blocks. `label` (static storage) is the
  /// event's. The event fails with kCancelled when the timer is cancelled, and with kResourceExhausted if the system
  /// refused the timers' thread.
  PURLIN_API static Timer At(std::chrono::steady_clock::time_point time, Label label = Label("timer")) noexcept;
  /// A timer whose event happens `delay` from now (negative counts as zero). See At.
  PURLIN_API static Timer After(std::chrono::nanoseconds delay, Label label = Label("timer")) noexcept;

  /// Leaves `other` empty: its event() is Ready() and its Cancel() returns false.
  Timer(Timer&& other) noexcept = default;
  /// Cancels the timer that was here.
  Timer& operator=(Timer&& other) noexcept = default;
  /// As Cancel().
  ~Timer() { static_cast<void>(Cancel()); }

  /// Happens when the time comes.
  PURLIN_API Event event() const noexcept;
  /// The event fails with kCancelled, and its waiters run on this thread before this returns. False if it was too late.
  /// The timer is empty afterwards.
  PURLIN_API bool Cancel() noexcept;
  /// Lets the timer run without an owner. The timer is empty afterwards.
  PURLIN_API void Detach() noexcept;

 private:
  using Handle::Handle;
};

/// An event that completes as `event` does, or fails at `deadline` with kDeadlineExceeded, naming `event`, which stays
/// pending: the work goes on. `event` itself if it is terminal. kResourceExhausted: the system refused the timers'
/// thread. Waiters run on the thread that completes `event`, or on the timers' thread. Never blocks.
PURLIN_API Event WithDeadline(const Event& event, std::chrono::steady_clock::time_point deadline) noexcept;

/// WithDeadline, `timeout` from now (negative counts as zero).
PURLIN_API Event WithTimeout(const Event& event, std::chrono::nanoseconds timeout) noexcept;

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_TIMER_H_
