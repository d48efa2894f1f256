// Purlin: buffers that are filled piece by piece from the host and can be used before they are full.
//
// ```cpp
// purlin::Status Fill(const purlin::Shape& shape, const purlin::MemorySpace& memory, const void* first,
//                     const void* rest, std::size_t half_bytes) {
//   using Transfer = purlin::AsyncHostToDeviceTransferManager;
//   purlin::StatusOr<Transfer> transfer = Transfer::Create({{shape}}, memory);
//   if (!transfer.ok()) return transfer.status();
//   purlin::StatusOr<purlin::Buffer> buffer = transfer->RetrieveBuffer(0);  // its uses wait for the bytes
//   if (!buffer.ok()) return buffer.status();
//   purlin::Status status = transfer->TransferRawDataToSubBuffer(0, first, 0, half_bytes, /*is_last=*/false);
//   if (!status.ok()) return status;
//   status = transfer->TransferRawDataToSubBuffer(0, rest, half_bytes, half_bytes, /*is_last=*/true);
//   return status.ok() ? buffer->ready_event().Wait() : status;
// }
// ```
//
// Each buffer has its own state: filling, until the piece that is marked as the last; sealed, until no piece is in
// flight; then done. Or failed: by SetBufferError, by a piece that could not be copied, or because the manager was
// destroyed before the last piece. An illegal step is an error and changes nothing.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_TRANSFER_H_
#define PURLIN_TRANSFER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/alloc_options.h"
#include "purlin/buffer.h"
#include "purlin/device.h"
#include "purlin/dtype.h"
#include "purlin/event.h"
#include "purlin/export.h"
#include "purlin/internal/call_once.h"
#include "purlin/internal/callback.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/guard.h"
#include "purlin/internal/handle.h"
#include "purlin/layout.h"
#include "purlin/shape.h"
#include "purlin/source_location.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct TransferRep;
}  // namespace internal

/// What a buffer of a manager is to be.
struct TransferSpec {
  /// Element type and dimensions.
  Shape shape;
  /// In which order the elements stand on the device; none: row-major.
  std::optional<Layout> layout = std::nullopt;
};

/// PJRT's AsyncHostToDeviceTransferManager. Move-only, one word. Every function but a move may be called from every
/// thread, also several at once. None blocks.
///
/// `on_done(purlin::Status)`, or `on_done()`, of a piece is called exactly once, under no lock: if the call fails, with
/// the same error before it returns; otherwise when the host memory is no longer read, with the copy's status, before
/// the buffer is ready; on the calling thread or on the one that copied. It need not be copyable; an empty
/// std::function or a null function pointer counts as none. An exception from it is reported and swallowed. It may
/// destroy the manager. A wait in it for the buffer returns kFailedPrecondition, because the buffer is not ready before
/// it returns. Until it is called (without it, until the buffer is ready), any thread may read the host memory, and no
/// thread may write it.
class [[nodiscard]] AsyncHostToDeviceTransferManager final
    : public internal::Handle<AsyncHostToDeviceTransferManager, const internal::TransferRep> {
 public:
  /// A manager for one buffer per entry of `specs`, in that order, all in `memory_space`. All memory is requested here;
  /// `options` are those of each allocation, so with kWait it may be there later. `location` names it in reports.
  /// Errors allocate nothing: kInvalidArgument: an unsound shape, layout or options, a layout of another rank.
  /// kResourceExhausted: no memory, and it is not waited for.
  PURLIN_API static StatusOr<AsyncHostToDeviceTransferManager> Create(
      Span<const TransferSpec> specs, const MemorySpace& memory_space, const AllocOptions& options = AllocOptions(),
      SourceLocation location = SourceLocation::Current());

  /// Leaves `other` empty, see purlin.h.
  AsyncHostToDeviceTransferManager(AsyncHostToDeviceTransferManager&& other) noexcept = default;
  /// As if destroying what was here.
  AsyncHostToDeviceTransferManager& operator=(AsyncHostToDeviceTransferManager&& other) noexcept = default;
  /// Buffers whose last piece has not been given fail with kInternal, "Async transfer object was deleted before
  /// transfers completed."; pieces in flight are still copied. Does not wait for them, unlike PJRT's destructor.
  PURLIN_API ~AsyncHostToDeviceTransferManager();

  /// How many buffers there are.
  [[nodiscard]] PURLIN_API std::size_t buffer_count() const noexcept;
  /// Where they are.
  [[nodiscard]] PURLIN_API MemorySpace memory_space() const noexcept;
  /// The device of memory_space().
  [[nodiscard]] PURLIN_API Device device() const noexcept;
  /// Bytes of that buffer on the device. kInvalidArgument, naming both: index >= buffer_count().
  [[nodiscard]] PURLIN_API StatusOr<std::size_t> buffer_size(std::size_t index) const;

  /// That buffer, whether its bytes are there or not. It can be retrieved once. kInvalidArgument: index >=
  /// buffer_count(). kFailedPrecondition: it was retrieved before.
  [[nodiscard]] PURLIN_API StatusOr<Buffer> RetrieveBuffer(std::size_t index) const;

  /// Copies the whole array whose element [0, 0, ...] is at `data` (host_buffer.h), packed and in the buffer's layout;
  /// no `byte_strides`: dense, row-major. The buffer then has all its bytes. What PJRT's TransferLiteralToBuffer does.
  /// `dims` and `byte_strides` are read during the call only. After an error the buffer is as it was. kInvalidArgument:
  /// index >= buffer_count(), no array, another shape, null `data` with elements, or "already been fully transferred".
  /// kFailedPrecondition: pieces were transferred before. Or the buffer's error.
  template <typename F>
  Status TransferArrayToBuffer(std::size_t index, const void* data, DType dtype, Span<const std::int64_t> dims,
                               std::optional<Span<const std::int64_t>> byte_strides, F&& on_done) {
    return WithCallback(std::forward<F>(on_done), [&](const internal::Callback* callback) {
      return TransferArray(index, data, dtype, dims, byte_strides, callback);
    });
  }
  /// As above, without on_done: for callers that wait for the buffer's ready_event() instead.
  Status TransferArrayToBuffer(std::size_t index, const void* data, DType dtype, Span<const std::int64_t> dims,
                               std::optional<Span<const std::int64_t>> byte_strides = std::nullopt) {
    return TransferArray(index, data, dtype, dims, byte_strides, nullptr);
  }

  /// Copies all bytes of that buffer, as they are to stand on the device: TransferRawDataToSubBuffer from 0, as the
  /// last. Also kInvalidArgument, naming both: size_bytes != buffer_size(index).
  template <typename F>
  Status TransferRawDataToBuffer(std::size_t index, const void* data, std::size_t size_bytes, F&& on_done) {
    return WithCallback(std::forward<F>(on_done), [&](const internal::Callback* callback) {
      return TransferWhole(index, data, size_bytes, callback);
    });
  }
  /// As above, without on_done: for callers that wait for the buffer's ready_event() instead.
  Status TransferRawDataToBuffer(std::size_t index, const void* data, std::size_t size_bytes) {
    return TransferWhole(index, data, size_bytes, nullptr);
  }

  /// Copies `size_bytes` bytes, as they are to stand on the device, to that buffer at `offset_bytes`. Pieces may be
  /// given in any order and are copied in any; no two may touch the same bytes. No piece may follow the one with
  /// `is_last`, and the buffer becomes ready when all have been copied. If one cannot be copied, the buffer fails with
  /// its error, at once. After an error of the call the buffer is as it was. kInvalidArgument: index >= buffer_count(),
  /// null `data` with size_bytes > 0, or "already been fully transferred". kOutOfRange, naming the numbers, unless
  /// offset_bytes + size_bytes <= buffer_size(index). Or the buffer's error.
  template <typename F>
  Status TransferRawDataToSubBuffer(std::size_t index, const void* data, std::size_t offset_bytes,
                                    std::size_t size_bytes, bool is_last, F&& on_done) {
    return WithCallback(std::forward<F>(on_done), [&](const internal::Callback* callback) {
      return TransferPiece(index, data, offset_bytes, size_bytes, is_last, callback);
    });
  }
  /// As above, without on_done: for callers that wait for the buffer's ready_event() instead.
  Status TransferRawDataToSubBuffer(std::size_t index, const void* data, std::size_t offset_bytes,
                                    std::size_t size_bytes, bool is_last) {
    return TransferPiece(index, data, offset_bytes, size_bytes, is_last, nullptr);
  }

  /// That buffer fails with `error`; pieces in flight are still copied, and their on_done called. Waiters of the buffer
  /// run on this thread. OK counts as kInternal, made at `location`. kInvalidArgument: index >= buffer_count(), or
  /// "already been fully transferred". Or the error with which the buffer failed before.
  PURLIN_API Status SetBufferError(std::size_t index, Status error,
                                   SourceLocation location = SourceLocation::Current());

  /// Stores a text for debugging; the same key again replaces it. Bytes that are not UTF-8 are replaced.
  PURLIN_API void AddTransferMetadata(std::string_view key, std::string_view value);
  /// The stored texts, by key.
  [[nodiscard]] PURLIN_API std::vector<std::pair<std::string, std::string>> transfer_metadata() const;
  /// Happens when all buffers are ready or failed; if any failed, it fails with the error of the one with the lowest
  /// index.
  [[nodiscard]] PURLIN_API Event ready_event() const;

 private:
  using Handle::Handle;

  /// Calls `transfer` with `on_done`, which it takes over, or with null if there is none.
  template <typename F, typename Transfer>
  static Status WithCallback(F&& on_done, Transfer transfer) {
    using Closure = std::decay_t<F>;
    static_assert(internal::kCallableOnce<Closure, Status> || internal::kCallableOnce<Closure>,
                  "called as on_done(purlin::Status) or on_done()");
    if (internal::IsEmptyCallable(on_done)) return transfer(nullptr);
    const internal::Callback callback = internal::MakeCallback(
        [closure = Closure(std::forward<F>(on_done))](const internal::StatusRep* error, const void*) mutable {
          internal::Guarded("on_done of a transfer",
                            [&] { internal::CallOnceWithOrWithout(closure, Status::FromRep(error)); });
        });
    return transfer(&callback);
  }

  // Each takes over `on_done`, which may be null.
  PURLIN_API Status TransferArray(std::size_t index, const void* data, DType dtype, Span<const std::int64_t> dims,
                                  const std::optional<Span<const std::int64_t>>& byte_strides,
                                  const internal::Callback* on_done);
  PURLIN_API Status TransferWhole(std::size_t index, const void* data, std::size_t size_bytes,
                                  const internal::Callback* on_done);
  PURLIN_API Status TransferPiece(std::size_t index, const void* data, std::size_t offset_bytes, std::size_t size_bytes,
                                  bool is_last, const internal::Callback* on_done);
};

static_assert(sizeof(AsyncHostToDeviceTransferManager) == sizeof(void*), "a transfer manager is one word");

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_TRANSFER_H_
