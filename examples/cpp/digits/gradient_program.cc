#include "gradient_program.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "model.h"
#include "purlin/buffer.h"
#include "purlin/kernel.h"
#include "purlin/program.h"
#include "purlin/shape.h"

namespace digits {
namespace {

purlin::Shape WeightShape() { return purlin::Shape(purlin::DType::kF32, {static_cast<std::int64_t>(kWeights)}); }

/// Images are bytes to Purlin.
purlin::Shape BatchShape(std::size_t rows) {
  return purlin::Shape(purlin::DType::kU8, {static_cast<std::int64_t>(rows * sizeof(Example))});
}

}  // namespace

GradientProgram::GradientProgram(purlin::LoadedExecutable loaded, std::size_t rows)
    : loaded_(std::move(loaded)), rows_(rows) {}

purlin::StatusOr<GradientProgram> GradientProgram::Create(const purlin::Device& device, std::size_t rows,
                                                          std::chrono::nanoseconds* busy) {
  const purlin::Kernel kernel = purlin::Kernel::FromClosure("gradient", [rows, busy](const purlin::KernelCall& call) {
    const auto start = std::chrono::steady_clock::now();
    ComputeGradient(call.Read<float>(0).data(), call.Read<Example>(1).data(), rows, call.Write<float>(0).data());
    *busy += std::chrono::steady_clock::now() - start;
  });
  purlin::ArraySpec pinned(WeightShape());
  pinned.memory_kind = "pinned_host";
  purlin::ProgramBuilder builder("digits");
  const purlin::Slice weights = builder.AddParameter(purlin::ArraySpec(WeightShape()));
  const purlin::Slice batch = builder.AddParameter(purlin::ArraySpec(BatchShape(rows)));
  const purlin::Slice collected = builder.AddResult(pinned);
  const purlin::Slice gradient = builder.AddTemporary(kWeightBytes);
  using purlin::Operand;
  builder.AddKernel(kernel, {Operand::Invariant(weights), Operand::Invariant(batch), Operand::Write(gradient)})
      .AddCopy(gradient, collected);
  purlin::StatusOr<purlin::Program> program = std::move(builder).Build();
  if (!program.ok()) return program.status();
  purlin::StatusOr<purlin::LoadedExecutable> loaded =
      purlin::LoadedExecutable::Load(purlin::Executable(*program), {device});
  if (!loaded.ok()) return loaded.status();
  return GradientProgram(*std::move(loaded), rows);
}

purlin::Event GradientProgram::Start(const purlin::RawBuffer& weights, const purlin::Event& weights_copied,
                                     const purlin::RawBuffer& batch, const purlin::Event& batch_copied,
                                     const purlin::RawBuffer& collected) const {
  const purlin::StatusOr<purlin::RawBuffer> images = batch.Slice(0, rows_ * sizeof(Example));
  if (!images.ok()) return purlin::Event::Error(images.status());
  std::vector<purlin::Buffer> arguments;
  std::vector<purlin::Buffer> results;
  const auto add = [](std::vector<purlin::Buffer>& to, purlin::StatusOr<purlin::Buffer> buffer) {
    if (buffer.ok()) to.push_back(*std::move(buffer));
    return buffer.status();
  };
  purlin::Status status = add(arguments, purlin::Buffer::FromRaw(weights, WeightShape(), nullptr, weights_copied));
  status.Update(add(arguments, purlin::Buffer::FromRaw(*images, BatchShape(rows_), nullptr, batch_copied)));
  status.Update(add(results, purlin::Buffer::FromRaw(collected, WeightShape(), nullptr, purlin::Event())));
  if (!status.ok()) return purlin::Event::Error(status);

  purlin::ExecuteOptions options;
  options.label = "gradient";
  options.results = results;
  const purlin::StatusOr<purlin::Execution> execution = loaded_.Execute(arguments, options);
  return execution.ok() ? execution->done : purlin::Event::Error(execution.status());
}

}  // namespace digits
