// XLA's CPU client as a plugin: its column of the rows about buffers.
#include <cstdlib>
#include <vector>

#include "buffer_rows.h"
#include "pjrt.h"

namespace {

struct Plugin {
  using Buffer = PluginBuffer;
  static constexpr bool kZeroCopy = true;
  static constexpr bool kUninitialised = true;
  static constexpr bool kReadyEvent = true;
  static constexpr bool kPayloadInHeap = true;
  static constexpr std::uint32_t kCopyKind = kThreads;

  struct Client {
    PluginClient client{kBufferDevices};
    PJRT_Memory* memories[kBufferDevices];
  };
  static const Client& Get() {
    static const Client made = [] {
      Client all;
      for (int i = 0; i < kBufferDevices; ++i) all.memories[i] = all.client.DefaultMemory(i);
      return all;
    }();
    return made;
  }

  static Buffer Make(const void* data, std::size_t bytes, int device, PJRT_HostBufferSemantics semantics) {
    const std::int64_t dims[] = {static_cast<std::int64_t>(bytes / 4)};
    PURLIN_ARGUMENTS(PJRT_Client_BufferFromHostBuffer_Args, make);
    make.client = Get().client.client;
    make.data = data;
    make.type = PJRT_Buffer_Type_F32;
    make.dims = dims;
    make.num_dims = 1;
    make.host_buffer_semantics = semantics;
    make.memory = Get().memories[device];
    Need(api->PJRT_Client_BufferFromHostBuffer(&make));
    Destroy(make.done_with_host_buffer);
    return Buffer(make.buffer);
  }
  static Buffer FromHost(const void* data, std::size_t bytes, int device) {
    return Make(data, bytes, device, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);
  }
  static Buffer ZeroCopy(const void* data, std::size_t bytes, int device) {
    return Make(data, bytes, device, PJRT_HostBufferSemantics_kImmutableZeroCopy);
  }
  static Buffer Uninitialised(std::size_t bytes, int device) {
    const std::int64_t dims[] = {static_cast<std::int64_t>(bytes / 4)};
    PURLIN_ARGUMENTS(PJRT_Client_CreateUninitializedBuffer_Args, make);
    make.client = Get().client.client;
    make.shape_dims = dims;
    make.shape_num_dims = 1;
    make.shape_element_type = PJRT_Buffer_Type_F32;
    make.memory = Get().memories[device];
    Need(api->PJRT_Client_CreateUninitializedBuffer(&make));
    return Buffer(make.buffer);
  }
  static PJRT_Event* Ready(const Buffer& buffer) {
    PURLIN_ARGUMENTS(PJRT_Buffer_ReadyEvent_Args, ready);
    ready.buffer = buffer.get();
    Need(api->PJRT_Buffer_ReadyEvent(&ready));
    return ready.event;
  }
  static void Await(const Buffer& buffer) {
    PJRT_Event* ready = Ready(buffer);
    ::Await(ready);
    Destroy(ready);
  }
  static void ToHost(const Buffer& buffer, void* destination, std::size_t bytes) {
    PURLIN_ARGUMENTS(PJRT_Buffer_ToHostBuffer_Args, copy);
    copy.src = buffer.get();
    copy.dst = destination;
    copy.dst_size = bytes;
    Need(api->PJRT_Buffer_ToHostBuffer(&copy));
    ::Await(copy.event);
    Destroy(copy.event);
  }
  static Buffer ToDevice(const Buffer& buffer, int device) {
    PURLIN_ARGUMENTS(PJRT_Buffer_CopyToDevice_Args, copy);
    copy.buffer = buffer.get();
    copy.dst_device = Get().client.devices[device];
    Need(api->PJRT_Buffer_CopyToDevice(&copy));
    return Buffer(copy.dst_buffer);
  }
  static void QueryReady(const Buffer& buffer) {
    PJRT_Event* ready = Ready(buffer);
    PURLIN_ARGUMENTS(PJRT_Event_IsReady_Args, query);
    query.event = ready;
    Need(api->PJRT_Event_IsReady(&query));
    if (!query.is_ready) std::abort();
    ::Await(ready);
    Destroy(ready);
  }
};

}  // namespace

std::vector<Op> PluginBufferOps() { return BufferRows<Plugin>::Table(PURLIN_BENCH_PJRT_TITLE); }
