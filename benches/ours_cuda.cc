// Purlin's instructions for operations of the platform "cuda", on a driver that does nothing: the fake driver of tests
// in its empty mode. Times on it would say nothing, so without it there are no rows; a GPU's are in rust/cuda/benches.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "need.h"
#include "ours.h"
#include "purlin/client.h"
#include "purlin/event.h"
#include "purlin/kernel.h"
#include "purlin/kernel_loader_spec.h"
#include "purlin/loaded_kernel.h"
#include "purlin/raw_buffer.h"

namespace {

constexpr std::size_t kBytes = 4096;
constexpr std::uint64_t kChain = 100;

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
};

purlin::KernelLaunch FourOperands(const purlin::Device& device) {
  purlin::KernelArgsPackingSpec packing;
  packing.PushAddress(0).PushAddress(1).PushAddress(2).PushAddress(3);
  const purlin::KernelLoaderSpec spec = purlin::KernelLoaderSpec::Ptx(kPtx, "four", 4).WithPacking(std::move(packing));
  const purlin::LoadedKernel kernel = Need(purlin::LoadedKernel::Load(device, spec));
  const purlin::KernelOperand operand{purlin::OperandAccess::kReadWrite, kBytes};
  return Need(kernel.Bind(purlin::LaunchDimensions::Linear(1024, 256), {{operand, operand, operand, operand}}));
}

// Never destroyed, as the other clients of measurements are not.
const Gpu& Get() {
  static const Gpu* const made = [] {
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
    return new Gpu{device, space, std::move(buffers), pinned, FourOperands(device)};
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

// `count` is of launches.
std::uint64_t LaunchChain(std::uint64_t count) {
  for (std::uint64_t done = 0; done < count; done += kChain) {
    purlin::Event last;
    for (std::uint64_t i = 0; i < kChain; ++i) {
      purlin::LaunchOptions options;
      if (i > 0) options.dependencies = {&last, 1};
      last = Need(Get().launch.Start(Get().buffers, options));
    }
    Need(last.Wait());
  }
  return 0;
}

// Up, a kernel, and down, by events.
std::uint64_t UpKernelDown(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const purlin::Event up = Get().pinned.CopyTo(Get().buffers[0]);
    purlin::LaunchOptions options;
    options.dependencies = {&up, 1};
    const purlin::Event ran = Need(Get().launch.Start(Get().buffers, options));
    Need(Get().buffers[0].CopyTo(Get().pinned, {&ran, 1}).Wait());
  }
  return 0;
}

constexpr Op kOps[] = {
    {"cuda without a device: allocate and free 1 MiB", "purlin", 1000, AllocateAndFree, kOneThread},
    {"cuda without a device: copy 4 KiB up, waited for", "purlin", 1000, CopyUp, kOneThread},
    {"cuda without a device: launch with 4 ready buffers, waited for", "purlin", 1000, LaunchAndWait, kOneThread},
    {"cuda without a device: 100 launches behind each other, each", "purlin", 10000, LaunchChain, kOneThread},
    {"cuda without a device: up, kernel, down by events", "purlin", 1000, UpKernelDown, kOneThread},
};

}  // namespace

OpList CudaOps() {
  if (!IsOnADriverThatDoesNothing()) return {nullptr, 0};
  return {kOps, sizeof(kOps) / sizeof(kOps[0])};
}
