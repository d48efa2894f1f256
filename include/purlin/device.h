// Purlin: devices and their memory spaces. Both belong to a Client; their handles keep it alive.
//
// ```cpp
// purlin::MemorySpace StagingMemory(const purlin::Device& device) {
//   const purlin::StatusOr<purlin::MemorySpace> pinned = device.memory_space("pinned_host");
//   return pinned.ok() ? *pinned : device.default_memory_space();
// }
// ```
#ifndef PURLIN_DEVICE_H_
#define PURLIN_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "purlin/export.h"
#include "purlin/internal/handle.h"
#include "purlin/memory_report.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct DeviceRep;
struct MemorySpaceRep;
}  // namespace internal

class Device;

/// Counters of one memory space, under PJRT's names. A snapshot: fields are read one after the other.
struct MemoryStats {
  /// Bytes of live allocations, as requested.
  std::uint64_t bytes_in_use = 0;
  /// The highest that bytes_in_use has been.
  std::uint64_t peak_bytes_in_use = 0;
  /// Allocations made since the client was: a total under PJRT's name and type, and no count of objects.
  std::uint64_t num_allocs = 0;
  /// The largest single allocation so far.
  std::uint64_t largest_alloc_size = 0;
  /// The most bytes that the space takes from the system; 0: no limit.
  std::uint64_t bytes_limit = 0;
  /// Bytes taken from the system: in use, kept for the next allocation, or lost to rounding.
  std::uint64_t pool_bytes = 0;
  /// The largest allocation that can be had without freeing another; without a limit, and without asking the system.
  std::uint64_t largest_free_block_bytes = 0;
};

/// A kind of memory of one device. A handle of one word; copies are cheap.
class MemorySpace final : public internal::Handle<MemorySpace, const internal::MemorySpaceRep> {
 public:
  /// Shares the handle.
  PURLIN_API MemorySpace(const MemorySpace& other) noexcept;
  /// Leaves `other` empty, see purlin.h.
  MemorySpace(MemorySpace&& other) noexcept = default;
  /// See the constructors.
  MemorySpace& operator=(const MemorySpace& other) noexcept = default;
  /// See the constructors.
  MemorySpace& operator=(MemorySpace&& other) noexcept = default;
  PURLIN_API ~MemorySpace();

  /// Unique within the client.
  [[nodiscard]] PURLIN_API int id() const noexcept;
  /// "device", "pinned_host" or "unpinned_host". Static storage.
  [[nodiscard]] PURLIN_API std::string_view kind() const noexcept;
  /// The device it belongs to.
  [[nodiscard]] PURLIN_API Device device() const noexcept;
  /// Every allocation begins at a multiple of this, a power of two.
  [[nodiscard]] PURLIN_API std::size_t alignment_bytes() const noexcept;
  /// What is allocated here now, and was at most.
  [[nodiscard]] PURLIN_API MemoryStats Stats() const noexcept;
  /// All holders of this space's memory now. Takes locks of Purlin for moments.
  [[nodiscard]] PURLIN_API MemoryReport Report() const;
  /// Gives the memory that is kept for later allocations back to the system at once, instead of after ten seconds.
  PURLIN_API void Trim() const noexcept;
  /// Sets MemoryStats::peak_bytes_in_use to bytes_in_use.
  PURLIN_API void ClearPeakMemoryUsage() const noexcept;
  /// Such as "host:2/pinned_host".
  [[nodiscard]] PURLIN_API std::string DebugString() const;

  /// The same space of the same client.
  friend bool operator==(const MemorySpace& a, const MemorySpace& b) noexcept { return Equal(a, b); }
  /// Another one.
  friend bool operator!=(const MemorySpace& a, const MemorySpace& b) noexcept { return !Equal(a, b); }

 private:
  using Handle::Handle;

  PURLIN_API static bool Equal(const MemorySpace& a, const MemorySpace& b) noexcept;
};

/// A property of a device, with a name of the backend's, such as "core_count". The types are those of PJRT.
struct DeviceAttribute {
  /// The backend's name for it.
  std::string name;
  /// Of the type that the backend gives it.
  std::variant<std::string, bool, std::int64_t, std::vector<std::int64_t>, float> value;
};

/// A device of a client. A handle of one word; copies are cheap.
class Device final : public internal::Handle<Device, const internal::DeviceRep> {
 public:
  /// Shares the handle.
  PURLIN_API Device(const Device& other) noexcept;
  /// Leaves `other` empty, see purlin.h.
  Device(Device&& other) noexcept = default;
  /// See the constructors.
  Device& operator=(const Device& other) noexcept = default;
  /// See the constructors.
  Device& operator=(Device&& other) noexcept = default;
  PURLIN_API ~Device();

  /// Its index in Client::devices().
  [[nodiscard]] PURLIN_API int id() const noexcept;
  /// The backend's name for its model, such as "host" or "NVIDIA H100". Valid while a handle of the client lives.
  [[nodiscard]] PURLIN_API std::string_view kind() const noexcept;
  /// The number by which the driver knows it; of virtual devices, id().
  [[nodiscard]] PURLIN_API int local_hardware_id() const noexcept;
  /// What else the backend says of it; no name twice.
  [[nodiscard]] PURLIN_API std::vector<DeviceAttribute> attributes() const;
  /// All memory spaces, the default one ("device") first.
  [[nodiscard]] PURLIN_API std::vector<MemorySpace> memory_spaces() const;
  /// The space "device".
  [[nodiscard]] PURLIN_API MemorySpace default_memory_space() const noexcept;
  /// The space of that kind; kNotFound, naming the kinds that exist, if there is none.
  [[nodiscard]] PURLIN_API StatusOr<MemorySpace> memory_space(std::string_view kind) const;
  /// Such as "host:2".
  [[nodiscard]] PURLIN_API std::string DebugString() const;

  /// The same device of the same client.
  friend bool operator==(const Device& a, const Device& b) noexcept { return Equal(a, b); }
  /// Another one.
  friend bool operator!=(const Device& a, const Device& b) noexcept { return !Equal(a, b); }

 private:
  using Handle::Handle;

  PURLIN_API static bool Equal(const Device& a, const Device& b) noexcept;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_DEVICE_H_
