// Purlin: `.npy` files, one array each, as numpy.save writes them and numpy.load reads them.
//
// ```cpp
// purlin::Status Copy(const purlin::MemorySpace& memory) {
//   purlin::ReadNpyOptions options;
//   options.dtype = purlin::DType::kF32;  // other elements are kInvalidArgument
//   purlin::StatusOr<purlin::FromHostResult> weights = purlin::ReadNpy("weights.npy", memory, options);
//   if (!weights.ok()) return weights.status();
//   return purlin::WriteNpy("copy.npy", weights->buffer);
// }
// ```
//
// Versions 1.0, 2.0 and 3.0 are read, 1.0 is written, row-major, with the elements at a multiple of 64 bytes.
//
//   elements                                in the file                       read back by
//   pred, integers, f16 to f64, c64, c128   NumPy's own: |b1, <i4, <c8 ...    any reader
//   bf16, 8-bit floats, types narrower      opaque: <V2, |V1, as ml_dtypes    a reader that is given the type: here
//   than a byte (a byte each)               writes them                       ReadNpyOptions::dtype,
//                                                                             .view(ml_dtypes.bfloat16) there
//
// kUnimplemented: pickled objects, structured types, text, dates, big-endian elements, longdouble, more than 64
// dimensions. Elements in Fortran's order are copied into rows. Bytes behind the array are refused (kDataLoss), because
// they would be lost, and so is a header of more than 1 MiB.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_NPY_H_
#define PURLIN_NPY_H_

#include <string_view>

#include "purlin/buffer.h"
#include "purlin/device.h"
#include "purlin/dtype.h"
#include "purlin/export.h"
#include "purlin/file_options.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// How a .npy file is read.
struct ReadNpyOptions {
  /// The element type that the file must have; kInvalid: any. For types that NumPy does not know, the file contains
  /// only their width, and this is the type.
  DType dtype = DType::kInvalid;
  /// How the file's bytes are brought into memory.
  FileAccess access = FileAccess::kRead;
};

/// The array in the .npy file at `path`, in `memory_space`, and whether it uses the file's mapping. Blocks for reading.
/// kDataLoss and kUnimplemented: see above. kInvalidArgument: the element type is not `options.dtype`, or it is opaque
/// and no type was given; no DType, no FileAccess. kAborted: the file became shorter or longer meanwhile. kNotFound,
/// kPermissionDenied, kFailedPrecondition (no regular file), kUnknown: the system's error. kResourceExhausted: no
/// memory, or no file descriptor. Any thread may call it.
[[nodiscard]] PURLIN_API StatusOr<FromHostResult> ReadNpy(std::string_view path, const MemorySpace& memory_space,
                                                          const ReadNpyOptions& options = {});

/// Writes `buffer` to the file at `path`. Blocks until the buffer is ready and the file is written; meanwhile a new
/// owner after a donation waits with its free_event, and no other use of the buffer waits. The buffer's own error;
/// kInvalidArgument: it is gone, a token, or of a dynamic shape; kResourceExhausted: the disk is full, or there is no
/// memory for a copy, which packed elements and other layouts than the row-major one need; otherwise the system's
/// errors, as ReadNpy. purlin/file_options.h says what happens to an existing file.
[[nodiscard]] PURLIN_API Status WriteNpy(std::string_view path, const Buffer& buffer,
                                         const WriteFileOptions& options = {});

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_NPY_H_
