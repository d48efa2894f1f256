#include "purlin/raw_buffer.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "cpp/internal/alloc_options.h"
#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "purlin-bridge/src/raw_buffer.rs.h"
#include "purlin-bridge/src/raw_buffer_promise.rs.h"

namespace purlin {
inline namespace v0 {

static_assert(sizeof(ByteRange) == 2 * sizeof(std::size_t), "Rust reads ByteRange as two numbers");

StatusOr<RawBuffer> RawBuffer::Allocate(const MemorySpace& memory_space, std::size_t size_bytes,
                                        const AllocOptions& options, SourceLocation location) {
  if (memory_space.rep() == nullptr) return internal::Gone("MemorySpace");

  const internal::StatusRep* error = nullptr;
  const internal::RawAllocOptions raw = internal::ToRust(options);
  const internal::RawBufferRep* rep = ffi::raw_buffer_allocate(*memory_space.rep(), size_bytes, raw, location, error);
  return internal::ToStatusOr<RawBuffer>(rep, error);
}

StatusOr<RawBuffer> RawBuffer::ImportRaw(const MemorySpace& memory_space, void* address, std::size_t size_bytes,
                                         Mutability mutability, const internal::Callback* on_release) {
  if (memory_space.rep() == nullptr) {
    if (on_release != nullptr) on_release->invoke(on_release->data, false, nullptr, nullptr);
    return internal::Gone("MemorySpace");
  }

  const internal::StatusRep* error = nullptr;
  const internal::RawBufferRep* rep = internal::purlin_raw_buffer_import(
      memory_space.rep(), address, size_bytes, static_cast<std::int32_t>(mutability), on_release, &error);
  return internal::ToStatusOr<RawBuffer>(rep, error);
}

StatusOr<std::pair<RawBuffer, RawBufferPromise>> RawBuffer::CreateChannel(const MemorySpace& memory_space,
                                                                          std::size_t size_bytes,
                                                                          const AllocOptions& options,
                                                                          SourceLocation location) {
  if (memory_space.rep() == nullptr) return internal::Gone("MemorySpace");

  const internal::RawBufferRep* buffer = nullptr;
  internal::RawBufferPromiseRep* promise = nullptr;
  const internal::RawAllocOptions raw = internal::ToRust(options);
  const internal::StatusRep* error =
      ffi::raw_buffer_create_channel(*memory_space.rep(), size_bytes, raw, location, buffer, promise);
  if (error != nullptr) return Status::FromRep(error);
  return std::pair(Adopt(buffer), RawBufferPromise::Adopt(promise));
}

RawBuffer::RawBuffer(const RawBuffer& other) noexcept : Handle(internal::Shared<ffi::raw_buffer_retain>(other.rep_)) {}

RawBuffer::~RawBuffer() { internal::GiveUp<ffi::raw_buffer_release>(rep_); }

std::size_t RawBuffer::on_device_size_bytes() const noexcept {
  if (rep_ == nullptr) return 0;
  return ffi::raw_buffer_size_bytes(*rep_);
}

MemorySpace RawBuffer::memory_space() const noexcept {
  if (rep_ == nullptr) return MemorySpace::Adopt(nullptr);
  return MemorySpace::Adopt(ffi::raw_buffer_memory_space(*rep_));
}

Event RawBuffer::allocation_event() const noexcept {
  if (rep_ == nullptr) return internal::GoneEvent("RawBuffer");
  return Event::Adopt(ffi::raw_buffer_allocation_event(*rep_));
}

bool RawBuffer::is_mutable() const noexcept {
  if (rep_ == nullptr) return false;
  return ffi::raw_buffer_is_mutable(*rep_);
}

void* RawBuffer::host_pointer() const noexcept {
  if (rep_ == nullptr) return nullptr;
  return ffi::raw_buffer_host_pointer(*rep_);
}

StatusOr<std::uintptr_t> RawBuffer::device_pointer() const {
  if (rep_ == nullptr) return internal::Gone("RawBuffer");

  const internal::StatusRep* error = nullptr;
  const std::uintptr_t address = ffi::raw_buffer_device_pointer(*rep_, error);
  if (error != nullptr) return Status::FromRep(error);
  return address;
}

StatusOr<RawBuffer> RawBuffer::Slice(std::size_t offset_bytes, std::size_t size_bytes) const {
  if (rep_ == nullptr) return internal::Gone("RawBuffer");

  const internal::StatusRep* error = nullptr;
  const internal::RawBufferRep* rep = ffi::raw_buffer_slice(*rep_, offset_bytes, size_bytes, error);
  return internal::ToStatusOr<RawBuffer>(rep, error);
}

StatusOr<std::vector<RawBuffer>> RawBuffer::Slices(Span<const ByteRange> ranges) const {
  if (rep_ == nullptr) return internal::Gone("RawBuffer");

  std::vector<const internal::RawBufferRep*> reps(ranges.size());
  const internal::StatusRep* error =
      internal::purlin_raw_buffer_slices(rep_, ranges.data(), ranges.size(), reps.data());
  if (error != nullptr) return Status::FromRep(error);
  std::vector<RawBuffer> slices;
  slices.reserve(reps.size());
  for (const internal::RawBufferRep* rep : reps) slices.push_back(Adopt(rep));
  return slices;
}

void RawBuffer::RetainUntil(const Event& event) const {
  if (rep_ == nullptr) return;
  ffi::raw_buffer_retain_until(*rep_, event.header());
}

Event RawBuffer::CopyFromHost(const void* source, std::size_t offset_bytes, std::size_t size_bytes,
                              Span<const Event> dependencies) const {
  if (rep_ == nullptr) return internal::GoneEvent("RawBuffer");

  const auto* bytes = static_cast<const std::uint8_t*>(source);
  return Event::Adopt(ffi::raw_buffer_copy_from_host(*rep_, bytes, offset_bytes, size_bytes,
                                                     internal::ToRust(dependencies), dependencies.size()));
}

Event RawBuffer::CopyToHost(void* destination, std::size_t offset_bytes, std::size_t size_bytes,
                            Span<const Event> dependencies) const {
  if (rep_ == nullptr) return internal::GoneEvent("RawBuffer");

  auto* bytes = static_cast<std::uint8_t*>(destination);
  return Event::Adopt(ffi::raw_buffer_copy_to_host(*rep_, bytes, offset_bytes, size_bytes,
                                                   internal::ToRust(dependencies), dependencies.size()));
}

Event RawBuffer::CopyTo(const RawBuffer& destination, Span<const Event> dependencies) const {
  if (rep_ == nullptr || destination.rep_ == nullptr) return internal::GoneEvent("RawBuffer");

  return Event::Adopt(
      ffi::raw_buffer_copy_to(*rep_, *destination.rep_, internal::ToRust(dependencies), dependencies.size()));
}

Event RawBuffer::CopyRangeTo(std::size_t offset_bytes, const RawBuffer& destination,
                             std::size_t destination_offset_bytes, std::size_t size_bytes,
                             Span<const Event> dependencies) const {
  if (rep_ == nullptr || destination.rep_ == nullptr) return internal::GoneEvent("RawBuffer");

  return Event::Adopt(ffi::raw_buffer_copy_range_to(*rep_, offset_bytes, *destination.rep_, destination_offset_bytes,
                                                    size_bytes, internal::ToRust(dependencies), dependencies.size()));
}

}  // namespace v0
}  // namespace purlin
