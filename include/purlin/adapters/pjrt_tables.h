// Purlin's adapter for the tables of C functions by which XLA's plugins pass events, promises and raw buffers to each
// other.
//
// ```cpp
// purlin::Event ThereAndBack(const purlin::Event& event) {
//   const PurlinPjrtDeviceEvent theirs = purlin::adapters::ToPjrt(event);  // PjrtCast: to XLA's type
//   return purlin::adapters::FromPjrt(theirs);
// }
// // `api` and `completion_event` are those of any plugin: a PJRT_Api and a PJRT_Event.
// purlin::Event Completed(const PurlinPjrtApi* api, void* completion_event) {
//   return purlin::adapters::FromPjrt(api, completion_event);
// }
// ```
//
// No header of XLA is needed: pjrt_abi.h has the layouts, and says what every slot does; PjrtCast goes between its
// types and theirs. The tables are in the library, so this adapter, unlike the others, calls functions of its own
// there.
//
// ToPjrt returns an owned reference; FromPjrt takes one over, whatever it returns. An imported event completes as the
// foreign one does, with code, message and payloads where the foreign object has them (device events have no payloads,
// errors and PJRT_Events have), and its waiters run on the foreign thread. Null is an event that has happened, or an OK
// status. kInvalidArgument: the object has no table, or one that is too small or has null where a function is needed;
// the error names it, and the reference is released if the table allows. An event that the other side never completes
// stays pending; DumpStalls() calls it "PJRT event".
//
// Which of XLA's paths accept a foreign table is XLA's choice: docs/adapters.md lists them. Nothing here blocks.
#ifndef PURLIN_ADAPTERS_PJRT_TABLES_H_
#define PURLIN_ADAPTERS_PJRT_TABLES_H_

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/adapters/pjrt_abi.h"
#include "purlin/event.h"
#include "purlin/export.h"
#include "purlin/label.h"
#include "purlin/raw_buffer.h"
#include "purlin/source_location.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace adapters {

namespace internal {

/// How many events TakePjrtEvents writes.
PURLIN_API std::size_t CountPjrtEvents(const PurlinPjrtDeviceEventVector* events) noexcept;
/// Moves the events out, to `out`.
PURLIN_API void TakePjrtEvents(PurlinPjrtDeviceEventVector* events, Event* out) noexcept;

}  // namespace internal

/// The same pointer, or the same two words, as another type of the same layout: between XLA's types and pjrt_abi.h's.
template <typename To, typename From>
To PjrtCast(From from) noexcept {
  static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<To> && std::is_trivially_copyable_v<From>,
                "two types of one layout");
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

/// The table of every device event that ToPjrt gives: static, whole, at one address for the life of the library.
PURLIN_API const PurlinPjrtDeviceEventTable* PjrtDeviceEventTable() noexcept;
/// The table of every promise that MakePjrtPromise and ToPjrt give.
PURLIN_API const PurlinPjrtDeviceEventPromiseTable* PjrtDeviceEventPromiseTable() noexcept;
/// The table of every raw buffer that ToPjrt gives.
PURLIN_API const PurlinPjrtRawBufferTable* PjrtRawBufferTable() noexcept;
/// The table of every error that ToPjrt gives.
PURLIN_API const PurlinPjrtErrorTable* PjrtErrorTable() noexcept;

/// An owned reference to `event`; never null, also for an event that has always happened, and then without allocation.
PURLIN_API PurlinPjrtDeviceEvent ToPjrt(const Event& event) noexcept;
/// An event that completes as `event` does, a reference to which is taken over. One of Purlin's is itself again.
PURLIN_API Event FromPjrt(PurlinPjrtDeviceEvent event) noexcept;

/// An owned error; null for OK. Its user context and payloads are payloads.
PURLIN_API PurlinPjrtError* ToPjrt(Status status) noexcept;
/// The status of `error`, which is destroyed. A code that absl has not becomes kUnknown, OK kInternal.
PURLIN_API Status FromPjrt(PurlinPjrtError* error) noexcept;

/// A vector with an owned reference to each of `events`.
PURLIN_API PurlinPjrtDeviceEventVector ToPjrt(Span<const Event> events) noexcept;
/// Moves the events out of `events`, which is zeroed, so that a second time gives none. Null has none.
inline std::vector<Event> FromPjrt(PurlinPjrtDeviceEventVector* events) {
  std::vector<Event> taken(internal::CountPjrtEvents(events));
  internal::TakePjrtEvents(events, taken.data());
  return taken;
}

/// An owned promise for the other side to set; its event is known by `label` (static storage) and by the place of the
/// caller.
PURLIN_API PurlinPjrtDeviceEventPromise* MakePjrtPromise(Label label = Label(),
                                                         SourceLocation location = SourceLocation::Current()) noexcept;
/// The event of `promise`, one of Purlin's or of theirs, which stays the caller's. kInvalidArgument as above.
PURLIN_API Event EventOf(PurlinPjrtDeviceEventPromise* promise) noexcept;
/// An owned promise by which the other side completes `promise`.
inline PurlinPjrtDeviceEventPromise* ToPjrt(EventPromise promise,
                                            SourceLocation location = SourceLocation::Current()) noexcept {
  PurlinPjrtDeviceEventPromise* const theirs = MakePjrtPromise(Label("PJRT promise"), location);
  std::move(promise).Forward(EventOf(theirs));
  return theirs;
}
/// Completes `promise`, a reference to which is taken over, as `event` completes, by set_ready or set_error: so that
/// also promises of XLA's own take it, whose `set` accepts only events of their own kind. kInvalidArgument as above.
PURLIN_API Status ToPjrt(const Event& event, PurlinPjrtDeviceEventPromise* promise) noexcept;

/// An owned reference to `buffer`, which reports `memory` (a PJRT_Memory*, which outlives it, or null) as its place.
/// Copies by it follow the rules of RawBuffer's own calls: only dependencies order copies.
PURLIN_API PurlinPjrtRawBuffer* ToPjrt(const RawBuffer& buffer, void* memory) noexcept;

/// An event that completes as `event` does, a PJRT_Event* of the plugin of `api` (a PJRT_Api*), which is taken over and
/// destroyed when it has completed. The plugin stays loaded until then. If the plugin refuses to call back, its error.
/// Does not call PJRT_Event_Await.
PURLIN_API Event FromPjrt(const PurlinPjrtApi* api, void* event) noexcept;
/// As above, for XLA's own types.
template <typename Api, typename PjrtEvent>
Event FromPjrt(const Api* api, PjrtEvent* event) noexcept {
  return FromPjrt(PjrtCast<const PurlinPjrtApi*>(api), static_cast<void*>(event));
}

/// As FromPjrt, of an event that the caller owns and keeps until it has completed. For events that are completed by
/// PJRT_Event_Set: they must not be destroyed inside that, where FromPjrt would.
PURLIN_API Event EventOf(const PurlinPjrtApi* api, void* event) noexcept;
/// As above, for XLA's own types.
template <typename Api, typename PjrtEvent>
Event EventOf(const Api* api, PjrtEvent* event) noexcept {
  return EventOf(PjrtCast<const PurlinPjrtApi*>(api), static_cast<void*>(event));
}

}  // namespace adapters
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ADAPTERS_PJRT_TABLES_H_
