// Events between threads. Each test repeats a race many times; ThreadSanitizer runs them too.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/event.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

constexpr int kRounds = 2'000;
constexpr int kThreads = 4;

TEST(EventRaceTest, OfRacingSetsExactlyOneWins) {
  std::vector<EventPromise> promises;
  for (int i = 0; i < kRounds; ++i) promises.emplace_back("p");
  std::vector<std::atomic<int>> winners(kRounds);
  for (std::atomic<int>& winner : winners) winner = -1;
  std::atomic<int> wins{0};
  Together(kThreads, [&](int index) {
    for (std::size_t i = 0; i < promises.size(); ++i) {
      const bool won =
          index % 2 == 0 ? promises[i].SetReady() : promises[i].SetError(AbortedError(std::to_string(index)));
      if (won) {
        wins.fetch_add(1);
        winners[i] = index;
      }
    }
  });
  EXPECT_EQ(wins.load(), kRounds);
  for (std::size_t i = 0; i < promises.size(); ++i) {
    const int winner = winners[i];
    const Event event = promises[i].event();
    if (winner % 2 == 0) {
      EXPECT_EQ(event.state(), EventState::kReady);
    } else {
      EXPECT_EQ(event.error(), AbortedError(std::to_string(winner)));
    }
  }
}

TEST(EventRaceTest, AttachingRacesCompletionAndEveryWaiterRunsOnce) {
  std::vector<EventPromise> promises;
  for (int i = 0; i < kRounds; ++i) promises.emplace_back("p");
  std::vector<std::atomic<int>> runs(static_cast<std::size_t>(kRounds) * kThreads);
  std::vector<int> written(kRounds, 0);
  Together(kThreads, [&](int index) {
    for (std::size_t i = 0; i < promises.size(); ++i) {
      if (index == 0) {
        written[i] = 42;  // Published by SetReady.
        promises[i].SetReady();
      } else {
        promises[i].event().OnReady([&, i, index] {
          EXPECT_EQ(written[i], 42);
          runs[i * kThreads + static_cast<std::size_t>(index)].fetch_add(1);
        });
      }
    }
  });
  for (std::size_t i = 0; i < runs.size(); ++i) EXPECT_EQ(runs[i].load(), i % kThreads == 0 ? 0 : 1) << i;
}

TEST(EventRaceTest, WaitingThreadsSeeWhatWasDoneBefore) {
  for (int round = 0; round < kRounds / 20; ++round) {
    EventPromise promise("p");
    const Event event = promise.event();
    int data = 0;
    Together(kThreads, [&](int index) {
      if (index == 0) {
        data = round + 1;
        promise.SetReady();
      } else if (index == 1) {
        ASSERT_TRUE(event.Wait().ok());
        ASSERT_EQ(data, round + 1);
      } else if (index == 2) {
        ASSERT_TRUE(event.WaitFor(std::chrono::hours(1)).ok());
        ASSERT_EQ(data, round + 1);
      } else {
        while (!event.IsReady()) std::this_thread::yield();
        ASSERT_EQ(data, round + 1);
      }
    });
  }
}

TEST(EventRaceTest, AWaitThatIsLongerThanTheClockEndsWithTheEvent) {
  EventPromise promise("p");
  const Event event = promise.event();
  std::thread setter([&promise] { promise.SetError(AbortedError("x")); });
  EXPECT_EQ(event.WaitFor(std::chrono::nanoseconds::max()), AbortedError("x"));
  setter.join();
}

TEST(EventRaceTest, TimedWaitsRaceCompletion) {
  for (int round = 0; round < kRounds / 20; ++round) {
    EventPromise promise("p");
    const Event event = promise.event();
    Together(kThreads, [&](int index) {
      if (index == 0) {
        promise.SetReady();
      } else {
        const Status status = event.WaitFor(std::chrono::microseconds(index));
        ASSERT_TRUE(status.ok() || IsDeadlineExceeded(status)) << status;
      }
    });
    ASSERT_TRUE(event.Wait().ok());
  }
}

TEST(EventRaceTest, ReferencesAreCountedAcrossThreads) {
  for (int round = 0; round < kRounds / 20; ++round) {
    auto promise = EventPromise("p");
    std::vector<Event> events(kThreads, promise.event());
    std::atomic<int> seen{0};
    Together(kThreads, [&](int index) {
      Event mine = std::move(events[static_cast<std::size_t>(index)]);
      for (int i = 0; i < 50; ++i) Event copy = mine;
      if (index == 0) {
        EventPromise last = std::move(promise);
        last.SetError(AbortedError("x"));
      }
      mine.OnReady([&seen](const Status& status) { seen.fetch_add(IsAborted(status) ? 1 : 100); });
    });
    EXPECT_EQ(seen.load(), kThreads);
  }
}

TEST(EventRaceTest, WhenAllCompletesOnceWhoeverIsLast) {
  for (int round = 0; round < kRounds / 20; ++round) {
    std::vector<EventPromise> promises;
    std::vector<Event> events;
    for (int i = 0; i < kThreads * 4; ++i) events.push_back(promises.emplace_back("p").event());
    std::atomic<int> completed{0};
    Event all;
    std::thread joiner([&] {
      all = WhenAll(events);
      all.OnReady([&completed](const Status& status) { completed.fetch_add(IsAborted(status) ? 1 : 100); });
    });
    Together(kThreads, [&](int index) {
      for (std::size_t i = static_cast<std::size_t>(index); i < promises.size(); i += kThreads) {
        promises[i].SetError(AbortedError(std::to_string(i)));
      }
    });
    joiner.join();
    EXPECT_EQ(all.Wait(), AbortedError("0"));
    EXPECT_EQ(completed.load(), 1);
  }
}

TEST(EventRaceTest, ForwardingRacesTheSourceAndWhoAttachesIsToldOnce) {
  std::vector<EventPromise> sources;
  std::vector<EventPromise> followers;
  std::vector<Event> source_events;
  std::vector<Event> follower_events;
  for (int i = 0; i < kRounds; ++i) {
    source_events.push_back(sources.emplace_back("source").event());
    follower_events.push_back(followers.emplace_back("follower").event());
  }
  const auto expected = [](std::size_t i, const Status& status) {
    return i % 3 == 0 ? status.ok() : i % 3 == 1 ? IsAborted(status) : IsInternal(status);
  };
  std::vector<std::atomic<int>> told(kRounds);
  Together(kThreads, [&](int index) {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (index == 0) {
        EventPromise source = std::move(sources[i]);  // Dropped unset every third time.
        if (i % 3 < 2) source.Set(i % 3 == 0 ? OkStatus() : AbortedError("x"));
      } else if (index == 1) {
        std::move(followers[i]).Forward(source_events[i]);
      } else if (index == 2) {
        follower_events[i].OnReady([&, i](const Status& status) { told[i].fetch_add(expected(i, status) ? 1 : 100); });
      } else {
        EXPECT_TRUE(expected(i, follower_events[i].Wait())) << i;
      }
    }
  });
  for (std::size_t i = 0; i < told.size(); ++i) ASSERT_EQ(told[i].load(), 1) << i;
}

}  // namespace
}  // namespace purlin
