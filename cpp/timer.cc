#include "purlin/timer.h"

#include <utility>

#include "cpp/internal/deadline.h"
#include "purlin-bridge/src/timer.rs.h"

namespace purlin {
inline namespace v0 {

Timer Timer::At(std::chrono::steady_clock::time_point time, Label label) noexcept {
  return Timer(ffi::timer_new(internal::NanosecondsUntil(time), label.c_str()));
}

Timer Timer::After(std::chrono::nanoseconds delay, Label label) noexcept {
  return Timer(ffi::timer_new(delay.count(), label.c_str()));
}

Event Timer::event() const noexcept { return rep_ == nullptr ? Event::Ready() : Event::Adopt(ffi::timer_event(*rep_)); }

bool Timer::Cancel() noexcept {
  internal::TimerRep* rep = std::exchange(rep_, nullptr);
  return rep != nullptr && ffi::timer_cancel(rep);
}

void Timer::Detach() noexcept {
  if (internal::TimerRep* rep = std::exchange(rep_, nullptr)) ffi::timer_detach(rep);
}

Event WithDeadline(const Event& event, std::chrono::steady_clock::time_point deadline) noexcept {
  return Event::Adopt(ffi::event_with_deadline(event.header(), internal::NanosecondsUntil(deadline)));
}

Event WithTimeout(const Event& event, std::chrono::nanoseconds timeout) noexcept {
  return Event::Adopt(ffi::event_with_deadline(event.header(), timeout.count()));
}

}  // namespace v0
}  // namespace purlin
