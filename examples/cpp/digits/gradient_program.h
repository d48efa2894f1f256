// Digits: what a device does in a step, as a program: a kernel that computes the gradient, and a copy to where it is
// collected.
#ifndef DIGITS_GRADIENT_PROGRAM_H_
#define DIGITS_GRADIENT_PROGRAM_H_

#include <chrono>
#include <cstddef>

#include "purlin/device.h"
#include "purlin/event.h"
#include "purlin/executable.h"
#include "purlin/raw_buffer.h"
#include "purlin/status_or.h"

namespace digits {

class GradientProgram {
 public:
  /// For minibatches of `rows` images on `device`. The kernel adds its time to `busy`, which must outlive all runs; one
  /// run at a time. Errors of building and loading as they are.
  static purlin::StatusOr<GradientProgram> Create(const purlin::Device& device, std::size_t rows,
                                                  std::chrono::nanoseconds* busy);

  /// Images of a minibatch.
  [[nodiscard]] std::size_t rows() const { return rows_; }

  /// Starts a run after both events: reads `weights` and the first rows() images of `batch`, and writes `collected`,
  /// in pinned_host memory. Gives the run's event, or one that has failed.
  [[nodiscard]] purlin::Event Start(const purlin::RawBuffer& weights, const purlin::Event& weights_copied,
                                    const purlin::RawBuffer& batch, const purlin::Event& batch_copied,
                                    const purlin::RawBuffer& collected) const;

 private:
  GradientProgram(purlin::LoadedExecutable loaded, std::size_t rows);

  purlin::LoadedExecutable loaded_;
  std::size_t rows_;
};

}  // namespace digits

#endif  // DIGITS_GRADIENT_PROGRAM_H_
