// Purlin: how memory is asked for.
//
// ```cpp
// purlin::AllocOptions options;
// options.label = "activations";
// options.oom = purlin::OomPolicy::kWait;  // RawBuffer::Allocate may return before the memory is there
// ```
#ifndef PURLIN_ALLOC_OPTIONS_H_
#define PURLIN_ALLOC_OPTIONS_H_

#include <cstddef>
#include <cstdint>

#include "purlin/event.h"
#include "purlin/label.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// What to do when a space has no room.
enum class OomPolicy : std::int32_t {
  /// Fail at once. What is only kept for later has been given back before that.
  kFail = 0,
  /// Ask the client's hook (ClientOptions::on_out_of_memory) to free something, and try again for as long as it says
  /// that it may have, 1000 times at most; then fail. Where nothing that is freed could make room, because the space's
  /// limit is smaller than that, the hook is not asked; nor for what the hook itself allocates. Without a hook, as
  /// kFail.
  kRetry = 1,
  /// Answer with memory that is not there yet: it comes when enough has been freed, first come, first served. Fails at
  /// once if nothing is in use that could be freed, or if the space could never hold so much.
  kWait = 2,
};

/// How memory is asked for; the default says nothing.
struct AllocOptions {
  /// For versioning: leave it alone.
  std::size_t struct_size = sizeof(AllocOptions);
  /// What it is for, as reports show it.
  Label label;
  /// It begins at a multiple of this power of two, at most 1 GiB; 0: what the space has anyway
  /// (MemorySpace::alignment_bytes).
  std::size_t alignment_bytes = 0;
  /// It is not asked for before this has happened. If it fails, the memory fails with its error.
  Event after;
  /// When there is no room.
  OomPolicy oom = OomPolicy::kFail;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ALLOC_OPTIONS_H_
