#include "purlin/event.h"

#include "cpp/internal/abi_rust.h"

namespace purlin {
inline namespace v0 {
namespace internal {

EventHeader* EventNew(const char* label, SourceLocation location) noexcept {
  return purlin_event_new(label, ToRust(location));
}

EventHeader* EventNewError(const StatusRep* error, SourceLocation location) noexcept {
  return purlin_event_new_error(error, ToRust(location));
}

void EventFree(EventHeader* event) noexcept { event->vtable->free(event); }

bool EventSetReady(EventHeader* event) noexcept { return purlin_event_set_ready(event); }

bool EventSetError(EventHeader* event, const StatusRep* error) noexcept { return purlin_event_set_error(event, error); }

void EventAbandon(EventHeader* event) noexcept { purlin_event_abandon(event); }

const StatusRep* EventWait(EventHeader* event, std::int64_t timeout_ns) noexcept {
  return purlin_event_wait(event, timeout_ns);
}

EventHeader* EventWhenAll(EventHeader* const* events, std::size_t count) noexcept {
  return purlin_event_when_all(events, count);
}

const char* EventLabel(const EventHeader* event) noexcept { return purlin_event_label(event); }

void DeferWaiter(EventHeader* event, Waiter* waiter) noexcept { purlin_event_defer_waiter(event, waiter); }

void RunDeferredWaiters() noexcept { purlin_event_run_deferred_waiters(); }

}  // namespace internal
}  // namespace v0
}  // namespace purlin
