// The main function of every test program. A test that leaves something of Purlin's behind (ledger.h) fails.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "tests/cpp/ledger.h"

namespace purlin {
namespace {

class LeavesNothing final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    static_cast<void>(test);
    before_ = Ledger::Now();
  }

  // The fixture is gone. Memory and threads may go a moment after whatever told that they would.
  void OnTestEnd(const testing::TestInfo& test) override {
    if (test.result()->Skipped()) return;
    const std::string left = before_.LeftWithin(Patience());
    EXPECT_TRUE(left.empty()) << test.test_suite_name() << "." << test.name() << ": " << left;
  }

  // Nobody waits so long but who fails; the test of this listener is in a hurry to fail.
  static std::chrono::milliseconds Patience() {
    const char* const chosen = std::getenv("PURLIN_LEDGER_PATIENCE_MS");
    return std::chrono::milliseconds(chosen == nullptr ? 20000 : std::atoi(chosen));
  }

  Ledger before_;
};

}  // namespace
}  // namespace purlin

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // ThreadSanitizer starts a thread of its own with the program's first, and keeps it: before any test looks.
  std::thread([] {}).join();
  testing::UnitTest::GetInstance()->listeners().Append(new purlin::LeavesNothing);
  return RUN_ALL_TESTS();
}
