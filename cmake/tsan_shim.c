// What ThreadSanitizer needs to know so that Rust's std, which is not instrumented, gives no false reports.
// Compiled with -fno-builtin and without -fsanitize=thread, linked with --wrap=__tsan_atomic64_fetch_sub.
#include <stdint.h>
#include <string.h>

// Arc gives up a reference by fetch_sub(release), and the last one then runs fence(acquire). TSan does not model
// fences, so it does not see that the last owner comes after all others. Here that acquire is a part of the fetch_sub.
// Arc's counts are the only 64-bit ones that are given up so; Purlin's own are 32-bit, use loads, and are checked as
// they are written.
enum { kRelease = 3, kAcquireRelease = 4 };  // TSan's numbers of memory orders.

uint64_t __real___tsan_atomic64_fetch_sub(volatile uint64_t* word, uint64_t operand, int order);
uint64_t __wrap___tsan_atomic64_fetch_sub(volatile uint64_t* word, uint64_t operand, int order) {
  return __real___tsan_atomic64_fetch_sub(word, operand, order == kRelease ? kAcquireRelease : order);
}

// LLVM's pass, which rustc uses, calls these for memory intrinsics. GCC's libtsan lacks them; it intercepts the plain
// functions, which check the same accesses.
#if !defined(__clang__)
void* __tsan_memcpy(void* destination, const void* source, size_t size_bytes) {
  return memcpy(destination, source, size_bytes);
}

void* __tsan_memmove(void* destination, const void* source, size_t size_bytes) {
  return memmove(destination, source, size_bytes);
}

void* __tsan_memset(void* destination, int value, size_t size_bytes) { return memset(destination, value, size_bytes); }
#endif
