// Purlin: cancellation of work by a token.
//
// ```cpp
// purlin::CancelSource stop("request 7");
// const purlin::CancelToken token = stop.token();
// const purlin::CancelRegistration registration = token.OnCancel([](const purlin::Status&) { /* wake a reader */ });
// stop.Cancel(purlin::AbortedError("the client has disconnected"));  // the callback runs here
// if (token.IsCancelled()) return token.status();
// ```
//
// States of a token: live, then cancelled (a source cancelled it, with a reason) or retired (the last source was
// destroyed, so that it can never be cancelled); neither changes again. A child is cancelled with its parent, not the
// other way round. In a process that was made by fork(), live tokens are retired.
//
// The thread that cancels runs, under no lock: the waiters of the token's event, then its callbacks in the order in
// which they were registered, then the same for each child. Chains of children need no stack.
#ifndef PURLIN_CANCEL_H_
#define PURLIN_CANCEL_H_

#include <type_traits>
#include <utility>

#include "purlin/event.h"
#include "purlin/export.h"
#include "purlin/internal/callback.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/handle.h"
#include "purlin/label.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

namespace internal {
struct CancelSourceRep;
struct CancelTokenRep;
struct CancelRegistrationRep;
}  // namespace internal

/// A callback's registration with a token; destroying it removes the callback. Move-only, one word.
class [[nodiscard]] CancelRegistration final
    : public internal::Handle<CancelRegistration, internal::CancelRegistrationRep> {
 public:
  /// No registration.
  CancelRegistration() noexcept = default;
  /// Leaves `other` empty.
  CancelRegistration(CancelRegistration&& other) noexcept = default;
  /// Removes the callback that was registered here.
  CancelRegistration& operator=(CancelRegistration&& other) noexcept = default;
  /// Removes the callback and destroys it, if it was not called. Does not wait for a callback that runs on another
  /// thread; may be destroyed inside the callback.
  ~CancelRegistration() { static_cast<void>(Unregister()); }

  /// Removes the callback and destroys it now. False if it was called, is being called, or was destroyed before. Does
  /// not block.
  PURLIN_API bool Unregister() noexcept;

 private:
  using Handle::Handle;
};

/// The side that sees cancellation: one word, cheap to copy, any thread. The default token is never cancelled.
class CancelToken final : public internal::Handle<CancelToken, const internal::CancelTokenRep> {
 public:
  /// Never cancelled; allocates nothing.
  constexpr CancelToken() noexcept = default;
  /// Another reference to the same token.
  PURLIN_API CancelToken(const CancelToken& other) noexcept;
  /// Leaves `other` as the default token.
  CancelToken(CancelToken&& other) noexcept = default;
  /// See the constructors.
  CancelToken& operator=(const CancelToken& other) noexcept = default;
  /// See the constructors.
  CancelToken& operator=(CancelToken&& other) noexcept = default;
  PURLIN_API ~CancelToken();

  /// True once a source of this token, or of one of its parents, has cancelled. Never blocks.
  [[nodiscard]] PURLIN_API bool IsCancelled() const noexcept;
  /// True if it can never be cancelled: the default token, or one whose sources are gone.
  [[nodiscard]] PURLIN_API bool IsRetired() const noexcept;
  /// The reason if this is cancelled, else OK. Never blocks.
  [[nodiscard]] PURLIN_API Status status() const noexcept;
  /// Happens when the token is cancelled; fails with kFailedPrecondition when it is retired.
  PURLIN_API Event event() const noexcept;

  /// Calls `callback(reason)` or `callback()` when the token is cancelled: on the thread that cancels, or on this
  /// thread at once if the token is cancelled already. If callbacks cancel further tokens, calls beyond 32 deep run
  /// when the outer ones have returned, so any number of them needs a small stack. The callback is destroyed uncalled
  /// with the registration, or when the token is retired. An exception is reported and the other callbacks run. An
  /// empty std::function or a null function pointer is ignored, and the registration is empty.
  template <typename F>
  CancelRegistration OnCancel(F&& callback) const {
    using Closure = std::decay_t<F>;
    if (internal::IsEmptyCallable(callback)) return CancelRegistration();
    return OnCancelRaw(internal::MakeCallback(
        [closure = Closure(std::forward<F>(callback))](const internal::StatusRep* error, const void*) mutable {
          Status reason = Status::FromRep(error);
          if constexpr (std::is_invocable_v<Closure&, const Status&>) {
            closure(reason);
          } else {
            static_assert(std::is_invocable_v<Closure&>, "a callback is called as f(const purlin::Status&) or f()");
            closure();
          }
        }));
  }

 private:
  using Handle::Handle;

  PURLIN_API CancelRegistration OnCancelRaw(internal::Callback callback) const;
};

/// The side that cancels. Copies share it; destroying one cancels nothing, and destroying the last one retires its
/// tokens.
class CancelSource final : public internal::Handle<CancelSource, const internal::CancelSourceRep> {
 public:
  /// A source without a parent: only its holders cancel it. `label` (static storage) names it in errors.
  explicit CancelSource(Label label = Label("cancellation")) noexcept : CancelSource(CancelToken(), label) {}
  /// A source that is also cancelled when `parent` is, with the same reason; at once if that has happened.
  PURLIN_API explicit CancelSource(const CancelToken& parent, Label label = Label("cancellation")) noexcept;

  /// Another handle to the same source.
  PURLIN_API CancelSource(const CancelSource& other) noexcept;
  /// Leaves `other` empty: its token() is the default one and its Cancel() returns false.
  CancelSource(CancelSource&& other) noexcept = default;
  /// See the constructors.
  CancelSource& operator=(const CancelSource& other) noexcept = default;
  /// See the constructors.
  CancelSource& operator=(CancelSource&& other) noexcept = default;
  PURLIN_API ~CancelSource();

  /// Another token of this source.
  [[nodiscard]] PURLIN_API CancelToken token() const noexcept;
  /// Cancels the tokens and their children for `reason` (OK counts as a kCancelled that names the source), and returns
  /// when the callbacks have returned. Called by a callback that is more than 32 deep, it returns at once, and its
  /// callbacks run when the outer ones have returned. False, and nothing changes, if it was cancelled before.
  PURLIN_API bool Cancel(Status reason = OkStatus()) const noexcept;

 private:
  using Handle::Handle;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CANCEL_H_
