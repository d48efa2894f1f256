// Purlin's arrays for Python's ctypes: what tests/interchange/check.py calls, as plain functions of one shared library.
//
// Objects are pointers that the caller frees. A function that fails answers null or false, and Failure() says why.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "purlin/purlin.h"

namespace {

using purlin::Buffer;
using purlin::FileAccess;
using purlin::FromHostResult;
using purlin::SafetensorsFile;
using purlin::Status;
using purlin::StatusOr;

std::string& Failure() {
  static thread_local std::string text;
  return text;
}

bool Ok(const Status& status) {
  if (!status.ok()) Failure() = status.ToString();
  return status.ok();
}

const purlin::MemorySpace& Space() {
  static const purlin::Client client = purlin::Client::Create({}).value();
  static const purlin::MemorySpace space = client.devices()[0].default_memory_space();
  return space;
}

Buffer* Give(StatusOr<FromHostResult> read, bool* is_aliased) {
  if (!Ok(read.status())) return nullptr;
  *is_aliased = read->aliasing == purlin::Aliasing::kAliased;
  return new Buffer(std::move(read->buffer));
}

}  // namespace

extern "C" {

const char* interchange_failure() { return Failure().c_str(); }

Buffer* interchange_read_npy(const char* path, std::uint8_t dtype, std::uint8_t access, bool* is_aliased) {
  purlin::ReadNpyOptions options;
  options.dtype = static_cast<purlin::DType>(dtype);
  options.access = static_cast<FileAccess>(access);
  return Give(purlin::ReadNpy(path, Space(), options), is_aliased);
}

bool interchange_write_npy(const char* path, const Buffer* buffer) { return Ok(purlin::WriteNpy(path, *buffer)); }

SafetensorsFile* interchange_open(const char* path, std::uint8_t access) {
  StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path, static_cast<FileAccess>(access));
  return Ok(file.status()) ? new SafetensorsFile(*std::move(file)) : nullptr;
}

void interchange_close(SafetensorsFile* file) { delete file; }

std::size_t interchange_entry_count(const SafetensorsFile* file) { return file->entries().size(); }

Buffer* interchange_read(const SafetensorsFile* file, const char* name, bool* is_aliased) {
  return Give(file->Read(name, Space()), is_aliased);
}

bool interchange_write_safetensors(const char* path, const char* const* names, const Buffer* const* buffers,
                                   std::size_t count, const char* key, const char* text) {
  std::vector<purlin::NamedBuffer> named;
  for (std::size_t i = 0; i < count; ++i) named.push_back({names[i], *buffers[i]});
  return Ok(purlin::WriteSafetensors(path, named, {{key, text}}));
}

DLManagedTensorVersioned* interchange_to_dlpack(const Buffer* buffer) {
  const StatusOr<DLManagedTensorVersioned*> tensor = purlin::ToDLPack(*buffer);
  return Ok(tensor.status()) ? *tensor : nullptr;
}

Buffer* interchange_from_dlpack(DLManagedTensorVersioned* tensor, bool* is_aliased) {
  return Give(purlin::FromDLPack(tensor, Space()), is_aliased);
}

std::uint8_t interchange_dtype(const Buffer* buffer) { return static_cast<std::uint8_t>(buffer->dtype()); }

std::size_t interchange_dims(const Buffer* buffer, std::int64_t* dims) {
  for (std::size_t i = 0; i < buffer->dims().size(); ++i) dims[i] = buffer->dims()[i];
  return buffer->dims().size();
}

bool interchange_copy_to_host(const Buffer* buffer, void* destination, std::size_t size_bytes) {
  return Ok(buffer->CopyToHost(destination, size_bytes).Wait());
}

void interchange_free(Buffer* buffer) { delete buffer; }

}  // extern "C"
