// Executables of XLA:CPU: a small one that is written here, field by field, and what is refused. Those that stock JAX
// compiled are loaded by tests/interop/xla_cpu_load_test.cc.
#include "purlin/xla_cpu.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "xla_cpu_fixture.h"

namespace purlin {
namespace {

#if defined(__x86_64__)

class XlaCpuTest : public XlaCpuFixture {};

TEST_F(XlaCpuTest, AnExecutableIsLoadedAndRun) {
  const std::string bytes = CopyingExecutable(CopyThunk());
  EXPECT_TRUE(CheckXlaCpu(bytes).ok()) << CheckXlaCpu(bytes);
  // In front of it, jaxlib's serialize() has a header.
  for (const std::string& form : {bytes, std::string("\x03\x08\x03\x00", 4) + bytes}) {
    const StatusOr<Executable> executable = LoadXlaCpu(form, Trusted());
    ASSERT_TRUE(executable.ok()) << executable.status();
    EXPECT_EQ(executable->Describe().substr(0, executable->Describe().find("\nmemory")),
              "copies: (f32[4]) -> (f32[4])\ncommands: 1 copy");
    const LoadedExecutable loaded = LoadedExecutable::Load(*executable, {client_.devices()[0]}).value();
    const float numbers[] = {1, 2, 3, 4};
    const Buffer argument = Buffer::FromHost(numbers, sizeof(numbers), DType::kF32, {4}, space_).value();
    EXPECT_EQ(Result(loaded, {argument}), Read(argument));
  }
}

TEST_F(XlaCpuTest, CodeIsLoadedOnlyIfTheCallerVouchesForIt) {
  const Status status = LoadXlaCpu(CopyingExecutable(CopyThunk())).status();
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "trust_code")) << status;
}

TEST_F(XlaCpuTest, DamagedBytesAreRefusedWithTheirPlace) {
  for (const std::string_view bytes :
       {std::string_view(), std::string_view("\xff"), std::string_view("what is this")}) {
    EXPECT_TRUE(IsDataLoss(LoadXlaCpu(bytes, Trusted()).status())) << LoadXlaCpu(bytes, Trusted()).status();
    EXPECT_TRUE(IsDataLoss(CheckXlaCpu(bytes)));
  }
  EXPECT_EQ(CheckXlaCpu("").message(), "XLA:CPU executable, byte 0: the bytes end inside a number");
  const std::string whole = CopyingExecutable(CopyThunk());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(LoadXlaCpu(std::string_view(whole).substr(0, size), Trusted()).ok()) << size;
  }
}

TEST_F(XlaCpuTest, WhatCannotRunIsRefusedWithReasons) {
  const std::string infeed = Part(1, "infeed") + Part(14, "");
  const Status status = LoadXlaCpu(CopyingExecutable(infeed), Trusted()).status();
  EXPECT_TRUE(IsUnimplemented(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "program 'copies' cannot run here: ") && Contains(status.message(), "infeed"))
      << status;
  EXPECT_EQ(CheckXlaCpu(CopyingExecutable(infeed)), status);
}

TEST_F(XlaCpuTest, AProfilersListIsWrittenIfItIsAskedFor) {
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  const std::string bytes = CopyingExecutable(CopyThunk());
  ASSERT_TRUE(LoadXlaCpu(bytes, Trusted()).ok());
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "nothing asked for it";
  LoadXlaCpuOptions options = Trusted();
  options.perf_map = true;
  ASSERT_TRUE(LoadXlaCpu(bytes, options).ok());
  EXPECT_EQ(unlink(path.c_str()), 0) << "it has no functions, but it is there";

  ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
  const Status status = LoadXlaCpu(bytes, options).status();
  EXPECT_EQ(rmdir(path.c_str()), 0);
  EXPECT_EQ(status.message().substr(0, path.size() + 9), "perf map " + path) << status;
}

TEST_F(XlaCpuTest, UnsoundOptionsAreRefused) {
  LoadXlaCpuOptions options = Trusted();
  options.struct_size = 0;
  const Status status = LoadXlaCpu(CopyingExecutable(CopyThunk()), options).status();
  EXPECT_TRUE(IsInvalidArgument(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "LoadXlaCpuOptions::struct_size is 0")) << status;
}

#else

TEST(XlaCpuTest, ElsewhereThereIsNoLoader) {
  EXPECT_TRUE(IsUnimplemented(CheckXlaCpu(CopyingExecutable(CopyThunk()))));
}

#endif

}  // namespace
}  // namespace purlin
