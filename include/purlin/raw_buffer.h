// Purlin: untyped bytes in a memory space.
//
// ```cpp
// purlin::Status RoundTrip(const purlin::MemorySpace& memory) {
//   const float values[] = {1, 2, 3, 4};
//   float back[4];
//   purlin::StatusOr<purlin::RawBuffer> buffer = purlin::RawBuffer::Allocate(memory, sizeof(values));
//   if (!buffer.ok()) return buffer.status();
//   const purlin::Event written = buffer->CopyFromHost(values, 0, sizeof(values));
//   return buffer->CopyToHost(back, 0, sizeof(back), {written}).Wait();  // the dependency orders the two copies
// }
// ```
//
// Copies are asynchronous and return an Event. Ranges are formulas: a copy of `size_bytes` at `offset_bytes` is valid
// when offset_bytes + size_bytes <= on_device_size_bytes(), without overflow; size_bytes == 0 is valid and copies
// nothing. A copy starts after all of `dependencies`; if one fails, nothing is copied and the copy's event has that
// error. Copies that touch the same bytes are not ordered among themselves: say so with dependencies. A copy keeps
// device memory alive until it has ended; the caller keeps host memory alive.
//
// The memory of a buffer may be there later than the buffer: Allocate can wait for room, and CreateChannel leaves the
// memory to a promise. Slices may be made and copies started at once; they wait for allocation_event(). Import makes a
// buffer over memory that Purlin does not own.
//
// A copy without unfinished dependencies and of at most 64 KiB (on the host backend) runs inside the call; others run
// on the client's runner, where workers that are idle take pieces of a copy of 4 MiB or more.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_RAW_BUFFER_H_
#define PURLIN_RAW_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/alloc_options.h"
#include "purlin/device.h"
#include "purlin/event.h"
#include "purlin/export.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/callback.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/guard.h"
#include "purlin/internal/handle.h"
#include "purlin/raw_buffer_promise.h"
#include "purlin/source_location.h"
#include "purlin/span.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct RawBufferRep;
}  // namespace internal

/// The bytes [offset_bytes, offset_bytes + size_bytes) of a buffer.
struct ByteRange {
  /// Where it begins.
  std::size_t offset_bytes = 0;
  /// How long it is; 0 is allowed.
  std::size_t size_bytes = 0;
};

static_assert(sizeof(ByteRange) == 16 && offsetof(ByteRange, offset_bytes) == 0 && offsetof(ByteRange, size_bytes) == 8,
              "ByteRange ABI");

/// Whether memory may be written.
enum class Mutability : std::int32_t {
  /// Read only.
  kImmutable = 0,
  /// Read and written.
  kMutable = 1,
};

/// A reference to a range of device memory. One word; copies and slices share the memory, the last one frees it.
class RawBuffer final : public internal::Handle<RawBuffer, const internal::RawBufferRep> {
 public:
  /// Allocates `size_bytes` (0 is allowed) in `memory_space`, as `options` say, aligned to at least
  /// MemorySpace::alignment_bytes(), contents unspecified. The memory may be there later than this returns, see
  /// allocation_event(). Never blocks, except in the client's hook, which kRetry calls on this thread. `location` names
  /// it in reports (memory_report.h). kResourceExhausted, with a report of all holders of the memory, also as the
  /// payload kMemoryReportTypeUrl: there is no room, and the allocation does not wait for it. kInvalidArgument: an
  /// alignment that is no power of two up to 1 GiB, a policy that does not exist, or a struct_size that no version has.
  /// Or the error of `options.after`.
  PURLIN_API static StatusOr<RawBuffer> Allocate(const MemorySpace& memory_space, std::size_t size_bytes,
                                                 const AllocOptions& options = AllocOptions(),
                                                 SourceLocation location = SourceLocation::Current());

  /// A buffer over `size_bytes` bytes at `address` that Purlin does not own: no copy, and not counted in the statistics
  /// of `memory_space`. Until `on_release()` is called, any thread may read these bytes (and write them if kMutable);
  /// all other writes must be ordered by events. `on_release` is called once, on the thread that ends the last use of
  /// the memory: a handle, a slice or a copy in flight. If on_release drops further imports, calls beyond 32 deep run
  /// when the outer ones have returned, so any number of them needs a small stack. A wait in it for the copy that
  /// releases the memory returns kFailedPrecondition, because that copy completes after on_release has returned. An
  /// exception from it is reported and swallowed. It is destroyed uncalled if this fails. An empty std::function, or a
  /// null function pointer, counts as none. kInvalidArgument: `address` is null or not aligned as the space needs for
  /// imports (16 bytes on the host), or the bytes end past the end of the address space, with the values named; or a
  /// Mutability that does not exist; or the memory is of another kind than the space, and what it is instead.
  /// kUnimplemented: the backend cannot use foreign memory in this space. `address` is the host's where the host
  /// reaches the space, and the device's elsewhere: what cuMemAlloc returned, say, for the space "device" of that GPU.
  /// `Mode` keeps translation units with and without exceptions apart: leave it alone.
  template <typename F, typename Mode = internal::WithExceptions>
  static StatusOr<RawBuffer> Import(const MemorySpace& memory_space, void* address, std::size_t size_bytes,
                                    Mutability mutability, F&& on_release) {
    using Closure = std::decay_t<F>;
    static_assert(std::is_invocable_v<Closure&>, "called as on_release()");
    if (internal::IsEmptyCallable(on_release)) return Import(memory_space, address, size_bytes, mutability);
    const internal::Callback callback = internal::MakeCallback(
        [closure = Closure(std::forward<F>(on_release))](const internal::StatusRep*, const void*) mutable {
          internal::Guarded("release of imported memory", [&closure] { closure(); });
        });
    return ImportRaw(memory_space, address, size_bytes, mutability, &callback);
  }
  /// As above, without on_release: for memory that outlives every use of it.
  static StatusOr<RawBuffer> Import(const MemorySpace& memory_space, void* address, std::size_t size_bytes,
                                    Mutability mutability) {
    return ImportRaw(memory_space, address, size_bytes, mutability, nullptr);
  }

  /// A buffer of `size_bytes` in `memory_space` without memory, and the promise that provides it: from another buffer,
  /// or by a later allocation, as an execution does for its outputs. Reports show `options.label` and `location`; the
  /// other options are not used. The buffer fails if the client ends before the promise is fulfilled; after
  /// Client::Shutdown it has failed with kFailedPrecondition from the beginning. kInvalidArgument: a policy that does
  /// not exist, or a struct_size that no version has.
  PURLIN_API static StatusOr<std::pair<RawBuffer, RawBufferPromise>> CreateChannel(
      const MemorySpace& memory_space, std::size_t size_bytes, const AllocOptions& options = AllocOptions(),
      SourceLocation location = SourceLocation::Current());

  /// Shares the memory.
  PURLIN_API RawBuffer(const RawBuffer& other) noexcept;
  /// Leaves `other` empty, see purlin.h.
  RawBuffer(RawBuffer&& other) noexcept = default;
  /// See the constructors.
  RawBuffer& operator=(const RawBuffer& other) noexcept = default;
  /// See the constructors.
  RawBuffer& operator=(RawBuffer&& other) noexcept = default;
  PURLIN_API ~RawBuffer();

  /// Size of this range in bytes.
  [[nodiscard]] PURLIN_API std::size_t on_device_size_bytes() const noexcept;
  /// Where it is.
  [[nodiscard]] PURLIN_API MemorySpace memory_space() const noexcept;
  /// Happens when the memory is there; fails with the reason if it never will be. Ready at once for most buffers.
  /// kCancelled if the last reference to the buffer is dropped while it waits.
  [[nodiscard]] PURLIN_API Event allocation_event() const noexcept;
  /// Whether its bytes may be written. Memory that was imported kImmutable may not, nor may slices of it. While the
  /// memory of a channel is not there, this is true; a copy to it that was started then fails with kInvalidArgument if
  /// the memory turns out to be immutable.
  [[nodiscard]] PURLIN_API bool is_mutable() const noexcept;
  /// Address of the first byte if the host can reach the memory, and it is there; else null (always on the null
  /// backend). Valid while a reference to the memory lives. Reading and writing through it is ordered by events only.
  [[nodiscard]] PURLIN_API void* host_pointer() const noexcept;
  /// Address of the first byte as the device sees it, on the null backend an imaginary one. Valid while a reference to
  /// the memory lives. kFailedPrecondition: the memory is not there yet, see allocation_event(). Or the memory's error.
  [[nodiscard]] PURLIN_API StatusOr<std::uintptr_t> device_pointer() const;

  /// The bytes [offset_bytes, offset_bytes + size_bytes), sharing the memory. kOutOfRange, naming the three numbers, if
  /// offset_bytes + size_bytes > on_device_size_bytes().
  PURLIN_API StatusOr<RawBuffer> Slice(std::size_t offset_bytes, std::size_t size_bytes) const;
  /// A Slice for each of `ranges`, in that order; they may overlap. All or none: kOutOfRange, as Slice, for the first
  /// that does not lie within.
  PURLIN_API StatusOr<std::vector<RawBuffer>> Slices(Span<const ByteRange> ranges) const;

  /// Keeps the memory at least until `event` is terminal, without a handle: for work that Purlin does not see.
  PURLIN_API void RetainUntil(const Event& event) const;

  /// Copies `size_bytes` from `source` to this buffer at `offset_bytes`. `source` must stay readable and unchanged
  /// until the event. Fails with kInvalidArgument (null source, size > 0; memory that may not be written), kOutOfRange,
  /// a dependency's error, the memory's error, or kCancelled (the copy needed the client's runner, which has shut down;
  /// a copy that runs inside the call does not need it).
  [[nodiscard]] PURLIN_API Event CopyFromHost(const void* source, std::size_t offset_bytes, std::size_t size_bytes,
                                              Span<const Event> dependencies = {}) const;
  /// Copies `size_bytes` at `offset_bytes` of this buffer to `destination`, which must stay writable and untouched
  /// until the event. Errors as CopyFromHost; kUnimplemented where a backend holds no bytes (null).
  [[nodiscard]] PURLIN_API Event CopyToHost(void* destination, std::size_t offset_bytes, std::size_t size_bytes,
                                            Span<const Event> dependencies = {}) const;
  /// Copies all of this buffer to the start of `destination`, in any memory space of the same client; overlapping
  /// ranges of one allocation are copied as by memmove. kInvalidArgument: on_device_size_bytes() > that of
  /// `destination`, another client's buffer, or one that may not be written. Other errors as CopyFromHost.
  [[nodiscard]] PURLIN_API Event CopyTo(const RawBuffer& destination, Span<const Event> dependencies = {}) const;
  /// Copies `size_bytes` at `offset_bytes` of this buffer to `destination` at `destination_offset_bytes`; otherwise as
  /// CopyTo. kOutOfRange, naming the numbers, if either range does not lie within its buffer.
  [[nodiscard]] PURLIN_API Event CopyRangeTo(std::size_t offset_bytes, const RawBuffer& destination,
                                             std::size_t destination_offset_bytes, std::size_t size_bytes,
                                             Span<const Event> dependencies = {}) const;

 private:
  using Handle::Handle;

  /// Takes over `on_release`, which may be null.
  PURLIN_API static StatusOr<RawBuffer> ImportRaw(const MemorySpace& memory_space, void* address,
                                                  std::size_t size_bytes, Mutability mutability,
                                                  const internal::Callback* on_release);
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_RAW_BUFFER_H_
