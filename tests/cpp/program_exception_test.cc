// Exceptions of kernels stop at the boundary. Compiled with exceptions; the library is compiled without.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "program_fixture.h"

#if !defined(__cpp_exceptions)
#error "this file tests exceptions"
#endif

namespace purlin {
namespace {

class ProgramExceptionTest : public ProgramFixture {};

TEST_F(ProgramExceptionTest, AKernelMayThrow) {
  int calls = 0;
  const LoadedExecutable loaded = Load(Unary(Kernel::FromClosure("throws", [&calls](const KernelCall&) {
    if (++calls == 1) throw std::runtime_error("kernel boom");
  })));
  testing::internal::CaptureStderr();
  const Status status = loaded.Execute({Array({1, 2, 3, 4})}).value().done.Wait();
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(IsInternal(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "command 0 (kernel 'throws') of 'unary': the kernel threw")) << status;
  EXPECT_EQ(text, "purlin: exception in kernel: kernel boom\n");
  EXPECT_TRUE(loaded.Execute({Array({1, 2, 3, 4})}).value().done.Wait().ok()) << "the next run is another one";
}

}  // namespace
}  // namespace purlin
