// The programs of the model (tests/reference/src/model/family.rs) by the C++ API.
#ifndef PURLIN_TESTS_REFERENCE_CPP_PROGRAMS_H_
#define PURLIN_TESTS_REFERENCE_CPP_PROGRAMS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "purlin/purlin.h"

namespace purlin::reference {

/// Of the operand that is read, or in place.
inline Kernel Plus(std::uint8_t by) {
  return Kernel::FromClosure("plus", [by](const KernelCall& call) {
    const Span<std::uint8_t> to = call.Write<std::uint8_t>(0);
    const std::uint8_t* const from = call.reads.empty() ? to.data() : call.Read<std::uint8_t>(0).data();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<std::uint8_t>(from[i] + by);
  });
}

/// Of two operands that are read, or of one onto the other.
inline Kernel Add() {
  return Kernel::FromClosure("add", [](const KernelCall& call) {
    const Span<std::uint8_t> to = call.Write<std::uint8_t>(0);
    const std::uint8_t* const first = call.reads.size() == 2 ? call.Read<std::uint8_t>(0).data() : to.data();
    const std::uint8_t* const last = call.Read<std::uint8_t>(call.reads.size() - 1).data();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<std::uint8_t>(first[i] + last[i]);
  });
}

/// `plus_one(from, to, count)`, a thread for each byte.
inline constexpr char kPlusOne[] =
#include "tests/reference/plus_one.inc"
    ;

/// Adds commands that add five to an array, in place or from another: kernels of the device's own where it has such.
inline Status AddFive(ProgramBuilder& builder, const Operand* from, const Slice& to, bool has_own_kernels) {
  constexpr std::uint32_t kPerBlock = 64;
  const std::uint64_t blocks = to.size_bytes == 0 ? 1 : (to.size_bytes + kPerBlock - 1) / kPerBlock;
  for (int i = 0; i < 5; ++i) {
    std::vector<Operand> operands;
    if (i == 0 && from != nullptr) {
      operands = {*from, Operand::Write(to)};
    } else {
      operands = {Operand::ReadWrite(to)};
    }
    if (!has_own_kernels) {
      builder.AddKernel(Plus(1), operands);
      continue;
    }
    KernelArgsPackingSpec packing;
    packing.PushAddress(0).PushAddress(static_cast<std::uint32_t>(operands.size() - 1));
    packing.PushConstant(static_cast<std::uint32_t>(to.size_bytes));
    StatusOr<Kernel> kernel =
        Kernel::OfDevice(KernelLoaderSpec::Ptx(kPlusOne, "plus_one", 3).WithPacking(packing), {kPerBlock, 1, 1});
    if (!kernel.ok()) return kernel.status();
    builder.AddKernel(*kernel, operands, {blocks, 1, 1});
  }
  return OkStatus();
}

/// Fails after it has written.
inline Kernel Fails(const Status& error) {
  return Kernel::FromClosure("fails", [error](const KernelCall& call) {
    for (std::byte& byte : call.writes[0]) byte = std::byte{0xEE};
    return error;
  });
}

/// A program of that family, for arrays like `like`, or of eight bytes, loaded for a device. Where that has kernels of
/// its own, the host's programs are in memory that the host reaches.
inline StatusOr<LoadedExecutable> LoadFamily(int family, const std::optional<Buffer>& like, const Device& device,
                                             bool has_own_kernels) {
  ArraySpec spec(Shape(DType::kU8, {8}));
  if (like.has_value() && like->shape() != Shape::Token()) {
    spec.shape = like->shape();
    spec.layout = like->layout();
  }
  const bool is_of_device = family == 7 || family == 8;
  spec.memory_kind = has_own_kernels && !is_of_device ? "pinned_host" : "device";
  ProgramBuilder builder("reference");
  switch (family) {
    case 0: {
      const Slice x = builder.AddParameter(spec), y = builder.AddResult(spec);
      builder.AddKernel(Plus(1), {Operand::Read(x), Operand::Write(y)});
      break;
    }
    case 1:
      builder.AddKernel(Plus(1), {Operand::ReadWrite(builder.AddDonatedParameter(spec))});
      break;
    case 2: {
      const Slice a = builder.AddParameter(spec), b = builder.AddParameter(spec);
      const Slice sum = builder.AddResult(spec), copy = builder.AddResult(spec);
      const Slice temporary = builder.AddTemporary(spec.shape.host_size_bytes().value());
      builder.AddCopy(a, temporary);
      builder.AddKernel(Add(), {Operand::Read(temporary), Operand::Read(b), Operand::Write(sum)});
      builder.AddCopy(temporary, copy);
      break;
    }
    case 3: {
      const Slice a = builder.AddDonatedParameter(spec), b = builder.AddParameter(spec);
      builder.AddKernel(Add(), {Operand::ReadWrite(a), Operand::Read(b)});
      break;
    }
    case 4: {
      const Slice a = builder.AddDonatedParameter(spec), b = builder.AddDonatedParameter(spec);
      builder.AddKernel(Plus(1), {Operand::ReadWrite(a)}).AddKernel(Plus(2), {Operand::ReadWrite(b)});
      break;
    }
    case 5:
      builder.AddKernel(Fails(NotFoundError("user error #7#")),
                        {Operand::ReadWrite(builder.AddDonatedParameter(spec))});
      break;
    case 7: {
      const Operand x = Operand::Read(builder.AddParameter(spec));
      const Slice y = builder.AddResult(spec);
      PURLIN_RETURN_IF_ERROR(AddFive(builder, &x, y, has_own_kernels));
      break;
    }
    case 8: {
      const Slice x = builder.AddDonatedParameter(spec);
      PURLIN_RETURN_IF_ERROR(AddFive(builder, nullptr, x, has_own_kernels));
      break;
    }
    default: {
      // C++ has no panics, and this program no exceptions.
      const Slice x = builder.AddParameter(spec), y = builder.AddResult(spec);
      builder.AddKernel(Fails(InternalError("it panicked: as a test wants it")), {Operand::Read(x), Operand::Write(y)});
    }
  }
  StatusOr<Program> program = std::move(builder).Build();
  if (!program.ok()) return program.status();
  return LoadedExecutable::Load(Executable(*program), {device});
}

}  // namespace purlin::reference

#endif  // PURLIN_TESTS_REFERENCE_CPP_PROGRAMS_H_
