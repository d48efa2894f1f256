// Purlin: how arrays are made from the memory of the host (Buffer::FromHost, Buffer::FromHostShards).
//
// ```cpp
// #include "purlin/buffer.h"
//
// // The columns 0 and 2 of a row-major 2x4 matrix, which is copied later.
// purlin::StatusOr<purlin::Buffer> EvenColumns(std::shared_ptr<float> matrix, const purlin::MemorySpace& memory) {
//   const std::int64_t byte_strides[] = {4 * sizeof(float), 2 * sizeof(float)};
//   purlin::FromHostOptions options;
//   options.semantics = purlin::HostBufferSemantics::kImmutableUntilTransferCompletes;
//   options.byte_strides = byte_strides;
//   const auto on_done = [matrix](const purlin::Status&) {};  // keeps the matrix until it has been copied
//   auto array = purlin::Buffer::FromHost(matrix.get(), purlin::DType::kF32, {2, 2}, memory, options, on_done);
//   if (!array.ok()) return array.status();
//   return array->buffer;
// }
// ```
//
// Element [i0, i1, ...] stands at the bytes [sum(i_d * byte_strides[d]), ... + HostByteWidth(dtype)) from `data`, the
// address of element [0, 0, ...]. Strides are any: negative, zero, no multiple of the element's size; those of
// dimensions with one entry mean nothing. Types narrower than a byte have a byte each on the host, and are packed on
// the device.
#ifndef PURLIN_HOST_BUFFER_H_
#define PURLIN_HOST_BUFFER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "purlin/alloc_options.h"
#include "purlin/device.h"
#include "purlin/dtype.h"
#include "purlin/layout.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// How long the host memory given to Buffer::FromHost stays readable and unchanged. PJRT's numbers.
enum class HostBufferSemantics : int {
  /// Only until the call returns: the bytes are copied before that.
  kImmutableOnlyDuringCall = 0,
  /// Until on_done, or the buffer's ready_event(): the copy may run after the call has returned.
  kImmutableUntilTransferCompletes = 1,
  /// Until on_done, which is called when the buffer's memory is no longer used: the buffer may use the host's memory.
  /// Where it cannot (strides, layout, packed types, alignment, the backend), it is copied as with
  /// kImmutableUntilTransferCompletes; FromHostResult::aliasing says which.
  kImmutableZeroCopy = 2,
  /// As kImmutableZeroCopy, and the buffer's users may write the memory.
  kMutableZeroCopy = 3,
};

/// Whether a buffer uses the host memory that it was made from.
enum class Aliasing : std::uint8_t {
  /// It has memory of its own.
  kCopied = 0,
  /// Its memory is the host's.
  kAliased = 1,
};

/// How an array is made from host memory; the default is a dense, row-major one that is copied before the call returns.
/// Spans and pointers are read during the call only.
struct FromHostOptions {
  /// How long the host memory stays as it is.
  HostBufferSemantics semantics = HostBufferSemantics::kImmutableOnlyDuringCall;
  /// Bytes from one entry of each dimension to the next, outermost first, one for each; none: dense, row-major.
  std::optional<Span<const std::int64_t>> byte_strides;
  /// In which order the elements stand on the device; null: row-major.
  const Layout* device_layout = nullptr;
  /// Options of the allocation on the device. Not used if nothing is allocated.
  AllocOptions alloc;
};

/// One array of Buffer::FromHostShards.
struct HostShard {
  /// Where its element [0, 0, ...] is.
  const void* data;
  /// Element type.
  DType dtype;
  /// Dimensions, outermost first.
  std::vector<std::int64_t> dims;
  /// The memory space of its buffer.
  MemorySpace memory_space;
  /// Bytes from one entry of each dimension to the next, outermost first, one for each; none: dense, row-major.
  std::optional<std::vector<std::int64_t>> byte_strides = std::nullopt;
  /// In which order the elements stand on the device; none: row-major.
  std::optional<Layout> device_layout = std::nullopt;
  /// See Buffer::FromHostShards; may be empty.
  std::function<void(Status)> on_done = nullptr;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_HOST_BUFFER_H_
