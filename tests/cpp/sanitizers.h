// Which sanitizer a test runs under, and how a test forks there, if it can.
#ifndef PURLIN_TESTS_CPP_SANITIZERS_H_
#define PURLIN_TESTS_CPP_SANITIZERS_H_

#include <dirent.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace purlin {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
inline constexpr bool kSanitizer = kThreadSanitizer || kAddressSanitizer;

/// How many links a chain has, over which no recursion fits into a stack. Under a sanitizer, whose frames are larger, a
/// tenth of a million does.
inline constexpr int kMillion = kSanitizer ? 100'000 : 1'000'000;

/// Why a test cannot be run here, or null. ThreadSanitizer ends a child of several threads that starts one. The
/// AddressSanitizer of this compiler does not guard its allocator's locks against fork(): where other threads never
/// sleep (`under_load`), a child may hang in malloc, without Purlin.
inline const char* CannotFork(bool under_load) {
  if (kThreadSanitizer) return "ThreadSanitizer does not follow a fork() of several threads";
  if (kAddressSanitizer && under_load)
    return "AddressSanitizer's allocator may be locked in a child of several threads";
  return nullptr;
}
#define PURLIN_SKIP_UNLESS_FORKS(under_load) \
  if (purlin::CannotFork(under_load) != nullptr) GTEST_SKIP() << purlin::CannotFork(under_load)

/// Whether every other thread of this process sleeps.
inline bool OthersSleep() {
  DIR* const threads = opendir("/proc/self/task");
  if (threads == nullptr) return true;
  bool sleep = true;
  while (const dirent* const thread = readdir(threads)) {
    const pid_t id = std::atoi(thread->d_name);
    if (id == 0 || id == gettid()) continue;
    std::FILE* const file = std::fopen(("/proc/self/task/" + std::string(thread->d_name) + "/stat").c_str(), "r");
    if (file == nullptr) continue;  // It has ended.
    char stat[256] = {};
    static_cast<void>(!std::fgets(stat, sizeof stat, file));
    std::fclose(file);
    const char* const name_end = std::strrchr(stat, ')');
    sleep = sleep && name_end != nullptr && name_end[1] == ' ' && name_end[2] == 'S';
  }
  closedir(threads);
  return sleep;
}

/// fork(). Under AddressSanitizer it waits until every other thread sleeps, so that none is in the allocator.
inline pid_t Fork() {
  while (kAddressSanitizer && !OthersSleep()) sched_yield();
  return fork();
}

}  // namespace purlin

#endif  // PURLIN_TESTS_CPP_SANITIZERS_H_
