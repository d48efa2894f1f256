// XLA's own CPU client, as xla::PjRtClient of the wheel of tensorflow-cpu.
#include <memory>
#include <optional>
#include <utility>

#include "buffer_rows.h"
#include "xla.h"
#include "xla/pjrt/pjrt_client.h"
#include "xla/pjrt/plugin/xla_cpu/cpu_client_options.h"
#include "xla/pjrt/plugin/xla_cpu/xla_cpu_pjrt_client.h"

namespace {

struct XlaClient {
  using Buffer = std::unique_ptr<xla::PjRtBuffer>;
  static constexpr bool kZeroCopy = true;
  static constexpr bool kUninitialised = true;
  static constexpr bool kReadyEvent = true;
  static constexpr bool kPayloadInHeap = true;
  static constexpr std::uint32_t kCopyKind = kThreads;

  struct Client {
    std::unique_ptr<xla::PjRtClient> client;
    xla::PjRtMemorySpace* spaces[kBufferDevices];
  };
  // Never destroyed, as pools are not.
  static const Client& Get() {
    static const Client* const made = [] {
      auto* all = new Client;
      xla::CpuClientOptions options;
      options.cpu_device_count = kBufferDevices;
      all->client = Need(xla::GetXlaPjrtCpuClient(std::move(options)));
      for (int i = 0; i < kBufferDevices; ++i) {
        all->spaces[i] = Need(all->client->addressable_devices()[i]->default_memory_space());
      }
      return all;
    }();
    return *made;
  }

  static Buffer Make(const void* data, std::size_t bytes, int device, xla::PjRtClient::HostBufferSemantics semantics) {
    const std::int64_t dims[] = {static_cast<std::int64_t>(bytes / 4)};
    return Need(Get().client->BufferFromHostBuffer(data, xla::F32, dims, /*byte_strides=*/std::nullopt, semantics,
                                                   /*on_done_with_host_buffer=*/nullptr, Get().spaces[device],
                                                   /*device_layout=*/nullptr));
  }
  static Buffer FromHost(const void* data, std::size_t bytes, int device) {
    return Make(data, bytes, device, xla::PjRtClient::HostBufferSemantics::kImmutableOnlyDuringCall);
  }
  static Buffer ZeroCopy(const void* data, std::size_t bytes, int device) {
    return Make(data, bytes, device, xla::PjRtClient::HostBufferSemantics::kImmutableZeroCopy);
  }
  static Buffer Uninitialised(std::size_t bytes, int device) {
    const std::int64_t dims[] = {static_cast<std::int64_t>(bytes / 4)};
    return Need(
        Get().client->CreateUninitializedBuffer(xla::ShapeUtil::MakeShape(xla::F32, dims), Get().spaces[device]));
  }
  static void Await(const Buffer& buffer) { Need(buffer->GetReadyFuture().Await()); }
  static void ToHost(const Buffer& buffer, void* destination, std::size_t bytes) {
    Need(buffer->CopyRawToHost(destination, 0, static_cast<std::int64_t>(bytes)).Await());
  }
  static Buffer ToDevice(const Buffer& buffer, int device) {
    return Need(buffer->CopyToMemorySpace(Get().spaces[device]));
  }
  static void QueryReady(const Buffer& buffer) {
    const auto ready = buffer->GetReadyFuture();
    if (!ready.IsReady()) std::abort();
    Need(ready.Await());
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Op* bench_ops(std::size_t* count) {
  static const std::vector<Op> ops = BufferRows<XlaClient>::Table("xla::PjRtClient");
  *count = ops.size();
  return ops.data();
}
