#include "kernels.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "kernels_ptx.h"
#include "model.h"
#include "purlin/kernel.h"
#include "purlin/kernel_loader_spec.h"

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

// The weights of a block: from the first to behind the last.
std::pair<std::size_t, std::size_t> WeightsOfBlock(const KernelFrame* frame, std::size_t most) {
  const std::size_t begin = frame->id->x * most;
  return {begin, std::min(begin + most, kWeights)};
}

void* HostErrors(const KernelFrame* frame) {
  const std::size_t row = frame->id->x;
  auto* times = Argument<Times>(frame, 3);
  if (row == 0) times->begin_ns = Now();
  ComputeErrors(Argument<const float>(frame, 1), Argument<const Example>(frame, 2)[row],
                Argument<float>(frame, 0) + row * kClasses);
  return nullptr;
}

void* HostGradient(const KernelFrame* frame) {
  const auto [begin, end] = WeightsOfBlock(frame, kFeaturesPerBlock * kClasses);
  auto* times = Argument<Times>(frame, 3);
  SumGradient(Argument<const float>(frame, 1), Argument<const Example>(frame, 2), *Argument<std::uint32_t>(frame, 4),
              begin, end, Argument<float>(frame, 0));
  if (++times->ended == frame->num_workgroups->x) {
    times->ended = 0;
    times->busy_ns += Now() - times->begin_ns;
  }
  return nullptr;
}

void* HostUpdate(const KernelFrame* frame) {
  const auto [begin, end] = WeightsOfBlock(frame, kWeightsPerBlock);
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

// ---------------------------------------------------------------------------------------------------------------------

// The kernel of that name, on `operands` addresses and then the constants.
template <typename... Constants>
purlin::StatusOr<purlin::KernelLaunch> Bind(const KernelDevice& on, const char* name, purlin::KernelFunction function,
                                            const std::vector<KernelOperand>& operands,
                                            purlin::LaunchDimensions dimensions, Constants... constants) {
  purlin::KernelArgsPackingSpec packing;
  for (std::uint32_t i = 0; i < operands.size(); ++i) packing.PushAddress(i);
  (packing.PushConstant(constants), ...);
  const auto arity = static_cast<std::uint32_t>(operands.size() + sizeof...(constants));
  purlin::KernelLoaderSpec spec = on.is_cuda ? purlin::KernelLoaderSpec::Ptx(kKernelsPtx, name, arity)
                                             : purlin::KernelLoaderSpec::Function(function, name, arity);
  const purlin::StatusOr<purlin::LoadedKernel> kernel =
      purlin::LoadedKernel::Load(on.device, std::move(spec).WithPacking(std::move(packing)));
  if (!kernel.ok()) return kernel.status();
  return kernel->Bind(dimensions, operands);
}

}  // namespace

purlin::StatusOr<purlin::KernelLaunch> ErrorsKernel(const KernelDevice& on, std::size_t rows) {
  const std::vector<KernelOperand> operands = {{OperandAccess::kWrite, rows * kErrorBytes},
                                               {OperandAccess::kRead, kWeightBytes},
                                               {OperandAccess::kRead, rows * sizeof(Example)},
                                               {OperandAccess::kReadWrite, sizeof(Times)}};
  return Bind(on, "digits_errors", HostErrors, operands,
              purlin::LaunchDimensions::Linear(rows * kThreadsPerImage, kThreadsPerImage));
}

purlin::StatusOr<purlin::KernelLaunch> GradientKernel(const KernelDevice& on, std::size_t rows) {
  const std::vector<KernelOperand> operands = {{OperandAccess::kWrite, kWeightBytes},
                                               {OperandAccess::kRead, rows * kErrorBytes},
                                               {OperandAccess::kRead, rows * sizeof(Example)},
                                               {OperandAccess::kReadWrite, sizeof(Times)}};
  return Bind(on, "digits_gradient", HostGradient, operands,
              purlin::LaunchDimensions::Linear(kFeatures, kFeaturesPerBlock), static_cast<std::uint32_t>(rows));
}

purlin::StatusOr<purlin::KernelLaunch> UpdateKernel(const KernelDevice& on, std::size_t devices, std::size_t rows) {
  const std::vector<KernelOperand> operands = {{OperandAccess::kReadWrite, kWeightBytes},
                                               {OperandAccess::kReadWrite, kWeightBytes},
                                               {OperandAccess::kRead, devices * kWeightBytes}};
  return Bind(on, "digits_update", HostUpdate, operands, purlin::LaunchDimensions::Linear(kWeights, kWeightsPerBlock),
              static_cast<std::uint32_t>(devices), StepScale(rows), kMomentum);
}

}  // namespace digits
