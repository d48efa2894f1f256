// Purlin: making, completing and freeing event cells without a call. Not for users; see event.h and async_value.h.
//
// The second implementation of the protocol that rust/async/src/event/state.rs explains, in the same order, kept to
// what is worth being inline.
#ifndef PURLIN_INTERNAL_CELL_H_
#define PURLIN_INTERNAL_CELL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "purlin/internal/abi.h"
#include "purlin/internal/thread_state.h"
#include "purlin/internal/user_context.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// Writes a pending cell with `refs` references, by the thread whose state `here` is. Stall reports may look at the
/// memory already, so the word, which says that the rest means something, comes last.
inline __attribute__((always_inline)) void WriteCell(const ThreadState& here, EventCell* cell, std::uint32_t refs,
                                                     const EventVTable* vtable, std::uint16_t payload_offset,
                                                     std::uint16_t flags, Label label,
                                                     SourceLocation location) noexcept {
  EventHeader& header = cell->header;
  header.refs.store(refs, std::memory_order_relaxed);
  header.flags.store(flags, std::memory_order_relaxed);
  header.payload_offset = payload_offset;
  header.vtable = vtable;
  header.error.store(nullptr, std::memory_order_relaxed);
  cell->label.store(label.c_str(), std::memory_order_relaxed);
  cell->file.store(location.file(), std::memory_order_relaxed);
  cell->line.store(location.line(), std::memory_order_relaxed);
  cell->born_ms.store(here.now_ms->load(std::memory_order_relaxed), std::memory_order_relaxed);
  cell->context.store(here.context == nullptr ? 0 : *here.context, std::memory_order_relaxed);
  header.word.store(kStatePending, std::memory_order_release);
}

/// As above, for the calling thread.
inline void WriteCell(EventCell* cell, std::uint32_t refs, const EventVTable* vtable, std::uint16_t payload_offset,
                      std::uint16_t flags, Label label, SourceLocation location) noexcept {
  WriteCell(ThisThread(), cell, refs, vtable, payload_offset, flags, label, location);
}

/// The class of a cell of that size; false if it fits none.
constexpr bool FitsBlock(std::size_t size_bytes, std::size_t align_bytes) noexcept {
  return size_bytes <= 128 && align_bytes <= 64;
}
/// For sizes that fit.
constexpr BlockClass CellClass(std::size_t size_bytes) noexcept {
  return size_bytes <= sizeof(EventCell) ? BlockClass::kCell : BlockClass::kWideCell;
}

/// A pending event with one reference. `size_bytes` and `align_bytes` are those of an EventCell and the payload at
/// `payload_offset` behind it; constants, so that the choice is made by the compiler.
inline __attribute__((always_inline)) EventHeader* NewCell(std::size_t size_bytes, std::size_t align_bytes,
                                                           const EventVTable* vtable, std::uint16_t payload_offset,
                                                           std::uint16_t flags, Label label,
                                                           SourceLocation location) noexcept {
  ThreadState& here = ThisThread();
  const bool is_block = FitsBlock(size_bytes, align_bytes);
  void* memory = is_block ? AllocateBlock(here, CellClass(size_bytes)) : AllocateLargeCell(size_bytes, align_bytes);
  auto* cell = static_cast<EventCell*>(memory);
  const auto far = static_cast<std::uint16_t>(is_block ? 0 : kFar);
  WriteCell(here, cell, 1, vtable, payload_offset, static_cast<std::uint16_t>(flags | far), label, location);
  return &cell->header;
}

/// A pending event in the caller's storage: never freed by counting, unknown to stall reports.
inline void InitCell(EventCell* storage, const EventVTable* vtable, std::uint16_t payload_offset, std::uint16_t flags,
                     Label label, SourceLocation location) noexcept {
  WriteCell(storage, kRefsSaturated, vtable, payload_offset, static_cast<std::uint16_t>(flags | kFar), label, location);
}

/// Drops the error, if the event has one. No other code refers to the event.
inline void DropError(EventHeader* event) noexcept {
  if ((event->word.load(std::memory_order_relaxed) & kStateMask) != kStateError) return;
  static_cast<void>(Status::FromRep(static_cast<const StatusRep*>(event->error.load(std::memory_order_relaxed))));
  event->word.store(kStateReady, std::memory_order_relaxed);
}

/// Frees a cell whose last reference is gone and whose payload is destroyed. Same numbers as in NewCell.
inline void FreeCell(EventHeader* event, std::size_t size_bytes, std::size_t align_bytes) noexcept {
  DropError(event);
  event->word.store(kStateReady, std::memory_order_relaxed);  // A free cell is in a terminal state.
  if (FitsBlock(size_bytes, align_bytes)) return FreeBlock(CellClass(size_bytes), event);
  FreeLargeCell(event, size_bytes, align_bytes);
}

/// The debt of an event that waits for `source`, which is marked.
inline const void* DebtTo(EventHeader* source) noexcept {
  const std::uint16_t flags = source->flags.load(std::memory_order_relaxed);
  if ((flags & kFollowed) == 0) source->flags.fetch_or(kFollowed, std::memory_order_relaxed);
  const std::uintptr_t debt = reinterpret_cast<std::uintptr_t>(source) + (flags & kFar) + kDebtEvent;
  return reinterpret_cast<const void*>(debt);  // NOLINT(performance-no-int-to-ptr)
}

/// Notes that `source` completes `event`, which is new, in a waiter.
inline void BeginDebt(EventHeader* event, EventHeader* source) noexcept {
  event->error.store(DebtTo(source), std::memory_order_relaxed);
}

/// Notes that a task completes `event`, which others may know, and nothing that it waited for.
inline void NoteTask(EventHeader* event, const TaskNode* task) noexcept {
  const auto debt = reinterpret_cast<std::uintptr_t>(task) | kDebtTask;
  const void* known = event->error.load(std::memory_order_relaxed);
  // Never over the error of an event that has failed meanwhile.
  while (known == nullptr || (reinterpret_cast<std::uintptr_t>(known) & kDebtKind) != 0) {
    const void* task_debt = reinterpret_cast<const void*>(debt);  // NOLINT(performance-no-int-to-ptr)
    if (event->error.compare_exchange_weak(known, task_debt, std::memory_order_relaxed)) return;
  }
}

/// Whether an event whose last reference is gone may be freed. A watchdog looks only for these.
inline __attribute__((always_inline)) bool MayFree(EventHeader* event) noexcept {
  constexpr std::uint16_t kRescued = kPoisonable | kFollowed;
  return (event->flags.load(std::memory_order_relaxed) & kRescued) != kRescued || EventMayFree(event);
}

/// Ends an event in the caller's storage, but not while a thread reads it that a chain of debts has led here.
inline void EndCell(EventCell* storage) noexcept {
  if ((storage->header.flags.load(std::memory_order_relaxed) & kFollowed) != 0) {
    static_cast<void>(EventMayFree(&storage->header));
  }
  DropError(&storage->header);
}

/// A count that was saturated stays so.
__attribute__((noinline, cold)) inline void KeepSaturated(EventHeader* event) noexcept {
  event->refs.store(kRefsSaturated, std::memory_order_relaxed);
}

/// One more reference, to what this returns: code that reads it again afterwards reads memory, because counting is a
/// barrier for compilers. Null is the ready event, which is not counted.
inline __attribute__((always_inline)) EventHeader* EventRetain(EventHeader* event) noexcept {
  if (event == nullptr) return event;
  // Relaxed: the caller holds a reference already, so nothing can be freed meanwhile.
  if (event->refs.fetch_add(1, std::memory_order_relaxed) >= kRefsSaturated) KeepSaturated(event);
  return event;
}

/// One reference less; frees the event with the last.
inline void EventRelease(EventHeader* event) noexcept {
  if (event == nullptr) return;
  // Acquire pairs with the releases of the other references; a load, not a fence: TSan sees loads.
  if (event->refs.load(std::memory_order_acquire) != 1) {
    const std::uint32_t before = event->refs.fetch_sub(1, std::memory_order_release);
    if (before != 1) {
      if (before >= kRefsSaturated) KeepSaturated(event);
      return;
    }
    static_cast<void>(event->refs.load(std::memory_order_acquire));
  }
  if (event->vtable == nullptr) {
    if (MayFree(event)) FreeCell(event, sizeof(EventCell), alignof(EventCell));
    return;
  }
  event->vtable->free(event);
}

/// True in the terminal states.
inline bool IsTerminal(const EventHeader* event) noexcept {
  return (event->word.load(std::memory_order_acquire) & kTerminalBit) != 0;
}

/// The error of an event in kStateError.
__attribute__((noinline, cold)) inline Status ErrorInside(const EventHeader* event) noexcept {
  return Status::FromBorrowedRep(static_cast<const StatusRep*>(event->error.load(std::memory_order_relaxed)));
}

/// The error in kStateError, else OK.
inline __attribute__((always_inline)) Status ErrorOf(const EventHeader* event) noexcept {
  if ((event->word.load(std::memory_order_acquire) & kStateMask) != kStateError) return Status();
  return ErrorInside(event);
}

/// A waiter is attached or a thread sleeps.
inline bool HasWaiters(const EventHeader* event) noexcept {
  const std::uintptr_t word = event->word.load(std::memory_order_acquire);
  return (word & kTerminalBit) == 0 && (word & (kWaiterMask | kParkedBit)) != 0;
}

/// Where the payload is.
inline void* PayloadOf(EventHeader* event) noexcept {
  return reinterpret_cast<unsigned char*>(event) + event->payload_offset;
}

/// RunCompletion() where there are waiters or sleepers.
inline void RunWaiters(EventHeader* event, std::uintptr_t word) noexcept {
  auto* newest = reinterpret_cast<Waiter*>(word & kWaiterMask);  // NOLINT(performance-no-int-to-ptr)
  ThreadState& here = ThisThread();
  // A waiter does not run in the context of the thread that completes the event; if there is one, the library puts it
  // aside.
  if ((word & kParkedBit) != 0 || newest->next != nullptr || here.depth >= kMaxInlineDepth || here.context != nullptr) {
    return EventFinish(event, word);
  }
  ++here.depth;
  newest->invoke(newest, event);
  if (--here.depth == 0 && here.deferred != 0) RunDeferredWaiters();
}

/// Called after completing the event: runs its waiters on this thread, and wakes its sleepers. `word` is what was there
/// before.
inline __attribute__((always_inline)) void RunCompletion(EventHeader* event, std::uintptr_t word) noexcept {
  if ((word & (kWaiterMask | kParkedBit)) != 0) RunWaiters(event, word);
}

/// Pending to claimed. True: the caller has won, writes the payload and must publish.
inline bool TryClaim(EventHeader* event) noexcept {
  std::uintptr_t word = event->word.load(std::memory_order_relaxed);
  while ((word & kStateMask) == kStatePending) {
    // Relaxed: nothing is published yet. The list of waiters stays where it is.
    if (event->word.compare_exchange_weak(word, word | kStateClaimed, std::memory_order_relaxed)) return true;
  }
  return false;
}

/// Claimed to ready.
inline void PublishReady(EventHeader* event) noexcept {
  RunCompletion(event, event->word.exchange(kStateReady, std::memory_order_acq_rel));
}

/// The error with the number of the user context in which the event was made, or else of the current one.
inline Status InContextOf(const EventHeader* event, Status error) noexcept {
  // Every header is the first member of a cell.
  std::uint64_t id = reinterpret_cast<const EventCell*>(event)->context.load(std::memory_order_relaxed);
  if (id == 0) {
    const std::uint64_t* current = ThisThread().context;
    if (current == nullptr) return error;
    id = *current;
  }
  return Status::FromRep(AnnotateError(std::move(error).ReleaseRep(), id));
}

/// Claimed to error.
inline void PublishError(EventHeader* event, Status error) noexcept {
  error = InContextOf(event, std::move(error));
  event->error.store(std::move(error).ReleaseRep(), std::memory_order_relaxed);
  RunCompletion(event, event->word.exchange(kStateError, std::memory_order_acq_rel));
}

/// Pending to ready, in one step; false if it was completed before.
inline bool TrySetReady(EventHeader* event) noexcept {
  std::uintptr_t word = event->word.load(std::memory_order_relaxed);
  while ((word & kStateMask) == kStatePending) {
    // Release publishes what this thread did; acquire makes the waiters' nodes readable.
    if (event->word.compare_exchange_weak(word, kStateReady, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      RunCompletion(event, word);
      return true;
    }
  }
  return false;
}

/// Pending to error; false if it was completed before. `error` is not OK.
inline bool TrySetError(EventHeader* event, Status error) noexcept {
  if (!TryClaim(event)) return false;
  PublishError(event, std::move(error));
  return true;
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_CELL_H_
