// Purlin: the memory that C++ and Rust both touch. Layout is asserted here and in rust/core/src/event/abi.rs and
// rust/core/src/exec/task.rs; tests/cpp/layout_test.cc prints and compares the offsets of both sides.
// Not for users: everything here may change with kAbiVersion.
#ifndef PURLIN_INTERNAL_ABI_H_
#define PURLIN_INTERNAL_ABI_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "purlin/export.h"
#include "purlin/source_location.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// An error: code, message, payloads, place. Made, shared and freed by Rust; C++ only holds pointers to it.
struct StatusRep;
struct EventHeader;

/// What an event's kind knows to do; filled by Rust. Readers check `abi_size` before they use a later slot.
struct EventVTable {
  std::size_t abi_size;
  /// Frees the event when its last reference is gone.
  void (*free)(EventHeader* event) noexcept;
};

/// A node in an event's list of waiters, embedded as the first member of whatever the attacher allocated.
struct Waiter {
  Waiter* next;
  /// Called exactly once, under no lock, after `event` became terminal. Owns and frees the node.
  void (*invoke)(Waiter* self, const EventHeader* event) noexcept;
};

/// The event cell. `word` is the state machine: bits 0-1 state, bit 2 "a thread is parked", the rest the newest waiter.
struct EventHeader {
  std::atomic<std::uintptr_t> word;
  std::atomic<std::uint32_t> refs;
  std::uint16_t flags;
  std::uint16_t payload_offset;
  const EventVTable* vtable;
  /// Owned; written once before the state becomes kError, never after.
  const StatusRep* error;
};

/// States in `EventHeader::word & kStateMask`. Bit 1 set means terminal; terminal state minus one is PJRT's number.
constexpr std::uintptr_t kStatePending = 0;
constexpr std::uintptr_t kStateClaimed = 1;
constexpr std::uintptr_t kStateReady = 2;
constexpr std::uintptr_t kStateError = 3;
constexpr std::uintptr_t kStateMask = 3;
constexpr std::uintptr_t kTerminalBit = 2;
constexpr std::uintptr_t kParkedBit = 4;
constexpr std::uintptr_t kWaiterMask = ~static_cast<std::uintptr_t>(7);
/// A reference count that reaches this stays there: the event is never freed, and nothing aborts.
constexpr std::uint32_t kRefsSaturated = 0x8000'0000U;

/// What `TaskNode::invoke` is asked to do. Either way the closure is destroyed and the node is freed.
enum class TaskOp : std::uint32_t { kDrop = 0, kRun = 1 };

/// A closure on its way to a worker. Closures of up to `kInlineBytes` live in `storage`, others behind a pointer there.
struct TaskNode {
  static constexpr std::size_t kInlineBytes = 40;
  TaskNode* next;
  void (*invoke)(TaskNode* self, TaskOp op) noexcept;
  /// Static storage; ends with a NUL; never null.
  const char* label;
  alignas(8) unsigned char storage[kInlineBytes];
};

static_assert(std::atomic<std::uintptr_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free,
              "Purlin's events need lock-free words");
static_assert(sizeof(void*) == 8, "Purlin's ABI is written for 64-bit machines");
static_assert(sizeof(EventHeader) == 32 && alignof(EventHeader) == 8, "EventHeader ABI");
static_assert(offsetof(EventHeader, word) == 0 && offsetof(EventHeader, refs) == 8 &&
                  offsetof(EventHeader, flags) == 12 && offsetof(EventHeader, payload_offset) == 14 &&
                  offsetof(EventHeader, vtable) == 16 && offsetof(EventHeader, error) == 24,
              "EventHeader ABI");
static_assert(sizeof(Waiter) == 16 && offsetof(Waiter, next) == 0 && offsetof(Waiter, invoke) == 8, "Waiter ABI");
static_assert(sizeof(TaskNode) == 64 && offsetof(TaskNode, next) == 0 && offsetof(TaskNode, invoke) == 8 &&
                  offsetof(TaskNode, label) == 16 && offsetof(TaskNode, storage) == 24,
              "TaskNode ABI");

/// A pending event with one reference (the promise's). `label` has static storage and ends with a NUL.
PURLIN_API EventHeader* EventNew(const char* label, SourceLocation location) noexcept;
/// An event that is already in error; takes over `error`.
PURLIN_API EventHeader* EventNewError(const StatusRep* error, SourceLocation location) noexcept;
/// Frees an event whose last reference was dropped.
PURLIN_API void EventFree(EventHeader* event) noexcept;
/// True when this call completed the event; runs its waiters.
PURLIN_API bool EventSetReady(EventHeader* event) noexcept;
/// True when this call completed the event; takes over `error` either way; runs the waiters.
PURLIN_API bool EventSetError(EventHeader* event, const StatusRep* error) noexcept;
/// Completes the event with kInternal, naming it, if it is pending.
PURLIN_API void EventAbandon(EventHeader* event) noexcept;
/// Blocks until terminal or `timeout_ns` passed (negative: forever); null or an owned error.
PURLIN_API const StatusRep* EventWait(EventHeader* event, std::int64_t timeout_ns) noexcept;
/// A new event, owned, that completes after all of `events` (null entries are ready).
PURLIN_API EventHeader* EventWhenAll(EventHeader* const* events, std::size_t count) noexcept;
/// The label and place that the event was made with.
PURLIN_API const char* EventLabel(const EventHeader* event) noexcept;
/// Queues a waiter of a terminal event until this thread's stack has unwound to its outermost waiter.
PURLIN_API void DeferWaiter(EventHeader* event, Waiter* waiter) noexcept;
/// Runs what `DeferWaiter` queued on this thread.
PURLIN_API void RunDeferredWaiters() noexcept;

/// A node for `TaskNode`, uninitialised, from a cache of the calling thread.
PURLIN_API TaskNode* TaskAllocate() noexcept;
/// Gives a node back to the cache of the calling thread.
PURLIN_API void TaskFree(TaskNode* node) noexcept;
/// Reports a C++ exception that escaped from a closure. `what` may be null.
PURLIN_API void ReportException(const char* place, const char* what) noexcept;
/// Rust's view of the structs above, as `Struct.field=offset` and `Struct.size=bytes` lines; for the test that
/// compares.
PURLIN_API std::string RustAbiLayout();

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_ABI_H_
