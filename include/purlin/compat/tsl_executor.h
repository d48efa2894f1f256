// Purlin: tsl's executors.
//
// ```cpp
// namespace tsl = purlin::compat::tsl;
//
// class Later final : public tsl::Executor {
//  public:
//   void Execute(Task task) final { tasks_.push_back(std::move(task)); }
//   void RunAll() {
//     for (Task& task : tasks_) std::move(task)();
//   }
//
//  private:
//   std::vector<Task> tasks_;
// };
// ```
//
// An executor of this kind is one of Purlin's, for everything that takes one. It cannot refuse a task by an answer; a
// task that it destroys uncalled fails what it owed, as everywhere.
#ifndef PURLIN_COMPAT_TSL_EXECUTOR_H_
#define PURLIN_COMPAT_TSL_EXECUTOR_H_

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/executor.h"
#include "purlin/internal/call_once.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace compat {
namespace tsl {

// Executor::Execute(Task) is to hide Execute(purlin::Task), to which a closure would convert as well.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverloaded-virtual"

namespace internal {

/// Keeps `Status Execute(purlin::Task)` apart from `void Execute(Task)`, which hides it.
class StatusExecutor : public ::purlin::Executor {
 public:
  /// See purlin::Executor.
  Status Execute(::purlin::Task task) final {
    Take(std::move(task));
    return OkStatus();
  }

 private:
  virtual void Take(::purlin::Task task) = 0;
};

/// A callable that is called once, as `absl::AnyInvocable<void() &&>` is.
class OnceTask final {
 public:
  /// Empty.
  OnceTask() noexcept : OnceTask(nullptr) {}
  /// Empty.
  OnceTask(std::nullptr_t) noexcept : task_(static_cast<void (*)()>(nullptr)) {}  // NOLINT
  /// Takes `task`.
  OnceTask(::purlin::Task task) noexcept : task_(std::move(task)) {}  // NOLINT(google-explicit-constructor)
  /// Takes `f`.
  template <typename F, typename = std::enable_if_t<::purlin::internal::kCallableOnce<std::decay_t<F>> &&
                                                    !std::is_same_v<std::decay_t<F>, OnceTask> &&
                                                    !std::is_same_v<std::decay_t<F>, ::purlin::Task>>>
  OnceTask(F&& f) : task_(std::forward<F>(f)) {}  // NOLINT(google-explicit-constructor)

  /// Calls it and destroys it.
  void operator()() && noexcept { std::move(task_).Run(); }
  /// Whether there is something to call.
  explicit operator bool() const noexcept { return static_cast<bool>(task_); }
  /// As a task of Purlin's.
  ::purlin::Task Release() && noexcept { return std::move(task_); }

 private:
  ::purlin::Task task_;
};

}  // namespace internal

/// Something that runs tasks.
class Executor : public internal::StatusExecutor {
 public:
  /// What it runs.
  using Task = internal::OnceTask;
  /// Takes `task`, to be called once.
  virtual void Execute(Task task) = 0;

 private:
  void Take(::purlin::Task task) final { Execute(Task(std::move(task))); }
};

#pragma GCC diagnostic pop

/// Runs each task at once.
class InlineExecutor final : public Executor {
 public:
  /// One for the process.
  static InlineExecutor& Instance() noexcept {
    static InlineExecutor instance;
    return instance;
  }
  /// Runs `task` here.
  void Execute(Task task) final { std::move(task)(); }
};

}  // namespace tsl
}  // namespace compat
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_COMPAT_TSL_EXECUTOR_H_
