// A plugin that keeps all that has threads in statics, and leaves events behind: loaded and closed by host.cc. Its
// symbols are hidden, so that nothing but Purlin keeps it from being unloaded.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "purlin/purlin.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

struct Kept {
  purlin::Client client = purlin::Client::Create().value();
  purlin::ThreadPoolAsyncWorkRunner pool = purlin::ThreadPoolAsyncWorkRunner::Create({2, "plugin"}).value();
  purlin::ElasticPool elastic = purlin::ElasticPool::Create({}).value();
  purlin::SerialQueue queue = purlin::SerialQueue(pool, "plugin's queue");
  purlin::Timer timer = purlin::Timer::After(std::chrono::hours(1), "plugin's timer");
  purlin::EventPromise owed = purlin::EventPromise("plugin's event");
};

Kept& Here() {
  static Kept kept;  // Destroyed where the plugin ends: at dlclose(), if that unloads it.
  return kept;
}

}  // namespace

/// Uses everything; 0, or the line of what is wrong.
EXPORTED int plugin_use() {
  Kept& kept = Here();
  std::vector<std::int64_t> numbers(1000), copy(1000);
  std::iota(numbers.begin(), numbers.end(), std::int64_t{1});
  const std::size_t size = numbers.size() * sizeof(std::int64_t);
  const purlin::StatusOr<purlin::Buffer> buffer = purlin::Buffer::FromHost(
      numbers.data(), size, purlin::DType::kS64, {1000}, kept.client.devices().at(0).default_memory_space());
  if (!buffer.ok() || !buffer->CopyToHost(copy.data(), size).Wait().ok() || copy != numbers) return __LINE__;
  // Left behind: threads that have just been started, and tasks that no thread waits for.
  for (int i = 0; i < 100; ++i) {
    if (!kept.pool.Schedule([] {}, "plugin's task").ok() || !kept.elastic.Schedule([] {}).ok() ||
        !kept.queue.Schedule([] {}).ok()) {
      return __LINE__;
    }
  }
  return 0;
}

/// What a report says that is made by the plugin's own code: called after dlclose().
EXPORTED int plugin_report_names_the_event() {
  return std::strstr(purlin::DumpStalls().c_str(), "plugin's event") != nullptr ? 0 : __LINE__;
}
