// Purlin: programs, the output of a compiler for one computation: kernels, copies, loops and branches over named
// memory.
//
// ```cpp
// purlin::StatusOr<purlin::Program> Increment() {
//   const purlin::ArraySpec vector(purlin::Shape(purlin::DType::kF32, {4}));
//   purlin::ProgramBuilder builder("increment");
//   const purlin::Slice x = builder.AddParameter(vector);
//   const purlin::Slice y = builder.AddResult(vector);
//   const purlin::Kernel add_one = purlin::Kernel::FromClosure("add_one", [](const purlin::KernelCall& call) {
//     for (std::size_t i = 0; i < 4; ++i) call.Write<float>(0)[i] = call.Read<float>(0)[i] + 1;
//   });
//   builder.AddKernel(add_one, {purlin::Operand::Invariant(x), purlin::Operand::Write(y)});
//   return std::move(builder).Build();
// }
// ```
//
// A program refers to memory by the number of an allocation, never by address: a parameter, a result, a constant or a
// temporary. Commands access slices of these, in an order that respects every dependency. executable.h loads a program
// for devices and runs it; docs/programs.md explains the model.
//
// Adding checks nothing. ProgramBuilder::Build refuses a program that no run could execute, and names the command by
// its place, the operand and the numbers. Its rules: every slice lies in its allocation; bytes that a command reads
// were written before on every path, and results are written on every path; no command writes a byte through two
// operands, or writes a constant, or a parameter that is not donated; sizes match the shapes; no thread is needed but
// the run's. On GPUs a program of their kernels is a graph of the driver's (cuda.h).
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_PROGRAM_H_
#define PURLIN_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/collective.h"
#include "purlin/dtype.h"
#include "purlin/export.h"
#include "purlin/internal/handle.h"
#include "purlin/kernel.h"
#include "purlin/layout.h"
#include "purlin/shape.h"
#include "purlin/span.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct CommandsRep;
struct ProgramRep;
}  // namespace internal

/// The type of an array that a program takes or returns. A value; nothing is checked before ProgramBuilder::Build.
struct ArraySpec {
  /// A row-major array in the default memory of its device.
  explicit ArraySpec(Shape array_shape) : shape(std::move(array_shape)) {}

  /// Element type and dimensions.
  Shape shape;
  /// The order of the elements in memory; nothing: row-major.
  std::optional<Layout> layout;
  /// The kind of memory, such as "pinned_host"; "": the device's default.
  std::string memory_kind;

  /// Such as "f32[2,3] in layout {0,1} in pinned_host".
  [[nodiscard]] PURLIN_API std::string ToString() const;
};

/// The bytes [offset_bytes, offset_bytes + size_bytes) of an allocation.
struct Slice {
  /// The number of the allocation in its program.
  std::uint32_t allocation = 0;
  /// The first byte, from the beginning of the allocation, which is at a multiple of 64 bytes.
  std::size_t offset_bytes = 0;
  /// The length; 0 is allowed.
  std::size_t size_bytes = 0;

  /// `size` bytes of this slice, from byte `offset` of it.
  [[nodiscard]] constexpr Slice Part(std::size_t offset, std::size_t size) const noexcept {
    return {allocation, offset_bytes + offset, size};
  }
};

/// How a command accesses the bytes of an operand.
enum class OperandAccess : std::uint8_t {
  /// Reads the bytes.
  kRead = 0,
  /// Writes all of the bytes, and reads none.
  kWrite = 1,
  /// Reads the bytes, and may write some of them.
  kReadWrite = 2,
};

/// A slice that a kernel accesses.
struct Operand {
  /// The bytes.
  Slice slice;
  /// How they are accessed.
  OperandAccess access = OperandAccess::kRead;
  /// For kRead: no operand of the same command writes any of these bytes. Otherwise another one may overwrite them, as
  /// in a computation in place.
  bool is_invariant = false;

  /// Bytes that are read, and that a native kernel may overwrite by another operand.
  static constexpr Operand Read(Slice slice) noexcept { return {slice, OperandAccess::kRead, false}; }
  /// Bytes that are read, and that the same command does not write.
  static constexpr Operand Invariant(Slice slice) noexcept { return {slice, OperandAccess::kRead, true}; }
  /// Bytes that the command writes, all of them.
  static constexpr Operand Write(Slice slice) noexcept { return {slice, OperandAccess::kWrite, false}; }
  /// Bytes that are read and written.
  static constexpr Operand ReadWrite(Slice slice) noexcept { return {slice, OperandAccess::kReadWrite, false}; }
};

/// An array that a member of a collective gives, and the array that it gets.
struct CollectiveArray {
  /// The bytes that are given.
  Slice from;
  /// The bytes that are written.
  Slice to;
  /// The type of the elements of both.
  DType dtype = DType::kInvalid;
};

static_assert(sizeof(Slice) == 24 && offsetof(Slice, offset_bytes) == 8 && offsetof(Slice, size_bytes) == 16,
              "Slice ABI");
static_assert(sizeof(Operand) == 32 && offsetof(Operand, access) == 24 && offsetof(Operand, is_invariant) == 25,
              "Operand ABI");
static_assert(sizeof(CollectiveArray) == 56 && offsetof(CollectiveArray, to) == 24 &&
                  offsetof(CollectiveArray, dtype) == 48,
              "CollectiveArray ABI");

class Sequence;

namespace internal {
// What CommandVerbs calls, out of line.
PURLIN_API void AddKernel(CommandsRep* commands, const Kernel& kernel, KernelDim3 workgroups,
                          Span<const Operand> operands) noexcept;
PURLIN_API void AddCopy(CommandsRep* commands, Slice from, Slice to) noexcept;
PURLIN_API void AddFill(CommandsRep* commands, std::string_view pattern, Slice to) noexcept;
PURLIN_API void AddCall(CommandsRep* commands, Sequence body) noexcept;
PURLIN_API void AddWhile(CommandsRep* commands, Sequence condition, Slice predicate, Sequence body) noexcept;
PURLIN_API void AddRepeat(CommandsRep* commands, std::uint64_t trip_count, Sequence body) noexcept;
PURLIN_API void AddConditional(CommandsRep* commands, Slice predicate, Sequence when_true,
                               Sequence when_false) noexcept;
PURLIN_API void AddSwitch(CommandsRep* commands, Slice index, std::vector<Sequence> branches) noexcept;
PURLIN_API void AddCollective(CommandsRep* commands, const Collective& collective,
                              Span<const CollectiveArray> arrays) noexcept;
PURLIN_API void AddReplicaId(CommandsRep* commands, Slice to) noexcept;
PURLIN_API void AddPartitionId(CommandsRep* commands, Slice to) noexcept;
}  // namespace internal

/// Commands, executed one after the other: what ProgramBuilder and Sequence have in common. Each function adds a
/// command after those that were added before, and returns this. An empty kernel or sequence makes Build fail with
/// kFailedPrecondition.
template <typename Self>  // The constructors are as Handle's. NOLINTNEXTLINE(bugprone-crtp-constructor-accessibility)
class CommandVerbs : public internal::Handle<Self, internal::CommandsRep> {
 public:
  /// Calls `kernel` once for each workgroup of the grid, with `operands` in this order: XLA's kernels take arguments
  /// before results. If a dimension of the grid is 0, it is not called.
  Self& AddKernel(const Kernel& kernel, Span<const Operand> operands, KernelDim3 workgroups = {}) noexcept {
    internal::AddKernel(this->rep_, kernel, workgroups, operands);
    return self();
  }
  /// Copies bytes. Both slices have one length, and may overlap.
  Self& AddCopy(Slice from, Slice to) noexcept {
    internal::AddCopy(this->rep_, from, to);
    return self();
  }
  /// Writes `pattern`, one byte or more, repeatedly. The length of `to` is a multiple of the pattern's.
  Self& AddFill(std::string_view pattern, Slice to) noexcept {
    internal::AddFill(this->rep_, pattern, to);
    return self();
  }
  /// Executes `body`.
  Self& AddCall(Sequence body) noexcept;
  /// A loop. Each iteration executes `condition`, which writes the one byte of `predicate`, and then `body` if that
  /// byte is not 0. The loop ends when it is 0.
  Self& AddWhile(Sequence condition, Slice predicate, Sequence body) noexcept;
  /// A loop whose trip count is known.
  Self& AddRepeat(std::uint64_t trip_count, Sequence body) noexcept;
  /// Executes `when_true` if the one byte of `predicate` is not 0, else `when_false`.
  Self& AddConditional(Slice predicate, Sequence when_true, Sequence when_false) noexcept;
  /// Executes the branch whose number is the int32 in `index`; the last one if there is no such branch.
  Self& AddSwitch(Slice index, std::vector<Sequence> branches) noexcept;
  /// Exchanges arrays with the other members of a group, and waits for them: collective.h.
  Self& AddCollective(const Collective& collective, Span<const CollectiveArray> arrays) noexcept {
    internal::AddCollective(this->rep_, collective, arrays);
    return self();
  }
  /// Writes the number of the replica that executes the command, as a uint32.
  Self& AddReplicaId(Slice to) noexcept {
    internal::AddReplicaId(this->rep_, to);
    return self();
  }
  /// Writes the number of the partition that executes the command, as a uint32.
  Self& AddPartitionId(Slice to) noexcept {
    internal::AddPartitionId(this->rep_, to);
    return self();
  }

 protected:
  using internal::Handle<Self, internal::CommandsRep>::Handle;

 private:
  Self& self() noexcept { return static_cast<Self&>(*this); }
};

/// Commands that a command contains: the body of a loop, a branch. Move-only, one word; one writer. Nested at most 64
/// deep, the program's own commands included.
class Sequence final : public CommandVerbs<Sequence> {
 public:
  /// No commands.
  PURLIN_API Sequence() noexcept;
  /// Leaves `other` empty, see purlin.h.
  Sequence(Sequence&& other) noexcept = default;
  /// As if destroying what was here.
  Sequence& operator=(Sequence&& other) noexcept = default;
  PURLIN_API ~Sequence();

  /// For Purlin's own files: gives the commands up.
  internal::CommandsRep* ReleaseRep() && noexcept { return std::exchange(rep_, nullptr); }

 private:
  using CommandVerbs::CommandVerbs;
};

/// The output of a compiler for one computation, validated and immutable. One word; copies share it. Any thread.
class Program final : public internal::Handle<Program, const internal::ProgramRep> {
 public:
  /// Shares the program.
  PURLIN_API Program(const Program& other) noexcept;
  /// Leaves `other` empty, see purlin.h.
  Program(Program&& other) noexcept = default;
  /// See the constructors.
  Program& operator=(const Program& other) noexcept = default;
  /// See the constructors.
  Program& operator=(Program&& other) noexcept = default;
  PURLIN_API ~Program();

  /// The name, which errors and traces show.
  [[nodiscard]] PURLIN_API std::string name() const;
  /// The types of the arguments, in their order. Tuples of a compiler are flattened.
  [[nodiscard]] PURLIN_API std::vector<ArraySpec> parameters() const;
  /// The types of the outputs, in their order.
  [[nodiscard]] PURLIN_API std::vector<ArraySpec> results() const;

 private:
  using Handle::Handle;
};

/// Collects the parts of a program. Move-only, one word; one writer. Each function that adds memory returns the slice
/// of all its bytes; an unsound shape or layout makes Build fail, and the slice is of no allocation.
class ProgramBuilder final : public CommandVerbs<ProgramBuilder> {
 public:
  /// A program of that name, with neither memory nor commands. Bytes that are not UTF-8 are replaced.
  PURLIN_API explicit ProgramBuilder(std::string_view name) noexcept;
  /// Leaves `other` empty, see purlin.h.
  ProgramBuilder(ProgramBuilder&& other) noexcept = default;
  /// As if destroying what was here.
  ProgramBuilder& operator=(ProgramBuilder&& other) noexcept = default;
  PURLIN_API ~ProgramBuilder();

  /// Adds a parameter: an argument of a run, which no command writes.
  PURLIN_API Slice AddParameter(const ArraySpec& spec) noexcept;
  /// Adds a result. Its bytes are unspecified when a run begins.
  PURLIN_API Slice AddResult(const ArraySpec& spec) noexcept;
  /// Adds a parameter and a result that share memory. The argument is donated to the run, unless that is told
  /// otherwise. Bytes that no command writes have the argument's values in the result.
  PURLIN_API Slice AddDonatedParameter(const ArraySpec& spec) noexcept;
  /// Adds a constant: a copy of `bytes`, the same in all runs.
  PURLIN_API Slice AddConstant(std::string_view bytes) noexcept;
  /// See above: the bytes of `elements`.
  template <typename T>
  Slice AddConstant(Span<const T> elements) noexcept {
    static_assert(std::is_trivially_copyable_v<T>, "elements are bytes");
    return AddConstant({reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)});
  }
  /// Adds a temporary: memory that lasts as long as a run. Its bytes are unspecified when the run begins.
  PURLIN_API Slice AddTemporary(std::size_t size_bytes) noexcept;

  /// Validates the parts, and gives the program; the builder is empty then. kInvalidArgument: a part that no run could
  /// execute, as the header says. Never blocks.
  [[nodiscard]] PURLIN_API StatusOr<Program> Build() &&;

 private:
  using CommandVerbs::CommandVerbs;
};

static_assert(sizeof(Sequence) == sizeof(void*) && sizeof(ProgramBuilder) == sizeof(void*) &&
                  sizeof(Program) == sizeof(void*),
              "handles are one word");

template <typename Self>
Self& CommandVerbs<Self>::AddCall(Sequence body) noexcept {
  internal::AddCall(this->rep_, std::move(body));
  return self();
}

template <typename Self>
Self& CommandVerbs<Self>::AddWhile(Sequence condition, Slice predicate, Sequence body) noexcept {
  internal::AddWhile(this->rep_, std::move(condition), predicate, std::move(body));
  return self();
}

template <typename Self>
Self& CommandVerbs<Self>::AddRepeat(std::uint64_t trip_count, Sequence body) noexcept {
  internal::AddRepeat(this->rep_, trip_count, std::move(body));
  return self();
}

template <typename Self>
Self& CommandVerbs<Self>::AddConditional(Slice predicate, Sequence when_true, Sequence when_false) noexcept {
  internal::AddConditional(this->rep_, predicate, std::move(when_true), std::move(when_false));
  return self();
}

template <typename Self>
Self& CommandVerbs<Self>::AddSwitch(Slice index, std::vector<Sequence> branches) noexcept {
  internal::AddSwitch(this->rep_, index, std::move(branches));
  return self();
}

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_PROGRAM_H_
