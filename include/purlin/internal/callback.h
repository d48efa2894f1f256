// Purlin: C++ closures that are told how something ended. Not for users.
#ifndef PURLIN_INTERNAL_CALLBACK_H_
#define PURLIN_INTERNAL_CALLBACK_H_

#include <type_traits>
#include <utility>

#include "purlin/internal/abi.h"
#include "purlin/internal/guard.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// A closure on the heap, called once or destroyed uncalled. `error` (null for OK) and `value` go to the closure.
struct Callback {
  void* data;
  void (*invoke)(void* data, bool run, const StatusRep* error, const void* value) noexcept;
};

/// Wraps `closure`, called as `closure(error, value)`, which takes both over.
template <typename F>
Callback MakeCallback(F&& closure) {
  using Closure = std::decay_t<F>;
  auto* owned = new Closure(std::forward<F>(closure));
  return {owned, [](void* data, bool run, const StatusRep* error, const void* value) noexcept {
            auto* self = static_cast<Closure*>(data);
            if (run) Guarded("callback", [&] { (*self)(error, value); });
            delete self;
          }};
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_CALLBACK_H_
