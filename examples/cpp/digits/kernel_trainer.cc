#include "kernel_trainer.h"

#include <initializer_list>

#include "kernels.h"
#include "model.h"
#include "purlin/label.h"

namespace digits {
namespace {

// Adds blocks of these sizes in the default memory of `device`.
purlin::Status Allocate(const purlin::Device& device, std::initializer_list<std::size_t> sizes_bytes,
                        std::vector<purlin::RawBuffer>& memory) {
  for (const std::size_t size_bytes : sizes_bytes) {
    purlin::StatusOr<purlin::RawBuffer> block = purlin::RawBuffer::Allocate(device.default_memory_space(), size_bytes);
    if (!block.ok()) return block.status();
    memory.push_back(*std::move(block));
  }
  return purlin::OkStatus();
}

purlin::StatusOr<purlin::Event> Start(const purlin::KernelLaunch& launch, const purlin::Label& label,
                                      purlin::Span<const purlin::RawBuffer> memory,
                                      purlin::Span<const purlin::Event> after) {
  purlin::LaunchOptions options;
  options.label = label;
  options.dependencies = after;
  return launch.Start(memory, options);
}

}  // namespace

KernelTrainer::KernelTrainer(purlin::Device first, std::string platform)
    : first_(std::move(first)), platform_(std::move(platform)), zeros_(kWeightBytes) {}

KernelTrainer::~KernelTrainer() {
  Settle();
  updated_.Wait().IgnoreError();
  purlin::WhenAll(uploads_).Wait().IgnoreError();
  for (const Shard& shard : shards_) purlin::WhenAll(shard.batch_free).Wait().IgnoreError();
}

purlin::StatusOr<std::unique_ptr<Trainer>> KernelTrainer::Create(const purlin::Client& client, const Dataset& dataset,
                                                                 bool as_program) {
  const std::vector<purlin::Device> devices = client.devices();
  std::unique_ptr<KernelTrainer> trainer(new KernelTrainer(devices[0], std::string(client.platform_name())));
  purlin::Status status =
      Allocate(devices[0], {kWeightBytes, kWeightBytes, devices.size() * kWeightBytes}, trainer->memory_);
  if (!status.ok()) return status;
  // Zeros are a fine start: the problem is convex.
  trainer->updated_ =
      purlin::WhenAll({trainer->Clear(trainer->memory_[kMaster]), trainer->Clear(trainer->memory_[kVelocity])});
  for (std::size_t i = 0; i < devices.size(); ++i) {
    status = trainer->AddShard(devices[i], ShardOfImages(dataset, i, devices.size()), as_program);
    if (!status.ok()) return status;
  }
  return std::unique_ptr<Trainer>(std::move(trainer));
}

purlin::Status KernelTrainer::AddShard(const purlin::Device& device, const ShardOfImages& images, bool as_program) {
  const std::size_t batch_bytes = images.batch_rows * sizeof(Example);
  const std::size_t error_bytes = images.batch_rows * kClasses * sizeof(float);
  std::vector<purlin::RawBuffer> memory;
  const purlin::Status status =
      Allocate(device, {batch_bytes, batch_bytes, kWeightBytes, error_bytes, kWeightBytes, sizeof(Times)}, memory);
  if (!status.ok()) return status;
  const purlin::StatusOr<purlin::RawBuffer> pinned = AllocatePinned(device, images.rows * sizeof(Example));
  if (!pinned.ok()) return pinned.status();
  purlin::StatusOr<std::vector<purlin::RawBuffer>> minibatches = Minibatches(*pinned, images.batch_rows);
  if (!minibatches.ok()) return minibatches.status();
  purlin::StatusOr<purlin::RawBuffer> collected =
      memory_[kGradients].Slice(shards_.size() * kWeightBytes, kWeightBytes);
  if (!collected.ok()) return collected.status();
  std::vector<Gradient> gradients;
  for (const purlin::RawBuffer& minibatch : {minibatches->front(), minibatches->back()}) {
    const std::size_t rows = RowsOf(minibatch);
    if (!gradients.empty() && gradients.front().rows == rows) continue;
    purlin::StatusOr<Gradient> gradient = MakeGradient(device, rows, as_program);
    if (!gradient.ok()) return gradient.status();
    gradients.push_back(*std::move(gradient));
  }
  uploads_.push_back(pinned->CopyFromHost(images.examples, 0, images.rows * sizeof(Example)));
  const purlin::Event ready = purlin::WhenAll({uploads_.back(), Clear(memory[kTimes])});
  shards_.push_back(
      {*std::move(minibatches), std::move(memory), {ready, ready}, std::move(gradients), *std::move(collected)});
  return purlin::OkStatus();
}

purlin::StatusOr<KernelTrainer::Gradient> KernelTrainer::MakeGradient(const purlin::Device& device, std::size_t rows,
                                                                      bool as_program) const {
  if (as_program) {
    purlin::StatusOr<GradientProgram> program = GradientProgram::Create(device, platform_, rows);
    if (!program.ok()) return program.status();
    return Gradient{rows, *std::move(program)};
  }
  purlin::StatusOr<purlin::KernelLaunch> errors = Load(device, ErrorsKernel(platform_, rows));
  if (!errors.ok()) return errors.status();
  purlin::StatusOr<purlin::KernelLaunch> gradient = Load(device, GradientKernel(platform_, rows));
  if (!gradient.ok()) return gradient.status();
  return Gradient{rows, std::nullopt, *std::move(errors), *std::move(gradient)};
}

purlin::Event KernelTrainer::Clear(const purlin::RawBuffer& memory) {
  uploads_.push_back(memory.CopyFromHost(zeros_.data(), 0, memory.on_device_size_bytes()));
  return uploads_.back();
}

std::size_t KernelTrainer::images_per_step() const {
  std::size_t rows = 0;
  for (const Shard& shard : shards_) rows += RowsOf(shard.minibatches.front());
  return rows;
}

purlin::StatusOr<std::chrono::nanoseconds> KernelTrainer::Busy(std::size_t device) {
  Times times;
  const purlin::Status status = shards_[device].memory[kTimes].CopyToHost(&times, 0, sizeof(Times)).Wait();
  if (!status.ok()) return status;
  return std::chrono::nanoseconds(times.busy_ns);
}

purlin::Event KernelTrainer::EnqueueStep(std::size_t step) {
  std::vector<purlin::Event> collected;
  std::size_t rows = 0;
  for (Shard& shard : shards_) {
    purlin::StatusOr<purlin::Event> event = EnqueueShard(shard, step, rows);
    if (!event.ok()) return updated_ = purlin::Event::Error(event.status());
    collected.push_back(*std::move(event));
  }
  purlin::StatusOr<purlin::Event> updated = EnqueueUpdate(collected, rows);
  updated_ = updated.ok() ? *std::move(updated) : purlin::Event::Error(updated.status());
  return updated_;
}

purlin::StatusOr<purlin::Event> KernelTrainer::EnqueueShard(Shard& shard, std::size_t step, std::size_t& rows) {
  const purlin::RawBuffer& minibatch = shard.minibatches[step % shard.minibatches.size()];
  const std::size_t slot = step % shard.batch_free.size();
  const Gradient& gradient =
      RowsOf(minibatch) == shard.gradients.front().rows ? shard.gradients.front() : shard.gradients.back();
  rows += gradient.rows;
  const std::vector<purlin::RawBuffer>& memory = shard.memory;
  const purlin::RawBuffer& batch = memory[slot == 0 ? kEven : kOdd];
  const purlin::Event copied[] = {minibatch.CopyTo(batch, {shard.batch_free[slot]}),
                                  memory_[kMaster].CopyTo(memory[kWeightsCopy], {updated_})};
  const purlin::StatusOr<purlin::Event> computed = EnqueueGradient(gradient, memory, batch, copied);
  if (!computed.ok()) return computed.status();
  shard.batch_free[slot] = *computed;
  return memory[kGradient].CopyTo(shard.collected, {*computed});
}

purlin::StatusOr<purlin::Event> KernelTrainer::EnqueueGradient(const Gradient& gradient,
                                                               const std::vector<purlin::RawBuffer>& memory,
                                                               const purlin::RawBuffer& batch,
                                                               purlin::Span<const purlin::Event> copied) {
  if (gradient.program) {
    return gradient.program->Start(memory[kWeightsCopy], batch, memory[kTimes], memory[kGradient], copied);
  }
  const purlin::StatusOr<purlin::Event> errors =
      Start(*gradient.errors_launch, "errors", {memory[kErrors], memory[kWeightsCopy], batch, memory[kTimes]}, copied);
  if (!errors.ok()) return errors.status();
  return Start(*gradient.gradient_launch, "gradient", {memory[kGradient], memory[kErrors], batch, memory[kTimes]},
               {&*errors, 1});
}

purlin::StatusOr<purlin::Event> KernelTrainer::EnqueueUpdate(const std::vector<purlin::Event>& collected,
                                                             std::size_t rows) {
  // A step has one of few numbers of images.
  const purlin::KernelLaunch* launch = nullptr;
  for (const auto& [of_rows, update] : updates_) {
    if (of_rows == rows) launch = &update;
  }
  if (launch == nullptr) {
    purlin::StatusOr<purlin::KernelLaunch> update = Load(first_, UpdateKernel(platform_, shards_.size(), rows));
    if (!update.ok()) return update.status();
    launch = &updates_.emplace_back(rows, *std::move(update)).second;
  }
  return Start(*launch, "update", {memory_[kMaster], memory_[kVelocity], memory_[kGradients]}, collected);
}

}  // namespace digits
