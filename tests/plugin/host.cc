// Loads a plugin that uses Purlin, closes it, goes on, and ends.
//
//   plugin_host PLUGIN main|thread     which thread uses it: one that goes on, or one that has ended by dlclose()
//
// A library that uses Purlin is never unloaded (purlin/label.h), and dlclose() of one neither deadlocks nor leaves
// labels, places and code behind that are gone. Exit code 0, or the line of what is wrong; a deadlock ends by ctest's
// limit.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <thread>

using Call = int();

int main(int argc, char** argv) {
  if (argc != 3) return __LINE__;
  const bool on_thread = std::strcmp(argv[2], "thread") == 0;
  Call* reports = nullptr;
  for (int i = 0; i < 3; ++i) {
    void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return __LINE__;
    }
    auto* use = reinterpret_cast<Call*>(dlsym(plugin, "plugin_use"));
    reports = reinterpret_cast<Call*>(dlsym(plugin, "plugin_report_names_the_event"));
    if (use == nullptr || reports == nullptr) return __LINE__;
    int line = 0;
    if (on_thread) {
      std::thread([&] { line = use(); }).join();
    } else {
      line = use();
    }
    if (line != 0) return std::fprintf(stderr, "plugin.cc:%d\n", line), __LINE__;
    if (dlclose(plugin) != 0) return __LINE__;
    // Another thread goes through the loader, too, and its end runs destructors of thread-locals.
    std::thread([] { static_cast<void>(dlsym(RTLD_DEFAULT, "nothing_of_that_name")); }).join();
  }
  if (void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD); plugin == nullptr) {
    std::fprintf(stderr, "dlclose() has unloaded %s\n", argv[1]);
    return __LINE__;
  }
  if (const int line = reports(); line != 0) return std::fprintf(stderr, "plugin.cc:%d\n", line), __LINE__;
  return 0;
}
