// Purlin: the plain functions of rust/bridge for arrays of other programs. Declared by hand, as abi_rust.h: the other
// half of npy.rs, safetensors.rs and dlpack.rs there, in the same order, where each has its contract.
#ifndef PURLIN_CPP_INTERNAL_ABI_INTERCHANGE_H_
#define PURLIN_CPP_INTERNAL_ABI_INTERCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cpp/internal/abi_rust.h"
#include "purlin/buffer.h"
#include "purlin/dlpack.h"
#include "purlin/safetensors.h"

namespace purlin {
inline namespace v0 {
namespace internal {

extern "C" {

const BufferRep* purlin_npy_read(PurlinBytes path, std::uint8_t dtype, std::uint8_t access, const MemorySpaceRep* space,
                                 bool* is_aliased, const StatusRep** error) noexcept;
const StatusRep* purlin_npy_write(PurlinBytes path, const BufferRep* buffer, bool is_durable) noexcept;

/// A SafetensorsEntry.
struct PurlinSafetensorsEntry {
  PurlinBytes name;
  PurlinBytes dtype_name;
  const std::int64_t* dims;
  std::size_t rank;
  std::size_t offset_bytes;
  std::size_t size_bytes;
  std::uint8_t dtype;
};
/// A NamedBuffer.
struct PurlinNamedBuffer {
  PurlinBytes name;
  const BufferRep* buffer;
};
/// A key and its text.
struct PurlinTextPair {
  PurlinBytes key;
  PurlinBytes text;
};
const SafetensorsFileRep* purlin_safetensors_open(PurlinBytes path, std::uint8_t access,
                                                  const StatusRep** error) noexcept;
void purlin_safetensors_retain(const SafetensorsFileRep* file) noexcept;
void purlin_safetensors_release(const SafetensorsFileRep* file) noexcept;
bool purlin_safetensors_entry(const SafetensorsFileRep* file, std::size_t index,
                              PurlinSafetensorsEntry* entry) noexcept;
bool purlin_safetensors_metadata(const SafetensorsFileRep* file, std::size_t index, PurlinTextPair* pair) noexcept;
const BufferRep* purlin_safetensors_read(const SafetensorsFileRep* file, PurlinBytes name, const MemorySpaceRep* space,
                                         bool* is_aliased, const StatusRep** error) noexcept;
const StatusRep* purlin_safetensors_write(PurlinBytes path, const PurlinNamedBuffer* buffers, std::size_t buffer_count,
                                          const PurlinTextPair* metadata, std::size_t pair_count,
                                          bool is_durable) noexcept;

DLManagedTensorVersioned* purlin_dlpack_export(const BufferRep* buffer, const StatusRep** error) noexcept;
const BufferRep* purlin_dlpack_import(DLManagedTensorVersioned* tensor, const MemorySpaceRep* space, bool* is_aliased,
                                      const StatusRep** error) noexcept;

}  // extern "C"

inline PurlinBytes ToRustBytes(std::string_view text) noexcept { return {text.data(), text.size()}; }
inline std::string_view FromRust(PurlinBytes bytes) noexcept { return {bytes.data, bytes.size_bytes}; }

/// What a function that reads an array has answered: the buffer, adopted, or the error.
inline StatusOr<FromHostResult> ToReadResult(const BufferRep* rep, bool is_aliased, const StatusRep* error) {
  if (error != nullptr) return Status::FromRep(error);
  return FromHostResult{Buffer::Adopt(rep), is_aliased ? Aliasing::kAliased : Aliasing::kCopied};
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_ABI_INTERCHANGE_H_
