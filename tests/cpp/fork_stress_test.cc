// A thousand forks of a process in which eight threads schedule, make contexts, set timers, allocate, wait, dump stalls
// and trace: no child hangs, whatever it calls first.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tests/cpp/fork_fixture.h"

namespace purlin {
namespace {

constexpr int kForks = 1000;
/// Children at a time.
constexpr std::size_t kTogether = 4;

/// What a child calls, by its number: each of these takes locks that others held a moment ago.
void Call(int number, const Doing& doing, const Client& client) {
  switch (number % 10) {
    case 0:
      doing.Note("UserContext::Create");
      static_cast<void>(UserContext::Create("child"));
      return;
    case 1:
      doing.Note("Timer::After");
      static_cast<void>(Timer::After(std::chrono::microseconds(1)).event().Wait());
      return;
    case 2:
      doing.Note("DumpStalls");
      static_cast<void>(DumpStalls());
      return;
    case 3: {
      doing.Note("Client::Create");
      ClientOptions options;
      options.worker_count = 1;
      const Client own = Client::Create(options).value();
      static_cast<void>(RawBuffer::Allocate(own.devices()[0].default_memory_space(), 1 << 20));
      return;
    }
    case 4:
      doing.Note("Client of the parent");
      static_cast<void>(client.Describe());
      static_cast<void>(RawBuffer::Allocate(client.devices()[0].default_memory_space(), 64));
      return;
    case 5: {
      doing.Note("ThreadPoolAsyncWorkRunner::Create");
      ThreadPoolAsyncWorkRunner own = ThreadPoolAsyncWorkRunner::Create({1, "child"}).value();
      static_cast<void>(MakeFutureOn(own, [] { return 1; }).Await());
      return;
    }
    case 6: {
      doing.Note("WithTimeout");
      EventPromise promise("never");
      static_cast<void>(WithTimeout(promise.event(), std::chrono::microseconds(1)).Wait());
      return;
    }
    case 7: {
      doing.Note("EventPromise");
      std::vector<EventPromise> promises;
      for (int event = 0; event < 300; ++event) promises.emplace_back("child");
      return;
    }
    case 8: {
      doing.Note("StartTrace");
      const std::string path = testing::TempDir() + "/purlin_fork_" + std::to_string(getpid()) + ".json";
      static_cast<void>(StartTrace(path));
      static_cast<void>(StopTrace());
      unlink(path.c_str());
      return;
    }
    default: {
      doing.Note("Semaphore");
      const Semaphore own("child", 1);
      static_cast<void>(own.Acquire(1));
      const CancelSource source;
      source.Cancel();
      return;
    }
  }
}

TEST(ForkStressTest, AThousandChildrenOfABusyProcessAnswer) {
  PURLIN_SKIP_UNLESS_FORKS(true);
  ClientOptions options;
  options.worker_count = 1;
  const Client client = Client::Create(options).value();
  {
    const Load load;
    const std::vector<Doing> doing(kTogether);
    std::vector<pid_t> children(kTogether, 0);
    int failed = 0;
    const auto end = [&](std::size_t place) {
      if (children[place] == 0) return;
      const std::string how = EndOf(children[place], doing[place]);
      children[place] = 0;
      if (how.empty()) return;
      ++failed;
      ADD_FAILURE() << how;
    };
    for (int number = 0; number < kForks && failed < 3; ++number) {
      const std::size_t place = static_cast<std::size_t>(number) % kTogether;
      end(place);
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        alarm(kChildSeconds);
        Call(number, doing[place], client);
        _exit(0);
      }
      children[place] = child;
    }
    for (std::size_t place = 0; place < kTogether; ++place) end(place);
  }
  EXPECT_TRUE(client.Shutdown().ok()) << "the parent goes on";
}

TEST(ForkStressTest, ChildrenOfAProcessThatTracesAnswer) {
  PURLIN_SKIP_UNLESS_FORKS(true);
  const std::string path = testing::TempDir() + "/purlin_fork_trace.json";
  ASSERT_TRUE(StartTrace(path).ok());
  {
    const Load load;
    for (int number = 0; number < 50; ++number) {
      EXPECT_EQ(InChild([](const Doing& doing) -> const char* {
                  doing.Note("StopTrace");
                  if (!IsFailedPrecondition(StopTrace())) return "a child has no trace";
                  doing.Note("TraceSpan");
                  const TraceSpan span("child");
                  return nullptr;
                }),
                "");
    }
  }
  EXPECT_TRUE(StopTrace().ok()) << "the file is the parent's";
  unlink(path.c_str());
}

}  // namespace
}  // namespace purlin
