// Purlin: what a function that reads an array from a file has answered.
#ifndef PURLIN_CPP_INTERNAL_READ_RESULT_H_
#define PURLIN_CPP_INTERNAL_READ_RESULT_H_

#include "cpp/internal/functions.h"
#include "purlin/buffer.h"
#include "purlin/status_or.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// The buffer, adopted, or the error.
inline StatusOr<FromHostResult> ToReadResult(const BufferRep* rep, bool is_aliased, const StatusRep* error) {
  if (error != nullptr) return Status::FromRep(error);
  return FromHostResult{Buffer::Adopt(rep), is_aliased ? Aliasing::kAliased : Aliasing::kCopied};
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_READ_RESULT_H_
