// Where a program may fork: in a task, in a waiter, in a timer, in a loop, in a callback, in a child, while a client
// ends. The child goes on from there alone, and ends; the parent's work is done once.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cpp/fork_fixture.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not every system declares it.

namespace purlin {
namespace {

/// Forks where it is called; the child lets what called it go on, with a limit, and its end is asked for by the parent.
class ForksHere {
 public:
  void operator()() {
    const pid_t child = Fork();
    if (child == 0) {
      alarm(kChildSeconds);
      is_child_ = true;
      doing_.Note("what called it");
      return;
    }
    child_ = child;
  }
  /// True in the child.
  bool is_child() const { return is_child_; }
  const Doing& doing() const { return doing_; }
  /// In the parent.
  std::string End() const { return child_ > 0 ? EndOf(child_, doing_) : "no child"; }

 private:
  Doing doing_;
  std::atomic<bool> is_child_{false};
  std::atomic<pid_t> child_{0};
};

TEST(ForkPlacesTest, ATaskThatForksGoesOnAndItsThreadIsTheChild) {
  PURLIN_SKIP_UNLESS_FORKS(false);
  ForksHere forks;
  std::atomic<int> ran{0};
  const Doing doing;
  {
    ThreadPoolAsyncWorkRunner pool = ThreadPoolAsyncWorkRunner::Create({1, "forks"}).value();
    EventPromise forked("forked");
    const Event event = forked.event();
    ASSERT_TRUE(pool.Schedule([&, forked = std::move(forked)]() mutable {
                      forks();
                      if (forks.is_child()) {
                        // Its own pool is the parent's now.
                        if (!IsFailedPrecondition(pool.Schedule([] {}))) _exit(2);
                        EventPromise own("own");
                        const Event waited = WithTimeout(own.event(), std::chrono::milliseconds(1));
                        if (!IsDeadlineExceeded(waited.Wait())) _exit(3);
                      }
                      forked.SetReady();
                    })
                    .ok());
    ASSERT_TRUE(pool.Schedule([&] {
                      if (forks.is_child()) _exit(4);  // A task of the parent's.
                      ++ran;
                    })
                    .ok());
    ASSERT_TRUE(event.Wait().ok());
    EXPECT_EQ(forks.End(), "") << "a child that comes back from the task ends";
    EXPECT_TRUE(pool.Shutdown().ok());
  }
  EXPECT_EQ(ran, 1);
}

TEST(ForkPlacesTest, TheFirstHalfOfAJoinForksWhenAnotherThreadHasBegunTheSecond) {
  PURLIN_SKIP_UNLESS_FORKS(false);
  ForksHere forks;
  ThreadPoolAsyncWorkRunner pool = ThreadPoolAsyncWorkRunner::Create({2, "forks"}).value();
  EventPromise begins("the second half begins");
  EventPromise opens("the parent has forked");
  EventPromise ends("the join has ended");
  const Event ended = ends.event();
  Status answer;
  ASSERT_TRUE(pool.Schedule([&] {
                    const Event begun = begins.event();
                    const Event opened = opens.event();
                    answer = pool.Join(
                        [&] {
                          // By a look: a wait would call the second half here.
                          while (!begun.IsReady()) std::this_thread::yield();
                          forks();
                          if (!forks.is_child()) opens.SetReady();
                        },
                        [&] {
                          begins.SetReady();
                          static_cast<void>(opened.Wait());
                        });
                    if (forks.is_child()) _exit(IsFailedPrecondition(answer) ? 0 : 5);
                    ends.SetReady();
                  })
                  .ok());
  ASSERT_TRUE(ended.Wait().ok());
  EXPECT_TRUE(answer.ok()) << answer;
  EXPECT_EQ(forks.End(), "");
}

TEST(ForkPlacesTest, ATaskOfAnElasticPoolForks) {
  PURLIN_SKIP_UNLESS_FORKS(false);
  ForksHere forks;
  ElasticPoolOptions options;
  options.max_threads = 1;
  ElasticPool pool = ElasticPool::Create(options).value();
  std::atomic<int> ran{0};
  ASSERT_TRUE(pool.Schedule([&] { forks(); }).ok());
  ASSERT_TRUE(pool.Schedule([&] {
                    if (forks.is_child()) _exit(4);
                    ++ran;
                  })
                  .ok());
  ASSERT_TRUE(pool.Shutdown().ok());
  EXPECT_EQ(forks.End(), "");
  EXPECT_EQ(ran, 1);
}

TEST(ForkPlacesTest, ATaskOfASerialQueueForks) {
  PURLIN_SKIP_UNLESS_FORKS(false);
  ForksHere forks;
  ThreadPoolAsyncWorkRunner pool = ThreadPoolAsyncWorkRunner::Create({2, "forks"}).value();
  std::atomic<int> ran{0};
  {
    SerialQueue queue(pool);
    EventPromise gate("both are queued");
    ASSERT_TRUE(queue
                    .Schedule([&, ready = gate.event()] {
                      static_cast<void>(ready.Wait());
                      forks();
                    })
                    .ok());
    ASSERT_TRUE(queue
                    .Schedule([&] {
                      if (forks.is_child()) _exit(4);
                      ++ran;
                    })
                    .ok());
    gate.SetReady();
    ASSERT_TRUE(queue.Drain().ok());
  }
  EXPECT_EQ(forks.End(), "");
  EXPECT_EQ(ran, 1);
  ASSERT_TRUE(pool.Shutdown().ok());
}

TEST(ForkPlacesTest, TheBodyOfALoopForks) {
  PURLIN_SKIP_UNLESS_FORKS(false);
  ThreadPoolAsyncWorkRunner pool = ThreadPoolAsyncWorkRunner::Create({4, "forks"}).value();
  ForksHere forks;
  std::atomic<int> calls{0};
  const Status status = pool.ParallelFor(200, Grain(1), [&](std::size_t begin, std::size_t) {
    if (begin == 100) forks();
    ++calls;
  });
  if (forks.is_child()) _exit(status.ok() || IsFailedPrecondition(status) ? 0 : 5);
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(calls, 200);
  EXPECT_EQ(forks.End(), "");
  ASSERT_TRUE(pool.Shutdown().ok());
}

TEST(ForkPlacesTest, AWaiterForks) {
  PURLIN_SKIP_UNLESS_FORKS(false);
  ForksHere forks;
  EventPromise promise("forks");
  const Event event = promise.event();
  int after = 0;
  event.OnReady([&forks](const Status&) { forks(); });
  event.OnReady([&after](const Status&) { ++after; });
  promise.SetReady();
  if (forks.is_child()) _exit(after == 1 && event.Wait().ok() ? 0 : 6);
  EXPECT_EQ(after, 1);
  EXPECT_EQ(forks.End(), "");
}

TEST(ForkPlacesTest, AWaiterOnTheTimersThreadForks) {
  PURLIN_SKIP_UNLESS_FORKS(false);
  ForksHere forks;
  Timer timer = Timer::After(std::chrono::milliseconds(1));
  EventPromise done("done");
  const Event event = done.event();
  timer.event().OnReady([&forks, done = std::move(done)](const Status&) mutable {
    forks();
    done.SetReady();
  });
  // Where the timer was first, it was this thread that forked.
  if (forks.is_child()) _exit(0);
  ASSERT_TRUE(event.Wait().ok());
  EXPECT_EQ(forks.End(), "");
  EXPECT_TRUE(Timer::After(std::chrono::milliseconds(1)).event().Wait().ok()) << "the parent's timers go on";
}

TEST(ForkPlacesTest, ACancelCallbackAndAnOriginFork) {
  PURLIN_SKIP_UNLESS_FORKS(false);
  ForksHere forks;
  const CancelSource source;
  const CancelRegistration listens = source.token().OnCancel([&forks](const Status&) { forks(); });
  EXPECT_TRUE(source.Cancel());
  if (forks.is_child()) _exit(source.token().IsCancelled() ? 0 : 7);
  EXPECT_EQ(forks.End(), "");

  ForksHere again;
  const UserContext context = UserContext::Create([&again]() -> std::string {
    again();
    return "rendered";
  });
  const std::string text = context.DebugString();
  if (again.is_child()) _exit(text.find("rendered") != std::string::npos ? 0 : 8);
  EXPECT_EQ(again.End(), "");
}

TEST(ForkPlacesTest, APayloadsConstructorForks) {
  PURLIN_SKIP_UNLESS_FORKS(false);
  struct Forking {
    explicit Forking(ForksHere* forks) { (*forks)(); }
    int value = 7;
  };
  ForksHere forks;
  const AsyncValueRef<Forking> value = MakeUnconstructedAsyncValueRef<Forking>("forks");
  int told = 0;
  value.AndThen([&told] { ++told; });
  value.emplace(&forks);
  if (forks.is_child()) _exit(value.IsConcrete() && value->value == 7 ? 0 : 9);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(forks.End(), "");
}

TEST(ForkPlacesTest, GrandchildrenAndDaemonsAnswer) {
  PURLIN_SKIP_UNLESS_FORKS(true);
  const Load load(4);
  ThreadPoolAsyncWorkRunner pool = ThreadPoolAsyncWorkRunner::Create({1, "first"}).value();
  EXPECT_EQ(InChild([&](const Doing& doing) -> const char* {
              setsid();
              ThreadPoolAsyncWorkRunner own = ThreadPoolAsyncWorkRunner::Create({1, "second"}).value();
              EventPromise pending("of the child");
              const std::string grandchild = InChild([&](const Doing& inner) -> const char* {
                inner.Note("pools of both parents");
                if (!IsFailedPrecondition(pool.Schedule([] {}))) return "the first pool works";
                if (!IsFailedPrecondition(own.Schedule([] {}))) return "the second pool works";
                if (!IsFailedPrecondition(pending.event().Wait())) return "the event is waited for";
                inner.Note("a pool of its own");
                ThreadPoolAsyncWorkRunner third = ThreadPoolAsyncWorkRunner::Create({1, "third"}).value();
                if (MakeFutureOn(third, [] { return 3; }).Await().value() != 3) return "the third pool";
                return Timer::After(std::chrono::milliseconds(1)).event().Wait().ok() ? nullptr : "a timer";
              });
              doing.Note(grandchild.c_str());
              if (!grandchild.empty()) return "the grandchild";
              pending.SetReady();
              return MakeFutureOn(own, [] { return 2; }).Await().value() == 2 ? nullptr : "the child goes on";
            }),
            "");
  EXPECT_TRUE(pool.Shutdown().ok());
}

TEST(ForkPlacesTest, ProgramsAreStartedFromABusyProcess) {
  PURLIN_SKIP_UNLESS_FORKS(true);
  const Load load;
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(InChild([](const Doing& doing) -> const char* {
                doing.Note("exec");
                execl("/bin/true", "true", static_cast<char*>(nullptr));
                return "no exec";
              }),
              "");
    pid_t child = 0;
    char name[] = "true";
    char* const arguments[] = {name, nullptr};
    ASSERT_EQ(posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments, environ), 0);
    EXPECT_EQ(EndOf(child, Doing()), "");
    EXPECT_EQ(std::system("true"), 0);  // NOLINT(cert-env33-c,concurrency-mt-unsafe): that it works is the test.
  }
}

TEST(ForkPlacesTest, AClientThatEndsMeanwhile) {
  PURLIN_SKIP_UNLESS_FORKS(true);
  for (int round = 0; round < 20; ++round) {
    ClientOptions options;
    options.worker_count = 2;
    std::optional<Client> client = Client::Create(options).value();
    const MemorySpace space = client->devices()[0].default_memory_space();
    std::vector<RawBuffer> buffers;
    for (int index = 0; index < 8; ++index) buffers.push_back(RawBuffer::Allocate(space, 300000).value());
    std::vector<Event> copies;
    for (std::size_t index = 1; index < 8; ++index) copies.push_back(buffers[0].CopyTo(buffers[index]));
    std::thread ends([&client] { EXPECT_TRUE(client->Shutdown().ok()); });
    EXPECT_EQ(InChild([&](const Doing& doing) -> const char* {
                doing.Note("Shutdown");
                if (!IsFailedPrecondition(client->Shutdown())) return "a shutdown in the child";
                doing.Note("waits for copies");
                for (const Event& copy : copies) static_cast<void>(copy.Wait());
                doing.Note("the client's end");
                buffers.clear();
                client.reset();
                return nullptr;
              }),
              "");
    ends.join();
  }
}

}  // namespace
}  // namespace purlin
