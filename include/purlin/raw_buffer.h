// Purlin: untyped bytes in a memory space.
//
// Copies are asynchronous and return an Event. Ranges are formulas: a copy of `size_bytes` at `offset_bytes` is valid
// when offset_bytes + size_bytes <= on_device_size_bytes(), without overflow; size_bytes == 0 is valid and copies
// nothing. A copy starts after all of `dependencies`; if one fails, nothing is copied and the copy's event has that
// error. Copies that touch the same bytes are not ordered among themselves: say so with dependencies. A copy keeps
// device memory alive until it is done; host memory is the caller's to keep.
//
// A copy without unfinished dependencies and of at most 64 KiB (on the host backend) runs inside the call; others run
// on the client's runner.
#ifndef PURLIN_RAW_BUFFER_H_
#define PURLIN_RAW_BUFFER_H_

#include <cstddef>
#include <utility>

#include "purlin/device.h"
#include "purlin/event.h"
#include "purlin/export.h"
#include "purlin/span.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct RawBufferRep;
}  // namespace internal

/// A reference to a range of device memory. One word; copies and slices share the memory, the last one frees it.
class RawBuffer final {
 public:
  /// Allocates `size_bytes` (0 is allowed) in `memory_space`, aligned to at least 64 bytes, contents unspecified.
  /// kResourceExhausted, naming size, space and use: the memory is not there.
  PURLIN_API static StatusOr<RawBuffer> Allocate(const MemorySpace& memory_space, std::size_t size_bytes);

  /// Shares the memory.
  PURLIN_API RawBuffer(const RawBuffer& other) noexcept;
  /// `other` may only be assigned to or destroyed.
  RawBuffer(RawBuffer&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}
  /// See the constructors.
  RawBuffer& operator=(RawBuffer other) noexcept {
    std::swap(rep_, other.rep_);
    return *this;
  }
  PURLIN_API ~RawBuffer();

  /// Size of this range in bytes.
  [[nodiscard]] PURLIN_API std::size_t on_device_size_bytes() const noexcept;
  /// Where it is.
  [[nodiscard]] PURLIN_API MemorySpace memory_space() const noexcept;
  /// Address of the first byte if the host can reach the memory, else null (null backend). Valid while a reference to
  /// the memory lives. Reading and writing through it is ordered by events only.
  [[nodiscard]] PURLIN_API void* host_pointer() const noexcept;

  /// The bytes [offset_bytes, offset_bytes + size_bytes), sharing the memory. kOutOfRange, naming the three numbers, if
  /// offset_bytes + size_bytes > on_device_size_bytes().
  PURLIN_API StatusOr<RawBuffer> Slice(std::size_t offset_bytes, std::size_t size_bytes) const;

  /// Copies `size_bytes` from `source` to this buffer at `offset_bytes`. `source` must stay readable and unchanged
  /// until the event. Fails with kInvalidArgument (null source, size > 0), kOutOfRange, a dependency's error, or
  /// kCancelled (the copy needed the client's runner, which has shut down; one that runs inside the call does not).
  [[nodiscard]] PURLIN_API Event CopyFromHost(const void* source, std::size_t offset_bytes, std::size_t size_bytes,
                                              Span<const Event> dependencies = {}) const;
  /// Copies `size_bytes` at `offset_bytes` of this buffer to `destination`, which must stay writable and untouched
  /// until the event. Errors as CopyFromHost; kUnimplemented where a backend holds no bytes (null).
  [[nodiscard]] PURLIN_API Event CopyToHost(void* destination, std::size_t offset_bytes, std::size_t size_bytes,
                                            Span<const Event> dependencies = {}) const;
  /// Copies all of this buffer to the start of `destination`, in any memory space of the same client; overlapping
  /// ranges of one allocation are copied as by memmove. kInvalidArgument: on_device_size_bytes() > that of
  /// `destination`, or another client's buffer. Other errors as CopyFromHost.
  [[nodiscard]] PURLIN_API Event CopyTo(const RawBuffer& destination, Span<const Event> dependencies = {}) const;

  /// For Purlin's own files.
  static RawBuffer Adopt(const internal::RawBufferRep* rep) noexcept { return RawBuffer(rep); }
  /// For Purlin's own files.
  const internal::RawBufferRep* rep() const noexcept { return rep_; }

 private:
  explicit RawBuffer(const internal::RawBufferRep* rep) noexcept : rep_(rep) {}
  const internal::RawBufferRep* rep_;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_RAW_BUFFER_H_
