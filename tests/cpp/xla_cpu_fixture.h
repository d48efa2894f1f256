// Executables of XLA:CPU that are written here, field by field, for tests that have no XLA.
#ifndef PURLIN_TESTS_CPP_XLA_CPU_FIXTURE_H_
#define PURLIN_TESTS_CPP_XLA_CPU_FIXTURE_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "program_fixture.h"
#include "purlin/xla_cpu.h"

namespace purlin {

/// A number as protocol buffers write it.
inline std::string Varint(std::uint64_t number) {
  std::string bytes;
  for (; number > 127; number >>= 7) bytes += static_cast<char>(number | 128);
  return bytes += static_cast<char>(number);
}
/// A field that is a number.
inline std::string Number(std::uint64_t tag, std::uint64_t number) { return Varint(tag << 3) + Varint(number); }
/// A field that is text or a message.
inline std::string Part(std::uint64_t tag, std::string_view content) {
  return Varint(tag << 3 | 2) + Varint(content.size()) + std::string(content);
}

/// f32[4]
inline std::string Vector() { return Number(2, 11) + Number(3, 4) + Part(5, Number(1, 0)); }
/// An array that is an allocation of 16 bytes.
inline std::string Array(std::uint64_t allocation) {
  return Part(1, Vector()) + Part(2, Number(2, 16) + Number(3, allocation));
}
inline std::string Instruction(std::uint64_t id, std::string_view opcode,
                               std::initializer_list<std::uint64_t> operands) {
  std::string bytes = Part(2, opcode) + Number(35, id);
  for (const std::uint64_t operand : operands) bytes += Number(36, operand);
  return bytes;
}
/// An allocation of 16 bytes that holds the value of an instruction.
inline std::string Allocation(std::uint64_t index, std::uint64_t value, std::uint64_t kind) {
  return Number(1, index) + Number(2, 16) + Number(kind, 1) + Part(9, Number(1, value) + Number(3, 16));
}
inline std::string Value(std::uint64_t id) { return Number(1, id) + Part(3, Number(4, id)); }

/// An executable from one f32[4] to another, as a plugin serializes it, which consists of one thunk.
inline std::string CopyingExecutable(std::string_view thunk) {
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
inline std::string CopyThunk() { return Part(1, "copy") + Part(12, Part(1, Array(0)) + Part(2, Array(1))); }
/// A call of a handler of XLA's typed FFI, from the parameter to the result.
inline std::string CustomCallThunk(std::string_view target, std::string_view attributes) {
  constexpr std::uint64_t kTypedFfi = 4;
  const std::string buffers = Part(1, Array(0)) + Part(2, Array(1));
  return Part(1, "custom-call") +
         Part(16, Number(1, kTypedFfi) + Part(2, target) + Part(3, attributes) + Part(4, buffers));
}

class XlaCpuFixture : public ProgramFixture {
 protected:
  static LoadXlaCpuOptions Trusted() {
    LoadXlaCpuOptions options;
    options.trust_code = true;
    return options;
  }
};

}  // namespace purlin

#endif  // PURLIN_TESTS_CPP_XLA_CPU_FIXTURE_H_
