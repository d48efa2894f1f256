// Digits: the images, from a file of lines "64 pixels 0..16, label 0..9".
#ifndef DIGITS_DATASET_H_
#define DIGITS_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "model.h"
#include "purlin/status_or.h"

namespace digits {

struct Dataset {
  std::vector<Example> training;
  /// A fifth of the images, at least one. They are not used for training.
  std::vector<Example> held_out;
};

/// Reads the file, shuffles its lines by `seed` and splits them. Lines may end in CR LF. Errors name the file and,
/// where one line is wrong, its number and what is wrong with it: kNotFound (cannot be read), kInvalidArgument (the
/// content, or more than 256 MiB of it).
purlin::StatusOr<Dataset> ReadDataset(const std::string& path, std::uint64_t seed);

}  // namespace digits

#endif  // DIGITS_DATASET_H_
