// Digits: the kernels of a step of descent, for devices whose kernels are functions of the host and for GPUs.
#ifndef DIGITS_KERNELS_H_
#define DIGITS_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "purlin/device.h"
#include "purlin/kernel_loader_spec.h"
#include "purlin/loaded_kernel.h"
#include "purlin/program.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/status_or.h"

namespace digits {

/// What a device's clock said. Zeros at the beginning.
struct Times {
  std::uint64_t begin_ns = 0;  // Of the errors that were computed last.
  std::uint64_t busy_ns = 0;   // From there to the gradient, summed up.
  std::uint32_t ended = 0;     // Blocks of a GPU's gradient that have ended.
};

/// A kernel, and how it is called.
struct StepKernel {
  purlin::KernelLoaderSpec spec;
  std::vector<purlin::KernelOperand> operands;
  purlin::LaunchDimensions dimensions;
};

// The kernels for a platform: PTX for `cuda`, elsewhere functions that are registered for `host` and `sim`. kNotFound:
// another platform.

/// On (errors, weights, examples, Times): errors[row, class] = the probability of the class, less one at the label.
purlin::StatusOr<StepKernel> ErrorsKernel(const std::string& platform, std::size_t rows);
/// On (gradient, errors, examples, Times): the gradient, summed over the examples.
purlin::StatusOr<StepKernel> GradientKernel(const std::string& platform, std::size_t rows);
/// On (weights, velocity, gradients[devices]): a step of descent by the gradients of `rows` examples in all.
purlin::StatusOr<StepKernel> UpdateKernel(const std::string& platform, std::size_t devices, std::size_t rows);

/// The kernel, loaded for a device of its platform. The kernel's error, if there is none, and those of loading as they
/// are.
purlin::StatusOr<purlin::KernelLaunch> Load(const purlin::Device& device, const purlin::StatusOr<StepKernel>& kernel);
/// Adds the kernel on `slices` to a program for its platform. Errors as Load.
purlin::Status AddTo(purlin::ProgramBuilder& builder, const purlin::StatusOr<StepKernel>& kernel,
                     purlin::Span<const purlin::Slice> slices);

}  // namespace digits

#endif  // DIGITS_KERNELS_H_
