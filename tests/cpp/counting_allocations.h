// Counts the allocations of a test program's C++: replaces its operator new and delete. For one file of a program.
#ifndef PURLIN_TESTS_CPP_COUNTING_ALLOCATIONS_H_
#define PURLIN_TESTS_CPP_COUNTING_ALLOCATIONS_H_

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace purlin {

inline std::atomic<int> allocations{0};

/// How often `f` allocates.
template <typename F>
int AllocationsOf(F f) {
  const int before = allocations.load();
  f();
  return allocations.load() - before;
}

}  // namespace purlin

// Not inlined: gcc would take the pairs apart and see malloc beside delete (-Wmismatched-new-delete).
#define PURLIN_TEST_NOINLINE __attribute__((noinline))
PURLIN_TEST_NOINLINE void* operator new(std::size_t size) {
  purlin::allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  std::abort();
}
PURLIN_TEST_NOINLINE void* operator new(std::size_t size, std::align_val_t alignment) {
  purlin::allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (size + align - 1) / align * align)) return memory;
  std::abort();
}
PURLIN_TEST_NOINLINE void operator delete(void* memory) noexcept { std::free(memory); }
PURLIN_TEST_NOINLINE void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
PURLIN_TEST_NOINLINE void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
PURLIN_TEST_NOINLINE void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#endif  // PURLIN_TESTS_CPP_COUNTING_ALLOCATIONS_H_
