// Purlin: host memory that a backend was told of (Client::DmaMap), so that its hardware may reach it.
//
// Copies from and to the host that touch mapped memory use the mapping while they are in flight. So no transfer loses
// its memory's mapping: Unmap() refuses while there are any, and a mapping that is destroyed ends with the last of
// them.
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

/// Mapped memory, until it is unmapped; it keeps the client's books. Move-only, one word. One thread at a time. Nothing
/// here blocks.
class [[nodiscard]] DmaMapping final : public internal::Handle<DmaMapping, internal::DmaMappingRep> {
 public:
  /// Leaves `other` unmapped.
  DmaMapping(DmaMapping&& other) noexcept = default;
  /// As if destroying what was here.
  DmaMapping& operator=(DmaMapping&& other) noexcept = default;
  /// Unmaps the memory when no copy uses it any more: at once, or with the last of them. The memory itself must stay
  /// until those are done.
  PURLIN_API ~DmaMapping();

  /// The first byte; null once it is unmapped or moved from.
  [[nodiscard]] PURLIN_API const void* data() const noexcept;
  /// How many bytes; 0 once it is unmapped or moved from.
  [[nodiscard]] PURLIN_API std::size_t size_bytes() const noexcept;
  /// Copies in flight that use the memory; 0 once it is unmapped or moved from.
  [[nodiscard]] PURLIN_API std::size_t in_flight() const noexcept;

  /// Unmaps the memory, at once. kFailedPrecondition: copies in flight use it, and how many, and it stays mapped; or it
  /// has been unmapped already, or moved from.
  PURLIN_API Status Unmap();

 private:
  using Handle::Handle;
};

static_assert(sizeof(DmaMapping) == sizeof(void*), "a DmaMapping is one word");

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_DMA_H_
