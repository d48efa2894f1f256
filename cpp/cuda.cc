#include "purlin/cuda.h"

#include <cstdint>

#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/kernel_source.h"
#include "purlin-bridge/src/cuda.rs.h"

namespace purlin {
inline namespace v0 {

Status CudaAvailability() { return Status::FromRep(ffi::cuda_availability()); }

Event EventOfCudaStream(const Device& device, std::uintptr_t stream, SourceLocation location) {
  if (device.rep() == nullptr) return internal::GoneEvent("Device");
  return Event::Adopt(ffi::cuda_event_of_stream(*device.rep(), stream, location));
}

Event EventOfCudaEvent(const Device& device, std::uintptr_t event, SourceLocation location) {
  if (device.rep() == nullptr) return internal::GoneEvent("Device");
  return Event::Adopt(ffi::cuda_event_of_event(*device.rep(), event, location));
}

Status HaveCudaStreamWait(const Device& device, std::uintptr_t stream, const Event& event) {
  if (device.rep() == nullptr) return internal::Gone("Device");
  return Status::FromRep(
      ffi::cuda_have_stream_wait(*device.rep(), stream, internal::ToRust(Span<const Event>(&event, 1))));
}

StatusOr<std::uintptr_t> CudaComputeStream(const Device& device, std::uint8_t number) {
  if (device.rep() == nullptr) return internal::Gone("Device");
  const internal::StatusRep* error = nullptr;
  const std::uintptr_t stream = ffi::cuda_compute_stream(*device.rep(), number, error);
  if (error != nullptr) return Status::FromRep(error);
  return stream;
}

StatusOr<Ptx> CompileKernelSource(const KernelSource& source) {
  const internal::SourceWords words(source);
  const internal::StatusRep* error = nullptr;
  internal::PtxRep* compiled = internal::purlin_cuda_compile(&words.raw(), &error);
  if (error != nullptr) return Status::FromRep(error);
  return internal::TakePtx(compiled, source.name_expressions);
}

}  // namespace v0
}  // namespace purlin
