// Purlin: options of an allocation.
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

/// What an allocation does when its space has no room.
enum class OomPolicy : std::int32_t {
  /// Fail at once, after freed memory that was kept for later allocations has been given back.
  kFail = 0,
  /// Call the client's hook (ClientOptions::on_out_of_memory), which may free memory, and try again as long as it
  /// returns true, 1000 times at most; then fail. The hook is not called if no freed memory could make room, because
  /// the space's limit is smaller than the allocation; nor for allocations of the hook itself. Without a hook, as
  /// kFail.
  kRetry = 1,
  /// Succeed with memory that is not there yet. It is provided when enough has been freed, in the order of the calls.
  /// Fails at once if no memory is in use that could be freed, or if the space could never hold so much.
  kWait = 2,
};

/// Options of an allocation.
struct AllocOptions {
  /// For versioning: leave it alone.
  std::size_t struct_size = sizeof(AllocOptions);
  /// What the memory is for, as reports show it.
  Label label;
  /// The memory begins at a multiple of this power of two, at most 1 GiB; 0: the alignment of the space
  /// (MemorySpace::alignment_bytes).
  std::size_t alignment_bytes = 0;
  /// The allocation begins after this event. If the event fails, the memory fails with its error.
  Event after;
  /// What to do when there is no room.
  OomPolicy oom = OomPolicy::kFail;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ALLOC_OPTIONS_H_
