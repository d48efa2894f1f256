#include "purlin/npy.h"

#include <cstdint>

#include "cpp/internal/convert.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/read_result.h"
#include "purlin-bridge/src/npy.rs.h"

namespace purlin {
inline namespace v0 {

StatusOr<FromHostResult> ReadNpy(std::string_view path, const MemorySpace& memory_space,
                                 const ReadNpyOptions& options) {
  if (memory_space.rep() == nullptr) return internal::Gone("MemorySpace");
  bool is_aliased = false;
  const internal::StatusRep* error = nullptr;
  const internal::BufferRep* rep =
      ffi::npy_read(internal::ToRust(path), static_cast<std::uint8_t>(options.dtype),
                    static_cast<std::uint8_t>(options.access), *memory_space.rep(), is_aliased, error);
  return internal::ToReadResult(rep, is_aliased, error);
}

Status WriteNpy(std::string_view path, const Buffer& buffer, const WriteFileOptions& options) {
  if (buffer.rep() == nullptr) return internal::Gone("Buffer");
  return Status::FromRep(ffi::npy_write(internal::ToRust(path), *buffer.rep(), options.is_durable));
}

}  // namespace v0
}  // namespace purlin
