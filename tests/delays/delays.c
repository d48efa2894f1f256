// Random delays where threads meet, so that orders of events which a quiet machine never shows happen in tests.
//
// Loaded before the C library (LD_PRELOAD, see scripts/delays), it sleeps up to three milliseconds in one of RATE calls
// of malloc and free, and around one of four futex calls, each thread by a sequence of its own from SEED. A test that
// fails under it relies on luck.
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

enum { kLongestNanoseconds = 3000000, kFutexRate = 4 };

static uint64_t seed = 1;
static uint64_t rate = 1000;
static __thread uint64_t state __attribute__((tls_model("initial-exec")));

__attribute__((constructor)) static void ReadEnvironment(void) {
  const char* text = getenv("PURLIN_DELAYS_SEED");
  if (text != NULL) seed = strtoull(text, NULL, 10);
  text = getenv("PURLIN_DELAYS_RATE");
  if (text != NULL && atoi(text) > 0) rate = (uint64_t)atoi(text);
}

// The kernel, without the C library in between, which would come back here.
static long Kernel(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static void MaybeSleep(uint64_t one_of) {
  if (state == 0) {
    const uint64_t thread = (uint64_t)Kernel(SYS_gettid, 0, 0, 0, 0, 0, 0);
    state = ((seed * 0x9E3779B97F4A7C15u) ^ (thread * 0xBF58476D1CE4E5B9u)) | 1;
  }
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  if ((state >> 20) % one_of != 0) return;
  const struct timespec time = {0, (long)((state >> 40) % kLongestNanoseconds)};
  Kernel(SYS_nanosleep, (long)&time, 0, 0, 0, 0, 0);
}

extern void* __libc_malloc(size_t size);
extern void __libc_free(void* block);

void* malloc(size_t size) {
  MaybeSleep(rate);
  return __libc_malloc(size);
}

void free(void* block) {
  MaybeSleep(rate);
  __libc_free(block);
}

// How Rust's standard library parks and wakes threads.
long syscall(long number, ...) {
  va_list arguments;
  va_start(arguments, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(arguments, long);
  va_end(arguments);
  const int is_futex = number == SYS_futex;
  if (is_futex) MaybeSleep(kFutexRate);
  const long result = Kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  if (is_futex) MaybeSleep(kFutexRate);
  if (result >= 0 || result < -4095) return result;
  errno = (int)-result;
  return -1;
}
