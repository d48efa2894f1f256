// purlin/adapters/std.h where std::futures hold exceptions. All on one thread: libstdc++ counts references to
// exceptions where ThreadSanitizer does not look, so that it takes the last one for a race.
#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "purlin/adapters/std.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

using adapters::FromStd;

TEST(FromStdExceptionTest, AnExceptionIsAnErrorWithItsText) {
  CountingExecutor executor;
  const Future<int> future =
      FromStd(std::async(std::launch::deferred, []() -> int { throw std::runtime_error("no such file"); }), executor);
  EXPECT_EQ(future.Await().status(), InternalError("a std::future holds an exception: no such file"));
  const Future<> odd = FromStd(std::async(std::launch::deferred, [] { throw 7; }), executor);
  EXPECT_EQ(odd.Await(), InternalError("a std::future holds an exception that is no std::exception"));
}

TEST(FromStdExceptionTest, APromiseThatIsDroppedUnsetIsAnError) {
  CountingExecutor executor;
  std::future<int> abandoned;
  {
    std::promise<int> promise;
    abandoned = promise.get_future();
  }
  const Status status = FromStd(std::move(abandoned), executor).Await().status();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("Broken promise"), std::string_view::npos) << status;
}

TEST(FromStdExceptionTest, AnExceptionOfASharedFutureReachesAll) {
  CountingExecutor executor;
  const std::shared_future<void> shared =
      std::async(std::launch::deferred, [] { throw std::runtime_error("x"); }).share();
  EXPECT_EQ(FromStd(shared, executor).Await().code(), StatusCode::kInternal);
  EXPECT_EQ(FromStd(shared, executor).Await().code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace purlin
