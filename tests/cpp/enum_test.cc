// Numbers that are no value of an enum, for every public enum that is given to the library: each is an error that names
// the number, or what the enum's header says. A row is a way in. .ci/check/numbers looks that every public enum is
// named here.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/purlin.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

/// The error of what `call` does with a number, or OK.
struct Row {
  const char* name;
  int max;
  std::function<Status(int number)> call;
};

template <typename E>
E Raw(int number) {
  return static_cast<E>(static_cast<std::underlying_type_t<E>>(number));
}

/// What an unscoped number becomes on its way through the enum's type.
template <typename E>
std::string Shown(int number) {
  return std::to_string(static_cast<std::int64_t>(static_cast<std::underlying_type_t<E>>(number)));
}

class EnumTest : public testing::Test {
 protected:
  /// Every row with -1, max + 1 and INT_MAX: kInvalidArgument, and the number in the message.
  template <typename E>
  static void Refuse(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      for (const int number : {-1, row.max + 1, std::numeric_limits<int>::max()}) {
        const Status status = row.call(number);
        EXPECT_TRUE(IsInvalidArgument(status)) << row.name << " with " << number << ": " << status;
        EXPECT_NE(status.message().find(Shown<E>(number)), std::string_view::npos)
            << row.name << " with " << number << ": " << status;
      }
      for (int number = 0; number <= row.max; ++number) {
        EXPECT_FALSE(IsInvalidArgument(row.call(number))) << row.name << " with " << number << ": " << row.call(number);
      }
    }
  }
  static Client NewClient() {
    ClientOptions options;
    options.worker_count = 1;
    return Client::Create(options).value();
  }
  static ThreadPoolAsyncWorkRunner NewPool() {
    ThreadPoolOptions options;
    options.thread_count = 1;
    return ThreadPoolAsyncWorkRunner::Create(options).value();
  }

  Client client_ = NewClient();
  MemorySpace space_ = client_.devices().at(0).default_memory_space();
};

TEST_F(EnumTest, ErrorPolicy) {
  const auto with = [](int number, bool fail_fast) {
    JoinOptions options;
    options.policy = Raw<ErrorPolicy>(number);
    options.fail_fast = fail_fast;
    return options;
  };
  std::vector<Row> rows;
  for (const bool fail_fast : {false, true}) {
    rows.push_back({"WhenAll of none", 3, [=](int number) { return WhenAll({}, with(number, fail_fast)).error(); }});
    rows.push_back(
        {"WhenAll of one", 3, [=](int number) { return WhenAll({Event()}, with(number, fail_fast)).error(); }});
    rows.push_back({"WhenAll of failed", 3, [=](int number) {
                      const Event failed = Event::Error(AbortedError("a"));
                      return WhenAll({failed, failed}, with(number, fail_fast)).error();
                    }});
    rows.push_back({"WhenAll of pending", 3, [=](int number) {
                      const EventPromise promise;
                      return WhenAll({promise.event(), promise.event()}, with(number, fail_fast)).error();
                    }});
    rows.push_back({"JoinFutures of none", 3, [=](int number) {
                      return JoinFutures(Span<const Future<>>(), with(number, fail_fast)).AsEvent().error();
                    }});
    rows.push_back({"JoinFutures of one", 3, [=](int number) {
                      const std::vector<Future<>> one = {Future<>(OkStatus())};
                      return JoinFutures(one, with(number, fail_fast)).AsEvent().error();
                    }});
    rows.push_back({"JoinFutures of values", 3, [=](int number) {
                      std::vector<Future<int>> values = {Future<int>(1), Future<int>(2)};
                      return JoinFutures(std::move(values), with(number, fail_fast)).AsEvent().error();
                    }});
    rows.push_back(
        {"JoinFuturesTo", 3, [=](int number) {
           using Pair = std::pair<int, int>;
           return JoinFuturesTo<Pair>(with(number, fail_fast), Future<int>(1), Future<int>(2)).AsEvent().error();
         }});
    rows.push_back({"MakeFutureWhenReady", 3, [=](int number) {
                      const EventPromise promise;
                      return MakeFutureWhenReady({promise.event()}, with(number, fail_fast)).AsEvent().error();
                    }});
    rows.push_back({"CountDownAsyncValueRef", 3, [=](int number) {
                      CountDownOptions options;
                      options.policy = Raw<ErrorPolicy>(number);
                      options.fail_fast = fail_fast;
                      CountDownAsyncValueRef<Chain> all(2, options);
                      const Status at_once = all.AsRef().GetError();
                      EXPECT_FALSE(all.CountDown() && all.CountDown(AbortedError("counted")) && !at_once.ok());
                      return at_once;
                    }});
    rows.push_back({"CountDownAsyncValueRef of none", 3, [=](int number) {
                      CountDownOptions options;
                      options.policy = Raw<ErrorPolicy>(number);
                      options.fail_fast = fail_fast;
                      return CountDownAsyncValueRef<Chain>(0, options).AsRef().GetError();
                    }});
  }
  Refuse<purlin::ErrorPolicy>(rows);
}

TEST_F(EnumTest, WatchdogAction) {
  Refuse<purlin::WatchdogAction>({{"Watchdog::Start", 2, [](int number) {
                                     WatchdogOptions options;
                                     options.action = Raw<purlin::WatchdogAction>(number);
                                     options.sink = [](std::string_view) {};
                                     return Watchdog::Start(options).status();
                                   }}});
}

TEST_F(EnumTest, Priority) {
  ThreadPoolAsyncWorkRunner pool = NewPool();
  SerialQueue queue(pool);
  CountingExecutor own;
  std::vector<Row> rows;
  for (Executor* executor :
       {static_cast<Executor*>(&pool), static_cast<Executor*>(&queue), static_cast<Executor*>(&own)}) {
    rows.push_back({"ExecuteWith", 2, [executor](int number) {
                      TaskOptions options;
                      options.priority = Raw<purlin::Priority>(number);
                      EventPromise owed("owed");
                      const Event event = owed.event();
                      const Status status =
                          executor->ExecuteWith(Task([owed = std::move(owed)]() mutable { owed.SetReady(); }), options);
                      // A refused task is destroyed, so what it owed has failed.
                      EXPECT_EQ(status.ok(), event.Wait().ok()) << event.error();
                      return status;
                    }});
  }
  Refuse<purlin::Priority>(rows);
}

TEST_F(EnumTest, ShutdownMode) {
  Refuse<purlin::ShutdownMode>({
      {"ThreadPoolAsyncWorkRunner::Shutdown", 1,
       [](int number) {
         ShutdownOptions options;
         options.mode = Raw<purlin::ShutdownMode>(number);
         ThreadPoolAsyncWorkRunner pool = NewPool();
         const Status status = pool.Shutdown(options);
         // Nothing happens on an error: the pool works.
         EXPECT_EQ(status.ok(), IsCancelled(pool.Schedule([] {})));
         return status;
       }},
      {"ElasticPool::Shutdown", 1,
       [](int number) {
         ShutdownOptions options;
         options.mode = Raw<purlin::ShutdownMode>(number);
         ElasticPool pool = ElasticPool::Create({}).value();
         const Status status = pool.Shutdown(options);
         EXPECT_EQ(status.ok(), IsCancelled(pool.Schedule([] {})));
         return status;
       }},
      {"SerialQueue::Shutdown", 1,
       [](int number) {
         ShutdownOptions options;
         options.mode = Raw<purlin::ShutdownMode>(number);
         SerialQueue queue(NewPool());
         const Status status = queue.Shutdown(options);
         EXPECT_EQ(status.ok(), IsCancelled(queue.Schedule([] {})));
         return status;
       }},
      {"Client::Shutdown", 1,
       [](int number) {
         ShutdownOptions options;
         options.mode = Raw<purlin::ShutdownMode>(number);
         return NewClient().Shutdown(options);
       }},
      {"ClientOptions::shutdown_at_end", 1,
       [](int number) {
         ClientOptions options;
         options.worker_count = 1;
         options.shutdown_at_end = ShutdownOptions();
         options.shutdown_at_end->mode = Raw<purlin::ShutdownMode>(number);
         return Client::Create(options).status();
       }},
  });
}

TEST_F(EnumTest, OomPolicy) {
  const auto with = [](int number) {
    AllocOptions options;
    options.oom = Raw<purlin::OomPolicy>(number);
    return options;
  };
  const std::vector<std::int64_t> dims = {4};
  static const char bytes[4] = {};
  Refuse<purlin::OomPolicy>({
      {"RawBuffer::Allocate", 2, [&](int number) { return RawBuffer::Allocate(space_, 4, with(number)).status(); }},
      {"RawBuffer::CreateChannel", 2,
       [&](int number) { return RawBuffer::CreateChannel(space_, 4, with(number)).status(); }},
      {"RawBufferPromise::Allocate", 2,
       [&](int number) {
         auto channel = RawBuffer::CreateChannel(space_, 4);
         return channel->second.Allocate(Raw<purlin::OomPolicy>(number));
       }},
      {"Buffer::CreateUninitialized", 2,
       [&](int number) {
         return Buffer::CreateUninitialized(Shape(purlin::DType::kU8, dims), space_, nullptr, with(number)).status();
       }},
      {"Buffer::FromHost", 2,
       [&](int number) {
         FromHostOptions options;
         options.alloc = with(number);
         return Buffer::FromHost(bytes, purlin::DType::kU8, dims, space_, options).status();
       }},
      {"Buffer::FromHostShards", 2,
       [&](int number) {
         const HostShard shard{bytes, purlin::DType::kU8, dims, space_};
         return Buffer::FromHostShards({shard}, HostBufferSemantics::kImmutableOnlyDuringCall, with(number)).status();
       }},
      {"AsyncHostToDeviceTransferManager::Create", 2,
       [&](int number) {
         const TransferSpec spec{Shape(purlin::DType::kU8, dims)};
         return AsyncHostToDeviceTransferManager::Create({&spec, 1}, space_, with(number)).status();
       }},
  });
}

TEST_F(EnumTest, Mutability) {
  alignas(64) static char bytes[64];
  Refuse<purlin::Mutability>({{"RawBuffer::Import", 1, [&](int number) {
                                 return RawBuffer::Import(space_, bytes, 64, Raw<purlin::Mutability>(number)).status();
                               }}});
}

TEST_F(EnumTest, HostBufferSemantics) {
  static const char bytes[4] = {};
  const std::vector<std::int64_t> dims = {4};
  const auto told_once = [&](int number, auto call) {
    int told = 0;
    const Status status = call(Raw<purlin::HostBufferSemantics>(number), [&told](const Status&) { ++told; });
    EXPECT_EQ(told, 1) << "on_done is told once, of errors before the call returns";
    return status;
  };
  Refuse<purlin::HostBufferSemantics>({
      {"Buffer::FromHost of bytes", 3,
       [&](int number) {
         return Buffer::FromHost(bytes, 4, purlin::DType::kU8, dims, space_, Raw<purlin::HostBufferSemantics>(number))
             .status();
       }},
      {"Buffer::FromHost", 3,
       [&](int number) {
         // Zero-copy calls on_done when the buffer is destroyed, so that nothing of this frame is left by then.
         return told_once(number, [&](auto semantics, auto on_done) {
           FromHostOptions options;
           options.semantics = semantics;
           auto made = Buffer::FromHost(bytes, purlin::DType::kU8, dims, space_, options, on_done);
           if (made.ok()) static_cast<void>(made->buffer.ready_event().Wait());
           return std::move(made).status();
         });
       }},
      {"Buffer::FromHostShards", 3,
       [&](int number) {
         return told_once(number, [&](auto semantics, auto on_done) {
           HostShard shard{bytes, purlin::DType::kU8, dims, space_};
           shard.on_done = on_done;
           auto made = Buffer::FromHostShards({shard}, semantics);
           if (made.ok()) static_cast<void>(made->at(0).ready_event().Wait());
           return std::move(made).status();
         });
       }},
  });
}

TEST_F(EnumTest, DType) {
  static const char bytes[16] = {};
  // 255 is no type, and neither is what follows the last. 0 is kInvalid, 23 a token without elements.
  for (const int number : {-1, static_cast<int>(purlin::DType::kF4E2M1FN) + 1, std::numeric_limits<int>::max()}) {
    const auto dtype = Raw<purlin::DType>(number);
    EXPECT_EQ(BitWidth(dtype), 0U);
    EXPECT_EQ(DTypeName(dtype), "invalid");
    const std::vector<std::int64_t> dims = {1};
    const Shape shape(dtype, dims);
    EXPECT_EQ(shape.ToString(), "invalid[1]");
    const TransferSpec spec{shape};
    const HostShard shard{bytes, dtype, dims, space_};
    FromHostOptions zero_copy;
    zero_copy.semantics = purlin::HostBufferSemantics::kImmutableZeroCopy;
    auto floats = Buffer::CreateUninitialized(Shape(purlin::DType::kF32, dims), space_).value();
    auto manager = AsyncHostToDeviceTransferManager::Create(
                       std::vector<TransferSpec>{TransferSpec{Shape(purlin::DType::kU8, dims)}}, space_)
                       .value();
    ReadNpyOptions npy;
    npy.dtype = dtype;
    const std::vector<std::pair<const char*, Status>> statuses = {
        {"element_count", shape.element_count().status()},
        {"on_device_size_bytes", shape.on_device_size_bytes().status()},
        {"host_size_bytes", shape.host_size_bytes().status()},
        {"FromHost of bytes", Buffer::FromHost(bytes, 1, dtype, dims, space_).status()},
        {"FromHost", Buffer::FromHost(bytes, dtype, dims, space_, zero_copy).status()},
        {"FromHostShards", Buffer::FromHostShards({shard}).status()},
        {"CreateUninitialized", Buffer::CreateUninitialized(shape, space_).status()},
        {"CreateError", Buffer::CreateError(AbortedError("x"), shape, space_).status()},
        {"CreateChannel", Buffer::CreateChannel(shape, space_).status()},
        {"FromRaw", Buffer::FromRaw(RawBuffer::Allocate(space_, 1).value(), shape).status()},
        {"Bitcast", floats.Bitcast(shape).status()},
        {"Create of a manager", AsyncHostToDeviceTransferManager::Create({&spec, 1}, space_).status()},
        {"TransferArrayToBuffer", manager.TransferArrayToBuffer(0, bytes, dtype, dims)},
        {"ReadNpy", ReadNpy("/nonexistent", space_, npy).status()},
    };
    for (const auto& [name, status] : statuses) {
      EXPECT_TRUE(IsInvalidArgument(status)) << name << ": " << status;
      EXPECT_NE(status.message().find(Shown<purlin::DType>(number)), std::string_view::npos) << name << ": " << status;
    }
  }
}

TEST_F(EnumTest, OperandAccess) {
  const auto build = [](int number) {
    ProgramBuilder builder("p");
    const Slice x = builder.AddDonatedParameter(ArraySpec(Shape(DType::kU8, {4})));
    const Kernel kernel = Kernel::FromClosure("k", [](const KernelCall&) {});
    Operand operand = Operand::Read(x);
    operand.access = Raw<OperandAccess>(number);
    builder.AddKernel(kernel, {operand});
    return std::move(builder).Build().status();
  };
  const auto bind = [this](int number) {
    const KernelLoaderSpec spec =
        KernelLoaderSpec::Function([](const KernelFrame*) -> void* { return nullptr; }, "k", 1);
    const LoadedKernel kernel = LoadedKernel::Load(client_.devices().at(0), spec).value();
    return kernel.Bind({}, {{Raw<OperandAccess>(number), 4}}).status();
  };
  Refuse<OperandAccess>({{"ProgramBuilder", 2, build}, {"LoadedKernel", 2, bind}});
}

TEST_F(EnumTest, KernelPayload) {
  const auto load = [this](int number) {
    KernelLoaderSpec spec = KernelLoaderSpec::Function([](const KernelFrame*) -> void* { return nullptr; }, "k", 0);
    spec.payload = Raw<KernelPayload>(number);
    spec.code = "// no code";
    return LoadedKernel::Load(client_.devices().at(0), spec).status();
  };
  Refuse<KernelPayload>({{"LoadedKernel", 2, load}});
}

/// The answer to a program whose one command is a collective.
Status Exchange(const Collective& collective) {
  ProgramBuilder builder("p");
  const Slice x = builder.AddParameter(ArraySpec(Shape(DType::kU8, {4})));
  const Slice y = builder.AddResult(ArraySpec(Shape(DType::kU8, {4})));
  builder.AddCollective(collective, {{x, y, DType::kU8}});
  return std::move(builder).Build().status();
}

TEST_F(EnumTest, CollectiveKind) {
  const auto exchange = [](int number) {
    Collective collective = Collective::AllGather();
    collective.kind = Raw<purlin::CollectiveKind>(number);
    return Exchange(collective);
  };
  Refuse<purlin::CollectiveKind>({{"ProgramBuilder", 4, exchange}});
}

TEST_F(EnumTest, Reduction) {
  const auto exchange = [](int number) { return Exchange(Collective::AllReduce(Raw<purlin::Reduction>(number))); };
  Refuse<purlin::Reduction>({{"ProgramBuilder", 5, exchange}});
}

TEST_F(EnumTest, GroupMode) {
  const auto exchange = [](int number) {
    Collective collective = Collective::AllGather();
    collective.mode = Raw<purlin::GroupMode>(number);
    return Exchange(collective);
  };
  Refuse<purlin::GroupMode>({{"ProgramBuilder", 3, exchange}});
}

TEST_F(EnumTest, FileAccess) {
  Refuse<purlin::FileAccess>({
      {"ReadNpy", 1,
       [&](int number) {
         ReadNpyOptions options;
         options.access = Raw<purlin::FileAccess>(number);
         return ReadNpy("/nonexistent", space_, options).status();
       }},
      {"SafetensorsFile::Open", 1,
       [&](int number) { return SafetensorsFile::Open("/nonexistent", Raw<purlin::FileAccess>(number)).status(); }},
  });
}

TEST_F(EnumTest, StatusCode) {
  for (const int number : {-1, 17, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    const auto code = Raw<purlin::StatusCode>(number);
    const Status status(code, "made with a number");
    EXPECT_TRUE(IsUnknown(status)) << status;
    EXPECT_EQ(status.message(), "made with a number");
    EXPECT_EQ(StatusCodeToString(code), "");
  }
}

// Not taken by any call, only answered: EventState, AsyncValueState, Aliasing.

}  // namespace
}  // namespace purlin
