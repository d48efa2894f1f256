// Purlin: the last event of each stream, after which new work on the stream begins.
//
// ```cpp
// purlin::StreamEventMap streams;
// purlin::EventPromise copied("copied");
// const purlin::Event before = streams.Exchange(/*stream=*/1, copied.event());  // the copy waits for `before`
// copied.SetReady();
// const purlin::Event all = streams.All();
// ```
#ifndef PURLIN_STREAM_EVENT_MAP_H_
#define PURLIN_STREAM_EVENT_MAP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "purlin/event.h"
#include "purlin/internal/mutex.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// The last event that was recorded for each stream. Any thread; never blocks for long, and no code of the user's runs
/// under its lock. Streams are known by their handles, as in DefinitionStream. An event stays until another takes its
/// place or its stream is forgotten. Neither copied nor moved.
class StreamEventMap final {
 public:
  /// No stream.
  StreamEventMap() = default;
  StreamEventMap(const StreamEventMap&) = delete;
  StreamEventMap& operator=(const StreamEventMap&) = delete;

  /// `event` is the last of `stream` from now on.
  void Record(std::uintptr_t stream, Event event) { static_cast<void>(Exchange(stream, std::move(event))); }
  /// As Record(). Returns the event that was the last before; Ready() if there was none.
  [[nodiscard]] Event Exchange(std::uintptr_t stream, Event event) {
    const std::lock_guard<internal::Mutex> lock(mutex_);
    std::swap(last_[stream], event);
    return event;
  }
  /// The last event of `stream`; Ready(), which allocates nothing, if none was recorded.
  [[nodiscard]] Event Last(std::uintptr_t stream) const {
    const std::lock_guard<internal::Mutex> lock(mutex_);
    const auto found = last_.find(stream);
    return found == last_.end() ? Event() : found->second;
  }
  /// Removes `stream`: for streams that end.
  void Forget(std::uintptr_t stream) {
    Event gone;  // Destroyed after the lock, as in Clear().
    const std::lock_guard<internal::Mutex> lock(mutex_);
    const auto found = last_.find(stream);
    if (found == last_.end()) return;
    gone = std::move(found->second);
    last_.erase(found);
  }
  /// An event after the last ones of all streams, which fails as WhenAll says; of several, the stream with the lowest
  /// handle counts as the first.
  [[nodiscard]] Event All() const {
    std::vector<Event> events;
    {
      const std::lock_guard<internal::Mutex> lock(mutex_);
      events.reserve(last_.size());
      for (const auto& [stream, event] : last_) events.push_back(event);
    }
    return WhenAll(events);
  }
  /// How many streams are known.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard<internal::Mutex> lock(mutex_);
    return last_.size();
  }
  /// Forgets all streams.
  void Clear() {
    std::map<std::uintptr_t, Event> gone;  // Destroyed after the lock: destroying an event may run waiters.
    const std::lock_guard<internal::Mutex> lock(mutex_);
    std::swap(last_, gone);
  }

 private:
  mutable internal::Mutex mutex_;
  std::map<std::uintptr_t, Event> last_;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_STREAM_EVENT_MAP_H_
