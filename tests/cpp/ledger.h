// What lives in this process, by name: pending events; clients, pools and queues; threads; file descriptors. main.cc
// looks before and after every test. Each buffer, hold, lease and mapping keeps its client, and the client's line names
// the bytes that are in use and their holders, so a test that ends without clients has left none of these. Where the
// fake driver of CUDA (tests/fakecuda) is loaded, what it has for its callers counts, too. A driver of NVIDIA's has
// threads and files of its own, so on a GPU (PURLIN_GPU_DEVICES) threads are those that Purlin has named, and files are
// not looked at.
#ifndef PURLIN_TESTS_CPP_LEDGER_H_
#define PURLIN_TESTS_CPP_LEDGER_H_

#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "purlin/stall.h"

namespace purlin {

struct Ledger {
  std::vector<std::string> promises;
  std::vector<std::string> living;
  std::map<std::string, std::string> threads;
  std::map<std::string, std::string> descriptors;
  std::map<std::string, std::uint64_t> of_driver;

  static Ledger Now() {
    Ledger ledger;
    std::istringstream report(DumpStalls());
    for (std::string line; std::getline(report, line);) {
      if (line.rfind("event '", 0) == 0) ledger.promises.push_back(line);
      if (line.rfind("  owed by ", 0) == 0 && !ledger.promises.empty()) ledger.promises.back() += "," + line.substr(1);
      for (const char* kind : {"pool '", "queue '", "client"}) {
        if (line.rfind(kind, 0) == 0) ledger.living.push_back(line);
      }
    }
    const bool on_a_gpu = std::getenv("PURLIN_GPU_DEVICES") != nullptr;
    ForEach("/proc/self/task", [&ledger, on_a_gpu](const std::string& number, const std::string& path) {
      std::string name;
      std::getline(std::ifstream(path + "/comm") >> std::ws, name);
      if (on_a_gpu && name.rfind("purlin", 0) != 0) return;
      // The process's own, which goes a second after the last timer; no name: it has gone meanwhile.
      if (!name.empty() && name != "purlin-timers") ledger.threads[number] = name;
    });
    ledger.of_driver = OfFakeDriver();
    if (on_a_gpu) return ledger;
    ForEach("/proc/self/fd", [&ledger](const std::string& number, const std::string& path) {
      char target[256];
      const ssize_t length = readlink(path.c_str(), target, sizeof(target));
      if (length <= 0) return;
      std::string name(target, static_cast<std::size_t>(length));
      // The folder that is being read.
      if (name.rfind("/proc/", 0) != 0) ledger.descriptors[number] = std::move(name);
    });
    return ledger;
  }

  /// What is here and was not in `before`, in words; empty if nothing.
  std::string Beyond(const Ledger& before) const {
    std::string text;
    const auto tell = [&text](const char* what, const std::vector<std::string>& now, std::size_t then) {
      if (now.size() <= then) return;
      text += std::to_string(now.size() - then) + " " + what + " left behind:\n";
      for (const std::string& line : now) text += "  " + line + "\n";
    };
    tell("promises", promises, before.promises.size());
    tell("clients, pools or queues", living, before.living.size());
    tell("threads", News(threads, before.threads), 0);
    tell("descriptors", News(descriptors, before.descriptors), 0);
    for (const auto& [name, count] : of_driver) {
      const auto then = before.of_driver.find(name);
      const std::uint64_t old = then == before.of_driver.end() ? 0 : then->second;
      if (count > old) text += std::to_string(count - old) + " " + name + " of the driver left behind\n";
    }
    return text;
  }

  /// What is left of what was made after this snapshot. Objects that are ending get `patience` to end; only a test that
  /// fails waits so long.
  std::string LeftWithin(std::chrono::milliseconds patience) const {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
      std::string left = Now().Beyond(*this);
      if (left.empty() || std::chrono::steady_clock::now() > end) return left;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

 private:
  template <typename F>
  static void ForEach(const std::string& folder, F f) {
    DIR* const entries = opendir(folder.c_str());
    if (entries == nullptr) return;
    while (const dirent* entry = readdir(entries)) {
      const std::string name = entry->d_name;
      if (name[0] != '.') f(name, folder + "/" + name);
    }
    closedir(entries);
  }

  // Empty where no driver is loaded, or NVIDIA's.
  static std::map<std::string, std::uint64_t> OfFakeDriver() {
    std::map<std::string, std::uint64_t> counts;
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver == nullptr) return counts;
    const auto count = reinterpret_cast<std::uint64_t (*)(const char*)>(dlsym(driver, "purlin_fakecuda_ledger"));
    for (const char* name :
         {"contexts", "streams", "events", "modules", "graphs", "pools", "device_bytes", "pinned_bytes"}) {
      if (count != nullptr) counts[name] = count(name);
    }
    dlclose(driver);
    return counts;
  }

  static std::vector<std::string> News(const std::map<std::string, std::string>& now,
                                       const std::map<std::string, std::string>& then) {
    std::vector<std::string> news;
    for (const auto& [number, name] : now) {
      if (then.count(number) == 0) news.push_back(number + ": " + name);
    }
    return news;
  }
};

}  // namespace purlin

#endif  // PURLIN_TESTS_CPP_LEDGER_H_
