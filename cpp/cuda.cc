#include "purlin/cuda.h"

#include <string>
#include <utility>
#include <vector>

#include "cpp/internal/bytes.h"
#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
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
