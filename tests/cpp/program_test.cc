// Programs that are built by hand: their memory, every command, what is refused, and the code of kernels.
#include "purlin/program.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program_fixture.h"
#include "purlin/kernel_loader_spec.h"

namespace purlin {
namespace {

class ProgramTest : public ProgramFixture {
 protected:
  /// The result of a program that `add` gives its commands, from four bytes.
  template <typename F>
  Bytes Run(const Bytes& argument, F add) const {
    ProgramBuilder builder("p");
    const Slice x = builder.AddParameter(U8(4));
    const Slice y = builder.AddResult(U8(4));
    add(builder, x, y);
    return Result(Load(std::move(builder).Build().value()), {Array(argument)});
  }
  /// The error of such a program.
  template <typename F>
  static Status Refused(F add) {
    ProgramBuilder builder("p");
    const Slice x = builder.AddParameter(U8(4));
    const Slice y = builder.AddResult(U8(4));
    add(builder, x, y);
    return std::move(builder).Build().status();
  }
};

TEST(OperandTest, OtherOperandsMayOverwriteWhatIsReadUnlessItSaysNo) {
  EXPECT_FALSE(Operand().is_invariant);
  EXPECT_EQ(Operand().access, OperandAccess::kRead);
  EXPECT_FALSE(Operand::Read(Slice()).is_invariant);
}

TEST_F(ProgramTest, ItsSignatureIsWhatWasAdded) {
  ProgramBuilder builder("signature");
  ArraySpec columns(Shape(DType::kF32, {2, 3}));
  columns.layout = Layout({0, 1});
  columns.memory_kind = "pinned_host";
  const Slice x = builder.AddParameter(columns);
  const Slice bound = builder.AddParameter(ArraySpec(Shape(DType::kU8, {5, 2}, {true, false})));
  const Slice y = builder.AddDonatedParameter(U8(4));
  const Slice z = builder.AddResult(U8(2));
  builder.AddFill(std::string_view("\x01", 1), z);
  EXPECT_EQ((std::vector<std::uint32_t>{x.allocation, bound.allocation, y.allocation, z.allocation}),
            (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(x.size_bytes, 24U);
  EXPECT_EQ(y.Part(1, 2).offset_bytes, 1U);

  const Program program = std::move(builder).Build().value();
  EXPECT_EQ(program.name(), "signature");
  std::vector<std::string> texts;
  for (const ArraySpec& spec : program.parameters()) texts.push_back(spec.ToString());
  for (const ArraySpec& spec : program.results()) texts.push_back(spec.ToString());
  EXPECT_EQ(texts, (std::vector<std::string>{"f32[2,3] in layout {0,1} in pinned_host", "u8[<=5,2]", "u8[4]", "u8[4]",
                                             "u8[2]"}));
  EXPECT_EQ(program.parameters()[0].layout, columns.layout);
  EXPECT_FALSE(program.parameters()[2].layout.has_value());
}

TEST_F(ProgramTest, CommandsRunInTheirOrder) {
  const auto sum = Run({1, 2, 3, 4}, [](ProgramBuilder& builder, Slice x, Slice y) {
    const Slice temporary = builder.AddTemporary(4);
    const Slice constant = builder.AddConstant(std::string_view("\x0a\x14\x1e\x28", 4));
    const Kernel add = Kernel::FromClosure("add", [](const KernelCall& call) {
      for (std::size_t i = 0; i < 4; ++i) {
        call.Write<std::uint8_t>(0)[i] =
            static_cast<std::uint8_t>(call.Read<std::uint8_t>(0)[i] + call.Read<std::uint8_t>(1)[i]);
      }
    });
    builder.AddCopy(x, temporary)
        .AddKernel(Increment(), {Operand::ReadWrite(temporary)})
        .AddKernel(add, {Operand::Invariant(temporary), Operand::Invariant(constant), Operand::Write(y)})
        .AddFill("x", y.Part(3, 1));
  });
  EXPECT_EQ(sum, (Bytes{12, 23, 34, 'x'}));
}

TEST_F(ProgramTest, AConstantMayBeOfNumbers) {
  const std::vector<std::uint16_t> numbers = {0x0201, 0x0403};
  const auto bytes = Run({0, 0, 0, 0}, [&](ProgramBuilder& builder, Slice, Slice y) {
    builder.AddCopy(builder.AddConstant<std::uint16_t>(numbers), y);
  });
  EXPECT_EQ(bytes, (Bytes{1, 2, 3, 4}));
}

TEST_F(ProgramTest, LoopsRepeatTheirBodies) {
  const auto twelve = Run({1, 2, 3, 4}, [](ProgramBuilder& builder, Slice x, Slice y) {
    Sequence inner;
    inner.AddKernel(Increment(), {Operand::ReadWrite(y)});
    Sequence outer;
    outer.AddRepeat(4, std::move(inner));
    Sequence called;
    called.AddRepeat(3, std::move(outer));
    builder.AddCopy(x, y).AddCall(std::move(called));
  });
  EXPECT_EQ(twelve, (Bytes{13, 14, 15, 16}));
}

TEST_F(ProgramTest, AWhileLoopEndsWhenItsPredicateIsZero) {
  const auto counted = Run({3, 0, 0, 0}, [](ProgramBuilder& builder, Slice x, Slice y) {
    const Slice more = builder.AddTemporary(1);
    const Kernel below_ten = Kernel::FromClosure("below_ten", [](const KernelCall& call) {
      call.Write<std::uint8_t>(0)[0] = call.Read<std::uint8_t>(0)[0] < 10 ? 1 : 0;
    });
    Sequence condition;
    condition.AddKernel(below_ten, {Operand::Invariant(y), Operand::Write(more)});
    Sequence body;
    body.AddKernel(Increment(), {Operand::ReadWrite(y.Part(0, 1))});
    builder.AddCopy(x, y).AddWhile(std::move(condition), more, std::move(body));
  });
  EXPECT_EQ(counted, (Bytes{10, 0, 0, 0}));
}

TEST_F(ProgramTest, ABranchIsChosenByAPredicateOrAnIndex) {
  const auto chosen = [this](std::uint8_t number, bool by_index) {
    return Run({number, 0, 0, 0}, [&](ProgramBuilder& builder, Slice x, Slice y) {
      std::vector<Sequence> branches(3);
      for (std::size_t i = 0; i < 3; ++i) branches[i].AddFill(std::string_view("abc").substr(i, 1), y);
      if (by_index) {
        builder.AddSwitch(x, std::move(branches));
      } else {
        builder.AddConditional(x.Part(0, 1), std::move(branches[0]), std::move(branches[1]));
      }
    })[0];
  };
  EXPECT_EQ(chosen(7, false), 'a') << "any number but 0";
  EXPECT_EQ(chosen(0, false), 'b');
  EXPECT_EQ(chosen(0, true), 'a');
  EXPECT_EQ(chosen(1, true), 'b');
  EXPECT_EQ(chosen(200, true), 'c') << "there is no such branch: the last one";
}

TEST_F(ProgramTest, WhatNoRunCouldExecuteIsRefused) {
  const auto says = [](const Status& status, std::string_view text) {
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message(), std::string("the program 'p' cannot run: ") + std::string(text));
  };
  says(Refused([](ProgramBuilder& builder, Slice x, Slice y) { builder.AddCopy(x.Part(2, 4), y); }),
       "command 0 (copy), operand 0: bytes [2, 6) do not lie in allocation 0 of 4 bytes");
  says(Refused([](ProgramBuilder& builder, Slice, Slice y) {
         Sequence body;
         body.AddKernel(Increment(), {Operand::ReadWrite(y)});
         builder.AddRepeat(2, std::move(body));
       }),
       "command 0.body.0 (kernel 'increment'), operand 0: reads bytes [0, 4) of allocation 1, of which [0, 4) may not "
       "have been written");
  says(Refused([](ProgramBuilder&, Slice, Slice) {}),
       "result 0: not every path writes bytes [0, 4) of allocation 1, which is result 0 of 4 bytes");
  says(Refused([](ProgramBuilder& builder, Slice x, Slice y) {
         builder.AddCopy(x, y).AddKernel(Increment(), {Operand::ReadWrite(x)});
       }),
       "command 1 (kernel 'increment'), operand 0: writes bytes [0, 4) of allocation 0, which is parameter 0 of 4 "
       "bytes");
}

TEST_F(ProgramTest, WhatCannotBeAddedIsRefusedByBuild) {
  const auto refused = [](auto add) {
    ProgramBuilder builder("p");
    add(builder);
    return std::move(builder).Build().status();
  };
  const Status shape = refused([](ProgramBuilder& builder) {
    const Slice none = builder.AddResult(ArraySpec(Shape(DType::kF32, {-1})));
    builder.AddFill("x", none);
  });
  EXPECT_TRUE(IsInvalidArgument(shape)) << shape;
  EXPECT_TRUE(Contains(shape.message(), "the program 'p': a result: ") && Contains(shape.message(), "-1")) << shape;
  const Status layout = refused([](ProgramBuilder& builder) {
    ArraySpec spec(Shape(DType::kF32, {2}));
    spec.layout = Layout({0, 1});
    builder.AddParameter(spec);
  });
  EXPECT_TRUE(IsInvalidArgument(layout) && Contains(layout.message(), "the program 'p': a parameter: ")) << layout;
  const Status kernel = refused([](ProgramBuilder& builder) {
    builder.AddKernel(Kernel::FromClosure("none", std::function<void(const KernelCall&)>()), {});
  });
  EXPECT_TRUE(IsFailedPrecondition(kernel)) << kernel;
  EXPECT_EQ(kernel.message(), "the program 'p': this Kernel was moved from, released or given away");
  const Status sequence = refused([](ProgramBuilder& builder) {
    Sequence body;
    const Sequence taken(std::move(body));
    Sequence outer;
    outer.AddCall(std::move(body));  // NOLINT(bugprone-use-after-move): the point.
    builder.AddCall(std::move(outer));
  });
  EXPECT_TRUE(IsFailedPrecondition(sequence)) << sequence;
  EXPECT_EQ(sequence.message(), "the program 'p': this Sequence was moved from, released or given away");
}

TEST_F(ProgramTest, SequencesMayBeNestedSixtyFourDeep) {
  const auto nested = [](int depth) {
    Sequence sequence;
    for (int i = 2; i < depth; ++i) {
      Sequence outer;
      outer.AddRepeat(1, std::move(sequence));
      sequence = std::move(outer);
    }
    ProgramBuilder builder("deep");
    builder.AddRepeat(1, std::move(sequence));
    return std::move(builder).Build().status();
  };
  EXPECT_TRUE(nested(64).ok()) << nested(64);
  EXPECT_TRUE(IsInvalidArgument(nested(65))) << nested(65);
  EXPECT_TRUE(IsInvalidArgument(nested(100'000))) << "and it can be dropped";
}

/// Adds one to each byte: a native kernel with two workgroups, each of which does half.
void* AddOneNatively(const KernelFrame* frame) {
  static char failed;
  if (frame->num_args != 2 || frame->num_workgroups->x != 2 || frame->num_workgroups->z != 1) return &failed;
  const std::size_t half = frame->args[0].size_bytes / 2;
  const auto* from = static_cast<const std::uint8_t*>(frame->args[0].data);
  auto* to = static_cast<std::uint8_t*>(frame->args[1].data);
  for (std::size_t i = frame->id->x * half; i < (frame->id->x + 1) * half; ++i)
    to[i] = static_cast<std::uint8_t>(from[i] + 1);
  return nullptr;
}

TEST_F(ProgramTest, ANativeKernelGetsXlasFrame) {
  const Kernel native = Kernel::Native("native", AddOneNatively);
  EXPECT_EQ(native.name(), "native");
  const auto run = [&](KernelDim3 workgroups) {
    ProgramBuilder builder("native");
    const Slice x = builder.AddParameter(U8(4));
    const Slice y = builder.AddResult(U8(4));
    builder.AddKernel(native, {Operand::Read(x), Operand::Write(y)}, workgroups);
    return Load(std::move(builder).Build().value()).Execute({Array({1, 2, 3, 4})}).value();
  };
  EXPECT_EQ(Read(run({2, 1, 1}).outputs[0]), (Bytes{2, 3, 4, 5}));
  const Status status = run({1, 1, 1}).done.Wait();
  EXPECT_TRUE(IsInternal(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "command 0 (kernel 'native') of 'native': the kernel answered an error"))
      << status;
}

TEST_F(ProgramTest, KernelsOfDevicesAreRefusedWhereTheHostExecutes) {
  const auto owner = std::make_shared<int>(7);
  {
    const KernelLoaderSpec spec = KernelLoaderSpec::Ptx(".version 8.0", "scale", 1);
    const Kernel kernel = Kernel::OfDevice(spec, {32, 1, 1}, 64).value();
    EXPECT_EQ(kernel.name(), "scale");
    ProgramBuilder builder("scaled");
    builder.AddKernel(kernel, {Operand::ReadWrite(builder.AddDonatedParameter(U8(4)))});
    const Program program = std::move(builder).Build().value();
    const Status refused = LoadedExecutable::Load(Executable(program), {client_.devices()[0]}).status();
    EXPECT_TRUE(IsUnimplemented(refused)) << refused;
    EXPECT_TRUE(Contains(refused.message(), "'scaled' cannot be loaded: it has kernels of devices")) << refused;
  }
  const auto refused = [](const KernelLoaderSpec& spec, KernelDim3 block, std::string_view part) {
    const Status status = Kernel::OfDevice(spec, block).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), part)) << status;
  };
  refused(KernelLoaderSpec::Ptx("", "scale", 1), {}, "empty ptx");
  refused(KernelLoaderSpec::Ptx(".version 8.0", "", 1), {}, "name");
  refused(KernelLoaderSpec::Ptx(".version 8.0", "\xff", 1), {}, "not UTF-8");
  const std::uint64_t many = std::uint64_t{1} << 32;
  refused(KernelLoaderSpec::Ptx(".version 8.0", "scale", 1), {1, many, 1}, "a block of 'scale' has no 4294967296");
  // What it keeps goes with what is refused.
  refused(KernelLoaderSpec::Symbol(nullptr, "scale", 1, owner), {}, "the address of the kernel 'scale' is null");
  EXPECT_EQ(owner.use_count(), 1);
}

TEST_F(ProgramTest, TheOwnerOfNativeCodeLivesAsLongAsTheCode) {
  auto owner = std::make_shared<int>(7);
  std::optional<LoadedExecutable> loaded;
  {
    ProgramBuilder builder("native");
    const Slice x = builder.AddParameter(U8(4));
    const Slice y = builder.AddResult(U8(4));
    builder.AddKernel(Kernel::Native("native", AddOneNatively, owner), {Operand::Read(x), Operand::Write(y)},
                      {2, 1, 1});
    loaded = Load(std::move(builder).Build().value());
  }
  EXPECT_EQ(owner.use_count(), 2);
  EXPECT_EQ(Result(*loaded, {Array({1, 2, 3, 4})}), (Bytes{2, 3, 4, 5}));
  loaded.reset();
  EXPECT_EQ(owner.use_count(), 1);
}

TEST_F(ProgramTest, AClosureSeesItsOperandsAndItsPlaceInTheGrid) {
  std::vector<std::array<std::uint64_t, 6>> calls;
  std::vector<std::size_t> sizes;
  const Kernel kernel = Kernel::FromClosure("grid", [&](const KernelCall& call) {
    const KernelDim3& at = call.workgroup;
    const KernelDim3& of = call.workgroups;
    calls.push_back({at.x, at.y, at.z, of.x, of.y, of.z});
    sizes = {call.reads.size(),
             call.writes.size(),
             call.Read<std::uint16_t>(0).size(),
             call.Read<std::uint8_t>(9).size(),
             call.Write<std::uint32_t>(0).size(),
             call.Write<std::uint8_t>(9).size()};
  });
  ProgramBuilder builder("grid");
  const Slice x = builder.AddParameter(U8(5));
  const Slice y = builder.AddDonatedParameter(U8(4));
  builder.AddKernel(kernel, {Operand::ReadWrite(y), Operand::Invariant(x)}, {2, 1, 2});
  const LoadedExecutable loaded = Load(std::move(builder).Build().value());
  const Status status = loaded.Execute({Array({1, 2, 3, 4, 5}), Array({1, 2, 3, 4})}).value().done.Wait();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(calls, (std::vector<std::array<std::uint64_t, 6>>{
                       {0, 0, 0, 2, 1, 2}, {1, 0, 0, 2, 1, 2}, {0, 0, 1, 2, 1, 2}, {1, 0, 1, 2, 1, 2}}));
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 1, 2, 0, 1, 0}));
}

TEST_F(ProgramTest, AClosureNeedNotBeCopyableAndIsDestroyedOnce) {
  struct Witness {
    std::atomic<int>* alive;
    explicit Witness(std::atomic<int>* count) : alive(count) { alive->fetch_add(1); }
    Witness(const Witness&) = delete;
    Witness& operator=(const Witness&) = delete;
    ~Witness() { alive->fetch_sub(1); }
  };
  std::atomic<int> alive{0};
  {
    const LoadedExecutable loaded = Load(
        Unary(Kernel::FromClosure("counted", [witness = std::make_unique<Witness>(&alive)](const KernelCall& call) {
          call.Write<std::uint8_t>(0)[0] = static_cast<std::uint8_t>(witness->alive->load());
        })));
    EXPECT_EQ(Result(loaded, {Array({1, 2, 3, 4})})[0], 1);
  }
  EXPECT_EQ(alive.load(), 0);
  static_cast<void>(
      Kernel::FromClosure("never used", [witness = std::make_unique<Witness>(&alive)](const KernelCall&) {}));
  EXPECT_EQ(alive.load(), 0);
}

TEST_F(ProgramTest, ReplicasAndPartitionsKnowTheirNumbers) {
  ProgramBuilder builder("ids");
  const Slice replica = builder.AddResult(ArraySpec(Shape(DType::kU32)));
  const Slice partition = builder.AddResult(ArraySpec(Shape(DType::kU32)));
  builder.AddReplicaId(replica).AddPartitionId(partition);
  const Executable executable(std::move(builder).Build().value());
  for (const std::size_t partition_count : {std::size_t{1}, std::size_t{2}}) {
    const auto loaded = LoadedExecutable::Load(executable, client_.devices(), partition_count).value();
    const std::vector<Execution> runs = loaded.ExecuteSharded({{}, {}}).value();
    ASSERT_EQ(runs.size(), 2U);
    EXPECT_EQ(Read(runs[1].outputs[0])[0], partition_count == 1 ? 1 : 0);
    EXPECT_EQ(Read(runs[1].outputs[1])[0], partition_count == 1 ? 0 : 1);
  }
}

}  // namespace
}  // namespace purlin
