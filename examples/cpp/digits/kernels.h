// Digits: the kernels of a step of descent, for devices whose kernels are functions of the host and for GPUs.
#ifndef DIGITS_KERNELS_H_
#define DIGITS_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "purlin/device.h"
#include "purlin/loaded_kernel.h"
#include "purlin/status_or.h"

namespace digits {

/// What a device's clock said. Zeros at the beginning.
struct Times {
  std::uint64_t begin_ns = 0;  // Of the errors that were computed last.
  std::uint64_t busy_ns = 0;   // From there to the gradient, summed up.
  std::uint32_t ended = 0;     // Blocks of the gradient that have ended.
};

/// A device, and the form of its kernels.
struct KernelDevice {
  purlin::Device device;
  bool is_cuda = false;  // PTX; elsewhere functions of the host.
};

// The kernels, loaded for a device. Errors of loading as they are.

/// On (errors, weights, examples, Times): errors[row, class] = the probability of the class, less one at the label.
purlin::StatusOr<purlin::KernelLaunch> ErrorsKernel(const KernelDevice& on, std::size_t rows);
/// On (gradient, errors, examples, Times): the gradient, summed over the examples.
purlin::StatusOr<purlin::KernelLaunch> GradientKernel(const KernelDevice& on, std::size_t rows);
/// On (weights, velocity, gradients[devices]): a step of descent by the gradients of `rows` examples in all.
purlin::StatusOr<purlin::KernelLaunch> UpdateKernel(const KernelDevice& on, std::size_t devices, std::size_t rows);

}  // namespace digits

#endif  // DIGITS_KERNELS_H_
