// Digits: the kernels that compute a device's gradient, as one program.
#ifndef DIGITS_GRADIENT_PROGRAM_H_
#define DIGITS_GRADIENT_PROGRAM_H_

#include <cstddef>
#include <string>

#include "purlin/device.h"
#include "purlin/event.h"
#include "purlin/executable.h"
#include "purlin/raw_buffer.h"
#include "purlin/span.h"
#include "purlin/status_or.h"

namespace digits {

class GradientProgram {
 public:
  /// For minibatches of `rows` images on `device`, of that platform. Errors of building and loading as they are.
  static purlin::StatusOr<GradientProgram> Create(const purlin::Device& device, const std::string& platform,
                                                  std::size_t rows);

  /// Starts a run after all events: reads `weights` and the images at the beginning of `batch`, writes `gradient` and
  /// adds to `times`; one run at a time. Gives the run's event.
  [[nodiscard]] purlin::StatusOr<purlin::Event> Start(const purlin::RawBuffer& weights, const purlin::RawBuffer& batch,
                                                      const purlin::RawBuffer& times, const purlin::RawBuffer& gradient,
                                                      purlin::Span<const purlin::Event> after) const;

 private:
  GradientProgram(purlin::LoadedExecutable loaded, std::size_t rows);

  purlin::LoadedExecutable loaded_;
  std::size_t rows_;
};

}  // namespace digits

#endif  // DIGITS_GRADIENT_PROGRAM_H_
