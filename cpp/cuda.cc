#include "purlin/cuda.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cpp/internal/bytes.h"
#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "purlin-bridge/src/cuda.rs.h"

namespace purlin {
inline namespace v0 {
namespace {

std::vector<internal::Bytes> ToRust(const std::vector<std::string>& texts) {
  std::vector<internal::Bytes> all;
  all.reserve(texts.size());
  for (const std::string& text : texts) all.push_back(internal::ToBytes(text));
  return all;
}

}  // namespace

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
  const std::vector<internal::Bytes> options = ToRust(source.options);
  const std::vector<internal::Bytes> expressions = ToRust(source.name_expressions);
  std::vector<internal::Bytes> headers;
  headers.reserve(2 * source.headers.size());
  for (const auto& [name, text] : source.headers) {
    headers.push_back(internal::ToBytes(name));
    headers.push_back(internal::ToBytes(text));
  }
  const internal::RawKernelSource raw = {internal::ToBytes(source.name),
                                         internal::ToBytes(source.text),
                                         internal::ToBytes(source.target),
                                         options.data(),
                                         options.size(),
                                         headers.data(),
                                         headers.size(),
                                         expressions.data(),
                                         expressions.size()};
  const internal::StatusRep* error = nullptr;
  internal::PtxRep* compiled = internal::purlin_cuda_compile(&raw, &error);
  if (error != nullptr) return Status::FromRep(error);

  Ptx ptx;
  ptx.text = std::string(internal::FromRust(ffi::ptx_text(*compiled)));
  ptx.log = std::string(internal::FromRust(ffi::ptx_log(*compiled)));
  for (const std::string& expression : source.name_expressions) {
    ptx.lowered_names.emplace_back(
        expression, std::string(internal::FromRust(ffi::ptx_lowered_name(*compiled, internal::ToRust(expression)))));
  }
  ffi::ptx_release(compiled);
  return ptx;
}

}  // namespace v0
}  // namespace purlin
