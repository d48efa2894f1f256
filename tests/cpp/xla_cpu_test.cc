// Executables of XLA:CPU: a small one that is written here, field by field, and what is refused. Those that stock JAX
// compiled are loaded by tests/interop/xla_cpu_load_test.cc.
#include "purlin/xla_cpu.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "program_fixture.h"

namespace purlin {
namespace {

/// A number as protocol buffers write it.
std::string Varint(std::uint64_t number) {
  std::string bytes;
  for (; number > 127; number >>= 7) bytes += static_cast<char>(number | 128);
  return bytes += static_cast<char>(number);
}
/// A field that is a number.
std::string Number(std::uint64_t tag, std::uint64_t number) { return Varint(tag << 3) + Varint(number); }
/// A field that is text or a message.
std::string Part(std::uint64_t tag, std::string_view content) {
  return Varint(tag << 3 | 2) + Varint(content.size()) + std::string(content);
}

/// f32[4]
std::string Vector() { return Number(2, 11) + Number(3, 4) + Part(5, Number(1, 0)); }
/// An array that is an allocation of 16 bytes.
std::string Array(std::uint64_t allocation) {
  return Part(1, Vector()) + Part(2, Number(2, 16) + Number(3, allocation));
}
std::string Instruction(std::uint64_t id, std::string_view opcode, std::initializer_list<std::uint64_t> operands) {
  std::string bytes = Part(2, opcode) + Number(35, id);
  for (const std::uint64_t operand : operands) bytes += Number(36, operand);
  return bytes;
}
/// An allocation of 16 bytes that holds the value of an instruction.
std::string Allocation(std::uint64_t index, std::uint64_t value, std::uint64_t kind) {
  return Number(1, index) + Number(2, 16) + Number(kind, 1) + Part(9, Number(1, value) + Number(3, 16));
}
std::string Value(std::uint64_t id) { return Number(1, id) + Part(3, Number(4, id)); }

/// An executable that copies its parameter to its result, as a plugin serializes it.
std::string CopyingExecutable(std::string_view thunk) {
  const std::string computation = Part(2, Instruction(1, "parameter", {})) + Part(2, Instruction(2, "copy", {1})) +
                                  Part(2, Instruction(3, "tuple", {2})) + Number(5, 1) + Number(6, 3);
  const std::string module = Part(1, "copies") + Part(3, computation) + Number(6, 1);
  const std::string result = Number(2, 13) + Part(4, Vector());
  const std::string config = Part(1, Part(1, Vector()) + Part(2, result));
  constexpr std::uint64_t kIsParameter = 5;
  constexpr std::uint64_t kMaybeLiveOut = 7;
  const std::string assignment = Part(1, Value(1)) + Part(1, Value(2)) + Part(3, Allocation(0, 1, kIsParameter)) +
                                 Part(3, Allocation(1, 2, kMaybeLiveOut));
  const std::string target = Part(1, "x86_64-unknown-linux-gnu") + Part(3, "+sse3");
  return Part(1, Part(1, Part(1, module) + Part(2, config)) + Part(2, assignment) + Number(5, 2) +
                     Part(6, Part(1, thunk)) + Part(9, target));
}
std::string CopyThunk() { return Part(1, "copy") + Part(12, Part(1, Array(0)) + Part(2, Array(1))); }

#if defined(__x86_64__)

class XlaCpuTest : public ProgramFixture {
 protected:
  static LoadXlaCpuOptions Trusted() {
    LoadXlaCpuOptions options;
    options.trust_code = true;
    return options;
  }
};

TEST_F(XlaCpuTest, AnExecutableIsLoadedAndRun) {
  const std::string bytes = CopyingExecutable(CopyThunk());
  EXPECT_TRUE(CheckXlaCpu(bytes).ok()) << CheckXlaCpu(bytes);
  // In front of it, jaxlib's serialize() has a header.
  for (const std::string& form : {bytes, std::string("\x03\x08\x03\x00", 4) + bytes}) {
    const StatusOr<Executable> executable = LoadXlaCpu(form, Trusted());
    ASSERT_TRUE(executable.ok()) << executable.status();
    EXPECT_EQ(executable->Describe().substr(0, executable->Describe().find("\nmemory")),
              "copies: (f32[4]) -> (f32[4])\ncommands: 1 copy");
    const LoadedExecutable loaded = LoadedExecutable::Load(*executable, {client_.devices()[0]}).value();
    const float numbers[] = {1, 2, 3, 4};
    const Buffer argument = Buffer::FromHost(numbers, sizeof(numbers), DType::kF32, {4}, space_).value();
    EXPECT_EQ(Result(loaded, {argument}), Read(argument));
  }
}

TEST_F(XlaCpuTest, CodeIsLoadedOnlyIfTheCallerVouchesForIt) {
  const Status status = LoadXlaCpu(CopyingExecutable(CopyThunk())).status();
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "trust_code")) << status;
}

TEST_F(XlaCpuTest, DamagedBytesAreRefusedWithTheirPlace) {
  for (const std::string_view bytes :
       {std::string_view(), std::string_view("\xff"), std::string_view("what is this")}) {
    EXPECT_TRUE(IsDataLoss(LoadXlaCpu(bytes, Trusted()).status())) << LoadXlaCpu(bytes, Trusted()).status();
    EXPECT_TRUE(IsDataLoss(CheckXlaCpu(bytes)));
  }
  EXPECT_EQ(CheckXlaCpu("").message(), "XLA:CPU executable, byte 0: the bytes end inside a number");
  const std::string whole = CopyingExecutable(CopyThunk());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(LoadXlaCpu(std::string_view(whole).substr(0, size), Trusted()).ok()) << size;
  }
}

TEST_F(XlaCpuTest, WhatCannotRunIsRefusedWithReasons) {
  const std::string infeed = Part(1, "infeed") + Part(14, "");
  const Status status = LoadXlaCpu(CopyingExecutable(infeed), Trusted()).status();
  EXPECT_TRUE(IsUnimplemented(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "program 'copies' cannot run here: ") && Contains(status.message(), "infeed"))
      << status;
  EXPECT_EQ(CheckXlaCpu(CopyingExecutable(infeed)), status);
}

TEST_F(XlaCpuTest, UnsoundOptionsAreRefused) {
  LoadXlaCpuOptions options = Trusted();
  options.struct_size = 0;
  const Status status = LoadXlaCpu(CopyingExecutable(CopyThunk()), options).status();
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "LoadXlaCpuOptions::struct_size is 0")) << status;
}

#else

TEST(XlaCpuTest, ElsewhereThereIsNoLoader) {
  EXPECT_TRUE(IsUnimplemented(CheckXlaCpu(CopyingExecutable(CopyThunk()))));
}

#endif

}  // namespace
}  // namespace purlin
