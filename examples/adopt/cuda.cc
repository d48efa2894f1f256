// A program of CUDA's driver API adopts Purlin for its transfers: its kernels and its stream stay.
//
// `before` uploads, works and downloads in the order of one stream, and waits for it on the host. `after` gives
// the transfers to Purlin, which is in order with the stream by events alone: the program waits for the result alone.
// main runs both and compares. The work here is a fill of every second half.
#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "purlin/adapters/cuda.h"
#include "purlin/purlin.h"

using Bytes = std::vector<std::uint8_t>;

void Check(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  std::printf("CUDA's driver says %d\n", static_cast<int>(result));
  std::exit(1);
}

// The part of the program that does not change.
void Work(CUdeviceptr memory, std::size_t size, CUstream stream) {
  Check(cuMemsetD8Async(memory + size / 2, 0, size - size / 2, stream));
}

namespace before {

Bytes Run(const Bytes& sent, CUstream stream) {
  CUdeviceptr memory = 0;
  Check(cuMemAlloc(&memory, sent.size()));
  Check(cuMemcpyHtoDAsync(memory, sent.data(), sent.size(), stream));
  Work(memory, sent.size(), stream);
  Bytes received(sent.size());
  Check(cuMemcpyDtoHAsync(received.data(), memory, received.size(), stream));
  Check(cuStreamSynchronize(stream));
  Check(cuMemFree(memory));
  return received;
}

}  // namespace before

namespace after {

purlin::StatusOr<Bytes> Run(const purlin::Device& device, const Bytes& sent, CUstream stream) {
  const auto memory = purlin::RawBuffer::Allocate(device.default_memory_space(), sent.size());
  if (!memory.ok()) return memory.status();
  // The stream waits for the copy, and the copy back for the stream.
  const purlin::Event uploaded = memory->CopyFromHost(sent.data(), 0, sent.size());
  const purlin::Status ordered = purlin::adapters::WaitOnCuda(device, stream, uploaded);
  if (!ordered.ok()) return ordered;
  const auto address = purlin::adapters::ToCuda(*memory);
  if (!address.ok()) return address.status();
  Work(*address, sent.size(), stream);
  const purlin::Event worked = purlin::adapters::FromCuda(device, stream);
  Bytes received(sent.size());
  const purlin::Status status = memory->CopyToHost(received.data(), 0, received.size(), {worked}).Wait();
  if (!status.ok()) return status;
  return received;
}

}  // namespace after

int main() {
  purlin::ClientOptions options;
  options.platform = "cuda";
  options.device_count = 1;
  const auto client = purlin::Client::Create(options);
  if (!client.ok()) {
    std::printf("%s\n", client.status().ToString().c_str());
    return 1;
  }
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  Check(cuInit(0));
  Check(cuDevicePrimaryCtxRetain(&context, 0));
  Check(cuCtxSetCurrent(context));
  Check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Bytes sent(100'000);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::uint8_t>(i % 251);
  const Bytes old_way = before::Run(sent, stream);
  const auto new_way = after::Run(client->devices()[0], sent, stream);
  if (!new_way.ok()) {
    std::printf("%s\n", new_way.status().ToString().c_str());
    return 1;
  }
  Check(cuStreamDestroy(stream));
  Check(cuDevicePrimaryCtxRelease(0));
  std::printf("%zu bytes, %s\n", sent.size(), old_way == *new_way ? "the same" : "DIFFERENT");
  return old_way == *new_way ? 0 : 1;
}
