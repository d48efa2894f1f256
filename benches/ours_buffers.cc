// Purlin's column of the rows about buffers.
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "buffer_rows.h"
#include "need.h"
#include "ours.h"
#include "purlin/buffer.h"
#include "purlin/client.h"
#include "purlin/host_buffer.h"
#include "purlin/shape.h"

namespace {

struct OurBuffers {
  using Buffer = purlin::Buffer;
  static constexpr bool kZeroCopy = true;
  static constexpr bool kUninitialised = true;
  static constexpr bool kReadyEvent = true;
  static constexpr bool kPayloadInHeap = false;
  static constexpr std::uint32_t kCopyKind = kOneThread;

  struct Devices {
    purlin::Client client;
    std::vector<purlin::Device> devices;
    std::vector<purlin::MemorySpace> spaces;
  };
  // Never destroyed, as the peers' are not.
  static const Devices& Get() {
    static const Devices* const made = [] {
      purlin::ClientOptions options;
      options.device_count = kBufferDevices;
      purlin::Client client = Need(purlin::Client::Create(options));
      auto* all = new Devices{client, client.devices(), {}};
      for (const purlin::Device& device : all->devices) all->spaces.push_back(device.default_memory_space());
      return all;
    }();
    return *made;
  }

  static Buffer FromHost(const void* data, std::size_t bytes, int device) {
    const std::int64_t dims[] = {static_cast<std::int64_t>(bytes / 4)};
    return Need(purlin::Buffer::FromHost(data, bytes, purlin::DType::kF32, dims,
                                         Get().spaces[static_cast<std::size_t>(device)]));
  }
  static Buffer ZeroCopy(const void* data, std::size_t bytes, int device) {
    const std::int64_t dims[] = {static_cast<std::int64_t>(bytes / 4)};
    purlin::FromHostOptions options;
    options.semantics = purlin::HostBufferSemantics::kImmutableZeroCopy;
    purlin::FromHostResult made =
        Need(purlin::Buffer::FromHost(data, purlin::DType::kF32, dims, Get().spaces[static_cast<std::size_t>(device)],
                                      options, [](purlin::Status) {}));
    if (made.aliasing != purlin::Aliasing::kAliased) std::abort();
    return std::move(made.buffer);
  }
  static Buffer Uninitialised(std::size_t bytes, int device) {
    const std::int64_t dims[] = {static_cast<std::int64_t>(bytes / 4)};
    return Need(purlin::Buffer::CreateUninitialized(purlin::Shape(purlin::DType::kF32, dims),
                                                    Get().spaces[static_cast<std::size_t>(device)]));
  }
  static void Await(const Buffer& buffer) { Need(buffer.ready_event().Wait()); }
  static void ToHost(const Buffer& buffer, void* destination, std::size_t bytes) {
    Need(buffer.CopyToHost(destination, bytes).Wait());
  }
  static Buffer ToDevice(const Buffer& buffer, int device) {
    return Need(buffer.CopyToDevice(Get().devices[static_cast<std::size_t>(device)]));
  }
  static void QueryReady(const Buffer& buffer) {
    const purlin::Event ready = buffer.ready_event();
    if (!ready.IsReady()) std::abort();
    Need(ready.Wait());
  }
};

// A copy from the host, which the caller does inside of the call, while all workers of the client are busy.
template <bool kOfTheWork>
std::uint64_t CopyBesideWork(std::uint64_t count) {
  purlin::ThreadPoolAsyncWorkRunner runner = OurBuffers::Get().client.runner();
  return BesideWork::Measure(
      count, static_cast<int>(runner.NumThreads()), kOfTheWork,
      [&runner](BesideWork& work) { Need(runner.Schedule([&work] { work.Work(); })); },
      [] { OurBuffers::Await(OurBuffers::FromHost(bench_source(), kLarge, 0)); });
}

}  // namespace

OpList BufferOps() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> all = BufferRows<OurBuffers>::Table("purlin");
    all.push_back({"host to device 64 MiB, workers busy", "purlin", 1, &CopyBesideWork<false>, kLong});
    all.push_back({"host to device 64 MiB, workers busy: their work", "purlin", 1, &CopyBesideWork<true>, kLong});
    return all;
  }();
  return {ops.data(), ops.size()};
}
