// Purlin: the memory that C++ and Rust both touch. Layout is asserted here and in
// rust/async/src/{event/abi,task/node}.rs and rust/base/src/{slab/mod,thread_state}.rs; tests/cpp/layout_test.cc prints
// and compares the offsets of both sides. Not for users: everything here may change with kAbiVersion.
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

/// What a kind of event with a payload knows to do. Readers check `abi_size` before they use a later slot. A plain
/// event has none.
struct EventVTable {
  std::size_t abi_size;
  /// Frees the event when its last reference is gone.
  void (*free)(EventHeader* event) noexcept;
  /// Tells the types of payloads apart: equal for equal types.
  const void* payload_type;
};

/// A node in an event's list of waiters, embedded as the first member of the attacher's own struct.
struct Waiter {
  Waiter* next;
  /// Called exactly once, under no lock, after `event` became terminal. Owns and frees the node.
  void (*invoke)(Waiter* self, const EventHeader* event) noexcept;
};

/// The head of every event. `word` is the state machine: bits 0-1 state, bit 2 "a thread is parked", the rest the
/// newest waiter. rust/async/src/event/state.rs has the rules.
struct EventHeader {
  std::atomic<std::uintptr_t> word;
  std::atomic<std::uint32_t> refs;
  /// What the payload is: kPayload...
  std::atomic<std::uint16_t> flags;
  /// Where the payload begins, from the header's address; 0 in a plain event.
  std::uint16_t payload_offset;
  /// Null in a plain event.
  const EventVTable* vtable;
  /// In kStateError the StatusRep, owned. While pending, a debt: see kDebtEvent.
  std::atomic<const void*> error;
};

/// Every event: the header, then what reports say about it, then the payload, if there is one. Stall reports read cells
/// that are in use, so what they read is atomic.
struct EventCell {
  EventHeader header;
  /// Static storage; ends with a NUL.
  std::atomic<const char*> label;
  /// Static storage; ends with a NUL.
  std::atomic<const char*> file;
  std::atomic<std::uint32_t> line;
  /// The coarse clock's time when the event was made.
  std::atomic<std::uint32_t> born_ms;
  /// The number of the user context in which it was made; 0 for none.
  std::atomic<std::uint64_t> context;
};

/// In `EventHeader::flags`: the payload is constructed, whatever the state.
constexpr std::uint16_t kPayloadConstructed = 1;
/// The payload is a pointer to the value and something that keeps the value alive.
constexpr std::uint16_t kPayloadIndirect = 2;
/// The cell's memory may be freed: it is the caller's, or too large for a block. The same bit as kDebtFar.
constexpr std::uint16_t kFar = 4;
/// A promise of the user's owes the event, so a watchdog may make it fail.
constexpr std::uint16_t kPoisonable = 64;
/// Another event has noted that it waits for this one.
constexpr std::uint16_t kFollowed = 128;
/// An error does not destroy the payload.
constexpr std::uint16_t kKeepPayloadOnError = 256;

/// In the low bits of `EventHeader::error` while the event is pending, what completes it, as far as it is known:
/// another event, whose address the rest is, a task, or several events, which the library lists. Compared, and followed
/// by rust/async/src/event/debt.rs, which has the rules.
constexpr std::uintptr_t kDebtEvent = 1;
constexpr std::uintptr_t kDebtTask = 2;
constexpr std::uintptr_t kDebtKind = 3;
/// The other event is kFar.
constexpr std::uintptr_t kDebtFar = 4;

/// A thread's free blocks of one class. rust/base/src/slab/mod.rs has the rules.
struct FreeList {
  void* head;
  std::uint32_t count;
  std::uint32_t limit;
};

/// What blocks are for: waiters and tasks in 64 bytes, cells in 64 and in 128, waiters and tasks in 128.
enum class BlockClass : std::uint32_t { kNode = 0, kCell = 1, kWideCell = 2, kWideNode = 3 };

/// What each thread keeps for itself.
struct ThreadState {
  /// How deep the waiters that run on this thread are nested.
  std::uint32_t depth;
  /// Not 0 when waiters are queued until the nesting ends.
  std::uint32_t deferred;
  /// The current user context, owned; null for none. Its first word is its number.
  const std::uint64_t* context;
  /// The coarse clock, in ms.
  const std::atomic<std::uint32_t>* now_ms;
  FreeList lists[4];
  /// The task that runs on this thread; Rust's.
  const void* running;
};

/// Where a free block holds the address of the next one.
constexpr std::size_t kLinkOffset = 24;

/// States in `EventHeader::word & kStateMask`. Bit 1 set means terminal; terminal state minus one is PJRT's number.
constexpr std::uintptr_t kStatePending = 0;
constexpr std::uintptr_t kStateClaimed = 1;
constexpr std::uintptr_t kStateReady = 2;
constexpr std::uintptr_t kStateError = 3;
constexpr std::uintptr_t kStateMask = 3;
constexpr std::uintptr_t kTerminalBit = 2;
constexpr std::uintptr_t kParkedBit = 4;
constexpr std::uintptr_t kWaiterMask = ~static_cast<std::uintptr_t>(7);
/// How many completions nest on one stack before the next is queued.
constexpr std::uint32_t kMaxInlineDepth = 32;
/// A reference count that reaches this stays there: the event is never freed, and nothing aborts.
constexpr std::uint32_t kRefsSaturated = 0x8000'0000U;

/// What `TaskNode::invoke` is asked to do. Either way the closure is destroyed and the node is freed.
enum class TaskOp : std::uint32_t { kDrop = 0, kRun = 1 };

/// A closure on its way to a worker. Closures of up to `kInlineBytes` live in `storage`; those of up to `kWideBytes`
/// too, in a node that is longer; others behind a pointer there.
struct TaskNode {
  static constexpr std::size_t kInlineBytes = 40;
  static constexpr std::size_t kWideBytes = 104;
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
static_assert(sizeof(EventCell) == 64 && alignof(EventCell) == 8 && offsetof(EventCell, label) == 32 &&
                  offsetof(EventCell, file) == 40 && offsetof(EventCell, line) == 48 &&
                  offsetof(EventCell, born_ms) == 52 && offsetof(EventCell, context) == 56,
              "EventCell ABI");
static_assert(sizeof(EventVTable) == 24 && offsetof(EventVTable, abi_size) == 0 && offsetof(EventVTable, free) == 8 &&
                  offsetof(EventVTable, payload_type) == 16,
              "EventVTable ABI");
static_assert(sizeof(FreeList) == 16 && offsetof(FreeList, head) == 0 && offsetof(FreeList, count) == 8 &&
                  offsetof(FreeList, limit) == 12,
              "FreeList ABI");
static_assert(sizeof(ThreadState) == 96 && offsetof(ThreadState, depth) == 0 && offsetof(ThreadState, deferred) == 4 &&
                  offsetof(ThreadState, context) == 8 && offsetof(ThreadState, now_ms) == 16 &&
                  offsetof(ThreadState, lists) == 24 && offsetof(ThreadState, running) == 88,
              "ThreadState ABI");
static_assert(sizeof(Waiter) == 16 && offsetof(Waiter, next) == 0 && offsetof(Waiter, invoke) == 8, "Waiter ABI");
static_assert(sizeof(TaskNode) == 64 && offsetof(TaskNode, next) == 0 && offsetof(TaskNode, invoke) == 8 &&
                  offsetof(TaskNode, label) == 16 && offsetof(TaskNode, storage) == 24,
              "TaskNode ABI");

/// This thread's state, valid on this thread until it ends.
PURLIN_API ThreadState* ThreadStateAddress() noexcept;
/// A block when the thread's list is empty.
PURLIN_API void* AllocateBlockSlowly(BlockClass block_class) noexcept;
/// Takes a block for which the thread's list has no room.
PURLIN_API void FreeBlockSlowly(BlockClass block_class, void* block) noexcept;
/// Memory for a cell that fits no class; its word says that it is free.
PURLIN_API void* AllocateLargeCell(std::size_t size_bytes, std::size_t align_bytes) noexcept;
/// Gives it back; same numbers.
PURLIN_API void FreeLargeCell(void* cell, std::size_t size_bytes, std::size_t align_bytes) noexcept;

/// From here until LeaveLock(what this answers), on this thread, a fork() by another thread waits: around locks that
/// are not Purlin's own. For a few instructions that call no other code. Waits while another thread forks.
PURLIN_API const void* EnterLock() noexcept;
/// See EnterLock().
PURLIN_API void LeaveLock(const void* place) noexcept;

/// An event that is already in error; takes over `error`.
PURLIN_API EventHeader* EventNewError(const StatusRep* error, SourceLocation location) noexcept;
/// A pending event of a stream.
PURLIN_API EventHeader* EventNewWithStream(const char* label, SourceLocation location, std::uintptr_t stream,
                                           std::uint64_t sequence_number) noexcept;
/// False if the event belongs to no stream.
PURLIN_API bool EventDefinitionStream(const EventHeader* event, std::uintptr_t* stream,
                                      std::uint64_t* sequence_number) noexcept;
/// Runs the waiters and wakes the sleepers of an event that the caller has just completed. `word` is what its word held
/// before.
PURLIN_API void EventFinish(EventHeader* event, std::uintptr_t word) noexcept;
/// Completes `event` as `source` completes; takes over the promise's reference to `event`.
PURLIN_API void EventForward(EventHeader* event, EventHeader* source) noexcept;
/// Notes that `event`, which others may know, waits for `source`, pending. Null, or an owned error that names the cycle
/// that this closes: `event` must then fail, with that.
PURLIN_API const StatusRep* EventFollow(EventHeader* event, EventHeader* source) noexcept;
/// Asked before an event that is kFollowed and kPoisonable, or in the caller's storage, is freed, after its last
/// reference is gone: false if a watchdog has one, and frees it.
PURLIN_API bool EventMayFree(EventHeader* event) noexcept;
/// Notes that `event`, which is new, waits for all of `sources`, until EventsArrived(); null if none is pending.
PURLIN_API void* EventOwesSeveral(EventHeader* event, EventHeader* const* sources, std::size_t count) noexcept;
/// One of them has completed.
PURLIN_API void EventArrived(void* several, std::size_t index) noexcept;
/// All have completed; takes `several` over. Null does nothing.
PURLIN_API void EventsArrived(void* several) noexcept;
/// Completes the event with kInternal, naming it, if it is pending.
PURLIN_API void EventAbandon(EventHeader* event) noexcept;
/// Blocks until terminal or `timeout_ns` passed (negative: forever); null or an owned error.
PURLIN_API const StatusRep* EventWait(EventHeader* event, std::int64_t timeout_ns) noexcept;
/// What a join of events does with their errors.
enum class JoinRule : std::uint32_t { kWait = 0, kFailFast = 1, kIgnore = 2 };
/// A new event, owned, that completes after all of `events` (null entries are ready), with an ErrorPolicy by its number
/// (0: the lowest index) and a rule. kIgnore: the policy does not matter.
PURLIN_API EventHeader* EventJoin(EventHeader* const* events, std::size_t count, std::uint32_t policy, JoinRule rule,
                                  SourceLocation location) noexcept;
/// The owned error of a join of `total` members, by an ErrorPolicy's number: of `count` errors, which are in the order
/// of time, with the indices of their members (the largest number: none), and which `failed` members had. Null if
/// `count` is 0.
PURLIN_API const StatusRep* JoinError(std::uint32_t policy, std::size_t total, std::size_t failed,
                                      const StatusRep* const* errors, const std::size_t* indices,
                                      std::size_t count) noexcept;
/// Queues a waiter of a terminal event until this thread's stack has unwound to its outermost waiter.
PURLIN_API void DeferWaiter(EventHeader* event, Waiter* waiter) noexcept;
/// Runs what `DeferWaiter` queued on this thread.
PURLIN_API void RunDeferredWaiters() noexcept;

/// Reports a C++ exception that escaped from a closure. `what` may be null.
PURLIN_API void ReportException(const char* place, const char* what) noexcept;
/// Rust's view of the structs above, as `Struct.field=offset` and `Struct.size=bytes` lines; for the test that
/// compares.
PURLIN_API std::string RustAbiLayout();

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_ABI_H_
