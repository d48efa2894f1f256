// Purlin: C++ closures that are called with the outcome of an operation. Not for users.
#ifndef PURLIN_INTERNAL_CALLBACK_H_
#define PURLIN_INTERNAL_CALLBACK_H_

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "purlin/internal/abi.h"
#include "purlin/internal/guard.h"
#include "purlin/internal/thread_state.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// A closure, called once or destroyed uncalled. `error` (null for OK) and `value` go to the closure, which `data`
/// points to, or is.
struct Callback {
  void* data;
  void (*invoke)(void* data, bool run, const StatusRep* error, const void* value) noexcept;
};

static_assert(sizeof(Callback) == 16 && offsetof(Callback, data) == 0 && offsetof(Callback, invoke) == 8,
              "Callback ABI");

/// Wraps `closure`, called as `closure(error, value)`, which takes both over.
template <typename F>
Callback MakeCallback(F&& closure) {
  using Closure = std::decay_t<F>;
  if constexpr (sizeof(Closure) <= sizeof(void*) && std::is_trivially_copyable<Closure>::value) {
    // A copy of its bytes is the closure; it has nothing to destroy.
    const Closure copy = std::forward<F>(closure);
    void* data = nullptr;
    std::memcpy(static_cast<void*>(&data), static_cast<const void*>(&copy), sizeof(Closure));
    return {data, [](void* bytes, bool run, const StatusRep* error, const void* value) noexcept {
              if (!run) return;
              alignas(Closure) unsigned char place[sizeof(void*)];
              std::memcpy(place, static_cast<const void*>(&bytes), sizeof(place));
              Guarded("callback", [&] { (*std::launder(reinterpret_cast<Closure*>(place)))(error, value); });
            }};
  }
  // Small ones are blocks of the thread; but a constructor that throws would lose the block.
  if constexpr (sizeof(Closure) <= kMostBlockBytes && alignof(Closure) <= alignof(void*) &&
                std::is_nothrow_constructible_v<Closure, F&&>) {
    constexpr BlockClass kClass = NodeClass(sizeof(Closure));
    return {::new (AllocateBlock(kClass)) Closure(std::forward<F>(closure)),
            [](void* data, bool run, const StatusRep* error, const void* value) noexcept {
              auto* self = static_cast<Closure*>(data);
              if (run) Guarded("callback", [&] { (*self)(error, value); });
              self->~Closure();
              FreeBlock(kClass, self);
            }};
  } else {
    return {new Closure(std::forward<F>(closure)),
            [](void* data, bool run, const StatusRep* error, const void* value) noexcept {
              auto* self = static_cast<Closure*>(data);
              if (run) Guarded("callback", [&] { (*self)(error, value); });
              delete self;
            }};
  }
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_CALLBACK_H_
