// purlin/adapters/std.h where std::futures hold exceptions.
#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <string_view>

#include "purlin/adapters/std.h"
#include "purlin/elastic_pool.h"

namespace purlin {
namespace {

using adapters::FromStd;

TEST(FromStdExceptionTest, AnExceptionIsAnErrorWithItsText) {
  ElasticPool pool = ElasticPool::Create({}).value();
  const Future<int> future = FromStd(std::async([]() -> int { throw std::runtime_error("no such file"); }), pool);
  EXPECT_EQ(future.Await().status(), InternalError("a std::future holds an exception: no such file"));
  const Future<> odd = FromStd(std::async([] { throw 7; }), pool);
  EXPECT_EQ(odd.Await(), InternalError("a std::future holds an exception that is no std::exception"));
}

TEST(FromStdExceptionTest, APromiseThatIsDroppedUnsetIsAnError) {
  ElasticPool pool = ElasticPool::Create({}).value();
  Future<int> future;
  {
    std::promise<int> promise;
    future = FromStd(promise.get_future(), pool);
  }
  const Status status = future.Await().status();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("Broken promise"), std::string_view::npos) << status;
}

TEST(FromStdExceptionTest, AnExceptionOfASharedFutureReachesAll) {
  ElasticPool pool = ElasticPool::Create({}).value();
  const std::shared_future<void> shared = std::async([] { throw std::runtime_error("x"); }).share();
  EXPECT_EQ(FromStd(shared, pool).Await().code(), StatusCode::kInternal);
  EXPECT_EQ(FromStd(shared, pool).Await().code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace purlin
