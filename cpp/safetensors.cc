#include "purlin/safetensors.h"

#include <cstdint>

#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "cpp/internal/read_result.h"

namespace purlin {
inline namespace v0 {

StatusOr<SafetensorsFile> SafetensorsFile::Open(std::string_view path, FileAccess access) {
  const internal::StatusRep* error = nullptr;
  const internal::SafetensorsFileRep* rep =
      internal::purlin_safetensors_open(internal::ToRustBytes(path), static_cast<std::uint8_t>(access), &error);
  if (error != nullptr) return Status::FromRep(error);
  return Adopt(rep);
}

SafetensorsFile::SafetensorsFile(const SafetensorsFile& other)
    : Handle(internal::Shared<internal::purlin_safetensors_retain>(other.rep_)) {}

SafetensorsFile::~SafetensorsFile() { internal::GiveUp<internal::purlin_safetensors_release>(rep_); }

std::vector<SafetensorsEntry> SafetensorsFile::entries() const {
  if (rep_ == nullptr) return {};

  std::vector<SafetensorsEntry> entries;
  internal::RawEntry entry{};
  while (internal::purlin_safetensors_entry(rep_, entries.size(), &entry)) {
    entries.push_back({internal::FromRust(entry.name),
                       internal::FromRust(entry.dtype_name),
                       static_cast<DType>(entry.dtype),
                       {entry.dims, entry.rank},
                       entry.offset_bytes,
                       entry.size_bytes});
  }
  return entries;
}

std::vector<std::pair<std::string_view, std::string_view>> SafetensorsFile::metadata() const {
  if (rep_ == nullptr) return {};

  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  internal::RawTextPair pair{};
  while (internal::purlin_safetensors_metadata(rep_, pairs.size(), &pair)) {
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
      internal::purlin_safetensors_read(rep_, internal::ToRustBytes(name), memory_space.rep(), &is_aliased, &error);
  return internal::ToReadResult(rep, is_aliased, error);
}

Status WriteSafetensors(std::string_view path, Span<const NamedBuffer> buffers,
                        Span<const std::pair<std::string_view, std::string_view>> metadata,
                        const WriteFileOptions& options) {
  std::vector<internal::RawNamedBuffer> named;
  named.reserve(buffers.size());
  for (const NamedBuffer& each : buffers) {
    if (each.buffer.rep() == nullptr) return internal::Gone("Buffer");
  }
  for (const NamedBuffer& each : buffers) named.push_back({internal::ToRustBytes(each.name), each.buffer.rep()});
  std::vector<internal::RawTextPair> pairs;
  pairs.reserve(metadata.size());
  for (const auto& [key, text] : metadata) pairs.push_back({internal::ToRustBytes(key), internal::ToRustBytes(text)});
  return Status::FromRep(internal::purlin_safetensors_write(internal::ToRustBytes(path), named.data(), named.size(),
                                                            pairs.data(), pairs.size(), options.is_durable));
}

}  // namespace v0
}  // namespace purlin
