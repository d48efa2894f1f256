// Purlin: the plain functions of rust/bridge/src/pjrt_tables, in the order of its mod.rs, where each has its contract.
#ifndef PURLIN_CPP_INTERNAL_ABI_PJRT_H_
#define PURLIN_CPP_INTERNAL_ABI_PJRT_H_

#include <cstddef>

#include "cpp/internal/abi_rust.h"
#include "purlin/adapters/pjrt_abi.h"
#include "purlin/internal/abi.h"

namespace purlin {
inline namespace v0 {
namespace internal {

extern "C" {

PurlinPjrtDeviceEvent purlin_pjrt_give_event(EventHeader* event) noexcept;
EventHeader* purlin_pjrt_take_event(PurlinPjrtDeviceEvent event) noexcept;
PurlinPjrtError* purlin_pjrt_give_error(const StatusRep* status) noexcept;
const StatusRep* purlin_pjrt_take_error(PurlinPjrtError* error) noexcept;
PurlinPjrtDeviceEventVector purlin_pjrt_give_events(EventHeader* const* events, std::size_t count) noexcept;
std::size_t purlin_pjrt_count_events(const PurlinPjrtDeviceEventVector* events) noexcept;
void purlin_pjrt_take_events(PurlinPjrtDeviceEventVector* events, EventHeader** out) noexcept;
PurlinPjrtDeviceEventPromise* purlin_pjrt_new_promise(const char* label, PurlinLocation location) noexcept;
EventHeader* purlin_pjrt_event_of(PurlinPjrtDeviceEventPromise* promise) noexcept;
const StatusRep* purlin_pjrt_forward(PurlinPjrtDeviceEventPromise* promise, EventHeader* event) noexcept;
PurlinPjrtRawBuffer* purlin_pjrt_give_raw_buffer(const RawBufferRep* buffer, void* memory) noexcept;
EventHeader* purlin_pjrt_take_plugin_event(const PurlinPjrtApi* api, void* event, bool is_ours) noexcept;
const PurlinPjrtDeviceEventTable* purlin_pjrt_device_event_table() noexcept;
const PurlinPjrtDeviceEventPromiseTable* purlin_pjrt_promise_table() noexcept;
const PurlinPjrtRawBufferTable* purlin_pjrt_raw_buffer_table() noexcept;
const PurlinPjrtErrorTable* purlin_pjrt_error_table() noexcept;

}  // extern "C"

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_ABI_PJRT_H_
