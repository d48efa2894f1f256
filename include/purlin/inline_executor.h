// Purlin: an executor without threads.
//
// ```cpp
// purlin::InlineExecutor executor;
// int answer = 0;
// purlin::Status status = executor.Execute(purlin::Task([&answer] { answer = 42; }));  // has run when this returns
// ```
#ifndef PURLIN_INLINE_EXECUTOR_H_
#define PURLIN_INLINE_EXECUTOR_H_

#include "purlin/executor.h"
#include "purlin/export.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// Runs each task at once, on the thread that gives it. Tasks that give further tasks nest at most 32 deep on a thread;
/// beyond that they queue and run, in order, when the outermost one returns. So a chain of a million tasks needs no
/// more stack than one of ten. Holds nothing; any thread.
class PURLIN_API InlineExecutor final : public Executor {
 public:
  /// Runs `task` here. kInvalidArgument: it is empty.
  PURLIN_API Status Execute(Task task) override;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INLINE_EXECUTOR_H_
