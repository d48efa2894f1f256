// Digits: descent by kernels, on any platform: on GPUs the host only enqueues.
//
// Every device owns a shard of the training images, which lie in its pinned_host memory. Device 0 has the master
// weights. A step, for each device:
//
//   batch    shard --copy--> batches[step % 2]       after the gradient of step - 2, which read that buffer
//   weights  master --copy--> weights                after the update of step - 1
//   errors   a kernel                                after both copies
//   gradient a kernel                                after the errors
//   collect  gradient --copy--> gradients[device]    after the gradient; in memory of device 0
//
// and then, once for all devices, after all collecting copies:
//
//   update   a kernel on device 0
//
// The update of step - 1 runs after everything that step - 1 does with weights, errors, gradient and gradients, so an
// operation that waits for that update, directly or not, may write them again.
#ifndef DIGITS_KERNEL_TRAINER_H_
#define DIGITS_KERNEL_TRAINER_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataset.h"
#include "gradient_program.h"
#include "purlin/client.h"
#include "purlin/device.h"
#include "purlin/event.h"
#include "purlin/loaded_kernel.h"
#include "purlin/raw_buffer.h"
#include "purlin/span.h"
#include "purlin/status_or.h"
#include "trainer.h"

namespace digits {

class KernelTrainer final : public Trainer {
 public:
  /// As Trainer::Create. `as_program`: gradients are computed by programs.
  static purlin::StatusOr<std::unique_ptr<Trainer>> Create(const purlin::Client& client, const Dataset& dataset,
                                                           bool as_program);
  /// Waits for what is in flight: uploads read the images and the zeros of the beginning.
  ~KernelTrainer() override;

  [[nodiscard]] const purlin::RawBuffer& weights() const override { return memory_[kMaster]; }
  purlin::StatusOr<std::chrono::nanoseconds> Busy(std::size_t device) override;
  [[nodiscard]] std::size_t images_per_step() const override;

 private:
  // Memory of a shard, by number.
  enum { kEven, kOdd, kWeightsCopy, kErrors, kGradient, kTimes, kShardMemory };
  // Memory of device 0, by number.
  enum { kMaster, kVelocity, kGradients, kMasterMemory };

  // What computes the gradient of a minibatch of so many images: a program, or two launches.
  struct Gradient {
    std::size_t rows;
    std::optional<GradientProgram> program{};
    std::optional<purlin::KernelLaunch> errors_launch{};
    std::optional<purlin::KernelLaunch> gradient_launch{};
  };

  // One device's part.
  struct Shard {
    std::vector<purlin::RawBuffer> minibatches;  // Slices of the shard in pinned_host memory.
    std::vector<purlin::RawBuffer> memory;       // In the device's memory.
    std::array<purlin::Event, 2> batch_free;
    std::vector<Gradient> gradients;  // One for each number of images of a minibatch.
    purlin::RawBuffer collected;      // Its part of the gradients, in memory of device 0.
  };

  KernelTrainer(purlin::Device first, std::string platform);
  purlin::Status AddShard(const purlin::Device& device, const ShardOfImages& images, bool as_program);
  [[nodiscard]] purlin::StatusOr<Gradient> MakeGradient(const purlin::Device& device, std::size_t rows,
                                                        bool as_program) const;
  purlin::Event EnqueueStep(std::size_t step) override;
  /// All but the update; adds the number of images to `rows`.
  purlin::StatusOr<purlin::Event> EnqueueShard(Shard& shard, std::size_t step, std::size_t& rows);
  static purlin::StatusOr<purlin::Event> EnqueueGradient(const Gradient& gradient,
                                                         const std::vector<purlin::RawBuffer>& memory,
                                                         const purlin::RawBuffer& batch,
                                                         purlin::Span<const purlin::Event> copied);
  purlin::StatusOr<purlin::Event> EnqueueUpdate(const std::vector<purlin::Event>& collected, std::size_t rows);
  /// Zeros to `memory`.
  purlin::Event Clear(const purlin::RawBuffer& memory);

  const purlin::Device first_;  // Has the master weights.
  const std::string platform_;
  std::vector<std::byte> zeros_;
  std::vector<purlin::RawBuffer> memory_;
  std::vector<Shard> shards_;
  std::vector<std::pair<std::size_t, purlin::KernelLaunch>> updates_;  // By the number of images of a step.
  std::vector<purlin::Event> uploads_;
  purlin::Event updated_;  // The last update that was enqueued, or the first weights.
};

}  // namespace digits

#endif  // DIGITS_KERNEL_TRAINER_H_
