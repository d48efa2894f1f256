// The library of a plugin: loads the plugin, and gives the operations of its halves.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "pjrt.h"

namespace {

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
  PURLIN_ARGUMENTS(PJRT_Plugin_Initialize_Args, initialize);
  Need(api->PJRT_Plugin_Initialize(&initialize));
  return nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const Op* bench_ops(std::size_t* count) {
  static const std::vector<Op> ops = [] {
    if (const char* why = Load(); why != nullptr) {
      std::fprintf(stderr, "purlin_bench: not measured: %s: %s\n", PURLIN_BENCH_PJRT_TITLE, why);
      return std::vector<Op>();
    }
    std::vector<Op> all = PluginProgramOps();
    // They do not depend on how programs run.
    if (!IsDelegated()) {
      for (const Op& op : PluginBufferOps()) all.push_back(op);
    }
    return all;
  }();
  *count = ops.size();
  return ops.data();
}
