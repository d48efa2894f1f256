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
// for memory that the host reaches. This header only declares it; <dlpack/dlpack.h> defines it and may be included
// before or after. A struct has one owner, which calls its deleter once, from any thread.
//
// An array does not change after it was passed on. Elements narrower than a byte are packed, unless an imported struct
// is marked as padded.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_DLPACK_H_
#define PURLIN_DLPACK_H_

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
/// donated, as with an ExternalReference. It is marked as read-only, of DLPack 1.1, on the device (kDLCPU, 0), with
/// strides. Blocks only while the buffer is being donated.
///
/// kFailedPrecondition: the buffer is not ready (wait for its ready_event()). Its own error, if it failed.
/// kInvalidArgument: it is gone, a token, or of a dynamic shape. kUnimplemented: the host does not reach its memory.
[[nodiscard]] PURLIN_API StatusOr<DLManagedTensorVersioned*> ToDLPack(const Buffer& buffer);

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
/// kInvalidArgument, with the value: null; another major version than 1; a negative or too large dimension, stride,
/// rank (more than 64) or offset; null where something must be. kUnimplemented: memory that is not the host's (kDLCPU,
/// kDLCUDAHost, kDLROCMHost), elements that no buffer holds, packed elements with gaps. kResourceExhausted: no memory.
[[nodiscard]] PURLIN_API StatusOr<FromHostResult> FromDLPack(DLManagedTensorVersioned* tensor,
                                                             const MemorySpace& memory_space);

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_DLPACK_H_
