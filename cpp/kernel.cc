#include "purlin/kernel.h"

#include <cstdint>
#include <string>
#include <utility>

#include "cpp/internal/bytes.h"
#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/handle.h"
#include "cpp/internal/keep.h"
#include "cpp/internal/kernel_loader_spec.h"
#include "purlin-bridge/src/kernel.rs.h"

namespace purlin {
inline namespace v0 {

Kernel Kernel::Native(std::string_view name, KernelFunction function, std::shared_ptr<const void> owner) {
  if (function == nullptr) return Kernel(nullptr);
  if (owner == nullptr) return Kernel(internal::purlin_kernel_native(internal::ToBytes(name), function, nullptr));

  const internal::Callback keeps = internal::Keep(std::move(owner));
  return Kernel(internal::purlin_kernel_native(internal::ToBytes(name), function, &keeps));
}

Kernel Kernel::FromClosureRaw(std::string_view name, internal::KernelCallback closure) {
  return Kernel(internal::purlin_kernel_from_closure(internal::ToBytes(name), &closure));
}

StatusOr<Kernel> Kernel::OfDevice(const KernelLoaderSpec& spec, KernelDim3 block, std::uint32_t shared_memory_bytes) {
  const internal::LoaderSpecWords words(spec);
  const internal::StatusRep* error = nullptr;
  const internal::KernelRep* rep =
      internal::purlin_kernel_of_device(&words.raw(), block.x, block.y, block.z, shared_memory_bytes, &error);
  return internal::ToStatusOr<Kernel>(rep, error);
}

Kernel::Kernel(const Kernel& other) noexcept : Handle(internal::Shared<ffi::kernel_retain>(other.rep_)) {}

Kernel::~Kernel() { internal::GiveUp<ffi::kernel_release>(rep_); }

std::string Kernel::name() const {
  return rep_ == nullptr ? std::string() : std::string(internal::FromRust(ffi::kernel_name(*rep_)));
}

}  // namespace v0
}  // namespace purlin
