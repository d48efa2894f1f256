// Purlin: no C++ exception crosses into the library. Not for users.
#ifndef PURLIN_INTERNAL_GUARD_H_
#define PURLIN_INTERNAL_GUARD_H_

#include <exception>
#include <type_traits>
#include <utility>

#include "purlin/internal/abi.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

#if defined(__cpp_exceptions)
using WithExceptions = std::true_type;
#else
using WithExceptions = std::false_type;
#endif

/// The text of an exception; some have null.
inline const char* WhatOf(const std::exception& e) noexcept {
  const char* what = e.what();
  return what == nullptr ? "(what() is null)" : what;
}

/// Calls `f` and reports what it throws; true if it threw nothing. The second parameter keeps translation units with
/// and without exceptions apart, so that linking both breaks no one-definition rule.
template <typename F, typename Mode = WithExceptions>
bool GuardedOk(const char* place, F&& f, Mode = Mode()) noexcept {
#if defined(__cpp_exceptions)
  try {
    std::forward<F>(f)();
  } catch (const std::exception& e) {
    ReportException(place, WhatOf(e));
    return false;
  } catch (...) {
    ReportException(place, nullptr);
    return false;
  }
#else
  static_cast<void>(place);
  std::forward<F>(f)();
#endif
  return true;
}

/// GuardedOk for callers that ignore the result. Without exceptions it is the call itself: an instantiation less for
/// each closure.
template <typename F, typename Mode = WithExceptions>
void Guarded(const char* place, F&& f, Mode mode = Mode()) noexcept {
  if constexpr (Mode::value) {
    static_cast<void>(GuardedOk(place, std::forward<F>(f), mode));
  } else {
    static_cast<void>(place);
    std::forward<F>(f)();
  }
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_GUARD_H_
