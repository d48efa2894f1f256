// Purlin: the current user context, and closures that carry one. Not for users; see user_context.h.
//
// A context is known by the address of its number, which is the first word of its memory. This thread's state owns one
// reference to what is current, a scope the one that it displaced: rust/async/src/user_context/scope.rs.
#ifndef PURLIN_INTERNAL_USER_CONTEXT_H_
#define PURLIN_INTERNAL_USER_CONTEXT_H_

#include <cstdint>
#include <type_traits>
#include <utility>

#include "purlin/export.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/call_once.h"
#include "purlin/internal/thread_state.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// One more reference; not null.
PURLIN_API void UserContextRetain(const std::uint64_t* context) noexcept;
/// One reference less; not null. The last runs the destructor of the origin's closure.
PURLIN_API void UserContextRelease(const std::uint64_t* context) noexcept;
/// Takes over `error` and gives it back with that number, unless it has one.
PURLIN_API const StatusRep* AnnotateError(const StatusRep* error, std::uint64_t context_id) noexcept;

/// An owned reference, or null.
class UserContextRef final {
 public:
  /// Takes over a reference.
  explicit UserContextRef(const std::uint64_t* owned) noexcept : context_(owned) {}
  UserContextRef(const UserContextRef& other) noexcept : context_(other.context_) {
    if (context_ != nullptr) UserContextRetain(context_);
  }
  UserContextRef(UserContextRef&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}
  UserContextRef& operator=(UserContextRef other) noexcept {
    std::swap(context_, other.context_);
    return *this;
  }
  ~UserContextRef() {
    if (context_ != nullptr) UserContextRelease(context_);
  }

  /// A reference of its own to this thread's current context.
  static UserContextRef Current() noexcept {
    const std::uint64_t* context = ThisThread().context;
    if (context != nullptr) UserContextRetain(context);
    return UserContextRef(context);
  }

  const std::uint64_t* get() const noexcept { return context_; }
  const std::uint64_t* Release() noexcept { return std::exchange(context_, nullptr); }

 private:
  const std::uint64_t* context_;
};

/// While it lives, `context` (null: none) is current on this thread.
class ContextScope final {
 public:
  explicit ContextScope(UserContextRef context) noexcept
      : displaced_(std::exchange(ThisThread().context, context.Release())) {}
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope() {
    // Restored first: the end of a context may run code of the user's, which sees what is current.
    UserContextRef ended(std::exchange(ThisThread().context, displaced_));
  }

 private:
  const std::uint64_t* displaced_;  // Owned.
};

/// Whether closures that are handed in here must carry a context.
inline __attribute__((always_inline)) bool InContext() noexcept {
  return __builtin_expect(static_cast<long>(ThisThread().context != nullptr), 0L) != 0;
}

/// A closure that runs in a context. Called as the closure is.
template <typename F>
class ContextClosure final {
 public:
  template <typename G>
  ContextClosure(UserContextRef context, G&& closure) noexcept(std::is_nothrow_constructible_v<F, G&&>)
      : context_(std::move(context)), closure_(std::forward<G>(closure)) {}

  template <typename... Args, typename = std::enable_if_t<std::is_invocable_v<F&, Args...>>>
  decltype(auto) operator()(Args&&... args) & {
    ContextScope scope(context_);
    return closure_(std::forward<Args>(args)...);
  }
  template <typename... Args, typename = std::enable_if_t<kCallableOnce<F, Args...>>>
  decltype(auto) operator()(Args&&... args) && {
    ContextScope scope(context_);
    return CallOnce(closure_, std::forward<Args>(args)...);
  }
  const F& closure() const noexcept { return closure_; }

 private:
  UserContextRef context_;  // Outlives the closure.
  F closure_;
};

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_USER_CONTEXT_H_
