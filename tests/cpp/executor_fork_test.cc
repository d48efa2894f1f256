// A child made by fork() has no pool threads: calls of its parent's pools fail instead of waiting for ever, and its own
// work.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "purlin/executor.h"
#include "tests/cpp/sanitizers.h"

namespace purlin {
namespace {

TEST(ForkTest, CallsInTheChildSayThatItIsOne) {
  PURLIN_SKIP_UNLESS_FORKS(false);
  std::optional<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({2, "forked"}).value();
  const pid_t child = Fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    EventPromise owed("owed");
    const Event event = owed.event();
    const Status refused = pool->Schedule([owed = std::move(owed)]() mutable { owed.SetReady(); });
    if (!IsFailedPrecondition(refused) || refused.message().find("fork") == std::string::npos) _exit(1);
    if (event.state() != EventState::kError) _exit(2);
    if (!IsFailedPrecondition(pool->Shutdown())) _exit(3);
    {
      ThreadPoolAsyncWorkRunner own = ThreadPoolAsyncWorkRunner::Create({1, "child"}).value();
      EventPromise done("done");
      const Event ended = done.event();
      if (!own.Schedule([done = std::move(done)]() mutable { done.SetReady(); }).ok()) _exit(4);
      if (!ended.Wait().ok()) _exit(6);
    }
    int calls = 0;
    if (!pool->ParallelFor(3, Grain(1), [&calls](std::size_t, std::size_t) { ++calls; }).ok() || calls != 3) _exit(5);
    pool.reset();
    _exit(0);
  }
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_TRUE(WIFEXITED(ended)) << ended;
  EXPECT_EQ(WEXITSTATUS(ended), 0);
  EventPromise done("done");
  const Event event = done.event();
  ASSERT_TRUE(pool->Schedule([&done] { done.SetReady(); }).ok()) << "the parent goes on";
  EXPECT_TRUE(event.Wait().ok());
}

}  // namespace
}  // namespace purlin
