// Purlin: calling a closure that is called once. Not for users.
#ifndef PURLIN_INTERNAL_CALL_ONCE_H_
#define PURLIN_INTERNAL_CALL_ONCE_H_

#include <type_traits>
#include <utility>

#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// Whether an `F` that is called once can be called with `args`: as an rvalue, or, where it is no function of rvalues,
/// as an lvalue.
template <typename F, typename... Args>
inline constexpr bool kCallableOnce = std::is_invocable_v<F, Args...> || std::is_invocable_v<F&, Args...>;

/// Calls `f` so.
template <typename F, typename... Args>
inline __attribute__((always_inline)) decltype(auto) CallOnce(F& f, Args&&... args) {
  if constexpr (std::is_invocable_v<F, Args...>) {
    return std::move(f)(std::forward<Args>(args)...);
  } else {
    return f(std::forward<Args>(args)...);
  }
}

/// Calls `f(argument)`, or `f()` where it takes none.
template <typename F, typename Argument>
void CallOnceWithOrWithout(F& f, Argument&& argument) {
  if constexpr (kCallableOnce<F, Argument>) {
    CallOnce(f, std::forward<Argument>(argument));
  } else {
    CallOnce(f);
  }
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_CALL_ONCE_H_
