#include "purlin/xla_cpu.h"

#include "cpp/internal/convert.h"
#include "cpp/internal/gone.h"
#include "purlin-bridge/src/xla_cpu.rs.h"

namespace purlin {
inline namespace v0 {

StatusOr<Executable> LoadXlaCpu(std::string_view bytes, const LoadXlaCpuOptions& options) {
  static_assert(sizeof(LoadXlaCpuOptions) == 24, "a field was added: read it only if struct_size reaches past it");
  const internal::XlaFfiHandlersRep* const handlers = options.handlers == nullptr ? nullptr : options.handlers->rep();
  if (options.handlers != nullptr && handlers == nullptr) return internal::Gone("XlaFfiHandlers");
  const ffi::RawLoadXlaCpuOptions raw = {options.struct_size, options.trust_code, options.unwind_tables,
                                         options.perf_map, handlers};
  const internal::StatusRep* error = nullptr;
  const internal::ExecutableRep* rep = ffi::xla_cpu_load(internal::ToRust(bytes), raw, error);
  return internal::ToStatusOr<Executable>(rep, error);
}

Status CheckXlaCpu(std::string_view bytes) { return Status::FromRep(ffi::xla_cpu_check(internal::ToRust(bytes))); }

}  // namespace v0
}  // namespace purlin
