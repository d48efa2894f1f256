// Purlin's instructions for operations of the platform "cuda", on a driver that does nothing: the fake driver of tests
// in its empty mode, whose own few hundred instructions a call are counted, too. Times on it would say nothing, so
// without it there are no rows; a GPU's are in rust/cuda/benches. Where the caller does not wait, another thread ends
// what it has begun, and the counts of one thread differ from run to run: such operations have no row.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "need.h"
#include "ours.h"
#include "purlin/buffer.h"
#include "purlin/client.h"
#include "purlin/executable.h"
#include "purlin/kernel.h"
#include "purlin/kernel_loader_spec.h"
#include "purlin/loaded_kernel.h"
#include "purlin/program.h"
#include "purlin/raw_buffer.h"

namespace {

constexpr std::size_t kBytes = 4096;

// A kernel with four addresses, which is never run.
constexpr char kPtx[] = R"(.version 8.2
.target sm_75
.address_size 64
.visible .entry four(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) { ret; }
)";

bool IsOnADriverThatDoesNothing() {
  const char* mode = std::getenv("PURLIN_FAKECUDA_MODE");
  return mode != nullptr && std::string_view(mode) == "empty";
}

struct Gpu {
  purlin::Device device;
  purlin::MemorySpace space;
  std::vector<purlin::RawBuffer> buffers;
  purlin::RawBuffer pinned;
  purlin::KernelLaunch launch;
  purlin::LoadedExecutable graph;
  purlin::Buffer array;
};

// Of those operands.
purlin::KernelLoaderSpec Four(const std::uint32_t (&operands)[4]) {
  purlin::KernelArgsPackingSpec packing;
  for (const std::uint32_t operand : operands) packing.PushAddress(operand);
  return purlin::KernelLoaderSpec::Ptx(kPtx, "four", 4).WithPacking(std::move(packing));
}

purlin::KernelLaunch FourOperands(const purlin::Device& device) {
  const purlin::LoadedKernel kernel = Need(purlin::LoadedKernel::Load(device, Four({0, 1, 2, 3})));
  const purlin::KernelOperand operand{purlin::OperandAccess::kReadWrite, kBytes};
  return Need(kernel.Bind(purlin::LaunchDimensions::Linear(1024, 256), {{operand, operand, operand, operand}}));
}

// A program of twenty kernels on one array, which is donated; its runs are a graph from the second on.
purlin::LoadedExecutable Graph(const purlin::Device& device) {
  const purlin::Kernel kernel = Need(purlin::Kernel::OfDevice(Four({0, 0, 0, 0}), {256, 1, 1}));
  purlin::ProgramBuilder builder("graph");
  const purlin::ArraySpec array(purlin::Shape(purlin::DType::kU8, {std::int64_t{kBytes}}));
  const purlin::Slice bytes = builder.AddDonatedParameter(array);
  for (int i = 0; i < 20; ++i) builder.AddKernel(kernel, {purlin::Operand::ReadWrite(bytes)}, {4, 1, 1});
  return Need(purlin::LoadedExecutable::Load(purlin::Executable(Need(std::move(builder).Build())), {device}));
}

// Never destroyed, as the other clients of measurements are not.
Gpu& Get() {
  static Gpu* const made = [] {
    purlin::ClientOptions options;
    options.platform = "cuda";
    options.device_count = 1;
    options.worker_count = 1;
    const purlin::Device device = Need(purlin::Client::Create(options)).devices()[0];
    const purlin::MemorySpace space = Need(device.memory_space("device"));
    std::vector<purlin::RawBuffer> buffers;
    for (int i = 0; i < 4; ++i) buffers.push_back(Need(purlin::RawBuffer::Allocate(space, kBytes)));
    const purlin::RawBuffer pinned =
        Need(purlin::RawBuffer::Allocate(Need(device.memory_space("pinned_host")), kBytes));
    const std::vector<char> zeros(kBytes);
    purlin::Buffer array =
        Need(purlin::Buffer::FromHost(zeros.data(), kBytes, purlin::DType::kU8, {std::int64_t{kBytes}}, space));
    return new Gpu{device, space, std::move(buffers), pinned, FourOperands(device), Graph(device), std::move(array)};
  }();
  return *made;
}

std::uint64_t AllocateAndFree(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) Need(purlin::RawBuffer::Allocate(Get().space, std::size_t{1} << 20));
  return 0;
}

std::uint64_t CopyUp(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) Need(Get().pinned.CopyTo(Get().buffers[0]).Wait());
  return 0;
}

std::uint64_t LaunchAndWait(std::uint64_t count) {
  purlin::LaunchOptions options;
  options.caller_waits = true;
  for (std::uint64_t i = 0; i < count; ++i) Need(Need(Get().launch.Start(Get().buffers, options)).Wait());
  return 0;
}

std::uint64_t RunGraphAndWait(std::uint64_t count) {
  purlin::ExecuteOptions options;
  options.caller_waits = true;
  purlin::Buffer& array = Get().array;
  for (std::uint64_t i = 0; i < count; ++i) {
    purlin::Execution execution = Need(Get().graph.Execute({array}, options));
    Need(execution.done.Wait());
    array = std::move(execution.outputs[0]);
  }
  return 0;
}

constexpr Op kOps[] = {
    {"cuda without a device: allocate and free 1 MiB", "purlin", 1000, AllocateAndFree, kOneThread},
    {"cuda without a device: copy 4 KiB up, waited for", "purlin", 1000, CopyUp, kOneThread},
    {"cuda without a device: launch with 4 ready buffers, waited for", "purlin", 1000, LaunchAndWait, kOneThread},
    {"cuda without a device: graph of 20 again, waited for", "purlin", 1000, RunGraphAndWait, kOneThread},
};

}  // namespace

OpList CudaOps() {
  if (!IsOnADriverThatDoesNothing()) return {nullptr, 0};
  return {kOps, sizeof(kOps) / sizeof(kOps[0])};
}
