// Purlin: what a handle without an object answers (purlin/purlin.h has the rule).
#ifndef PURLIN_CPP_INTERNAL_GONE_H_
#define PURLIN_CPP_INTERNAL_GONE_H_

#include <string>

#include "cpp/internal/functions.h"
#include "purlin/event.h"
#include "purlin/internal/callback.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

// Out of line, so that a check for an object costs the check alone.

/// The error of a `what` that was moved from, released or given away.
__attribute__((noinline, cold)) inline Status Gone(const char* what) {
  return FailedPreconditionError(std::string("this ") + what + " was moved from, released or given away",
                                 SourceLocation());
}

/// An event that has failed with that.
__attribute__((noinline, cold)) inline Event GoneEvent(const char* what) {
  return Event::Adopt(purlin_event_new_error(Gone(what).ReleaseRep(), SourceLocation()));
}

/// That error, with which `callback` is called too. The callback is taken over and may be null.
__attribute__((noinline, cold)) inline Status GoneAndTold(const char* what, const Callback* callback) {
  Status gone = Gone(what);
  if (callback != nullptr) callback->invoke(callback->data, true, Status(gone).ReleaseRep(), nullptr);
  return gone;
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_GONE_H_
