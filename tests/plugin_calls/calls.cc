// Calls of a PJRT plugin in random orders, against a model of what its arrays and events must be.
//
//   plugin_calls [--calls N] [--seed S] [--threads T] [--limit SECONDS] [--compiler LIBRARY [--mode MODE]] PLUGIN
//
// N is that of PURLIN_PLUGIN_CALLS without --calls, else 20000. Each thread has arrays of its own on a client that all
// share. With a compiler, programs run, too, with donation. Ends with an abort that names seed, thread and call where
// the plugin does something else than the model; when the limit (600) is over, with one and what the plugin says of
// what is pending. At the end all memory of the devices is free, and all that the caller lent has been given back.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "api.h"
#include "caller.h"
#include "world.h"

#if defined(PURLIN_LINKED_PLUGIN)
extern "C" const PurlinPjrtApi* GetPjrtApi();
#endif

int main(int argc, char** argv) {
  const char* const wanted = std::getenv("PURLIN_PLUGIN_CALLS");
  std::uint64_t calls = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 20000, seed = 1, threads = 2,
                limit = 600;
  const char *compiler = nullptr, *mode = "auto", *plugin = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::pair<std::string_view, std::uint64_t*> numbers[] = {
        {"--calls", &calls}, {"--seed", &seed}, {"--threads", &threads}, {"--limit", &limit}};
    const std::pair<std::string_view, const char**> texts[] = {{"--compiler", &compiler}, {"--mode", &mode}};
    bool is_option = false;
    for (const auto& [name, number] : numbers) {
      if (argument == name && i + 1 < argc) *number = std::strtoull(argv[++i], nullptr, 10), is_option = true;
    }
    for (const auto& [name, text] : texts) {
      if (argument == name && i + 1 < argc) *text = argv[++i], is_option = true;
    }
    if (!is_option) {
      plugin = argv[i];
    }
  }
#if defined(PURLIN_LINKED_PLUGIN)
  (void)plugin;
  api = GetPjrtApi();
#else
  if (plugin == nullptr) Fail("usage: plugin_calls [--calls N] [--seed S] [--threads T] [--compiler LIBRARY] PLUGIN");
  void* const library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) Fail(dlerror());
  const PurlinPjrtApi* (*get)() = nullptr;
  void* const symbol = dlsym(library, "GetPjrtApi");
  std::memcpy(&get, &symbol, sizeof(get));
  api = get();
#endif
  World world;
  Open(world, compiler, mode);
  if (compiler != nullptr) Compile(world);
  // What hangs is named: by the plugin, then by the core's threads.
  std::atomic<bool> is_over = false;
  std::thread watch([&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(limit);
    while (!is_over) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (std::chrono::steady_clock::now() < end) continue;
      std::raise(SIGQUIT);
      std::this_thread::sleep_for(std::chrono::seconds(2));
      Fail("the limit of " + std::to_string(limit) + " s is over");
    }
  });
  std::vector<std::thread> all;
  for (std::uint64_t thread = 0; thread < threads; ++thread) {
    all.emplace_back([&, thread] {
      Caller caller(world, seed * 1000 + thread);
      here.seed = seed, here.thread = thread;
      for (here.call = 0; here.call < calls / threads; ++here.call) caller.Call();
      caller.End();
    });
  }
  for (std::thread& thread : all) thread.join();
  Close(world);
  is_over = true;
  watch.join();
  std::printf("plugin_calls: %" PRIu64 " calls from %" PRIu64 " threads, seed %" PRIu64 "%s, as the model\n", calls,
              threads, seed, compiler != nullptr ? (std::string(", with programs, mode ") + mode).c_str() : "");
  return 0;
}
