// Purlin: DLPack, arrays in the memory of this process that libraries pass to each other.
//
// ```cpp
// // An array of another library, such as the content of a Python capsule "dltensor_versioned".
// purlin::StatusOr<purlin::Buffer> Import(DLManagedTensorVersioned* tensor, const purlin::MemorySpace& memory) {
//   purlin::StatusOr<purlin::FromHostResult> array = purlin::FromDLPack(tensor, memory);
//   if (!array.ok()) return array.status();  // `tensor` is still the caller's, which calls its deleter
//   return array->buffer;
// }
// ```
//
// Purlin uses the versioned struct of DLPack 1 (DLManagedTensorVersioned, in Python's capsules "dltensor_versioned"),
// for memory that the host reaches and, on the platform "cuda", for that of GPUs. This header only declares it;
// <dlpack/dlpack.h> defines it and may be included before or after. A struct has one owner, which calls its deleter
// once, from any thread; of an array on a GPU, when the GPU has left it.
//
// Streams are numbered as by __dlpack__ of Python's array API: 1 is the legacy default stream of the GPU's primary
// context, 2 the calling thread's default stream, more is a CUstream, which the caller promises to be there; -1 is
// none.
//
// An array does not change after it was passed on. Elements narrower than a byte are packed, unless an imported struct
// is marked as padded.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_DLPACK_H_
#define PURLIN_DLPACK_H_

#include <cstdint>

#include "purlin/buffer.h"
#include "purlin/device.h"
#include "purlin/export.h"
#include "purlin/internal/dlpack.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// The array of `buffer`, in place, for reading. The caller owns the struct, and calls its deleter or passes ownership
/// on. Until the deleter is called the memory stays, also when the buffer is deleted and the client gone, and is not
/// donated, as with an ExternalReference. It is marked as read-only, of DLPack 1.1, with strides, on the device
/// (kDLCPU, 0); on the platform "cuda", (kDLCUDA, the driver's number of the GPU) for the kind "device", and
/// (kDLCUDAHost, 0) for "pinned_host". Blocks only while the buffer is being donated.
///
/// kFailedPrecondition: the buffer is not ready (wait for its ready_event()). Its own error, if it failed.
/// kInvalidArgument: it is gone, a token, or of a dynamic shape. kUnimplemented: neither the host nor a GPU of CUDA's
/// has its memory.
[[nodiscard]] PURLIN_API StatusOr<DLManagedTensorVersioned*> ToDLPack(const Buffer& buffer);

/// As above, for a reader on `stream`, which is made to come behind the array's definition; the buffer need not be
/// ready. A definition that is enqueued on a GPU is waited for by the stream and by no thread; for any other, this
/// thread waits, as Event::Wait does. With -1 nothing is put in order, and the reader comes behind ready_event() by
/// itself.
///
/// kInvalidArgument is also: 0, or less than -1; a stream that the driver does not know; a stream, and memory of the
/// host. kFailedPrecondition is also: the stream is being captured. Or the driver's error.
[[nodiscard]] PURLIN_API StatusOr<DLManagedTensorVersioned*> ToDLPack(const Buffer& buffer, std::int64_t stream);

/// A buffer of the array at `tensor`, in `memory_space`, and whether it uses the array's memory. Row-major arrays are
/// used in place if alignment and space allow; others are copied, perhaps after the call has returned. Blocks only for
/// copying packed elements.
///
/// On success the deleter is called once, when the memory is no longer read, on the thread that ends the last use;
/// until then no code may write it. A struct of ToDLPack over immutable memory, such as that of an array that was
/// imported by this function, is deleted at once, and the memory is shared: so an array that passes between libraries
/// repeatedly makes no chain. The deleter must not throw. On an error it is not called; the caller still owns the
/// struct and calls the deleter, also if the major version is unknown.
///
/// An array of kDLCUDA is used in place, in the space "device" of that GPU; all that its producer has enqueued for it
/// is over.
///
/// kInvalidArgument, with the value: null; another major version than 1; a negative or too large dimension, stride,
/// rank (more than 64) or offset; null where something must be; memory of another GPU than the struct or the space
/// says, or that begins at no multiple of 16. kUnimplemented: memory that is neither the host's (kDLCPU, kDLCUDAHost,
/// kDLROCMHost) nor that of a GPU of CUDA's, or of such for another space; elements that no buffer holds, packed
/// elements with gaps, on a GPU any gaps. kResourceExhausted: no memory.
[[nodiscard]] PURLIN_API StatusOr<FromHostResult> FromDLPack(DLManagedTensorVersioned* tensor,
                                                             const MemorySpace& memory_space);

/// As above, for an array on a GPU that its producer may still write on `stream`: the buffer is defined after all that
/// the stream has now. GPUs wait for that, and no thread does. -1 means that nothing is to be waited for.
///
/// kInvalidArgument is also: 0, or less than -1; a stream, and memory of the host. The buffer fails as
/// EventOfCudaStream (cuda.h) does.
[[nodiscard]] PURLIN_API StatusOr<FromHostResult> FromDLPack(DLManagedTensorVersioned* tensor,
                                                             const MemorySpace& memory_space, std::int64_t stream);

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_DLPACK_H_
