// Purlin: an owner that Rust keeps.
#ifndef PURLIN_CPP_INTERNAL_KEEP_H_
#define PURLIN_CPP_INTERNAL_KEEP_H_

#include <memory>
#include <utility>

#include "purlin/internal/callback.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// A callback that owns `owner`, and is destroyed uncalled.
inline Callback Keep(std::shared_ptr<const void> owner) {
  return MakeCallback([kept = std::move(owner)](const StatusRep*, const void*) {});
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_KEEP_H_
