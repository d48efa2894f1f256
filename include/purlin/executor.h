// Purlin: executors, which run asynchronous work.
//
// ```cpp
// purlin::ThreadPoolOptions options;
// options.name = "loader";
// purlin::StatusOr<purlin::ThreadPoolAsyncWorkRunner> pool = purlin::ThreadPoolAsyncWorkRunner::Create(options);
// if (!pool.ok()) return pool.status();
// purlin::EventPromise promise("copied");
// const auto use = [](const purlin::Status& copied) { /* in a task, after the event; `copied` has its error */ };
// purlin::Status status = pool->ScheduleWhenReady({promise.event()}, use, "use");
// if (!status.ok()) return status;
// promise.SetReady();
// return pool->Shutdown();  // runs what is queued, then joins the threads
// ```
//
// A task is a move-only closure that is called once or destroyed uncalled, never both and never neither. A runner that
// refuses a task destroys the closure before it returns, so promises inside complete with an error. An empty
// std::function, a null function pointer, or a null pointer to a member is no closure: here, and wherever Purlin takes
// one, the call returns kInvalidArgument or does nothing, as its contract says. An exception that escapes from a task
// is reported and swallowed; the pool goes on. An exception from copying or moving a closure or a value leaves the call
// that copies or moves, or becomes the error of the closure's result (kInternal). A destructor must not throw: that
// ends the process, as everywhere in C++. A task, a waiter or a callback must not end its thread: pthread_exit and a
// cancelled thread end the process, by glibc's "FATAL: exception not rethrown". exit() in a task ends the process as
// everywhere; other tasks run meanwhile.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_EXECUTOR_H_
#define PURLIN_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/event.h"
#include "purlin/export.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/call_once.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/task.h"
#include "purlin/internal/worker_ids.h"
#include "purlin/label.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/task_options.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

namespace internal {

template <typename Value, typename = void>
struct HasAsEvent : std::false_type {};
template <typename Value>
struct HasAsEvent<Value, std::void_t<decltype(std::declval<const Value&>().AsEvent())>> : std::true_type {};

/// The event of a value, or of what it points to.
template <typename Value>
Event EventOf(const Value& value) {
  if constexpr (HasAsEvent<Value>::value) {
    return value.AsEvent();
  } else {
    return value->AsEvent();
  }
}

/// The events of a range of those.
template <typename Values>
std::vector<Event> EventsOf(const Values& values) {
  std::vector<Event> events;
  for (const auto& value : values) events.push_back(EventOf(value));
  return events;
}

}  // namespace internal

/// A closure on its way to a thread. Move-only, one word. Closures of at most 104 bytes with alignment <= 8 cost no
/// heap allocation: their nodes are recycled.
class [[nodiscard]] Task final {
 public:
  /// Wraps `closure`, called as `closure()` once, as an rvalue if it can be. `label` names it in traces and reports. It
  /// runs in the user context that is current here (user_context.h); carrying one takes a second node. An empty
  /// std::function or a null function pointer gives an empty task.
  template <typename F, typename = std::enable_if_t<internal::kCallableOnce<std::decay_t<F>> &&
                                                    !std::is_same_v<std::decay_t<F>, Task>>>
  Task(F&& closure, Label label = Label("task"))  // NOLINT(google-explicit-constructor)
      : node_(internal::MakeTask(std::forward<F>(closure), label)) {}

  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  /// Leaves `other` empty.
  Task(Task&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  /// Destroys the closure that was here, uncalled.
  Task& operator=(Task&& other) noexcept {
    Task taken(std::move(other));
    std::swap(node_, taken.node_);
    return *this;
  }
  /// Destroys the closure, uncalled.
  ~Task() {
    if (node_ != nullptr) node_->invoke(node_, internal::TaskOp::kDrop);
  }

  /// Calls the closure here and destroys it. Nothing if the task is empty.
  void Run() && noexcept {
    if (internal::TaskNode* node = std::exchange(node_, nullptr)) internal::RunTask(node);
  }
  /// As Run(), for code that takes any callable.
  void operator()() && noexcept { std::move(*this).Run(); }
  /// False once moved from or run, or if it was made of an empty closure.
  explicit operator bool() const noexcept { return node_ != nullptr; }

  /// For Purlin's own files: takes a node over; null is empty.
  static Task Adopt(internal::TaskNode* node) noexcept { return Task(node); }
  /// For Purlin's own files: gives up the node.
  internal::TaskNode* Release() && noexcept { return std::exchange(node_, nullptr); }

 private:
  explicit Task(internal::TaskNode* node) noexcept : node_(node) {}
  internal::TaskNode* node_;
};

/// Something that runs tasks: a pool of Purlin, or an implementation of the user's.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Takes `task` to be run once, on a thread that the executor chooses, in general after this returns. Does not block
  /// on other tasks. On an error the task has been destroyed uncalled: kCancelled after shutdown; kInvalidArgument: it
  /// is empty.
  virtual Status Execute(Task task) = 0;
  /// As Execute, unless the task's token is cancelled or its deadline has passed, now or when it would start. Then the
  /// task is destroyed uncalled, so its promises complete with an error, and it is counted (CountDroppedTasks). An
  /// executor that uses the hints overrides this. Errors as Execute; the token's reason; kDeadlineExceeded;
  /// kInvalidArgument: no such Priority. On an error the task has been destroyed uncalled.
  virtual Status ExecuteWith(Task task, const TaskOptions& options) {
    const internal::StatusRep* error = nullptr;
    internal::TaskNode* node = internal::ApplyTaskOptions(std::move(task).Release(), options, &error);
    return node == nullptr ? Status::FromRep(error) : Execute(Task::Adopt(node));
  }

 protected:
  /// For implementations only, as are the next four: an Executor is used by reference.
  Executor() = default;
  /// See the constructor.
  Executor(const Executor&) = default;
  /// See the constructor.
  Executor(Executor&&) = default;
  /// See the constructor.
  Executor& operator=(const Executor&) = default;
  /// See the constructor.
  Executor& operator=(Executor&&) = default;
};

/// How many indices a call of a loop's body is given at most; 0: chosen by the loop.
struct Grain final {
  /// Explicit, so that no other number is taken for one.
  constexpr explicit Grain(std::size_t most) noexcept : size(most) {}
  /// See above.
  std::size_t size;
};

/// An executor that also understands events and loops.
class AsyncWorkRunner : public Executor {
 public:
  /// Execute, with a closure and a label. See Executor::Execute. kInvalidArgument: there is no closure.
  template <typename F>
  Status Schedule(F&& closure, Label label = Label("task")) {
    if (internal::IsEmptyCallable(closure)) return internal::EmptyCallableError("Schedule");
    return Execute(Task(std::forward<F>(closure), label));
  }

  /// Runs the closure after all of `events` are terminal, whether they happened or failed. `closure()` gets no status;
  /// `closure(status)` gets OK or the error of the failed event with the lowest index. Never blocks. If the runner has
  /// shut down by then, the closure is destroyed uncalled. kInvalidArgument: there is no closure.
  template <typename F>
  Status ScheduleWhenReady(Span<const Event> events, F&& closure, Label label = Label("task")) {
    if (internal::IsEmptyCallable(closure)) return internal::EmptyCallableError("ScheduleWhenReady");
    using Closure = std::decay_t<F>;
    if constexpr (internal::kCallableOnce<Closure>) {
      return ExecuteWhenReady(events, Task(std::forward<F>(closure), label));
    } else {
      static_assert(internal::kCallableOnce<Closure, Status>, "a task is called as f() or f(const purlin::Status&)");
      Event all = WhenAll(events);
      Event gate = all;
      return ExecuteWhenReady(
          {&gate, 1},
          Task([all = std::move(all),
                closure = Closure(std::forward<F>(closure))]() mutable { internal::CallOnce(closure, all.error()); },
               label));
    }
  }

  /// As above, after `values` are available: a range of what has AsEvent() (AsyncValueRef, AsyncValuePtr, Future), or
  /// points to it.
  template <typename Values, typename F,
            typename = std::enable_if_t<!std::is_convertible_v<const Values&, Span<const Event>>>>
  Status ScheduleWhenReady(const Values& values, F&& closure, Label label = Label("task")) {
    const std::vector<Event> events = internal::EventsOf(values);
    return ScheduleWhenReady(Span<const Event>(events), std::forward<F>(closure), label);
  }
  /// As above.
  template <typename Value, typename F, typename = std::enable_if_t<!std::is_same_v<Value, Event>>>
  Status ScheduleWhenReady(std::initializer_list<Value> values, F&& closure, Label label = Label("task")) {
    return ScheduleWhenReady(Span<const Value>(values.begin(), values.size()), std::forward<F>(closure), label);
  }

  /// Calls `body(begin, end)` for consecutive ranges that together cover [0, count), each at most `grain` long, on this
  /// thread and on idle workers, and returns when all calls have returned. This thread works too, so nesting cannot
  /// deadlock. kInternal if a call threw (Rust: panicked); the other ranges still run. kInvalidArgument: there is no
  /// body, however many calls there are.
  template <typename F>
  Status ParallelFor(std::size_t count, Grain grain, F&& body) {
    if (internal::IsEmptyCallable(body)) return internal::EmptyCallableError("ParallelFor");
    auto call = [](void* data, std::size_t begin, std::size_t end) -> bool {
      return internal::GuardedOk("ParallelFor", [&] { (*static_cast<std::remove_reference_t<F>*>(data))(begin, end); });
    };
    return ParallelForRanges(count, grain.size, call, const_cast<void*>(static_cast<const void*>(&body)));
  }
  /// As above; the grain is chosen from count and thread count.
  template <typename F>
  Status ParallelFor(std::size_t count, F&& body) {
    return ParallelFor(count, Grain(0), std::forward<F>(body));
  }
  /// None: a bare number is a grain here and a cost in tsl's ParallelFor. Say Grain(number), or leave it out.
  template <typename Number, typename F, typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
  Status ParallelFor(std::size_t count, Number grain_or_cost, F&& body) = delete;

  /// What ScheduleWhenReady calls: runs `task` once all of `events` are terminal. See there.
  virtual Status ExecuteWhenReady(Span<const Event> events, Task task) = 0;
  /// What ParallelFor calls: `call(data, begin, end)` returns false to report a failure. See there.
  virtual Status ParallelForRanges(std::size_t count, std::size_t grain,
                                   bool (*call)(void* data, std::size_t begin, std::size_t end), void* data) = 0;
};

/// How to make a pool.
struct ThreadPoolOptions {
  /// Threads; 0 takes what the cgroup quota, the affinity mask and PURLIN_NPROC allow. At most 4096.
  std::size_t thread_count = 0;
  /// Threads are named `name/0`, `name/1`, ... and cut to the kernel's 15 bytes; so 1..12 bytes are useful.
  std::string_view name = "purlin";
};

/// What a shutdown does with tasks that have not begun.
enum class ShutdownMode : std::uint32_t {
  /// They run.
  kDrain = 0,
  /// They are destroyed uncalled; their promises and results complete with an error.
  kCancelPending = 1,
};

/// How to shut down a pool, an elastic pool, a serial queue or a client.
struct ShutdownOptions {
  /// What happens to tasks that have not begun.
  ShutdownMode mode = ShutdownMode::kDrain;
  /// How long to wait for the end, in nanoseconds; then tasks that have not begun are destroyed, whatever the mode.
  /// Negative: for ever.
  std::int64_t timeout_ns = -1;
};

/// A fixed number of named threads; idle ones steal. A handle: copies share the pool, and destroying the last one shuts
/// it down (see Shutdown).
///
/// Tasks scheduled from outside are taken in the order in which they were scheduled, by each worker in small batches;
/// with one thread they start in exactly that order. Tasks that a task schedules may run newest first.
///
/// A task may wait for tasks of its own pool: meanwhile tasks that it scheduled may run on its thread, and a spare
/// thread takes its place. There are as many spares as the process may have, at most 16384. If the system refuses one,
/// tasks run on top of waiting ones, 16 deep; if that is not enough, a wait ends with kResourceExhausted, unless its
/// event is guarding (Event::Wait). Spares that are not needed any more end, except for 8 to 64 of them, by the number
/// of threads.
///
/// The pool does not see waits for anything else (a std::future, a lock, a read). If all its threads sleep so for a
/// tenth of a second while tasks are queued, it starts a spare, and another one in each twentieth of a second in which
/// that goes on; threads that compute get none. So the number of threads does not limit how many tasks block at a time;
/// Semaphore does (semaphore.h). A task that a waiting task has scheduled must not wait for what that one does later.
/// An idle worker looks for tasks for about 10 microseconds, then sleeps.
///
/// Each thread that Purlin starts has a stack of 2 MiB (elastic_pool.h lets you choose), whatever RUST_MIN_STACK says.
///
/// In a child made by fork() there are no threads: calls return kFailedPrecondition (event.h has the rule). A pool that
/// is made in the child works there. A thread of the pool that returns from the task in which it forked ends; if it is
/// the last thread of the child, the child ends.
class PURLIN_API ThreadPoolAsyncWorkRunner final : public AsyncWorkRunner {
 public:
  /// Starts the threads. kInvalidArgument: more than 4096 threads, an empty name, or one with a NUL or bytes that are
  /// not UTF-8. kResourceExhausted, naming the thread's number: the system refused a thread; none is left running.
  PURLIN_API static StatusOr<ThreadPoolAsyncWorkRunner> Create(const ThreadPoolOptions& options);

  /// Another handle to the same pool.
  PURLIN_API ThreadPoolAsyncWorkRunner(const ThreadPoolAsyncWorkRunner& other) noexcept;
  /// Takes the handle. Leaves `other` empty, see purlin.h.
  PURLIN_API ThreadPoolAsyncWorkRunner(ThreadPoolAsyncWorkRunner&& other) noexcept;
  /// See the constructors.
  PURLIN_API ThreadPoolAsyncWorkRunner& operator=(const ThreadPoolAsyncWorkRunner& other) noexcept;
  /// See the constructors.
  PURLIN_API ThreadPoolAsyncWorkRunner& operator=(ThreadPoolAsyncWorkRunner&& other) noexcept;
  /// The last handle shuts the pool down: it blocks until queued tasks have run. After a Shutdown that passed its
  /// timeout, and on a thread of the pool, it does not wait.
  PURLIN_API ~ThreadPoolAsyncWorkRunner() override;

  /// Any thread, also a task of this pool. kCancelled after Shutdown began.
  PURLIN_API Status Execute(Task task) override;
  /// See Executor::ExecuteWith.
  PURLIN_API Status ExecuteWith(Task task, const TaskOptions& options) override;
  /// See AsyncWorkRunner::ScheduleWhenReady.
  PURLIN_API Status ExecuteWhenReady(Span<const Event> events, Task task) override;
  /// See AsyncWorkRunner::ParallelFor.
  PURLIN_API Status ParallelForRanges(std::size_t count, std::size_t grain,
                                      bool (*call)(void* data, std::size_t begin, std::size_t end),
                                      void* data) override;

  /// Number of threads.
  [[nodiscard]] PURLIN_API std::size_t NumThreads() const noexcept;
  /// Which of this pool's threads this is, from 0; spare threads are numbered from NumThreads(). Nothing on every other
  /// thread. While a task runs, its thread does not change. Never blocks.
  [[nodiscard]] PURLIN_API std::optional<std::size_t> CurrentThreadId() const noexcept;
  /// As ParallelFor; calls `body(begin, end, id)`, with an `id` in [0, NumThreads()] that no other call of the loop has
  /// at the same time, for what each thread keeps for itself. A range that finds none free, because bodies block and
  /// spare threads run others, is run after one of those by the same thread.
  template <typename F>
  Status ParallelForWithWorkerId(std::size_t count, Grain grain, F&& body) {
    if (internal::IsEmptyCallable(body)) return internal::EmptyCallableError("ParallelForWithWorkerId");
    internal::WorkerIds<std::remove_reference_t<F>> loop(NumThreads() + 1, body);
    return ParallelForRanges(count, grain.size, &decltype(loop)::Call, &loop);
  }
  /// As above; the grain is chosen from count and thread count.
  template <typename F>
  Status ParallelForWithWorkerId(std::size_t count, F&& body) {
    return ParallelForWithWorkerId(count, Grain(0), std::forward<F>(body));
  }
  /// One line: how many threads, and which limit decided that.
  [[nodiscard]] PURLIN_API std::string Describe() const;

  /// Calls `a()` and `b()`, perhaps at the same time, and returns when both have returned. On a thread of this pool, it
  /// calls `a` itself, offers `b` to idle threads, and runs other tasks while it waits; no allocation. On another
  /// thread, the pool calls both and this blocks. After Shutdown it calls both. kInternal if one threw (Rust:
  /// panicked). kFailedPrecondition in a child that `a` made by fork() after another thread had begun `b`.
  /// kInvalidArgument, and nothing is called: `a` or `b` is empty.
  template <typename A, typename B>
  Status Join(A&& a, B&& b) {
    if (internal::IsEmptyCallable(a) || internal::IsEmptyCallable(b)) return internal::EmptyCallableError("Join");
    return JoinCalls(&CallHalf<std::remove_reference_t<A>>, const_cast<void*>(static_cast<const void*>(&a)),
                     &CallHalf<std::remove_reference_t<B>>, const_cast<void*>(static_cast<const void*>(&b)));
  }
  /// What Join calls: `a(a_data)` and `b(b_data)` return false to report a failure. See there.
  PURLIN_API Status JoinCalls(bool (*a)(void* data), void* a_data, bool (*b)(void* data), void* b_data);

  /// 1. Refuses new tasks (kCancelled). 2. Runs, or destroys uncalled, everything that is queued. 3. Waits for running
  /// tasks, at most for the timeout. 4. Joins the threads. Tasks that still wait for events are destroyed uncalled
  /// when their events complete. Blocks until done; a second call waits too. kFailedPrecondition, and nothing happens,
  /// on a thread of this pool or in a child made by fork(). kInvalidArgument, and nothing happens: no such
  /// ShutdownMode. kDeadlineExceeded: tasks still run, named in the message; their threads end after them. A task that
  /// shuts another pool down waits for the tasks of that pool: two pools whose tasks shut each other down, or destroy
  /// each other's last handle, need a timeout.
  PURLIN_API Status Shutdown(const ShutdownOptions& options = {});

 private:
  friend class Client;
  friend class SerialQueue;
  explicit ThreadPoolAsyncWorkRunner(const internal::ThreadPoolRep* rep) noexcept : rep_(rep) {}
  template <typename F>
  static bool CallHalf(void* data) {
    return internal::GuardedOk("Join", [&] { (*static_cast<F*>(data))(); });
  }
  const internal::ThreadPoolRep* rep_;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_EXECUTOR_H_
