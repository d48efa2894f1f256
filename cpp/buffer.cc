#include "purlin/buffer.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cpp/internal/alloc_options.h"
#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "cpp/internal/scratch.h"
#include "cpp/internal/shape.h"
#include "purlin-bridge/src/buffer.rs.h"
#include "purlin-bridge/src/buffer_create.rs.h"
#include "purlin-bridge/src/buffer_holds.rs.h"
#include "purlin-bridge/src/buffer_promise.rs.h"

namespace purlin {
inline namespace v0 {
namespace {

template <typename Hold, typename Rep>
StatusOr<Hold> ToHold(Rep* rep, const internal::StatusRep* error) {
  if (error != nullptr) return Status::FromRep(error);
  return Hold::Adopt(rep);
}

}  // namespace

StatusOr<Buffer> Buffer::FromHost(const void* data, std::size_t size_bytes, DType dtype, Span<const std::int64_t> dims,
                                  const MemorySpace& memory_space, HostBufferSemantics semantics,
                                  SourceLocation location) {
  if (memory_space.rep() == nullptr) return internal::Gone("MemorySpace");

  const internal::StatusRep* error = nullptr;
  const ffi::RawDenseArray array = {static_cast<const std::uint8_t*>(data), size_bytes, dims.data(), dims.size(),
                                    static_cast<std::uint8_t>(dtype)};
  const internal::BufferRep* rep =
      ffi::buffer_from_host(array, *memory_space.rep(), static_cast<std::int32_t>(semantics), location, error);
  return internal::ToStatusOr<Buffer>(rep, error);
}

StatusOr<Buffer> Buffer::CreateUninitialized(const Shape& shape, const MemorySpace& memory_space, const Layout* layout,
                                             const AllocOptions& options, SourceLocation location) {
  if (memory_space.rep() == nullptr) return internal::Gone("MemorySpace");

  const internal::StatusRep* error = nullptr;
  const internal::RawShape raw_shape = internal::ToRust(shape);
  const internal::RawAllocOptions raw_options = internal::ToRust(options);
  const internal::BufferRep* rep = ffi::buffer_create_uninitialized(raw_shape, internal::OptionalLayout(layout).get(),
                                                                    *memory_space.rep(), raw_options, location, error);
  return internal::ToStatusOr<Buffer>(rep, error);
}

StatusOr<Buffer> Buffer::CreateError(Status error, const Shape& shape, const MemorySpace& memory_space,
                                     SourceLocation location) {
  if (memory_space.rep() == nullptr) return internal::Gone("MemorySpace");

  error = internal::NotOk(std::move(error), "Buffer::CreateError", location);
  const internal::StatusRep* refused = nullptr;
  const internal::RawShape raw = internal::ToRust(shape);
  const internal::BufferRep* rep =
      ffi::buffer_create_error(std::move(error).ReleaseRep(), raw, *memory_space.rep(), refused);
  return internal::ToStatusOr<Buffer>(rep, refused);
}

StatusOr<Buffer> Buffer::CreateToken(const MemorySpace& memory_space, const Event& ready, SourceLocation location) {
  if (memory_space.rep() == nullptr) return internal::Gone("MemorySpace");

  const internal::StatusRep* error = nullptr;
  const internal::BufferRep* rep = ffi::buffer_create_token(*memory_space.rep(), ready.header(), location, error);
  return internal::ToStatusOr<Buffer>(rep, error);
}

StatusOr<Buffer> Buffer::FromRaw(const RawBuffer& memory, const Shape& shape, const Layout* layout,
                                 const Event& ready) {
  if (memory.rep() == nullptr) return internal::Gone("RawBuffer");

  const internal::StatusRep* error = nullptr;
  const internal::RawShape raw = internal::ToRust(shape);
  const internal::BufferRep* rep =
      ffi::buffer_from_raw(*memory.rep(), raw, internal::OptionalLayout(layout).get(), ready.header(), error);
  return internal::ToStatusOr<Buffer>(rep, error);
}

StatusOr<std::pair<Buffer, BufferPromise>> Buffer::CreateChannel(const Shape& shape, const MemorySpace& memory_space,
                                                                 const Layout* layout, SourceLocation location) {
  if (memory_space.rep() == nullptr) return internal::Gone("MemorySpace");

  const internal::BufferRep* buffer = nullptr;
  internal::BufferPromiseRep* promise = nullptr;
  const internal::RawShape raw = internal::ToRust(shape);
  const internal::StatusRep* error = ffi::buffer_create_channel(raw, internal::OptionalLayout(layout).get(),
                                                                *memory_space.rep(), location, buffer, promise);
  if (error != nullptr) return Status::FromRep(error);
  return std::pair(Adopt(buffer), BufferPromise::Adopt(promise));
}

Buffer::Buffer(const Buffer& other) noexcept : Handle(internal::Shared<ffi::buffer_retain>(other.rep_)) {}

Buffer::~Buffer() { internal::GiveUp<ffi::buffer_release>(rep_); }

DType Buffer::dtype() const noexcept {
  if (rep_ == nullptr) return DType::kInvalid;
  return static_cast<DType>(ffi::buffer_dtype(*rep_));
}

Span<const std::int64_t> Buffer::dims() const noexcept {
  if (rep_ == nullptr) return {};

  const rust::Slice<const std::int64_t> dims = ffi::buffer_dims(*rep_);
  return {dims.data(), dims.size()};
}

Shape Buffer::shape() const {
  if (rep_ == nullptr) return Shape(DType::kInvalid);

  internal::Scratch<bool> dynamic(dims().size());
  if (!ffi::buffer_dynamic(*rep_, internal::Writable(dynamic))) return Shape(dtype(), dims());
  return Shape(dtype(), dims(), Span<const bool>(dynamic.data(), dynamic.size()));
}

Layout Buffer::layout() const {
  if (rep_ == nullptr) return Layout({});

  internal::Scratch<std::int64_t> minor_to_major(dims().size());
  ffi::buffer_layout(*rep_, internal::Writable(minor_to_major));
  return Layout(Span<const std::int64_t>(minor_to_major.data(), minor_to_major.size()));
}

std::size_t Buffer::on_device_size_bytes() const noexcept {
  if (rep_ == nullptr) return 0;
  return ffi::buffer_size_bytes(*rep_);
}

MemorySpace Buffer::memory_space() const noexcept {
  if (rep_ == nullptr) return MemorySpace::Adopt(nullptr);
  return MemorySpace::Adopt(ffi::buffer_memory_space(*rep_));
}

Device Buffer::device() const noexcept {
  if (rep_ == nullptr) return Device::Adopt(nullptr);
  return Device::Adopt(ffi::buffer_device(*rep_));
}

StatusOr<std::vector<std::int64_t>> Buffer::logical_dims() const {
  if (rep_ == nullptr) return internal::Gone("Buffer");

  std::vector<std::int64_t> actual(dims().size());
  const internal::StatusRep* error = ffi::buffer_logical_dims(*rep_, internal::Writable(actual));
  if (error != nullptr) return Status::FromRep(error);
  return actual;
}

Event Buffer::ready_event() const noexcept {
  if (rep_ == nullptr) return internal::GoneEvent("Buffer");
  return Event::Adopt(ffi::buffer_ready_event(*rep_));
}

Event Buffer::CopyToHost(void* destination, std::size_t size_bytes) const {
  if (rep_ == nullptr) return internal::GoneEvent("Buffer");

  return Event::Adopt(ffi::buffer_copy_to_host(*rep_, static_cast<std::uint8_t*>(destination), size_bytes));
}

Event Buffer::CopyToHostStrided(void* destination, Span<const std::int64_t> byte_strides) const {
  if (rep_ == nullptr) return internal::GoneEvent("Buffer");

  return Event::Adopt(
      ffi::buffer_copy_to_host_strided(*rep_, static_cast<std::uint8_t*>(destination), internal::ToRust(byte_strides)));
}

Event Buffer::CopyRawToHost(void* destination, std::size_t offset_bytes, std::size_t size_bytes) const {
  if (rep_ == nullptr) return internal::GoneEvent("Buffer");

  return Event::Adopt(
      ffi::buffer_copy_raw_to_host(*rep_, static_cast<std::uint8_t*>(destination), offset_bytes, size_bytes));
}

internal::EventHeader* Buffer::CopyRawToHostWhenRaw(std::size_t offset_bytes, std::size_t size_bytes,
                                                    internal::HostAddressRep** address) const {
  if (rep_ == nullptr) {
    *address = nullptr;
    return internal::purlin_event_new_error(internal::Gone("Buffer").ReleaseRep(), SourceLocation());
  }

  return ffi::buffer_copy_raw_to_host_when(*rep_, offset_bytes, size_bytes, *address);
}

void Buffer::SetHostAddress(internal::HostAddressRep* address, void* destination, Status error) noexcept {
  ffi::host_address_set(address, static_cast<std::uint8_t*>(destination), std::move(error).ReleaseRep());
}

StatusOr<Buffer> Buffer::CopyToDevice(const Device& device, SourceLocation location) const {
  if (rep_ == nullptr || device.rep() == nullptr) return internal::Gone(rep_ == nullptr ? "Buffer" : "Device");

  const internal::StatusRep* error = nullptr;
  const internal::BufferRep* rep = ffi::buffer_copy_to_device(*rep_, *device.rep(), location, error);
  return internal::ToStatusOr<Buffer>(rep, error);
}

StatusOr<Buffer> Buffer::CopyToMemorySpace(const MemorySpace& memory_space, SourceLocation location) const {
  if (rep_ == nullptr || memory_space.rep() == nullptr)
    return internal::Gone(rep_ == nullptr ? "Buffer" : "MemorySpace");

  const internal::StatusRep* error = nullptr;
  const internal::BufferRep* rep = ffi::buffer_copy_to_memory_space(*rep_, *memory_space.rep(), location, error);
  return internal::ToStatusOr<Buffer>(rep, error);
}

StatusOr<Buffer> Buffer::CopyInto(const Buffer& destination, SourceLocation location) const {
  if (rep_ == nullptr || destination.rep_ == nullptr) return internal::Gone("Buffer");

  const internal::StatusRep* error = nullptr;
  const internal::BufferRep* rep = ffi::buffer_copy_into(*rep_, *destination.rep_, location, error);
  return internal::ToStatusOr<Buffer>(rep, error);
}

StatusOr<RawBuffer> Buffer::RawAlias() const {
  if (rep_ == nullptr) return internal::Gone("Buffer");

  const internal::StatusRep* error = nullptr;
  const internal::RawBufferRep* rep = ffi::buffer_raw_alias(*rep_, error);
  return internal::ToStatusOr<RawBuffer>(rep, error);
}

StatusOr<UsageHold> Buffer::AcquireUsageHold() const {
  if (rep_ == nullptr) return internal::Gone("Buffer");

  const internal::StatusRep* error = nullptr;
  internal::UsageHoldRep* hold = ffi::buffer_usage_hold(*rep_, true, error);
  return ToHold<UsageHold>(hold, error);
}

StatusOr<UsageHold> Buffer::TryAcquireUsageHold() const {
  if (rep_ == nullptr) return internal::Gone("Buffer");

  const internal::StatusRep* error = nullptr;
  internal::UsageHoldRep* hold = ffi::buffer_usage_hold(*rep_, false, error);
  return ToHold<UsageHold>(hold, error);
}

StatusOr<ExternalReference> Buffer::AcquireExternalReference() const {
  if (rep_ == nullptr) return internal::Gone("Buffer");

  const internal::StatusRep* error = nullptr;
  internal::ExternalReferenceRep* reference = ffi::buffer_external_reference(*rep_, error);
  return ToHold<ExternalReference>(reference, error);
}

StatusOr<DonationHold> Buffer::Donate(Label by, SourceLocation location) const {
  if (rep_ == nullptr) return internal::Gone("Buffer");

  const internal::StatusRep* error = nullptr;
  internal::DonationHoldRep* hold = ffi::buffer_donate(*rep_, by.c_str(), true, location, error);
  return ToHold<DonationHold>(hold, error);
}

StatusOr<DonationHold> Buffer::TryDonate(Label by, SourceLocation location) const {
  if (rep_ == nullptr) return internal::Gone("Buffer");

  const internal::StatusRep* error = nullptr;
  internal::DonationHoldRep* hold = ffi::buffer_donate(*rep_, by.c_str(), false, location, error);
  return ToHold<DonationHold>(hold, error);
}

HoldCounts Buffer::hold_counts() const noexcept {
  if (rep_ == nullptr) return {};

  HoldCounts counts;
  ffi::buffer_hold_counts(*rep_, counts.usage, counts.external);
  return counts;
}

StatusOr<Buffer> Buffer::DonateAfter(const Event& event, SourceLocation location) const {
  if (rep_ == nullptr) return internal::Gone("Buffer");

  const internal::StatusRep* error = nullptr;
  const internal::BufferRep* rep = ffi::buffer_donate_after(*rep_, event.header(), location, error);
  return internal::ToStatusOr<Buffer>(rep, error);
}

StatusOr<Buffer> Buffer::Bitcast(const Shape& shape, const Layout* layout, SourceLocation location) const {
  if (rep_ == nullptr) return internal::Gone("Buffer");

  const internal::StatusRep* error = nullptr;
  const internal::RawShape raw = internal::ToRust(shape);
  const internal::BufferRep* rep =
      ffi::buffer_bitcast(*rep_, raw, internal::OptionalLayout(layout).get(), location, error);
  return internal::ToStatusOr<Buffer>(rep, error);
}

void Buffer::Delete(SourceLocation location) const noexcept {
  if (rep_ == nullptr) return;

  ffi::buffer_delete(*rep_, location);
}

const internal::RawBufferRep* Buffer::ReleaseRaw(SourceLocation location, internal::EventHeader** free_event) const {
  if (rep_ == nullptr) return nullptr;

  return ffi::buffer_release_memory(*rep_, location, *free_event);
}

StatusOr<std::optional<RawBuffer>> Buffer::ReleaseDeviceMemoryOwnership(bool wait_for_operations_to_complete,
                                                                        SourceLocation location) const {
  if (rep_ == nullptr) return internal::Gone("Buffer");

  const internal::StatusRep* error = nullptr;
  const internal::RawBufferRep* memory =
      ffi::buffer_release_ownership(*rep_, wait_for_operations_to_complete, location, error);
  if (error != nullptr) return Status::FromRep(error);
  if (memory == nullptr) return std::optional<RawBuffer>();
  return std::optional<RawBuffer>(RawBuffer::Adopt(memory));
}

bool Buffer::IsDeleted() const noexcept {
  if (rep_ == nullptr) return true;
  return ffi::buffer_is_deleted(*rep_);
}

}  // namespace v0
}  // namespace purlin
