// Purlin: an interface for the user's own allocator of host memory.
//
// ```cpp
// #include <new>
//
// #include "purlin/client.h"
//
// class NewDelete final : public purlin::HostMemoryAllocator {
//  public:
//   void* Allocate(std::size_t size_bytes, std::size_t alignment_bytes) override {
//     return ::operator new(size_bytes, std::align_val_t(alignment_bytes), std::nothrow);
//   }
//   void Deallocate(void* address, std::size_t /*size_bytes*/, std::size_t alignment_bytes) override {
//     ::operator delete(address, std::align_val_t(alignment_bytes));
//   }
// };
// purlin::ClientOptions options;
// options.host_memory_allocator = std::make_shared<NewDelete>();
// ```
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_HOST_MEMORY_ALLOCATOR_H_
#define PURLIN_HOST_MEMORY_ALLOCATOR_H_

#include <cstddef>

#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// Where the host backend gets its memory, if ClientOptions says so: each allocation of each memory space of the client
/// is one call of Allocate and one of Deallocate. No freed memory is kept for later allocations; limits and statistics
/// are as without such an allocator.
///
/// Any thread may call these functions, several at once; Deallocate is called on the thread that ends the last use of a
/// buffer. Purlin may hold locks of its own meanwhile, so these functions must not call Purlin. An exception from
/// Allocate is reported and counts as null; one from Deallocate is reported. The client, and everything that keeps it
/// alive, keeps the allocator.
class HostMemoryAllocator {
 public:
  virtual ~HostMemoryAllocator() = default;
  /// `size_bytes` (not 0) bytes at a multiple of `alignment_bytes` (a power of two, at least 64), readable and
  /// writable, contents unspecified; null if there are none, and then the allocation fails with kResourceExhausted. An
  /// address that is not so aligned is given back unused, and the allocation fails with kInternal.
  virtual void* Allocate(std::size_t size_bytes, std::size_t alignment_bytes) = 0;
  /// Takes back an address that Allocate returned for the same numbers, once. Never null.
  virtual void Deallocate(void* address, std::size_t size_bytes, std::size_t alignment_bytes) = 0;

 protected:
  /// For implementations only, as are the next four: an allocator is used by reference.
  HostMemoryAllocator() = default;
  /// See the constructor.
  HostMemoryAllocator(const HostMemoryAllocator&) = default;
  /// See the constructor.
  HostMemoryAllocator(HostMemoryAllocator&&) = default;
  /// See the constructor.
  HostMemoryAllocator& operator=(const HostMemoryAllocator&) = default;
  /// See the constructor.
  HostMemoryAllocator& operator=(HostMemoryAllocator&&) = default;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_HOST_MEMORY_ALLOCATOR_H_
