// Purlin: an array on a device: element type, shape, bytes, and an event that says when they are there.
//
// Shapes are [dim0, dim1, ...], dense and row-major; no dimensions means a scalar, a dimension of 0 an empty array.
#ifndef PURLIN_BUFFER_H_
#define PURLIN_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "purlin/device.h"
#include "purlin/dtype.h"
#include "purlin/event.h"
#include "purlin/export.h"
#include "purlin/raw_buffer.h"
#include "purlin/span.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct BufferRep;
}  // namespace internal

/// How long the host memory given to Buffer::FromHost stays readable and unchanged. PJRT's numbers.
enum class HostBufferSemantics : int {
  /// Only until the call returns: the bytes are copied before that.
  kImmutableOnlyDuringCall = 0,
  /// Until the buffer's ready_event(): the copy may run behind.
  kImmutableUntilTransferCompletes = 1,
};

/// A reference to an array on a device. One word; copies refer to the same array. Immutable once ready.
class Buffer final {
 public:
  /// Copies a dense row-major array from the host into `memory_space`. kInvalidArgument, naming the values: a negative
  /// dimension, a product that overflows, `size_bytes` != product(dims) * ByteWidth(dtype), null `data` with
  /// size_bytes > 0, an unknown dtype. kResourceExhausted: no memory. Blocks for the copy under
  /// kImmutableOnlyDuringCall, never otherwise.
  PURLIN_API static StatusOr<Buffer> FromHost(
      const void* data, std::size_t size_bytes, DType dtype, Span<const std::int64_t> dims,
      const MemorySpace& memory_space, HostBufferSemantics semantics = HostBufferSemantics::kImmutableOnlyDuringCall);

  /// Another reference to the same array.
  PURLIN_API Buffer(const Buffer& other) noexcept;
  /// `other` may only be assigned to or destroyed.
  Buffer(Buffer&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}
  /// See the constructors.
  Buffer& operator=(Buffer other) noexcept {
    std::swap(rep_, other.rep_);
    return *this;
  }
  PURLIN_API ~Buffer();

  /// Element type.
  [[nodiscard]] PURLIN_API DType dtype() const noexcept;
  /// Dimensions; the span lives as long as a reference to the buffer.
  [[nodiscard]] PURLIN_API Span<const std::int64_t> dims() const noexcept;
  /// product(dims) * ByteWidth(dtype).
  [[nodiscard]] PURLIN_API std::size_t on_device_size_bytes() const noexcept;
  /// Where it is.
  [[nodiscard]] PURLIN_API MemorySpace memory_space() const noexcept;
  /// The device of memory_space().
  [[nodiscard]] PURLIN_API Device device() const noexcept;

  /// Happens when the bytes are there; fails with why they will never be. Stays valid after Delete().
  [[nodiscard]] PURLIN_API Event ready_event() const noexcept;

  /// Copies the whole array to `destination` once it is ready. `destination` must stay writable until the event. Fails
  /// with kInvalidArgument: `size_bytes` != on_device_size_bytes() (both named), null destination, or "Buffer has been
  /// deleted or donated."; with the buffer's own error if it never became ready.
  [[nodiscard]] PURLIN_API Event CopyToHost(void* destination, std::size_t size_bytes) const;
  /// A new buffer in the default memory space of `device` (same client) that becomes ready after this one and the copy,
  /// or fails with this one's error. kInvalidArgument: deleted, or another client's device. kResourceExhausted: no
  /// memory there.
  PURLIN_API StatusOr<Buffer> CopyToDevice(const Device& device) const;
  /// As CopyToDevice, to any memory space of the same client.
  PURLIN_API StatusOr<Buffer> CopyToMemorySpace(const MemorySpace& memory_space) const;

  /// The bytes themselves, for those who compute on them: read them only after ready_event(). kInvalidArgument:
  /// deleted.
  PURLIN_API StatusOr<RawBuffer> RawAlias() const;

  /// Gives the memory up, through every reference; work in flight keeps what it needs. Idempotent; never blocks.
  PURLIN_API void Delete() const noexcept;
  /// True after Delete().
  [[nodiscard]] PURLIN_API bool IsDeleted() const noexcept;

  /// For Purlin's own files.
  static Buffer Adopt(const internal::BufferRep* rep) noexcept { return Buffer(rep); }
  /// For Purlin's own files.
  const internal::BufferRep* rep() const noexcept { return rep_; }

 private:
  explicit Buffer(const internal::BufferRep* rep) noexcept : rep_(rep) {}
  const internal::BufferRep* rep_;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_BUFFER_H_
