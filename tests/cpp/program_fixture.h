// What the tests of programs share: small programs over bytes, and their runs on one device.
#ifndef PURLIN_TESTS_CPP_PROGRAM_FIXTURE_H_
#define PURLIN_TESTS_CPP_PROGRAM_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "buffer_fixture.h"
#include "purlin/executable.h"
#include "purlin/kernel.h"
#include "purlin/program.h"

namespace purlin {

class ProgramFixture : public BufferFixture {
 protected:
  static ArraySpec U8(std::int64_t count) { return ArraySpec(Shape(DType::kU8, {count})); }
  Buffer Array(const Bytes& bytes) const { return Of(bytes, {static_cast<std::int64_t>(bytes.size())}); }

  /// Adds one to each byte of read 0, into write 0.
  static Kernel AddOne() {
    return Kernel::FromClosure("add_one", [](const KernelCall& call) {
      const Span<const std::uint8_t> from = call.Read<std::uint8_t>(0);
      const Span<std::uint8_t> to = call.Write<std::uint8_t>(0);
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<std::uint8_t>(from[i] + 1);
    });
  }
  /// Adds one to each byte of write 0.
  static Kernel Increment() {
    return Kernel::FromClosure("increment", [](const KernelCall& call) {
      for (std::uint8_t& byte : call.Write<std::uint8_t>(0)) ++byte;
    });
  }
  /// y = kernel(x), of four bytes.
  static Program Unary(const Kernel& kernel, const char* name = "unary") {
    ProgramBuilder builder(name);
    const Slice x = builder.AddParameter(U8(4));
    const Slice y = builder.AddResult(U8(4));
    builder.AddKernel(kernel, {Operand::Invariant(x), Operand::Write(y)});
    return std::move(builder).Build().value();
  }
  /// x = kernel(x) in place, of four bytes that are donated.
  static Program InPlace(const Kernel& kernel) {
    ProgramBuilder builder("in_place");
    const Slice x = builder.AddDonatedParameter(U8(4));
    builder.AddKernel(kernel, {Operand::ReadWrite(x)});
    return std::move(builder).Build().value();
  }
  LoadedExecutable Load(const Program& program) const {
    return LoadedExecutable::Load(Executable(program), {client_.devices()[0]}).value();
  }
  /// The bytes of the only result.
  static Bytes Result(const LoadedExecutable& loaded, Span<const Buffer> arguments) {
    Execution execution = loaded.Execute(arguments).value();
    EXPECT_EQ(execution.outputs.size(), 1U);
    return Read(execution.outputs[0]);
  }
};

}  // namespace purlin

#endif  // PURLIN_TESTS_CPP_PROGRAM_FIXTURE_H_
