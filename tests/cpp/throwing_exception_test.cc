// Closures and values whose copies and moves throw, each copy and each move of every operation in turn: the exception
// comes out of the call, or the result is an error; nothing leaks, nothing stays pending, the process lives. And
// exceptions that say nothing.
#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "purlin/adapters/std.h"
#include "purlin/purlin.h"
#include "tests/cpp/testing.h"

#if !defined(__cpp_exceptions)
#error "this file tests exceptions"
#endif

namespace purlin {
namespace {

/// Throws at its `fuse`-th copy or move, counted over all objects; never below 0.
struct Fragile {
  static inline int fuse = -1;
  static inline int alive = 0;
  static inline bool thrown = false;
  int value;

  explicit Fragile(int v = 0) : value(v) { ++alive; }
  Fragile(const Fragile& other) : value(other.value) { Burn(); }
  Fragile(Fragile&& other) : value(other.value) { Burn(); }  // NOLINT(performance-noexcept-move-constructor)
  Fragile& operator=(const Fragile&) = default;
  ~Fragile() { --alive; }
  static void Burn() {
    if (fuse > 0 && --fuse == 0) {
      thrown = true;
      throw std::runtime_error("fragile");
    }
    ++alive;
  }
};

/// A function that holds one.
struct Fn {
  Fragile held;
  Fragile operator()() const { return Fragile(7); }
  Fragile operator()(const Fragile& in) const { return Fragile(in.value + 1); }
};

/// Calls `operation` with its 1st, 2nd ... copy or move throwing, until none is left to throw. It answers a future, a
/// value or an event, as an event: terminal, if the exception did not come out of it.
template <typename F>
void WithEachThrow(const char* name, F operation) {
  for (int n = 1;; ++n) {
    ASSERT_LT(n, 100) << name;
    const int before = Fragile::alive;
    std::optional<Event> result;
    Fragile::thrown = false;
    Fragile::fuse = n;
    try {
      result = operation();
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "fragile") << name;
    }
    Fragile::fuse = -1;
    if (result.has_value()) {
      EXPECT_TRUE(result->IsReady()) << name << ": pending for ever after throw " << n;
      EXPECT_EQ(result->error().ok(), !Fragile::thrown) << name << ", throw " << n << ": " << result->error();
    }
    result.reset();
    EXPECT_EQ(Fragile::alive, before) << name << " leaks after throw " << n;
    if (!Fragile::thrown) return;
  }
}

TEST(ThrowingExceptionTest, MakingValues) {
  const Fragile one(1);
  WithEachThrow("MakeAvailableAsyncValueRef", [&] { return MakeAvailableAsyncValueRef<Fragile>(one).AsEvent(); });
  WithEachThrow("MakeConstructedAsyncValueRef", [&] {
    const auto value = MakeConstructedAsyncValueRef<Fragile>(one);
    value.SetStateConcrete();
    return value.AsEvent();
  });
  WithEachThrow("emplace", [&] {
    const auto value = MakeUnconstructedAsyncValueRef<Fragile>();
    value.emplace(one);
    return value.AsEvent();
  });
  WithEachThrow("emplace of a StatusOr", [&] {
    const auto value = MakeUnconstructedAsyncValueRef<Fragile>();
    const StatusOr<Fragile> from(one);
    value.emplace(from);
    return value.AsEvent();
  });
  WithEachThrow("indirect emplace", [&] {
    const auto value = MakeIndirectAsyncValueRef<Fragile>();
    value.emplace(one);
    return value.AsEvent();
  });
  WithEachThrow("Promise::Set of a value", [&] {
    Promise<Fragile> promise("p");
    Future<Fragile> future = promise.future();
    promise.Set(one);
    return future.AsEvent();
  });
  WithEachThrow("Promise::Set of a StatusOr", [&] {
    Promise<Fragile> promise("p");
    Future<Fragile> future = promise.future();
    promise.Set(StatusOr<Fragile>(one));
    return future.AsEvent();
  });
  WithEachThrow("Promise::Emplace", [&] {
    Promise<Fragile> promise("p");
    Future<Fragile> future = promise.future();
    promise.Emplace(one);
    return future.AsEvent();
  });
  WithEachThrow("Future of a value", [&] { return Future<Fragile>(one).AsEvent(); });
  WithEachThrow("Future of a StatusOr", [&] { return Future<Fragile>(StatusOr<Fragile>(one)).AsEvent(); });
  WithEachThrow("storage", [&] {
    AsyncValueStorage<Fragile> storage;
    const auto owner = MakeAvailableAsyncValueRef<Fragile>(storage, one);
    const Status error = owner.AsPtr().GetError();
    return error.ok() ? Event() : Event::Error(error);
  });
}

/// Maps of a value that is there, and of one that comes later.
template <typename Map>
void ForEachTime(const char* name, Map map) {
  WithEachThrow((std::string(name) + ", ready").c_str(), [&] {
    auto source = MakeAvailableAsyncValueRef<Fragile>();
    return map(source).AsEvent();
  });
  WithEachThrow((std::string(name) + ", later").c_str(), [&] {
    auto source = MakeUnconstructedAsyncValueRef<Fragile>();
    auto result = map(source);
    source.emplace();
    return result.AsEvent();
  });
}

TEST(ThrowingExceptionTest, MappingValues) {
  CountingExecutor executor;
  ForEachTime("Map", [](auto& source) { return source.Map(Fn()); });
  ForEachTime("Map in a task", [&](auto& source) { return source.Map(executor, Fn()); });
  ForEachTime("TryMap", [](auto& source) {
    return source.TryMap([fn = Fn()](Fragile& in) { return StatusOr<Fragile>(fn(in)); });
  });
  ForEachTime("TryMap in a task", [&](auto& source) {
    return source.TryMap(executor, [fn = Fn()](Fragile& in) { return StatusOr<Fragile>(fn(in)); });
  });
  ForEachTime("FlatMap", [](auto& source) {
    return source.FlatMap([fn = Fn()](Fragile& in) { return MakeAvailableAsyncValueRef<Fragile>(fn(in)); });
  });
  ForEachTime("FlatMap in a task", [&](auto& source) {
    return source.FlatMap(executor, [fn = Fn()](Fragile& in) { return MakeAvailableAsyncValueRef<Fragile>(fn(in)); });
  });
  ForEachTime("Future::Map", [](auto& source) { return Future<Fragile>(source).Map(Fn()); });
  ForEachTime("Future::Map in a task", [&](auto& source) { return Future<Fragile>(source).Map(executor, Fn()); });
  ForEachTime("Future::Map to a future", [](auto& source) {
    return Future<Fragile>(source).Map([fn = Fn()](const Fragile& in) { return Future<Fragile>(fn(in)); });
  });
  ForEachTime("Future::MapTo", [](auto& source) { return Future<Fragile>(source).MapTo(Fragile(3)); });
  ForEachTime("Future::Detach", [&](auto& source) { return Future<Fragile>(source).Detach(executor); });
  ForEachTime("JoinFutures", [](auto& source) {
    return JoinFutures(std::vector<Future<Fragile>>{Future<Fragile>(source), Future<Fragile>(Fragile(2))});
  });
  ForEachTime("JoinFutures of two", [](auto& source) { return JoinFutures(Future<Fragile>(source), Future<int>(2)); });
}

TEST(ThrowingExceptionTest, TasksThatMakeValues) {
  CountingExecutor executor;
  const Fn fn;
  WithEachThrow("MakeAsyncValueRef", [&] { return MakeAsyncValueRef(executor, fn).AsEvent(); });
  WithEachThrow("TryMakeAsyncValueRef", [&] {
    return TryMakeAsyncValueRef(executor, [fn = fn] { return StatusOr<Fragile>(fn()); }).AsEvent();
  });
  WithEachThrow("MakeFutureOn", [&] { return MakeFutureOn(executor, fn).AsEvent(); });
}

TEST(ThrowingExceptionTest, ClosuresThatOweAPromise) {
  CountingExecutor executor;
  ThreadPoolAsyncWorkRunner pool = ThreadPoolAsyncWorkRunner::Create({1, "fragile"}).value();
  // A promise in the closure completes, whatever becomes of the closure.
  const auto owing = [](auto submit) {
    Promise<> promise("owed");
    Future<> future = promise.future();
    submit([promise = std::move(promise), held = Fragile()](auto&&...) mutable { promise.Set(); });
    return future.AsEvent();
  };
  WithEachThrow("Task", [&] {
    return owing([](auto f) {
      Task task(std::move(f));
      std::move(task).Run();
    });
  });
  WithEachThrow("ExecuteWith", [&] {
    return owing([&](auto f) { executor.ExecuteWith(Task(std::move(f)), TaskOptions()).IgnoreError(); });
  });
  WithEachThrow("OnReady, ready", [&] { return owing([](auto f) { Event().OnReady(std::move(f)); }); });
  WithEachThrow("OnReady, later", [&] {
    return owing([](auto f) {
      EventPromise later("later");
      later.event().OnReady(std::move(f));
      later.SetReady();
    });
  });
  WithEachThrow("AndThen in a task", [&] {
    return owing([&](auto f) { MakeAvailableAsyncValueRef<int>(1).AndThen(executor, std::move(f)); });
  });
  WithEachThrow("Future::OnReady in a task",
                [&] { return owing([&](auto f) { Future<>(OkStatus()).OnReady(executor, std::move(f)); }); });
  WithEachThrow("RunWhenReady", [&] {
    return owing([&](auto f) {
      RunWhenReady(std::vector<AsyncValueRef<int>>{MakeAvailableAsyncValueRef<int>(1)}, std::move(f));
    });
  });
}

TEST(ThrowingExceptionTest, ACopyThatAWaiterAsksForIsItsError) {
  auto source = MakeUnconstructedAsyncValueRef<Fragile>();
  Future<Fragile> future(source);
  std::vector<Status> heard;
  future.OnReady([&](StatusOr<Fragile> result) { heard.push_back(result.status()); });
  Promise<Fragile> follower("follower");
  Future<Fragile> follows = follower.future();
  std::move(follower).Forward(future);
  source.emplace();
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_TRUE(heard[0].ok());
  heard.clear();
  WithEachThrow("OnReady", [&] {
    Status error;
    future.OnReady([&](const StatusOr<Fragile>& result) { error = result.status(); });
    return error.ok() ? Event() : Event::Error(error);
  });
  WithEachThrow("Forward", [&] {
    Promise<Fragile> promise("p");
    Future<Fragile> followed = promise.future();
    std::move(promise).Forward(future);
    return followed.AsEvent();
  });
}

TEST(ThrowingExceptionTest, CallbacksOfBuffers) {
  const Client client = Client::Create().value();
  const MemorySpace space = client.devices().at(0).default_memory_space();
  static const char bytes[4] = {};
  const std::vector<std::int64_t> dims = {4};
  for (int n = 1; n < 50; ++n) {
    const int before = Fragile::alive;
    int told = 0;
    Fragile::thrown = false;
    Fragile::fuse = -1;
    {
      std::vector<HostShard> shards(3, HostShard{bytes, DType::kU8, dims, space});
      for (HostShard& shard : shards) shard.on_done = [&told, held = Fragile()](const Status&) { ++told; };
      Fragile::fuse = n;
      const auto made = Buffer::FromHostShards(shards);
      Fragile::fuse = -1;
      EXPECT_EQ(made.ok(), !Fragile::thrown) << made.status();
      EXPECT_TRUE(!made.ok() || told == 3) << told;
    }
    EXPECT_EQ(Fragile::alive, before) << "throw " << n;
    if (!Fragile::thrown) break;
  }
  alignas(64) static char memory[64];
  WithEachThrow("Import", [&] {
    return RawBuffer::Import(space, memory, 64, Mutability::kMutable, [held = Fragile()] {})->allocation_event();
  });
  WithEachThrow("FromHost", [&] {
    return Buffer::FromHost(bytes, DType::kU8, dims, space, FromHostOptions(), [held = Fragile()](const Status&) {})
        ->buffer.ready_event();
  });
  WithEachThrow("Semaphore::AcquireAsync", [&] {
    const Semaphore semaphore("s", 1);
    semaphore.AcquireAsync(1, [held = Fragile()](const StatusOr<Permit>&) {});
    return semaphore.available() == 1 ? Event() : Event::Error(InternalError("a permit was lost"));
  });
  WithEachThrow("OnCancel", [&] {
    const CancelSource source;
    const CancelRegistration registration = source.token().OnCancel([held = Fragile()] {});
    source.Cancel();
    return Event();
  });
}

/// An exception that says nothing.
struct Silent : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

TEST(ThrowingExceptionTest, AnExceptionWhoseWhatIsNullIsOneLikeOthers) {
  testing::internal::CaptureStderr();
  Event().OnReady([] { throw Silent(); });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "purlin: exception in waiter: (what() is null)\n");
  CountingExecutor executor;
  const auto thrower = []() -> int { throw Silent(); };
  const Status error = MakeAsyncValueRef(executor, thrower).GetError();
  EXPECT_TRUE(IsInternal(error)) << error;
  EXPECT_EQ(error.message(), "making the value threw: (what() is null)");
  std::promise<int> promise;
  promise.set_exception(std::make_exception_ptr(Silent()));
  const Status from_std = adapters::FromStd(promise.get_future(), executor).Await().status();
  EXPECT_TRUE(IsInternal(from_std)) << from_std;
}

}  // namespace
}  // namespace purlin
