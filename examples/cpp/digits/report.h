// Digits: the report that is printed at the end.
#ifndef DIGITS_REPORT_H_
#define DIGITS_REPORT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "purlin/client.h"

namespace digits {

struct Result {
  std::size_t training_images = 0;
  std::size_t held_out_images = 0;
  std::size_t correct = 0;
  std::size_t images_per_step = 0;
  int steps = 0;
  std::uint64_t seed = 0;
  std::uint64_t checksum = 0;
  /// Of the training alone.
  std::chrono::nanoseconds wall{0};
  /// Time in tasks, by device.
  std::vector<std::chrono::nanoseconds> busy;
};

/// A few lines, and a table of the devices.
std::string Report(const purlin::Client& client, const Result& result);

}  // namespace digits

#endif  // DIGITS_REPORT_H_
