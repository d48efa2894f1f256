// Purlin: joins: one event after several, with a choice of what their errors do.
//
// ```cpp
// #include <memory>
// #include <vector>
//
// purlin::Status Finish(const std::vector<purlin::Event>& copies, std::unique_ptr<float[]> memory) {
//   purlin::DeleteWhenReady(purlin::AfterAll(copies), std::move(memory));  // also if some of them fail
//   return purlin::WhenAll(copies, {purlin::ErrorPolicy::kFirstInTime, /*fail_fast=*/true}).Wait();
// }
// ```
//
// Event and WhenAll with the default policy are in event.h, joins of values in run_when_ready.h, of futures in
// join_futures.h. Waiters of a join run on the thread that completes it, under no lock. A join does not keep its events
// alive: an event whose promise is dropped unset fails, and so does the join.
#ifndef PURLIN_JOIN_EVENTS_H_
#define PURLIN_JOIN_EVENTS_H_

#include <cstdint>
#include <type_traits>
#include <utility>

#include "purlin/error_policy.h"
#include "purlin/event.h"
#include "purlin/internal/abi.h"
#include "purlin/source_location.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// As WhenAll(events), with the error that `options` chooses (error_policy.h). One event alone: that event itself. If
/// all are ready and none has failed, nothing is allocated.
inline Event WhenAll(Span<const Event> events, const JoinOptions& options,
                     SourceLocation location = SourceLocation::Current()) noexcept {
  return Event::Adopt(internal::EventJoin(reinterpret_cast<internal::EventHeader* const*>(events.data()), events.size(),
                                          static_cast<std::uint32_t>(options.policy),
                                          options.fail_fast ? internal::JoinRule::kFailFast : internal::JoinRule::kWait,
                                          location));
}

/// An event that happens once all of `events` are terminal, whether they happened or failed. Ready(), without
/// allocation, if there are none or all are terminal.
inline Event AfterAll(Span<const Event> events, SourceLocation location = SourceLocation::Current()) noexcept {
  return Event::Adopt(internal::EventJoin(reinterpret_cast<internal::EventHeader* const*>(events.data()), events.size(),
                                          0, internal::JoinRule::kIgnore, location));
}

/// The error of the first of `events`, by index, that has failed by now; OK if none has. Never blocks, and does not
/// wait for those that are pending.
inline Status FirstErrorOf(Span<const Event> events) noexcept {
  for (const Event& event : events) {
    if (event.state() == EventState::kError) return event.error();
  }
  return Status();
}

/// Keeps `object` (a reference, a buffer, a lock) until `event` is terminal, then destroys it: on the thread that
/// completes the event, or at once, on this thread, if it is terminal.
template <typename T>
void DeleteWhenReady(const Event& event, T object) {
  static_assert(!std::is_reference_v<T> && !std::is_pointer_v<T>, "a pointer keeps nothing");
  event.OnReady([kept = std::move(object)]() mutable { T ends = std::move(kept); });
}

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_JOIN_EVENTS_H_
