// Watchdogs that poison, and waits that they must leave alone.
#ifndef PURLIN_TESTS_CPP_POISONER_H_
#define PURLIN_TESTS_CPP_POISONER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "purlin/event.h"
#include "purlin/stall.h"
#include "purlin/status.h"
#include "purlin/status_or.h"

namespace purlin {

inline bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline StatusOr<Watchdog> Poisoner() {
  WatchdogOptions options;
  options.older_than = std::chrono::milliseconds(10);
  options.action = WatchdogAction::kPoison;
  options.sink = [](std::string_view) {};
  return Watchdog::Start(std::move(options));
}

/// Returns once a watchdog has looked at all that is asleep now: it has poisoned what was made later.
inline void AfterALook() {
  for (int i = 0; i < 2; ++i) {
    const EventPromise canary("canary");
    EXPECT_TRUE(IsDeadlineExceeded(canary.event().Wait()));
  }
}

/// The lines of a report about the pending event of that label.
inline std::string LinesOf(const std::string& report, const std::string& label) {
  const std::size_t begin = report.find("\nevent '" + label + "'");
  if (begin == std::string::npos) return "";
  std::size_t end = report.find("\nevent '", begin + 1);
  end = std::min(end, report.find("\nthread '", begin + 1));
  return report.substr(begin, end - begin);
}

/// `wait`, on a thread of its own that sleeps on an event of that label, is not ended by a watchdog.
template <typename Wait>
void ExpectNotPoisoned(const std::string& label, EventPromise going_on, Wait wait) {
  std::atomic<bool> ended{false};
  std::thread waiter([&] {
    wait();
    ended.store(true);
  });
  while (!Has(DumpStalls(), "on event '" + label + "'")) std::this_thread::yield();
  StatusOr<Watchdog> watchdog = Poisoner();
  ASSERT_TRUE(watchdog.ok());
  AfterALook();
  EXPECT_FALSE(ended.load()) << "'" << label << "' was completed while others went on";
  const std::string lines = LinesOf(DumpStalls(), label);
  EXPECT_TRUE(Has(lines, "cannot be poisoned: ")) << lines;
  going_on.SetReady();
  waiter.join();
}

inline void Block(const Event& open) {
  while (!open.IsReady()) std::this_thread::yield();
}

}  // namespace purlin

#endif  // PURLIN_TESTS_CPP_POISONER_H_
