// Purlin: host memory that is registered with a backend (Client::DmaMap), so that its hardware can reach it.
//
// ```cpp
// #include "purlin/client.h"
//
// purlin::Status WithMapping(const purlin::Client& client, const void* data, std::size_t size_bytes) {
//   purlin::StatusOr<purlin::DmaMapping> mapping = client.DmaMap(data, size_bytes);
//   if (!mapping.ok()) return mapping.status();
//   // Copies from `data` that begin here use the mapping.
//   return mapping->Unmap();  // kFailedPrecondition while one of them is in flight
// }
// ```
//
// Copies from and to the host that touch mapped memory use the mapping while they are in flight. No transfer loses its
// mapping: Unmap() fails while one is in flight, and a destroyed mapping ends with the last of them.
#ifndef PURLIN_DMA_H_
#define PURLIN_DMA_H_

#include <cstddef>
#include <utility>

#include "purlin/export.h"
#include "purlin/internal/handle.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct DmaMappingRep;
}  // namespace internal

/// Mapped memory, until it is unmapped; it keeps the client's accounting alive. Move-only, one word. One thread at a
/// time. Nothing here waits for copies, but a driver may make a thread that unmaps memory wait for its hardware.
class [[nodiscard]] DmaMapping final : public internal::Handle<DmaMapping, internal::DmaMappingRep> {
 public:
  /// Leaves `other` unmapped.
  DmaMapping(DmaMapping&& other) noexcept = default;
  /// As if destroying what was here.
  DmaMapping& operator=(DmaMapping&& other) noexcept = default;
  /// Unmaps the memory when no copy uses it any more: at once, or with the last copy in flight, before its event. The
  /// memory itself must stay until the events of these copies have happened, and may then be freed.
  PURLIN_API ~DmaMapping();

  /// The first byte; null once it is unmapped or moved from.
  [[nodiscard]] PURLIN_API const void* data() const noexcept;
  /// How many bytes; 0 once it is unmapped or moved from.
  [[nodiscard]] PURLIN_API std::size_t size_bytes() const noexcept;
  /// Copies in flight that use the memory; 0 once it is unmapped or moved from.
  [[nodiscard]] PURLIN_API std::size_t in_flight() const noexcept;

  /// Unmaps the memory, at once: it may be freed when this has returned. kFailedPrecondition: copies in flight use it,
  /// naming their number, and it stays mapped; or it has been unmapped already, or moved from.
  PURLIN_API Status Unmap();

 private:
  using Handle::Handle;
};

static_assert(sizeof(DmaMapping) == sizeof(void*), "a DmaMapping is one word");

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_DMA_H_
