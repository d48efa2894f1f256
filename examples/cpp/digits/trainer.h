// Digits: data-parallel descent over the devices of a client. Every device owns a shard of the training images.
//
// The thread that calls Train() only enqueues, up to kStepsInFlight steps ahead, so a batch is copied while the step
// before it computes. What a step is made of: host_trainer.h, kernel_trainer.h. An event that fails takes all later
// ones with it, and Train() returns its error.
#ifndef DIGITS_TRAINER_H_
#define DIGITS_TRAINER_H_

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>

#include "dataset.h"
#include "options.h"
#include "purlin/client.h"
#include "purlin/device.h"
#include "purlin/event.h"
#include "purlin/raw_buffer.h"
#include "purlin/status.h"
#include "purlin/status_or.h"

namespace digits {

class Trainer {
 public:
  /// Allocates on all devices of `client` and begins to upload; `dataset` must live as long as the trainer.
  /// kInvalidArgument: more devices than training images. Errors of allocations, kernels and programs as they are.
  static purlin::StatusOr<std::unique_ptr<Trainer>> Create(const purlin::Client& client, const Dataset& dataset,
                                                           const Options& options);

  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  virtual ~Trainer() = default;

  /// Runs `steps` steps; calls `on_step(finished)` on this thread as they finish. The first error of any event ends it.
  purlin::Status Train(int steps, const std::function<void(int)>& on_step);

  /// The weights, float[kWeights] in memory of device 0; final once Train() has returned OK.
  [[nodiscard]] virtual const purlin::RawBuffer& weights() const = 0;
  /// Time that the gradients of a device took so far, by the clock of what computes them; for when Train() has
  /// returned.
  virtual purlin::StatusOr<std::chrono::nanoseconds> Busy(std::size_t device) = 0;
  /// Images per step, over all devices; the last step of a round over the images may have fewer.
  [[nodiscard]] virtual std::size_t images_per_step() const = 0;

 protected:
  Trainer() = default;
  /// Waits for all steps that are in flight, whatever becomes of them.
  void Settle();

 private:
  /// The event of the step's update.
  virtual purlin::Event EnqueueStep(std::size_t step) = 0;
  purlin::Status WaitForOldestStep();

  std::deque<purlin::Event> in_flight_;  // Updates of unfinished steps, oldest first.
};

/// The training images that device `index` of `devices` owns, and how many of them a step takes at most.
struct ShardOfImages {
  ShardOfImages(const Dataset& dataset, std::size_t index, std::size_t devices);

  const Example* examples;
  std::size_t rows;
  std::size_t batch_rows;
};

std::size_t RowsOf(const purlin::RawBuffer& examples);
purlin::StatusOr<purlin::RawBuffer> AllocatePinned(const purlin::Device& device, std::size_t size_bytes);
/// `examples`, in parts of `batch_rows` images; the last may have fewer.
purlin::StatusOr<std::vector<purlin::RawBuffer>> Minibatches(const purlin::RawBuffer& examples, std::size_t batch_rows);

}  // namespace digits

#endif  // DIGITS_TRAINER_H_
