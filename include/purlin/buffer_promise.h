// Purlin: a promise that provides the content of an array later.
//
// ```cpp
// #include "purlin/buffer.h"
//
// purlin::Status Provide(const purlin::Buffer& result, float* destination, std::size_t size_bytes) {
//   auto channel = purlin::Buffer::CreateChannel(result.shape(), result.memory_space());
//   if (!channel.ok()) return channel.status();
//   auto& [buffer, promise] = *channel;
//   const purlin::Event copied = buffer.CopyToHost(destination, size_bytes);  // waits until the array is provided
//   purlin::Status status = promise.Fulfil(result);                           // donates `result`
//   if (!status.ok()) status.Update(promise.Fail(status));
//   return copied.Wait();
// }
// ```
#ifndef PURLIN_BUFFER_PROMISE_H_
#define PURLIN_BUFFER_PROMISE_H_

#include <utility>

#include "purlin/export.h"
#include "purlin/internal/handle.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct BufferPromiseRep;
}  // namespace internal

class Buffer;

/// Made by Buffer::CreateChannel. States: open, then spent, by the first of Fulfil and Fail that takes effect. A spent
/// or moved-from promise returns kFailedPrecondition. Move-only, one word; one thread at a time. Waiters of the buffer
/// run on the calling thread.
class [[nodiscard]] BufferPromise final : public internal::Handle<BufferPromise, internal::BufferPromiseRep> {
 public:
  /// Leaves `other` spent.
  BufferPromise(BufferPromise&& other) noexcept = default;
  /// As if destroying what was here.
  BufferPromise& operator=(BufferPromise&& other) noexcept = default;
  /// If it is open, the buffer fails, naming the unfulfilled promise.
  PURLIN_API ~BufferPromise();

  /// Donates `source`, whose memory the buffer gets; it becomes ready, or fails, as `source` does. Blocks only for
  /// usage holds of `source`. Later errors of `source` name `location`. Errors leave the promise open and `source` as
  /// it was. kInvalidArgument: another shape, layout or memory space; the memory that this promise is to provide; or as
  /// Buffer::Donate. kFailedPrecondition: spent.
  PURLIN_API Status Fulfil(const Buffer& source, SourceLocation location = SourceLocation::Current());
  /// The buffer has failed with `error`, and so do copies that wait for it. OK counts as kInternal, made at
  /// `location`. Never blocks. kFailedPrecondition: spent.
  PURLIN_API Status Fail(Status error, SourceLocation location = SourceLocation::Current());

 private:
  using Handle::Handle;
};

static_assert(sizeof(BufferPromise) == sizeof(void*), "a BufferPromise is one word");

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_BUFFER_PROMISE_H_
