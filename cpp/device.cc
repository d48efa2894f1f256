#include "purlin/device.h"

#include "cpp/internal/convert.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "cpp/internal/memory_report.h"
#include "purlin-bridge/src/device.rs.h"
#include "purlin-bridge/src/memory_report.rs.h"

namespace purlin {
inline namespace v0 {

MemorySpace::MemorySpace(const MemorySpace& other) noexcept
    : Handle(internal::Shared<ffi::memory_space_retain>(other.rep_)) {}

MemorySpace::~MemorySpace() { internal::GiveUp<ffi::memory_space_release>(rep_); }

int MemorySpace::id() const noexcept {
  if (rep_ == nullptr) return -1;
  return ffi::memory_space_id(*rep_);
}

std::string_view MemorySpace::kind() const noexcept {
  if (rep_ == nullptr) return {};
  return internal::FromRust(ffi::memory_space_kind(*rep_));
}

Device MemorySpace::device() const noexcept {
  if (rep_ == nullptr) return Device::Adopt(nullptr);
  return Device::Adopt(ffi::memory_space_device(*rep_));
}

std::size_t MemorySpace::alignment_bytes() const noexcept {
  if (rep_ == nullptr) return 0;
  return ffi::memory_space_alignment_bytes(*rep_);
}

MemoryReport MemorySpace::Report() const {
  if (rep_ == nullptr) return {};
  return internal::FromRust(ffi::memory_report_of(*rep_));
}

void MemorySpace::Trim() const noexcept {
  if (rep_ == nullptr) return;
  ffi::memory_space_trim(*rep_);
}

void MemorySpace::ClearPeakMemoryUsage() const noexcept {
  if (rep_ == nullptr) return;
  ffi::memory_space_clear_peak(*rep_);
}

MemoryStats MemorySpace::Stats() const noexcept {
  if (rep_ == nullptr) return {};

  const ffi::MemoryStats stats = ffi::memory_space_stats(*rep_);
  return {
      stats.bytes_in_use, stats.peak_bytes_in_use,       stats.num_allocs, stats.largest_alloc_size, stats.bytes_limit,
      stats.pool_bytes,   stats.largest_free_block_bytes};
}

std::string MemorySpace::DebugString() const {
  if (rep_ == nullptr) return "(no memory space)";

  std::string text;
  ffi::memory_space_to_string(*rep_, text);
  return text;
}

bool MemorySpace::Equal(const MemorySpace& a, const MemorySpace& b) noexcept {
  if (a.rep_ == nullptr || b.rep_ == nullptr) return a.rep_ == b.rep_;

  return ffi::memory_space_equal(*a.rep_, *b.rep_);
}

Device::Device(const Device& other) noexcept : Handle(internal::Shared<ffi::device_retain>(other.rep_)) {}

Device::~Device() { internal::GiveUp<ffi::device_release>(rep_); }

int Device::id() const noexcept {
  if (rep_ == nullptr) return -1;
  return ffi::device_id(*rep_);
}

std::string_view Device::kind() const noexcept {
  if (rep_ == nullptr) return {};
  return internal::FromRust(ffi::device_kind(*rep_));
}

int Device::local_hardware_id() const noexcept {
  if (rep_ == nullptr) return -1;
  return ffi::device_local_hardware_id(*rep_);
}

namespace {
DeviceAttribute FromRust(const ffi::RawAttribute& raw) {
  DeviceAttribute attribute{std::string(raw.name), {}};
  switch (raw.kind) {
    case ffi::AttributeKind::Boolean:
      attribute.value = raw.boolean;
      break;
    case ffi::AttributeKind::Integer:
      attribute.value = raw.integer;
      break;
    case ffi::AttributeKind::Integers:
      attribute.value = std::vector<std::int64_t>(raw.integers.begin(), raw.integers.end());
      break;
    case ffi::AttributeKind::Real:
      attribute.value = raw.real;
      break;
    default:
      attribute.value = std::string(raw.text);
  }
  return attribute;
}
}  // namespace

std::vector<DeviceAttribute> Device::attributes() const {
  std::vector<DeviceAttribute> attributes;
  if (rep_ == nullptr) return attributes;

  for (const ffi::RawAttribute& raw : ffi::device_attributes(*rep_)) attributes.push_back(FromRust(raw));
  return attributes;
}

std::vector<MemorySpace> Device::memory_spaces() const {
  if (rep_ == nullptr) return {};

  std::vector<MemorySpace> spaces;
  const std::size_t count = ffi::device_memory_space_count(*rep_);
  spaces.reserve(count);
  for (std::size_t i = 0; i < count; ++i) spaces.push_back(MemorySpace::Adopt(ffi::device_memory_space_at(*rep_, i)));
  return spaces;
}

MemorySpace Device::default_memory_space() const noexcept {
  if (rep_ == nullptr) return MemorySpace::Adopt(nullptr);

  return MemorySpace::Adopt(ffi::device_default_memory_space(*rep_));
}

StatusOr<MemorySpace> Device::memory_space(std::string_view kind) const {
  if (rep_ == nullptr) return internal::Gone("Device");

  const internal::StatusRep* error = nullptr;
  const internal::MemorySpaceRep* rep = ffi::device_memory_space(*rep_, internal::ToRust(kind), error);
  return internal::ToStatusOr<MemorySpace>(rep, error);
}

std::string Device::DebugString() const {
  if (rep_ == nullptr) return "(no device)";

  std::string text;
  ffi::device_to_string(*rep_, text);
  return text;
}

bool Device::Equal(const Device& a, const Device& b) noexcept {
  if (a.rep_ == nullptr || b.rep_ == nullptr) return a.rep_ == b.rep_;
  return ffi::device_equal(*a.rep_, *b.rep_);
}

}  // namespace v0
}  // namespace purlin
