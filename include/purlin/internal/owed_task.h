// Purlin: tasks that must complete a result. Not for users.
//
// A task may be dropped: by an executor that has shut down, at once or much later, on any thread. The result then
// fails, so that no wait lasts for ever. If Execute returns an error, the result gets it. The closure is destroyed
// before Execute returns, so its destructor leaves the result in a list of this thread's submissions instead.
#ifndef PURLIN_INTERNAL_OWED_TASK_H_
#define PURLIN_INTERNAL_OWED_TASK_H_

#include <string>
#include <type_traits>
#include <utility>

#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/async_value.h"
#include "purlin/internal/cell.h"
#include "purlin/label.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// A call of Execute that has not returned.
struct Submission {
  const EventHeader* result;
  bool dropped;
  Submission* outer;
};
inline thread_local Submission* innermost_submission = nullptr;

/// The error of a result whose task is gone.
inline Status DroppedTaskError(const EventHeader* result) {
  return CancelledError("the executor dropped the task that owed event '" + std::string(LabelOf(result).c_str()) + "'",
                        PlaceOf(result));
}

/// A reference to a result that must complete: if it is destroyed first, the result fails.
class OwedResult final {
 public:
  explicit OwedResult(Event result) noexcept : result_(std::move(result)) {}
  OwedResult(const OwedResult&) = delete;
  OwedResult& operator=(const OwedResult&) = delete;
  OwedResult(OwedResult&& other) noexcept = default;
  OwedResult& operator=(OwedResult&&) = delete;
  ~OwedResult() {
    EventHeader* result = result_.header();
    if (result == nullptr || IsTerminal(result)) return;
    for (Submission* submission = innermost_submission; submission != nullptr; submission = submission->outer) {
      if (submission->result == result) {
        submission->dropped = true;
        return;
      }
    }
    static_cast<void>(FailValue(result, DroppedTaskError(result)));
  }
  EventHeader* header() const noexcept { return result_.header(); }

 private:
  Event result_;
};

/// Makes `executor` call `body(result)`, which completes `result`. If the executor never does, or if moving the body
/// throws, `result` fails.
template <typename Body>
void SubmitOwed(Executor& executor, const Event& result, Body&& body) noexcept {
  EventHeader* header = result.header();
  Submission here{header, false, innermost_submission};
  innermost_submission = &here;
  Status refusal;
  Status thrown = StatusOfThrow("Executor::Execute", header, [&] {
    TaskNode* node = Task([owed = OwedResult(result),
                           body = std::decay_t<Body>(std::forward<Body>(body))]() mutable { body(owed.header()); },
                          LabelOf(header))
                         .Release();
    NoteTask(header, node);
    refusal = executor.Execute(Task::Adopt(node));
  });
  innermost_submission = here.outer;
  if (!here.dropped) return;
  if (refusal.ok()) refusal = thrown.ok() ? DroppedTaskError(header) : std::move(thrown);
  static_cast<void>(FailValue(header, std::move(refusal)));
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_OWED_TASK_H_
