// Exceptions of callbacks for leases and pieces stop at the boundary. Compiled with exceptions; the library is compiled
// without.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "purlin/staging.h"
#include "staging_fixture.h"

#if !defined(__cpp_exceptions)
#error "this file tests exceptions"
#endif

namespace purlin {
namespace {

class StagingExceptionTest : public StagingFixture {};

TEST_F(StagingExceptionTest, WhoIsToldOfAPieceMayThrow) {
  const StagingPool pool = PoolOf(10, 2);
  StagingCopier copier(pool);
  const RawBuffer source = Filled(Pattern(100, 1));
  int count = 0;
  const auto on_piece = [&count](const StatusOr<StagedPiece>&) {
    if (++count == 3) throw std::runtime_error("piece boom");
  };
  testing::internal::CaptureStderr();
  const Status status = copier.Read(source, on_piece).Wait();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(IsInternal(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "the callback of a staged read threw")) << status;
  EXPECT_EQ(text, "purlin: exception in on_piece of a staged read: piece boom\n");
  EXPECT_EQ(count, 3) << "nothing is told after that";
  const Pieces pieces;
  const Event other = copier.Read(source, pieces.Callback());
  EXPECT_EQ(pieces.All(), Pattern(100, 1));
  EXPECT_TRUE(other.Wait().ok());
  AwaitAll(pool);
}

TEST_F(StagingExceptionTest, AReadThatEndedEarlyLeavesItsSourceAlone) {
  constexpr std::size_t kLarge = 1'000'000;
  const StagingPool pool = PoolOf(kLarge, 6);
  StagingCopier copier(pool);
  std::optional<RawBuffer> source = Filled(Pattern(8 * kLarge, 1));
  testing::internal::CaptureStderr();
  const Event read =
      copier.Read(*source, [](const StatusOr<StagedPiece>&) { throw std::runtime_error("first of many"); });
  source.reset();
  EXPECT_TRUE(IsInternal(read.Wait())) << read.Wait();
  EXPECT_EQ(InUse(), 0U) << "no copy of it is under way";

  // Its second piece waits for a lease that is never granted; no thread waits for that.
  const Buffer buffer =
      Buffer::FromRaw(Filled(Pattern(2 * kLarge, 1)), Shape(DType::kU8, {2 * std::int64_t{kLarge}})).value();
  std::vector<StagingLease> others;
  while (others.size() < 5) others.push_back(pool.Acquire().value());
  std::optional<StagedPiece> kept;
  const StatusOr<Event> held = copier.ReadBuffer(buffer, [&kept](StatusOr<StagedPiece> piece) {
    kept.emplace(std::move(piece).value());
    throw std::runtime_error("its lease is kept");
  });
  EXPECT_TRUE(IsInternal(held->Wait())) << held->Wait();
  EXPECT_TRUE(buffer.TryDonate("donee").ok()) << "it is not held";
  EXPECT_TRUE(kept.has_value());
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(Contains(text, "first of many") && Contains(text, "its lease is kept")) << text;
}

TEST_F(StagingExceptionTest, FromWhoIsToldOfAnErrorTheErrorStaysAsItWas) {
  StagingCopier copier(PoolOf(10, 1));
  testing::internal::CaptureStderr();
  const Status status = copier
                            .Read(Filled(Pattern(10, 1)), [](const StatusOr<StagedPiece>&) { throw 7; },
                                  {Event::Error(DataLossError("upstream"))})
                            .Wait();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(status, DataLossError("upstream"));
  EXPECT_TRUE(Contains(text, "purlin: exception in on_piece of a staged read")) << text;
}

TEST_F(StagingExceptionTest, FromWhoIsToldOfALeaseTheLeaseGoesBack) {
  const StagingPool pool = PoolOf(10, 1);
  std::optional<StagingLease> held = pool.Acquire().value();
  pool.AcquireAsync([](StatusOr<StagingLease> lease) {
    const StagingLease taken = std::move(lease).value();
    throw std::runtime_error("lease boom");
  });
  testing::internal::CaptureStderr();
  held.reset();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(text, "purlin: exception in callback of a staging pool: lease boom\n");
  EXPECT_EQ(pool.free_count(), 1U);
}

}  // namespace
}  // namespace purlin
