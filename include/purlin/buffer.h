// Purlin: an array on a device: element type, shape, bytes, and an event that says when they are there.
//
// ```cpp
// purlin::Status RoundTrip(const purlin::MemorySpace& memory) {
//   const float matrix[] = {1, 2, 3, 4};
//   purlin::StatusOr<purlin::Buffer> buffer =
//       purlin::Buffer::FromHost(matrix, sizeof(matrix), purlin::DType::kF32, {2, 2}, memory);
//   if (!buffer.ok()) return buffer.status();
//   float back[4];
//   return buffer->CopyToHost(back, sizeof(back)).Wait();
// }
// ```
//
// The shape never changes, and the bytes do not once the buffer is ready. Deleting, donating or releasing a buffer ends
// it for all its references; from then on, calls that need the memory fail with kInvalidArgument, "Buffer has been
// deleted or donated.", naming what ended it, its place (the caller's SourceLocation) and its age. "Gone" below stands
// for that. A buffer that failed before it had memory fails these calls with its own error.
//
// Every function may be called from every thread. A function that needs the memory blocks while the buffer is being
// donated, which is short (buffer_holds.h); a function that blocks for longer says so. Events' waiters run on the
// thread that completes them. Unsound shapes and layouts: see shape.h and layout.h.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_BUFFER_H_
#define PURLIN_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/alloc_options.h"
#include "purlin/buffer_holds.h"
#include "purlin/buffer_promise.h"
#include "purlin/device.h"
#include "purlin/dtype.h"
#include "purlin/event.h"
#include "purlin/export.h"
#include "purlin/future.h"
#include "purlin/host_buffer.h"
#include "purlin/internal/call_once.h"
#include "purlin/internal/callback.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/guard.h"
#include "purlin/internal/handle.h"
#include "purlin/label.h"
#include "purlin/layout.h"
#include "purlin/raw_buffer.h"
#include "purlin/shape.h"
#include "purlin/source_location.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct BufferRep;
struct HostAddressRep;
}  // namespace internal

struct FromHostResult;
struct ReleasedBuffer;

/// A reference to an array on a device. One word; copies refer to the same array. It keeps the client alive, and the
/// memory until the array ends.
class Buffer final : public internal::Handle<Buffer, const internal::BufferRep> {
 public:
  /// Copies a dense row-major array from the host into `memory_space`. kInvalidArgument, naming the values: a negative
  /// dimension, a product that overflows, `size_bytes` != product(dims) * HostByteWidth(dtype), null `data` with
  /// size_bytes > 0, an unknown dtype or semantics. kResourceExhausted: no memory. Blocks for the copy under
  /// kImmutableOnlyDuringCall, never otherwise.
  PURLIN_API static StatusOr<Buffer> FromHost(
      const void* data, std::size_t size_bytes, DType dtype, Span<const std::int64_t> dims,
      const MemorySpace& memory_space, HostBufferSemantics semantics = HostBufferSemantics::kImmutableOnlyDuringCall,
      SourceLocation location = SourceLocation::Current());

  /// The array of `dims` whose element [0, 0, ...] is at `data` (host_buffer.h), in `memory_space`, and whether it uses
  /// the host's memory. Blocks for the copy under kImmutableOnlyDuringCall, never otherwise.
  ///
  /// `on_done(purlin::Status)`, or `on_done()`, is called exactly once, when the host memory is no longer read: if the
  /// bytes are copied, before the buffer is ready, with the copy's status; if they are aliased, when the last use of
  /// the memory has ended; if this call fails, with the same error before it returns. It runs on this thread, or on the
  /// one that ends the last use of the host memory. If on_done releases further memory whose on_done does the same,
  /// calls beyond 32 deep run when the outer ones have returned, so any number of them needs a small stack. (Calls of
  /// FromHost inside on_done nest on the caller's stack.) It need not be copyable. If it waits for the buffer that
  /// becomes ready after it, the wait returns kFailedPrecondition (Event::Wait). An exception from it is reported and
  /// swallowed. An empty std::function or a null function pointer counts as none.
  ///
  /// Until it is called (without it, for as long as the semantics say), any thread may read the bytes that are
  /// elements, and no thread may write them. Under kMutableZeroCopy the buffer's users may also write them, and then
  /// reads must be ordered by events.
  ///
  /// `location` names the memory in reports. kInvalidArgument, naming the values: an unsound shape or layout, another
  /// number of strides than of dimensions, elements further apart than any memory reaches, null `data` with elements,
  /// an unknown dtype or semantics, unsound AllocOptions. kResourceExhausted: no memory. When it blocks, also the
  /// copy's error. `Mode` keeps translation units with and without exceptions apart: leave it alone.
  template <typename F, typename Mode = internal::WithExceptions>
  static StatusOr<FromHostResult> FromHost(const void* data, DType dtype, Span<const std::int64_t> dims,
                                           const MemorySpace& memory_space, const FromHostOptions& options, F&& on_done,
                                           SourceLocation location = SourceLocation::Current());
  /// As above, without on_done: for callers that wait for ready_event() instead, or whose memory lives for ever.
  static StatusOr<FromHostResult> FromHost(const void* data, DType dtype, Span<const std::int64_t> dims,
                                           const MemorySpace& memory_space,
                                           const FromHostOptions& options = FromHostOptions(),
                                           SourceLocation location = SourceLocation::Current());

  /// A buffer per shard, in that order; all or nothing. All shards are checked, and all memory is requested, before the
  /// first byte is copied. Blocks for the copies under kImmutableOnlyDuringCall, never otherwise; nothing is aliased.
  ///
  /// Each shard's `on_done` is called exactly once: if this fails, with the same error before it returns; otherwise
  /// when the shard's memory is no longer read, as its buffer becomes ready, before the waiters of other calls, with
  /// the copy's status; on this thread or on the one that copied. An exception from it is reported and swallowed. Until
  /// then (without it, until the buffer's ready_event(), or as `semantics` say), the memory of the shard must stay as
  /// FromHost requires.
  ///
  /// `location` names the memory in reports. kInvalidArgument, naming the shard: as FromHost; or a memory space of
  /// another client or kind than the first shard's. kResourceExhausted: no memory. When it blocks, also a copy's error.
  /// `Mode` keeps translation units with and without exceptions apart: leave it alone.
  template <typename Mode = internal::WithExceptions>
  static StatusOr<std::vector<Buffer>> FromHostShards(
      Span<const HostShard> shards, HostBufferSemantics semantics = HostBufferSemantics::kImmutableOnlyDuringCall,
      const AllocOptions& alloc = AllocOptions(), SourceLocation location = SourceLocation::Current());

  /// An array whose elements are not written yet, ready when its memory is there (`options` may let it wait). Never
  /// blocks, except in the client's hook (kRetry). `layout` null: row-major. `location` names the memory in reports.
  /// kInvalidArgument: an unsound shape, layout or options. kResourceExhausted: no memory, and it is not waited for.
  PURLIN_API static StatusOr<Buffer> CreateUninitialized(const Shape& shape, const MemorySpace& memory_space,
                                                         const Layout* layout = nullptr,
                                                         const AllocOptions& options = AllocOptions(),
                                                         SourceLocation location = SourceLocation::Current());
  /// An array that has failed with `error`, and so has everything made of it; no memory. OK counts as kInternal,
  /// made at `location`. Never blocks. kInvalidArgument: an unsound shape.
  PURLIN_API static StatusOr<Buffer> CreateError(Status error, const Shape& shape, const MemorySpace& memory_space,
                                                 SourceLocation location = SourceLocation::Current());
  /// A token: no elements; ready after `ready`, or failed with its error. Never blocks.
  PURLIN_API static StatusOr<Buffer> CreateToken(const MemorySpace& memory_space, const Event& ready = Event(),
                                                 SourceLocation location = SourceLocation::Current());
  /// `memory` as an array, ready after `ready` and when the memory is there, or failed with the error of either. Shares
  /// the memory, and keeps it at least until `ready`, so the thread that writes it needs no reference. Never blocks.
  /// `layout` null: row-major. kInvalidArgument: memory.on_device_size_bytes() != shape.on_device_size_bytes(), both
  /// named; an unsound shape or layout.
  PURLIN_API static StatusOr<Buffer> FromRaw(const RawBuffer& memory, const Shape& shape,
                                             const Layout* layout = nullptr, const Event& ready = Event());
  /// An array whose content is provided later, once, and the promise that provides it. The array can be used at once:
  /// copies and reads wait. Never blocks. `layout` null: row-major. kInvalidArgument: an unsound shape or layout.
  PURLIN_API static StatusOr<std::pair<Buffer, BufferPromise>> CreateChannel(
      const Shape& shape, const MemorySpace& memory_space, const Layout* layout = nullptr,
      SourceLocation location = SourceLocation::Current());

  /// Another reference to the same array.
  PURLIN_API Buffer(const Buffer& other) noexcept;
  /// Leaves `other` empty, see purlin.h.
  Buffer(Buffer&& other) noexcept = default;
  /// See the constructors.
  Buffer& operator=(const Buffer& other) noexcept = default;
  /// See the constructors.
  Buffer& operator=(Buffer&& other) noexcept = default;
  PURLIN_API ~Buffer();

  /// Element type.
  [[nodiscard]] PURLIN_API DType dtype() const noexcept;
  /// Dimensions, upper bounds where they are dynamic; the span lives as long as a reference to the buffer.
  [[nodiscard]] PURLIN_API Span<const std::int64_t> dims() const noexcept;
  /// Element type, dimensions, and which of them are dynamic.
  [[nodiscard]] PURLIN_API Shape shape() const;
  /// In which order the elements stand.
  [[nodiscard]] PURLIN_API Layout layout() const;
  /// shape().on_device_size_bytes().
  [[nodiscard]] PURLIN_API std::size_t on_device_size_bytes() const noexcept;
  /// Where it is.
  [[nodiscard]] PURLIN_API MemorySpace memory_space() const noexcept;
  /// The device of memory_space().
  [[nodiscard]] PURLIN_API Device device() const noexcept;
  /// The actual dimensions: dims() of a static shape; of a dynamic one, those that the array stores behind its
  /// elements, after blocking until it is ready. The buffer's own error, if it never becomes ready. kInvalidArgument:
  /// gone. kDataLoss, naming them: sizes that are no dimensions of this shape.
  [[nodiscard]] PURLIN_API StatusOr<std::vector<std::int64_t>> logical_dims() const;

  /// Happens when the bytes are there; fails with why they will never be. Stays valid when the buffer ends.
  [[nodiscard]] PURLIN_API Event ready_event() const noexcept;

  /// Copies the whole array, dense and row-major, to `destination` once it is ready. `destination` must stay writable
  /// and untouched until the event. Fails with kInvalidArgument: `size_bytes` != shape().host_size_bytes() (both
  /// named), null destination with size_bytes > 0, a dynamic shape, or gone; with the buffer's own error if it never
  /// became ready; or as RawBuffer::CopyToHost.
  [[nodiscard]] PURLIN_API Event CopyToHost(void* destination, std::size_t size_bytes) const;
  /// As CopyToHost, element [0, 0, ...] to `destination` and the others where `byte_strides`, one for each dimension,
  /// say (host_buffer.h). The strides are read during the call only. Also kInvalidArgument, naming them: another number
  /// of strides; strides by which elements overlap or are further apart than any memory reaches.
  [[nodiscard]] PURLIN_API Event CopyToHostStrided(void* destination, Span<const std::int64_t> byte_strides) const;
  /// Copies `size_bytes` bytes, as they stand on the device, at `offset_bytes` to `destination`, once the array is
  /// ready. Fails with kOutOfRange, naming the numbers, unless offset_bytes + size_bytes <= on_device_size_bytes();
  /// otherwise as CopyToHost.
  [[nodiscard]] PURLIN_API Event CopyRawToHost(void* destination, std::size_t offset_bytes,
                                               std::size_t size_bytes) const;
  /// As CopyRawToHost, to an address that is known later; PJRT's CopyRawToHostFuture. The range is checked at once. The
  /// memory is in use until the event, and a new owner after a donation waits for it. Once `destination` has a value,
  /// any thread may write there until the event. If `destination` fails, nothing is copied, and the event fails with
  /// its error; with kFailedPrecondition, if it is invalid.
  [[nodiscard]] Event CopyRawToHostWhen(const Future<void*>& destination, std::size_t offset_bytes,
                                        std::size_t size_bytes) const;

  /// A new buffer in the default memory space of `device` (same client) that becomes ready after this one and the copy,
  /// or fails with this one's error. kInvalidArgument: gone, or another client's device. kResourceExhausted: no memory
  /// there.
  PURLIN_API StatusOr<Buffer> CopyToDevice(const Device& device,
                                           SourceLocation location = SourceLocation::Current()) const;
  /// As CopyToDevice, to any memory space of the same client, also this buffer's.
  PURLIN_API StatusOr<Buffer> CopyToMemorySpace(const MemorySpace& memory_space,
                                                SourceLocation location = SourceLocation::Current()) const;
  /// Donates `destination`; the new buffer is a copy of this one in its memory, and becomes ready after both and the
  /// copy, or fails with this one's error. Blocks only for usage holds of `destination`, whose later errors name
  /// `location`. Everything is checked before `destination` is touched; after an error it is as it was.
  /// kInvalidArgument: another shape, layout or client; the same buffer; memory that may not be written; either is
  /// gone; `destination` has an external reference.
  PURLIN_API StatusOr<Buffer> CopyInto(const Buffer& destination,
                                       SourceLocation location = SourceLocation::Current()) const;

  /// The bytes themselves, for computations on them: read them only after ready_event(). Unlike a usage hold, this does
  /// not keep the buffer from being donated meanwhile. kInvalidArgument: gone.
  PURLIN_API StatusOr<RawBuffer> RawAlias() const;

  /// The right to start work that reads it. Blocks while it is being donated. kInvalidArgument: gone.
  PURLIN_API StatusOr<UsageHold> AcquireUsageHold() const;
  /// As AcquireUsageHold, never blocks: kFailedPrecondition, naming the donation and its place, while it is being
  /// donated.
  PURLIN_API StatusOr<UsageHold> TryAcquireUsageHold() const;
  /// Keeps the memory, and the buffer from being donated. Blocks while it is being donated. kInvalidArgument: gone.
  PURLIN_API StatusOr<ExternalReference> AcquireExternalReference() const;
  /// The right to take the memory over. `by` names the new owner; later errors show it and `location`. Blocks until
  /// usage holds and another donation have ended, which are short; running work is not waited for (see
  /// DonationHold::free_event). kInvalidArgument: "Donation requested for invalid buffer." if it is gone, "Donation
  /// requested for buffer with external reference" if it has one.
  PURLIN_API StatusOr<DonationHold> Donate(Label by, SourceLocation location = SourceLocation::Current()) const;
  /// As Donate, never blocks: kFailedPrecondition if usage holds or another donation are in the way.
  PURLIN_API StatusOr<DonationHold> TryDonate(Label by, SourceLocation location = SourceLocation::Current()) const;
  /// Usage holds and external references that exist now; other threads may change that at any time.
  [[nodiscard]] PURLIN_API HoldCounts hold_counts() const noexcept;

  /// Donates this buffer; the new one has its memory and becomes ready after this one and `event`, or fails with the
  /// error of either. PJRT's DonateWithControlDependency. A buffer that failed before it had memory gives another one
  /// with the same error. Blocks and fails as Donate. kFailedPrecondition, and this buffer stays as it is: the client
  /// has been shut down, and `event` has not happened.
  PURLIN_API StatusOr<Buffer> DonateAfter(const Event& event,
                                          SourceLocation location = SourceLocation::Current()) const;
  /// Donates this buffer; the new one has its memory, read as `shape` in `layout` (null: row-major). Blocks and fails
  /// as Donate. kInvalidArgument, and this buffer stays as it is: `shape` needs another number of bytes, both named; a
  /// token or a dynamic shape on either side; an unsound shape or layout.
  PURLIN_API StatusOr<Buffer> Bitcast(const Shape& shape, const Layout* layout = nullptr,
                                      SourceLocation location = SourceLocation::Current()) const;

  /// Ends the buffer for all its references and gives its memory back; work in flight and holds keep the memory that
  /// they need. Idempotent; never blocks. Under a donation hold it takes effect when that hold is given back.
  PURLIN_API void Delete(SourceLocation location = SourceLocation::Current()) const noexcept;
  /// Hands the memory to the caller and ends the buffer for all its references. Never blocks. Returns none if the
  /// buffer is gone already; if it never had memory, and then it is gone; or if it is being donated, and then nothing
  /// has changed: once given back, it is as before.
  std::optional<ReleasedBuffer> Release(SourceLocation location = SourceLocation::Current()) const;
  /// PJRT's form of Release. With `wait_for_operations_to_complete`, blocks until no operation uses and nothing holds
  /// the memory. If the buffer has failed, returns its error with "Error Execute: " before the message, and frees the
  /// memory; the same with the client's error if the client ends first (Client::Shutdown). Without it, never blocks,
  /// and operations may still use the memory.
  PURLIN_API StatusOr<std::optional<RawBuffer>> ReleaseDeviceMemoryOwnership(
      bool wait_for_operations_to_complete, SourceLocation location = SourceLocation::Current()) const;
  /// True after it was deleted, donated or released.
  [[nodiscard]] PURLIN_API bool IsDeleted() const noexcept;

 private:
  using Handle::Handle;

  /// The memory, the caller's, or null; then `free_event` is the caller's too.
  PURLIN_API const internal::RawBufferRep* ReleaseRaw(SourceLocation location,
                                                      internal::EventHeader** free_event) const;
  /// The event, the caller's; writes the object that takes the address, once, or null if none is needed any more.
  PURLIN_API internal::EventHeader* CopyRawToHostWhenRaw(std::size_t offset_bytes, std::size_t size_bytes,
                                                         internal::HostAddressRep** address) const;
  /// Takes over what is given.
  PURLIN_API static void SetHostAddress(internal::HostAddressRep* address, void* destination, Status error) noexcept;
  /// Takes over `on_done`, which may be null. Reads what it is given during the call only.
  PURLIN_API static StatusOr<FromHostResult> FromHostRaw(const void* data, DType dtype, Span<const std::int64_t> dims,
                                                         const std::optional<Span<const std::int64_t>>& byte_strides,
                                                         const MemorySpace& memory_space, HostBufferSemantics semantics,
                                                         const Layout* device_layout, const AllocOptions& alloc,
                                                         const internal::Callback* on_done, SourceLocation location);
  /// Takes over what `on_done`, an entry for each shard, points to, if it is not null.
  PURLIN_API static StatusOr<std::vector<Buffer>> FromHostShardsRaw(Span<const HostShard> shards,
                                                                    Span<const internal::Callback* const> on_done,
                                                                    HostBufferSemantics semantics,
                                                                    const AllocOptions& alloc, SourceLocation location);
};

/// The result of Buffer::FromHost.
struct FromHostResult {
  /// The array.
  Buffer buffer;
  /// Whether it uses the host's memory.
  Aliasing aliasing;
};

/// The result of Buffer::Release.
struct ReleasedBuffer {
  /// The memory. Write it only after free_event.
  RawBuffer memory;
  /// Happens when the memory is no longer in use: the buffer's producer, all operations that have used it, and all
  /// usage holds that existed, with the work that they have started, have ended, whether they succeeded or failed.
  /// Fails only if the client ends first (Client::Shutdown), naming the client: then it is not known when the uses end.
  Event free_event;
};

// Inline, so that the library has no code that destroys events: it would define symbols that users' code defines
// inline.
inline std::optional<ReleasedBuffer> Buffer::Release(SourceLocation location) const {
  internal::EventHeader* free_event = nullptr;
  const internal::RawBufferRep* memory = ReleaseRaw(location, &free_event);
  if (memory == nullptr) return std::nullopt;
  return ReleasedBuffer{RawBuffer::Adopt(memory), Event::Adopt(free_event)};
}

inline Event Buffer::CopyRawToHostWhen(const Future<void*>& destination, std::size_t offset_bytes,
                                       std::size_t size_bytes) const {
  internal::HostAddressRep* address = nullptr;
  Event copied = Event::Adopt(CopyRawToHostWhenRaw(offset_bytes, size_bytes, &address));
  if (address == nullptr) return copied;
  destination.OnReady([address](StatusOr<void*> found) {
    void* const where = found.ok() ? *found : nullptr;
    SetHostAddress(address, where, std::move(found).status());
  });
  return copied;
}

template <typename F, typename Mode>
StatusOr<FromHostResult> Buffer::FromHost(const void* data, DType dtype, Span<const std::int64_t> dims,
                                          const MemorySpace& memory_space, const FromHostOptions& options, F&& on_done,
                                          SourceLocation location) {
  using Closure = std::decay_t<F>;
  static_assert(internal::kCallableOnce<Closure, Status> || internal::kCallableOnce<Closure>,
                "called as on_done(purlin::Status) or on_done()");
  if (internal::IsEmptyCallable(on_done)) return FromHost(data, dtype, dims, memory_space, options, location);
  const internal::Callback callback = internal::MakeCallback(
      [closure = Closure(std::forward<F>(on_done))](const internal::StatusRep* error, const void*) mutable {
        internal::Guarded("on_done of host memory",
                          [&] { internal::CallOnceWithOrWithout(closure, Status::FromRep(error)); });
      });
  return FromHostRaw(data, dtype, dims, options.byte_strides, memory_space, options.semantics, options.device_layout,
                     options.alloc, &callback, location);
}

inline StatusOr<FromHostResult> Buffer::FromHost(const void* data, DType dtype, Span<const std::int64_t> dims,
                                                 const MemorySpace& memory_space, const FromHostOptions& options,
                                                 SourceLocation location) {
  return FromHostRaw(data, dtype, dims, options.byte_strides, memory_space, options.semantics, options.device_layout,
                     options.alloc, nullptr, location);
}

template <typename Mode>
StatusOr<std::vector<Buffer>> Buffer::FromHostShards(Span<const HostShard> shards, HostBufferSemantics semantics,
                                                     const AllocOptions& alloc, SourceLocation location) {
  std::vector<internal::Callback> callbacks;
  std::vector<const internal::Callback*> on_done;
  callbacks.reserve(shards.size());  // So that they stay where they are.
  on_done.reserve(shards.size());
  Status thrown = internal::StatusOfThrow("copying the on_done of a shard", location, [&] {
    for (const HostShard& shard : shards) {
      if (shard.on_done) {
        callbacks.push_back(
            internal::MakeCallback([told = shard.on_done](const internal::StatusRep* error, const void*) mutable {
              internal::Guarded("on_done of a shard", [&] { told(Status::FromRep(error)); });
            }));
      }
      on_done.push_back(shard.on_done ? &callbacks.back() : nullptr);
    }
  });
  if (!thrown.ok()) {
    for (const internal::Callback& made : callbacks) made.invoke(made.data, true, Status(thrown).ReleaseRep(), nullptr);
    return thrown;
  }
  return FromHostShardsRaw(shards, on_done, semantics, alloc, location);
}

static_assert(sizeof(Buffer) == sizeof(void*), "a Buffer is one word");

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_BUFFER_H_
