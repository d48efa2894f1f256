// Digits: the accuracy of the weights on images that were not used for training.
#ifndef DIGITS_EVALUATION_H_
#define DIGITS_EVALUATION_H_

#include <cstddef>
#include <vector>

#include "model.h"
#include "purlin/client.h"
#include "purlin/raw_buffer.h"
#include "purlin/status_or.h"

namespace digits {

/// How many of `examples` are classified rightly: images and weights go to device 0, a task there predicts, and the
/// predictions come back. Blocks until done.
purlin::StatusOr<std::size_t> CountCorrect(const purlin::Client& client, const purlin::RawBuffer& weights,
                                           const std::vector<Example>& examples);

}  // namespace digits

#endif  // DIGITS_EVALUATION_H_
