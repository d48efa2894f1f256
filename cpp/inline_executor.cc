#include "purlin/inline_executor.h"

#include <utility>

#include "cpp/internal/functions.h"

namespace purlin {
inline namespace v0 {

Status InlineExecutor::Execute(Task task) {
  return Status::FromRep(internal::purlin_inline_execute(std::move(task).Release()));
}

}  // namespace v0
}  // namespace purlin
