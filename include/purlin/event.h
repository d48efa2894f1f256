// Purlin: something that happens once, and who waits for it.
//
// ```cpp
// purlin::EventPromise promise("weights copied");
// purlin::Event event = promise.event();
// event.OnReady([](const purlin::Status& status) {  // on the thread that completes the event
//   if (!status.ok()) std::abort();
// });
// promise.SetReady();
// ```
//
// States: pending -> ready, or pending -> error; a terminal state never changes. The first set wins and the second is
// told so. A promise that goes away unset completes its event with kInternal, naming it: no waiter is ever forgotten.
//
// Waiters run in the order in which they were attached (FIFO), each exactly once, under no lock, on the thread that
// completes the event; a waiter attached to a terminal event runs at once on the attaching thread. Waiters that
// complete further events nest at most 32 deep; beyond that they queue and run when the outermost one returns, so a
// chain of a million links needs no more stack than one of ten.
//
// Memory ordering: what a thread did before it set the event is visible to every waiter, to every Wait() that returned,
// and to whoever saw IsReady() return true.
//
// fork(): the child has one thread, so nobody completes there what was pending. In the child every such event has
// failed with kFailedPrecondition, which says so; its waiters are the parent's, and are neither called nor destroyed.
// (An event in memory of its owner's, async_value_storage.h, stays pending; a Wait() for it, or for a join or a value
// that the child makes of it, fails, and the child may complete it.) Events that are made in the child work there. This
// is the rule for everything of Purlin's: in the child a call on what the parent made answers at once, with a value or
// kFailedPrecondition; destructors and exit() end; and what the child makes works. A fork() waits until no other thread
// holds a lock of Purlin's, for 5 seconds at most, and threads that want one wait for the fork(). vfork(),
// posix_spawn() and a bare system call are followed by exec() only, and a fork() in a signal handler, too.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_EVENT_H_
#define PURLIN_EVENT_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "purlin/export.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/cell.h"
#include "purlin/internal/waiter.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// PJRT's numbers.
enum class EventState : int {
  /// Pending.
  kUnavailable = 0,
  /// Happened.
  kReady = 1,
  /// Failed; error() says why.
  kError = 2,
};

/// Where work is ordered: the producer's stream and the position in it.
struct DefinitionStream {
  /// Names the stream to those who know it: a platform's handle. Not 0.
  std::uintptr_t stream = 0;
  /// Grows along the stream; from 1.
  std::uint64_t sequence_number = 0;
};

/// A reference to an event: one word, cheap to copy, safe to share among threads as a shared_ptr is.
/// A default-constructed or moved-from Event is one that has already happened.
class [[nodiscard]] Event final {
 public:
  /// Already happened; allocates nothing.
  constexpr Event() noexcept = default;
  /// Already happened; allocates nothing.
  static Event Ready() noexcept { return Event(); }
  /// Already failed. An OK `status` gives Ready().
  static Event Error(Status status, SourceLocation location = SourceLocation::Current()) noexcept {
    if (status.ok()) return Event();
    return Adopt(internal::EventNewError(std::move(status).ReleaseRep(), location));
  }

  /// Another reference to the same event; one atomic increment, no call.
  Event(const Event& other) noexcept : header_(internal::EventRetain(other.header_)) {}
  /// Leaves `other` Ready().
  Event(Event&& other) noexcept : header_(std::exchange(other.header_, nullptr)) {}
  /// See the constructors.
  Event& operator=(const Event& other) noexcept {
    Event copy(other);
    std::swap(header_, copy.header_);
    return *this;
  }
  /// See the constructors.
  Event& operator=(Event&& other) noexcept {
    Event taken(std::move(other));
    std::swap(header_, taken.header_);
    return *this;
  }
  ~Event() { internal::EventRelease(header_); }

  /// True once the event has happened or failed. One load; never blocks.
  [[nodiscard]] bool IsReady() const noexcept { return header_ == nullptr || (Word() & internal::kTerminalBit) != 0; }
  /// The state, by one load; never blocks.
  [[nodiscard]] EventState state() const noexcept {
    if (header_ == nullptr) return EventState::kReady;
    const std::uintptr_t state = Word() & internal::kStateMask;
    return (state & internal::kTerminalBit) == 0 ? EventState::kUnavailable : static_cast<EventState>(state - 1);
  }
  /// The error if state() is kError, else OK (also while pending). Never blocks.
  [[nodiscard]] Status error() const noexcept { return header_ == nullptr ? Status() : internal::ErrorOf(header_); }
  /// The label that the promise was given; "" for Ready(). Static storage.
  [[nodiscard]] std::string_view label() const noexcept {
    return header_ == nullptr ? std::string_view() : std::string_view(Cell()->label.load(std::memory_order_relaxed));
  }
  /// Where the promise was made; line() is 0 for Ready().
  [[nodiscard]] SourceLocation location() const noexcept {
    if (header_ == nullptr) return SourceLocation();
    return SourceLocation(Cell()->file.load(std::memory_order_relaxed), Cell()->line.load(std::memory_order_relaxed));
  }
  /// The stream that the event belongs to, if its maker said so.
  [[nodiscard]] std::optional<DefinitionStream> definition_stream() const noexcept {
    DefinitionStream definition;
    if (!internal::EventDefinitionStream(header_, &definition.stream, &definition.sequence_number)) return std::nullopt;
    return definition;
  }
  /// True while a waiter is attached or a thread sleeps. Others may change that at any time.
  [[nodiscard]] bool HasWaiters() const noexcept { return header_ != nullptr && internal::HasWaiters(header_); }
  /// How many references there are; 0 for Ready(), which is not counted. Others may change that at any time.
  [[nodiscard]] std::uint32_t NumRef() const noexcept {
    return header_ == nullptr ? 0 : header_->refs.load(std::memory_order_acquire);
  }

  /// Blocks this thread until the event is terminal; OK or its error. In a task of a pool, tasks that this one has
  /// scheduled may run here meanwhile, and a spare thread may take this one's place: waiting for tasks of the same pool
  /// is fine. A task must not wait for what one further out on its own stack does later. In a task of a pool,
  /// kResourceExhausted, naming the pool and the event, which stays pending: for a second, all threads of the pool have
  /// waited while tasks were queued, and the system refused a further one (or there are 16384 spares already). That is
  /// no end of the event. A wait until which memory or a stack may be lent never ends so: one for a copy, for what
  /// EventPromise::Guarding() made, or for what follows such an event. It returns when that is terminal, and meanwhile
  /// runs what is queued, 32 tasks deep; reports (stall.h) name a pool that stands still so. A copy is completed by its
  /// backend, whatever the pool does.
  /// kFailedPrecondition, at once, naming the event, which stays pending: it waits for what this thread completes once
  /// the callback has returned that calls this: a copy whose memory is being released, a buffer whose on_done runs, a
  /// read of the copier whose on_piece runs; or for the result of a task that this thread runs, itself or further out,
  /// and no memory is lent until the event. The caller must not take that for its end. Calls of the library that block
  /// until a buffer is ready, or until its memory is there, answer so, too.
  Status Wait() const noexcept { return IsReady() ? error() : Status::FromRep(internal::EventWait(header_, -1)); }
  /// As Wait(), for at most `timeout` (negative counts as zero); then kDeadlineExceeded, naming the event, which stays
  /// pending. The clock is monotonic.
  Status WaitFor(std::chrono::nanoseconds timeout) const noexcept {
    const std::int64_t timeout_ns = timeout.count() < 0 ? 0 : timeout.count();
    return IsReady() ? error() : Status::FromRep(internal::EventWait(header_, timeout_ns));
  }

  /// Calls `waiter(status)` or `waiter()` exactly once when the event is terminal; see the top of this file for thread
  /// and order. `waiter` may be move-only, may attach to this event again and may drop the last reference to it. It
  /// must not block for long: it borrows the thread of whoever completed the event. It runs in the user context that is
  /// current here (user_context.h). An empty std::function or a null function pointer is nothing to do.
  template <typename F>
  void OnReady(F&& waiter) const {
    internal::Attach(header_, std::forward<F>(waiter));
  }

  /// The same event, not an equal one.
  friend bool operator==(const Event& a, const Event& b) noexcept { return a.header_ == b.header_; }
  /// Not the same event.
  friend bool operator!=(const Event& a, const Event& b) noexcept { return !(a == b); }

  /// For Purlin's own files: takes over one reference.
  static Event Adopt(internal::EventHeader* header) noexcept {
    Event event;
    event.header_ = header;
    return event;
  }
  /// For Purlin's own files: the cell, borrowed; null is ready.
  internal::EventHeader* header() const noexcept { return header_; }

 private:
  // Acquire pairs with the release of the word by whoever completed the event (rust/core/src/event/state.rs).
  std::uintptr_t Word() const noexcept { return header_->word.load(std::memory_order_acquire); }
  // Every header is the first member of a cell.
  const internal::EventCell* Cell() const noexcept { return reinterpret_cast<const internal::EventCell*>(header_); }

  internal::EventHeader* header_ = nullptr;
};

static_assert(sizeof(Event) == sizeof(void*), "an Event is one word");

/// The side that makes an event happen. Move-only, one word. Set, SetReady and SetError may race; the first wins.
class EventPromise final {
 public:
  /// A new pending event, known by `label` (static storage, never unloaded: label.h) and by the place of the caller.
  explicit EventPromise(Label label = Label(), SourceLocation location = SourceLocation::Current()) noexcept
      : header_(internal::NewCell(sizeof(internal::EventCell), alignof(internal::EventCell), nullptr, 0,
                                  internal::kPoisonable, label, location)) {}
  /// As above, for an event that a stream orders.
  EventPromise(DefinitionStream definition, Label label, SourceLocation location = SourceLocation::Current()) noexcept
      : header_(internal::EventNewWithStream(label.c_str(), location, definition.stream, definition.sequence_number)) {}

  /// As the first, for an event behind which something ends that others may still use: memory, a stack, a thread. No
  /// watchdog poisons it (stall.h).
  static EventPromise Guarding(Label label = Label(), SourceLocation location = SourceLocation::Current()) noexcept {
    return EventPromise(
        internal::NewCell(sizeof(internal::EventCell), alignof(internal::EventCell), nullptr, 0, 0, label, location));
  }

  EventPromise(const EventPromise&) = delete;
  EventPromise& operator=(const EventPromise&) = delete;
  /// Leaves `other` empty: it owes nothing and its Set calls answer false.
  EventPromise(EventPromise&& other) noexcept : header_(std::exchange(other.header_, nullptr)) {}
  /// As if this promise were destroyed first: an unset event completes with kInternal.
  EventPromise& operator=(EventPromise&& other) noexcept {
    EventPromise taken(std::move(other));
    std::swap(header_, taken.header_);
    return *this;
  }
  /// Completes an unset event with kInternal, naming its label and the place where the promise was made; its waiters
  /// run here.
  ~EventPromise() {
    if (header_ == nullptr) return;
    if (!internal::IsTerminal(header_)) internal::EventAbandon(header_);
    internal::EventRelease(header_);
  }

  /// Another reference to the event; Ready() if this promise was moved from.
  Event event() const noexcept { return Event::Adopt(internal::EventRetain(header_)); }
  /// Makes the event happen and runs its waiters on this thread. False if it was set before (or moved from): nothing
  /// changed.
  bool SetReady() noexcept { return header_ != nullptr && internal::TrySetReady(header_); }
  /// Makes the event fail with `error` and runs its waiters on this thread. False if it was set before (or moved from):
  /// nothing changed. An OK `error` is a bug of the caller and becomes kInternal.
  bool SetError(Status error, SourceLocation location = SourceLocation::Current()) noexcept {
    if (error.ok()) error = InternalError("EventPromise::SetError was given an OK status", location);
    return header_ != nullptr && internal::TrySetError(header_, std::move(error));
  }
  /// SetReady() if `status` is OK, else SetError(status).
  bool Set(Status status) noexcept { return status.ok() ? SetReady() : SetError(std::move(status)); }
  /// Makes the event follow `other`: it happens or fails as that does, on the thread that completes that. Leaves this
  /// promise empty. An event that would follow itself, directly or through promises and values that are forwarded or
  /// mapped and through joins, fails with kInternal, naming the cycle, instead of never completing.
  void Forward(const Event& other) && noexcept {
    if (header_ != nullptr) internal::EventForward(std::exchange(header_, nullptr), other.header());
  }
  /// Attaches to the event, as Event::OnReady, without a reference of one's own.
  template <typename F>
  void OnReady(F&& waiter) const {
    internal::Attach(header_, std::forward<F>(waiter));
  }

 private:
  explicit EventPromise(internal::EventHeader* header) noexcept : header_(header) {}
  internal::EventHeader* header_;
};

/// An event that completes when all of `events` have. If any failed, it fails with the error of the one with the lowest
/// index, after all have completed; so the result does not depend on who came first. None or all ready: Ready(),
/// without allocation.
inline Event WhenAll(Span<const Event> events, SourceLocation location = SourceLocation::Current()) noexcept {
  static_assert(std::is_standard_layout<Event>::value, "an Event is read as its pointer");
  return Event::Adopt(internal::EventJoin(reinterpret_cast<internal::EventHeader* const*>(events.data()), events.size(),
                                          0, internal::JoinRule::kWait, location));
}

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_EVENT_H_
