// Purlin: safetensors files: many named arrays, each dense and row-major, back to back.
//
// ```cpp
// purlin::StatusOr<purlin::Buffer> Load(std::string_view path, const purlin::MemorySpace& memory) {
//   purlin::StatusOr<purlin::SafetensorsFile> file = purlin::SafetensorsFile::Open(path);
//   if (!file.ok()) return file.status();
//   purlin::StatusOr<purlin::FromHostResult> weights = file->Read("encoder.weights", memory);
//   if (!weights.ok()) return weights.status();
//   return weights->buffer;
// }
// ```
//
// Opening a file checks all of it: the header's length and JSON; that names are unique; that arrays lie in the file,
// are as long as their shapes say, and follow each other without gaps and overlaps to the file's end. Then arrays are
// read by name, in any order, by any thread.
//
// All types of the format but F6_E2M3 and F6_E3M2 can be read; arrays of these are listed, and their reading is
// kUnimplemented. The format has none for c128, for integers of less than 8 bits, and for some 8-bit floats.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_SAFETENSORS_H_
#define PURLIN_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/buffer.h"
#include "purlin/device.h"
#include "purlin/dtype.h"
#include "purlin/export.h"
#include "purlin/file_options.h"
#include "purlin/internal/handle.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct SafetensorsFileRep;
}  // namespace internal

/// An array in a safetensors file. Views in it point into the file, and live as long as a SafetensorsFile of it.
struct SafetensorsEntry {
  /// What it is called.
  std::string_view name;
  /// The format's name for its elements, such as "BF16".
  std::string_view dtype_name;
  /// Its element type; kInvalid: no buffer can hold such elements.
  DType dtype = DType::kInvalid;
  /// Its dimensions, outermost first.
  Span<const std::int64_t> dims;
  /// Its bytes are [offset_bytes, offset_bytes + size_bytes) of the file.
  std::size_t offset_bytes = 0;
  /// See offset_bytes.
  std::size_t size_bytes = 0;
};

/// A safetensors file, open and checked. One word; copies refer to the same. Buffers made from it may outlive it. A
/// moved-from one is empty, see purlin.h.
class SafetensorsFile final : public internal::Handle<SafetensorsFile, const internal::SafetensorsFileRep> {
 public:
  /// Opens the file at `path` and checks all that its header says. Blocks for reading. kDataLoss, naming the byte: it
  /// is damaged. kInvalidArgument: no FileAccess. kAborted: it became shorter or longer meanwhile. kNotFound,
  /// kPermissionDenied, kFailedPrecondition (no regular file), kUnknown: the system's error. kResourceExhausted: no
  /// memory to read it into. Any thread may call it.
  [[nodiscard]] PURLIN_API static StatusOr<SafetensorsFile> Open(std::string_view path,
                                                                 FileAccess access = FileAccess::kRead);

  /// Another reference to the same file.
  PURLIN_API SafetensorsFile(const SafetensorsFile& other);
  /// Leaves `other` empty, see purlin.h.
  SafetensorsFile(SafetensorsFile&& other) noexcept = default;
  /// Drops the reference that was here.
  SafetensorsFile& operator=(const SafetensorsFile& other) noexcept = default;
  /// See the constructors.
  SafetensorsFile& operator=(SafetensorsFile&& other) noexcept = default;
  PURLIN_API ~SafetensorsFile();

  /// All arrays, in the order of their bytes.
  [[nodiscard]] PURLIN_API std::vector<SafetensorsEntry> entries() const;
  /// The file's `__metadata__`: keys and texts, in the file's order; the views live as those of SafetensorsEntry.
  [[nodiscard]] PURLIN_API std::vector<std::pair<std::string_view, std::string_view>> metadata() const;

  /// The array of that name, in `memory_space`, and whether it uses the file's mapping. Blocks only for copying packed
  /// elements (F4). kNotFound: there is none. kInvalidArgument: `name` is not UTF-8. kUnimplemented, naming the byte:
  /// no buffer can hold such elements. kResourceExhausted: no memory.
  [[nodiscard]] PURLIN_API StatusOr<FromHostResult> Read(std::string_view name, const MemorySpace& memory_space) const;

 private:
  using Handle::Handle;
};

/// An array to be written.
struct NamedBuffer {
  /// UTF-8, and not "__metadata__".
  std::string_view name;
  /// Its elements.
  Buffer buffer;
};

/// Writes `buffers`, and texts about them, to the file at `path`: the widest elements first, so that each array begins
/// at a multiple of its elements' size, and the first at one of 64 bytes. Blocks until all buffers are ready and the
/// file is written; meanwhile a new owner after a donation of one of them waits with its free_event, and no other use
/// waits.
///
/// kInvalidArgument, and nothing is written: two equal names or keys, text that is not UTF-8, an array that the format
/// cannot hold (its type, a dynamic shape, an odd number of 4-bit elements, more than 64 dimensions), a header of more
/// than 100 MB. A buffer's own error. Otherwise as WriteNpy.
[[nodiscard]] PURLIN_API Status WriteSafetensors(
    std::string_view path, Span<const NamedBuffer> buffers,
    Span<const std::pair<std::string_view, std::string_view>> metadata = {}, const WriteFileOptions& options = {});

static_assert(sizeof(SafetensorsFile) == sizeof(void*), "a SafetensorsFile is one word");

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_SAFETENSORS_H_
