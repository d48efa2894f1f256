// Purlin's adapter for programs of CUDA's driver API: their streams, events and memory beside Purlin's, both ways.
//
//   const purlin::Event before = purlin::adapters::FromCuda(device, their_event);    // a CUevent, or a CUstream
//   const purlin::Event copied = buffer.CopyFromHost(bytes, 0, size, {before});      // the GPU waits, no thread does
//   purlin::Status ordered = purlin::adapters::WaitOnCuda(device, stream, copied);   // what comes there later waits
//   auto memory = purlin::adapters::FromCuda(space, address, size, purlin::Mutability::kMutable, release);
//   auto address = purlin::adapters::ToCuda(buffer);                                 // a CUdeviceptr
//
// Thin: all is in purlin/cuda.h and raw_buffer.h, in numbers and pointers. Where those say "not null", "owns" or
// "blocks", it holds here. The streams CU_STREAM_LEGACY, CU_STREAM_PER_THREAD and 0 are those of the primary context of
// the device's GPU; what belongs to a cudaStream_t of the runtime API is the same handle.
//
// Owners: streams and events stay their owner's, and may be destroyed as soon as a call has returned. Memory of theirs
// is Purlin's to use until `release` is called. Memory of Purlin's is theirs to use while they have the RawBuffer or
// the hold; what they have enqueued there is not over then by itself: let Buffer::AcquireUsageHold's hold go by
// UsageHold::ReleaseAfter(FromCuda(device, stream)), or keep a RawBuffer by RawBuffer::RetainUntil of that event.
//
// For CUDA from 12.2 on; <cuda.h> declares the driver's functions, of which this calls none.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_ADAPTERS_CUDA_H_
#define PURLIN_ADAPTERS_CUDA_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "purlin/cuda.h"
#include "purlin/device.h"
#include "purlin/event.h"
#include "purlin/raw_buffer.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace adapters {

/// An event that happens when all is over that the stream has now: EventOfCudaStream (cuda.h). Never blocks.
[[nodiscard]] inline Event FromCuda(const Device& device, CUstream stream,
                                    SourceLocation location = SourceLocation::Current()) {
  return EventOfCudaStream(device, reinterpret_cast<std::uintptr_t>(stream), location);
}

/// An event that happens when all is over that was recorded last in theirs: EventOfCudaEvent (cuda.h). Never blocks.
[[nodiscard]] inline Event FromCuda(const Device& device, CUevent event,
                                    SourceLocation location = SourceLocation::Current()) {
  return EventOfCudaEvent(device, reinterpret_cast<std::uintptr_t>(event), location);
}

/// Has what is enqueued on the stream from now on come behind `event`: HaveCudaStreamWait (cuda.h), which says when the
/// calling thread waits, and the errors.
[[nodiscard]] inline Status WaitOnCuda(const Device& device, CUstream stream, const Event& event) {
  return HaveCudaStreamWait(device, reinterpret_cast<std::uintptr_t>(stream), event);
}

/// The stream of the client's on which the launches of that number are: CudaComputeStream (cuda.h). The client owns it:
/// never destroy it.
[[nodiscard]] inline StatusOr<CUstream> ToCuda(const Device& device, std::uint8_t number = 0) {
  const StatusOr<std::uintptr_t> stream = CudaComputeStream(device, number);
  if (!stream.ok()) return stream.status();
  return reinterpret_cast<CUstream>(*stream);
}

/// A buffer over memory of theirs, in the space "device" of the GPU that has it: RawBuffer::Import, which says when and
/// where `on_release()` is called, and the errors. kInvalidArgument names the address, and whose memory it is by the
/// driver's word, if that is not this GPU's.
template <typename F>
[[nodiscard]] StatusOr<RawBuffer> FromCuda(const MemorySpace& memory_space, CUdeviceptr address, std::size_t size_bytes,
                                           Mutability mutability, F&& on_release) {
  void* const first = reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  return RawBuffer::Import(memory_space, first, size_bytes, mutability, std::forward<F>(on_release));
}

/// As above, for memory that outlives every use of it.
[[nodiscard]] inline StatusOr<RawBuffer> FromCuda(const MemorySpace& memory_space, CUdeviceptr address,
                                                  std::size_t size_bytes, Mutability mutability) {
  void* const first = reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  return RawBuffer::Import(memory_space, first, size_bytes, mutability);
}

/// Where the buffer is: RawBuffer::device_pointer. Good as long as a reference to its memory lives, such as `buffer`,
/// or the hold whose memory() it is.
[[nodiscard]] inline StatusOr<CUdeviceptr> ToCuda(const RawBuffer& buffer) {
  const StatusOr<std::uintptr_t> address = buffer.device_pointer();
  if (!address.ok()) return address.status();
  return static_cast<CUdeviceptr>(*address);
}

}  // namespace adapters
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ADAPTERS_CUDA_H_
