#include "purlin/event.h"

#include "cpp/internal/functions.h"

namespace purlin {
inline namespace v0 {
namespace internal {

ThreadState* ThreadStateAddress() noexcept { return purlin_thread_state(); }

void* AllocateBlockSlowly(BlockClass block_class) noexcept {
  return purlin_block_allocate(static_cast<std::uint32_t>(block_class));
}

void FreeBlockSlowly(BlockClass block_class, void* block) noexcept {
  purlin_block_free(static_cast<std::uint32_t>(block_class), block);
}

void* AllocateLargeCell(std::size_t size_bytes, std::size_t align_bytes) noexcept {
  return purlin_large_cell_allocate(size_bytes, align_bytes);
}

void FreeLargeCell(void* cell, std::size_t size_bytes, std::size_t align_bytes) noexcept {
  purlin_large_cell_free(cell, size_bytes, align_bytes);
}

const void* EnterLock() noexcept { return purlin_lock_enter(); }

void LeaveLock(const void* place) noexcept { purlin_lock_leave(place); }

EventHeader* EventNewError(const StatusRep* error, SourceLocation location) noexcept {
  return purlin_event_new_error(error, location);
}

EventHeader* EventNewWithStream(const char* label, SourceLocation location, std::uintptr_t stream,
                                std::uint64_t sequence_number) noexcept {
  return purlin_event_new_with_stream(label, location, stream, sequence_number);
}

bool EventDefinitionStream(const EventHeader* event, std::uintptr_t* stream, std::uint64_t* sequence_number) noexcept {
  return purlin_event_definition_stream(event, stream, sequence_number);
}

void EventFinish(EventHeader* event, std::uintptr_t word) noexcept { purlin_event_finish(event, word); }

void EventForward(EventHeader* event, EventHeader* source) noexcept { purlin_event_forward(event, source); }

const StatusRep* EventFollow(EventHeader* event, EventHeader* source) noexcept {
  return purlin_event_follow(event, source);
}

bool EventMayFree(EventHeader* event) noexcept { return purlin_event_may_free(event); }

void* EventOwesSeveral(EventHeader* event, EventHeader* const* sources, std::size_t count) noexcept {
  return purlin_event_owes_several(event, sources, count);
}

void EventArrived(void* several, std::size_t index) noexcept { purlin_event_arrived(several, index); }

void EventsArrived(void* several) noexcept { purlin_events_arrived(several); }

void EventAbandon(EventHeader* event) noexcept { purlin_event_abandon(event); }

const StatusRep* EventWait(EventHeader* event, std::int64_t timeout_ns) noexcept {
  return purlin_event_wait(event, timeout_ns);
}

EventHeader* EventJoin(EventHeader* const* events, std::size_t count, std::uint32_t policy, JoinRule rule,
                       SourceLocation location) noexcept {
  return purlin_event_join(events, count, policy, static_cast<std::uint32_t>(rule), location);
}

const StatusRep* JoinError(std::uint32_t policy, std::size_t total, std::size_t failed, const StatusRep* const* errors,
                           const std::size_t* indices, std::size_t count) noexcept {
  return purlin_join_error(policy, total, failed, errors, indices, count);
}

void DeferWaiter(EventHeader* event, Waiter* waiter) noexcept { purlin_event_defer_waiter(event, waiter); }

void RunDeferredWaiters() noexcept { purlin_event_run_deferred_waiters(); }

}  // namespace internal
}  // namespace v0
}  // namespace purlin
