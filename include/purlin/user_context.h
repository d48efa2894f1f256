// Purlin: user contexts, which name the code on whose behalf work is done.
//
// ```cpp
// const purlin::UserContextScope scope(purlin::UserContext::Create("train.py:42"));
// const purlin::Status error =
//     purlin::AnnotateWithUserContext(purlin::InternalError("no answer"), purlin::CurrentUserContext());
// const purlin::Status shown = purlin::ExpandUserContexts(error);  // "no answer\n  in user context 7: train.py:42"
// ```
//
// A context is a number and a text that is rendered only when it is requested. It is carried: a waiter that is attached
// and a task that is made while a context is current run with that context current, on whichever thread; where none is
// current, they run with none. An event remembers the number of the context in which it was made, and when it fails its
// error gets that number (or else that of the context current there) as the payload kUserContextPayload. Copies of the
// error keep it. Where no context is current, all this costs a load and a branch.
//
// Everything here may be called on any thread and never blocks, unless an origin of the user's does.
#ifndef PURLIN_USER_CONTEXT_H_
#define PURLIN_USER_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/export.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/guard.h"
#include "purlin/internal/user_context.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// The payload of an error that holds the numbers of its contexts: decimal, separated by commas, the outermost first.
inline constexpr std::string_view kUserContextPayload = "purlin/user_context";

/// A reference to a context, or to none: one word. Copying counts atomically; contexts never change. Distinct objects
/// may be used on different threads freely, as shared_ptrs may.
class [[nodiscard]] UserContext final {
 public:
  /// None.
  UserContext() noexcept : ref_(nullptr) {}

  /// A basic context. `origin` is text (copied; bytes that are not UTF-8 are replaced), or a closure `std::string-like
  /// origin()`, copyable, that is called each time the text is requested: on the requesting thread (so on several at
  /// once), under no lock of Purlin, so it may take locks of its own. It is destroyed with the context, on any thread.
  /// If it throws, that is reported, and the text says so; the text also says so if it is an empty std::function or a
  /// null function pointer.
  template <typename Origin>
  static UserContext Create(Origin&& origin) {
    return Annotated(UserContext(), std::forward<Origin>(origin));
  }
  /// A context for work that is done within `parent`; reads "origin (in PARENT)". A `parent` of none gives a basic
  /// context.
  template <typename Origin>
  static UserContext Annotated(const UserContext& parent, Origin&& origin) {
    if constexpr (std::is_convertible_v<Origin&&, std::string_view>) {
      return NewText(parent, origin);
    } else {
      using Closure = std::decay_t<Origin>;
      static_assert(std::is_invocable_r_v<std::string, Closure&>, "an origin is text, or is called as std::string f()");
      if (internal::IsEmptyCallable(origin)) return NewText(parent, "(the closure that renders this context is empty)");
      return NewLazy(parent, [closure = Closure(std::forward<Origin>(origin))]() mutable {
        std::string text = "(the closure that renders this context threw)";
        internal::Guarded("user context", [&] { text = closure(); });
        return text;
      });
    }
  }
  /// A context for `outer`, which requested `inner`, another system's context; reads "OUTER -> INNER". If one is none,
  /// the other one itself.
  PURLIN_API static UserContext Chained(const UserContext& outer, const UserContext& inner);
  /// All of `contexts` at once, for work that was merged; reads "fused(A | B)". Nones are left out; of none, none; of
  /// one, that one itself.
  PURLIN_API static UserContext Fused(Span<const UserContext> contexts);
  /// A context whose number was made elsewhere, for instance by another process: the living one of that number if there
  /// is one, else a new basic one with that text. kInvalidArgument: `id` is 0.
  PURLIN_API static StatusOr<UserContext> WithId(std::uint64_t id, std::string_view origin);

  /// The living context of that number, or none.
  PURLIN_API static UserContext Lookup(std::uint64_t id);
  /// All living contexts, by their numbers.
  PURLIN_API static std::vector<UserContext> LookupAll();

  /// False for none.
  explicit operator bool() const noexcept { return ref_.get() != nullptr; }
  /// The number: no other context of this process has it, and most probably none of another process. 0 for none.
  [[nodiscard]] std::uint64_t id() const noexcept { return ref_.get() == nullptr ? 0 : *ref_.get(); }
  /// The text, rendered in this call; "" for none. It calls closures that were given as origins: do not call it under a
  /// lock that they take.
  [[nodiscard]] PURLIN_API std::string DebugString() const;

  /// The same context, or both none.
  friend bool operator==(const UserContext& a, const UserContext& b) noexcept { return a.ref_.get() == b.ref_.get(); }
  /// Not the same context.
  friend bool operator!=(const UserContext& a, const UserContext& b) noexcept { return !(a == b); }

  /// For Purlin's own files: takes over the reference.
  static UserContext Adopt(internal::UserContextRef ref) noexcept {
    UserContext context;
    context.ref_ = std::move(ref);
    return context;
  }
  /// For Purlin's own files: gives up the reference.
  internal::UserContextRef ReleaseRef() && noexcept { return std::move(ref_); }

 private:
  PURLIN_API static UserContext NewText(const UserContext& parent, std::string_view text);
  PURLIN_API static UserContext NewLazy(const UserContext& parent, std::function<std::string()> render);

  internal::UserContextRef ref_;
};

static_assert(sizeof(UserContext) == sizeof(void*), "a UserContext is one word");

/// The context that is current on this thread, or none.
inline UserContext CurrentUserContext() noexcept { return UserContext::Adopt(internal::UserContextRef::Current()); }

/// While it lives, `context` is current on this thread, or none is; then what was current before is again, also when
/// the scope is left by an exception. Scopes are local variables: they end on their thread, in reverse order.
class [[nodiscard]] UserContextScope final {
 public:
  /// Makes `context` current; holds it.
  explicit UserContextScope(UserContext context) noexcept : scope_(std::move(context).ReleaseRef()) {}
  UserContextScope(const UserContextScope&) = delete;
  UserContextScope& operator=(const UserContextScope&) = delete;

 private:
  internal::ContextScope scope_;
};

/// `closure`, to be called as before but with `context` current, for the user's own threads. Waiters and tasks do this
/// by themselves. The result is copyable if `closure` is; if `closure` is empty, every function that takes closures
/// sees the result as empty.
template <typename F>
auto WithUserContext(UserContext context, F&& closure) {
  return internal::ContextClosure<std::decay_t<F>>(std::move(context).ReleaseRef(), std::forward<F>(closure));
}

/// `error` with the number of `context` as its payload (of a chain: its numbers, the outermost first), unless it has
/// that payload. OK, and an error given none, stay as they are. Events that fail do this by themselves.
PURLIN_API Status AnnotateWithUserContext(Status error, const UserContext& context);

/// `error` with the texts of its contexts in the message, in place of the payload, for messages to people: "MESSAGE\n
/// in user context NUMBER: TEXT", or "..., which has expired" for a context that has ended. Renders, so see
/// UserContext::DebugString. An error without contexts, and OK, stay as they are.
PURLIN_API Status ExpandUserContexts(const Status& error);

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_USER_CONTEXT_H_
