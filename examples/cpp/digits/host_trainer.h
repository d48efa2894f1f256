// Digits: descent by functions of the host, as work scheduled on events.
//
// Every device owns a shard of the training images, which lie in its pinned_host memory. A step, for each device:
//
//   batch    shard --copy--> batches[step % 2]       after the gradient of step - 2, which read that buffer
//   weights  master --copy--> weights                after the update of step - 1
//   gradient a task                                  after both copies
//   collect  gradient --copy--> collected            after the task
//
// and then, once for all devices, after all collecting copies:
//
//   update   a task: adds the gradients up in the order of the devices, and changes the master weights
//
// When memory may be written: the update of step - 1 runs after everything that step - 1 does with
// weights, gradient and collected, so an operation that waits for that update, directly or not, may write them again.
// Batches are copied without waiting for an update, and have `batch_free` instead.
//
// The order of additions never depends on which thread was faster: the result is the same whatever the number of
// threads.
#ifndef DIGITS_HOST_TRAINER_H_
#define DIGITS_HOST_TRAINER_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "dataset.h"
#include "purlin/client.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/raw_buffer.h"
#include "purlin/status_or.h"
#include "trainer.h"

namespace digits {

class HostTrainer final : public Trainer {
 public:
  /// As Trainer::Create.
  static purlin::StatusOr<std::unique_ptr<Trainer>> Create(const purlin::Client& client, const Dataset& dataset);
  /// Waits for what is in flight: tasks point into the trainer.
  ~HostTrainer() override;

  [[nodiscard]] const purlin::RawBuffer& weights() const override { return master_; }
  purlin::StatusOr<std::chrono::nanoseconds> Busy(std::size_t device) override { return shards_[device].busy; }
  [[nodiscard]] std::size_t images_per_step() const override;

 private:
  // One device's part.
  struct Shard {
    std::vector<purlin::RawBuffer> minibatches;  // Slices of the shard in pinned_host memory.
    std::array<purlin::RawBuffer, 2> batches;
    std::array<purlin::Event, 2> batch_free;
    purlin::RawBuffer weights;
    purlin::RawBuffer gradient;
    purlin::RawBuffer collected;  // In pinned_host memory.
    std::chrono::nanoseconds busy{0};
  };

  explicit HostTrainer(const purlin::Client& client, purlin::RawBuffer master);
  static purlin::StatusOr<Shard> MakeShard(const purlin::Device& device, const ShardOfImages& images);
  purlin::Event EnqueueStep(std::size_t step) override;
  /// Copies, gradient and collecting copy; the event of the last.
  purlin::Event EnqueueShard(Shard& shard, std::size_t step);
  purlin::Event EnqueueGradient(Shard& shard, std::size_t slot, std::size_t rows, const purlin::Event& weights_copied,
                                const purlin::Event& batch_copied);
  purlin::Event EnqueueUpdate(const std::vector<purlin::Event>& collected, std::size_t rows);
  void Update(std::size_t rows);

  purlin::ThreadPoolAsyncWorkRunner runner_;
  purlin::RawBuffer master_;
  std::vector<float> velocity_;
  std::vector<Shard> shards_;
  purlin::Event updated_;  // The last update that was enqueued, or the upload of the first weights.
};

}  // namespace digits

#endif  // DIGITS_HOST_TRAINER_H_
