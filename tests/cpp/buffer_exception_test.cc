// Exceptions of an on_done stop at the boundary. Compiled with exceptions; the library is compiled without.
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <string>

#include "buffer_fixture.h"

#if !defined(__cpp_exceptions)
#error "this file tests exceptions"
#endif

namespace purlin {
namespace {

class BufferExceptionTest : public BufferFixture {};

TEST_F(BufferExceptionTest, FromAnOnDoneIsReportedAndTheBufferIsWell) {
  const std::array<std::uint8_t, 4> bytes = {1, 2, 3, 4};
  int calls = 0;
  testing::internal::CaptureStderr();
  const StatusOr<FromHostResult> made =
      Buffer::FromHost(bytes.data(), DType::kU8, {4}, space_, FromHostOptions(), [&calls](const Status&) {
        ++calls;
        throw std::runtime_error("done boom");
      });
  const std::string text = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(Contains(text, "purlin: exception in on_done of host memory: done boom\n")) << text;
  EXPECT_EQ(Read(made->buffer), (Bytes{1, 2, 3, 4}));
}

TEST_F(BufferExceptionTest, FromAnOnDoneOfAFailureLeavesTheErrorAsItIs) {
  testing::internal::CaptureStderr();
  const Status status =
      Buffer::FromHost(nullptr, DType::kU8, {4}, space_, FromHostOptions(), [](const Status&) { throw 7; }).status();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(text, "purlin: exception in on_done of host memory")) << text;
}

}  // namespace
}  // namespace purlin
