// Runs of programs: arguments, donation, given results, failures, several devices, and what outlives what.
#include "purlin/executable.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "counting_allocations.h"
#include "program_fixture.h"
#include "purlin/trace.h"

namespace purlin {
namespace {

class ExecutableTest : public ProgramFixture {
 protected:
  /// A buffer that is ready, or has failed, when the promise says.
  std::pair<Buffer, EventPromise> Pending(const Bytes& bytes) const {
    EventPromise promise("pending");
    const Shape shape(DType::kU8, {static_cast<std::int64_t>(bytes.size())});
    Buffer buffer = Buffer::FromRaw(FilledIn(space_, bytes), shape, nullptr, promise.event()).value();
    return {std::move(buffer), std::move(promise)};
  }
  Buffer Failed(const Status& error) const {
    return Buffer::CreateError(error, Shape(DType::kU8, {4}), space_).value();
  }
  /// Copies `count` parameters to as many results.
  static Program Copies(std::size_t count) {
    ProgramBuilder builder("copies");
    for (std::size_t i = 0; i < count; ++i) {
      const Slice x = builder.AddParameter(U8(4));
      builder.AddCopy(x, builder.AddResult(U8(4)));
    }
    return std::move(builder).Build().value();
  }
};

TEST_F(ExecutableTest, ItDescribesItsProgram) {
  ProgramBuilder builder("described");
  const Slice x = builder.AddParameter(U8(4));
  const Slice y = builder.AddDonatedParameter(U8(4));
  builder.AddCopy(x, y).AddFill(std::string_view("\0", 1), builder.AddTemporary(128)).AddCopy(x, y);
  builder.AddConstant("12");
  const Executable executable(std::move(builder).Build().value());
  EXPECT_EQ(executable.program().name(), "described");
  EXPECT_EQ(executable.Describe().substr(0, executable.Describe().rfind("a run: ")),
            "described: (u8[4], u8[4]) -> (u8[4])\ncommands: 2 copy, 1 fill\n"
            "memory: 8 bytes of parameters, 4 of results, 4 of both, 2 of constants, 128 of temporaries\n");
  const ProgramSummary summary = executable.Summary();
  const std::vector<std::pair<std::string, std::size_t>> counts = {{"copy", 2}, {"fill", 1}};
  EXPECT_EQ(summary.command_counts, counts);
  EXPECT_EQ((std::vector<std::size_t>{summary.parameter_bytes, summary.result_bytes, summary.alias_bytes,
                                      summary.constant_bytes, summary.temporary_bytes}),
            (std::vector<std::size_t>{8, 4, 4, 2, 128}));
  EXPECT_GT(summary.cost_bytes.value_or(0), 0U);
  EXPECT_EQ(summary.flops, 0U);

  ProgramBuilder endless("endless");
  const Slice more = endless.AddDonatedParameter(U8(1));
  endless.AddWhile(Sequence(), more, Sequence());
  EXPECT_FALSE(Executable(std::move(endless).Build().value()).Summary().cost_bytes.has_value());
}

TEST_F(ExecutableTest, ItIsLoadedForDevicesOfOneClient) {
  const Executable executable(Unary(AddOne(), "p"));
  const std::vector<Device> devices = client_.devices();
  const LoadedExecutable loaded = LoadedExecutable::Load(executable, devices).value();
  EXPECT_EQ(loaded.devices(), devices);
  EXPECT_EQ(loaded.executable().program().name(), "p");
  const auto refused = [&](const std::vector<Device>& some, std::size_t partition_count, std::string_view why) {
    const Status status = LoadedExecutable::Load(executable, some, partition_count).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message(), "'p' cannot be loaded: " + std::string(why));
  };
  refused({}, 1, "no device is given");
  refused({devices[0], devices[0]}, 1, "host:0 is there twice");
  refused(devices, 0, "2 devices make no replicas of 0 partitions");
  refused(devices, 3, "2 devices make no replicas of 3 partitions");
  refused({devices[0], MakeClient().devices()[1]}, 1, "host:0 and host:1 are of different clients");
}

TEST_F(ExecutableTest, ResultsOfAnyNumberAreHandedOver) {
  for (const std::size_t count : std::vector<std::size_t>{0, 1, 4, 5, 40}) {
    std::vector<Buffer> arguments;
    for (std::size_t i = 0; i < count; ++i) arguments.push_back(Array({static_cast<std::uint8_t>(i), 0, 0, 0}));
    Execution execution = Load(Copies(count)).Execute(arguments).value();
    EXPECT_EQ(execution.outputs.size(), count);
    EXPECT_EQ(execution.outputs.empty(), count == 0);
    std::uint8_t next = 0;
    for (const Buffer& output : execution.outputs) EXPECT_EQ(Read(output)[0], next++);
    // Some are moved out of the list, and the list itself moves.
    std::optional<Buffer> last;
    if (count > 0) last = std::move(execution.outputs[count - 1]);
    Outputs moved(std::move(execution.outputs));
    EXPECT_TRUE(execution.outputs.empty());  // NOLINT(bugprone-use-after-move): the point.
    execution.outputs = std::move(moved);
    EXPECT_EQ(execution.outputs.size(), count);
    EXPECT_TRUE(count == 0 || Read(*last)[0] == count - 1);
  }
}

TEST_F(ExecutableTest, AWarmRunAllocatesNothingInCpp) {
  const LoadedExecutable loaded = Load(Unary(AddOne()));
  const std::vector<Buffer> arguments = {Array({1, 2, 3, 4})};
  ASSERT_TRUE(loaded.Execute(arguments).ok());
  const int count = AllocationsOf([&] {
    const StatusOr<Execution> execution = loaded.Execute(arguments);
    ASSERT_TRUE(execution.ok() && execution->done.IsReady());
  });
  EXPECT_EQ(count, 0);
}

TEST_F(ExecutableTest, ADonatedArgumentBecomesTheResult) {
  const LoadedExecutable loaded = Load(InPlace(Increment()));
  const Buffer argument = Array({1, 2, 3, 4});
  void* const address = Address(argument);
  ExecuteOptions options;
  options.label = "step";
  Execution execution = loaded.Execute({argument}, options).value();
  const std::string place = LineAbove();
  EXPECT_TRUE(argument.IsDeleted());
  EXPECT_EQ(Read(execution.outputs[0]), (Bytes{2, 3, 4, 5}));
  EXPECT_EQ(Address(execution.outputs[0]), address);

  const Status again = loaded.Execute({argument}).status();
  EXPECT_TRUE(IsInvalidArgument(again)) << again;
  const std::string why =
      "'in_place' was not run: argument 0, Buffer(u8[4] in host:0/device): Donation requested for invalid buffer. It "
      "was "
      "donated by 'step' at " +
      place + ", ";
  EXPECT_EQ(again.message().substr(0, why.size()), why);
}

TEST_F(ExecutableTest, AnArgumentThatMustNotBeDonatedIsCopied) {
  const LoadedExecutable loaded = Load(InPlace(Increment()));
  const Buffer argument = Array({1, 2, 3, 4});
  const std::size_t kept[] = {0};
  ExecuteOptions options;
  options.non_donatable_input_indices = kept;
  Execution execution = loaded.Execute({argument}, options).value();
  EXPECT_EQ(Read(execution.outputs[0]), (Bytes{2, 3, 4, 5}));
  EXPECT_EQ(Read(argument), (Bytes{1, 2, 3, 4}));
  const std::size_t beyond[] = {1};
  options.non_donatable_input_indices = beyond;
  const Status status = loaded.Execute({argument}, options).status();
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  EXPECT_EQ(status.message(), "'in_place' was not run: argument 1 shall not be donated, and there are 1");
}

TEST_F(ExecutableTest, RunsOfOneExecutionStreamAreInOrder) {
  const LoadedExecutable loaded = Load(Copies(1));
  const Buffer argument = Array({1, 2, 3, 4});
  EventPromise promise;
  const Event gate = promise.event();
  ExecuteOptions options;
  options.execution_stream_id = 7;
  options.dependencies = {&gate, 1};
  const Execution first = loaded.Execute({argument}, options).value();
  options.dependencies = {};
  const Execution second = loaded.Execute({argument}, options).value();
  options.execution_stream_id = 8;
  const Execution other = loaded.Execute({argument}, options).value();
  EXPECT_TRUE(other.done.Wait().ok());
  EXPECT_FALSE(first.done.IsReady() || second.done.IsReady());
  promise.SetReady();
  EXPECT_TRUE(second.done.Wait().ok());
  EXPECT_TRUE(first.done.IsReady());
}

TEST_F(ExecutableTest, OneBufferMayBeTwoArgumentsUnlessItIsDonated) {
  const Buffer buffer = Array({1, 2, 3, 4});
  Execution execution = Load(Copies(2)).Execute({buffer, buffer}).value();
  EXPECT_EQ(Read(execution.outputs[1]), (Bytes{1, 2, 3, 4}));

  ProgramBuilder builder("p");
  builder.AddParameter(U8(4));
  builder.AddDonatedParameter(U8(4));
  builder.AddDonatedParameter(U8(4));
  const LoadedExecutable loaded = Load(std::move(builder).Build().value());
  const Buffer other = Array({5, 6, 7, 8});
  const Status used = loaded.Execute({buffer, buffer, other}).status();
  EXPECT_TRUE(IsInvalidArgument(used)) << used;
  EXPECT_TRUE(Contains(used.message(),
                       "Attempt to use a buffer that was previously donated in the same call to "
                       "Execute(), as in `f(donate(a), a)`: argument 0 and argument 1 are the same"))
      << used;
  const Status twice = loaded.Execute({other, buffer, buffer}).status();
  EXPECT_TRUE(Contains(twice.message(), "Attempt to donate the same buffer twice in Execute()")) << twice;
  EXPECT_FALSE(buffer.IsDeleted() || other.IsDeleted()) << "all arguments are as they were";
}

TEST_F(ExecutableTest, AResultGetsMemoryThatIsGiven) {
  const LoadedExecutable loaded = Load(Copies(2));
  const std::vector<Buffer> arguments = {Array({1, 2, 3, 4}), Array({5, 6, 7, 8})};
  std::vector<Buffer> results = {Array({0, 0, 0, 0}), Array({0, 0, 0, 0})};
  void* const address = Address(results[1]);
  const Buffer taken(std::move(results[0]));  // Empty: new memory.
  ExecuteOptions options;
  options.results = results;
  Execution execution = loaded.Execute(arguments, options).value();
  EXPECT_TRUE(results[1].IsDeleted());
  EXPECT_EQ(Address(execution.outputs[1]), address);
  EXPECT_EQ(Read(execution.outputs[0]), (Bytes{1, 2, 3, 4}));
  EXPECT_EQ(Read(execution.outputs[1]), (Bytes{5, 6, 7, 8}));

  options.results = {results.data(), 1};
  const Status status = loaded.Execute(arguments, options).status();
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  EXPECT_EQ(status.message(),
            "'copies' was not run: memory for 1 results is given, and there are 2 on each of 1 devices");
}

TEST_F(ExecutableTest, ArgumentsThatDoNotFitAreRefusedByName) {
  const LoadedExecutable loaded = Load(Unary(AddOne(), "p"));
  const auto refused = [&](Span<const Buffer> arguments, std::string_view why) {
    const Status status = loaded.Execute(arguments).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message(), "'p' was not run: " + std::string(why));
  };
  refused({}, "0 arguments are given, and the program takes 1");
  refused({Array({1, 2, 3, 4, 5})}, "argument 0 is u8[5], and the program takes u8[4]");
  const MemorySpace elsewhere = client_.devices()[1].default_memory_space();
  refused({Array({1, 2, 3, 4}).CopyToMemorySpace(elsewhere).value()},
          "argument 0 is in host:1/device, and the program takes it in host:0/device");
  Buffer buffer = Array({1, 2, 3, 4});
  const Buffer taken(std::move(buffer));
  const Status empty = loaded.Execute({buffer}).status();  // NOLINT(bugprone-use-after-move): the point.
  EXPECT_TRUE(IsFailedPrecondition(empty)) << empty;
  EXPECT_EQ(empty.message(), "this Buffer was moved from, released or given away");
}

TEST_F(ExecutableTest, UnsoundOptionsAreRefused) {
  const LoadedExecutable loaded = Load(Unary(AddOne()));
  const Buffer argument = Array({1, 2, 3, 4});
  for (const std::size_t struct_size : {std::size_t{0}, sizeof(ExecuteOptions) - 1, std::size_t{4097}}) {
    ExecuteOptions options;
    options.struct_size = struct_size;
    const Status status = loaded.Execute({argument}, options).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "ExecuteOptions::struct_size is " + std::to_string(struct_size))) << status;
  }
}

TEST_F(ExecutableTest, AFailedArgumentFailsTheOutputsAndRunsNothing) {
  int calls = 0;
  const LoadedExecutable loaded = Load(Unary(Kernel::FromClosure("count", [&](const KernelCall&) { ++calls; })));
  Execution execution = loaded.Execute({Failed(DataLossError("lost"))}).value();
  EXPECT_EQ(execution.done.Wait(), DataLossError("lost"));
  EXPECT_EQ(execution.outputs[0].ready_event().Wait(), DataLossError("lost"));

  auto [argument, promise] = Pending({1, 2, 3, 4});
  execution = loaded.Execute({argument}).value();
  EXPECT_FALSE(execution.done.IsReady());
  promise.SetError(AbortedError("late"));
  EXPECT_EQ(execution.outputs[0].ready_event().Wait(), AbortedError("late"));
  EXPECT_EQ(calls, 0);
}

TEST_F(ExecutableTest, ARunBeginsAfterItsArgumentsAndDependencies) {
  const LoadedExecutable loaded = Load(Unary(AddOne()));
  auto [argument, promise] = Pending({1, 2, 3, 4});
  EventPromise other("other");
  const std::vector<Event> dependencies = {other.event()};
  ExecuteOptions options;
  options.dependencies = dependencies;
  Execution execution = loaded.Execute({argument}, options).value();
  promise.SetReady();
  EXPECT_FALSE(execution.done.IsReady());
  other.SetReady();
  EXPECT_EQ(Read(execution.outputs[0]), (Bytes{2, 3, 4, 5}));

  const std::vector<Event> failed = {Event::Error(CancelledError("no"))};
  options.dependencies = failed;
  EXPECT_EQ(loaded.Execute({argument}, options).value().done.Wait(), CancelledError("no"));
}

TEST_F(ExecutableTest, AKernelThatFailsFailsTheRunWithItsCodeAndPlace) {
  const Kernel fails = Kernel::FromClosure("fails", [](const KernelCall&) { return OutOfRangeError("too far"); });
  Execution execution = Load(Unary(fails, "p")).Execute({Array({1, 2, 3, 4})}).value();
  const Status status = execution.done.Wait();
  EXPECT_TRUE(IsOutOfRange(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "command 0 (kernel 'fails') of 'p': too far")) << status;
  EXPECT_EQ(execution.outputs[0].ready_event().Wait(), status);

  const Buffer argument = Array({1, 2, 3, 4});
  execution = Load(InPlace(fails)).Execute({argument}).value();
  EXPECT_TRUE(IsOutOfRange(execution.outputs[0].ready_event().Wait()));
  EXPECT_TRUE(argument.IsDeleted()) << "the run had begun to write it";
}

TEST_F(ExecutableTest, EachDeviceGetsItsArguments) {
  ProgramBuilder builder("shards");
  const Slice x = builder.AddParameter(U8(4));
  builder.AddKernel(AddOne(), {Operand::Invariant(x), Operand::Write(builder.AddResult(U8(4)))});
  const auto loaded = LoadedExecutable::Load(Executable(std::move(builder).Build().value()), client_.devices()).value();
  const Buffer first = Array({1, 2, 3, 4});
  const Buffer second = Array({5, 6, 7, 8}).CopyToDevice(client_.devices()[1]).value();
  const std::vector<Execution> runs = loaded.ExecuteSharded({{&first, 1}, {&second, 1}}).value();
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(Read(runs[0].outputs[0]), (Bytes{2, 3, 4, 5}));
  EXPECT_EQ(Read(runs[1].outputs[0]), (Bytes{6, 7, 8, 9}));
  EXPECT_EQ(runs[1].outputs[0].device(), client_.devices()[1]);

  const Status one = loaded.Execute({first}).status();
  EXPECT_TRUE(IsFailedPrecondition(one)) << one;
  EXPECT_EQ(one.message(), "'shards' is loaded for 2 devices; a sharded run has arguments for each of them");
  const Status few = loaded.ExecuteSharded({{&first, 1}}).status();
  EXPECT_EQ(few.message(), "'shards' was not run: arguments for 1 devices are given, and it is loaded for 2");
  const Status wrong = loaded.ExecuteSharded({{&first, 1}, {&first, 1}}).status();
  EXPECT_TRUE(Contains(wrong.message(), "argument 0 of device 1 is in host:0/device")) << wrong;
}

/// A program of one collective, from a parameter of `given` bytes to a result of `got`.
StatusOr<Program> Exchange(const Collective& collective, std::int64_t given, std::int64_t got, DType dtype) {
  const auto bytes = [](std::int64_t count) { return ArraySpec(Shape(DType::kU8, {count})); };
  ProgramBuilder builder("exchange");
  const Slice from = builder.AddParameter(bytes(given));
  const Slice to = builder.AddResult(bytes(got));
  builder.AddCollective(collective, {{from, to, dtype}});
  return std::move(builder).Build();
}

TEST_F(ExecutableTest, TheDevicesOfALaunchExchangeArrays) {
  const Buffer first = Array({1, 2, 3, 4});
  const Buffer second = Array({5, 6, 7, 8}).CopyToDevice(client_.devices()[1]).value();
  const auto run = [&](const Collective& collective, std::int64_t got) {
    const Program program = Exchange(collective, 4, got, DType::kU8).value();
    const auto loaded = LoadedExecutable::Load(Executable(program), client_.devices()).value();
    const std::vector<Execution> runs = loaded.ExecuteSharded({{&first, 1}, {&second, 1}}).value();
    return std::vector<Bytes>{Read(runs[0].outputs[0]), Read(runs[1].outputs[0])};
  };
  using Both = std::vector<Bytes>;
  EXPECT_EQ(run(Collective::AllReduce(Reduction::kSum), 4), (Both{{6, 8, 10, 12}, {6, 8, 10, 12}}));
  EXPECT_EQ(run(Collective::AllReduce(Reduction::kMax), 4), (Both{{5, 6, 7, 8}, {5, 6, 7, 8}}));
  EXPECT_EQ(run(Collective::AllGather(), 8), (Both{{1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 5, 6, 7, 8}}));
  EXPECT_EQ(run(Collective::ReduceScatter(Reduction::kProduct), 2), (Both{{5, 12}, {21, 32}}));
  EXPECT_EQ(run(Collective::Permute({{1, 0}}), 4), (Both{{5, 6, 7, 8}, {0, 0, 0, 0}}));
  Collective turned = Collective::AllGather();
  turned.groups = {{1, 0}};
  EXPECT_EQ(run(turned, 8), (Both{{5, 6, 7, 8, 1, 2, 3, 4}, {5, 6, 7, 8, 1, 2, 3, 4}}));
  turned.groups = {{0}, {1}};
  EXPECT_EQ(run(turned, 4), (Both{{1, 2, 3, 4}, {5, 6, 7, 8}}));

  ProgramBuilder builder("all to all");
  const Slice x = builder.AddParameter(U8(4));
  const Slice y = builder.AddResult(U8(4));
  builder.AddCollective(Collective::AllToAll(),
                        {{x.Part(0, 2), y.Part(0, 2), DType::kU8}, {x.Part(2, 2), y.Part(2, 2), DType::kU8}});
  const Program program = std::move(builder).Build().value();
  const auto loaded = LoadedExecutable::Load(Executable(program), client_.devices()).value();
  const std::vector<Execution> runs = loaded.ExecuteSharded({{&first, 1}, {&second, 1}}).value();
  EXPECT_EQ(Read(runs[0].outputs[0]), (Bytes{1, 2, 5, 6}));
  EXPECT_EQ(Read(runs[1].outputs[0]), (Bytes{3, 4, 7, 8}));
}

TEST_F(ExecutableTest, ACollectiveThatNoDevicesCanExecuteIsRefused) {
  const auto refused = [](const Collective& collective, DType dtype = DType::kU8) {
    return Exchange(collective, 4, 4, dtype).status();
  };
  Collective strange = Collective::AllGather();
  strange.kind = static_cast<CollectiveKind>(9);
  Status status = refused(strange);
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "'exchange': a collective: the CollectiveKind is 9; it must be one of"))
      << status;
  status = refused(Collective::AllReduce(static_cast<Reduction>(6)));
  EXPECT_TRUE(Contains(status.message(), "the Reduction is 6")) << status;
  strange = Collective::AllGather();
  strange.mode = static_cast<GroupMode>(4);
  status = refused(strange);
  EXPECT_TRUE(Contains(status.message(), "the GroupMode is 4")) << status;
  status = refused(Collective::AllReduce(Reduction::kSum), static_cast<DType>(200));
  EXPECT_TRUE(Contains(status.message(), "200 is no DType")) << status;
  EXPECT_TRUE(IsInvalidArgument(refused(Collective::AllReduce(Reduction::kAnd), DType::kF32)));

  Collective absent = Collective::AllReduce(Reduction::kSum);
  absent.groups = {{0, 1, 2}};
  const Executable executable(Exchange(absent, 4, 4, DType::kU8).value());
  status = LoadedExecutable::Load(executable, client_.devices()).status();
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "2")) << status;
}

TEST_F(ExecutableTest, TheLaunchIdIsInTheTrace) {
  const LoadedExecutable loaded = Load(Unary(AddOne(), "traced"));
  const std::string path = testing::TempDir() + "/purlin_launch_" + std::to_string(getpid()) + ".json";
  ASSERT_TRUE(StartTrace(path).ok());
  ExecuteOptions options;
  options.launch_id = 4711;
  options.caller_waits = true;
  EXPECT_TRUE(loaded.Execute({Array({1, 2, 3, 4})}, options).ok());
  ASSERT_TRUE(StopTrace().ok());
  std::ifstream file(path);
  std::ostringstream trace;
  trace << file.rdbuf();
  std::remove(path.c_str());
  EXPECT_TRUE(Contains(trace.str(), "4711") && Contains(trace.str(), "traced")) << trace.str();
}

TEST_F(ExecutableTest, QuiesceWaitsForAllRuns) {
  const LoadedExecutable loaded = Load(Unary(AddOne()));
  EXPECT_TRUE(loaded.Quiesce().ok());
  auto [argument, promise] = Pending({1, 2, 3, 4});
  auto [other, fails] = Pending({1, 2, 3, 4});
  const Execution first = loaded.Execute({argument}).value();
  const Execution second = loaded.Execute({other}).value();
  EXPECT_EQ(loaded.runs_in_flight(), 2U);
  const Event idle = loaded.idle_event();
  fails.SetError(AbortedError("over as well"));
  EXPECT_FALSE(idle.IsReady());
  promise.SetReady();
  EXPECT_TRUE(loaded.Quiesce().ok());
  EXPECT_TRUE(idle.Wait().ok());
  EXPECT_EQ(loaded.runs_in_flight(), 0U);
}

TEST_F(ExecutableTest, ARunKeepsWhatItNeeds) {
  auto [argument, promise] = Pending({1, 2, 3, 4});
  std::optional<Execution> execution;
  {
    const LoadedExecutable loaded = Load(Unary(AddOne()));
    execution = loaded.Execute({argument}).value();
  }
  argument = Array({0});
  promise.SetReady();
  EXPECT_EQ(Read(execution->outputs[0]), (Bytes{2, 3, 4, 5}));
}

TEST_F(ExecutableTest, ALoadedExecutableIsDroppedWhileItsKernelRuns) {
  std::promise<void> begun;
  std::promise<void> released;
  auto owner = std::make_shared<int>(0);
  // Beyond what is executed inside the call.
  constexpr std::int64_t kLarge = 10'000'000;
  ProgramBuilder builder("large");
  const Slice x = builder.AddDonatedParameter(U8(kLarge));
  builder.AddKernel(Kernel::FromClosure("waits",
                                        [owner, &begun, wait = released.get_future().share()](const KernelCall& call) {
                                          begun.set_value();
                                          wait.wait();
                                          call.Write<std::uint8_t>(0)[0] = 7;
                                        }),
                    {Operand::ReadWrite(x)});
  std::optional<LoadedExecutable> loaded = Load(std::move(builder).Build().value());
  Execution execution = loaded->Execute({Array(Bytes(kLarge))}).value();
  begun.get_future().wait();
  loaded.reset();
  EXPECT_GT(owner.use_count(), 1) << "the run keeps the code";
  released.set_value();
  EXPECT_TRUE(execution.done.Wait().ok());
  EXPECT_EQ(Read(execution.outputs[0])[0], 7);
}

TEST_F(ExecutableTest, AfterTheEndOfTheClientNothingRuns) {
  const LoadedExecutable loaded = Load(Unary(AddOne(), "p"));
  const Buffer argument = Array({1, 2, 3, 4});
  ASSERT_TRUE(client_.Shutdown().ok());
  const Status status = loaded.Execute({argument}).status();
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "'p' was not run: ") && Contains(status.message(), "shut down")) << status;
  EXPECT_FALSE(argument.IsDeleted());
}

TEST_F(ExecutableTest, TheSimulatorRunsProgramsOnItsStreams) {
  const Client sim = MakeClient("sim");
  const MemorySpace space = sim.devices()[0].default_memory_space();
  const Bytes bytes = {1, 2, 3, 4};
  const Buffer argument = Buffer::FromHost(bytes.data(), 4, DType::kU8, {4}, space).value();
  const auto loaded = LoadedExecutable::Load(Executable(Unary(AddOne())), {sim.devices()[0]}).value();
  EXPECT_EQ(Result(loaded, {argument}), (Bytes{2, 3, 4, 5}));
}

}  // namespace
}  // namespace purlin
