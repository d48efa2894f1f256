#include "purlin/buffer_promise.h"

#include <utility>

#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "purlin-bridge/src/buffer_promise.rs.h"
#include "purlin/buffer.h"

namespace purlin {
inline namespace v0 {

// A waiter that a call runs may destroy the promise: nothing of it is touched after the call.

BufferPromise::~BufferPromise() { internal::GiveUp<ffi::buffer_promise_release>(rep_); }

Status BufferPromise::Fulfil(const Buffer& source, SourceLocation location) {
  if (source.rep() == nullptr) return internal::Gone("Buffer");

  return Status::FromRep(ffi::buffer_promise_fulfil(rep_, source.rep(), location));
}

Status BufferPromise::Fail(Status error, SourceLocation location) {
  error = internal::NotOk(std::move(error), "BufferPromise::Fail", location);
  return Status::FromRep(ffi::buffer_promise_fail(rep_, std::move(error).ReleaseRep()));
}

}  // namespace v0
}  // namespace purlin
