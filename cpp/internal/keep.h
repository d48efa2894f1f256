// Purlin: an owner that Rust keeps.
#ifndef PURLIN_CPP_INTERNAL_KEEP_H_
#define PURLIN_CPP_INTERNAL_KEEP_H_

#include <memory>
#include <utility>

#include "purlin/internal/abi.h"
#include "purlin/internal/callback.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// A callback that owns `owner`, and is destroyed uncalled. Not by MakeCallback, which takes blocks of the thread:
/// `thread_state` is defined by programs alone, because prelinked objects would define it a second time.
inline Callback Keep(std::shared_ptr<const void> owner) {
  using Owner = std::shared_ptr<const void>;
  return {new Owner(std::move(owner)), [](void* data, bool /*run*/, const StatusRep* /*error*/,
                                          const void* /*value*/) noexcept { delete static_cast<Owner*>(data); }};
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_KEEP_H_
