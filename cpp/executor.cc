#include "purlin/executor.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/pin.h"
#include "cpp/internal/task_options.h"
#include "purlin-bridge/src/executor.rs.h"

namespace purlin {
inline namespace v0 {
using Pool = ThreadPoolAsyncWorkRunner;

StatusOr<Pool> Pool::Create(const ThreadPoolOptions& options) {
  internal::Pin(__builtin_return_address(0));
  const internal::StatusRep* error = nullptr;
  const internal::ThreadPoolRep* rep =
      ffi::thread_pool_create(options.thread_count, internal::ToRust(options.name), error);
  return internal::ToStatusOr<Pool>(rep, error, [](const internal::ThreadPoolRep* made) { return Pool(made); });
}

Pool::ThreadPoolAsyncWorkRunner(const Pool& other) noexcept : AsyncWorkRunner(other), rep_(other.rep_) {
  if (rep_ != nullptr) ffi::thread_pool_retain(rep_);
}

Pool::ThreadPoolAsyncWorkRunner(Pool&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}

Pool& Pool::operator=(const Pool& other) noexcept {
  Pool copy(other);
  std::swap(rep_, copy.rep_);
  return *this;
}

Pool& Pool::operator=(Pool&& other) noexcept {
  Pool taken(std::move(other));
  std::swap(rep_, taken.rep_);
  return *this;
}

Pool::~ThreadPoolAsyncWorkRunner() {
  if (rep_ != nullptr) ffi::thread_pool_release(rep_);
}

Status Pool::Execute(Task task) {
  if (rep_ == nullptr) return internal::Gone("ThreadPoolAsyncWorkRunner");

  return Status::FromRep(internal::purlin_thread_pool_execute(rep_, std::move(task).Release()));
}

Status Pool::ExecuteWith(Task task, const TaskOptions& options) {
  if (rep_ == nullptr) return internal::Gone("ThreadPoolAsyncWorkRunner");

  const internal::RawTaskOptions raw = internal::ToRust(options);
  return Status::FromRep(internal::purlin_thread_pool_execute_with(rep_, std::move(task).Release(), &raw));
}

Status Pool::ExecuteWhenReady(Span<const Event> events, Task task) {
  if (rep_ == nullptr) return internal::Gone("ThreadPoolAsyncWorkRunner");

  return Status::FromRep(internal::purlin_thread_pool_execute_when_ready(rep_, internal::ToRust(events), events.size(),
                                                                         std::move(task).Release()));
}

Status Pool::ParallelForRanges(std::size_t count, std::size_t grain,
                               bool (*call)(void* data, std::size_t begin, std::size_t end), void* data) {
  if (rep_ == nullptr) return internal::Gone("ThreadPoolAsyncWorkRunner");

  return Status::FromRep(internal::purlin_thread_pool_parallel_for(rep_, count, grain, call, data));
}

std::size_t Pool::NumThreads() const noexcept {
  if (rep_ == nullptr) return 0;
  return ffi::thread_pool_num_threads(*rep_);
}

std::optional<std::size_t> Pool::CurrentThreadId() const noexcept {
  if (rep_ == nullptr) return std::nullopt;

  const std::size_t number = ffi::thread_pool_current_thread(*rep_);
  if (number == std::numeric_limits<std::size_t>::max()) return std::nullopt;
  return number;
}

std::string Pool::Describe() const {
  if (rep_ == nullptr) return "(no pool)";

  std::string text;
  ffi::thread_pool_describe(*rep_, text);
  return text;
}

Status Pool::JoinCalls(bool (*a)(void* data), void* a_data, bool (*b)(void* data), void* b_data) {
  if (rep_ == nullptr) return internal::Gone("ThreadPoolAsyncWorkRunner");

  return Status::FromRep(internal::purlin_thread_pool_join(rep_, a, a_data, b, b_data));
}

Status Pool::Shutdown(const ShutdownOptions& options) {
  if (rep_ == nullptr) return internal::Gone("ThreadPoolAsyncWorkRunner");

  return Status::FromRep(
      ffi::thread_pool_shutdown(*rep_, static_cast<std::uint32_t>(options.mode), options.timeout_ns));
}

}  // namespace v0
}  // namespace purlin
