// A child that ends by exit() runs its static destructors, and they end; so does a process that made them.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/cpp/fork_fixture.h"

namespace purlin {
namespace {

/// What programs keep in statics. Made in a process of its own, so that this one has none.
struct Statics {
  Statics() {
    for (const char* platform : {"host", "null", "sim"}) {
      ClientOptions options;
      options.platform = platform;
      options.worker_count = 1;
      clients.push_back(Client::Create(options).value());
      options.shutdown_at_end = ShutdownOptions();
      clients.push_back(Client::Create(options).value());
      const MemorySpace space = clients.back().devices()[0].default_memory_space();
      buffers.push_back(RawBuffer::Allocate(space, 300000).value());
      copies.push_back(buffers.back().CopyTo(RawBuffer::Allocate(space, 300000).value(), {gate.event()}));
    }
    // Busy threads, and one that is idle.
    static_cast<void>(pool.Schedule([wait = gate.event()] { static_cast<void>(wait.Wait()); }));
    static_cast<void>(elastic.Schedule([wait = gate.event()] { static_cast<void>(wait.Wait()); }));
    static_cast<void>(queue.Schedule([wait = gate.event()] { static_cast<void>(wait.Wait()); }));
  }
  ~Statics() { gate.SetReady(); }

  ThreadPoolAsyncWorkRunner pool = ThreadPoolAsyncWorkRunner::Create({2, "static"}).value();
  ElasticPool elastic = ElasticPool::Create(ElasticPoolOptions()).value();
  SerialQueue queue{pool};
  Timer timer = Timer::After(std::chrono::hours(1));
  Semaphore semaphore{"static", 1};
  Watchdog watchdog = Watchdog::Start(WatchdogOptions()).value();
  CancelSource source;
  std::vector<Client> clients;
  std::vector<RawBuffer> buffers;
  std::vector<Event> copies;
  EventPromise gate{"gate"};
};

Statics& TheStatics() {
  static Statics statics;
  return statics;
}

TEST(ForkExitTest, AChildEndsWithItsStatics) {
  PURLIN_SKIP_UNLESS_FORKS(false);
  EXPECT_EQ(InChildThatExits([](const Doing& doing) {
              doing.Note("making statics");
              TheStatics();
              const std::string child = InChildThatExits([](const Doing&) {});
              if (!child.empty()) {
                doing.Note(("the grandchild that exits: " + child).c_str());
                _exit(1);
              }
            }),
            "");
}

TEST(ForkExitTest, AChildThatUsedThemEndsWithItsStatics) {
  PURLIN_SKIP_UNLESS_FORKS(false);
  EXPECT_EQ(InChildThatExits([](const Doing& doing) {
              Statics& statics = TheStatics();
              const std::string child = InChildThatExits([&statics](const Doing& used) {
                used.Note("using the statics");
                static_cast<void>(statics.pool.Schedule([] {}));
                static_cast<void>(statics.elastic.Schedule([] {}));
                static_cast<void>(statics.queue.Schedule([] {}));
                static_cast<void>(WithTimeout(statics.gate.event(), std::chrono::milliseconds(1)).Wait());
                static_cast<void>(Timer::After(std::chrono::milliseconds(1)).event().Wait());
                static_cast<void>(DumpStalls());
                for (const Client& client : statics.clients) static_cast<void>(client.Shutdown());
                for (const Event& copy : statics.copies) static_cast<void>(copy.Wait());
              });
              if (!child.empty()) {
                doing.Note(("the grandchild: " + child).c_str());
                _exit(1);
              }
            }),
            "");
}

TEST(ForkExitTest, AChildOfABusyProcessEnds) {
  PURLIN_SKIP_UNLESS_FORKS(true);
  EXPECT_EQ(InChildThatExits([](const Doing& doing) {
              TheStatics();
              const Load load(4);
              for (int fork = 0; fork < 50; ++fork) {
                const std::string child = InChildThatExits([](const Doing&) {});
                if (child.empty()) continue;
                doing.Note(("the grandchild that exits: " + child).c_str());
                _exit(1);
              }
            }),
            "");
}

}  // namespace
}  // namespace purlin
