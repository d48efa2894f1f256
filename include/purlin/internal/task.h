// Purlin: C++ closures as task nodes. Not for users; see executor.h.
#ifndef PURLIN_INTERNAL_TASK_H_
#define PURLIN_INTERNAL_TASK_H_

#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "purlin/internal/abi.h"
#include "purlin/internal/guard.h"
#include "purlin/label.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

struct ThreadPoolRep;

/// A closure that lives in the node itself. The node never moves, so neither does the closure.
template <typename F>
struct InlineTask {
  static void Invoke(TaskNode* self, TaskOp op) noexcept {
    F* closure = std::launder(reinterpret_cast<F*>(self->storage));
    if (op == TaskOp::kRun) Guarded(self->label, [&] { (*closure)(); });
    closure->~F();
    TaskFree(self);
  }
};

/// A closure that is too large for the node, which holds its address.
template <typename F>
struct HeapTask {
  static void Invoke(TaskNode* self, TaskOp op) noexcept {
    F* closure = nullptr;
    std::memcpy(&closure, self->storage, sizeof(closure));
    if (op == TaskOp::kRun) Guarded(self->label, [&] { (*closure)(); });
    delete closure;
    TaskFree(self);
  }
};

/// A node that owns a copy of `closure` (or what was moved out of it).
template <typename F>
TaskNode* MakeTask(F&& closure, Label label) {
  using Closure = std::decay_t<F>;
  constexpr bool kInline = sizeof(Closure) <= TaskNode::kInlineBytes && alignof(Closure) <= 8 &&
                           std::is_nothrow_constructible_v<Closure, F&&>;
  if constexpr (kInline) {
    TaskNode* node = TaskAllocate();
    node->label = label.c_str();
    node->invoke = &InlineTask<Closure>::Invoke;
    ::new (static_cast<void*>(node->storage)) Closure(std::forward<F>(closure));
    return node;
  } else {
    auto* owned = new Closure(std::forward<F>(closure));
    TaskNode* node = TaskAllocate();
    node->label = label.c_str();
    node->invoke = &HeapTask<Closure>::Invoke;
    std::memcpy(node->storage, &owned, sizeof(owned));
    return node;
  }
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_TASK_H_
