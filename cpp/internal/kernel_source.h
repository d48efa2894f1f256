// Purlin: sources of kernels on their way to Rust, and what they were compiled to on its way back.
#ifndef PURLIN_CPP_INTERNAL_KERNEL_SOURCE_H_
#define PURLIN_CPP_INTERNAL_KERNEL_SOURCE_H_

#include <string>
#include <vector>

#include "cpp/internal/bytes.h"
#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "purlin-bridge/src/cuda.rs.h"
#include "purlin/cuda.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// A source as Rust reads it, which lives as long as this and the source.
class SourceWords final {
 public:
  explicit SourceWords(const KernelSource& source)
      : options_(ToWords(source.options)), expressions_(ToWords(source.name_expressions)) {
    headers_.reserve(2 * source.headers.size());
    for (const auto& [name, text] : source.headers) {
      headers_.push_back(ToBytes(name));
      headers_.push_back(ToBytes(text));
    }
    raw_ = {ToBytes(source.name), ToBytes(source.text), ToBytes(source.target), options_.data(),    options_.size(),
            headers_.data(),      headers_.size(),      expressions_.data(),    expressions_.size()};
  }
  SourceWords(const SourceWords&) = delete;
  SourceWords& operator=(const SourceWords&) = delete;

  const RawKernelSource& raw() const noexcept { return raw_; }

 private:
  static std::vector<Bytes> ToWords(const std::vector<std::string>& texts) {
    std::vector<Bytes> all;
    all.reserve(texts.size());
    for (const std::string& text : texts) all.push_back(ToBytes(text));
    return all;
  }

  std::vector<Bytes> options_, headers_, expressions_;
  RawKernelSource raw_;
};

/// A copy of what was compiled, with the names of `expressions`. Releases it.
inline Ptx TakePtx(PtxRep* compiled, const std::vector<std::string>& expressions) {
  Ptx ptx;
  ptx.text = std::string(FromRust(ffi::ptx_text(*compiled)));
  ptx.log = std::string(FromRust(ffi::ptx_log(*compiled)));
  for (const std::string& expression : expressions) {
    ptx.lowered_names.emplace_back(expression,
                                   std::string(FromRust(ffi::ptx_lowered_name(*compiled, ToRust(expression)))));
  }
  ffi::ptx_release(compiled);
  return ptx;
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_KERNEL_SOURCE_H_
