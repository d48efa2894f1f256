// What tests of fork() share: children with a limit that say which call they were in, and threads that make work
// meanwhile.
#ifndef PURLIN_TESTS_CPP_FORK_FIXTURE_H_
#define PURLIN_TESTS_CPP_FORK_FIXTURE_H_

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "purlin/purlin.h"
#include "tests/cpp/sanitizers.h"

namespace purlin {

/// What a child is doing, in memory that its parent sees.
class Doing {
 public:
  Doing()
      : text_(
            static_cast<char*>(mmap(nullptr, kSizeBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;
  ~Doing() { munmap(text_, kSizeBytes); }

  void Note(const char* what) const { std::snprintf(text_, kSizeBytes, "%s", what); }
  std::string Text() const { return text_; }

 private:
  static constexpr std::size_t kSizeBytes = 256;
  char* text_;
};

/// Seconds after which a child hangs; only a test that fails waits so long.
inline constexpr unsigned kChildSeconds = 20;

/// How a child ended, in words; empty: by exit code 0.
inline std::string EndOf(pid_t child, const Doing& doing) {
  int ended = 0;
  while (waitpid(child, &ended, 0) < 0) {
  }
  if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) return "";
  const std::string what = " in '" + doing.Text() + "'";
  if (!WIFSIGNALED(ended)) return "exit code " + std::to_string(WEXITSTATUS(ended)) + what;
  if (WTERMSIG(ended) == SIGALRM) return "hangs" + what;
  return "signal " + std::to_string(WTERMSIG(ended)) + what;
}

/// Forks; the child calls `call(doing)` and ends by exit(), with its static destructors, unless the call ends it. How
/// it ended.
template <typename F>
std::string InChildThatExits(F call) {
  const Doing doing;
  const pid_t child = Fork();
  if (child < 0) return "no child";
  if (child == 0) {
    alarm(kChildSeconds);
    doing.Note("the beginning");
    call(doing);
    doing.Note("exit()");
    std::exit(0);
  }
  return EndOf(child, doing);
}

/// As InChildThatExits, of a child that ends by _exit(); `call(doing)` answers what is wrong, or null.
template <typename F>
std::string InChild(F call) {
  return InChildThatExits([&call](const Doing& doing) {
    const char* const wrong = call(doing);
    if (wrong != nullptr) doing.Note((doing.Text() + ": " + wrong).c_str());
    _exit(wrong == nullptr ? 0 : 1);
  });
}

/// Threads that call everything that takes locks of Purlin's, until it is destroyed.
class Load {
 public:
  explicit Load(int threads = 8) : client_(Client::Create(Options()).value()), pool_(Pool()), elastic_(Elastic()) {
    for (int thread = 0; thread < threads; ++thread) threads_.emplace_back([this, thread] { Work(thread); });
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() {
    stop_.store(true);
    for (std::thread& thread : threads_) thread.join();
    static_cast<void>(pool_.Shutdown());
    static_cast<void>(elastic_.Shutdown());
    static_cast<void>(client_.Shutdown());
  }

 private:
  static ClientOptions Options() {
    ClientOptions options;
    options.worker_count = 1;
    return options;
  }
  static ThreadPoolAsyncWorkRunner Pool() { return ThreadPoolAsyncWorkRunner::Create({2, "load"}).value(); }
  static ElasticPool Elastic() {
    ElasticPoolOptions options;
    options.max_threads = 2;
    options.name = "load elastic";
    return ElasticPool::Create(options).value();
  }

  void Work(int first) {
    const MemorySpace space = client_.devices()[0].default_memory_space();
    for (int round = first; !stop_.load(std::memory_order_relaxed); ++round) {
      switch (round % 8) {
        case 0:
          for (int task = 0; task < 20; ++task) static_cast<void>(pool_.Schedule([] {}));
          break;
        case 1: {
          const UserContext context = UserContext::Create("under load");
          static_cast<void>(UserContext::LookupAll().size());
          break;
        }
        case 2: {
          const Timer timer = Timer::After(std::chrono::microseconds(50));
          EventPromise promise("limited");
          static_cast<void>(WithTimeout(promise.event(), std::chrono::microseconds(50)).Wait());
          break;
        }
        case 3:
          for (std::size_t size : {std::size_t{64}, std::size_t{4096}, std::size_t{1} << 20})
            static_cast<void>(RawBuffer::Allocate(space, size));
          break;
        case 4: {
          EventPromise promise("waited for");
          const Event event = promise.event();
          if (pool_.Schedule([promise = std::move(promise)]() mutable { promise.SetReady(); }).ok()) {
            static_cast<void>(event.Wait());
          }
          break;
        }
        case 5:
          static_cast<void>(DumpStalls());
          break;
        case 6: {
          const TraceSpan span("under load");
          static_cast<void>(elastic_.Schedule([] {}));
          std::vector<EventPromise> promises;
          for (int event = 0; event < 200; ++event) promises.emplace_back("many");
          break;
        }
        default: {
          const Semaphore semaphore("load", 1);
          const StatusOr<Permit> permit = semaphore.Acquire(1);
          const CancelSource source;
          const CancelRegistration listens = source.token().OnCancel([](const Status&) {});
          source.Cancel();
          break;
        }
      }
    }
  }

  std::atomic<bool> stop_{false};
  Client client_;
  ThreadPoolAsyncWorkRunner pool_;
  ElasticPool elastic_;
  std::vector<std::thread> threads_;
};

}  // namespace purlin

#endif  // PURLIN_TESTS_CPP_FORK_FIXTURE_H_
