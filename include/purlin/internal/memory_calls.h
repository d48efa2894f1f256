// Purlin: calls of the user's memory code, compiled where the user's code is. Not for users.
#ifndef PURLIN_INTERNAL_MEMORY_CALLS_H_
#define PURLIN_INTERNAL_MEMORY_CALLS_H_

#include <cstddef>
#include <functional>

#include "purlin/host_memory_allocator.h"
#include "purlin/internal/guard.h"
#include "purlin/memory_report.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// How to call hooks and allocators so that exceptions stay with the user.
struct MemoryCalls {
  bool (*ask)(const std::function<bool(const MemoryReport&)>& hook, const MemoryReport& report) noexcept;
  void* (*allocate)(HostMemoryAllocator& allocator, std::size_t size_bytes, std::size_t alignment_bytes) noexcept;
  void (*deallocate)(HostMemoryAllocator& allocator, void* address, std::size_t size_bytes,
                     std::size_t alignment_bytes) noexcept;
};

/// An exception is a no. The parameter keeps translation units with and without exceptions apart, as in guard.h.
template <typename Mode>
bool AskForMemory(const std::function<bool(const MemoryReport&)>& hook, const MemoryReport& report) noexcept {
  bool freed = false;
  Guarded("on_out_of_memory", [&] { freed = hook(report); });
  return freed;
}

/// An exception is null.
template <typename Mode>
void* AllocateFrom(HostMemoryAllocator& allocator, std::size_t size_bytes, std::size_t alignment_bytes) noexcept {
  void* address = nullptr;
  Guarded("HostMemoryAllocator::Allocate", [&] { address = allocator.Allocate(size_bytes, alignment_bytes); });
  return address;
}

/// An exception is reported.
template <typename Mode>
void DeallocateTo(HostMemoryAllocator& allocator, void* address, std::size_t size_bytes,
                  std::size_t alignment_bytes) noexcept {
  Guarded("HostMemoryAllocator::Deallocate", [&] { allocator.Deallocate(address, size_bytes, alignment_bytes); });
}

/// For the mode of this translation unit.
template <typename Mode = WithExceptions>
constexpr MemoryCalls GuardedMemoryCalls() noexcept {
  return {&AskForMemory<Mode>, &AllocateFrom<Mode>, &DeallocateTo<Mode>};
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_MEMORY_CALLS_H_
