#include "purlin/executable.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "purlin-bridge/src/executable.rs.h"
#include "purlin/xla_ffi_host.h"

namespace purlin {
inline namespace v0 {
namespace {

internal::RawShard ToRust(Span<const Buffer> arguments) noexcept {
  return {internal::Words<internal::BufferRep>(arguments), arguments.size()};
}

bool IsGone(const ExecuteContext* context) noexcept { return context != nullptr && context->rep() == nullptr; }

/// Borrows from `options`. Rust knows the first version's size, so that no field of that one needs a look at
/// struct_size before it is read.
internal::RawExecuteOptions ToRust(const ExecuteOptions& options) noexcept {
  static_assert(sizeof(ExecuteOptions) == 88, "a field was added: read it only if struct_size reaches past it");
  return {options.struct_size,
          options.label.c_str(),
          options.non_donatable_input_indices.data(),
          options.non_donatable_input_indices.size(),
          internal::Words<internal::BufferRep>(options.results),
          options.results.size(),
          internal::ToRust(options.dependencies),
          options.dependencies.size(),
          options.execution_stream_id,
          options.launch_id,
          options.caller_waits,
          options.context == nullptr ? nullptr : options.context->rep()};
}

}  // namespace

Executable::Executable(const Program& program) noexcept
    : Handle(program.rep() == nullptr ? nullptr : ffi::executable_new(*program.rep())) {}

Executable::Executable(const Executable& other) noexcept
    : Handle(internal::Shared<ffi::executable_retain>(other.rep_)) {}

Executable::~Executable() { internal::GiveUp<ffi::executable_release>(rep_); }

Program Executable::program() const noexcept {
  return Program::Adopt(rep_ == nullptr ? nullptr : ffi::executable_program(*rep_));
}

ProgramSummary Executable::Summary() const {
  ProgramSummary out;
  if (rep_ == nullptr) return out;

  const ffi::ProgramSummary summary = ffi::executable_summary(*rep_);
  for (const ffi::CommandCount& each : summary.command_counts) {
    out.command_counts.emplace_back(std::string(each.kind), each.count);
  }
  out.parameter_bytes = summary.parameter_bytes;
  out.result_bytes = summary.result_bytes;
  out.alias_bytes = summary.alias_bytes;
  out.constant_bytes = summary.constant_bytes;
  out.temporary_bytes = summary.temporary_bytes;
  if (summary.cost_bytes != std::numeric_limits<std::size_t>::max()) out.cost_bytes = summary.cost_bytes;
  out.flops = summary.flops;
  return out;
}

std::string Executable::Describe() const {
  std::string text;
  if (rep_ != nullptr) ffi::executable_describe(*rep_, text);
  return text;
}

Outputs::~Outputs() {
  if (words_.count > 0) internal::purlin_outputs_release(&words_);
}

StatusOr<LoadedExecutable> LoadedExecutable::Load(const Executable& executable, Span<const Device> devices,
                                                  std::size_t partition_count) {
  if (executable.rep() == nullptr) return internal::Gone("Executable");
  if (!internal::AllThere(devices)) return internal::Gone("Device");

  const internal::StatusRep* error = nullptr;
  const internal::LoadedExecutableRep* rep = ffi::loaded_executable_load(
      *executable.rep(), internal::Words<internal::DeviceRep>(devices), devices.size(), partition_count, error);
  return internal::ToStatusOr<LoadedExecutable>(rep, error);
}

LoadedExecutable::LoadedExecutable(const LoadedExecutable& other) noexcept
    : Handle(internal::Shared<ffi::loaded_executable_retain>(other.rep_)) {}

LoadedExecutable::~LoadedExecutable() { internal::GiveUp<ffi::loaded_executable_release>(rep_); }

const internal::StatusRep* LoadedExecutable::ExecuteRaw(Span<const Buffer> arguments, const ExecuteOptions& options,
                                                        SourceLocation location, internal::ExecutionWords* run) const {
  if (rep_ == nullptr) return internal::Gone("LoadedExecutable").ReleaseRep();
  if (!internal::AllThere(arguments)) return internal::Gone("Buffer").ReleaseRep();

  if (IsGone(options.context)) return internal::Gone("ExecuteContext").ReleaseRep();

  const internal::RawShard shard = ToRust(arguments);
  const internal::RawExecuteOptions raw = ToRust(options);
  return internal::purlin_loaded_executable_execute(rep_, &shard, &raw, location, run);
}

const internal::StatusRep* LoadedExecutable::ExecuteShardedRaw(Span<const Span<const Buffer>> arguments,
                                                               const ExecuteOptions& options, SourceLocation location,
                                                               internal::ExecutionWords* runs) const {
  if (rep_ == nullptr) return internal::Gone("LoadedExecutable").ReleaseRep();

  std::vector<internal::RawShard> shards;
  shards.reserve(arguments.size());
  for (const Span<const Buffer>& shard : arguments) {
    if (!internal::AllThere(shard)) return internal::Gone("Buffer").ReleaseRep();
    shards.push_back(ToRust(shard));
  }
  if (IsGone(options.context)) return internal::Gone("ExecuteContext").ReleaseRep();
  const internal::RawExecuteOptions raw = ToRust(options);
  return internal::purlin_loaded_executable_execute_sharded(rep_, shards.data(), shards.size(), &raw, location, runs);
}

Executable LoadedExecutable::executable() const noexcept {
  return Executable::Adopt(rep_ == nullptr ? nullptr : ffi::loaded_executable_executable(*rep_));
}

std::vector<Device> LoadedExecutable::devices() const {
  std::vector<Device> devices;
  const std::size_t count = rep_ == nullptr ? 0 : ffi::loaded_executable_device_count(*rep_);
  devices.reserve(count);
  for (std::size_t i = 0; i < count; ++i) devices.push_back(Device::Adopt(ffi::loaded_executable_device_at(*rep_, i)));
  return devices;
}

std::size_t LoadedExecutable::runs_in_flight() const noexcept {
  return rep_ == nullptr ? 0 : ffi::loaded_executable_runs_in_flight(*rep_);
}

Event LoadedExecutable::idle_event() const noexcept {
  return rep_ == nullptr ? internal::GoneEvent("LoadedExecutable")
                         : Event::Adopt(ffi::loaded_executable_idle_event(*rep_));
}

Status LoadedExecutable::Quiesce() const {
  if (rep_ == nullptr) return internal::Gone("LoadedExecutable");
  return Status::FromRep(ffi::loaded_executable_quiesce(*rep_));
}

}  // namespace v0
}  // namespace purlin
