// LLVM's ThreadSanitizer pass, which rustc uses, calls these for memory intrinsics. GCC's libtsan lacks them; the plain
// functions are intercepted there and check the same accesses. Compiled with -fno-builtin and without -fsanitize=thread.
#include <string.h>

void* __tsan_memcpy(void* destination, const void* source, size_t size_bytes) {
  return memcpy(destination, source, size_bytes);
}

void* __tsan_memmove(void* destination, const void* source, size_t size_bytes) {
  return memmove(destination, source, size_bytes);
}

void* __tsan_memset(void* destination, int value, size_t size_bytes) { return memset(destination, value, size_bytes); }
