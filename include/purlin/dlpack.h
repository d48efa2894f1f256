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
// Spoken is the versioned struct of DLPack 1 (DLManagedTensorVersioned, in Python's capsules "dltensor_versioned"), for
// memory that the host reaches. This header only names it; <dlpack/dlpack.h> defines it, for those who look inside, and
// may be included before or after. A struct has one owner, who calls its deleter once, from any thread.
//
// An array that is passed on does not change any more. Elements narrower than a byte are packed, unless a struct that
// comes in says that they are padded.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_DLPACK_H_
#define PURLIN_DLPACK_H_

#include "purlin/buffer.h"
#include "purlin/device.h"
#include "purlin/export.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

/// DLPack's, see <dlpack/dlpack.h>.
struct DLManagedTensorVersioned;

namespace purlin {
inline namespace v0 {

/// The array of `buffer`, where it is, for whoever reads it; the caller owns the struct, and calls its deleter or gives
/// it to who does. Until then the memory stays, also when the buffer is deleted and the client gone, and is not
/// donated, as with an ExternalReference. It is marked as read-only, of DLPack 1.1, on the device (kDLCPU, 0), with
/// strides. Never blocks, but while the buffer is being donated.
///
/// kFailedPrecondition: the buffer is not ready (wait for its ready_event()). Its own error, if it failed.
/// kInvalidArgument: it is gone, a token, or of a dynamic shape. kUnimplemented: the host does not reach its memory.
[[nodiscard]] PURLIN_API StatusOr<DLManagedTensorVersioned*> ToDLPack(const Buffer& buffer);

/// A buffer of the array at `tensor`, in `memory_space`, and whether its memory is the array's. Row-major arrays are
/// used where they are if alignment and space allow; others are copied, maybe behind. Blocks only for copying packed
/// elements.
///
/// On success the deleter is called once, when the memory is no longer read, on whatever thread is the last to do so;
/// until then nobody may write it. A struct of ToDLPack about memory that nobody may write any more, as of an array
/// that came in by this before, is ended at once, and the memory is shared: so loops over libraries make no chains. The
/// deleter must not throw. On an error it is not called, and the struct stays the caller's, which calls it, also where
/// the major version is unknown.
///
/// kInvalidArgument, with the value: null; another major version than 1; a negative or too large dimension, stride,
/// rank (more than 64) or offset; null where something must be. kUnimplemented: memory that is not the host's (kDLCPU,
/// kDLCUDAHost, kDLROCMHost), elements that no buffer holds, packed elements with gaps. kResourceExhausted: no memory.
[[nodiscard]] PURLIN_API StatusOr<FromHostResult> FromDLPack(DLManagedTensorVersioned* tensor,
                                                             const MemorySpace& memory_space);

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_DLPACK_H_
