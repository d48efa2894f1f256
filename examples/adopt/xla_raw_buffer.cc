// Code over xla::PjRtClient adopts Purlin's buffers, which keep the memory of a computation's argument and result.
//
// `before` hands the numbers to XLA and takes the result from it. `after` has arrays of Purlin's on both sides: XLA
// reads the argument in place, the result is read where XLA wrote it, neither is copied in between, and no thread waits
// until the end. main runs both with XLA's own CPU client, once with too many numbers, and compares.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "purlin/adapters/xla_raw_buffer.h"
#include "purlin/purlin.h"
#include "xla/hlo/builder/xla_builder.h"
#include "xla/pjrt/pjrt_client.h"
#include "xla/pjrt/plugin/xla_cpu/cpu_client_options.h"
#include "xla/pjrt/plugin/xla_cpu/xla_cpu_pjrt_client.h"
#include "xla/shape_util.h"
#include "xla/xla_data.pb.h"

using Numbers = std::vector<float>;

namespace before {

absl::StatusOr<Numbers> Apply(const xla::PjRtLoadedExecutable& executable, const Numbers& numbers) {
  xla::PjRtDevice* const device = executable.addressable_devices().front();
  absl::StatusOr<xla::PjRtMemorySpace*> space = device->default_memory_space();
  if (!space.ok()) return space.status();
  const std::int64_t dims[] = {static_cast<std::int64_t>(numbers.size())};
  auto argument = executable.client()->BufferFromHostBuffer(
      numbers.data(), xla::F32, dims, std::nullopt, xla::PjRtClient::HostBufferSemantics::kImmutableOnlyDuringCall,
      nullptr, *space, nullptr);
  if (!argument.ok()) return argument.status();
  xla::PjRtBuffer* const arguments[] = {argument->get()};
  auto results = executable.ExecuteSharded(arguments, device, {});
  if (!results.ok()) return results.status();
  Numbers result(numbers.size());
  absl::Status copied =
      results->front()->CopyRawToHost(result.data(), 0, static_cast<std::int64_t>(4 * result.size())).Await();
  if (!copied.ok()) return copied;
  return result;
}

}  // namespace before

namespace after {

purlin::MemorySpace Device() {
  static const purlin::Client client = purlin::Client::Create().value();
  return client.devices().front().default_memory_space();
}

// The part that adopts: Purlin's array in, Purlin's array out; it becomes ready when `argument` is ready and XLA has
// computed it.
absl::StatusOr<purlin::Buffer> Apply(const xla::PjRtLoadedExecutable& executable, const purlin::Buffer& argument) {
  xla::PjRtDevice* const device = executable.addressable_devices().front();
  absl::StatusOr<xla::PjRtMemorySpace*> space = device->default_memory_space();
  if (!space.ok()) return space.status();
  auto view = purlin::adapters::ToXla(argument, *executable.client(), *space);
  if (!view.ok()) return view.status();
  xla::PjRtBuffer* const arguments[] = {view->get()};
  auto results = executable.ExecuteSharded(arguments, device, {});
  if (!results.ok()) return results.status();
  return purlin::adapters::ToAbsl(purlin::adapters::FromXla(std::move(results->front()), argument.memory_space()));
}

absl::StatusOr<Numbers> Apply(const xla::PjRtLoadedExecutable& executable, const Numbers& numbers) {
  purlin::StatusOr<purlin::Buffer> argument = purlin::Buffer::FromHost(
      numbers.data(), 4 * numbers.size(), purlin::DType::kF32, {static_cast<std::int64_t>(numbers.size())}, Device());
  if (!argument.ok()) return purlin::adapters::ToAbsl(argument.status());
  absl::StatusOr<purlin::Buffer> applied = Apply(executable, *argument);
  if (!applied.ok()) return applied.status();
  Numbers result(numbers.size());
  const purlin::Status copied = applied->CopyToHost(result.data(), 4 * result.size()).Wait();
  if (!copied.ok()) return purlin::adapters::ToAbsl(copied);
  return result;
}

}  // namespace after

// x * 2 + 1, compiled by XLA.
absl::StatusOr<std::unique_ptr<xla::PjRtLoadedExecutable>> Compile(xla::PjRtClient& client, std::int64_t size) {
  xla::XlaBuilder builder("times_two_plus_one");
  const xla::XlaOp x = xla::Parameter(&builder, 0, xla::ShapeUtil::MakeShape(xla::F32, {size}), "x");
  const xla::XlaOp y = xla::Add(xla::Mul(x, xla::ConstantR0<float>(&builder, 2)), xla::ConstantR0<float>(&builder, 1));
  absl::StatusOr<xla::XlaComputation> computation = builder.Build(y);
  if (!computation.ok()) return computation.status();
  return client.CompileAndLoad(*computation, xla::CompileOptions());
}

template <typename Apply>
std::string Run(Apply apply, const xla::PjRtLoadedExecutable& executable) {
  std::string text;
  for (const std::size_t size : {4U, 5U}) {  // Five are too many for what is compiled.
    Numbers numbers(size, 20.5F);
    const absl::StatusOr<Numbers> result = apply(executable, numbers);
    text += result.ok() ? std::to_string(result->back()) : absl::StatusCodeToString(result.status().code());
    text += "; ";
  }
  return text;
}

int main() {
  xla::CpuClientOptions options;
  options.cpu_device_count = 1;
  const auto client = xla::GetXlaPjrtCpuClient(std::move(options)).value();
  const auto executable = Compile(*client, 4).value();
  using Signature = absl::StatusOr<Numbers> (*)(const xla::PjRtLoadedExecutable&, const Numbers&);
  const std::string was = Run(static_cast<Signature>(before::Apply), *executable);
  const std::string is = Run(static_cast<Signature>(after::Apply), *executable);
  std::printf("before: %s\nafter:  %s\n", was.c_str(), is.c_str());
  return was == is ? 0 : 1;
}
