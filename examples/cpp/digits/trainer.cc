#include "trainer.h"

#include <algorithm>
#include <utility>

#include "host_trainer.h"
#include "kernel_trainer.h"
#include "model.h"
#include "text.h"

namespace digits {
namespace {

constexpr std::size_t kStepsInFlight = 3;
// Over all devices, as long as each gets one; so the noise of a step does not depend on how many share it.
constexpr std::size_t kImagesPerStep = 256;

}  // namespace

purlin::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const purlin::Client& client, const Dataset& dataset,
                                                           const Options& options) {
  const std::size_t devices = client.devices().size();
  if (devices > dataset.training.size()) {
    return purlin::InvalidArgumentError(
        Format("%zu devices cannot share %zu training images: each needs one", devices, dataset.training.size()));
  }
  if (options.kernels || options.program || options.platform != "host") {
    return KernelTrainer::Create(client, dataset, options.program);
  }
  return HostTrainer::Create(client, dataset);
}

purlin::Status Trainer::Train(int steps, const std::function<void(int)>& on_step) {
  int finished = 0;
  for (int step = 0; step < steps; ++step) {
    if (in_flight_.size() == kStepsInFlight) {
      const purlin::Status status = WaitForOldestStep();
      if (!status.ok()) return status;
      on_step(++finished);
    }
    in_flight_.push_back(EnqueueStep(static_cast<std::size_t>(step)));
  }
  while (!in_flight_.empty()) {
    const purlin::Status status = WaitForOldestStep();
    if (!status.ok()) return status;
    on_step(++finished);
  }
  return purlin::OkStatus();
}

purlin::Status Trainer::WaitForOldestStep() {
  const purlin::Event oldest = std::move(in_flight_.front());
  in_flight_.pop_front();
  return oldest.Wait();
}

void Trainer::Settle() {
  while (!in_flight_.empty()) WaitForOldestStep().IgnoreError();
}

ShardOfImages::ShardOfImages(const Dataset& dataset, std::size_t index, std::size_t devices) {
  const std::size_t all = dataset.training.size();
  const std::size_t begin = index * all / devices;
  examples = dataset.training.data() + begin;
  rows = (index + 1) * all / devices - begin;
  batch_rows = std::min(rows, (kImagesPerStep + devices - 1) / devices);
}

std::size_t RowsOf(const purlin::RawBuffer& examples) { return examples.on_device_size_bytes() / sizeof(Example); }

purlin::StatusOr<purlin::RawBuffer> AllocatePinned(const purlin::Device& device, std::size_t size_bytes) {
  const purlin::StatusOr<purlin::MemorySpace> space = device.memory_space("pinned_host");
  if (!space.ok()) return space.status();
  return purlin::RawBuffer::Allocate(*space, size_bytes);
}

purlin::StatusOr<std::vector<purlin::RawBuffer>> Minibatches(const purlin::RawBuffer& examples,
                                                             std::size_t batch_rows) {
  const std::size_t rows = RowsOf(examples);
  std::vector<purlin::RawBuffer> minibatches;
  for (std::size_t begin = 0; begin < rows; begin += batch_rows) {
    const std::size_t count = std::min(batch_rows, rows - begin);
    purlin::StatusOr<purlin::RawBuffer> slice = examples.Slice(begin * sizeof(Example), count * sizeof(Example));
    if (!slice.ok()) return slice.status();
    minibatches.push_back(*std::move(slice));
  }
  return minibatches;
}

}  // namespace digits
