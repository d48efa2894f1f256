// Purlin: something that happens once, and what waits for it.
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
// States: pending -> ready, or pending -> error; a terminal state never changes. The first set wins; a later one
// returns false. A promise that is destroyed unset completes its event with kInternal, naming it, so no waiter is lost.
//
// Waiters run in the order in which they were attached (FIFO), each exactly once, under no lock, on the thread that
// completes the event; a waiter attached to a terminal event runs at once on the attaching thread. Waiters that
// complete further events nest at most 32 deep; beyond that they queue and run when the outermost one returns, so a
// chain of a million links needs no more stack than one of ten.
//
// Memory ordering: what a thread did before it set the event is visible to every waiter, to every Wait() that returned,
// and to every thread that saw IsReady() return true.
//
// fork(): the child has one thread, so no thread of the parent completes its pending events there. In the child each of
// them has failed with kFailedPrecondition, whose message names the fork. Their waiters belong to the parent: the child
// neither calls nor destroys them. (An event in memory that its owner provides, async_value_storage.h, stays pending.
// The child may complete it, but a Wait() for it fails, and so does one for a join or a value that the child makes of
// it.) Events that are made in the child work there. The same rule holds for every object of Purlin: in the child, a
// call on an object of the parent returns at once, with a value or kFailedPrecondition; destructors and exit() return;
// objects that the child makes work. A fork() waits until no other thread holds a lock of Purlin, for 5 seconds at
// most, and threads that take such a lock wait for the fork(). After vfork(), posix_spawn() or a bare system call, and
// after a fork() in a signal handler, only exec() may follow.
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
  /// The platform's handle of the stream. Not 0.
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
  /// Already failed. OK counts as kInternal, made at `location`.
  static Event Error(Status status, SourceLocation location = SourceLocation::Current()) noexcept {
    if (status.ok()) status = internal::OkAsError("Event::Error", location);
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
  /// The stream that the event belongs to, if its promise was made with one.
  [[nodiscard]] std::optional<DefinitionStream> definition_stream() const noexcept {
    DefinitionStream definition;
    if (!internal::EventDefinitionStream(header_, &definition.stream, &definition.sequence_number)) return std::nullopt;
    return definition;
  }
  /// True while a waiter is attached or a thread sleeps. Other threads may change that at any time.
  [[nodiscard]] bool HasWaiters() const noexcept { return header_ != nullptr && internal::HasWaiters(header_); }
  /// How many references there are; 0 for Ready(), which is not counted. Other threads may change that at any time.
  [[nodiscard]] std::size_t NumRef() const noexcept {
    return header_ == nullptr ? 0 : header_->refs.load(std::memory_order_acquire);
  }

  /// Blocks this thread until the event is terminal; OK or its error. In a task of a pool, tasks that this one has
  /// scheduled may run on this thread meanwhile, and a spare thread may take this one's place, so waiting for tasks of
  /// the same pool is fine. A task must not wait for what a task further out on the same stack does later. Two errors
  /// leave the event pending, and must not be taken for its end.
  ///
  /// kResourceExhausted, naming the pool and the event, in a task of a pool: for a second, all threads of the pool have
  /// waited while tasks were queued, and the system refused a further thread (or there are 16384 spares already). A
  /// wait for a guarding event never ends so. A guarding event is one until which memory, a stack or a thread is in
  /// use: that of a copy, of EventPromise::Guarding(), or one that follows such an event. A wait for it returns when it
  /// is terminal, and runs queued tasks meanwhile, 32 deep; a report (stall.h) names a pool that makes no progress so.
  /// A copy is completed by its backend, whatever the pool does.
  ///
  /// kFailedPrecondition, at once, naming the event: this thread itself completes what the event waits for, once the
  /// callback that calls Wait() has returned: a copy whose memory is being released, a buffer whose on_done runs, a
  /// read of the copier whose on_piece runs. The same for the result of a task that this thread runs, itself or further
  /// out on its stack, unless the event is guarding. Calls of the library that block until a buffer is ready, or until
  /// its memory is there, return this error, too.
  Status Wait() const noexcept { return IsReady() ? error() : Status::FromRep(internal::EventWait(header_, -1)); }
  /// As Wait(), for at most `timeout` (negative counts as zero); then kDeadlineExceeded, naming the event, which stays
  /// pending. The clock is monotonic.
  Status WaitFor(std::chrono::nanoseconds timeout) const noexcept {
    const std::int64_t timeout_ns = timeout.count() < 0 ? 0 : timeout.count();
    return IsReady() ? error() : Status::FromRep(internal::EventWait(header_, timeout_ns));
  }

  /// Calls `waiter(status)` or `waiter()` exactly once when the event is terminal; see the top of this file for thread
  /// and order. `waiter` may be move-only, may attach to this event again and may drop the last reference to it. It
  /// must not block for long, because it runs on the thread that completed the event. It runs in the user context that
  /// is current here (user_context.h). An empty std::function or a null function pointer is ignored.
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
  // Acquire pairs with the release of the word by the thread that completed the event (rust/async/src/event/state.rs).
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

  /// As the first, for a guarding event: one until which other threads may use memory, a stack or a thread that ends
  /// after it. No watchdog poisons it (stall.h).
  static EventPromise Guarding(Label label = Label(), SourceLocation location = SourceLocation::Current()) noexcept {
    return EventPromise(
        internal::NewCell(sizeof(internal::EventCell), alignof(internal::EventCell), nullptr, 0, 0, label, location));
  }

  EventPromise(const EventPromise&) = delete;
  EventPromise& operator=(const EventPromise&) = delete;
  /// Leaves `other` empty: its Set calls return false and its destructor completes nothing.
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
    if (error.ok()) error = internal::OkAsError("EventPromise::SetError", location);
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
  /// Attaches to the event, as Event::OnReady, without another reference.
  template <typename F>
  void OnReady(F&& waiter) const {
    internal::Attach(header_, std::forward<F>(waiter));
  }

 private:
  explicit EventPromise(internal::EventHeader* header) noexcept : header_(header) {}
  internal::EventHeader* header_;
};

/// An event that completes when all of `events` have. If any failed, it fails with the error of the one with the lowest
/// index, after all have completed, so the result does not depend on their order in time. Ready(), without allocation,
/// if there are no events or all of them have happened.
inline Event WhenAll(Span<const Event> events, SourceLocation location = SourceLocation::Current()) noexcept {
  static_assert(std::is_standard_layout<Event>::value, "an Event is read as its pointer");
  return Event::Adopt(internal::EventJoin(reinterpret_cast<internal::EventHeader* const*>(events.data()), events.size(),
                                          0, internal::JoinRule::kWait, location));
}

/// Blocks this thread until the event is terminal; OK or its error. See Event::Wait.
inline Status BlockUntilReady(const Event& event) noexcept { return event.Wait(); }

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_EVENT_H_
