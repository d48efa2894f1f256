// What the tests of misuse share: how an error is to read, and processes that end.
//
// Each test makes a mistake that a stranger makes, and says exactly what comes of it. It runs in a process of its own,
// with a limit that ends the process and names the test (tests/cpp/main.cc), so a test may hang, and leave nothing
// behind.
#ifndef PURLIN_TESTS_MISUSE_MISUSE_H_
#define PURLIN_TESTS_MISUSE_MISUSE_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/client.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/raw_buffer.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "tests/cpp/sanitizers.h"

namespace purlin {

/// Whether `status` failed with `code`, and its message has each of `words`.
inline testing::AssertionResult Fails(const Status& status, StatusCode code,
                                      std::initializer_list<std::string_view> words = {}) {
  if (status.code() != code) {
    return testing::AssertionFailure() << "it is " << status << ", not " << StatusCodeToString(code);
  }
  for (const std::string_view word : words) {
    if (status.message().find(word) == std::string_view::npos) {
      return testing::AssertionFailure() << "it does not say '" << word << "': " << status;
    }
  }
  return testing::AssertionSuccess();
}
/// As above. Waits for the event.
inline testing::AssertionResult Fails(const Event& event, StatusCode code,
                                      std::initializer_list<std::string_view> words = {}) {
  return Fails(event.Wait(), code, words);
}
/// As above.
template <typename T>
testing::AssertionResult Fails(const StatusOr<T>& result, StatusCode code,
                               std::initializer_list<std::string_view> words = {}) {
  return Fails(result.status(), code, words);
}
/// Whether it is OK; says what it is, if not.
inline testing::AssertionResult Ok(const Status& status) {
  return status.ok() ? testing::AssertionSuccess() : testing::AssertionFailure() << status;
}
inline testing::AssertionResult Ok(const Event& event) { return Ok(event.Wait()); }
template <typename T>
testing::AssertionResult Ok(const StatusOr<T>& result) {
  return Ok(result.status());
}

/// What became of a process that runs `f` and exits with what that returns: "exit 0", "signal 6". It has ten seconds.
template <typename F>
std::string InChild(F f) {
  const pid_t child = Fork();
  if (child == 0) {
    std::signal(SIGALRM, SIG_DFL);
    alarm(kSanitizer ? 50 : 10);
    _exit(f());
  }
  if (child < 0) return "no fork";
  int ended = 0;
  while (waitpid(child, &ended, 0) != child) {
  }
  return WIFEXITED(ended) ? "exit " + std::to_string(WEXITSTATUS(ended)) : "signal " + std::to_string(WTERMSIG(ended));
}

inline Client HostClient(std::size_t devices = 1, std::size_t workers = 2, std::size_t limit_bytes = 0) {
  ClientOptions options;
  options.device_count = devices;
  options.worker_count = workers;
  options.memory_limit_bytes = limit_bytes;
  return Client::Create(options).value();
}
inline MemorySpace SpaceOf(const Client& client, std::size_t device = 0) {
  return client.devices()[device].default_memory_space();
}
inline ThreadPoolAsyncWorkRunner PoolOf(std::size_t threads, std::string_view name = "misuse") {
  ThreadPoolOptions options;
  options.thread_count = threads;
  options.name = name;
  return ThreadPoolAsyncWorkRunner::Create(options).value();
}

}  // namespace purlin

#endif  // PURLIN_TESTS_MISUSE_MISUSE_H_
