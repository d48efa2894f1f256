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
//   pred, integers, f16 to f64, c64, c128   NumPy's own: |b1, <i4, <c8 ...    anybody
//   bf16, 8-bit floats, types narrower      opaque: <V2, |V1, as ml_dtypes    who knows the type: here
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
  /// What the elements must be; kInvalid: whatever the file says. For those that NumPy does not know, the file tells
  /// only their width, and this the type.
  DType dtype = DType::kInvalid;
  /// How the file's bytes come into memory.
  FileAccess access = FileAccess::kRead;
};

/// The array in the .npy file at `path`, in `memory_space`, and whether its memory is the file's mapping. Blocks for
/// reading. kDataLoss and kUnimplemented: see above. kInvalidArgument: the elements are others than `options.dtype`, or
/// opaque, and no type was given; no DType, no FileAccess. kAborted: the file became shorter or longer meanwhile.
/// kNotFound, kPermissionDenied, kFailedPrecondition (no regular file), kUnknown: the system's answer.
/// kResourceExhausted: no memory, or no file descriptor. Any thread may call it.
[[nodiscard]] PURLIN_API StatusOr<FromHostResult> ReadNpy(std::string_view path, const MemorySpace& memory_space,
                                                          const ReadNpyOptions& options = {});

/// Writes `buffer` to the file at `path`. Blocks until the buffer is ready and the file is written; meanwhile a
/// donation of the buffer waits with its free_event, and nobody else. The buffer's own error; kInvalidArgument: it is
/// gone, a token, or of a dynamic shape; kResourceExhausted: the disk is full, or there is no memory for a copy, which
/// packed elements and other layouts than the row-major one need; as ReadNpy for what else the system says. What
/// becomes of a file that is there already: purlin/file_options.h.
[[nodiscard]] PURLIN_API Status WriteNpy(std::string_view path, const Buffer& buffer,
                                         const WriteFileOptions& options = {});

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_NPY_H_
