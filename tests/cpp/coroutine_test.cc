#include "purlin/coroutine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/promise.h"
#include "tests/cpp/sanitizers.h"
#include "tests/cpp/testing.h"

#if !defined(__cpp_impl_coroutine) || !defined(__cpp_lib_coroutine)
#error "this test is built only by compilers with coroutines"
#endif

namespace purlin {
namespace {

using Pool = ThreadPoolAsyncWorkRunner;

constexpr int kMany = kMillion;

CoTask<Status> Await(Event event) { co_return co_await event; }
CoTask<int> Number(int n) { co_return n; }

TEST(CoroutineTest, AwaitsEventsThatAreThere) {
  EXPECT_EQ(Await(Event()).Start().state(), EventState::kReady);
  EXPECT_EQ(Await(Event::Error(AbortedError("x"))).Start().error(), AbortedError("x"));
}

TEST(CoroutineTest, AwaitsPendingEventsAndGoesOnWhereTheyAreCompleted) {
  EventPromise promise("p");
  std::thread::id resumed_on;
  auto wait = [](Event event, std::thread::id* where) -> CoTask<Status> {
    Status status = co_await event;
    *where = std::this_thread::get_id();
    co_return status;
  };
  const Event done = wait(promise.event(), &resumed_on).Start("done");
  EXPECT_EQ(done.label(), "done");
  EXPECT_FALSE(done.IsReady());
  EXPECT_TRUE(promise.event().HasWaiters());
  std::thread::id completed_on;
  std::thread([&] {
    completed_on = std::this_thread::get_id();
    promise.SetError(DataLossError("cable cut"));
  }).join();
  EXPECT_EQ(done.error(), DataLossError("cable cut"));
  EXPECT_EQ(resumed_on, completed_on);
}

TEST(CoroutineTest, ADroppedPromiseResumesWithItsError) {
  std::optional<EventPromise> promise(std::in_place, "gradients");
  const Event done = Await(promise->event()).Start();
  promise.reset();
  EXPECT_TRUE(IsInternal(done.error()));
  EXPECT_NE(done.error().message().find("'gradients'"), std::string::npos) << done.error();
}

CoTask<int> Read(AsyncValueRef<int> value) {
  StatusOr<int*> read = co_await value;
  if (!read.ok()) co_return read.status();
  co_return **read;
}
CoTask<int> Take(AsyncValueRef<int> value) {
  StatusOr<AsyncValueRef<int>> read = co_await std::move(value);
  if (!read.ok()) co_return read.status();
  co_return **read;
}

TEST(CoroutineTest, AwaitsValuesByReferenceAndByMove) {
  for (const bool pending : {false, true}) {
    auto value = MakeUnconstructedAsyncValueRef<int>();
    if (!pending) value.emplace(7);
    const AsyncValueRef<int> read = Read(value).Start();
    const AsyncValueRef<int> taken = Take(value).Start();
    EXPECT_EQ(read.IsAvailable(), !pending);
    EXPECT_EQ(taken.IsAvailable(), !pending);
    value.emplace(7);
    ASSERT_TRUE(read.IsConcrete() && taken.IsConcrete());
    EXPECT_EQ(*read, 7);
    EXPECT_EQ(*taken, 7);
    EXPECT_EQ(value.NumRef(), 1U) << "the coroutines hold nothing any more";
  }
  for (auto* task : {&Read, &Take}) {
    EXPECT_EQ((*task)(AbortedError("x")).Start().GetError(), AbortedError("x"));
    EXPECT_TRUE(IsFailedPrecondition((*task)(nullptr).Start().GetError())) << "null is an error, as everywhere";
    auto value = MakeUnconstructedAsyncValueRef<int>();
    const AsyncValueRef<int> result = (*task)(value).Start();
    value.SetError(AbortedError("y"));
    EXPECT_EQ(result.GetError(), AbortedError("y"));
  }
}

TEST(CoroutineTest, AnAwaitedRvalueIsKeptForTheResult) {
  const NoLeak no_leak;
  auto take = [](AsyncValueRef<Counted> value) -> CoTask<int> {
    StatusOr<AsyncValueRef<Counted>> read = co_await std::move(value);
    co_return (*read)->value;
  };
  auto value = MakeUnconstructedAsyncValueRef<Counted>();
  AsyncValueRef<int> result = take(value).Start();
  const AsyncValuePtr<Counted> producer = value.release();
  {
    const auto last = AsyncValueRef<Counted>::Adopt(producer.header());
    last.emplace(5);
  }
  EXPECT_EQ(*result, 5);
}

TEST(CoroutineTest, TheLastReferenceToAnUnsetValueResumesWithAnError) {
  auto value = MakeUnconstructedAsyncValueRef<int>("weights");
  AsyncValueRef<int> result = Take(value).Start();
  EXPECT_FALSE(result.IsAvailable());
  value.reset();
  ASSERT_TRUE(result.IsError());
  EXPECT_NE(result.GetError().message().find("'weights'"), std::string::npos) << result.GetError();

  result = Take(MakeUnconstructedAsyncValueRef<int>("nobody's")).Start();
  ASSERT_TRUE(result.IsError()) << "the coroutine gave the last reference up";
  EXPECT_NE(result.GetError().message().find("'nobody's'"), std::string::npos) << result.GetError();
}

TEST(CoroutineTest, AwaitsBorrowedValues) {
  auto read = [](AsyncValuePtr<int> value) -> CoTask<int> {
    StatusOr<int*> got = co_await value;
    co_return got.ok() ? StatusOr<int>(**got) : StatusOr<int>(got.status());
  };
  auto value = MakeUnconstructedAsyncValueRef<int>();
  const AsyncValueRef<int> result = read(value.AsPtr()).Start();
  value.emplace(3);
  EXPECT_EQ(*result, 3);
  EXPECT_TRUE(IsFailedPrecondition(read(nullptr).Start().GetError()));
}

TEST(CoroutineTest, AwaitsFutures) {
  auto copy = [](Future<std::string> future) -> CoTask<std::string> { co_return co_await future; };
  auto move = [](Future<std::unique_ptr<int>> future) -> CoTask<int> {
    StatusOr<std::unique_ptr<int>> got = co_await std::move(future);
    if (!got.ok()) co_return got.status();
    co_return **got;
  };
  auto none = [](Future<> future) -> CoTask<Status> { co_return co_await future; };
  EXPECT_EQ(*copy(Future<std::string>("now")).Start(), "now");
  EXPECT_EQ(*move(Future<std::unique_ptr<int>>(std::make_unique<int>(4))).Start(), 4);
  EXPECT_TRUE(none(Future<>(OkStatus())).Start().Wait().ok());
  EXPECT_EQ(copy(Future<std::string>(AbortedError("x"))).Start().GetError(), AbortedError("x"));
  EXPECT_TRUE(IsFailedPrecondition(none(Future<>()).Start().error())) << "an invalid future";

  const auto text = MakeUnconstructedAsyncValueRef<std::string>();
  const auto number = MakeUnconstructedAsyncValueRef<std::unique_ptr<int>>();
  const AsyncValueRef<std::string> later_text = copy(Future<std::string>(text.CopyRef())).Start();
  const AsyncValueRef<int> later_number = move(Future<std::unique_ptr<int>>(number.CopyRef())).Start();
  EXPECT_FALSE(later_text.IsAvailable() || later_number.IsAvailable());
  text.emplace("later");
  number.emplace(std::make_unique<int>(5));
  EXPECT_EQ(*later_text, "later");
  EXPECT_EQ(text.get(), "later") << "copied";
  EXPECT_EQ(*later_number, 5);
  EXPECT_EQ(number.get(), nullptr) << "moved out";
}

TEST(CoroutineTest, TasksAreLazyAndOwnTheirParameters) {
  const NoLeak no_leak;
  int ran = 0;
  auto body = [](Counted, int* counter) -> CoTask<> {
    ++*counter;
    co_return;
  };
  {
    const CoTask<> never = body(Counted(1), &ran);
    EXPECT_TRUE(static_cast<bool>(never));
  }
  EXPECT_EQ(ran, 0);
  CoTask<> task = body(Counted(1), &ran);
  CoTask<> moved = std::move(task);
  EXPECT_FALSE(static_cast<bool>(task));  // NOLINT(bugprone-use-after-move): the contract.
  task = std::move(moved);
  EXPECT_TRUE(std::move(task).Start().Wait().ok());
  EXPECT_EQ(ran, 1);
  EXPECT_FALSE(static_cast<bool>(task));  // NOLINT(bugprone-use-after-move): the contract.
}

TEST(CoroutineTest, AnEmptyTaskIsAnErrorToAwaitAndToStart) {
  EXPECT_TRUE(IsFailedPrecondition(CoTask<>().Start().error()));
  EXPECT_TRUE(IsFailedPrecondition(CoTask<int>().Start().GetError()));
  CountingExecutor executor;
  EXPECT_TRUE(IsFailedPrecondition(CoTask<int>().Start(executor).GetError()));
  EXPECT_EQ(executor.tasks, 0);
  auto outer = []() -> CoTask<Status> { co_return co_await CoTask<>(); };
  EXPECT_TRUE(IsFailedPrecondition(outer().Start().error()));
}

TEST(CoroutineTest, TasksAwaitOneAnother) {
  auto sum = [](Event gate) -> CoTask<int> {
    StatusOr<int> one = co_await Number(1);
    CoTask<int> named = Number(2);
    StatusOr<int> two = co_await std::move(named);
    Status status = co_await Await(gate);
    if (!status.ok()) co_return status;
    co_return *one + *two;
  };
  EventPromise gate("gate");
  const AsyncValueRef<int> pending = sum(gate.event()).Start();
  EXPECT_FALSE(pending.IsAvailable());
  gate.SetReady();
  EXPECT_EQ(*pending, 3);
  EXPECT_EQ(sum(Event::Error(AbortedError("x"))).Start().GetError(), AbortedError("x"));
}

TEST(CoroutineTest, ResultsMayBeMoveOnlyAndWithoutDefault) {
  struct Odd {
    explicit Odd(int v) : value(std::make_unique<int>(v)) {}
    std::unique_ptr<int> value;
  };
  auto inner = []() -> CoTask<Odd> { co_return Odd(9); };
  auto outer = [&inner]() -> CoTask<std::unique_ptr<int>> { co_return std::move((co_await inner())->value); };
  EXPECT_EQ(**outer().Start(), 9);
}

TEST(CoroutineTest, WhatAStartedTaskHeldIsGoneBeforeItsWaitersRun) {
  const int before = Counted::alive.load();
  EventPromise gate("gate");
  auto hold = [](Counted, Event event) -> CoTask<Status> {
    const Counted local(2);
    co_return co_await event;
  };
  const Event done = hold(Counted(1), gate.event()).Start();
  EXPECT_EQ(Counted::alive.load(), before + 2);
  int alive_at_the_end = -1;
  done.OnReady([&] { alive_at_the_end = Counted::alive.load(); });
  gate.SetReady();
  EXPECT_EQ(alive_at_the_end, before);
}

TEST(CoroutineTest, AResultThatWasCancelledIsLeftAlone) {
  const NoLeak no_leak;
  EventPromise gate("gate");
  bool ended = false;
  auto make = [](Event event, bool* end) -> CoTask<Counted> {
    static_cast<void>(co_await event);
    *end = true;
    co_return Counted(1);
  };
  const AsyncValueRef<Counted> result = make(gate.event(), &ended).Start();
  EXPECT_TRUE(result.SetError(CancelledError("enough")));
  gate.SetReady();
  EXPECT_TRUE(ended);
  EXPECT_EQ(result.GetError(), CancelledError("enough"));
}

// Executors ---------------------------------------------------------------------------------------------------------

CoTask<Status> Hop(Executor& executor, std::thread::id* where = nullptr) {
  Status status = co_await ResumeOn(executor, "hop");
  if (where != nullptr) *where = std::this_thread::get_id();
  co_return status;
}

TEST(ResumeOnTest, GoesOnInATaskOfTheExecutor) {
  Pool pool = Pool::Create({1, "test"}).value();
  std::thread::id pool_thread;
  EXPECT_TRUE(pool.Schedule([&] { pool_thread = std::this_thread::get_id(); }).ok());
  std::thread::id resumed_on;
  EXPECT_TRUE(Hop(pool, &resumed_on).Start().Wait().ok());
  EXPECT_EQ(resumed_on, pool_thread);
  DeferredExecutor deferred;
  const Event done = Hop(deferred).Start();
  EXPECT_FALSE(done.IsReady());
  EXPECT_EQ(deferred.tasks, 1);
  deferred.RunAll();
  EXPECT_EQ(done.state(), EventState::kReady);
}

TEST(ResumeOnTest, ARefusalResumesHereWithWhatTheExecutorSaid) {
  RefusingExecutor refusing;
  std::thread::id resumed_on;
  EXPECT_EQ(Hop(refusing, &resumed_on).Start().error(), UnavailableError("no threads today"));
  EXPECT_EQ(resumed_on, std::this_thread::get_id());
  Pool stopped = Pool::Create({1, "test"}).value();
  ASSERT_TRUE(stopped.Shutdown().ok());
  EXPECT_TRUE(IsCancelled(Hop(stopped).Start().error()));
}

TEST(ResumeOnTest, ADroppedTaskResumesWithCancelled) {
  LyingExecutor lying;
  EXPECT_TRUE(IsCancelled(Hop(lying).Start().error()));
  DeferredExecutor deferred;
  const Event done = Hop(deferred).Start();
  deferred.DropAll();
  EXPECT_TRUE(IsCancelled(done.error()));
  EXPECT_NE(done.error().message().find("'hop'"), std::string::npos) << done.error();
}

TEST(ResumeOnTest, ThreadsThatPassACoroutineBackAndForthLoseNothing) {
  Pool a = Pool::Create({2, "a"}).value();
  Pool b = Pool::Create({2, "b"}).value();
  auto travel = [](Pool* from, Pool* to) -> CoTask<int> {
    int hops = 0;
    for (int i = 0; i < 2'000; ++i) {
      if ((co_await ResumeOn(i % 2 == 0 ? *to : *from)).ok()) ++hops;
    }
    co_return hops;
  };
  std::vector<AsyncValueRef<int>> journeys;
  for (int i = 0; i < 8; ++i) journeys.push_back(travel(&a, &b).Start(i % 2 == 0 ? a : b));
  for (const AsyncValueRef<int>& journey : journeys) {
    ASSERT_TRUE(journey.Wait().ok());
    EXPECT_EQ(*journey, 2'000);
  }
}

TEST(CoTaskStartTest, BeginsInATaskOfTheExecutor) {
  DeferredExecutor deferred;
  int ran = 0;
  auto body = [](int* counter) -> CoTask<int> { co_return ++*counter; };
  const AsyncValueRef<int> result = body(&ran).Start(deferred, "later");
  EXPECT_EQ(result.AsEvent().label(), "later");
  EXPECT_EQ(ran, 0);
  deferred.RunAll();
  EXPECT_EQ(*result, 1);
}

TEST(CoTaskStartTest, ARefusedOrDroppedStartDestroysTheTaskAndFailsTheResult) {
  const NoLeak no_leak;
  int ran = 0;
  auto body = [](Counted, int* counter) -> CoTask<int> { co_return ++*counter; };
  RefusingExecutor refusing;
  EXPECT_EQ(body(Counted(1), &ran).Start(refusing).GetError(), UnavailableError("no threads today"));
  LyingExecutor lying;
  EXPECT_TRUE(IsCancelled(body(Counted(1), &ran).Start(lying).GetError()));
  DeferredExecutor deferred;
  const AsyncValueRef<int> result = body(Counted(1), &ran).Start(deferred);
  deferred.DropAll();
  EXPECT_TRUE(IsCancelled(result.GetError()));
  EXPECT_EQ(ran, 0);
}

/// A parameter that says whether the result was pending when it was released, and how often that was.
struct Released {
  Released(std::vector<bool>* list, const Event* of) : before_the_result(list), result(of) {}
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  ~Released() { before_the_result->push_back(!result->IsReady()); }
  std::vector<bool>* before_the_result;
  const Event* result;
};

CoTask<Status> Hold(std::unique_ptr<Released> held, int* ran) {
  ++*ran;
  co_return held != nullptr ? OkStatus() : InternalError("nothing is held");
}

TEST(CoTaskStartTest, AFrameWhoseStartFailsIsDestroyedOnceBeforeItsResultFails) {
  int ran = 0;
  std::vector<bool> before_the_result;
  const auto start = [&](Executor& executor, Event* result) {
    *result = Hold(std::make_unique<Released>(&before_the_result, result), &ran).Start(executor, "never begun");
  };
  DeferredExecutor deferred;
  Event result;
  start(deferred, &result);
  EXPECT_FALSE(result.IsReady());
  EXPECT_EQ(before_the_result, std::vector<bool>()) << "the frame waits for its start";
  std::vector<std::size_t> released_by_then;
  Status told;
  result.OnReady([&](const Status& status) {
    released_by_then.push_back(before_the_result.size());
    told = status;
  });
  deferred.DropAll();
  EXPECT_EQ(before_the_result, (std::vector<bool>{true})) << "once, while the result is pending";
  EXPECT_EQ(released_by_then, (std::vector<std::size_t>{1})) << "before any waiter";
  EXPECT_TRUE(IsCancelled(told)) << told;
  EXPECT_NE(told.message().find("'never begun'"), std::string::npos) << told;
  EXPECT_EQ(result.error(), told);
  EXPECT_EQ(ran, 0);

  // Also of a gate that fails inside Start: until that returns, the variable has no result.
  before_the_result.clear();
  RefusingExecutor refusing;
  Event refused = EventPromise("not yet").event();
  start(refusing, &refused);
  EXPECT_EQ(before_the_result.size(), 1U);
  EXPECT_EQ(refused.error(), UnavailableError("no threads today"));
  EXPECT_EQ(ran, 0);
}

// Stack: each of these needs gigabytes if the stack grows with the number of awaits --------------------------------

TEST(CoroutineStackTest, AMillionReadyAwaits) {
  OnSmallStack([] {
    auto loop = []() -> CoTask<int> {
      const AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(1);
      int sum = 0;
      for (int i = 0; i < kMany; ++i) {
        if (!(co_await Event()).ok()) co_return -1;
        sum += **co_await value;
      }
      co_return sum;
    };
    EXPECT_EQ(*loop().Start(), kMany);
  });
}

TEST(CoroutineStackTest, AMillionTasksThatEndAtOnce) {
  OnSmallStack([] {
    auto loop = []() -> CoTask<int> {
      int sum = 0;
      for (int i = 0; i < kMany; ++i) sum += *co_await Number(1);
      co_return sum;
    };
    EXPECT_EQ(*loop().Start(), kMany);
  });
}

TEST(CoroutineStackTest, AMillionHopsOnAnInlineExecutor) {
  OnSmallStack([] {
    CountingExecutor executor;
    auto loop = [](Executor& on) -> CoTask<int> {
      int ok = 0;
      for (int i = 0; i < kMany; ++i) ok += (co_await ResumeOn(on)).ok() ? 1 : 0;
      co_return ok;
    };
    EXPECT_EQ(*loop(executor).Start(), kMany);
    EXPECT_EQ(executor.tasks, kMany);
  });
}

CoTask<int> Descend(int depth, Event bottom) {
  if (depth == 0) {
    Status status = co_await bottom;
    if (!status.ok()) co_return status;
    co_return 0;
  }
  StatusOr<int> below = co_await Descend(depth - 1, std::move(bottom));
  if (!below.ok()) co_return below.status();
  co_return *below + 1;
}

TEST(CoroutineStackTest, TasksAwaitOneAnotherManyDeep) {
  OnSmallStack([] {
    constexpr int kDeep = 200'000;
    EXPECT_EQ(*Descend(kDeep, Event()).Start(), kDeep);
    EventPromise bottom("bottom");
    const AsyncValueRef<int> pending = Descend(kDeep, bottom.event()).Start();
    bottom.SetError(AbortedError("x"));
    EXPECT_EQ(pending.GetError(), AbortedError("x"));
  });
}

TEST(CoroutineStackTest, CoroutinesThatCompleteOneAnother) {
  OnSmallStack([] {
    constexpr int kLinks = 200'000;
    auto link = [](Event before, EventPromise after) -> CoTask<> { after.Set(co_await std::move(before)); };
    EventPromise first("first");
    Event last = first.event();
    for (int i = 0; i < kLinks; ++i) {
      EventPromise next("link");
      Event next_event = next.event();
      static_cast<void>(link(std::move(last), std::move(next)).Start());
      last = std::move(next_event);
    }
    EXPECT_FALSE(last.IsReady());
    first.SetReady();
    EXPECT_EQ(last.state(), EventState::kReady);
  });
}

// Coroutines of the user's own, and destruction ---------------------------------------------------------------------

/// A coroutine type that knows nothing of Purlin: it begins at once, and its owner may destroy it while it is
/// suspended.
class Foreign {
 public:
  struct promise_type {
    Foreign get_return_object() { return Foreign(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
  explicit Foreign(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Foreign(Foreign&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Foreign& operator=(Foreign&&) = delete;
  ~Foreign() { Destroy(); }
  bool done() const { return handle_.done(); }
  void Destroy() {
    if (handle_) std::exchange(handle_, nullptr).destroy();
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

TEST(ForeignCoroutineTest, AwaitsEverything) {
  EventPromise gate("gate");
  DeferredExecutor deferred;
  auto value = MakeUnconstructedAsyncValueRef<int>();
  int reached = 0;
  auto body = [](Event event, Executor& executor, AsyncValueRef<int> number, int* step) -> Foreign {
    EXPECT_TRUE((co_await event).ok());
    *step = 1;
    EXPECT_TRUE((co_await ResumeOn(executor)).ok());
    *step = 2;
    EXPECT_EQ(**co_await number, 6);
    *step = 3;
    EXPECT_EQ(*co_await Number(8), 8);
    *step = 4;
  };
  const Foreign foreign = body(gate.event(), deferred, value, &reached);
  gate.SetReady();
  EXPECT_EQ(reached, 1);
  deferred.RunAll();
  EXPECT_EQ(reached, 2);
  value.emplace(6);
  EXPECT_EQ(reached, 4);
  EXPECT_TRUE(foreign.done());
}

TEST(ForeignCoroutineTest, ALoopOfTasksNeedsNoStack) {
  OnSmallStack([] {
    int sum = 0;
    auto loop = [](int* total) -> Foreign {
      for (int i = 0; i < kMany; ++i) *total += *co_await Number(1);
    };
    const Foreign foreign = loop(&sum);
    EXPECT_TRUE(foreign.done());
    EXPECT_EQ(sum, kMany);
  });
}

TEST(ForeignCoroutineTest, IsNotResumedAfterItWasDestroyed) {
  const NoLeak no_leak;
  EventPromise gate("gate");
  DeferredExecutor deferred;
  auto value = MakeUnconstructedAsyncValueRef<int>();
  auto on_event = [](Event event, Counted) -> Foreign {
    static_cast<void>(co_await event);
    ADD_FAILURE() << "resumed by the event";
  };
  auto on_value = [](AsyncValueRef<int> number, Counted) -> Foreign {
    static_cast<void>(co_await std::move(number));
    ADD_FAILURE() << "resumed by the value";
  };
  auto on_hop = [](Executor& executor, Counted) -> Foreign {
    static_cast<void>(co_await ResumeOn(executor));
    ADD_FAILURE() << "resumed by the executor";
  };
  auto on_task = [](Event event, Counted) -> Foreign {
    static_cast<void>(co_await Await(std::move(event)));
    ADD_FAILURE() << "resumed by the task";
  };
  {
    const Foreign a = on_event(gate.event(), Counted(1));
    const Foreign b = on_value(value, Counted(2));
    const Foreign c = on_hop(deferred, Counted(3));
    const Foreign d = on_task(gate.event(), Counted(4));
  }
  gate.SetReady();
  value.emplace(1);
  deferred.RunAll();
}

TEST(ForeignCoroutineTest, AChainOfSuspendedTasksIsDestroyedInnermostFirstWithoutStack) {
  OnSmallStack([] {
    static thread_local std::vector<int>* ends = nullptr;
    std::vector<int> order;
    ends = &order;
    struct Mark {
      int depth;
      ~Mark() { ends->push_back(depth); }
    };
    struct Tower {
      static CoTask<> Floor(int depth, Event bottom) {
        const Mark mark{depth};
        if (depth == 0) {
          static_cast<void>(co_await bottom);
          ADD_FAILURE() << "resumed after its end";
        } else {
          static_cast<void>(co_await Floor(depth - 1, std::move(bottom)));
        }
      }
    };
    constexpr int kDeep = 100'000;
    EventPromise bottom("bottom");
    auto root = [](Event event) -> Foreign { static_cast<void>(co_await Tower::Floor(kDeep, std::move(event))); };
    {
      const Foreign foreign = root(bottom.event());
      EXPECT_TRUE(order.empty());
    }
    ASSERT_EQ(order.size(), static_cast<std::size_t>(kDeep) + 1);
    for (int i = 0; i <= kDeep; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
    bottom.SetReady();
  });
}

/// Suspends for good and lets the test have the frame.
struct Kidnap {
  std::coroutine_handle<>* into;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> handle) const noexcept { *into = handle; }
  void await_resume() const noexcept {}
};

TEST(ForeignCoroutineTest, AStartedTaskThatSomebodyDestroysFailsWhatItOwed) {
  const NoLeak no_leak;
  std::coroutine_handle<> frame;
  auto body = [](Counted, std::coroutine_handle<>* into) -> CoTask<int> {
    co_await Kidnap{into};
    co_return 1;
  };
  AsyncValueRef<int> result = body(Counted(1), &frame).Start("owed");
  ASSERT_TRUE(frame);
  EXPECT_FALSE(result.IsAvailable());
  frame.destroy();
  EXPECT_TRUE(IsCancelled(result.GetError()));
  EXPECT_NE(result.GetError().message().find("'owed'"), std::string::npos) << result.GetError();

  result = body(Counted(1), &frame).Start();
  frame.resume();
  EXPECT_EQ(*result, 1) << "others may resume a task";
}

// Races -------------------------------------------------------------------------------------------------------------

TEST(CoroutineRaceTest, AwaitingRacesCompletionAndEveryCoroutineEndsOnce) {
  constexpr int kRounds = 2'000;
  for (int round = 0; round < kRounds; ++round) {
    EventPromise promise("raced");
    const Event event = promise.event();
    std::atomic<int> ended{0};
    auto wait = [](Event on, std::atomic<int>* count) -> CoTask<Status> {
      Status status = co_await std::move(on);
      count->fetch_add(1);
      co_return status;
    };
    std::vector<Event> done(3);
    Together(4, [&](int index) {
      if (index == 3) {
        promise.SetReady();
      } else {
        done[static_cast<std::size_t>(index)] = wait(event, &ended).Start();
      }
    });
    for (const Event& each : done) ASSERT_TRUE(each.Wait().ok());
    ASSERT_EQ(ended.load(), 3);
  }
}

TEST(CoroutineRaceTest, ManyTasksOnAPoolAwaitOneValue) {
  const NoLeak no_leak;
  Pool pool = Pool::Create({4, "test"}).value();
  for (int round = 0; round < 50; ++round) {
    auto value = MakeUnconstructedAsyncValueRef<Counted>();
    auto add = [](Executor& executor, AsyncValueRef<Counted> number, int more) -> CoTask<int> {
      StatusOr<AsyncValueRef<Counted>> got = co_await std::move(number);
      if (!got.ok()) co_return got.status();
      if (Status hop = co_await ResumeOn(executor); !hop.ok()) co_return hop;
      co_return (*got)->value + *co_await Number(more);
    };
    std::vector<AsyncValueRef<int>> sums;
    for (int i = 0; i < 20; ++i) sums.push_back(add(pool, value, i).Start(pool));
    value.emplace(1'000);
    value.reset();
    for (int i = 0; i < 20; ++i) {
      const AsyncValueRef<int>& sum = sums[static_cast<std::size_t>(i)];
      ASSERT_TRUE(sum.Wait().ok()) << sum.GetError();
      ASSERT_EQ(*sum, 1'000 + i);
    }
  }
  EXPECT_TRUE(pool.Shutdown().ok());
}

}  // namespace
}  // namespace purlin
