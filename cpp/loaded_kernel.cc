#include "purlin/loaded_kernel.h"

#include <string>

#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "cpp/internal/kernel_loader_spec.h"
#include "purlin-bridge/src/loaded_kernel.rs.h"

namespace purlin {
inline namespace v0 {
namespace {

/// Borrows from `options`. Rust knows the first version's size, so that no field of that one needs a look at
/// struct_size before it is read.
internal::RawLaunchOptions ToRust(const LaunchOptions& options) noexcept {
  static_assert(sizeof(LaunchOptions) == 48, "a field was added: read it only if struct_size reaches past it");
  return {options.struct_size,
          options.label.c_str(),
          internal::ToRust(options.dependencies),
          options.dependencies.size(),
          options.size_bytes,
          options.launch_id,
          options.stream,
          options.caller_waits};
}

}  // namespace

StatusOr<LoadedKernel> LoadedKernel::Load(const Device& device, const KernelLoaderSpec& spec) {
  if (device.rep() == nullptr) return internal::Gone("Device");

  const internal::LoaderSpecWords words(spec);
  const internal::StatusRep* error = nullptr;
  const internal::LoadedKernelRep* rep = internal::purlin_loaded_kernel_load(device.rep(), &words.raw(), &error);
  return internal::ToStatusOr<LoadedKernel>(rep, error);
}

LoadedKernel::LoadedKernel(const LoadedKernel& other) noexcept
    : Handle(internal::Shared<ffi::loaded_kernel_retain>(other.rep_)) {}

LoadedKernel::~LoadedKernel() { internal::GiveUp<ffi::loaded_kernel_release>(rep_); }

StatusOr<KernelLaunch> LoadedKernel::Bind(const LaunchDimensions& dimensions,
                                          Span<const KernelOperand> operands) const {
  if (rep_ == nullptr) return internal::Gone("LoadedKernel");

  const internal::StatusRep* error = nullptr;
  const internal::KernelLaunchRep* rep =
      internal::purlin_loaded_kernel_bind(rep_, &dimensions, operands.data(), operands.size(), &error);
  return internal::ToStatusOr<KernelLaunch>(rep, error);
}

Device LoadedKernel::device() const noexcept {
  return Device::Adopt(rep_ == nullptr ? nullptr : ffi::loaded_kernel_device(*rep_));
}

std::string LoadedKernel::name() const {
  return rep_ == nullptr ? std::string() : std::string(internal::FromRust(ffi::loaded_kernel_name(*rep_)));
}

KernelLaunch::KernelLaunch(const KernelLaunch& other) noexcept
    : Handle(internal::Shared<ffi::kernel_launch_retain>(other.rep_)) {}

KernelLaunch::~KernelLaunch() { internal::GiveUp<ffi::kernel_launch_release>(rep_); }

const internal::StatusRep* KernelLaunch::StartRaw(Span<const RawBuffer> memory, const LaunchOptions& options,
                                                  SourceLocation location, internal::EventHeader** done) const {
  if (rep_ == nullptr) return internal::Gone("KernelLaunch").ReleaseRep();
  if (!internal::AllThere(memory)) return internal::Gone("RawBuffer").ReleaseRep();

  const internal::RawLaunchOptions raw = ToRust(options);
  return internal::purlin_kernel_launch_start(rep_, internal::Words<internal::RawBufferRep>(memory), memory.size(),
                                              &raw, location, done);
}

}  // namespace v0
}  // namespace purlin
