// Two devices, an array, and work that waits for a copy.
#include <cstdio>
#include <utility>

#include "purlin/purlin.h"

purlin::Status Run() {
  purlin::ClientOptions options;
  options.device_count = 2;
  purlin::StatusOr<purlin::Client> client = purlin::Client::Create(options);
  if (!client.ok()) return client.status();
  const purlin::MemorySpace memory0 = client->devices()[0].default_memory_space();
  const purlin::MemorySpace memory1 = client->devices()[1].default_memory_space();

  // An array on device 0, a copy of it on device 1 that is made while this thread goes on, and room there for a result.
  const float celsius[] = {-40, 0, 37, 100};
  auto array = purlin::Buffer::FromHost(celsius, sizeof(celsius), purlin::DType::kF32, {2, 2}, memory0);
  if (!array.ok()) return array.status();
  auto copy = array->CopyToMemorySpace(memory1);
  if (!copy.ok()) return copy.status();
  auto input = copy->RawAlias();
  if (!input.ok()) return input.status();
  auto output = purlin::RawBuffer::Allocate(memory1, sizeof(celsius));
  if (!output.ok()) return output.status();

  // A task that begins when the copy is there, and an event with its outcome.
  purlin::EventPromise promise("converted");
  purlin::Event converted = promise.event();
  auto convert = [from = *input, to = *output, promise = std::move(promise)](const purlin::Status& copied) mutable {
    const auto* c = static_cast<const float*>(from.host_pointer());
    auto* f = static_cast<float*>(to.host_pointer());
    for (int i = 0; copied.ok() && i < 4; ++i) f[i] = c[i] * 1.8F + 32;
    promise.Set(copied);
  };
  purlin::Status status = client->runner().ScheduleWhenReady({copy->ready_event()}, std::move(convert), "convert");
  if (!status.ok()) return status;

  // The copy to the host waits for the task, and this thread for that copy.
  float fahrenheit[4];
  status = output->CopyToHost(fahrenheit, 0, sizeof(fahrenheit), {converted}).Wait();
  if (status.ok()) std::printf("%g %g %g %g\n", fahrenheit[0], fahrenheit[1], fahrenheit[2], fahrenheit[3]);
  return status;
}

int main() {
  const purlin::Status status = Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
