#include "purlin/kernel_symbol.h"

#include <string>

#include "cpp/internal/bytes.h"
#include "cpp/internal/functions.h"

namespace purlin {
inline namespace v0 {

Status RegisterKernelSymbol(std::string_view persistent_name, std::string_view platform, void* address) {
  return Status::FromRep(internal::purlin_kernel_symbol_register(internal::ToBytes(persistent_name),
                                                                 internal::ToBytes(platform), address));
}

StatusOr<KernelLoaderSpec> FindKernelSymbol(std::string_view persistent_name, std::string_view platform,
                                            std::uint32_t arity) {
  const internal::StatusRep* error = nullptr;
  void* address =
      internal::purlin_kernel_symbol_find(internal::ToBytes(persistent_name), internal::ToBytes(platform), &error);
  if (address == nullptr) return Status::FromRep(error);
  return KernelLoaderSpec::Symbol(address, std::string(persistent_name), arity);
}

}  // namespace v0
}  // namespace purlin
