// Purlin: a promise that provides the memory of a buffer later.
//
// ```cpp
// #include "purlin/raw_buffer.h"
//
// purlin::Status Later(const purlin::MemorySpace& memory, const void* source, std::size_t size_bytes) {
//   auto channel = purlin::RawBuffer::CreateChannel(memory, size_bytes);
//   if (!channel.ok()) return channel.status();
//   auto& [buffer, promise] = *channel;
//   const purlin::Event copied = buffer.CopyFromHost(source, 0, size_bytes);  // waits for the memory
//   purlin::Status status = promise.Allocate();
//   return status.ok() ? copied.Wait() : status;
// }
// ```
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_RAW_BUFFER_PROMISE_H_
#define PURLIN_RAW_BUFFER_PROMISE_H_

#include <utility>

#include "purlin/alloc_options.h"
#include "purlin/export.h"
#include "purlin/internal/handle.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct RawBufferPromiseRep;
}  // namespace internal

class RawBuffer;

/// Made by RawBuffer::CreateChannel. States: open, then spent, by the first of Fulfil, Allocate and Fail that takes
/// effect. A spent or moved-from promise returns kFailedPrecondition. Move-only, one word; one thread at a time. None
/// of its functions blocks; waiters of the buffer run on the calling thread. When the client has ended
/// (Client::Shutdown), the buffer has failed, and these functions do not change that.
class [[nodiscard]] RawBufferPromise final : public internal::Handle<RawBufferPromise, internal::RawBufferPromiseRep> {
 public:
  /// Leaves `other` spent.
  RawBufferPromise(RawBufferPromise&& other) noexcept = default;
  /// As if destroying what was here.
  RawBufferPromise& operator=(RawBufferPromise&& other) noexcept = default;
  /// If it is open, the buffer fails with kInternal, naming the unfulfilled promise.
  PURLIN_API ~RawBufferPromise();

  /// The buffer gets the memory of `memory`, which it shares and keeps from now on; that may itself be there later, and
  /// if it fails, so does the buffer. kInvalidArgument, and the promise stays open: `memory` has another size, or lies
  /// in another memory space. kFailedPrecondition: spent.
  PURLIN_API Status Fulfil(const RawBuffer& memory);
  /// The buffer gets new memory; with kWait perhaps later than this returns. kResourceExhausted: there is no room, and
  /// the buffer has failed with this error, too. kInvalidArgument, and the promise stays open: no such policy.
  /// kFailedPrecondition: spent.
  PURLIN_API Status Allocate(OomPolicy oom = OomPolicy::kFail);
  /// The buffer has failed with `error`, and so do copies that wait for it. OK counts as kInternal, made at
  /// `location`. kFailedPrecondition: spent.
  PURLIN_API Status Fail(Status error, SourceLocation location = SourceLocation::Current());

 private:
  using Handle::Handle;
};

static_assert(sizeof(RawBufferPromise) == sizeof(void*), "a RawBufferPromise is one word");

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_RAW_BUFFER_PROMISE_H_
