// Purlin: asking work to stop.
//
//   purlin::CancelSource stop("request 7");
//   purlin::TaskOptions options;
//   options.cancel = stop.token();
//   purlin::Status status = runner.ExecuteWith([] { Multiply(); }, options);
//   stop.Cancel(purlin::AbortedError("the client went away"));
//
// States of a token: live, then cancelled (somebody asked, for a reason) or retired (the last source went away, so that
// nobody can ask any more); neither changes again. A child is cancelled with its parent, not the other way round. In a
// process that was made by fork(), what was live is retired.
//
// Whoever cancels runs, on its own thread and under no lock: the waiters of the token's event, then its callbacks in
// the order in which they were registered, then the same for each child. Chains of children need no stack.
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

/// A callback's place in the list of a token; destroying it takes the callback out. Move-only, one word.
class [[nodiscard]] CancelRegistration final
    : public internal::Handle<CancelRegistration, internal::CancelRegistrationRep> {
 public:
  /// Holds no place.
  CancelRegistration() noexcept = default;
  /// Leaves `other` without a place.
  CancelRegistration(CancelRegistration&& other) noexcept = default;
  /// Takes out the callback that was here.
  CancelRegistration& operator=(CancelRegistration&& other) noexcept = default;
  /// Takes the callback out and destroys it, if it was not called. Does not wait for a callback that another thread is
  /// in; may be destroyed inside the callback.
  ~CancelRegistration() { static_cast<void>(Unregister()); }

  /// Takes the callback out and destroys it now. False if it was called, is being called, or was destroyed before. Does
  /// not block.
  PURLIN_API bool Unregister() noexcept;

 private:
  using Handle::Handle;
};

/// The side that listens: one word, cheap to copy, any thread. The default token is never cancelled.
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
  /// Happens when the token is cancelled; fails with kFailedPrecondition when nobody is left who could cancel it.
  PURLIN_API Event event() const noexcept;

  /// Calls `callback(reason)` or `callback()` when the token is cancelled: on the thread that cancels, or here and now
  /// if that has happened; where callbacks cancel in turn, more than 32 deep, when those have returned, so any number
  /// of them needs a small stack. It is destroyed uncalled with the registration, or when nobody is left who could
  /// cancel. An exception is reported and the other callbacks run. An empty std::function or a null function pointer is
  /// nothing to do, and has no place.
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

/// The side that asks. Copies share it; destroying one cancels nothing, and destroying the last one retires its tokens.
class CancelSource final : public internal::Handle<CancelSource, const internal::CancelSourceRep> {
 public:
  /// A source that nobody cancels but its holders. `label` (static storage) names it in errors.
  explicit CancelSource(Label label = Label("cancellation")) noexcept : CancelSource(CancelToken(), label) {}
  /// A source that is also cancelled when `parent` is, with the same reason; at once if that has happened.
  PURLIN_API explicit CancelSource(const CancelToken& parent, Label label = Label("cancellation")) noexcept;

  /// Another handle to the same source.
  PURLIN_API CancelSource(const CancelSource& other) noexcept;
  /// Leaves `other` empty: its token() is the default one and its Cancel() answers false.
  CancelSource(CancelSource&& other) noexcept = default;
  /// See the constructors.
  CancelSource& operator=(const CancelSource& other) noexcept = default;
  /// See the constructors.
  CancelSource& operator=(CancelSource&& other) noexcept = default;
  PURLIN_API ~CancelSource();

  /// Another token of this source.
  [[nodiscard]] PURLIN_API CancelToken token() const noexcept;
  /// Cancels the tokens and their children for `reason` (OK counts as a kCancelled that names the source), and returns
  /// when the callbacks have; called by callbacks that are more than 32 deep, these run when those have returned.
  /// False, and nothing changes, if that was done before.
  PURLIN_API bool Cancel(Status reason = OkStatus()) const noexcept;

 private:
  using Handle::Handle;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CANCEL_H_
