// Adopting purlin/adapters/pjrt_tables.h: a callback runs when a transfer of a PJRT plugin has ended, where a thread
// waited before. The plugin is a stock one and does not change.
#include "purlin/adapters/pjrt_tables.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "purlin/future.h"
#include "purlin/promise.h"
#include "xla/pjrt/c/pjrt_c_api.h"

namespace {

const PJRT_Api* api = nullptr;

void Need(PJRT_Error* error) {
  if (error != nullptr) std::abort();
}

template <typename Args>
Args Make(std::size_t struct_size) {
  Args args{};
  args.struct_size = struct_size;
  return args;
}

/// XLA's: the event happens when `numbers` are there.
PJRT_Event* ToHost(PJRT_Buffer* buffer, std::vector<float>& numbers) {
  auto copy = Make<PJRT_Buffer_ToHostBuffer_Args>(PJRT_Buffer_ToHostBuffer_Args_STRUCT_SIZE);
  copy.src = buffer;
  copy.dst = numbers.data();
  copy.dst_size = numbers.size() * sizeof(float);
  Need(api->PJRT_Buffer_ToHostBuffer(&copy));
  return copy.event;
}

double Sum(const std::vector<float>& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }

namespace before {

/// Blocks its thread until the copy is done.
void WhenSummed(PJRT_Buffer* buffer, std::vector<float>& numbers, std::function<void(double)> then) {
  PJRT_Event* const copied = ToHost(buffer, numbers);
  auto await = Make<PJRT_Event_Await_Args>(PJRT_Event_Await_Args_STRUCT_SIZE);
  await.event = copied;
  Need(api->PJRT_Event_Await(&await));
  auto destroy = Make<PJRT_Event_Destroy_Args>(PJRT_Event_Destroy_Args_STRUCT_SIZE);
  destroy.event = copied;
  Need(api->PJRT_Event_Destroy(&destroy));
  then(Sum(numbers));
}

}  // namespace before

namespace after {

/// Returns at once.
void WhenSummed(PJRT_Buffer* buffer, std::vector<float>& numbers, std::function<void(double)> then) {
  const purlin::Event copied = purlin::adapters::FromPjrt(api, ToHost(buffer, numbers));
  copied.OnReady([&numbers, then = std::move(then)](const purlin::Status& status) {
    if (!status.ok()) std::abort();
    then(Sum(numbers));
  });
}

}  // namespace after

}  // namespace

int main() {
  void* const library = dlopen(PURLIN_INTEROP_PJRT_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 1;
  api = purlin::adapters::PjrtCast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"))();
  auto initialize = Make<PJRT_Plugin_Initialize_Args>(PJRT_Plugin_Initialize_Args_STRUCT_SIZE);
  Need(api->PJRT_Plugin_Initialize(&initialize));
  auto create = Make<PJRT_Client_Create_Args>(PJRT_Client_Create_Args_STRUCT_SIZE);
  Need(api->PJRT_Client_Create(&create));
  auto devices = Make<PJRT_Client_AddressableDevices_Args>(PJRT_Client_AddressableDevices_Args_STRUCT_SIZE);
  devices.client = create.client;
  Need(api->PJRT_Client_AddressableDevices(&devices));

  std::vector<float> numbers(1 << 16);
  std::iota(numbers.begin(), numbers.end(), 0.F);
  const auto count = static_cast<std::int64_t>(numbers.size());
  auto fill = Make<PJRT_Client_BufferFromHostBuffer_Args>(PJRT_Client_BufferFromHostBuffer_Args_STRUCT_SIZE);
  fill.client = create.client;
  fill.data = numbers.data();
  fill.type = PJRT_Buffer_Type_F32;
  fill.dims = &count;
  fill.num_dims = 1;
  fill.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  fill.device = devices.addressable_devices[0];
  Need(api->PJRT_Client_BufferFromHostBuffer(&fill));
  if (!purlin::adapters::FromPjrt(api, fill.done_with_host_buffer).Wait().ok()) return 1;

  std::vector<float> first(numbers.size()), second(numbers.size());
  double waited = 0;
  before::WhenSummed(fill.buffer, first, [&waited](double sum) { waited = sum; });
  auto [promise, told] = purlin::MakePromise<double>();
  after::WhenSummed(fill.buffer, second, [owed = std::move(promise).ToShared()](double sum) { owed.Set(sum); });
  const double sum = told.Await().value();
  std::printf("%.0f waited for, %.0f told\n", waited, sum);
  return sum == waited && sum == Sum(numbers) ? 0 : 1;
}
