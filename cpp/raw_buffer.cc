#include "purlin/raw_buffer.h"

#include <cstdint>

#include "cpp/generated/raw_buffer.rs.h"
#include "cpp/internal/convert.h"

namespace purlin {
inline namespace v0 {

StatusOr<RawBuffer> RawBuffer::Allocate(const MemorySpace& memory_space, std::size_t size_bytes) {
  const internal::StatusRep* error = nullptr;
  const internal::RawBufferRep* rep = ffi::raw_buffer_allocate(*memory_space.rep(), size_bytes, error);
  return internal::ToStatusOr<RawBuffer>(rep, error);
}

RawBuffer::RawBuffer(const RawBuffer& other) noexcept : rep_(other.rep_) {
  if (rep_ != nullptr) ffi::raw_buffer_retain(rep_);
}

RawBuffer::~RawBuffer() {
  if (rep_ != nullptr) ffi::raw_buffer_release(rep_);
}

std::size_t RawBuffer::on_device_size_bytes() const noexcept { return ffi::raw_buffer_size_bytes(*rep_); }

MemorySpace RawBuffer::memory_space() const noexcept { return MemorySpace::Adopt(ffi::raw_buffer_memory_space(*rep_)); }

void* RawBuffer::host_pointer() const noexcept { return ffi::raw_buffer_host_pointer(*rep_); }

StatusOr<RawBuffer> RawBuffer::Slice(std::size_t offset_bytes, std::size_t size_bytes) const {
  const internal::StatusRep* error = nullptr;
  const internal::RawBufferRep* rep = ffi::raw_buffer_slice(*rep_, offset_bytes, size_bytes, error);
  return internal::ToStatusOr<RawBuffer>(rep, error);
}

Event RawBuffer::CopyFromHost(const void* source, std::size_t offset_bytes, std::size_t size_bytes,
                              Span<const Event> dependencies) const {
  const auto* bytes = static_cast<const std::uint8_t*>(source);
  return Event::Adopt(ffi::raw_buffer_copy_from_host(*rep_, bytes, offset_bytes, size_bytes,
                                                     internal::ToRust(dependencies), dependencies.size()));
}

Event RawBuffer::CopyToHost(void* destination, std::size_t offset_bytes, std::size_t size_bytes,
                            Span<const Event> dependencies) const {
  auto* bytes = static_cast<std::uint8_t*>(destination);
  return Event::Adopt(ffi::raw_buffer_copy_to_host(*rep_, bytes, offset_bytes, size_bytes,
                                                   internal::ToRust(dependencies), dependencies.size()));
}

Event RawBuffer::CopyTo(const RawBuffer& destination, Span<const Event> dependencies) const {
  return Event::Adopt(
      ffi::raw_buffer_copy_to(*rep_, *destination.rep_, internal::ToRust(dependencies), dependencies.size()));
}

}  // namespace v0
}  // namespace purlin
