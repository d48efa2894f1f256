// Purlin: blocks of memory from the calling thread's own lists, without a call. Not for users.
//
// The second implementation of what rust/base/src/slab/mod.rs explains.
#ifndef PURLIN_INTERNAL_THREAD_STATE_H_
#define PURLIN_INTERNAL_THREAD_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "purlin/internal/abi.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// Where this thread's state is; null until it is first needed.
inline thread_local ThreadState* thread_state = nullptr;

inline __attribute__((always_inline)) ThreadState& ThisThread() noexcept {
  ThreadState* state = thread_state;
  if (__builtin_expect(static_cast<long>(state == nullptr), 0L) != 0) {
    state = ThreadStateAddress();
    thread_state = state;
  }
  return *state;
}

/// A block while it is free. It was something else before, and will be. The link is atomic because a stall report that
/// saw a cell pending may still read what was there.
struct __attribute__((may_alias)) FreeBlockHead {
  unsigned char unused[kLinkOffset];
  std::atomic<void*> next;
};
static_assert(offsetof(FreeBlockHead, next) == kLinkOffset, "the link of a free block");
static_assert(std::atomic<void*>::is_always_lock_free && sizeof(std::atomic<void*>) == sizeof(void*), "a bare word");

/// The largest block.
constexpr std::size_t kMostBlockBytes = 128;
/// The class for what is no cell and has so many bytes, at most kMostBlockBytes, aligned as a pointer.
constexpr BlockClass NodeClass(std::size_t bytes) noexcept {
  return bytes <= 64 ? BlockClass::kNode : BlockClass::kWideNode;
}

/// Memory of the class, with unspecified contents; never null.
// Always inline, as what follows: a file with many closures is large, and gcc then stops to inline what is small.
inline __attribute__((always_inline)) void* AllocateBlock(ThreadState& here, BlockClass block_class) noexcept {
  FreeList& list = here.lists[static_cast<std::uint32_t>(block_class)];
  void* block = list.head;
  if (block == nullptr) return AllocateBlockSlowly(block_class);
  list.head = static_cast<FreeBlockHead*>(block)->next.load(std::memory_order_relaxed);
  --list.count;
  return block;
}

inline __attribute__((always_inline)) void* AllocateBlock(BlockClass block_class) noexcept {
  return AllocateBlock(ThisThread(), block_class);
}

/// Gives a block back. A cell's word must be that of a terminal state.
inline __attribute__((always_inline)) void FreeBlock(BlockClass block_class, void* block) noexcept {
  FreeList& list = ThisThread().lists[static_cast<std::uint32_t>(block_class)];
  if (list.count >= list.limit) return FreeBlockSlowly(block_class, block);
  static_cast<FreeBlockHead*>(block)->next.store(list.head, std::memory_order_relaxed);
  list.head = block;
  ++list.count;
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_THREAD_STATE_H_
