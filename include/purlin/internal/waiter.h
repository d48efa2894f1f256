// Purlin: attaching a C++ closure to an event without a call into the library. Not for users; see event.h.
//
// The protocol is that of rust/async/src/event/state.rs; this file and cell.h are its second implementation. Here: push
// a waiter, and run one whose event is terminal already.
#ifndef PURLIN_INTERNAL_WAITER_H_
#define PURLIN_INTERNAL_WAITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "purlin/internal/abi.h"
#include "purlin/internal/call_once.h"
#include "purlin/internal/cell.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/guard.h"
#include "purlin/internal/thread_state.h"
#include "purlin/internal/user_context.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// Calls `f(status)` or `f()`.
template <typename F>
inline __attribute__((always_inline)) void CallWaiter(F& f, const EventHeader* event) {
  if constexpr (kCallableOnce<F, const Status&>) {
    CallOnce(f, event == nullptr ? Status() : ErrorOf(event));
  } else {
    static_assert(kCallableOnce<F>, "a waiter is called as f(const purlin::Status&) or f()");
    CallOnce(f);
  }
}

inline __attribute__((always_inline)) void CopyWord(unsigned char* to, const unsigned char* from) noexcept {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  asm("" : "+r"(word));  // So that no two of them become one.
  std::memcpy(to, &word, sizeof(word));
}

/// Copies the words at those places.
template <std::size_t... kAt>
inline __attribute__((always_inline)) void CopyWords(unsigned char* to, const unsigned char* from,
                                                     std::index_sequence<kAt...> /*places*/) noexcept {
  (CopyWord(to + kAt * sizeof(std::uint64_t), from + kAt * sizeof(std::uint64_t)), ...);
}

/// A copy in pieces of 8 bytes. Compilers copy by 16, which stalls on a closure that stores of 8 have just made.
template <typename F>
inline __attribute__((always_inline)) void CopyByWords(F* to, const F& from) noexcept {
  static_assert(std::is_trivially_copyable_v<F>);
  if constexpr (!std::is_empty_v<F>) {
    constexpr std::size_t kWords = sizeof(F) / sizeof(std::uint64_t);
    constexpr std::size_t kRest = sizeof(F) % sizeof(std::uint64_t);
    auto* bytes = reinterpret_cast<unsigned char*>(to);
    const auto* source = reinterpret_cast<const unsigned char*>(&from);
    if constexpr (kWords != 0) CopyWords(bytes, source, std::make_index_sequence<kWords>());
    if constexpr (kRest != 0) std::memcpy(bytes + sizeof(F) - kRest, source + sizeof(F) - kRest, kRest);
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
    Free(node);
  }

  /// A node with a copy of `from` (or what was moved out of it). Small ones are blocks of the thread.
  template <typename G>
  static ClosureWaiter* New(G&& from) {
    if constexpr (kInBlock && std::is_trivially_copyable_v<F> && std::is_trivially_constructible_v<F, G&&>) {
      auto* node = static_cast<ClosureWaiter*>(AllocateBlock(kClass));
      node->base = {nullptr, &Invoke};
      CopyByWords<F>(&node->closure, from);
      return node;
    } else if constexpr (kInBlock) {
      return ::new (AllocateBlock(kClass)) ClosureWaiter{{nullptr, &Invoke}, static_cast<F>(std::forward<G>(from))};
    } else {
      return new ClosureWaiter{{nullptr, &Invoke}, static_cast<F>(std::forward<G>(from))};
    }
  }

  static void Free(ClosureWaiter* node) noexcept {
    if constexpr (kInBlock) {
      node->~ClosureWaiter();
      FreeBlock(kClass, node);
    } else {
      delete node;
    }
  }

 private:
  // A constructor that throws would lose the block.
  static constexpr bool kInBlock = sizeof(Waiter) + sizeof(F) <= kMostBlockBytes && alignof(F) <= 8 &&
                                   (std::is_nothrow_move_constructible_v<F> || !WithExceptions::value);
  static constexpr BlockClass kClass = NodeClass(sizeof(Waiter) + sizeof(F));
};

/// A waiter that runs `waiter` in the user context that is current here, as CarryContext of tasks does.
__attribute__((noinline, cold)) inline Waiter* CarryContext(Waiter* waiter) noexcept {
  struct Carried {
    Waiter base;
    Waiter* waiter;
    UserContextRef context;
    static void Invoke(Waiter* self, const EventHeader* event) noexcept {
      auto* carried = reinterpret_cast<Carried*>(self);
      {
        ContextScope scope(std::move(carried->context));
        carried->waiter->invoke(carried->waiter, event);
      }
      carried->~Carried();
      FreeBlock(BlockClass::kNode, carried);
    }
  };
  static_assert(sizeof(Carried) <= 64, "it fits into the block");
  return &(::new (AllocateBlock(BlockClass::kNode))
               Carried{{nullptr, &Carried::Invoke}, waiter, UserContextRef::Current()})
              ->base;
}

// What is rare stays out of line, so that compilers put the rest into the caller.
template <typename F>
__attribute__((noinline, cold)) Waiter* NewWaiterInContext(F&& waiter) {
  return CarryContext(&ClosureWaiter<std::decay_t<F>>::New(std::forward<F>(waiter))->base);
}

/// A node with a copy of `waiter` (or what was moved out of it), which will run in the user context that is current
/// here.
template <typename F>
inline __attribute__((always_inline)) Waiter* NewWaiter(F&& waiter) {
  using Closure = std::decay_t<F>;
  static_assert(alignof(ClosureWaiter<Closure>) >= 8, "the low bits of a waiter's address carry the state");
  if (InContext()) return NewWaiterInContext(std::forward<F>(waiter));
  return &ClosureWaiter<Closure>::New(std::forward<F>(waiter))->base;
}

template <typename F>
__attribute__((noinline, cold)) void DeferClosure(EventHeader* event, F&& waiter) {
  DeferWaiter(event, NewWaiter(std::forward<F>(waiter)));
}

void RunNodeNow(EventHeader* event, Waiter* node);

/// Runs a closure whose event is terminal, here, unless too many of them are nested already. The closure may drop the
/// last reference to `event`: nothing here touches the event after the call.
template <typename F>
inline __attribute__((always_inline)) void RunWaiterNow(EventHeader* event, F&& waiter) {
  using Closure = std::decay_t<F>;
  if constexpr (!std::is_nothrow_constructible_v<Closure, F&&>) {
    // An exception of its copy leaves this call, as where the event is pending.
    return RunNodeNow(event, NewWaiter(std::forward<F>(waiter)));
  }
  ThreadState& here = ThisThread();
  if (here.depth >= kMaxInlineDepth) return DeferClosure(event, std::forward<F>(waiter));
  ++here.depth;
  Guarded("waiter", [&] {
    if constexpr (std::is_same_v<F, Closure> && std::is_trivially_copyable_v<Closure>) {
      CallWaiter(waiter, event);  // No copy, which would stall on the stores that have just made what it reads.
    } else {
      Closure closure(std::forward<F>(waiter));
      CallWaiter(closure, event);
    }
  });
  if (--here.depth == 0 && here.deferred != 0) RunDeferredWaiters();
}

// As RunWaiterNow, for one that was not pushed after all.
__attribute__((noinline, cold)) inline void RunNodeNow(EventHeader* event, Waiter* node) {
  RunWaiterNow(event, [node, event] { node->invoke(node, event); });
}

/// Pushes `node` unless `word`, which the event had a moment ago, or what it becomes meanwhile, is terminal: then it
/// runs `node`.
inline __attribute__((always_inline)) void AttachNode(EventHeader* event, std::uintptr_t word, Waiter* node) {
  do {
    if ((word & kTerminalBit) != 0) return RunNodeNow(event, node);  // Lost the race against the completion.
    node->next = reinterpret_cast<Waiter*>(word & kWaiterMask);      // NOLINT(performance-no-int-to-ptr)
    // Release publishes the node to the completing exchange (acquire); acquire on failure sees the completion.
  } while (!event->word.compare_exchange_weak(word, reinterpret_cast<std::uintptr_t>(node) | (word & ~kWaiterMask),
                                              std::memory_order_release, std::memory_order_acquire));
}

/// As Attach, where `event` was pending a moment ago and `waiter` is not empty: without the code that runs a closure
/// which never was in a node.
template <typename F>
void AttachPending(EventHeader* event, F&& waiter) {
  AttachNode(event, event->word.load(std::memory_order_acquire), NewWaiter(std::forward<F>(waiter)));
}

/// Attaches `waiter`, or runs it if the event is terminal; does nothing if it is empty. The caller holds a reference to
/// `event`.
template <typename F>
void Attach(EventHeader* event, F&& waiter) {
  if (IsEmptyCallable(waiter)) return;
  if (event != nullptr) {
    const std::uintptr_t word = event->word.load(std::memory_order_acquire);
    if ((word & kTerminalBit) == 0) return AttachNode(event, word, NewWaiter(std::forward<F>(waiter)));
  }
  RunWaiterNow(event, std::forward<F>(waiter));
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_WAITER_H_
