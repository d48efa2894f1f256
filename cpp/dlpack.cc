#include "purlin/dlpack.h"

#include <cstdint>

#include "cpp/internal/gone.h"
#include "cpp/internal/read_result.h"
#include "purlin-bridge/src/dlpack.rs.h"

namespace purlin {
inline namespace v0 {

StatusOr<DLManagedTensorVersioned*> ToDLPack(const Buffer& buffer) {
  if (buffer.rep() == nullptr) return internal::Gone("Buffer");
  const internal::StatusRep* error = nullptr;
  DLManagedTensorVersioned* tensor = ffi::dlpack_export(*buffer.rep(), error);
  if (error != nullptr) return Status::FromRep(error);
  return tensor;
}

StatusOr<DLManagedTensorVersioned*> ToDLPack(const Buffer& buffer, std::int64_t stream) {
  if (buffer.rep() == nullptr) return internal::Gone("Buffer");
  const internal::StatusRep* error = nullptr;
  DLManagedTensorVersioned* tensor = ffi::dlpack_export_for_stream(*buffer.rep(), stream, error);
  if (error != nullptr) return Status::FromRep(error);
  return tensor;
}

StatusOr<FromHostResult> FromDLPack(DLManagedTensorVersioned* tensor, const MemorySpace& memory_space) {
  if (memory_space.rep() == nullptr) return internal::Gone("MemorySpace");
  bool is_aliased = false;
  const internal::StatusRep* error = nullptr;
  const internal::BufferRep* rep = ffi::dlpack_import(tensor, *memory_space.rep(), is_aliased, error);
  return internal::ToReadResult(rep, is_aliased, error);
}

StatusOr<FromHostResult> FromDLPack(DLManagedTensorVersioned* tensor, const MemorySpace& memory_space,
                                    std::int64_t stream) {
  if (memory_space.rep() == nullptr) return internal::Gone("MemorySpace");
  bool is_aliased = false;
  const internal::StatusRep* error = nullptr;
  const internal::BufferRep* rep = ffi::dlpack_import_behind(tensor, *memory_space.rep(), stream, is_aliased, error);
  return internal::ToReadResult(rep, is_aliased, error);
}

}  // namespace v0
}  // namespace purlin
