// The client that all threads share: how it is opened and closed.
#ifndef PURLIN_TESTS_PLUGIN_CALLS_WORLD_H_
#define PURLIN_TESTS_PLUGIN_CALLS_WORLD_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "api.h"

inline constexpr int kDevices = 2;

/// What all threads share.
struct World {
  PurlinPjrtClient* client = nullptr;
  std::vector<PurlinPjrtDevice*> devices;
  std::vector<PurlinPjrtMemory*> memories;
  std::vector<std::size_t> device_of_memory;
  bool is_checked = false;                    // The mode `check`, in which runs are waited for.
  PurlinPjrtLoadedExecutable* add = nullptr;  // (a donated, b) -> (a + b, b - a), each f32[8].
  std::atomic<std::int64_t> views_alive = 0;
};

inline PurlinPjrtNamedValue Option(const char* name, std::int64_t number) {
  PurlinPjrtNamedValue value{};
  value.struct_size = kPurlinPjrtNamedValueSize;
  value.name = name;
  value.name_size = std::strlen(name);
  value.type = kPurlinPjrtNamedValueType_kInt64;
  value.value.int64_value = number;
  value.value_size = 1;
  return value;
}

inline PurlinPjrtNamedValue TextOption(const char* name, const char* text) {
  PurlinPjrtNamedValue value = Option(name, 0);
  value.type = kPurlinPjrtNamedValueType_kString;
  value.value.string_value = text;
  value.value_size = std::strlen(text);
  return value;
}

inline void Open(World& world, const char* compiler, const char* mode) {
  PurlinPjrtNamedValue stalls = Option("stalls_on_sigquit", 0);
  stalls.type = kPurlinPjrtNamedValueType_kBool;
  stalls.value.bool_value = true;
  std::vector<PurlinPjrtNamedValue> options = {Option("device_count", kDevices), Option("worker_count", 2),
                                               Option("memory_limit_bytes", 1 << 30), stalls};
  if (compiler != nullptr) {
    options.push_back(TextOption("compiler", compiler));
    options.push_back(TextOption("mode", mode));
    world.is_checked = std::strcmp(mode, "check") == 0;
  }
  PURLIN_MUST(make, ClientCreate, client_create, {
    make.create_options = options.data();
    make.num_options = options.size();
  });
  world.client = make.client;
  PURLIN_MUST(devices, ClientAddressableDevices, client_addressable_devices, devices.client = world.client);
  world.devices.assign(devices.addressable_devices, devices.addressable_devices + devices.num_addressable_devices);
  for (std::size_t device = 0; device < world.devices.size(); ++device) {
    PURLIN_MUST(found, DeviceAddressableMemories, device_addressable_memories, found.device = world.devices[device]);
    for (std::size_t i = 0; i < found.num_memories; ++i) {
      world.memories.push_back(found.memories[i]);
      world.device_of_memory.push_back(device);
    }
  }
}

inline void Compile(World& world) {
  char code[] =
      "module @add attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n"
      "  func.func public @main(%a: tensor<8xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<8xf32>)"
      " -> (tensor<8xf32>, tensor<8xf32>) {\n"
      "    %0 = stablehlo.add %a, %b : tensor<8xf32>\n"
      "    %1 = stablehlo.subtract %b, %a : tensor<8xf32>\n"
      "    return %0, %1 : tensor<8xf32>, tensor<8xf32>\n"
      "  }\n"
      "}\n";
  PurlinPjrtProgram program{};
  program.struct_size = kPurlinPjrtProgramSize;
  program.code = code;
  program.code_size = sizeof(code) - 1;
  program.format = "mlir";
  program.format_size = 4;
  // A CompileOptionsProto with build options: no device ordinal (-1), one replica, one partition.
  const std::string build_options = std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x01\x28\x01", 15);
  const std::string compile_options = std::string("\x1a") + static_cast<char>(build_options.size()) + build_options;
  PURLIN_MUST(compile, ClientCompile, client_compile, {
    compile.client = world.client;
    compile.program = &program;
    compile.compile_options = compile_options.data();
    compile.compile_options_size = compile_options.size();
  });
  world.add = compile.executable;
}

inline void Close(World& world) {
  if (world.add != nullptr) {
    PURLIN_MUST(end, LoadedExecutableDestroy, loaded_executable_destroy, end.executable = world.add);
  }
  // What runs when the last caller has ended still holds memory for a moment.
  for (PurlinPjrtDevice* const device : world.devices) {
    for (int tries = 0;; ++tries) {
      PURLIN_MUST(stats, DeviceMemoryStats, device_memory_stats, stats.device = device);
      if (stats.bytes_in_use == 0) break;
      if (tries == 10000) Fail(std::to_string(stats.bytes_in_use) + " bytes of a device are never freed");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  PURLIN_MUST(end, ClientDestroy, client_destroy, end.client = world.client);
  if (world.views_alive.load() != 0)
    Fail("memory of " + std::to_string(world.views_alive.load()) + " views was not given back");
}

#endif  // PURLIN_TESTS_PLUGIN_CALLS_WORLD_H_
