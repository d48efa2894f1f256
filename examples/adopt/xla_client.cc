// Code over xla::PjRtClient that only keeps and moves arrays adopts Purlin's client: staging, sharding, caches. Code
// that compiles computations stays with XLA, as xla_raw_buffer.cc shows.
//
// Both send an array to one device, copy it to another, and read it back; main runs both, also with a device that is
// not there, and compares.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "purlin/purlin.h"
#include "xla/pjrt/pjrt_client.h"
#include "xla/pjrt/plugin/xla_cpu/cpu_client_options.h"
#include "xla/pjrt/plugin/xla_cpu/xla_cpu_pjrt_client.h"

using Numbers = std::vector<float>;

namespace before {

absl::StatusOr<std::unique_ptr<xla::PjRtClient>> MakeClient(int devices) {
  xla::CpuClientOptions options;
  options.cpu_device_count = devices;
  return xla::GetXlaPjrtCpuClient(std::move(options));
}

absl::StatusOr<Numbers> ThroughDevice(xla::PjRtClient& client, std::size_t device, const Numbers& numbers) {
  if (device >= client.addressable_devices().size()) return absl::NotFoundError("no such device");
  absl::StatusOr<xla::PjRtMemorySpace*> first = client.addressable_devices()[0]->default_memory_space();
  if (!first.ok()) return first.status();
  absl::StatusOr<xla::PjRtMemorySpace*> second = client.addressable_devices()[device]->default_memory_space();
  if (!second.ok()) return second.status();
  const std::int64_t dims[] = {static_cast<std::int64_t>(numbers.size())};
  auto array = client.BufferFromHostBuffer(numbers.data(), xla::F32, dims, std::nullopt,
                                           xla::PjRtClient::HostBufferSemantics::kImmutableOnlyDuringCall, nullptr,
                                           *first, nullptr);
  if (!array.ok()) return array.status();
  auto copy = (*array)->CopyToMemorySpace(*second);
  if (!copy.ok()) return copy.status();
  Numbers back(numbers.size());
  const auto bytes = static_cast<std::int64_t>(back.size() * sizeof(float));
  absl::Status copied = (*copy)->CopyRawToHost(back.data(), 0, bytes).Await();
  if (!copied.ok()) return copied;
  return back;
}

}  // namespace before

namespace after {

purlin::StatusOr<purlin::Client> MakeClient(int devices) {
  purlin::ClientOptions options;
  options.device_count = static_cast<std::size_t>(devices);
  return purlin::Client::Create(options);
}

purlin::StatusOr<Numbers> ThroughDevice(purlin::Client& client, std::size_t device, const Numbers& numbers) {
  if (device >= client.devices().size()) return purlin::NotFoundError("no such device");
  const purlin::MemorySpace first = client.devices()[0].default_memory_space();
  const purlin::MemorySpace second = client.devices()[device].default_memory_space();
  const std::size_t bytes = numbers.size() * sizeof(float);
  purlin::StatusOr<purlin::Buffer> array = purlin::Buffer::FromHost(numbers.data(), bytes, purlin::DType::kF32,
                                                                    {static_cast<std::int64_t>(numbers.size())}, first);
  if (!array.ok()) return array.status();
  purlin::StatusOr<purlin::Buffer> copy = array->CopyToMemorySpace(second);
  if (!copy.ok()) return copy.status();
  Numbers back(numbers.size());
  purlin::Status copied = copy->CopyToHost(back.data(), bytes).Wait();
  if (!copied.ok()) return copied;
  return back;
}

}  // namespace after

template <typename ThroughDevice, typename Client>
std::string Run(ThroughDevice through, Client& client) {
  std::string text;
  for (const std::size_t device : {1U, 7U}) {
    const auto back = through(client, device, {1, 2, 3, 4.5F});
    text += back.ok() ? std::to_string(back->size()) + " numbers, the last " + std::to_string(back->back())
                      : std::string(back.status().message());
    text += "; ";
  }
  return text;
}

int main() {
  auto theirs = before::MakeClient(2);
  auto ours = after::MakeClient(2);
  if (!theirs.ok() || !ours.ok()) return 1;
  const std::string was = Run(before::ThroughDevice, **theirs);
  const std::string is = Run(after::ThroughDevice, *ours);
  std::printf("before: %s\nafter:  %s\n", was.c_str(), is.c_str());
  return was == is ? 0 : 1;
}
