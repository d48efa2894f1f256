// Purlin: empty callables. Not for users.
//
// An empty std::function, or a null pointer to a function or a member, would end the process on some thread, much
// later. So every function that takes a closure checks it here first: a function that returns a status, an event, a
// value or a future fails with kInvalidArgument; others ignore it. For lambdas this compiles to no code.
#ifndef PURLIN_INTERNAL_EMPTY_CALLABLE_H_
#define PURLIN_INTERNAL_EMPTY_CALLABLE_H_

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>

#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

template <typename F>
class ContextClosure;

/// Whether a class can be null and says so: std::function, std::move_only_function, absl::AnyInvocable. A lambda
/// compares with null too, as the pointer that it converts to, but cannot be made of null.
template <typename F, typename = void>
struct IsNullableClass : std::false_type {};
template <typename F>
struct IsNullableClass<F, std::void_t<decltype(static_cast<bool>(std::declval<const F&>() == nullptr))>>
    : std::bool_constant<std::is_class_v<F> && std::is_constructible_v<F, std::nullptr_t>> {};

/// Whether there is nothing to call in `f`.
template <typename F>
constexpr bool IsEmptyCallable(const F& f) noexcept {
  if constexpr (std::is_pointer_v<F> || std::is_member_pointer_v<F> || IsNullableClass<F>::value) {
    return f == nullptr;
  } else {
    static_cast<void>(f);
    return false;
  }
}
/// As above, of what carries a user context.
template <typename F>
constexpr bool IsEmptyCallable(const ContextClosure<F>& f) noexcept {
  return IsEmptyCallable(f.closure());
}

/// The error of `call`, which was given such an `f`.
__attribute__((noinline, cold)) inline Status EmptyCallableError(const std::string& call,
                                                                 SourceLocation location = SourceLocation::Current()) {
  return InvalidArgumentError(call + " was given an empty std::function or a null pointer in place of a function",
                              location);
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_EMPTY_CALLABLE_H_
