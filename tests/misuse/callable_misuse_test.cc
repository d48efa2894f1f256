// Functions that are none: an empty std::function, a null pointer, and what carries one, given to all that take a
// function.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/buffer.h"
#include "purlin/cancel.h"
#include "purlin/elastic_pool.h"
#include "purlin/future.h"
#include "purlin/inline_executor.h"
#include "purlin/promise.h"
#include "purlin/run_when_ready.h"
#include "purlin/semaphore.h"
#include "purlin/serial_queue.h"
#include "purlin/staging.h"
#include "purlin/stall.h"
#include "purlin/transfer.h"
#include "purlin/user_context.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

/// Can be null, cannot be copied: as absl::AnyInvocable and std::move_only_function.
template <typename Signature>
class MoveOnly;
template <typename R, typename... Args>
class MoveOnly<R(Args...)> {
 public:
  MoveOnly(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor)
  explicit MoveOnly(std::function<R(Args...)> f) : f_(std::make_unique<std::function<R(Args...)>>(std::move(f))) {}
  R operator()(Args... args) { return (*f_)(std::forward<Args>(args)...); }
  friend bool operator==(const MoveOnly& f, std::nullptr_t) noexcept { return f.f_ == nullptr; }

 private:
  std::unique_ptr<std::function<R(Args...)>> f_;
};

/// `use(make)`, where each `make()` is a function that is none.
template <typename Signature, typename Use>
void WithEach(Use use) {
  const auto null = [] { return static_cast<Signature*>(nullptr); };
  use([] { return std::function<Signature>(); });
  use(null);
  use([] { return MoveOnly<Signature>(nullptr); });
  use([] { return WithUserContext(UserContext::Create("carried"), std::function<Signature>()); });
  const UserContextScope scope(UserContext::Create("current"));
  use(null);
}

testing::AssertionResult Refuses(const Status& status, std::string_view call) {
  return Fails(status, StatusCode::kInvalidArgument, {call, "empty std::function", "null pointer"});
}

/// Made of a pointer, which is no reason to compare it with null.
class MadeOfAPointer {
 public:
  explicit MadeOfAPointer(std::atomic<int>* calls) : calls_(calls) {}
  template <typename... Args>
  void operator()(Args&&...) const {
    calls_->fetch_add(1);
  }

 private:
  std::atomic<int>* calls_;
};

struct Answer {
  int value = 0;
  int Twice() const { return 2 * value; }
};

std::atomic<int> g_calls{0};
void Count() { g_calls.fetch_add(1); }

TEST(CallableMisuse, ExecutorsRefuseWhatIsNoTask) {
  ThreadPoolAsyncWorkRunner pool = PoolOf(2);
  ElasticPool elastic = ElasticPool::Create({}).value();
  SerialQueue queue(pool, "queue");
  InlineExecutor here;
  EventPromise pending("pending");
  const Event events[] = {pending.event()};
  WithEach<void()>([&](auto make) {
    EXPECT_TRUE(Refuses(pool.Schedule(make()), "Schedule"));
    EXPECT_TRUE(Refuses(elastic.Schedule(make()), "Schedule"));
    EXPECT_TRUE(Refuses(queue.Schedule(make()), "Schedule"));
    EXPECT_TRUE(Refuses(pool.ScheduleWhenReady(events, make()), "ScheduleWhenReady"));
    EXPECT_TRUE(Refuses(pool.Join(make(), [] { FAIL(); }), "Join"));
    EXPECT_TRUE(Refuses(pool.Join([] { FAIL(); }, make()), "Join"));
    EXPECT_FALSE(static_cast<bool>(Task(make())));
    Task(make()).Run();
    for (Executor* executor : std::initializer_list<Executor*>{&pool, &elastic, &queue, &here}) {
      EXPECT_TRUE(Fails(executor->Execute(Task(make())), StatusCode::kInvalidArgument, {"empty task", "function"}));
      EXPECT_TRUE(Fails(executor->ExecuteWith(Task(make()), {}), StatusCode::kInvalidArgument, {"empty task"}));
    }
  });
  WithEach<void(Status)>(
      [&](auto make) { EXPECT_TRUE(Refuses(pool.ScheduleWhenReady(events, make()), "ScheduleWhenReady")); });
  WithEach<void(std::size_t, std::size_t)>([&](auto make) {
    EXPECT_TRUE(Refuses(pool.ParallelFor(1000, Grain(1), make()), "ParallelFor"));
    EXPECT_TRUE(Refuses(pool.ParallelFor(0, Grain(1), make()), "ParallelFor"));
  });
  EXPECT_TRUE(pending.SetReady());
  EXPECT_TRUE(Ok(queue.Drain()));
}

TEST(CallableMisuse, AWaiterThatIsNoneIsNothingToDo) {
  ThreadPoolAsyncWorkRunner pool = PoolOf(1);
  EventPromise promise("event");
  auto [future_promise, future_made] = MakePromise<int>("future");
  auto [done_promise, done_made] = MakePromise<>("done");
  const Future<int> future = future_made;
  const Future<> done = done_made;
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>("value");
  const std::vector<AsyncValueRef<int>> values = {value, MakeAvailableAsyncValueRef<int>(1), AsyncValueRef<int>()};
  const auto attach = [&] {
    WithEach<void()>([&](auto make) {
      promise.event().OnReady(make());
      promise.OnReady(make());
      Event::Ready().OnReady(make());
      done.OnReady(make());
      done.OnReady(pool, make());
      for (const AsyncValueRef<int>& each : values) {
        each.AndThen(make());
        each.AndThen(pool, make());
      }
      RunWhenReady(values, make());
      RunWhenReady({value}, make());
      RunWhenReady(std::vector<AsyncValueRef<int>>(), make());
      RunWhenReady(values, pool, make());
    });
    WithEach<void(Status)>([&](auto make) {
      promise.event().OnReady(make());
      value.AndThen(make());
      done.OnReady(make());
      done.OnReady(pool, make());
      RunWhenReady(values, make());
      RunWhenReady(values, pool, make());
    });
    WithEach<void(StatusOr<int>)>([&](auto make) {
      future.OnReady(make());
      future.OnReady(pool, make());
      Future<int>(future).OnReady(make());
      Future<int>(future).OnReady(pool, make());
      Future<int>().OnReady(make());
    });
    WithEach<void(StatusOr<int*>)>([&](auto make) { value.AndThen(make()); });
  };
  attach();
  EXPECT_FALSE(promise.event().HasWaiters());
  EXPECT_FALSE(value.HasWaiter());
  EXPECT_TRUE(promise.SetReady());
  EXPECT_TRUE(value.emplace(1));
  EXPECT_TRUE(future_promise.Set(1));
  EXPECT_TRUE(done_promise.Set());
  attach();
}

TEST(CallableMisuse, WhatIsToBeMadeByNothingFailsAtOnce) {
  ThreadPoolAsyncWorkRunner pool = PoolOf(1);
  const AsyncValueRef<int> pending = MakeUnconstructedAsyncValueRef<int>("value");
  const auto promised = MakePromise<int>("future");
  const Future<int>& future = promised.second;
  const std::vector<AsyncValueRef<int>> values = {pending, MakeAvailableAsyncValueRef<int>(1), AsyncValueRef<int>()};
  for (const AsyncValueRef<int>& value : values) {
    WithEach<int(int&)>([&, value = value](auto make) {
      EXPECT_TRUE(Refuses(value.Map(make()).GetError(), "Map"));
      EXPECT_TRUE(Refuses(value.Map(pool, make()).GetError(), "Map"));
    });
    WithEach<StatusOr<int>(int&)>([&, value = value](auto make) {
      EXPECT_TRUE(Refuses(value.TryMap(make()).GetError(), "TryMap"));
      EXPECT_TRUE(Refuses(value.TryMap(pool, make()).GetError(), "TryMap"));
    });
    WithEach<AsyncValueRef<int>(int&)>([&, value = value](auto make) {
      EXPECT_TRUE(Refuses(value.FlatMap(make()).GetError(), "FlatMap"));
      EXPECT_TRUE(Refuses(value.FlatMap(pool, make()).GetError(), "FlatMap"));
    });
  }
  for (const Future<int>& each : {future, Future<int>(1), Future<int>()}) {
    WithEach<int(int)>([&, each = each](auto make) {
      EXPECT_TRUE(Refuses(each.Map(make()).AsEvent().error(), "'Map'"));
      EXPECT_TRUE(Refuses(each.Map(pool, make(), "sums").AsEvent().error(), "'sums'"));
      EXPECT_TRUE(Refuses(Future<int>(each).Map(make()).AsEvent().error(), "'Map'"));
      EXPECT_TRUE(Refuses(Future<int>(each).Map(pool, make()).AsEvent().error(), "'Map'"));
      EXPECT_TRUE(Refuses(each.MapAlways(make()).AsEvent().error(), "'Map'"));
      EXPECT_TRUE(Refuses(each.MapAlways(pool, make()).AsEvent().error(), "'Map'"));
    });
    WithEach<StatusOr<int>(int)>(
        [&, each = each](auto make) { EXPECT_TRUE(Refuses(each.Map(make()).AsEvent().error(), "'Map'")); });
    WithEach<Future<int>(int)>(
        [&, each = each](auto make) { EXPECT_TRUE(Refuses(each.Map(make()).AsEvent().error(), "'Map'")); });
  }
  WithEach<int()>([&](auto make) {
    EXPECT_TRUE(Refuses(MakeFutureOn(pool, make()).AsEvent().error(), "MakeFutureOn"));
    EXPECT_TRUE(Refuses(MakeAsyncValueRef(pool, make()).GetError(), "MakeAsyncValueRef"));
  });
  WithEach<Status()>([&](auto make) {
    EXPECT_TRUE(Refuses(MakeFutureOn(pool, make()).AsEvent().error(), "MakeFutureOn"));
    EXPECT_TRUE(Refuses(TryMakeAsyncValueRef(pool, make()).GetError(), "TryMakeAsyncValueRef"));
  });
  const AsyncValueRef<Answer> answer = MakeAvailableAsyncValueRef<Answer>(Answer{21});
  EXPECT_TRUE(Refuses(answer.Map(static_cast<int (Answer::*)() const>(nullptr)).GetError(), "Map"));
  EXPECT_TRUE(Refuses(answer.Map(static_cast<int Answer::*>(nullptr)).GetError(), "Map"));
  EXPECT_TRUE(Refuses(Future<Answer>(Answer{21}).Map(static_cast<int Answer::*>(nullptr)).Await().status(), "Map"));
  EXPECT_FALSE(pending.HasWaiter());
}

TEST(CallableMisuse, ACallbackThatIsNoneIsNothingToDo) {
  const CancelSource source("source");
  const Semaphore semaphore("semaphore", 1);
  const StatusOr<Permit> taken = semaphore.Acquire(1);
  const Client client = HostClient();
  const StagingPool leases = StagingPool::Create(SpaceOf(client), {}).value();
  WithEach<void()>([&](auto make) { EXPECT_FALSE(source.token().OnCancel(make()).Unregister()); });
  WithEach<void(Status)>([&](auto make) { EXPECT_FALSE(source.token().OnCancel(make()).Unregister()); });
  EXPECT_TRUE(source.Cancel());
  WithEach<void(Status)>([&](auto make) { EXPECT_FALSE(source.token().OnCancel(make()).Unregister()); });
  WithEach<void(StatusOr<Permit>)>([&](auto make) { semaphore.AcquireAsync(1, make()); });
  EXPECT_EQ(semaphore.waiting(), 0U);
  WithEach<void(StatusOr<StagingLease>)>([&](auto make) { leases.AcquireAsync(make()); });
  EXPECT_EQ(leases.free_count(), leases.lease_count());
  const auto says_so = [](const UserContext& context) {
    return context.DebugString().find("is empty") != std::string::npos;
  };
  EXPECT_TRUE(says_so(UserContext::Create(std::function<std::string()>())));
  EXPECT_TRUE(says_so(UserContext::Create(static_cast<const char* (*)()>(nullptr))));
}

TEST(CallableMisuse, AnEndThatNobodyIsToldOf) {
  ClientOptions options;
  options.memory_limit_bytes = 4096;
  options.on_out_of_memory = nullptr;
  const Client client = Client::Create(options).value();
  AllocOptions retry;
  retry.oom = OomPolicy::kRetry;
  EXPECT_TRUE(Fails(RawBuffer::Allocate(SpaceOf(client), 8192, retry), StatusCode::kResourceExhausted));
  alignas(64) unsigned char bytes[64] = {};
  WithEach<void()>(
      [&](auto make) { EXPECT_TRUE(Ok(RawBuffer::Import(SpaceOf(client), bytes, 64, Mutability::kMutable, make()))); });
  const std::vector<std::int64_t> dims = {64};
  const TransferSpec specs[] = {{Shape(DType::kU8, dims)}};
  AsyncHostToDeviceTransferManager transfer = AsyncHostToDeviceTransferManager::Create(specs, SpaceOf(client)).value();
  WithEach<void(Status)>([&](auto make) {
    EXPECT_TRUE(Ok(Buffer::FromHost(bytes, DType::kU8, dims, SpaceOf(client), FromHostOptions(), make())));
    EXPECT_TRUE(Ok(transfer.TransferRawDataToSubBuffer(0, bytes, 0, 1, false, make())));
  });
  WatchdogOptions watch;
  watch.older_than = std::chrono::seconds(100);
  watch.sink = nullptr;
  EXPECT_TRUE(Ok(Watchdog::Start(watch)));
}

TEST(CallableMisuse, WhatOnlyLooksAsIfItWereNoneIsCalled) {
  using internal::IsEmptyCallable;
  constexpr auto kLambda = [] {};
  static_assert(!IsEmptyCallable(kLambda), "compares with null as a pointer, and is never null");
  static_assert(!internal::IsNullableClass<MadeOfAPointer>::value &&
                !internal::IsNullableClass<decltype(kLambda)>::value);
  static_assert(IsEmptyCallable(static_cast<void (*)()>(nullptr)) && !IsEmptyCallable(Count) &&
                !IsEmptyCallable(&Count));
  EXPECT_FALSE(IsEmptyCallable(WithUserContext(UserContext::Create("of a lambda"), kLambda)));
  ThreadPoolAsyncWorkRunner pool = PoolOf(1);
  SerialQueue queue(pool, "queue");
  std::atomic<int> calls{0};
  const CancelSource source("source");
  EXPECT_TRUE(Ok(queue.Schedule(Count)));
  EXPECT_TRUE(Ok(queue.Schedule(&Count)));
  EXPECT_TRUE(Ok(queue.Schedule(std::function<void()>(Count))));
  EXPECT_TRUE(Ok(queue.Schedule(MoveOnly<void()>(Count))));
  EXPECT_TRUE(Ok(queue.Schedule(MadeOfAPointer(&calls))));
  EXPECT_TRUE(Ok(queue.Drain()));
  Event::Ready().OnReady(Count);
  Event::Ready().OnReady(MadeOfAPointer(&calls));
  const CancelRegistration registration = source.token().OnCancel(MadeOfAPointer(&calls));
  EXPECT_TRUE(source.Cancel());
  EXPECT_EQ(g_calls.load(), 5);
  EXPECT_EQ(calls.load(), 3);
  alignas(64) unsigned char bytes[64] = {};
  const Client client = HostClient();
  EXPECT_TRUE(Ok(RawBuffer::Import(SpaceOf(client), bytes, 64, Mutability::kMutable, MadeOfAPointer(&calls)).status()));
  EXPECT_EQ(calls.load(), 4);
  const AsyncValueRef<Answer> answer = MakeAvailableAsyncValueRef<Answer>(Answer{21});
  EXPECT_EQ(answer.Map(&Answer::Twice).get(), 42);
  EXPECT_EQ(answer.Map(&Answer::value).get(), 21);
}

}  // namespace
}  // namespace purlin
