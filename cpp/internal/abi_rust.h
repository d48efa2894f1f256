// Purlin: the plain functions of rust/bridge that are called too often for anything else. Declared by hand: the other
// half of status.rs, slab.rs, event.rs, executor.rs and abi.rs there, in the same order, where each has its contract.
#ifndef PURLIN_CPP_INTERNAL_ABI_RUST_H_
#define PURLIN_CPP_INTERNAL_ABI_RUST_H_

#include <cstddef>
#include <cstdint>

#include "purlin/internal/abi.h"
#include "purlin/internal/task.h"
#include "purlin/source_location.h"

namespace purlin {
inline namespace v0 {
namespace internal {

extern "C" {

/// Bytes that belong to a record.
struct PurlinBytes {
  const char* data;
  std::size_t size_bytes;
};

/// A SourceLocation.
struct PurlinLocation {
  const char* file;
  std::uint32_t line;
};

const StatusRep* purlin_status_new(std::int32_t code, const char* message, std::size_t size_bytes,
                                   PurlinLocation location) noexcept;
void purlin_status_retain(const StatusRep* rep) noexcept;
void purlin_status_release(const StatusRep* rep) noexcept;
std::int32_t purlin_status_code(const StatusRep* rep) noexcept;
PurlinBytes purlin_status_message(const StatusRep* rep) noexcept;
PurlinLocation purlin_status_location(const StatusRep* rep) noexcept;
bool purlin_status_payload_at(const StatusRep* rep, std::size_t index, PurlinBytes* type_url,
                              PurlinBytes* payload) noexcept;
PurlinBytes purlin_status_payload(const StatusRep* rep, const char* type_url, std::size_t type_url_size_bytes) noexcept;
const StatusRep* purlin_status_set_payload(const StatusRep* rep, const char* type_url, std::size_t type_url_size_bytes,
                                           const char* payload, std::size_t payload_size_bytes) noexcept;
bool purlin_status_erase_payload(const StatusRep** rep, const char* type_url, std::size_t type_url_size_bytes) noexcept;
bool purlin_status_equal(const StatusRep* a, const StatusRep* b) noexcept;

ThreadState* purlin_thread_state() noexcept;
void* purlin_block_allocate(BlockClass block_class) noexcept;
void purlin_block_free(BlockClass block_class, void* block) noexcept;
void* purlin_large_cell_allocate(std::size_t size_bytes, std::size_t align_bytes) noexcept;
void purlin_large_cell_free(void* cell, std::size_t size_bytes, std::size_t align_bytes) noexcept;

EventHeader* purlin_event_new_error(const StatusRep* error, PurlinLocation location) noexcept;
EventHeader* purlin_event_new_with_stream(const char* label, PurlinLocation location, std::uintptr_t stream,
                                          std::uint64_t sequence_number) noexcept;
bool purlin_event_definition_stream(const EventHeader* event, std::uintptr_t* stream,
                                    std::uint64_t* sequence_number) noexcept;
void purlin_event_finish(EventHeader* event, std::uintptr_t word) noexcept;
void purlin_event_forward(EventHeader* event, EventHeader* source) noexcept;
void purlin_event_abandon(EventHeader* event) noexcept;
const StatusRep* purlin_event_wait(EventHeader* event, std::int64_t timeout_ns) noexcept;
EventHeader* purlin_event_when_all(EventHeader* const* events, std::size_t count) noexcept;
void purlin_event_defer_waiter(EventHeader* event, Waiter* waiter) noexcept;
void purlin_event_run_deferred_waiters() noexcept;

void purlin_thread_pool_retain(const ThreadPoolRep* pool) noexcept;
void purlin_thread_pool_release(const ThreadPoolRep* pool) noexcept;
const StatusRep* purlin_thread_pool_execute(const ThreadPoolRep* pool, TaskNode* task) noexcept;
const StatusRep* purlin_thread_pool_execute_when_ready(const ThreadPoolRep* pool, EventHeader* const* events,
                                                       std::size_t count, TaskNode* task) noexcept;
const StatusRep* purlin_thread_pool_parallel_for(const ThreadPoolRep* pool, std::size_t count, std::size_t grain,
                                                 bool (*call)(void* data, std::size_t begin, std::size_t end),
                                                 void* data) noexcept;
std::size_t purlin_thread_pool_num_threads(const ThreadPoolRep* pool) noexcept;
const StatusRep* purlin_thread_pool_join(const ThreadPoolRep* pool, bool (*a)(void* data), void* a_data,
                                         bool (*b)(void* data), void* b_data) noexcept;
const StatusRep* purlin_thread_pool_shutdown(const ThreadPoolRep* pool, bool cancel_pending,
                                             std::int64_t deadline_ns) noexcept;

const char* purlin_version() noexcept;
void purlin_report_exception(const char* place, const char* what) noexcept;

}  // extern "C"

inline PurlinLocation ToRust(SourceLocation location) noexcept { return {location.file(), location.line()}; }

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_ABI_RUST_H_
