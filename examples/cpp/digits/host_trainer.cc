#include "trainer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "purlin/device.h"
#include "text.h"

namespace digits {
namespace {

constexpr std::size_t kStepsInFlight = 3;
// Over all devices, as long as each gets one; so the noise of a step does not depend on how many share it.
constexpr std::size_t kImagesPerStep = 256;

// The host backend's memory is this machine's, so kernels reach it through a pointer; events order its accesses.
const float* Floats(const purlin::RawBuffer& buffer) { return static_cast<const float*>(buffer.host_pointer()); }
float* MutableFloats(const purlin::RawBuffer& buffer) { return static_cast<float*>(buffer.host_pointer()); }

std::size_t RowsOf(const purlin::RawBuffer& examples) { return examples.on_device_size_bytes() / sizeof(Example); }

purlin::StatusOr<purlin::RawBuffer> AllocatePinned(const purlin::Device& device, std::size_t size_bytes) {
  const purlin::StatusOr<purlin::MemorySpace> space = device.memory_space("pinned_host");
  if (!space.ok()) return space.status();
  return purlin::RawBuffer::Allocate(*space, size_bytes);
}

}  // namespace

Trainer::Trainer(const purlin::Client& client, purlin::RawBuffer master)
    : runner_(client.runner()), master_(std::move(master)), velocity_(kWeights, 0.0F) {
  // Zeros are a fine start: the problem is convex. The velocity's are not written before this copy was.
  updated_ = master_.CopyFromHost(velocity_.data(), 0, kWeightBytes);
}

Trainer::~Trainer() {
  while (!in_flight_.empty()) WaitForOldestStep().IgnoreError();
  updated_.Wait().IgnoreError();
  for (const Shard& shard : shards_) purlin::WhenAll(shard.batch_free).Wait().IgnoreError();
}

purlin::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const purlin::Client& client, const Dataset& dataset,
                                                           bool as_program) {
  const std::vector<purlin::Device> devices = client.devices();
  const std::size_t rows = dataset.training.size();
  if (devices.size() > rows) {
    return purlin::InvalidArgumentError(
        Format("%zu devices cannot share %zu training images: each needs one", devices.size(), rows));
  }
  purlin::StatusOr<purlin::RawBuffer> master = AllocatePinned(devices[0], kWeightBytes);
  if (!master.ok()) return master.status();
  std::unique_ptr<Trainer> trainer(new Trainer(client, *std::move(master)));
  const std::size_t batch_rows = (kImagesPerStep + devices.size() - 1) / devices.size();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::size_t begin = i * rows / devices.size();
    const std::size_t end = (i + 1) * rows / devices.size();
    purlin::StatusOr<Shard> shard = MakeShard(devices[i], dataset.training.data() + begin, end - begin, batch_rows);
    if (!shard.ok()) return shard.status();
    trainer->shards_.push_back(*std::move(shard));
  }
  // Now that the shards stay where they are: kernels write their times there.
  for (std::size_t i = 0; as_program && i < devices.size(); ++i) {
    Shard& shard = trainer->shards_[i];
    for (const purlin::RawBuffer& minibatch : {shard.minibatches.front(), shard.minibatches.back()}) {
      if (!shard.programs.empty() && shard.programs.front().rows() == RowsOf(minibatch)) continue;
      purlin::StatusOr<GradientProgram> program = GradientProgram::Create(devices[i], RowsOf(minibatch), &shard.busy);
      if (!program.ok()) return program.status();
      shard.programs.push_back(*std::move(program));
    }
  }
  return trainer;
}

purlin::StatusOr<Trainer::Shard> Trainer::MakeShard(const purlin::Device& device, const Example* examples,
                                                    std::size_t rows, std::size_t most_batch_rows) {
  const std::size_t batch_rows = std::min(rows, most_batch_rows);
  const purlin::MemorySpace memory = device.default_memory_space();
  const purlin::StatusOr<purlin::RawBuffer> pinned = AllocatePinned(device, rows * sizeof(Example));
  const purlin::StatusOr<purlin::RawBuffer> even = purlin::RawBuffer::Allocate(memory, batch_rows * sizeof(Example));
  const purlin::StatusOr<purlin::RawBuffer> odd = purlin::RawBuffer::Allocate(memory, batch_rows * sizeof(Example));
  const purlin::StatusOr<purlin::RawBuffer> weights = purlin::RawBuffer::Allocate(memory, kWeightBytes);
  const purlin::StatusOr<purlin::RawBuffer> gradient = purlin::RawBuffer::Allocate(memory, kWeightBytes);
  const purlin::StatusOr<purlin::RawBuffer> collected = AllocatePinned(device, kWeightBytes);
  for (const auto* buffer : {&pinned, &even, &odd, &weights, &gradient, &collected}) {
    if (!buffer->ok()) return buffer->status();
  }

  std::vector<purlin::RawBuffer> minibatches;
  for (std::size_t begin = 0; begin < rows; begin += batch_rows) {
    const std::size_t count = std::min(batch_rows, rows - begin);
    purlin::StatusOr<purlin::RawBuffer> slice = pinned->Slice(begin * sizeof(Example), count * sizeof(Example));
    if (!slice.ok()) return slice.status();
    minibatches.push_back(*std::move(slice));
  }
  const purlin::Event uploaded = pinned->CopyFromHost(examples, 0, rows * sizeof(Example));
  return Shard{std::move(minibatches), {*even, *odd}, {uploaded, uploaded}, *weights, *gradient, *collected};
}

std::size_t Trainer::images_per_step() const {
  std::size_t rows = 0;
  for (const Shard& shard : shards_) rows += RowsOf(shard.batches[0]);
  return rows;
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

purlin::Event Trainer::EnqueueStep(std::size_t step) {
  std::vector<purlin::Event> collected;
  std::size_t rows = 0;
  for (Shard& shard : shards_) {
    collected.push_back(EnqueueShard(shard, step));
    rows += RowsOf(shard.minibatches[step % shard.minibatches.size()]);
  }
  updated_ = EnqueueUpdate(collected, rows);
  return updated_;
}

purlin::Event Trainer::EnqueueShard(Shard& shard, std::size_t step) {
  const purlin::RawBuffer& minibatch = shard.minibatches[step % shard.minibatches.size()];
  const std::size_t rows = RowsOf(minibatch);
  const std::size_t slot = step % shard.batches.size();
  const purlin::Event batch_copied = minibatch.CopyTo(shard.batches[slot], {shard.batch_free[slot]});
  const purlin::Event weights_copied = master_.CopyTo(shard.weights, {updated_});
  for (const GradientProgram& program : shard.programs) {
    if (program.rows() != rows) continue;
    shard.batch_free[slot] =
        program.Start(shard.weights, weights_copied, shard.batches[slot], batch_copied, shard.collected);
    return shard.batch_free[slot];
  }
  shard.batch_free[slot] = EnqueueGradient(shard, slot, rows, weights_copied, batch_copied);
  return shard.gradient.CopyTo(shard.collected, {shard.batch_free[slot]});
}

purlin::Event Trainer::EnqueueGradient(Shard& shard, std::size_t slot, std::size_t rows,
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

purlin::Event Trainer::EnqueueUpdate(const std::vector<purlin::Event>& collected, std::size_t rows) {
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

void Trainer::Update(std::size_t rows) {
  float* sum = MutableFloats(shards_[0].collected);
  for (std::size_t i = 1; i < shards_.size(); ++i) {
    const float* addend = Floats(shards_[i].collected);
    std::transform(sum, sum + kWeights, addend, sum, [](float a, float b) { return a + b; });
  }
  UpdateWeights(sum, rows, velocity_.data(), MutableFloats(master_));
}

}  // namespace digits
