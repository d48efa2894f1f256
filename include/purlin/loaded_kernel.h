// Purlin: kernels that are loaded for a device, and launches of them.
//
// ```cpp
// // Starts to[i] = 2 * from[i], by `__global__ void scale(float* to, const float* from, float factor)`.
// purlin::StatusOr<purlin::Event> Twice(const purlin::Device& device, std::string ptx, const purlin::RawBuffer& to,
//                                       const purlin::RawBuffer& from, const purlin::Event& from_is_written) {
//   purlin::KernelArgsPackingSpec packing;
//   packing.PushAddress(0).PushAddress(1).PushConstant(2.0f);
//   const purlin::StatusOr<purlin::LoadedKernel> kernel = purlin::LoadedKernel::Load(
//       device, purlin::KernelLoaderSpec::Ptx(std::move(ptx), "scale", 3).WithPacking(std::move(packing)));
//   if (!kernel.ok()) return kernel.status();
//   const std::size_t size_bytes = from.on_device_size_bytes();
//   const purlin::StatusOr<purlin::KernelLaunch> launch = kernel->Bind(
//       purlin::LaunchDimensions::Linear(size_bytes / sizeof(float), 256),
//       {{purlin::OperandAccess::kWrite, size_bytes}, {purlin::OperandAccess::kRead, size_bytes}});
//   if (!launch.ok()) return launch.status();
//   purlin::LaunchOptions options;
//   options.dependencies = {&from_is_written, 1};
//   return launch->Start({to, from}, options);  // it may be started again, and need not stay
// }
// ```
//
// On `cuda` a launch is one call of the driver, on one of the device's streams. On platforms whose kernels are
// functions of the host (`host`, `sim`), a kernel is a KernelFunction (kernel.h), which is called once for each block
// of the grid.
//
// Any thread may call every function. When memory is so short that small allocations fail, the process ends:
// SECURITY.md, "When memory is short".
#ifndef PURLIN_LOADED_KERNEL_H_
#define PURLIN_LOADED_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "purlin/device.h"
#include "purlin/event.h"
#include "purlin/export.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/handle.h"
#include "purlin/kernel_loader_spec.h"
#include "purlin/label.h"
#include "purlin/program.h"
#include "purlin/raw_buffer.h"
#include "purlin/source_location.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct LoadedKernelRep;
struct KernelLaunchRep;
}  // namespace internal

/// How many threads a launch has, and their shared memory.
struct LaunchDimensions {
  /// Blocks of threads, the fastest dimension first. None is 0.
  std::uint32_t grid[3] = {1, 1, 1};
  /// Threads of a block, the fastest dimension first. None is 0.
  std::uint32_t block[3] = {1, 1, 1};
  /// The dynamic shared memory of each block.
  std::uint32_t shared_memory_bytes = 0;

  /// At least `threads` threads in one dimension, `block_size` to a block, at least one block. At most 2^32 - 1 blocks,
  /// which no device has. A `block_size` of 0 is refused by LoadedKernel::Bind.
  static constexpr LaunchDimensions Linear(std::uint64_t threads, std::uint32_t block_size) noexcept {
    const std::uint64_t divisor = block_size == 0 ? 1 : block_size;
    std::uint64_t blocks = threads / divisor + (threads % divisor == 0 ? 0 : 1);
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    if (blocks == 0) blocks = 1;
    if (blocks > kMost) blocks = kMost;
    LaunchDimensions dimensions;
    dimensions.grid[0] = static_cast<std::uint32_t>(blocks);
    dimensions.block[0] = block_size;
    return dimensions;
  }
};

static_assert(sizeof(LaunchDimensions) == 28 && offsetof(LaunchDimensions, block) == 12 &&
                  offsetof(LaunchDimensions, shared_memory_bytes) == 24,
              "LaunchDimensions ABI");

/// Memory that a launch passes to a kernel by its address.
struct KernelOperand {
  /// What the kernel does with it.
  OperandAccess access = OperandAccess::kRead;
  /// How many bytes, from the address.
  std::size_t size_bytes = 0;
};

static_assert(sizeof(KernelOperand) == 16 && offsetof(KernelOperand, access) == 0 &&
                  offsetof(KernelOperand, size_bytes) == 8,
              "KernelOperand ABI");

/// The order and the names of a launch. What it points to is read during the call.
struct LaunchOptions {
  /// For versioning: leave it alone.
  std::size_t struct_size = sizeof(LaunchOptions);
  /// The label of its event.
  Label label;
  /// The launch begins after all of these events, and fails with the first of them that fails.
  Span<const Event> dependencies;
  /// The estimated cost: as long as a copy of this many bytes takes. A kernel that is a function of the host, small and
  /// ready, runs inside the call.
  std::size_t size_bytes = 0;
  /// A number that the caller chooses. Reports show it.
  std::int32_t launch_id = 0;
  /// Which of the device's streams for launches, where the device has several: launches on different ones may go on at
  /// once. Every number is good; one that the device has no stream for means the first.
  std::uint8_t stream = 0;
  /// Whether the caller only waits until the event is terminal, so that the launch need not move to another thread.
  bool caller_waits = false;
};

/// A loaded kernel whose arguments are packed, but for the addresses of its operands. One word; copies share it.
class KernelLaunch final : public internal::Handle<KernelLaunch, const internal::KernelLaunchRep> {
 public:
  /// Shares the launch.
  PURLIN_API KernelLaunch(const KernelLaunch& other) noexcept;
  /// Leaves `other` empty, see purlin.h.
  KernelLaunch(KernelLaunch&& other) noexcept = default;
  /// See the constructors.
  KernelLaunch& operator=(const KernelLaunch& other) noexcept = default;
  /// See the constructors.
  KernelLaunch& operator=(KernelLaunch&& other) noexcept = default;
  PURLIN_API ~KernelLaunch();

  /// Starts the kernel on `memory`, a buffer for each operand, as long as that or longer. May be called any number of
  /// times, and does not block. The event happens when the kernel has ended; it fails with a dependency's error, or
  /// with the kernel's. The memory and the code are kept until then. `location` is the place of the event.
  ///
  /// After an error nothing is started. kInvalidArgument: another number of buffers than operands; a buffer that is
  /// shorter than its operand, of another client, or imported kImmutable and to be written; a struct_size that no
  /// version has. kFailedPrecondition: the client has shut down.
  ///
  /// The caller promises: from the moment when all dependencies are ready until the event is terminal, nothing else
  /// writes memory that the kernel reads, and nothing else accesses memory that it writes; the kernel accesses its
  /// operands as it was bound, and no other memory of devices.
  StatusOr<Event> Start(Span<const RawBuffer> memory, const LaunchOptions& options = LaunchOptions(),
                        SourceLocation location = SourceLocation::Current()) const {
    internal::EventHeader* done = nullptr;
    if (const internal::StatusRep* error = StartRaw(memory, options, location, &done)) return Status::FromRep(error);
    return Event::Adopt(done);
  }

 private:
  using Handle::Handle;

  /// Null, or an error; then `done` is not written.
  PURLIN_API const internal::StatusRep* StartRaw(Span<const RawBuffer> memory, const LaunchOptions& options,
                                                 SourceLocation location, internal::EventHeader** done) const;
};

/// A kernel that is loaded for a device. One word; copies share it, the last one unloads it.
class LoadedKernel final : public internal::Handle<LoadedKernel, const internal::LoadedKernelRep> {
 public:
  /// Loads the kernel for `device`. Code that is loaded there already is not loaded again. Blocks for as long as the
  /// driver's compiler takes, if the code is PTX that it does not know yet: MakeFutureOn(executor, ...) (future.h)
  /// moves that to another thread.
  ///
  /// kInvalidArgument: the name or the code is empty, or has a zero byte before its end, or is not UTF-8; a relocation
  /// outside of its argument; code that is none, with the driver's log; parameters of another number or other sizes
  /// than `spec` passes, where the driver tells. kNotFound: the code has no kernel of that name. kUnimplemented: code
  /// that the device cannot run, naming chip or version; code of another platform.
  PURLIN_API static StatusOr<LoadedKernel> Load(const Device& device, const KernelLoaderSpec& spec);

  /// Shares what is loaded.
  PURLIN_API LoadedKernel(const LoadedKernel& other) noexcept;
  /// Leaves `other` empty, see purlin.h.
  LoadedKernel(LoadedKernel&& other) noexcept = default;
  /// See the constructors.
  LoadedKernel& operator=(const LoadedKernel& other) noexcept = default;
  /// See the constructors.
  LoadedKernel& operator=(LoadedKernel&& other) noexcept = default;
  PURLIN_API ~LoadedKernel();

  /// A launch of this kernel on `operands`, to be started any number of times. Arguments are packed here.
  /// kInvalidArgument: dimensions that are 0 or beyond the device's limits, which the message has; an argument that
  /// names an operand that is not there; another number of arguments than the kernel's arity; an OperandAccess that
  /// does not exist.
  PURLIN_API StatusOr<KernelLaunch> Bind(const LaunchDimensions& dimensions, Span<const KernelOperand> operands) const;

  /// The device.
  [[nodiscard]] PURLIN_API Device device() const noexcept;
  /// KernelLoaderSpec::kernel_name.
  [[nodiscard]] PURLIN_API std::string name() const;

 private:
  using Handle::Handle;
};

static_assert(sizeof(LoadedKernel) == sizeof(void*) && sizeof(KernelLaunch) == sizeof(void*), "handles are one word");

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_LOADED_KERNEL_H_
