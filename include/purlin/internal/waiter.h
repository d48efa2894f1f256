// Purlin: attaching a C++ closure to an event without a call into the library. Not for users; see event.h.
//
// The protocol is that of rust/core/src/event/state.rs; this file is its second implementation, kept to what must be
// inline: count references, push a waiter, and run one whose event is terminal already.
#ifndef PURLIN_INTERNAL_WAITER_H_
#define PURLIN_INTERNAL_WAITER_H_

#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "purlin/internal/abi.h"
#include "purlin/internal/guard.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// One more reference. Null is the ready event, which is not counted.
inline void EventRetain(EventHeader* event) noexcept {
  if (event == nullptr) return;
  // Relaxed: the caller holds a reference already, so nothing can be freed meanwhile.
  if (event->refs.fetch_add(1, std::memory_order_relaxed) >= kRefsSaturated) {
    event->refs.store(kRefsSaturated, std::memory_order_relaxed);
  }
}

/// One reference less; frees the event with the last.
inline void EventRelease(EventHeader* event) noexcept {
  if (event == nullptr) return;
  // Release pairs with the acquire load below in whichever thread is last. A load, not a fence: TSan sees loads.
  const std::uint32_t before = event->refs.fetch_sub(1, std::memory_order_release);
  if (before == 1) {
    static_cast<void>(event->refs.load(std::memory_order_acquire));
    EventFree(event);
  } else if (before >= kRefsSaturated) {
    event->refs.store(kRefsSaturated, std::memory_order_relaxed);
  }
}

/// How deep this thread's inline waiters are nested, as far as this side of the boundary sees.
struct InlineDepth {
  std::uint32_t depth = 0;
  bool deferred = false;
};
inline thread_local InlineDepth inline_depth;
constexpr std::uint32_t kMaxInlineDepth = 32;

/// Calls `f(status)` or `f()`.
template <typename F>
void CallWaiter(F& f, const EventHeader* event) {
  if constexpr (std::is_invocable_v<F&, const Status&>) {
    const bool failed = event != nullptr && event->error != nullptr;
    f(failed ? Status::FromBorrowedRep(event->error) : Status());
  } else {
    static_assert(std::is_invocable_v<F&>, "a waiter is called as f(const purlin::Status&) or f()");
    f();
  }
}

/// A closure in an event's list. `Waiter` comes first, so that a pointer to it is a pointer to this.
template <typename F>
struct ClosureWaiter {
  Waiter base;
  F closure;

  static void Invoke(Waiter* self, const EventHeader* event) noexcept {
    auto* node = reinterpret_cast<ClosureWaiter*>(self);
    Guarded("waiter", [&] { CallWaiter(node->closure, event); });
    delete node;
  }
};

/// Runs a closure whose event is terminal, here, unless too many of them are nested already. The closure may drop the
/// last reference to `event`: nothing here touches the event after the call.
template <typename F>
void RunWaiterNow(EventHeader* event, F&& waiter) {
  using Closure = std::decay_t<F>;
  InlineDepth& here = inline_depth;
  if (here.depth >= kMaxInlineDepth) {
    auto* node = new ClosureWaiter<Closure>{{nullptr, &ClosureWaiter<Closure>::Invoke}, std::forward<F>(waiter)};
    here.deferred = true;
    DeferWaiter(event, &node->base);
    return;
  }
  ++here.depth;
  Guarded("waiter", [&] {
    Closure closure(std::forward<F>(waiter));
    CallWaiter(closure, event);
  });
  --here.depth;
  if (here.depth == 0 && here.deferred) {
    here.deferred = false;
    RunDeferredWaiters();
  }
}

/// Attaches `waiter`, or runs it if the event is terminal. The caller holds a reference to `event`.
template <typename F>
void Attach(EventHeader* event, F&& waiter) {
  using Closure = std::decay_t<F>;
  if (event == nullptr) return RunWaiterNow(event, std::forward<F>(waiter));
  std::uintptr_t word = event->word.load(std::memory_order_acquire);
  if ((word & kTerminalBit) != 0) return RunWaiterNow(event, std::forward<F>(waiter));
  auto* node = new ClosureWaiter<Closure>{{nullptr, &ClosureWaiter<Closure>::Invoke}, std::forward<F>(waiter)};
  static_assert(alignof(ClosureWaiter<Closure>) >= 8, "the low bits of a waiter's address carry the state");
  do {
    if ((word & kTerminalBit) != 0) {  // Lost the race against the completion.
      return RunWaiterNow(event, [node, event] { node->base.invoke(&node->base, event); });
    }
    node->base.next = reinterpret_cast<Waiter*>(word & kWaiterMask);  // NOLINT(performance-no-int-to-ptr)
    // Release publishes the node to the completing exchange (acquire); acquire on failure sees the completion.
  } while (!event->word.compare_exchange_weak(word, reinterpret_cast<std::uintptr_t>(node) | (word & ~kWaiterMask),
                                              std::memory_order_release, std::memory_order_acquire));
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_WAITER_H_
