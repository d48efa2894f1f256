// Purlin: C++ closures that are the code of kernels. Not for users.
#ifndef PURLIN_INTERNAL_KERNEL_CALLBACK_H_
#define PURLIN_INTERNAL_KERNEL_CALLBACK_H_

#include <cstddef>

#include "purlin/internal/abi.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
struct KernelCall;
namespace internal {

/// A closure on the heap that is called again and again, by several threads at once, until `destroy`.
struct KernelCallback {
  void* data;
  /// Null, or an error, the caller's.
  const StatusRep* (*call)(void* data, const KernelCall* argument) noexcept;
  void (*destroy)(void* data) noexcept;
};

static_assert(sizeof(KernelCallback) == 24 && offsetof(KernelCallback, data) == 0 &&
                  offsetof(KernelCallback, call) == 8 && offsetof(KernelCallback, destroy) == 16,
              "KernelCallback ABI");

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_KERNEL_CALLBACK_H_
