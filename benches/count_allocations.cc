// malloc and its family, defined in the program, so that every library in the process calls these: operator new of any
// libstdc++, Rust's System allocator, tsl's aligned_alloc. glibc keeps its own under the names used below. An allocator
// that takes pages from the kernel (oneTBB's) is not seen.
#include "count_allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {
std::atomic<bool> counting{false};
std::atomic<std::uint64_t> allocations{0};

void Count() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

void StartCountingAllocations() {
  allocations.store(0);
  counting.store(true);
}

std::uint64_t StopCountingAllocations() {
  counting.store(false);
  return allocations.load();
}

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  Count();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  Count();
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  Count();
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  Count();
  return __libc_memalign(alignment, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  Count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  Count();
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}
