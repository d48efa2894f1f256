#include "host_trainer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "purlin/device.h"

namespace digits {
namespace {

// The host backend's memory is this machine's, so kernels reach it through a pointer; events order its accesses.
const float* Floats(const purlin::RawBuffer& buffer) { return static_cast<const float*>(buffer.host_pointer()); }
float* MutableFloats(const purlin::RawBuffer& buffer) { return static_cast<float*>(buffer.host_pointer()); }

}  // namespace

HostTrainer::HostTrainer(const purlin::Client& client, purlin::RawBuffer master)
    : runner_(client.runner()), master_(std::move(master)), velocity_(kWeights, 0.0F) {
  // Zeros are a fine start: the problem is convex. The velocity's are not written before this copy was.
  updated_ = master_.CopyFromHost(velocity_.data(), 0, kWeightBytes);
}

HostTrainer::~HostTrainer() {
  Settle();
  updated_.Wait().IgnoreError();
  for (const Shard& shard : shards_) purlin::WhenAll(shard.batch_free).Wait().IgnoreError();
}

purlin::StatusOr<std::unique_ptr<Trainer>> HostTrainer::Create(const purlin::Client& client, const Dataset& dataset) {
  const std::vector<purlin::Device> devices = client.devices();
  purlin::StatusOr<purlin::RawBuffer> master = AllocatePinned(devices[0], kWeightBytes);
  if (!master.ok()) return master.status();
  std::unique_ptr<HostTrainer> trainer(new HostTrainer(client, *std::move(master)));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const ShardOfImages images(dataset, i, devices.size());
    purlin::StatusOr<Shard> shard = MakeShard(devices[i], images);
    if (!shard.ok()) return shard.status();
    trainer->shards_.push_back(*std::move(shard));
  }
  return std::unique_ptr<Trainer>(std::move(trainer));
}

purlin::StatusOr<HostTrainer::Shard> HostTrainer::MakeShard(const purlin::Device& device, const ShardOfImages& images) {
  const std::size_t batch_bytes = images.batch_rows * sizeof(Example);
  const purlin::MemorySpace memory = device.default_memory_space();
  const purlin::StatusOr<purlin::RawBuffer> pinned = AllocatePinned(device, images.rows * sizeof(Example));
  const purlin::StatusOr<purlin::RawBuffer> even = purlin::RawBuffer::Allocate(memory, batch_bytes);
  const purlin::StatusOr<purlin::RawBuffer> odd = purlin::RawBuffer::Allocate(memory, batch_bytes);
  const purlin::StatusOr<purlin::RawBuffer> weights = purlin::RawBuffer::Allocate(memory, kWeightBytes);
  const purlin::StatusOr<purlin::RawBuffer> gradient = purlin::RawBuffer::Allocate(memory, kWeightBytes);
  const purlin::StatusOr<purlin::RawBuffer> collected = AllocatePinned(device, kWeightBytes);
  for (const auto* buffer : {&pinned, &even, &odd, &weights, &gradient, &collected}) {
    if (!buffer->ok()) return buffer->status();
  }
  purlin::StatusOr<std::vector<purlin::RawBuffer>> minibatches = Minibatches(*pinned, images.batch_rows);
  if (!minibatches.ok()) return minibatches.status();
  const purlin::Event uploaded = pinned->CopyFromHost(images.examples, 0, images.rows * sizeof(Example));
  return Shard{*std::move(minibatches), {*even, *odd}, {uploaded, uploaded}, *weights, *gradient, *collected};
}

std::size_t HostTrainer::images_per_step() const {
  std::size_t rows = 0;
  for (const Shard& shard : shards_) rows += RowsOf(shard.batches[0]);
  return rows;
}

purlin::Event HostTrainer::EnqueueStep(std::size_t step) {
  std::vector<purlin::Event> collected;
  std::size_t rows = 0;
  for (Shard& shard : shards_) {
    collected.push_back(EnqueueShard(shard, step));
    rows += RowsOf(shard.minibatches[step % shard.minibatches.size()]);
  }
  updated_ = EnqueueUpdate(collected, rows);
  return updated_;
}

purlin::Event HostTrainer::EnqueueShard(Shard& shard, std::size_t step) {
  const purlin::RawBuffer& minibatch = shard.minibatches[step % shard.minibatches.size()];
  const std::size_t rows = RowsOf(minibatch);
  const std::size_t slot = step % shard.batches.size();
  const purlin::Event batch_copied = minibatch.CopyTo(shard.batches[slot], {shard.batch_free[slot]});
  const purlin::Event weights_copied = master_.CopyTo(shard.weights, {updated_});
  shard.batch_free[slot] = EnqueueGradient(shard, slot, rows, weights_copied, batch_copied);
  return shard.gradient.CopyTo(shard.collected, {shard.batch_free[slot]});
}

purlin::Event HostTrainer::EnqueueGradient(Shard& shard, std::size_t slot, std::size_t rows,
                                           const purlin::Event& weights_copied, const purlin::Event& batch_copied) {
  purlin::EventPromise promise("gradient computed");
  const purlin::Event computed = promise.event();
  auto compute = [&shard, slot, rows, promise = std::move(promise)](const purlin::Status& copied) mutable {
    if (copied.ok()) {
      const auto start = std::chrono::steady_clock::now();
      const auto* examples = static_cast<const Example*>(shard.batches[slot].host_pointer());
      ComputeGradient(Floats(shard.weights), examples, rows, MutableFloats(shard.gradient));
      shard.busy += std::chrono::steady_clock::now() - start;
    }
    promise.Set(copied);
  };
  const purlin::Status scheduled =
      runner_.ScheduleWhenReady({weights_copied, batch_copied}, std::move(compute), "gradient");
  return scheduled.ok() ? computed : purlin::Event::Error(scheduled);
}

purlin::Event HostTrainer::EnqueueUpdate(const std::vector<purlin::Event>& collected, std::size_t rows) {
  purlin::EventPromise promise("weights updated");
  purlin::Event updated = promise.event();
  auto update = [this, rows, promise = std::move(promise)](const purlin::Status& all_collected) mutable {
    if (all_collected.ok()) Update(rows);
    promise.Set(all_collected);
  };
  const purlin::Status scheduled = runner_.ScheduleWhenReady(collected, std::move(update), "update");
  if (!scheduled.ok()) updated = purlin::Event::Error(scheduled);
  return updated;
}

void HostTrainer::Update(std::size_t rows) {
  float* sum = MutableFloats(shards_[0].collected);
  for (std::size_t i = 1; i < shards_.size(); ++i) {
    const float* addend = Floats(shards_[i].collected);
    std::transform(sum, sum + kWeights, addend, sum, [](float a, float b) { return a + b; });
  }
  UpdateWeights(sum, rows, velocity_.data(), MutableFloats(master_));
}

}  // namespace digits
