#include "purlin/safetensors.h"

#include <cstddef>
#include <cstdint>

#include "cpp/internal/convert.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "cpp/internal/read_result.h"
#include "purlin-bridge/src/safetensors.rs.h"

namespace purlin {
inline namespace v0 {

StatusOr<SafetensorsFile> SafetensorsFile::Open(std::string_view path, FileAccess access) {
  const internal::StatusRep* error = nullptr;
  const internal::SafetensorsFileRep* rep =
      ffi::safetensors_open(internal::ToRust(path), static_cast<std::uint8_t>(access), error);
  return internal::ToStatusOr<SafetensorsFile>(rep, error);
}

SafetensorsFile::SafetensorsFile(const SafetensorsFile& other)
    : Handle(internal::Shared<ffi::safetensors_retain>(other.rep_)) {}

SafetensorsFile::~SafetensorsFile() { internal::GiveUp<ffi::safetensors_release>(rep_); }

std::vector<SafetensorsEntry> SafetensorsFile::entries() const {
  if (rep_ == nullptr) return {};

  std::vector<SafetensorsEntry> entries;
  const std::size_t count = ffi::safetensors_entry_count(*rep_);
  entries.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const ffi::RawEntry entry = ffi::safetensors_entry_at(*rep_, i);
    entries.push_back({internal::FromRust(entry.name),
                       internal::FromRust(entry.dtype_name),
                       static_cast<DType>(entry.dtype),
                       {entry.dims.data(), entry.dims.size()},
                       entry.offset_bytes,
                       entry.size_bytes});
  }
  return entries;
}

std::vector<std::pair<std::string_view, std::string_view>> SafetensorsFile::metadata() const {
  if (rep_ == nullptr) return {};

  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  const std::size_t count = ffi::safetensors_metadata_count(*rep_);
  pairs.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const ffi::RawMetadata pair = ffi::safetensors_metadata_at(*rep_, i);
    pairs.emplace_back(internal::FromRust(pair.key), internal::FromRust(pair.text));
  }
  return pairs;
}

StatusOr<FromHostResult> SafetensorsFile::Read(std::string_view name, const MemorySpace& memory_space) const {
  if (rep_ == nullptr || memory_space.rep() == nullptr)
    return internal::Gone(rep_ == nullptr ? "SafetensorsFile" : "MemorySpace");

  bool is_aliased = false;
  const internal::StatusRep* error = nullptr;
  const internal::BufferRep* rep =
      ffi::safetensors_read(*rep_, internal::ToRust(name), *memory_space.rep(), is_aliased, error);
  return internal::ToReadResult(rep, is_aliased, error);
}

Status WriteSafetensors(std::string_view path, Span<const NamedBuffer> buffers,
                        Span<const std::pair<std::string_view, std::string_view>> metadata,
                        const WriteFileOptions& options) {
  for (const NamedBuffer& each : buffers) {
    if (each.buffer.rep() == nullptr) return internal::Gone("Buffer");
  }
  std::vector<ffi::RawNamedBuffer> named;
  named.reserve(buffers.size());
  for (const NamedBuffer& each : buffers) named.push_back({internal::ToRust(each.name), *each.buffer.rep()});
  std::vector<ffi::RawTextPair> pairs;
  pairs.reserve(metadata.size());
  for (const auto& [key, text] : metadata) pairs.push_back({internal::ToRust(key), internal::ToRust(text)});
  return Status::FromRep(ffi::safetensors_write(internal::ToRust(path), internal::ToRust(named),
                                                internal::ToRust(pairs), options.is_durable));
}

}  // namespace v0
}  // namespace purlin
