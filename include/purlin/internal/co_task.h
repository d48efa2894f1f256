// Purlin: the frames behind CoTask. Not for users; see coroutine.h.
//
// States of a frame: lazy -> running <-> suspended -> ended. It has at most one owner: the CoTask that made it, then
// the awaiter in the frame that awaits it, or, once started, itself. An awaited frame resumes its continuation when it
// ends; a started one completes its root after it is destroyed, so that what it held is released before any waiter
// runs.
//
// A suspended frame that is destroyed destroys the chain of frames that it awaits, the innermost first, in a loop: the
// order of nested scopes, whatever the depth.
#ifndef PURLIN_INTERNAL_CO_TASK_H_
#define PURLIN_INTERNAL_CO_TASK_H_

#include <version>

#if defined(__cpp_impl_coroutine) && defined(__cpp_lib_coroutine)

#include <coroutine>
#include <exception>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "purlin/async_value.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/async_value.h"
#include "purlin/internal/cell.h"
#include "purlin/internal/coroutine.h"
#include "purlin/internal/guard.h"
#include "purlin/internal/waiter.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

template <typename T>
class CoTask;

namespace internal {

class CoPromiseBase;

/// The owner of a frame. Where frames own frames, also a link of the chain.
struct CoFrame {
  std::coroutine_handle<> handle;
  CoPromiseBase* promise = nullptr;
  CoFrame* outer = nullptr;

  CoFrame() noexcept = default;
  CoFrame(std::coroutine_handle<> owned, CoPromiseBase* of) noexcept : handle(owned), promise(of) {}
  CoFrame(CoFrame&& other) noexcept : handle(other.Release()), promise(other.promise) {}
  CoFrame& operator=(CoFrame&& other) noexcept {
    CoFrame taken(std::move(other));
    std::swap(handle, taken.handle);
    std::swap(promise, taken.promise);
    return *this;
  }
  inline ~CoFrame();
  std::coroutine_handle<> Release() noexcept { return std::exchange(handle, std::coroutine_handle<>()); }
};

/// What frames of all types have.
class CoPromiseBase {
 public:
  CoPromiseBase() noexcept = default;
  CoPromiseBase(const CoPromiseBase&) = delete;
  CoPromiseBase& operator=(const CoPromiseBase&) = delete;

  std::suspend_always initial_suspend() const noexcept { return {}; }

  /// The frame that goes on when this one ends.
  std::coroutine_handle<> continuation;
  /// The frame that this one awaits.
  CoFrame* awaited = nullptr;
  /// What this completes when it ends, owned. Null in an awaited frame.
  EventHeader* root = nullptr;

 protected:
  ~CoPromiseBase() {
    if (root == nullptr) return;
    const Event owed = Event::Adopt(root);
    static_cast<void>(FailValue(root, CancelledError("the coroutine that owed event '" + std::string(owed.label()) +
                                                         "' was destroyed before its end",
                                                     owed.location())));
  }
};

inline CoFrame::~CoFrame() {
  if (!handle) return;
  CoFrame* innermost = this;
  for (CoFrame* next = promise->awaited; next != nullptr; next = next->promise->awaited) {
    next->outer = innermost;
    innermost = next;
  }
  for (CoFrame* frame = innermost; frame != nullptr;) {
    CoFrame* outer = frame == this ? nullptr : frame->outer;  // Lives in the frame of `outer`, which is destroyed next.
    frame->Release().destroy();
    frame = outer;
  }
}

/// What tasks end in, what body may return, and what a started one completes.
template <typename T>
struct CoTraits {
  using Result = StatusOr<T>;
  using Started = AsyncValueRef<T>;
  static EventHeader* NewRoot(Label label, SourceLocation location) noexcept {
    return InlineCell<T>::New(InlineCell<T>::kFlags, label, location);
  }
  /// Puts the value into a claimed root; OK, or why there is none.
  static Status Construct(EventHeader* root, Result&& result) noexcept {
    if (!result.ok()) return std::move(result).status();
    return ConstructPayload<T>(root, [&]() -> T&& { return *std::move(result); });
  }
};
template <>
struct CoTraits<Status> {
  using Result = Status;
  using Started = Event;
  static EventHeader* NewRoot(Label label, SourceLocation location) noexcept {
    return NewCell(sizeof(EventCell), alignof(EventCell), nullptr, 0, 0, label, location);
  }
  static Status Construct(EventHeader*, Result&& result) noexcept { return std::move(result); }
};
template <>
struct CoTraits<void> : CoTraits<Status> {};

/// The promise, without what the body returns.
template <typename T>
class CoPromiseOf : public CoPromiseBase {
 public:
  using Result = typename CoTraits<T>::Result;

  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <typename P>
    void await_suspend(std::coroutine_handle<P> frame) const noexcept {
      End(frame);
    }
    void await_resume() const noexcept {}
  };
  FinalAwaiter final_suspend() const noexcept { return {}; }

  /// An exception that leaves the body is the task's error. The parameter keeps translation units with and without
  /// exceptions apart, as in guard.h.
  template <typename Mode = WithExceptions>
  void unhandled_exception() noexcept {
#if defined(__cpp_exceptions)
    const SourceLocation place = root == nullptr ? SourceLocation::Current() : PlaceOf(root);
    result_.emplace(StatusOfThrow("a coroutine", place, [] { std::rethrow_exception(std::current_exception()); }));
#endif
  }

  /// What the body ended in, moved out.
  Result TakeResult() {
    if (!result_.has_value()) return InternalError("a coroutine ended without a result");
    return *std::move(result_);
  }

 protected:
  std::optional<Result> result_;

 private:
  /// The frame is suspended for good. It, and so `this`, is gone when this returns.
  template <typename P>
  __attribute__((noinline)) static void End(std::coroutine_handle<P> frame) noexcept {
    P& promise = frame.promise();
    if (promise.continuation) return CoroutineLoop::Transfer(frame.address(), promise.continuation);
    const Event root = Event::Adopt(std::exchange(promise.root, nullptr));
    const bool claimed = TryClaim(root.header());
    Status error;
    if (claimed) {
      error = promise.result_.has_value() ? CoTraits<T>::Construct(root.header(), *std::move(promise.result_))
                                          : InternalError("a coroutine ended without a result");
    }
    frame.destroy();
    if (!claimed) return;  // It was cancelled.
    if (error.ok()) {
      PublishReady(root.header());
    } else {
      PublishFailure(root.header(), std::move(error));
    }
  }
};

/// The promise of a CoTask<T>.
template <typename T>
class CoPromise final : public CoPromiseOf<T> {
 public:
  CoTask<T> get_return_object() noexcept {
    return CoTask<T>(CoFrame(std::coroutine_handle<CoPromise>::from_promise(*this), this));
  }
  template <typename U = T, typename = std::enable_if_t<std::is_convertible_v<U, typename CoTraits<T>::Result>>>
  void return_value(U&& result) {
    this->result_.emplace(std::forward<U>(result));
  }
};
template <>
class CoPromise<void> final : public CoPromiseOf<void> {
 public:
  inline CoTask<void> get_return_object() noexcept;
  void return_void() noexcept { result_.emplace(); }
};

/// `co_await std::move(task)`: the frame belongs to the awaiting one.
template <typename T>
class TaskAwaiter final {
 public:
  using Result = typename CoTraits<T>::Result;

  explicit TaskAwaiter(CoFrame frame) noexcept : frame_(std::move(frame)) {}
  TaskAwaiter(const TaskAwaiter&) = delete;
  TaskAwaiter& operator=(const TaskAwaiter&) = delete;

  bool await_ready() const noexcept { return !frame_.handle; }
  template <typename P>
  __attribute__((noinline)) void await_suspend(std::coroutine_handle<P> outer) {
    frame_.promise->continuation = outer;
    if constexpr (std::is_base_of_v<CoPromiseBase, P>) {
      awaiting_ = &outer.promise();
      awaiting_->awaited = &frame_;
    }
    CoroutineLoop::Transfer(outer.address(), frame_.handle);
  }
  Result await_resume() {
    if (!frame_.handle) return FailedPreconditionError("a CoTask that was moved from was awaited");
    if (awaiting_ != nullptr) awaiting_->awaited = nullptr;
    return static_cast<CoPromiseOf<T>*>(frame_.promise)->TakeResult();
  }

 private:
  CoFrame frame_;
  CoPromiseBase* awaiting_ = nullptr;
};

/// Runs `frame` on this thread until it first suspends; from now on it owns itself and completes `root`.
inline void StartFrame(CoFrame frame, Event root) {
  EventRetain(root.header());
  frame.promise->root = root.header();
  CoroutineLoop::Run(frame.Release());
}

/// Starts a frame in a task, or fails its root.
struct FrameStarter {
  CoFrame frame;
  Event root;
  void operator()(const Status& status) {
    if (status.ok()) {
      StartFrame(std::move(frame), std::move(root));
    } else {
      frame = CoFrame();  // What the frame holds is released before any waiter runs.
      static_cast<void>(FailValue(root.header(), status));
    }
  }
};

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // coroutines

#endif  // PURLIN_INTERNAL_CO_TASK_H_
