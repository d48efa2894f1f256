// Purlin: descriptions of kernels on their way to Rust.
#ifndef PURLIN_CPP_INTERNAL_KERNEL_LOADER_SPEC_H_
#define PURLIN_CPP_INTERNAL_KERNEL_LOADER_SPEC_H_

#include <cstdint>
#include <vector>

#include "cpp/internal/bytes.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/keep.h"
#include "purlin/internal/callback.h"
#include "purlin/kernel_loader_spec.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// A description as Rust reads it once, which takes the owner over then. It lives as long as this and the description.
class LoaderSpecWords final {
 public:
  explicit LoaderSpecWords(const KernelLoaderSpec& spec) {
    if (spec.packing.has_value()) {
      arguments_.reserve(spec.packing->arguments.size());
      for (const KernelArgPackingSpec& argument : spec.packing->arguments) {
        arguments_.push_back({{reinterpret_cast<const char*>(argument.bytes.data()), argument.bytes.size()},
                              argument.relocations.data(),
                              argument.relocations.size()});
      }
    }
    if (spec.owner != nullptr) keeps_ = Keep(spec.owner);
    raw_ = {static_cast<std::int32_t>(spec.payload),
            ToBytes(spec.code),
            spec.address,
            spec.owner == nullptr ? nullptr : &keeps_,
            ToBytes(spec.kernel_name),
            spec.arity,
            spec.packing.has_value(),
            arguments_.data(),
            arguments_.size()};
  }
  LoaderSpecWords(const LoaderSpecWords&) = delete;
  LoaderSpecWords& operator=(const LoaderSpecWords&) = delete;

  const RawKernelLoaderSpec& raw() const noexcept { return raw_; }

 private:
  std::vector<RawKernelArgument> arguments_;
  Callback keeps_ = {};
  RawKernelLoaderSpec raw_ = {};
};

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_KERNEL_LOADER_SPEC_H_
