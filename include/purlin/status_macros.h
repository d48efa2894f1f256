// Purlin: leaving a function with the error of a call.
//
// ```cpp
// purlin::StatusOr<int> Parse(const std::string& text) {
//   if (text != "4") return purlin::InvalidArgumentError(text);
//   return 4;
// }
// purlin::StatusOr<int> Area(const std::string& width, const std::string& height) {
//   PURLIN_RETURN_IF_ERROR(Parse(width).status());
//   PURLIN_ASSIGN_OR_RETURN(const int across, Parse(width));
//   PURLIN_ASSIGN_OR_RETURN(const int down, Parse(height));
//   return across * down;
// }
// ```
//
// The function returns what a Status converts to: a Status, a StatusOr, an AsyncValueRef, a Future, by its constructor.
// The only macros of Purlin's beside export and version, because C++ has no other way to return from the caller; the
// prefix keeps them apart from XLA's and abseil's.
#ifndef PURLIN_STATUS_MACROS_H_
#define PURLIN_STATUS_MACROS_H_

#include <utility>

#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// The error of what a macro was given, taken.
inline Status TakeStatus(Status status) noexcept { return status; }
template <typename T>
Status TakeStatus(StatusOr<T>&& result) noexcept {
  return std::move(result).status();
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

/// Evaluates `...`, a Status, once, and returns it if it is an error.
#define PURLIN_RETURN_IF_ERROR(...)                                                                \
  do {                                                                                             \
    if (::purlin::Status purlin_status = (__VA_ARGS__); !purlin_status.ok()) return purlin_status; \
  } while (false)

/// Evaluates `...`, a StatusOr, once, and returns its error, or assigns its value to `left`, which may be a
/// declaration. Several statements: not for the body of an `if` without braces. A `left` with a comma outside of
/// brackets stands in brackets itself: `PURLIN_ASSIGN_OR_RETURN((auto [a, b]), Pair())`.
#define PURLIN_ASSIGN_OR_RETURN(left, ...) \
  PURLIN_INTERNAL_ASSIGN_OR_RETURN(PURLIN_INTERNAL_JOIN(purlin_result_, __LINE__), left, __VA_ARGS__)

#define PURLIN_INTERNAL_ASSIGN_OR_RETURN(result, left, ...)                   \
  auto result = (__VA_ARGS__);                                                \
  if (!result.ok()) return ::purlin::internal::TakeStatus(std::move(result)); \
  PURLIN_INTERNAL_WITHOUT_BRACKETS(left) = *std::move(result)
#define PURLIN_INTERNAL_JOIN(a, b) PURLIN_INTERNAL_JOIN_EXPANDED(a, b)
#define PURLIN_INTERNAL_JOIN_EXPANDED(a, b) a##b
// `(x)` and `x` both become `x`: the first calls PURLIN_INTERNAL_TAKE, whose mark goes when it is pasted to what comes
// first, and the second leaves the mark to be pasted to PURLIN_INTERNAL_TAKE itself.
#define PURLIN_INTERNAL_WITHOUT_BRACKETS(x) PURLIN_INTERNAL_PASTED(PURLIN_INTERNAL_TAKE x)
#define PURLIN_INTERNAL_TAKE(...) PURLIN_INTERNAL_TAKE __VA_ARGS__
#define PURLIN_INTERNAL_PASTED(...) PURLIN_INTERNAL_PASTED_EXPANDED(__VA_ARGS__)
#define PURLIN_INTERNAL_PASTED_EXPANDED(...) PURLIN_INTERNAL_GONE_##__VA_ARGS__
#define PURLIN_INTERNAL_GONE_PURLIN_INTERNAL_TAKE

#endif  // PURLIN_STATUS_MACROS_H_
