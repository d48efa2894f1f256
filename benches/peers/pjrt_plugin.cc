// XLA's own CPU client as a plugin, through the PJRT C API: what JAX and others load. The plugin is that of the wheel
// lammps-jax-pjrt-cpu, the header that of tensorflow-cpu, which is older: structs of arguments carry their size, so
// that the plugin knows which fields are there.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "buffer_rows.h"
#include "xla/pjrt/c/pjrt_c_api.h"

namespace {

const PJRT_Api* api = nullptr;

// A struct of arguments, as the API wants it before the first field is set.
#define PURLIN_ARGUMENTS(type, name) \
  type name{};                       \
  name.struct_size = type##_STRUCT_SIZE

void Need(PJRT_Error* error) {
  if (error == nullptr) return;
  PURLIN_ARGUMENTS(PJRT_Error_Message_Args, message);
  message.error = error;
  api->PJRT_Error_Message(&message);
  std::fprintf(stderr, "purlin_bench: PJRT C API: %.*s\n", static_cast<int>(message.message_size), message.message);
  std::abort();
}

void Await(PJRT_Event* event) {
  PURLIN_ARGUMENTS(PJRT_Event_Await_Args, await);
  await.event = event;
  Need(api->PJRT_Event_Await(&await));
}
void Destroy(PJRT_Event* event) {
  PURLIN_ARGUMENTS(PJRT_Event_Destroy_Args, destroy);
  destroy.event = event;
  Need(api->PJRT_Event_Destroy(&destroy));
}

struct Plugin {
  class Buffer {
   public:
    explicit Buffer(PJRT_Buffer* buffer) : buffer_(buffer) {}
    Buffer(Buffer&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
    Buffer& operator=(Buffer&& other) = delete;
    ~Buffer() {
      if (buffer_ == nullptr) return;
      PURLIN_ARGUMENTS(PJRT_Buffer_Destroy_Args, destroy);
      destroy.buffer = buffer_;
      Need(api->PJRT_Buffer_Destroy(&destroy));
    }
    PJRT_Buffer* get() const { return buffer_; }

   private:
    PJRT_Buffer* buffer_;
  };
  static constexpr bool kZeroCopy = true;
  static constexpr bool kUninitialised = true;
  static constexpr bool kReadyEvent = true;
  static constexpr bool kPayloadInHeap = true;
  static constexpr std::uint32_t kCopyKind = kThreads;

  struct Client {
    PJRT_Client* client;
    PJRT_Device* const* devices;
    PJRT_Memory* memories[kBufferDevices];
  };
  // Never destroyed, as pools are not.
  static const Client& Get() {
    static const Client made = [] {
      PURLIN_ARGUMENTS(PJRT_Plugin_Initialize_Args, initialize);
      Need(api->PJRT_Plugin_Initialize(&initialize));
      PURLIN_ARGUMENTS(PJRT_NamedValue, option);
      option.name = "cpu_device_count";
      option.name_size = std::strlen(option.name);
      option.type = PJRT_NamedValue_kInt64;
      option.int64_value = kBufferDevices;
      option.value_size = 1;
      PURLIN_ARGUMENTS(PJRT_Client_Create_Args, create);
      create.create_options = &option;
      create.num_options = 1;
      Need(api->PJRT_Client_Create(&create));
      PURLIN_ARGUMENTS(PJRT_Client_AddressableDevices_Args, devices);
      devices.client = create.client;
      Need(api->PJRT_Client_AddressableDevices(&devices));
      if (devices.num_addressable_devices != kBufferDevices) std::abort();
      Client all{create.client, devices.addressable_devices, {}};
      for (int i = 0; i < kBufferDevices; ++i) {
        PURLIN_ARGUMENTS(PJRT_Device_DefaultMemory_Args, memory);
        memory.device = all.devices[i];
        Need(api->PJRT_Device_DefaultMemory(&memory));
        all.memories[i] = memory.memory;
      }
      return all;
    }();
    return made;
  }

  static Buffer Make(const void* data, std::size_t bytes, int device, PJRT_HostBufferSemantics semantics) {
    const std::int64_t dims[] = {static_cast<std::int64_t>(bytes / 4)};
    PURLIN_ARGUMENTS(PJRT_Client_BufferFromHostBuffer_Args, make);
    make.client = Get().client;
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
    make.client = Get().client;
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
    copy.dst_device = Get().devices[device];
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

// Why the plugin cannot be used, or null.
const char* Load() {
  void* handle = dlopen(PURLIN_BENCH_PJRT_PLUGIN, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return dlerror();
  void* symbol = dlsym(handle, "GetPjrtApi");
  if (symbol == nullptr) return dlerror();
  const PJRT_Api* (*get)() = nullptr;
  std::memcpy(&get, &symbol, sizeof(get));
  api = get();
  if (api == nullptr) return "GetPjrtApi answers null";
  if (api->pjrt_api_version.major_version != PJRT_API_MAJOR) return "another major version of the C API";
  if (api->struct_size < PJRT_STRUCT_SIZE(PJRT_Api, PJRT_Client_CreateUninitializedBuffer)) return "too old a C API";
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const Op* bench_ops(std::size_t* count) {
  static const std::vector<Op> ops = [] {
    if (const char* why = Load(); why != nullptr) {
      std::fprintf(stderr, "purlin_bench: not measured: PJRT C API: %s\n", why);
      return std::vector<Op>();
    }
    return BufferRows<Plugin>::Table("PJRT C API");
  }();
  *count = ops.size();
  return ops.data();
}
