#include "purlin/raw_buffer_promise.h"

#include <cstdint>
#include <utility>

#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "purlin-bridge/src/raw_buffer_promise.rs.h"
#include "purlin/raw_buffer.h"

namespace purlin {
inline namespace v0 {

// A waiter that a call runs may destroy the promise: nothing of it is touched after the call.

RawBufferPromise::~RawBufferPromise() { internal::GiveUp<ffi::raw_buffer_promise_release>(rep_); }

Status RawBufferPromise::Fulfil(const RawBuffer& memory) {
  if (memory.rep() == nullptr) return internal::Gone("RawBuffer");

  return Status::FromRep(ffi::raw_buffer_promise_fulfil(rep_, memory.rep()));
}

Status RawBufferPromise::Allocate(OomPolicy oom) {
  return Status::FromRep(ffi::raw_buffer_promise_allocate(rep_, static_cast<std::int32_t>(oom)));
}

Status RawBufferPromise::Fail(Status error, SourceLocation location) {
  error = internal::NotOk(std::move(error), "RawBufferPromise::Fail", location);
  return Status::FromRep(ffi::raw_buffer_promise_fail(rep_, std::move(error).ReleaseRep()));
}

}  // namespace v0
}  // namespace purlin
