// Purlin: names for kernels that are in this process.
//
// ```cpp
// #include "purlin/client.h"
// #include "purlin/loaded_kernel.h"
//
// // Makes the first number of its second argument twice that of its first (kernel.h).
// void* Twice(const purlin::KernelFrame* frame) {
//   *static_cast<float*>(frame->args[1].data) = 2 * *static_cast<const float*>(frame->args[0].data);
//   return nullptr;
// }
//
// purlin::StatusOr<purlin::LoadedKernel> LoadTwice(const purlin::Device& device, const purlin::Client& client) {
//   static const purlin::Status registered = purlin::RegisterKernelFunction("my_library.twice", "host", &Twice);
//   if (!registered.ok()) return registered;
//   const purlin::StatusOr<purlin::KernelLoaderSpec> spec =
//       purlin::FindKernelSymbol("my_library.twice", client.platform_name(), 2);
//   if (!spec.ok()) return spec.status();
//   return purlin::LoadedKernel::Load(device, *spec);
// }
// ```
//
// The part of a program that launches a kernel need not know the one that has it: a name and a platform are enough.
// Names are those of the process, in Rust `SymbolRegistry::global()`, and are never replaced or removed. Any thread may
// call every function.
#ifndef PURLIN_KERNEL_SYMBOL_H_
#define PURLIN_KERNEL_SYMBOL_H_

#include <cstdint>
#include <string_view>

#include "purlin/export.h"
#include "purlin/kernel.h"
#include "purlin/kernel_loader_spec.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// Gives the kernel at `address` a name for one platform (Client::platform_name). kAlreadyExists: it has one there, and
/// keeps it. kInvalidArgument: a name or platform that is empty or not UTF-8; the address is null.
///
/// The caller promises, for the rest of the process: it is a kernel of that platform, as KernelLoaderSpec::address
/// says, and any thread may launch it.
PURLIN_API Status RegisterKernelSymbol(std::string_view persistent_name, std::string_view platform, void* address);

/// The same of a function of the host, for a platform whose kernels are such (`host`, `sim`). The caller also promises
/// what Kernel::Native (kernel.h) asks for.
inline Status RegisterKernelFunction(std::string_view persistent_name, std::string_view platform,
                                     KernelFunction function) {
  return RegisterKernelSymbol(persistent_name, platform, reinterpret_cast<void*>(function));
}

/// A description of the kernel with that name for a platform, which takes `arity` arguments. kNotFound: there is none;
/// the message names the platforms that have one. kInvalidArgument: text that is not UTF-8.
[[nodiscard]] PURLIN_API StatusOr<KernelLoaderSpec> FindKernelSymbol(std::string_view persistent_name,
                                                                     std::string_view platform, std::uint32_t arity);

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_KERNEL_SYMBOL_H_
