#include "kernels.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kernels_ptx.h"
#include "model.h"
#include "purlin/kernel.h"
#include "purlin/kernel_symbol.h"

namespace digits {
namespace {

using purlin::KernelFrame;
using purlin::KernelOperand;
using purlin::OperandAccess;

// Threads of a block, as kernels.cu wants them; on the host a block is one call.
constexpr std::size_t kThreadsPerImage = 64;
constexpr std::size_t kFeaturesPerBlock = 64;
constexpr std::size_t kWeightsPerBlock = 256;
constexpr std::size_t kErrorBytes = kClasses * sizeof(float);

// Functions of the host -----------------------------------------------------------------------------------------------

template <typename T>
T* Argument(const KernelFrame* frame, std::size_t index) {
  return static_cast<T*>(frame->args[index].data);
}

std::uint64_t Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

void* HostErrors(const KernelFrame* frame) {
  const std::size_t row = frame->id->x;
  auto* times = Argument<Times>(frame, 3);
  if (row == 0) times->begin_ns = Now();
  ComputeErrors(Argument<const float>(frame, 1), Argument<const Example>(frame, 2)[row],
                Argument<float>(frame, 0) + row * kClasses);
  return nullptr;
}

// One block, because blocks of a program's kernel may run at once and share no memory.
void* HostGradient(const KernelFrame* frame) {
  auto* times = Argument<Times>(frame, 3);
  SumGradient(Argument<const float>(frame, 1), Argument<const Example>(frame, 2), *Argument<std::uint32_t>(frame, 4),
              Argument<float>(frame, 0));
  times->busy_ns += Now() - times->begin_ns;
  return nullptr;
}

void* HostUpdate(const KernelFrame* frame) {
  const std::size_t begin = frame->id->x * kWeightsPerBlock;
  const std::size_t end = std::min(begin + kWeightsPerBlock, kWeights);
  auto* weights = Argument<float>(frame, 0);
  auto* velocity = Argument<float>(frame, 1);
  const auto* gradients = Argument<const float>(frame, 2);
  const std::uint32_t devices = *Argument<std::uint32_t>(frame, 3);
  const float scale = *Argument<float>(frame, 4);
  const float momentum = *Argument<float>(frame, 5);
  for (std::size_t i = begin; i < end; ++i) {
    float sum = gradients[i];
    for (std::size_t device = 1; device < devices; ++device) sum += gradients[device * kWeights + i];
    UpdateWeight(sum, scale, momentum, velocity[i], weights[i]);
  }
  return nullptr;
}

// Gives the functions their names in this process, once.
const purlin::Status& RegisterFunctions() {
  static const purlin::Status registered = [] {
    const std::pair<const char*, purlin::KernelFunction> functions[] = {
        {"digits_errors", HostErrors}, {"digits_gradient", HostGradient}, {"digits_update", HostUpdate}};
    purlin::Status status;
    for (const char* platform : {"host", "sim"}) {
      for (const auto& [name, function] : functions) {
        status.Update(purlin::RegisterKernelFunction(name, platform, function));
      }
    }
    return status;
  }();
  return registered;
}

// ---------------------------------------------------------------------------------------------------------------------

bool IsCuda(const purlin::KernelLoaderSpec& spec) { return spec.payload == purlin::KernelPayload::kPtx; }

// The kernel of that name, on `operands` addresses and then the constants.
template <typename... Constants>
purlin::StatusOr<StepKernel> Make(const std::string& platform, const char* name, std::vector<KernelOperand> operands,
                                  purlin::LaunchDimensions dimensions, Constants... constants) {
  purlin::KernelArgsPackingSpec packing;
  for (std::uint32_t i = 0; i < operands.size(); ++i) packing.PushAddress(i);
  (packing.PushConstant(constants), ...);
  const auto arity = static_cast<std::uint32_t>(operands.size() + sizeof...(constants));
  if (!RegisterFunctions().ok()) return RegisterFunctions();
  purlin::StatusOr<purlin::KernelLoaderSpec> spec = platform == "cuda"
                                                        ? purlin::KernelLoaderSpec::Ptx(kKernelsPtx, name, arity)
                                                        : purlin::FindKernelSymbol(name, platform, arity);
  if (!spec.ok()) return spec.status();
  return StepKernel{(*std::move(spec)).WithPacking(std::move(packing)), std::move(operands), dimensions};
}

}  // namespace

purlin::StatusOr<StepKernel> ErrorsKernel(const std::string& platform, std::size_t rows) {
  return Make(platform, "digits_errors",
              {{OperandAccess::kWrite, rows * kErrorBytes},
               {OperandAccess::kRead, kWeightBytes},
               {OperandAccess::kRead, rows * sizeof(Example)},
               {OperandAccess::kReadWrite, sizeof(Times)}},
              purlin::LaunchDimensions::Linear(rows * kThreadsPerImage, kThreadsPerImage));
}

purlin::StatusOr<StepKernel> GradientKernel(const std::string& platform, std::size_t rows) {
  return Make(
      platform, "digits_gradient",
      {{OperandAccess::kWrite, kWeightBytes},
       {OperandAccess::kRead, rows * kErrorBytes},
       {OperandAccess::kRead, rows * sizeof(Example)},
       {OperandAccess::kReadWrite, sizeof(Times)}},
      platform == "cuda" ? purlin::LaunchDimensions::Linear(kFeatures, kFeaturesPerBlock) : purlin::LaunchDimensions(),
      static_cast<std::uint32_t>(rows));
}

purlin::StatusOr<StepKernel> UpdateKernel(const std::string& platform, std::size_t devices, std::size_t rows) {
  return Make(platform, "digits_update",
              {{OperandAccess::kReadWrite, kWeightBytes},
               {OperandAccess::kReadWrite, kWeightBytes},
               {OperandAccess::kRead, devices * kWeightBytes}},
              purlin::LaunchDimensions::Linear(kWeights, kWeightsPerBlock), static_cast<std::uint32_t>(devices),
              StepScale(rows), kMomentum);
}

purlin::StatusOr<purlin::KernelLaunch> Load(const purlin::Device& device, const purlin::StatusOr<StepKernel>& kernel) {
  if (!kernel.ok()) return kernel.status();
  const purlin::StatusOr<purlin::LoadedKernel> loaded = purlin::LoadedKernel::Load(device, kernel->spec);
  if (!loaded.ok()) return loaded.status();
  return loaded->Bind(kernel->dimensions, kernel->operands);
}

purlin::Status AddTo(purlin::ProgramBuilder& builder, const purlin::StatusOr<StepKernel>& kernel,
                     purlin::Span<const purlin::Slice> slices) {
  if (!kernel.ok()) return kernel.status();
  const auto& [spec, operands, dimensions] = *kernel;
  std::vector<purlin::Operand> of_command;
  for (std::size_t i = 0; i < operands.size(); ++i) of_command.push_back({slices[i], operands[i].access});
  const auto& [x, y, z] = dimensions.grid;
  if (IsCuda(spec)) {
    const auto& [block_x, block_y, block_z] = dimensions.block;
    const purlin::StatusOr<purlin::Kernel> of_device = purlin::Kernel::OfDevice(spec, {block_x, block_y, block_z});
    if (!of_device.ok()) return of_device.status();
    builder.AddKernel(*of_device, of_command, {x, y, z});
    return purlin::OkStatus();
  }
  // Functions of the host take the constants as operands.
  for (std::size_t i = operands.size(); i < spec.arity; ++i) {
    const purlin::Span<const std::byte> bytes = spec.packing->arguments[i].bytes;
    of_command.push_back(purlin::Operand::Invariant(builder.AddConstant(bytes)));
  }
  const auto function = reinterpret_cast<purlin::KernelFunction>(spec.address);
  builder.AddKernel(purlin::Kernel::Native(spec.kernel_name, function), of_command, {x, y, z});
  return purlin::OkStatus();
}

}  // namespace digits
