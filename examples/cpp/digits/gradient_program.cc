#include "gradient_program.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels.h"
#include "model.h"
#include "purlin/buffer.h"
#include "purlin/program.h"
#include "purlin/shape.h"

namespace digits {
namespace {

purlin::Shape WeightShape() { return purlin::Shape(purlin::DType::kF32, {static_cast<std::int64_t>(kWeights)}); }

/// Images and times are bytes to Purlin.
purlin::Shape BytesShape(std::size_t size_bytes) {
  return purlin::Shape(purlin::DType::kU8, {static_cast<std::int64_t>(size_bytes)});
}

}  // namespace

GradientProgram::GradientProgram(purlin::LoadedExecutable loaded, std::size_t rows)
    : loaded_(std::move(loaded)), rows_(rows) {}

purlin::StatusOr<GradientProgram> GradientProgram::Create(const purlin::Device& device, const std::string& platform,
                                                          std::size_t rows) {
  purlin::ProgramBuilder builder("digits");
  const purlin::Slice weights = builder.AddParameter(purlin::ArraySpec(WeightShape()));
  const purlin::Slice batch = builder.AddParameter(purlin::ArraySpec(BytesShape(rows * sizeof(Example))));
  const purlin::Slice times = builder.AddDonatedParameter(purlin::ArraySpec(BytesShape(sizeof(Times))));
  const purlin::Slice gradient = builder.AddDonatedParameter(purlin::ArraySpec(WeightShape()));
  const purlin::Slice errors = builder.AddTemporary(rows * kClasses * sizeof(float));
  purlin::Status added = AddTo(builder, ErrorsKernel(platform, rows), {errors, weights, batch, times});
  added.Update(AddTo(builder, GradientKernel(platform, rows), {gradient, errors, batch, times}));
  if (!added.ok()) return added;
  purlin::StatusOr<purlin::Program> program = std::move(builder).Build();
  if (!program.ok()) return program.status();
  purlin::StatusOr<purlin::LoadedExecutable> loaded =
      purlin::LoadedExecutable::Load(purlin::Executable(*program), {device});
  if (!loaded.ok()) return loaded.status();
  return GradientProgram(*std::move(loaded), rows);
}

purlin::StatusOr<purlin::Event> GradientProgram::Start(const purlin::RawBuffer& weights, const purlin::RawBuffer& batch,
                                                       const purlin::RawBuffer& times,
                                                       const purlin::RawBuffer& gradient,
                                                       purlin::Span<const purlin::Event> after) const {
  const std::size_t batch_bytes = rows_ * sizeof(Example);
  const purlin::StatusOr<purlin::RawBuffer> images = batch.Slice(0, batch_bytes);
  if (!images.ok()) return images.status();
  std::vector<purlin::Buffer> arguments;
  const auto add = [&arguments](const purlin::RawBuffer& memory, const purlin::Shape& shape) {
    purlin::StatusOr<purlin::Buffer> array = purlin::Buffer::FromRaw(memory, shape, nullptr, purlin::Event());
    if (array.ok()) arguments.push_back(*std::move(array));
    return array.status();
  };
  purlin::Status status = add(weights, WeightShape());
  status.Update(add(*images, BytesShape(batch_bytes)));
  status.Update(add(times, BytesShape(sizeof(Times))));
  status.Update(add(gradient, WeightShape()));
  if (!status.ok()) return status;

  purlin::ExecuteOptions options;
  options.label = "gradient";
  options.dependencies = after;
  purlin::StatusOr<purlin::Execution> execution = loaded_.Execute(arguments, options);
  if (!execution.ok()) return execution.status();
  return std::move(execution->done);
}

}  // namespace digits
