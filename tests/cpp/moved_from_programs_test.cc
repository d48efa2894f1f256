// Every class of programs and their executables, every method, on an empty object: see moved_from_test.cc.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "purlin/compile_cache.h"
#include "purlin/executable.h"
#include "purlin/inline_executor.h"
#include "purlin/kernel.h"
#include "purlin/loaded_kernel.h"
#include "purlin/program.h"
#include "purlin/xla_cpu.h"
#include "purlin/xla_ffi_host.h"
#include "tests/cpp/moved_from_fixture.h"

namespace purlin {
namespace {

TEST_F(MovedFromTest, Programs) {
  const ArraySpec spec(shape);
  const Kernel kernel = Kernel::FromClosure("k", [](const KernelCall&) {});
  const Kernel no_kernel = Empty(Kernel(kernel));
  IS(Kernel, name, no_kernel.name().empty());
  ProgramBuilder no_builder = Empty(ProgramBuilder("p"));
  Sequence no_sequence = Empty(Sequence());
  const auto nowhere = [](Slice slice) { return slice.allocation == UINT32_MAX && slice.size_bytes == 0; };
  IS(ProgramBuilder, AddParameter, nowhere(no_builder.AddParameter(spec)));
  IS(ProgramBuilder, AddResult, nowhere(no_builder.AddResult(spec)));
  IS(ProgramBuilder, AddDonatedParameter, nowhere(no_builder.AddDonatedParameter(spec)));
  IS(ProgramBuilder, AddConstant, nowhere(no_builder.AddConstant("1")));
  IS(ProgramBuilder, AddTemporary, nowhere(no_builder.AddTemporary(1)));
  NOTHING(CommandVerbs, AddKernel,
          no_builder.AddKernel(kernel, {}).AddCopy({}, {}).AddFill("x", {}).AddReplicaId({}).AddPartitionId({}));
  NOTHING(CommandVerbs, AddCall,
          no_builder.AddCall(Sequence()).AddWhile(Sequence(), {}, Sequence()).AddRepeat(1, Sequence()));
  NOTHING(CommandVerbs, AddConditional,
          no_builder.AddConditional({}, Sequence(), Sequence()).AddSwitch({}, std::vector<Sequence>(2)));
  NOTHING(CommandVerbs, AddCollective, no_builder.AddCollective(Collective::AllGather(), {}));
  NOTHING(Sequence, AddCopy, no_sequence.AddCopy({}, {}));
  FAILS(ProgramBuilder, Build, std::move(no_builder).Build());
  const auto with = [](auto add) {
    ProgramBuilder of_empty("p");
    add(of_empty);
    return std::move(of_empty).Build();
  };
  const auto gone = [] { return Empty(Sequence()); };
  FAILS(ProgramBuilder, AddKernel, with([&](auto& x) { x.AddKernel(no_kernel, {}); }));
  FAILS(ProgramBuilder, AddCall, with([&](auto& x) { x.AddCall(gone()); }));
  FAILS(ProgramBuilder, AddWhile, with([&](auto& x) { x.AddWhile(Sequence(), {}, gone()); }));
  FAILS(ProgramBuilder, AddRepeat, with([&](auto& x) { x.AddRepeat(1, gone()); }));
  FAILS(ProgramBuilder, AddConditional, with([&](auto& x) { x.AddConditional({}, Sequence(), gone()); }));
  std::vector<Sequence> branches(2);
  static_cast<void>(Sequence(std::move(branches[1])));
  FAILS(ProgramBuilder, AddSwitch, with([&](auto& x) { x.AddSwitch({}, std::move(branches)); }));
  const KernelLoaderSpec code = KernelLoaderSpec::Function([](const KernelFrame*) -> void* { return nullptr; }, "k", 1);
  FAILS(LoadedKernel, Load, LoadedKernel::Load(no_device, code));
  const LoadedKernel of_device = LoadedKernel::Load(device, code).value();
  const LoadedKernel of_none = Empty(LoadedKernel(of_device));
  FAILS(LoadedKernel, Bind, of_none.Bind({}, {}));
  IS(LoadedKernel, device, of_none.device().memory_spaces().empty());
  IS(LoadedKernel, name, of_none.name().empty());
  const KernelLaunch launch = of_device.Bind({}, {{OperandAccess::kRead, 1}}).value();
  const KernelLaunch no_launch = Empty(KernelLaunch(launch));
  FAILS(KernelLaunch, Start, no_launch.Start({raw}));
  FAILS(KernelLaunch, Start, launch.Start({no_raw}));
  const CompileCache cache;
  const CompileCache no_cache = Empty(CompileCache(cache));
  InlineExecutor executor;
  FAILS(CompileCache, GetOrCompile, no_cache.GetOrCompile(KernelSource(), executor).Await().status());
  IS(CompileCache, Forget, !no_cache.Forget(KernelSource()) && no_cache.size() == 0);
  NOTHING(CompileCache, ForgetErrors, no_cache.ForgetErrors());
  NOTHING(CompileCache, Clear, no_cache.Clear());
  const Program program = ProgramBuilder("nothing").Build().value();
  const Program no_program = Empty(Program(program));
  IS(Program, name, no_program.name().empty());
  IS(Program, parameters, no_program.parameters().empty() && no_program.results().empty());
  const Executable executable(program);
  const Executable no_executable = Empty(Executable(executable));
  const Executable of_no_program(no_program);
  IS(Executable, program, no_executable.program().name().empty() && of_no_program.program().name().empty());
  IS(Executable, Summary, no_executable.Summary().command_counts.empty());
  IS(Executable, Describe, no_executable.Describe().empty());
  FAILS(LoadedExecutable, Load, LoadedExecutable::Load(no_executable, {device}));
  FAILS(LoadedExecutable, Load, LoadedExecutable::Load(executable, {no_device}));
  const LoadedExecutable loaded = LoadedExecutable::Load(executable, {device}).value();
  const LoadedExecutable not_loaded = Empty(LoadedExecutable(loaded));
  FAILS(LoadedExecutable, Execute, not_loaded.Execute({}));
  FAILS(LoadedExecutable, Execute, loaded.Execute({no_buffer}));
  FAILS(LoadedExecutable, ExecuteSharded, not_loaded.ExecuteSharded({{}}));
  FAILS(LoadedExecutable, ExecuteSharded, loaded.ExecuteSharded({{&no_buffer, 1}}));
  IS(LoadedExecutable, executable, not_loaded.executable().Describe().empty() && not_loaded.devices().empty());
  IS(LoadedExecutable, runs_in_flight, not_loaded.runs_in_flight() == 0);
  FAILS(LoadedExecutable, idle_event, not_loaded.idle_event());
  FAILS(LoadedExecutable, Quiesce, not_loaded.Quiesce());
  XlaFfiHandlers no_handlers = Empty(XlaFfiHandlers());
  FAILS(XlaFfiHandlers, Register, no_handlers.Register("x", nullptr));
  IS(XlaFfiHandlers, names, no_handlers.names().empty());
  LoadXlaCpuOptions load;
  load.handlers = &no_handlers;
  FAILS(XlaFfiHandlers, LoadXlaCpu, LoadXlaCpu("", load));
  ExecuteContext no_context = Empty(ExecuteContext());
  FAILS(ExecuteContext, Insert, no_context.Insert(1, std::make_shared<int>(1)));
  ExecuteOptions in_no_context;
  in_no_context.context = &no_context;
  FAILS(LoadedExecutable, Execute, loaded.Execute({}, in_no_context));
  FAILS(LoadedExecutable, ExecuteSharded, loaded.ExecuteSharded({{}}, in_no_context));
  const Outputs outputs = Empty(std::move(loaded.Execute({})->outputs));
  IS(Outputs, size, outputs.size() == 0 && outputs.empty() && outputs.data() != nullptr);
  IS(Outputs, begin, outputs.begin() == outputs.end());
  ToItself("Kernel", kernel, [](auto& x) { return x.name() == "k"; });
  ToItself("Sequence", Sequence(), [](auto& x) { return x.rep() != nullptr; });
  ToItself("ProgramBuilder", ProgramBuilder("p"), [](auto& x) { return x.AddTemporary(1).size_bytes == 1; });
  ToItself("CompileCache", cache, [](auto& x) { return x.size() == 0; });
  ToItself("Executable", executable, [](auto& x) { return x.program().name() == "nothing"; });
  ToItself("LoadedExecutable", loaded, [](auto& x) { return x.devices().size() == 1; });
  ToItself("XlaFfiHandlers", XlaFfiHandlers(), [](auto& x) { return x.names().empty(); });
  ToItself("ExecuteContext", ExecuteContext(), [](auto& x) { return x.Insert(1, std::make_shared<int>(1)).ok(); });
}

}  // namespace
}  // namespace purlin
