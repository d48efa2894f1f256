#include "purlin/buffer.h"

#include "cpp/generated/buffer.rs.h"
#include "cpp/internal/convert.h"

namespace purlin {
inline namespace v0 {

StatusOr<Buffer> Buffer::FromHost(const void* data, std::size_t size_bytes, DType dtype, Span<const std::int64_t> dims,
                                  const MemorySpace& memory_space, HostBufferSemantics semantics) {
  const internal::StatusRep* error = nullptr;
  const internal::BufferRep* rep =
      ffi::buffer_from_host(static_cast<const std::uint8_t*>(data), size_bytes, static_cast<std::uint8_t>(dtype),
                            internal::ToRust(dims), *memory_space.rep(), static_cast<int>(semantics), error);
  return internal::ToStatusOr<Buffer>(rep, error);
}

Buffer::Buffer(const Buffer& other) noexcept : rep_(other.rep_) {
  if (rep_ != nullptr) ffi::buffer_retain(rep_);
}

Buffer::~Buffer() {
  if (rep_ != nullptr) ffi::buffer_release(rep_);
}

DType Buffer::dtype() const noexcept { return static_cast<DType>(ffi::buffer_dtype(*rep_)); }

Span<const std::int64_t> Buffer::dims() const noexcept {
  const rust::Slice<const std::int64_t> dims = ffi::buffer_dims(*rep_);
  return {dims.data(), dims.size()};
}

std::size_t Buffer::on_device_size_bytes() const noexcept { return ffi::buffer_size_bytes(*rep_); }

MemorySpace Buffer::memory_space() const noexcept { return MemorySpace::Adopt(ffi::buffer_memory_space(*rep_)); }

Device Buffer::device() const noexcept { return Device::Adopt(ffi::buffer_device(*rep_)); }

Event Buffer::ready_event() const noexcept { return Event::Adopt(ffi::buffer_ready_event(*rep_)); }

Event Buffer::CopyToHost(void* destination, std::size_t size_bytes) const {
  return Event::Adopt(ffi::buffer_copy_to_host(*rep_, static_cast<std::uint8_t*>(destination), size_bytes));
}

StatusOr<Buffer> Buffer::CopyToDevice(const Device& device) const {
  const internal::StatusRep* error = nullptr;
  const internal::BufferRep* rep = ffi::buffer_copy_to_device(*rep_, *device.rep(), error);
  return internal::ToStatusOr<Buffer>(rep, error);
}

StatusOr<Buffer> Buffer::CopyToMemorySpace(const MemorySpace& memory_space) const {
  const internal::StatusRep* error = nullptr;
  const internal::BufferRep* rep = ffi::buffer_copy_to_memory_space(*rep_, *memory_space.rep(), error);
  return internal::ToStatusOr<Buffer>(rep, error);
}

StatusOr<RawBuffer> Buffer::RawAlias() const {
  const internal::StatusRep* error = nullptr;
  const internal::RawBufferRep* rep = ffi::buffer_raw_alias(*rep_, error);
  return internal::ToStatusOr<RawBuffer>(rep, error);
}

void Buffer::Delete() const noexcept { ffi::buffer_delete(*rep_); }

bool Buffer::IsDeleted() const noexcept { return ffi::buffer_is_deleted(*rep_); }

}  // namespace v0
}  // namespace purlin
