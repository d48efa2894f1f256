// The main function of every test program. A test that leaves something of Purlin's behind (ledger.h) fails. With
// PURLIN_CASE_SECONDS (tests/misuse) each test has so long, and the process ends, naming the test, when it takes
// longer.
#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "tests/cpp/ledger.h"

namespace purlin {
namespace {

#ifdef PURLIN_CASE_SECONDS
/// Says which test it was that did not end, and ends the process: a hang is a failure that has a name.
class EndsInTime final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    std::snprintf(text_, sizeof(text_), "FAILED: %s.%s did not end in %d s\n", test.test_suite_name(), test.name(),
                  PURLIN_CASE_SECONDS);
    std::signal(SIGALRM, [](int) {
      static_cast<void>(!write(STDERR_FILENO, text_, std::strlen(text_)));
      _exit(124);
    });
    alarm(PURLIN_CASE_SECONDS);
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    static_cast<void>(test);
    alarm(0);
  }
  static inline char text_[512];
};
#endif

class LeavesNothing final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    static_cast<void>(test);
    before_ = Ledger::Now();
  }

  // The fixture is gone. Memory and threads may end a moment after the event that announces their end.
  void OnTestEnd(const testing::TestInfo& test) override {
    if (test.result()->Skipped()) return;
    const std::string left = before_.LeftWithin(Patience());
    EXPECT_TRUE(left.empty()) << test.test_suite_name() << "." << test.name() << ": " << left;
  }

  // Only a test that fails waits so long; the test of this listener is in a hurry to fail.
  static std::chrono::milliseconds Patience() {
    const char* const chosen = std::getenv("PURLIN_LEDGER_PATIENCE_MS");
    return std::chrono::milliseconds(chosen == nullptr ? 20000 : std::atoi(chosen));
  }

  Ledger before_;
};

}  // namespace
}  // namespace purlin

#if defined(__SANITIZE_ADDRESS__)
// LeakSanitizer asks here whether it is to look at a process's end. A child of fork() has its parent's memory without
// the threads that hold it, so it would find all of theirs.
static const pid_t first_process = getpid();
extern "C" int __lsan_is_turned_off() { return static_cast<int>(getpid() != first_process); }
#endif

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // ThreadSanitizer starts a thread of its own with the program's first, and keeps it: before any test looks.
  std::thread([] {}).join();
#ifdef PURLIN_CASE_SECONDS
  testing::UnitTest::GetInstance()->listeners().Append(new purlin::EndsInTime);
#endif
  testing::UnitTest::GetInstance()->listeners().Append(new purlin::LeavesNothing);
  return RUN_ALL_TESTS();
}
