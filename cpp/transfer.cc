#include "purlin/transfer.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cpp/internal/alloc_options.h"
#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "cpp/internal/shape.h"
#include "purlin-bridge/src/transfer.rs.h"

namespace purlin {
inline namespace v0 {

// An on_done or a waiter that a call runs may destroy the manager: nothing of it is touched after the call.

StatusOr<AsyncHostToDeviceTransferManager> AsyncHostToDeviceTransferManager::Create(Span<const TransferSpec> specs,
                                                                                    const MemorySpace& memory_space,
                                                                                    const AllocOptions& options,
                                                                                    SourceLocation location) {
  if (memory_space.rep() == nullptr) return internal::Gone("MemorySpace");

  std::vector<ffi::RawTransferSpec> raw;
  raw.reserve(specs.size());
  for (const TransferSpec& spec : specs) {
    ffi::RawTransferSpec& entry = raw.emplace_back();
    entry.shape = internal::ToRust(spec.shape);
    entry.has_layout = spec.layout.has_value();
    if (spec.layout) entry.layout = {spec.layout->minor_to_major().data(), spec.layout->rank()};
  }
  const internal::RawAllocOptions raw_options = internal::ToRust(options);
  const internal::StatusRep* error = nullptr;
  const internal::TransferRep* rep =
      ffi::transfer_create(internal::ToRust(raw), *memory_space.rep(), raw_options, location, error);
  return internal::ToStatusOr<AsyncHostToDeviceTransferManager>(rep, error);
}

AsyncHostToDeviceTransferManager::~AsyncHostToDeviceTransferManager() { internal::GiveUp<ffi::transfer_release>(rep_); }

std::size_t AsyncHostToDeviceTransferManager::buffer_count() const noexcept {
  if (rep_ == nullptr) return 0;

  return ffi::transfer_buffer_count(*rep_);
}

MemorySpace AsyncHostToDeviceTransferManager::memory_space() const noexcept {
  if (rep_ == nullptr) return MemorySpace::Adopt(nullptr);

  return MemorySpace::Adopt(ffi::transfer_memory_space(*rep_));
}

Device AsyncHostToDeviceTransferManager::device() const noexcept { return memory_space().device(); }

StatusOr<std::size_t> AsyncHostToDeviceTransferManager::buffer_size(std::size_t index) const {
  if (rep_ == nullptr) return internal::Gone("AsyncHostToDeviceTransferManager");

  const internal::StatusRep* error = nullptr;
  const std::size_t size_bytes = ffi::transfer_buffer_size(*rep_, index, error);
  if (error != nullptr) return Status::FromRep(error);
  return size_bytes;
}

StatusOr<Buffer> AsyncHostToDeviceTransferManager::RetrieveBuffer(std::size_t index) const {
  if (rep_ == nullptr) return internal::Gone("AsyncHostToDeviceTransferManager");

  const internal::StatusRep* error = nullptr;
  const internal::BufferRep* rep = ffi::transfer_retrieve(*rep_, index, error);
  return internal::ToStatusOr<Buffer>(rep, error);
}

Status AsyncHostToDeviceTransferManager::TransferArray(std::size_t index, const void* data, DType dtype,
                                                       Span<const std::int64_t> dims,
                                                       const std::optional<Span<const std::int64_t>>& byte_strides,
                                                       const internal::Callback* on_done) {
  if (rep_ == nullptr) return internal::GoneAndTold("AsyncHostToDeviceTransferManager", on_done);

  const internal::RawHostArray array = internal::ToRust(data, dtype, dims, byte_strides);
  return Status::FromRep(internal::purlin_transfer_array(rep_, index, &array, on_done));
}

Status AsyncHostToDeviceTransferManager::TransferWhole(std::size_t index, const void* data, std::size_t size_bytes,
                                                       const internal::Callback* on_done) {
  if (rep_ == nullptr) return internal::GoneAndTold("AsyncHostToDeviceTransferManager", on_done);

  return Status::FromRep(internal::purlin_transfer_whole(rep_, index, data, size_bytes, on_done));
}

Status AsyncHostToDeviceTransferManager::TransferPiece(std::size_t index, const void* data, std::size_t offset_bytes,
                                                       std::size_t size_bytes, bool is_last,
                                                       const internal::Callback* on_done) {
  if (rep_ == nullptr) return internal::GoneAndTold("AsyncHostToDeviceTransferManager", on_done);

  return Status::FromRep(
      internal::purlin_transfer_piece(rep_, index, data, offset_bytes, size_bytes, is_last, on_done));
}

Status AsyncHostToDeviceTransferManager::SetBufferError(std::size_t index, Status error, SourceLocation location) {
  if (rep_ == nullptr) return internal::Gone("AsyncHostToDeviceTransferManager");

  error = internal::NotOk(std::move(error), "SetBufferError", location);
  return Status::FromRep(ffi::transfer_set_error(rep_, index, std::move(error).ReleaseRep()));
}

void AsyncHostToDeviceTransferManager::AddTransferMetadata(std::string_view key, std::string_view value) {
  if (rep_ == nullptr) return;

  ffi::transfer_add_metadata(*rep_, internal::ToRust(key), internal::ToRust(value));
}

std::vector<std::pair<std::string, std::string>> AsyncHostToDeviceTransferManager::transfer_metadata() const {
  if (rep_ == nullptr) return {};

  std::vector<std::pair<std::string, std::string>> entries;
  for (const ffi::RawTransferMetadata& pair : ffi::transfer_metadata(*rep_)) {
    entries.emplace_back(std::string(pair.key), std::string(pair.value));
  }
  return entries;
}

Event AsyncHostToDeviceTransferManager::ready_event() const {
  if (rep_ == nullptr) return internal::GoneEvent("AsyncHostToDeviceTransferManager");

  return Event::Adopt(ffi::transfer_ready_event(*rep_));
}

}  // namespace v0
}  // namespace purlin
