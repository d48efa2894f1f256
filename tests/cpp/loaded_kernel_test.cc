// Kernels that are loaded for a device and launched: on platforms whose kernels are functions of the host. For those of
// GPUs, tests/cuda/on_fake_test.cc.
#include "purlin/loaded_kernel.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/cpp/buffer_fixture.h"

namespace purlin {
namespace {

/// to[block] = from[block] + value, for bytes: one block each. Arguments: to, from, value.
void* AddValue(const KernelFrame* frame) {
  const auto* from = static_cast<const std::uint8_t*>(frame->args[1].data);
  auto* to = static_cast<std::uint8_t*>(frame->args[0].data);
  const auto* value = static_cast<const std::uint8_t*>(frame->args[2].data);
  if (frame->num_args != 3 || frame->args[2].size_bytes != 1) return frame->args[0].data;
  if (frame->id->x >= frame->args[0].size_bytes) return frame->args[0].data;
  to[frame->id->x] = static_cast<std::uint8_t>(from[frame->id->x] + *value);
  return nullptr;
}

KernelLoaderSpec AddSpec(std::uint8_t value, std::shared_ptr<const void> owner = nullptr) {
  KernelArgsPackingSpec packing;
  packing.PushAddress(1).PushAddress(0).PushConstant(value);
  return KernelLoaderSpec::Function(&AddValue, "add", 3, std::move(owner)).WithPacking(std::move(packing));
}

/// from, to
std::vector<KernelOperand> Operands(std::size_t size_bytes) {
  return {{OperandAccess::kRead, size_bytes}, {OperandAccess::kWrite, size_bytes}};
}

class LoadedKernelTest : public BufferFixture, public testing::WithParamInterface<const char*> {
 protected:
  static Bytes BytesOf(const RawBuffer& buffer, const Event& after) {
    Bytes bytes(buffer.on_device_size_bytes());
    const Status status = buffer.CopyToHost(bytes.data(), 0, bytes.size(), {after}).Wait();
    EXPECT_TRUE(status.ok()) << status;
    return bytes;
  }
  RawBuffer New(std::size_t size_bytes) const { return RawBuffer::Allocate(memory_, size_bytes).value(); }

  Client here_ = MakeClient(GetParam());
  Device device_ = here_.devices()[1];
  MemorySpace memory_ = device_.default_memory_space();
};

TEST_P(LoadedKernelTest, ALaunchIsStartedAnyNumberOfTimes) {
  const StatusOr<LoadedKernel> kernel = LoadedKernel::Load(device_, AddSpec(5));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(kernel->name(), "add");
  EXPECT_EQ(kernel->device(), device_);
  const StatusOr<KernelLaunch> launch = kernel->Bind(LaunchDimensions::Linear(4, 1), Operands(4));
  ASSERT_TRUE(launch.ok()) << launch.status();
  const RawBuffer from = New(4);
  const RawBuffer to = New(6);  // Longer than its operand.
  Bytes sent = {1, 2, 3, 255};
  Event last = from.CopyFromHost(sent.data(), 0, 4);
  for (int time = 0; time < 3; ++time) {
    LaunchOptions options;
    options.label = "add five";
    options.launch_id = time;
    options.stream = static_cast<std::uint8_t>(time);
    options.caller_waits = time == 2;
    options.dependencies = {&last, 1};
    StatusOr<Event> done = launch->Start({from, to}, options);
    ASSERT_TRUE(done.ok()) << done.status();
    last = to.CopyRangeTo(0, from, 0, 4, {*done});
  }
  EXPECT_EQ(BytesOf(from, last), (Bytes{16, 17, 18, 14}));
}

TEST_P(LoadedKernelTest, ItWaitsForWhatItDependsOnAndFailsWithIt) {
  const KernelLaunch launch =
      LoadedKernel::Load(device_, AddSpec(1))->Bind(LaunchDimensions::Linear(4, 1), Operands(4)).value();
  const RawBuffer from = New(4);
  const RawBuffer to = New(4);
  EventPromise promise("from is written");
  const Event written = promise.event();
  LaunchOptions options;
  options.dependencies = {&written, 1};
  const Event done = launch.Start({from, to}, options).value();
  EXPECT_FALSE(done.IsReady());
  promise.SetError(AbortedError("never written"));
  EXPECT_TRUE(Contains(done.Wait().message(), "never written")) << done.Wait();
  EXPECT_EQ(done.Wait().code(), StatusCode::kAborted);
}

TEST_P(LoadedKernelTest, AKernelThatFailsIsNamedWithItsBlock) {
  const KernelLaunch launch =
      LoadedKernel::Load(device_, AddSpec(1))->Bind(LaunchDimensions::Linear(9, 1), Operands(8)).value();
  const RawBuffer from = New(8);
  ASSERT_TRUE(from.CopyFromHost(Bytes(8).data(), 0, 8).Wait().ok());
  const Status status = launch.Start({from, New(8)})->Wait();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_TRUE(Contains(status.message(), "the kernel 'add' failed in block [8, 0, 0]")) << status;
}

TEST_P(LoadedKernelTest, MemoryThatDoesNotFitIsRefused) {
  const KernelLaunch launch =
      LoadedKernel::Load(device_, AddSpec(1))->Bind(LaunchDimensions::Linear(4, 1), Operands(4)).value();
  const Client other = MakeClient(GetParam());
  const RawBuffer others = RawBuffer::Allocate(other.devices()[0].default_memory_space(), 4).value();
  alignas(64) std::uint8_t bytes[64] = {};
  LaunchOptions wild;
  wild.struct_size = 7;
  const auto refused = [](const StatusOr<Event>& started, std::string_view part) {
    EXPECT_EQ(started.status().code(), StatusCode::kInvalidArgument) << started.status();
    EXPECT_TRUE(Contains(started.status().message(), part)) << started.status();
  };
  refused(launch.Start({New(4)}), "the kernel 'add' has 2 operands, and is launched on 1 ranges");
  refused(launch.Start({New(4), others}), "another client");
  refused(launch.Start({New(4), New(4)}, wild), "LaunchOptions::struct_size is 7");
  refused(launch.Start({New(4), New(3)}), "operand 1 of the kernel 'add' has 4 bytes, its range 3");
  const MemorySpace of_host = device_.memory_space("unpinned_host").value();
  const StatusOr<RawBuffer> constant = RawBuffer::Import(of_host, bytes, 4, Mutability::kImmutable);
  ASSERT_TRUE(constant.ok()) << constant.status();
  refused(launch.Start({New(4), *constant}), "it was imported read-only");
}

TEST_P(LoadedKernelTest, WhatCannotBeBoundIsRefused) {
  const LoadedKernel kernel = LoadedKernel::Load(device_, AddSpec(1)).value();
  const auto refused = [&kernel](const LaunchDimensions& dimensions, Span<const KernelOperand> operands,
                                 std::string_view part) {
    const Status status = kernel.Bind(dimensions, operands).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(Contains(status.message(), part)) << status;
  };
  LaunchDimensions nothing;
  nothing.block[2] = 0;
  refused(nothing, Operands(4), "1 x 1 x 0 threads");
  refused(LaunchDimensions::Linear(1, 0), Operands(4), "none may be 0");
  refused(LaunchDimensions(), {{OperandAccess::kRead, 4}}, "argument_index is 1");
  KernelLoaderSpec two = AddSpec(1);
  two.arity = 2;
  const Status status = LoadedKernel::Load(device_, two)->Bind(LaunchDimensions(), Operands(4)).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(Contains(status.message(), "its arity is 2, and 3 arguments were packed")) << status;
}

TEST_P(LoadedKernelTest, AfterShutdownNothingIsStarted) {
  const KernelLaunch launch =
      LoadedKernel::Load(device_, AddSpec(1))->Bind(LaunchDimensions::Linear(4, 1), Operands(4)).value();
  const RawBuffer from = New(4);
  const RawBuffer to = New(4);
  ASSERT_TRUE(here_.Shutdown().ok());
  const StatusOr<Event> started = launch.Start({from, to});
  EXPECT_EQ(started.status().code(), StatusCode::kFailedPrecondition) << started.status();
}

TEST_P(LoadedKernelTest, WhatCannotBeLoadedIsRefused) {
  const auto refused = [this](const KernelLoaderSpec& spec, StatusCode code, std::string_view part) {
    const Status status = LoadedKernel::Load(device_, spec).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_TRUE(Contains(status.message(), part)) << status;
  };
  const std::string ptx = ".version 8.0\n.target sm_75\n.visible .entry k() { ret; }";
  refused(KernelLoaderSpec::Ptx(ptx, "k", 0), StatusCode::kUnimplemented, "");
  refused(KernelLoaderSpec::Cubin({}, "k", 0), StatusCode::kInvalidArgument, "cubin");
  refused(KernelLoaderSpec::Ptx("\xff", "k", 0), StatusCode::kInvalidArgument, "the PTX of 'k': \"\xEF\xBF\xBD\"");
  refused(KernelLoaderSpec::Ptx(ptx, "\xff", 0), StatusCode::kInvalidArgument, "the name of a kernel: ");
  refused(KernelLoaderSpec::Ptx(ptx, "", 0), StatusCode::kInvalidArgument, "kernel_name");
  refused(KernelLoaderSpec::Function(nullptr, "k", 0), StatusCode::kInvalidArgument, "the address of the kernel 'k'");
  KernelArgsPackingSpec packing;
  packing.PushAddress(0).arguments.push_back({std::vector<std::byte>(9), {{0, 0}, {0, 2}}});
  refused(AddSpec(1).WithPacking(packing), StatusCode::kInvalidArgument,
          "argument 1 of 'add': relocation 1: offset 2, and 8 bytes from there, are not in an argument of 9 bytes");
}

/// Writes the byte at its second operand to its first, whose addresses are in one argument, behind four bytes.
void* ByStruct(const KernelFrame* frame) {
  const auto* addresses = static_cast<const char*>(frame->args[0].data);
  std::uint8_t* to = nullptr;
  const std::uint8_t* from = nullptr;
  std::memcpy(static_cast<void*>(&to), addresses + 4, sizeof(to));
  std::memcpy(static_cast<void*>(&from), addresses + 12, sizeof(from));
  if (addresses[0] != 'a' || frame->args[0].size_bytes != 20) return frame->args[0].data;
  *to = *from;
  return nullptr;
}

TEST_P(LoadedKernelTest, AnArgumentMayHaveAddressesInIt) {
  KernelArgPackingSpec argument;
  argument.bytes.assign(20, std::byte{'a'});
  argument.relocations = {{1, 4}, {0, 12}};
  KernelArgsPackingSpec packing;
  packing.arguments.push_back(argument);
  const KernelLoaderSpec spec = KernelLoaderSpec::Function(&ByStruct, "by_struct", 1).WithPacking(packing);
  const KernelLaunch launch = LoadedKernel::Load(device_, spec)->Bind({}, Operands(1)).value();
  const RawBuffer from = New(1);
  const RawBuffer to = New(1);
  const std::uint8_t value = 42;
  const Event written = from.CopyFromHost(&value, 0, 1);
  LaunchOptions options;
  options.dependencies = {&written, 1};
  EXPECT_EQ(BytesOf(to, launch.Start({from, to}, options).value()), Bytes{42});
}

TEST_P(LoadedKernelTest, AnOwnerStaysAsLongAsTheCodeMayBeCalled) {
  auto owner = std::make_shared<int>(0);
  const std::weak_ptr<int> alive = owner;
  {
    EventPromise promise("start");
    const Event start = promise.event();
    LaunchOptions options;
    options.dependencies = {&start, 1};
    Event done = Event::Ready();
    {
      const KernelLaunch launch = LoadedKernel::Load(device_, AddSpec(1, std::move(owner)))
                                      ->Bind(LaunchDimensions::Linear(4, 1), Operands(4))
                                      .value();
      const RawBuffer from = New(4);
      ASSERT_TRUE(from.CopyFromHost(Bytes(4).data(), 0, 4).Wait().ok());
      done = launch.Start({from, New(4)}, options).value();
    }
    EXPECT_FALSE(alive.expired()) << "the launch is in flight";
    promise.SetReady();
    ASSERT_TRUE(done.Wait().ok());
  }
  ASSERT_TRUE(here_.Shutdown().ok());
  EXPECT_TRUE(alive.expired());
}

INSTANTIATE_TEST_SUITE_P(Platforms, LoadedKernelTest, testing::Values("host", "sim"),
                         [](const auto& info) { return std::string(info.param); });

TEST(LaunchDimensionsTest, ALinearLaunchHasABlockAtLeastAndAThreadForEach) {
  const std::uint64_t rows[][3] = {{0, 256, 1}, {1, 256, 1}, {256, 256, 1}, {257, 256, 2}, {5, 0, 5}};
  for (const auto& [threads, block, blocks] : rows) {
    const LaunchDimensions dimensions = LaunchDimensions::Linear(threads, static_cast<std::uint32_t>(block));
    EXPECT_EQ(dimensions.grid[0], blocks) << threads;
    EXPECT_EQ(dimensions.block[0], block);
    EXPECT_EQ(dimensions.grid[1] * dimensions.grid[2] * dimensions.block[1] * dimensions.block[2], 1U);
  }
  EXPECT_EQ(LaunchDimensions::Linear(UINT64_MAX, 1).grid[0], UINT32_MAX);
}

}  // namespace
}  // namespace purlin
