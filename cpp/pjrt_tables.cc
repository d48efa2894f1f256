#include "purlin/adapters/pjrt_tables.h"

#include <utility>

#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"

namespace purlin {
inline namespace v0 {
namespace adapters {

namespace rust_side = ::purlin::internal;

namespace internal {

std::size_t CountPjrtEvents(const PurlinPjrtDeviceEventVector* events) noexcept {
  return rust_side::purlin_pjrt_count_events(events);
}

void TakePjrtEvents(PurlinPjrtDeviceEventVector* events, Event* out) noexcept {
  // Each is Ready() before, and an Event is its pointer.
  rust_side::purlin_pjrt_take_events(events, reinterpret_cast<rust_side::EventHeader**>(out));
}

}  // namespace internal

const PurlinPjrtDeviceEventTable* PjrtDeviceEventTable() noexcept {
  return rust_side::purlin_pjrt_device_event_table();
}

const PurlinPjrtDeviceEventPromiseTable* PjrtDeviceEventPromiseTable() noexcept {
  return rust_side::purlin_pjrt_promise_table();
}

const PurlinPjrtRawBufferTable* PjrtRawBufferTable() noexcept { return rust_side::purlin_pjrt_raw_buffer_table(); }

const PurlinPjrtErrorTable* PjrtErrorTable() noexcept { return rust_side::purlin_pjrt_error_table(); }

PurlinPjrtDeviceEvent ToPjrt(const Event& event) noexcept { return rust_side::purlin_pjrt_give_event(event.header()); }

Event FromPjrt(PurlinPjrtDeviceEvent event) noexcept { return Event::Adopt(rust_side::purlin_pjrt_take_event(event)); }

PurlinPjrtError* ToPjrt(Status status) noexcept {
  return rust_side::purlin_pjrt_give_error(std::move(status).ReleaseRep());
}

Status FromPjrt(PurlinPjrtError* error) noexcept { return Status::FromRep(rust_side::purlin_pjrt_take_error(error)); }

PurlinPjrtDeviceEventVector ToPjrt(Span<const Event> events) noexcept {
  return rust_side::purlin_pjrt_give_events(rust_side::ToRust(events), events.size());
}

PurlinPjrtDeviceEventPromise* MakePjrtPromise(Label label, SourceLocation location) noexcept {
  return rust_side::purlin_pjrt_new_promise(label.c_str(), location);
}

Event EventOf(PurlinPjrtDeviceEventPromise* promise) noexcept {
  return Event::Adopt(rust_side::purlin_pjrt_event_of(promise));
}

Status ToPjrt(const Event& event, PurlinPjrtDeviceEventPromise* promise) noexcept {
  return Status::FromRep(rust_side::purlin_pjrt_forward(promise, event.header()));
}

PurlinPjrtRawBuffer* ToPjrt(const RawBuffer& buffer, void* memory) noexcept {
  return buffer.rep() == nullptr ? nullptr : rust_side::purlin_pjrt_give_raw_buffer(buffer.rep(), memory);
}

Event FromPjrt(const PurlinPjrtApi* api, void* event) noexcept {
  return Event::Adopt(rust_side::purlin_pjrt_take_plugin_event(api, event, true));
}

Event EventOf(const PurlinPjrtApi* api, void* event) noexcept {
  return Event::Adopt(rust_side::purlin_pjrt_take_plugin_event(api, event, false));
}

}  // namespace adapters
}  // namespace v0
}  // namespace purlin
