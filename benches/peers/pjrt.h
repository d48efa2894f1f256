// The halves of the libraries of plugins, and what they share: a client through the PJRT C API, which is what JAX and
// others load. libpeer_pjrt.so is XLA's own CPU client, of the wheel lammps-jax-pjrt-cpu; libpeer_plugin.so is Purlin's
// plugin, and libpeer_plugin_delegated.so the same, where that of the wheel runs the programs. The header is that of
// tensorflow-cpu, which is older: structs of arguments carry their size, so a plugin knows which fields are there.
#ifndef PURLIN_BENCHES_PEERS_PJRT_H_
#define PURLIN_BENCHES_PEERS_PJRT_H_

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "op.h"
#include "xla/pjrt/c/pjrt_c_api.h"

std::vector<Op> PluginBufferOps();
std::vector<Op> PluginProgramOps();

inline const PJRT_Api* api = nullptr;

// Whether the plugin is Purlin's and another one runs the programs.
inline bool IsDelegated() { return std::strcmp(PURLIN_BENCH_PJRT_MODE, "delegate") == 0; }

// A struct of arguments, as the API wants it before the first field is set.
#define PURLIN_ARGUMENTS(type, name) \
  type name{};                       \
  name.struct_size = type##_STRUCT_SIZE

inline void Need(PJRT_Error* error) {
  if (error == nullptr) return;
  PURLIN_ARGUMENTS(PJRT_Error_Message_Args, message);
  message.error = error;
  api->PJRT_Error_Message(&message);
  std::fprintf(stderr, "purlin_bench: PJRT C API: %.*s\n", static_cast<int>(message.message_size), message.message);
  std::abort();
}

inline void Await(PJRT_Event* event) {
  PURLIN_ARGUMENTS(PJRT_Event_Await_Args, await);
  await.event = event;
  Need(api->PJRT_Event_Await(&await));
}
inline void Destroy(PJRT_Event* event) {
  PURLIN_ARGUMENTS(PJRT_Event_Destroy_Args, destroy);
  destroy.event = event;
  Need(api->PJRT_Event_Destroy(&destroy));
}

// A client with its devices, which is never destroyed, as pools are not.
struct PluginClient {
  explicit PluginClient(std::int64_t device_count) {
    PURLIN_ARGUMENTS(PJRT_NamedValue, count);
    count.name = "cpu_device_count";
    count.name_size = std::strlen(count.name);
    count.type = PJRT_NamedValue_kInt64;
    count.int64_value = device_count;
    count.value_size = 1;
    PURLIN_ARGUMENTS(PJRT_NamedValue, mode);
    mode.name = "mode";
    mode.name_size = std::strlen(mode.name);
    mode.type = PJRT_NamedValue_kString;
    mode.string_value = PURLIN_BENCH_PJRT_MODE;
    mode.value_size = std::strlen(mode.string_value);
    const PJRT_NamedValue options[] = {count, mode};
    PURLIN_ARGUMENTS(PJRT_Client_Create_Args, create);
    create.create_options = options;
    create.num_options = mode.value_size == 0 ? 1 : 2;  // XLA's has no modes.
    Need(api->PJRT_Client_Create(&create));
    client = create.client;
    PURLIN_ARGUMENTS(PJRT_Client_AddressableDevices_Args, all);
    all.client = client;
    Need(api->PJRT_Client_AddressableDevices(&all));
    if (all.num_addressable_devices != static_cast<std::size_t>(device_count)) std::abort();
    devices = all.addressable_devices;
  }
  PJRT_Memory* DefaultMemory(int device) const {
    PURLIN_ARGUMENTS(PJRT_Device_DefaultMemory_Args, memory);
    memory.device = devices[device];
    Need(api->PJRT_Device_DefaultMemory(&memory));
    return memory.memory;
  }

  PJRT_Client* client;
  PJRT_Device* const* devices;
};

class PluginBuffer {
 public:
  explicit PluginBuffer(PJRT_Buffer* buffer) : buffer_(buffer) {}
  PluginBuffer(PluginBuffer&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  PluginBuffer& operator=(PluginBuffer&& other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~PluginBuffer() {
    if (buffer_ == nullptr) return;
    PURLIN_ARGUMENTS(PJRT_Buffer_Destroy_Args, destroy);
    destroy.buffer = buffer_;
    Need(api->PJRT_Buffer_Destroy(&destroy));
  }
  PJRT_Buffer* get() const { return buffer_; }

 private:
  PJRT_Buffer* buffer_;
};

#endif  // PURLIN_BENCHES_PEERS_PJRT_H_
