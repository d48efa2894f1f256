// CoTask, co_await and ResumeOn.
#include <version>

#if defined(__cpp_impl_coroutine) && defined(__cpp_lib_coroutine)

#include <chrono>
#include <coroutine>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "purlin/coroutine.h"
#include "purlin/promise.h"
#include "tests/cpp/testing.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

using std::chrono::seconds;

CoTask<int> Number(int value) { co_return value; }
CoTask<Status> AwaitEvent(Event event) { co_return co_await event; }
CoTask<int> AwaitValue(AsyncValueRef<int> value) {
  StatusOr<AsyncValueRef<int>> got = co_await std::move(value);
  if (!got.ok()) co_return got.status();
  co_return **got;
}
CoTask<int> AwaitFuture(Future<int> future) { co_return co_await std::move(future); }
CoTask<Status> Hop(Executor& executor) { co_return co_await ResumeOn(executor); }

TEST(CoTaskMisuse, AnEmptyTaskFailsItsStart) {
  CoTask<int> empty;
  EXPECT_FALSE(empty);
  EXPECT_TRUE(Fails(std::move(empty).Start().Wait(), StatusCode::kFailedPrecondition, {"moved from"}));
}

TEST(CoTaskMisuse, StartedTwiceItFails) {
  CoTask<int> task = Number(3);
  EXPECT_EQ(*std::move(task).Start(), 3);
  EXPECT_FALSE(task);
  EXPECT_TRUE(Fails(std::move(task).Start().Wait(), StatusCode::kFailedPrecondition, {"moved from"}));
}

TEST(CoTaskMisuse, AwaitingAnEmptyTaskIsAnError) {
  const auto outer = []() -> CoTask<int> { co_return co_await CoTask<int>(); };
  EXPECT_TRUE(Fails(outer().Start().Wait(), StatusCode::kFailedPrecondition));
}

TEST(CoTaskMisuse, ATaskThatIsNeverStartedRunsNothing) {
  NoLeak no_leak;
  bool ran = false;
  const auto body = [](bool* flag, Counted) -> CoTask<> {
    *flag = true;
    co_return;
  };
  {
    const CoTask<> task = body(&ran, Counted(1));
  }
  EXPECT_FALSE(ran);
}

TEST(CoTaskMisuse, NullAndInvalidAreErrors) {
  EXPECT_TRUE(Fails(AwaitValue(AsyncValueRef<int>()).Start().Wait(), StatusCode::kFailedPrecondition, {"null"}));
  EXPECT_TRUE(Fails(AwaitFuture(Future<int>()).Start().Wait(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Ok(AwaitEvent(Event()).Start().Wait()));
}

TEST(CoTaskMisuse, WhatWasMovedFromIsAwaited) {
  CoTask<int> task = Number(3);
  CoTask<int> taken_task = std::move(task);
  const auto await_task = [](CoTask<int> inner) -> CoTask<int> { co_return co_await std::move(inner); };
  EXPECT_TRUE(Fails(await_task(std::move(task)).Start().Wait(), StatusCode::kFailedPrecondition, {"moved from"}));
  EXPECT_EQ(*await_task(std::move(taken_task)).Start(), 3);
  Future<int> future(4);
  const Future<int> taken_future = std::move(future);
  EXPECT_TRUE(Fails(AwaitFuture(std::move(future)).Start().Wait(), StatusCode::kFailedPrecondition));
  EXPECT_EQ(*AwaitFuture(taken_future).Start(), 4);
  AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(5);
  const AsyncValueRef<int> taken_value = std::move(value);
  EXPECT_TRUE(Fails(AwaitValue(std::move(value)).Start().Wait(), StatusCode::kFailedPrecondition, {"null"}));
  EXPECT_EQ(*AwaitValue(taken_value).Start(), 5);
}

/// A coroutine of another library, which is destroyed while it is suspended.
struct Stranger {
  struct promise_type {
    Stranger get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  std::coroutine_handle<promise_type> frame;
};

TEST(CoTaskMisuse, ATaskThatIsDestroyedWhileItIsSuspended) {
  NoLeak no_leak;
  EventPromise gate("gate");
  bool resumed = false;
  const auto inner = [](Event event, bool* after, Counted) -> CoTask<> {
    static_cast<void>(co_await event);
    *after = true;
  };
  const auto middle = [](CoTask<> task, bool* after, Counted) -> CoTask<> {
    static_cast<void>(co_await std::move(task));
    *after = true;
  };
  const auto outer = [](CoTask<> task, bool* after) -> Stranger {
    static_cast<void>(co_await std::move(task));
    *after = true;
  };
  const Stranger stranger = outer(middle(inner(gate.event(), &resumed, Counted(1)), &resumed, Counted(2)), &resumed);
  EXPECT_TRUE(gate.event().HasWaiters());
  stranger.frame.destroy();
  EXPECT_TRUE(gate.SetReady());
  EXPECT_FALSE(resumed);
}

TEST(CoTaskMisuse, ATaskWhoseResultNobodyHoldsEndsAllTheSame) {
  NoLeak no_leak;
  EventPromise gate("gate");
  bool resumed = false;
  const auto body = [](Event event, bool* after, Counted) -> CoTask<> {
    static_cast<void>(co_await event);
    *after = true;
  };
  static_cast<void>(body(gate.event(), &resumed, Counted(1)).Start());
  EXPECT_TRUE(gate.SetReady());
  EXPECT_TRUE(resumed);
}

TEST(CoTaskMisuse, ADroppedPromiseResumesWithItsError) {
  Event done;
  {
    const EventPromise promise("dropped under an await");
    done = AwaitEvent(promise.event()).Start();
    EXPECT_FALSE(done.IsReady());
  }
  EXPECT_TRUE(Fails(done, StatusCode::kInternal, {"'dropped under an await'"}));
}

TEST(CoTaskMisuse, AnExecutorThatRefusesOrDropsResumesWithItsError) {
  RefusingExecutor refuses(UnavailableError("full house"));
  EXPECT_TRUE(Fails(Hop(refuses).Start(), StatusCode::kUnavailable, {"full house"}));
  LyingExecutor lies;
  EXPECT_TRUE(Fails(Hop(lies).Start().WaitFor(seconds(20)), StatusCode::kCancelled));
}

TEST(CoTaskMisuse, StartedOnAnExecutorThatRefusesItIsDestroyedUnrun) {
  NoLeak no_leak;
  RefusingExecutor refuses(UnavailableError("full house"));
  bool ran = false;
  const auto body = [](bool* flag, Counted) -> CoTask<> {
    *flag = true;
    co_return;
  };
  EXPECT_TRUE(Fails(body(&ran, Counted(1)).Start(refuses).WaitFor(seconds(20)), StatusCode::kUnavailable));
  EXPECT_FALSE(ran);
}

TEST(CoTaskMisuse, AResultThatWasSetFirstIsLeftAlone) {
  EventPromise gate("gate");
  const auto body = [](Event event) -> CoTask<int> {
    static_cast<void>(co_await event);
    co_return 5;
  };
  const AsyncValueRef<int> result = body(gate.event()).Start();
  EXPECT_TRUE(result.SetError(CancelledError("by its user")));
  gate.SetReady();
  EXPECT_TRUE(Fails(result.Wait(), StatusCode::kCancelled, {"by its user"}));
}

TEST(CoTaskMisuse, AnOkStatusIsNoValue) {
  const auto body = []() -> CoTask<int> { co_return OkStatus(); };
  EXPECT_TRUE(Fails(body().Start().Wait(), StatusCode::kInternal));
}

TEST(CoTaskMisuse, AHundredThousandTasksThatAwaitOneAnother) {
  struct Deep {
    static CoTask<int> Go(int depth) {
      if (depth == 0) co_return 0;
      StatusOr<int> inner = co_await Go(depth - 1);
      if (!inner.ok()) co_return inner.status();
      co_return *inner + 1;
    }
  };
  OnSmallStack([] { EXPECT_EQ(*Deep::Go(100000).Start(), 100000); });
}

}  // namespace
}  // namespace purlin

#endif
