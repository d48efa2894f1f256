// Exceptions of user code stop at the boundary. Compiled with exceptions; the library is compiled without.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/user_context.h"

#if !defined(__cpp_exceptions)
#error "this file tests exceptions"
#endif

namespace purlin {
namespace {

/// What `f` prints on stderr.
template <typename F>
std::string StderrOf(F f) {
  testing::internal::CaptureStderr();
  f();
  return testing::internal::GetCapturedStderr();
}

TEST(ExceptionTest, FromAWaiterIsReportedAndTheOthersRun) {
  EventPromise promise("p");
  std::vector<int> ran;
  promise.event().OnReady([&ran] { ran.push_back(1); });
  promise.event().OnReady([] { throw std::runtime_error("waiter boom"); });
  promise.event().OnReady([&ran] { ran.push_back(3); });
  const std::string text = StderrOf([&promise] { EXPECT_TRUE(promise.SetReady()); });
  EXPECT_EQ(ran, (std::vector<int>{1, 3}));
  EXPECT_EQ(text, "purlin: exception in waiter: waiter boom\n");
}

TEST(ExceptionTest, FromAWaiterOfATerminalEventIsReported) {
  const std::string text = StderrOf([] { Event::Ready().OnReady([] { throw std::runtime_error("at once"); }); });
  EXPECT_EQ(text, "purlin: exception in waiter: at once\n");
}

TEST(ExceptionTest, ThatIsNoStdExceptionIsReportedAsThat) {
  const std::string text = StderrOf([] { Event::Ready().OnReady([] { throw 42; }); });
  EXPECT_EQ(text, "purlin: exception in waiter: not a std::exception\n");
}

TEST(ExceptionTest, FromATaskIsReportedAndThePoolLives) {
  StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({1, "throwing"});
  ASSERT_TRUE(pool.ok()) << pool.status();
  EventPromise promise("owed by the task that throws");
  const Event event = promise.event();
  std::atomic<int> ran{0};
  const std::string text = StderrOf([&] {
    ASSERT_TRUE(pool->Schedule([promise = std::move(promise)] { throw std::runtime_error("task boom"); }).ok());
    ASSERT_TRUE(pool->Schedule([&ran] { ran.fetch_add(1); }).ok());
    ASSERT_TRUE(pool->Shutdown().ok());
  });
  EXPECT_EQ(ran.load(), 1);
  EXPECT_EQ(text, "purlin: exception in task: task boom\n");
  EXPECT_TRUE(IsInternal(event.error())) << "the closure was destroyed, and with it the promise";
}

TEST(ExceptionTest, FromALoopBodyIsInternalAndTheOtherRangesRun) {
  StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({2, "loop"});
  ASSERT_TRUE(pool.ok()) << pool.status();
  std::vector<std::atomic<int>> visits(10);
  Status status;
  const std::string text = StderrOf([&] {
    status = pool->ParallelFor(visits.size(), 1, [&visits](std::size_t begin, std::size_t) {
      visits[begin].fetch_add(1);
      if (begin == 3 || begin == 7) throw std::runtime_error("loop boom");
    });
  });
  EXPECT_TRUE(IsInternal(status)) << status;
  EXPECT_NE(status.message().find("[3, 4) threw"), std::string::npos) << status;
  EXPECT_NE(text.find("purlin: exception in ParallelFor: loop boom\n"), std::string::npos) << text;
  for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit.load(), 1);
}

TEST(ExceptionTest, FromADeferredWaiterIsReported) {
  std::vector<EventPromise> promises;
  for (int i = 0; i < 100; ++i) promises.emplace_back("link");
  for (std::size_t i = 0; i + 1 < promises.size(); ++i) {
    promises[i].event().OnReady([&promises, i] {
      promises[i + 1].SetReady();
      if (i == 90) throw std::runtime_error("deep boom");
    });
  }
  const std::string text = StderrOf([&promises] { promises[0].SetReady(); });
  EXPECT_EQ(text, "purlin: exception in waiter: deep boom\n");
  EXPECT_TRUE(promises.back().event().IsReady());
}

TEST(ExceptionTest, LeavesTheUserContextAsItWas) {
  const UserContext outer = UserContext::Create("outer");
  const UserContext inner = UserContext::Create("inner");
  const UserContextScope scope(outer);
  auto throwing = WithUserContext(inner, [] { throw std::runtime_error("boom"); });
  EXPECT_THROW(throwing(), std::runtime_error);
  EXPECT_EQ(CurrentUserContext(), outer);
  EventPromise promise("p");
  promise.OnReady(throwing);
  const std::string text = StderrOf([&promise] { EXPECT_TRUE(promise.SetReady()); });
  EXPECT_EQ(text, "purlin: exception in waiter: boom\n");
  EXPECT_EQ(CurrentUserContext(), outer);
}

TEST(ExceptionTest, FromAnOriginIsReportedAndSaid) {
  const UserContext context = UserContext::Create([]() -> std::string { throw std::runtime_error("no text"); });
  std::string rendered;
  const std::string text = StderrOf([&] { rendered = context.DebugString(); });
  EXPECT_EQ(text, "purlin: exception in user context: no text\n");
  EXPECT_EQ(rendered, "(the closure that renders this context threw)");
}

}  // namespace
}  // namespace purlin
