// Purlin: C++ closures as task nodes. Not for users; see executor.h.
#ifndef PURLIN_INTERNAL_TASK_H_
#define PURLIN_INTERNAL_TASK_H_

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "purlin/internal/abi.h"
#include "purlin/internal/call_once.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/guard.h"
#include "purlin/internal/thread_state.h"
#include "purlin/internal/user_context.h"
#include "purlin/label.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

struct ThreadPoolRep;

/// Where the closure is. Of the whole block: a wide node's storage is longer than the field.
inline unsigned char* StorageOf(TaskNode* node) noexcept {
  return reinterpret_cast<unsigned char*>(node) + offsetof(TaskNode, storage);
}

/// A closure that lives in the node itself, which is as long as it must be. The node never moves, so neither does the
/// closure.
template <typename F>
struct InlineTask {
  static constexpr BlockClass kClass = sizeof(F) <= TaskNode::kInlineBytes ? BlockClass::kNode : BlockClass::kWideNode;

  static void Invoke(TaskNode* self, TaskOp op) noexcept {
    F* closure = std::launder(reinterpret_cast<F*>(StorageOf(self)));
    if (op == TaskOp::kRun) Guarded(self->label, [&] { CallOnce(*closure); });
    closure->~F();
    FreeBlock(kClass, self);
  }
};

/// A closure that is too large for the node, which holds its address.
template <typename F>
struct HeapTask {
  static void Invoke(TaskNode* self, TaskOp op) noexcept {
    F* closure = nullptr;
    std::memcpy(&closure, self->storage, sizeof(closure));
    if (op == TaskOp::kRun) Guarded(self->label, [&] { CallOnce(*closure); });
    delete closure;
    FreeBlock(BlockClass::kNode, self);
  }
};

/// A node that owns a copy of `closure` (or what was moved out of it).
template <typename F>
TaskNode* MakeNode(F&& closure, Label label) {
  using Closure = std::decay_t<F>;
  constexpr bool kInline =
      sizeof(Closure) <= TaskNode::kWideBytes && alignof(Closure) <= 8 && std::is_nothrow_constructible_v<Closure, F&&>;
  if constexpr (kInline) {
    auto* node = static_cast<TaskNode*>(AllocateBlock(InlineTask<Closure>::kClass));
    node->label = label.c_str();
    node->invoke = &InlineTask<Closure>::Invoke;
    ::new (static_cast<void*>(StorageOf(node))) Closure(std::forward<F>(closure));
    return node;
  } else {
    auto* owned = new Closure(std::forward<F>(closure));
    auto* node = static_cast<TaskNode*>(AllocateBlock(BlockClass::kNode));
    node->label = label.c_str();
    node->invoke = &HeapTask<Closure>::Invoke;
    std::memcpy(node->storage, &owned, sizeof(owned));
    return node;
  }
}

/// A node that runs `task` in the user context that is current here. It is one function for closures of all types: a
/// second node at run time costs less than compiling all that has to do with a closure twice.
__attribute__((noinline, cold)) inline TaskNode* CarryContext(TaskNode* task) noexcept {
  struct Carried {
    TaskNode* task;
    UserContextRef context;
    static void Invoke(TaskNode* self, TaskOp op) noexcept {
      auto* carried = std::launder(reinterpret_cast<Carried*>(StorageOf(self)));
      if (op == TaskOp::kRun) {
        ContextScope scope(std::move(carried->context));
        carried->task->invoke(carried->task, op);
      } else {
        carried->task->invoke(carried->task, op);
      }
      // Last, as reports know the task by this node while it runs.
      carried->~Carried();
      FreeBlock(BlockClass::kNode, self);
    }
  };
  static_assert(sizeof(Carried) <= TaskNode::kInlineBytes && alignof(Carried) <= 8, "it fits into the node");
  auto* node = static_cast<TaskNode*>(AllocateBlock(BlockClass::kNode));
  node->label = task->label;
  node->invoke = &Carried::Invoke;
  ::new (static_cast<void*>(StorageOf(node))) Carried{task, UserContextRef::Current()};
  return node;
}

/// See MakeNode; the closure will run in the user context that is current here. Null if it is empty.
template <typename F>
TaskNode* MakeTask(F&& closure, Label label) {
  if (IsEmptyCallable(closure)) return nullptr;
  TaskNode* node = MakeNode(std::forward<F>(closure), label);
  return InContext() ? CarryContext(node) : node;
}

/// Runs the node in no user context but the one where its closure was made.
inline void RunTask(TaskNode* node) noexcept {
  if (InContext()) {
    ContextScope none((UserContextRef(nullptr)));
    return node->invoke(node, TaskOp::kRun);
  }
  node->invoke(node, TaskOp::kRun);
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_TASK_H_
