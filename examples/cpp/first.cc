#include <cstdio>
#include "purlin/purlin.h"

purlin::StatusOr<float> MeanOnTheOtherDevice(const float (&celsius)[4]) {
  purlin::ClientOptions options;
  options.device_count = 2;
  PURLIN_ASSIGN_OR_RETURN(const auto client, purlin::Client::Create(options));
  const auto here = client.devices()[0].default_memory_space(), there = client.devices()[1].default_memory_space();
  PURLIN_ASSIGN_OR_RETURN(auto array, purlin::Buffer::FromHost(celsius, 16, purlin::DType::kF32, {4}, here));
  PURLIN_ASSIGN_OR_RETURN(auto copy, array.CopyToMemorySpace(there));  // has begun; this thread goes on
  PURLIN_ASSIGN_OR_RETURN(const auto bytes, copy.RawAlias());
  // A task behind the copy, and what it returns, or the error of either. This thread waits for it at the end.
  auto pool = client.runner();
  auto mean = purlin::Future<>(copy.ready_event()).Map(pool, [bytes] {
    const auto* c = static_cast<const float*>(bytes.host_pointer());
    return (c[0] + c[1] + c[2] + c[3]) / 4;
  });
  return mean.Await();
}
int main() { std::printf("%g\n", MeanOnTheOtherDevice({-40, 0, 37, 100}).value_or(-1)); }
