#include "purlin/cuda.h"

#include "cpp/internal/kernel_source.h"

namespace purlin {
inline namespace v0 {

Status CudaAvailability() { return Status::FromRep(ffi::cuda_availability()); }

StatusOr<Ptx> CompileKernelSource(const KernelSource& source) {
  const internal::SourceWords words(source);
  const internal::StatusRep* error = nullptr;
  internal::PtxRep* compiled = internal::purlin_cuda_compile(&words.raw(), &error);
  if (error != nullptr) return Status::FromRep(error);
  return internal::TakePtx(compiled, source.name_expressions);
}

}  // namespace v0
}  // namespace purlin
