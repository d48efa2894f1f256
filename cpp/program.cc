#include "purlin/program.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cpp/internal/bytes.h"
#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "cpp/internal/shape.h"
#include "purlin-bridge/src/program.rs.h"

namespace purlin {
inline namespace v0 {
namespace {

using internal::CommandsRep;

/// The numbers by which Rust knows what an array is to a program.
enum Role : std::uint8_t { kParameter = 0, kResult = 1, kDonated = 2 };

/// Of no allocation.
constexpr Slice kNowhere{UINT32_MAX, 0, 0};

Slice AddArray(CommandsRep* commands, Role role, const ArraySpec& spec) noexcept {
  if (commands == nullptr) return kNowhere;

  const internal::OptionalLayout layout(spec.layout.has_value() ? &*spec.layout : nullptr);
  const internal::RawArraySpec raw = {internal::ToRust(spec.shape), layout.get(), internal::ToBytes(spec.memory_kind)};
  return internal::purlin_commands_add_array(commands, role, &raw);
}

/// Whether there is something to add to, and all of `sequences` have commands. If one has not, the program fails.
template <typename... Sequences>
bool IsThere(CommandsRep* commands, const Sequences&... sequences) noexcept {
  if (commands == nullptr) return false;
  if (((sequences.rep() != nullptr) && ...)) return true;
  internal::purlin_commands_fail(commands, internal::Gone("Sequence").ReleaseRep());
  return false;
}

ArraySpec FromRust(const ffi::ArraySpecParts& parts) {
  const Span<const std::int64_t> dims(parts.dims.data(), parts.dims.size());
  static_assert(sizeof(bool) == 1, "Rust gives 0 or 1");
  const Span<const bool> dynamic(reinterpret_cast<const bool*>(parts.dynamic.data()), parts.dynamic.size());
  const auto dtype = static_cast<DType>(parts.dtype);
  ArraySpec spec(dynamic.empty() ? Shape(dtype, dims) : Shape(dtype, dims, dynamic));
  if (parts.has_layout) spec.layout.emplace(Span<const std::int64_t>(parts.minor_to_major.data(), parts.dims.size()));
  spec.memory_kind = std::string(parts.memory_kind);
  return spec;
}

std::vector<ArraySpec> Specs(const internal::ProgramRep* program, bool are_results) {
  std::vector<ArraySpec> specs;
  if (program == nullptr) return specs;
  for (const ffi::ArraySpecParts& parts : ffi::program_specs(*program, are_results)) specs.push_back(FromRust(parts));
  return specs;
}

}  // namespace

namespace internal {

void AddKernel(CommandsRep* commands, const Kernel& kernel, KernelDim3 workgroups,
               Span<const Operand> operands) noexcept {
  if (commands == nullptr) return;
  if (kernel.rep() == nullptr) return purlin_commands_fail(commands, Gone("Kernel").ReleaseRep());
  purlin_commands_add_kernel(commands, kernel.rep(), &workgroups.x, operands.data(), operands.size());
}

void AddCopy(CommandsRep* commands, Slice from, Slice to) noexcept {
  if (commands != nullptr) purlin_commands_add_copy(commands, from, to);
}

void AddFill(CommandsRep* commands, std::string_view pattern, Slice to) noexcept {
  if (commands != nullptr) purlin_commands_add_fill(commands, ToBytes(pattern), to);
}

void AddCall(CommandsRep* commands, Sequence body) noexcept {
  if (IsThere(commands, body)) purlin_commands_add_call(commands, std::move(body).ReleaseRep());
}

void AddWhile(CommandsRep* commands, Sequence condition, Slice predicate, Sequence body) noexcept {
  if (!IsThere(commands, condition, body)) return;
  purlin_commands_add_while(commands, std::move(condition).ReleaseRep(), predicate, std::move(body).ReleaseRep());
}

void AddRepeat(CommandsRep* commands, std::uint64_t trip_count, Sequence body) noexcept {
  if (IsThere(commands, body)) purlin_commands_add_repeat(commands, trip_count, std::move(body).ReleaseRep());
}

void AddConditional(CommandsRep* commands, Slice predicate, Sequence when_true, Sequence when_false) noexcept {
  if (!IsThere(commands, when_true, when_false)) return;
  CommandsRep* const branches[] = {std::move(when_true).ReleaseRep(), std::move(when_false).ReleaseRep()};
  purlin_commands_add_conditional(commands, false, predicate, branches, 2);
}

void AddSwitch(CommandsRep* commands, Slice index, std::vector<Sequence> branches) noexcept {
  std::vector<CommandsRep*> reps;
  for (const Sequence& branch : branches) {
    if (!IsThere(commands, branch)) return;
  }
  reps.reserve(branches.size());
  for (Sequence& branch : branches) reps.push_back(std::move(branch).ReleaseRep());
  if (commands != nullptr) purlin_commands_add_conditional(commands, true, index, reps.data(), reps.size());
}

void AddCollective(CommandsRep* commands, const Collective& collective, Span<const CollectiveArray> arrays) noexcept {
  if (commands == nullptr) return;
  std::vector<std::uint32_t> members, pairs;
  std::vector<std::size_t> sizes;
  for (const std::vector<std::uint32_t>& group : collective.groups) {
    members.insert(members.end(), group.begin(), group.end());
    sizes.push_back(group.size());
  }
  for (const auto& [from, to] : collective.pairs) pairs.insert(pairs.end(), {from, to});
  const RawCollective raw = {static_cast<std::uint8_t>(collective.kind),
                             static_cast<std::uint8_t>(collective.reduction),
                             static_cast<std::uint8_t>(collective.mode),
                             members.data(),
                             sizes.data(),
                             sizes.size(),
                             pairs.data(),
                             collective.pairs.size()};
  purlin_commands_add_collective(commands, &raw, arrays.data(), arrays.size());
}

void AddReplicaId(CommandsRep* commands, Slice to) noexcept {
  if (commands != nullptr) purlin_commands_add_id(commands, false, to);
}

void AddPartitionId(CommandsRep* commands, Slice to) noexcept {
  if (commands != nullptr) purlin_commands_add_id(commands, true, to);
}

}  // namespace internal

std::string ArraySpec::ToString() const {
  std::string text = shape.ToString();
  if (layout.has_value() && *layout != Layout::RowMajor(layout->rank())) text += " in layout " + layout->ToString();
  if (!memory_kind.empty()) text += " in " + memory_kind;
  return text;
}

Sequence::Sequence() noexcept : CommandVerbs(internal::purlin_commands_new({})) {}

Sequence::~Sequence() { internal::GiveUp<internal::purlin_commands_release>(rep_); }

Program::Program(const Program& other) noexcept : Handle(internal::Shared<ffi::program_retain>(other.rep_)) {}

Program::~Program() { internal::GiveUp<ffi::program_release>(rep_); }

std::string Program::name() const {
  return rep_ == nullptr ? std::string() : std::string(internal::FromRust(ffi::program_name(*rep_)));
}

std::vector<ArraySpec> Program::parameters() const { return Specs(rep_, false); }

std::vector<ArraySpec> Program::results() const { return Specs(rep_, true); }

ProgramBuilder::ProgramBuilder(std::string_view name) noexcept
    : CommandVerbs(internal::purlin_commands_new(internal::ToBytes(name))) {}

ProgramBuilder::~ProgramBuilder() { internal::GiveUp<internal::purlin_commands_release>(rep_); }

Slice ProgramBuilder::AddParameter(const ArraySpec& spec) noexcept { return AddArray(rep_, kParameter, spec); }

Slice ProgramBuilder::AddResult(const ArraySpec& spec) noexcept { return AddArray(rep_, kResult, spec); }

Slice ProgramBuilder::AddDonatedParameter(const ArraySpec& spec) noexcept { return AddArray(rep_, kDonated, spec); }

Slice ProgramBuilder::AddConstant(std::string_view bytes) noexcept {
  if (rep_ == nullptr) return kNowhere;
  return internal::purlin_commands_add_constant(rep_, internal::ToBytes(bytes));
}

Slice ProgramBuilder::AddTemporary(std::size_t size_bytes) noexcept {
  if (rep_ == nullptr) return kNowhere;
  return internal::purlin_commands_add_temporary(rep_, size_bytes);
}

StatusOr<Program> ProgramBuilder::Build() && {
  if (rep_ == nullptr) return internal::Gone("ProgramBuilder");

  const internal::StatusRep* error = nullptr;
  const internal::ProgramRep* rep = internal::purlin_commands_build(std::exchange(rep_, nullptr), &error);
  return internal::ToStatusOr<Program>(rep, error);
}

}  // namespace v0
}  // namespace purlin
