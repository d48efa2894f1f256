// Purlin: the right and the duty to provide the memory of a buffer later.
//
//   auto channel = purlin::RawBuffer::CreateChannel(space, size_bytes);
//   auto& [buffer, promise] = *channel;
//   consumer.Take(buffer);                        // copies may be asked for at once; they wait
//   purlin::Status status = promise.Allocate();   // the time has come
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_RAW_BUFFER_PROMISE_H_
#define PURLIN_RAW_BUFFER_PROMISE_H_

#include <utility>

#include "purlin/alloc_options.h"
#include "purlin/export.h"
#include "purlin/internal/handle.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct RawBufferPromiseRep;
}  // namespace internal

class RawBuffer;

/// Made by RawBuffer::CreateChannel. States: open, then spent, by the first of Fulfil, Allocate and Fail that is taken.
/// A spent or moved-from promise answers kFailedPrecondition. Move-only, one word; one thread at a time. None of its
/// functions blocks; waiters of the buffer run here. When the client has ended (Client::Shutdown), the buffer has
/// failed, and they change nothing about that.
class [[nodiscard]] RawBufferPromise final : public internal::Handle<RawBufferPromise, internal::RawBufferPromiseRep> {
 public:
  /// Leaves `other` spent.
  RawBufferPromise(RawBufferPromise&& other) noexcept = default;
  /// As if destroying what was here.
  RawBufferPromise& operator=(RawBufferPromise&& other) noexcept = default;
  /// If it is open, the buffer fails with kInternal, which says so.
  PURLIN_API ~RawBufferPromise();

  /// The buffer gets the memory of `memory`, which it shares and keeps from now on; that may itself be there later, and
  /// if it fails, so does the buffer. kInvalidArgument, and the promise stays open: `memory` has another size, or lies
  /// in another memory space. kFailedPrecondition: spent.
  PURLIN_API Status Fulfil(const RawBuffer& memory);
  /// The buffer gets new memory; with kWait perhaps later than this returns. kResourceExhausted, and the buffer has
  /// failed with that too: there is not so much. kInvalidArgument, and the promise stays open: no such policy.
  /// kFailedPrecondition: spent.
  PURLIN_API Status Allocate(OomPolicy oom = OomPolicy::kFail);
  /// The buffer has failed with `error`, and so do copies that wait for it. OK counts as kInternal: a buffer without
  /// memory is not well. kFailedPrecondition: spent.
  PURLIN_API Status Fail(Status error);

 private:
  using Handle::Handle;
};

static_assert(sizeof(RawBufferPromise) == sizeof(void*), "a RawBufferPromise is one word");

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_RAW_BUFFER_PROMISE_H_
