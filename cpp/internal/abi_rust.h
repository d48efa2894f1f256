// Purlin: the plain functions of rust/bridge that are called too often for anything else. Declared by hand: the other
// half of status.rs, slab.rs, event.rs, executor.rs, user_context.rs, cancel.rs, timer.rs, semaphore.rs,
// task_options.rs, serial_queue.rs, elastic_pool.rs, stall.rs, alloc_options.rs, raw_buffer.rs, raw_buffer_promise.rs,
// memory_hook.rs, host_memory_allocator.rs, client.rs, dma.rs, shape.rs, layout.rs, host_buffer.rs, host_shards.rs,
// buffer_create.rs, buffer.rs, buffer_holds.rs, buffer_promise.rs, transfer.rs, staging.rs and abi.rs there, in the
// same order, where each has its contract.
#ifndef PURLIN_CPP_INTERNAL_ABI_RUST_H_
#define PURLIN_CPP_INTERNAL_ABI_RUST_H_

#include <cstddef>
#include <cstdint>

#include "purlin/internal/abi.h"
#include "purlin/internal/callback.h"
#include "purlin/internal/executor_ref.h"
#include "purlin/internal/piece_callback.h"
#include "purlin/internal/task.h"
#include "purlin/raw_buffer.h"
#include "purlin/source_location.h"

namespace purlin {
inline namespace v0 {
namespace internal {

struct BufferPromiseRep;
struct BufferRep;
struct CancelRegistrationRep;
struct CancelSourceRep;
struct CancelTokenRep;
struct ClientRep;
struct DeviceRep;
struct DmaMappingRep;
struct DonationHoldRep;
struct ElasticPoolRep;
struct ExternalReferenceRep;
struct HostAddressRep;
struct MemorySpaceRep;
struct PermitRep;
struct RawBufferPromiseRep;
struct RawBufferRep;
struct SemaphoreRep;
struct SerialQueueRep;
struct StagingCopierRep;
struct StagingPoolRep;
struct StagingSinkRep;
struct TimerRep;
struct TransferRep;
struct UsageHoldRep;

struct WatchdogRep;

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

/// A TaskOptions.
struct PurlinTaskOptions {
  std::int64_t deadline_ns;
  const CancelTokenRep* cancel;
  const char* label;
  std::uint32_t priority;
  bool has_deadline;
  bool may_block;
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
const void* purlin_lock_enter() noexcept;
void purlin_lock_leave(const void* place) noexcept;

EventHeader* purlin_event_new_error(const StatusRep* error, PurlinLocation location) noexcept;
EventHeader* purlin_event_new_with_stream(const char* label, PurlinLocation location, std::uintptr_t stream,
                                          std::uint64_t sequence_number) noexcept;
bool purlin_event_definition_stream(const EventHeader* event, std::uintptr_t* stream,
                                    std::uint64_t* sequence_number) noexcept;
void purlin_event_finish(EventHeader* event, std::uintptr_t word) noexcept;
void purlin_event_forward(EventHeader* event, EventHeader* source) noexcept;
const StatusRep* purlin_event_follow(EventHeader* event, EventHeader* source) noexcept;
bool purlin_event_may_free(EventHeader* event) noexcept;
void* purlin_event_owes_several(EventHeader* event, EventHeader* const* sources, std::size_t count) noexcept;
void purlin_event_arrived(void* several, std::size_t index) noexcept;
void purlin_events_arrived(void* several) noexcept;
void purlin_event_abandon(EventHeader* event) noexcept;
const StatusRep* purlin_event_wait(EventHeader* event, std::int64_t timeout_ns) noexcept;
EventHeader* purlin_event_join(EventHeader* const* events, std::size_t count, std::uint32_t policy, std::uint32_t rule,
                               PurlinLocation location) noexcept;
void purlin_event_defer_waiter(EventHeader* event, Waiter* waiter) noexcept;
void purlin_event_run_deferred_waiters() noexcept;

void purlin_thread_pool_retain(const ThreadPoolRep* pool) noexcept;
void purlin_thread_pool_release(const ThreadPoolRep* pool) noexcept;
const StatusRep* purlin_thread_pool_execute(const ThreadPoolRep* pool, TaskNode* task) noexcept;
const StatusRep* purlin_thread_pool_execute_with(const ThreadPoolRep* pool, TaskNode* task,
                                                 const PurlinTaskOptions* options) noexcept;
const StatusRep* purlin_thread_pool_execute_when_ready(const ThreadPoolRep* pool, EventHeader* const* events,
                                                       std::size_t count, TaskNode* task) noexcept;
const StatusRep* purlin_thread_pool_parallel_for(const ThreadPoolRep* pool, std::size_t count, std::size_t grain,
                                                 bool (*call)(void* data, std::size_t begin, std::size_t end),
                                                 void* data) noexcept;
std::size_t purlin_thread_pool_num_threads(const ThreadPoolRep* pool) noexcept;
std::size_t purlin_thread_pool_current_thread(const ThreadPoolRep* pool) noexcept;
const StatusRep* purlin_thread_pool_join(const ThreadPoolRep* pool, bool (*a)(void* data), void* a_data,
                                         bool (*b)(void* data), void* b_data) noexcept;
const StatusRep* purlin_thread_pool_shutdown(const ThreadPoolRep* pool, std::uint32_t mode,
                                             std::int64_t deadline_ns) noexcept;

void purlin_user_context_retain(const std::uint64_t* context) noexcept;
void purlin_user_context_release(const std::uint64_t* context) noexcept;
const std::uint64_t* purlin_user_context_new(const std::uint64_t* parent, const char* origin,
                                             std::size_t size_bytes) noexcept;
const std::uint64_t* purlin_user_context_new_lazy(const std::uint64_t* parent, void* data,
                                                  void (*render)(void* data, void* text),
                                                  void (*deleter)(void* data)) noexcept;
void purlin_user_context_rendered(void* text, const char* data, std::size_t size_bytes) noexcept;
const std::uint64_t* purlin_user_context_chained(const std::uint64_t* outer, const std::uint64_t* inner) noexcept;
const std::uint64_t* purlin_user_context_fused(const std::uint64_t* const* contexts, std::size_t count) noexcept;
const std::uint64_t* purlin_user_context_with_id(std::uint64_t id, const char* origin, std::size_t size_bytes,
                                                 const StatusRep** error) noexcept;
const std::uint64_t* purlin_user_context_lookup(std::uint64_t id) noexcept;
void purlin_user_context_lookup_all(void (*visit)(void* data, const std::uint64_t* context), void* data) noexcept;
void purlin_user_context_debug_string(const std::uint64_t* context,
                                      void (*append)(void* text, const char* data, std::size_t size_bytes),
                                      void* text) noexcept;
const StatusRep* purlin_user_context_annotate(const StatusRep* error, const std::uint64_t* context) noexcept;
const StatusRep* purlin_user_context_annotate_with_id(const StatusRep* error, std::uint64_t id) noexcept;
const StatusRep* purlin_user_context_expand(const StatusRep* error) noexcept;

const CancelSourceRep* purlin_cancel_source_new(const CancelTokenRep* parent, const char* label) noexcept;
void purlin_cancel_source_retain(const CancelSourceRep* source) noexcept;
void purlin_cancel_source_release(const CancelSourceRep* source) noexcept;
bool purlin_cancel_source_cancel(const CancelSourceRep* source, const StatusRep* reason) noexcept;
const CancelTokenRep* purlin_cancel_source_token(const CancelSourceRep* source) noexcept;
void purlin_cancel_token_retain(const CancelTokenRep* token) noexcept;
void purlin_cancel_token_release(const CancelTokenRep* token) noexcept;
bool purlin_cancel_token_is_cancelled(const CancelTokenRep* token) noexcept;
bool purlin_cancel_token_is_retired(const CancelTokenRep* token) noexcept;
const StatusRep* purlin_cancel_token_status(const CancelTokenRep* token) noexcept;
EventHeader* purlin_cancel_token_event(const CancelTokenRep* token) noexcept;
CancelRegistrationRep* purlin_cancel_token_on_cancel(const CancelTokenRep* token, Callback callback) noexcept;
bool purlin_cancel_registration_release(CancelRegistrationRep* registration) noexcept;

TimerRep* purlin_timer_new(std::int64_t delay_ns, const char* label) noexcept;
EventHeader* purlin_timer_event(const TimerRep* timer) noexcept;
bool purlin_timer_cancel(TimerRep* timer) noexcept;
void purlin_timer_detach(TimerRep* timer) noexcept;
EventHeader* purlin_event_with_deadline(EventHeader* event, std::int64_t delay_ns) noexcept;

const SemaphoreRep* purlin_semaphore_new(const char* label, std::size_t capacity) noexcept;
void purlin_semaphore_retain(const SemaphoreRep* semaphore) noexcept;
void purlin_semaphore_release(const SemaphoreRep* semaphore) noexcept;
std::size_t purlin_semaphore_capacity(const SemaphoreRep* semaphore) noexcept;
std::size_t purlin_semaphore_available(const SemaphoreRep* semaphore) noexcept;
std::size_t purlin_semaphore_waiting(const SemaphoreRep* semaphore) noexcept;
PermitRep* purlin_semaphore_try_acquire(const SemaphoreRep* semaphore, std::size_t amount,
                                        const StatusRep** error) noexcept;
PermitRep* purlin_semaphore_acquire(const SemaphoreRep* semaphore, std::size_t amount, std::int64_t timeout_ns,
                                    const CancelTokenRep* cancel, const StatusRep** error) noexcept;
void purlin_semaphore_acquire_async(const SemaphoreRep* semaphore, std::size_t amount, const CancelTokenRep* cancel,
                                    Callback callback) noexcept;
void purlin_semaphore_close(const SemaphoreRep* semaphore) noexcept;
std::size_t purlin_permit_amount(const PermitRep* permit) noexcept;
void purlin_permit_release(PermitRep* permit) noexcept;

TaskNode* purlin_task_apply_options(TaskNode* task, const PurlinTaskOptions* options, const StatusRep** error) noexcept;
void purlin_dropped_tasks(std::uint64_t* cancelled, std::uint64_t* late) noexcept;

const StatusRep* purlin_inline_execute(TaskNode* task) noexcept;
const SerialQueueRep* purlin_serial_queue_new(const char* label, ExecutorRef executor) noexcept;
const SerialQueueRep* purlin_serial_queue_new_on_pool(const char* label, const ThreadPoolRep* pool) noexcept;
void purlin_serial_queue_retain(const SerialQueueRep* queue) noexcept;
void purlin_serial_queue_release(const SerialQueueRep* queue) noexcept;
const StatusRep* purlin_serial_queue_execute(const SerialQueueRep* queue, TaskNode* task) noexcept;
EventHeader* purlin_serial_queue_drained(const SerialQueueRep* queue) noexcept;
const StatusRep* purlin_serial_queue_drain(const SerialQueueRep* queue) noexcept;
bool purlin_serial_queue_has_backlog(const SerialQueueRep* queue) noexcept;
void purlin_serial_queue_close(const SerialQueueRep* queue) noexcept;
std::size_t purlin_serial_queue_cancel_pending(const SerialQueueRep* queue) noexcept;

const ElasticPoolRep* purlin_elastic_pool_new(std::size_t max_threads, std::int64_t idle_timeout_ns,
                                              std::size_t stack_size_bytes, const char* name,
                                              std::size_t name_size_bytes, const StatusRep** error) noexcept;
void purlin_elastic_pool_retain(const ElasticPoolRep* pool) noexcept;
void purlin_elastic_pool_release(const ElasticPoolRep* pool) noexcept;
const StatusRep* purlin_elastic_pool_execute(const ElasticPoolRep* pool, TaskNode* task) noexcept;
std::size_t purlin_elastic_pool_num_threads(const ElasticPoolRep* pool) noexcept;
std::size_t purlin_elastic_pool_num_idle(const ElasticPoolRep* pool) noexcept;
const StatusRep* purlin_elastic_pool_shutdown(const ElasticPoolRep* pool, std::uint32_t how,
                                              std::int64_t deadline_ns) noexcept;

/// A std::function on the heap.
struct PurlinStallSink {
  void* data;
  void (*call)(void* data, const char* text, std::size_t size_bytes);
  void (*destroy)(void* data);
};
void purlin_dump_stalls(std::int64_t older_than_ns, void (*take)(void* data, const char* text, std::size_t size_bytes),
                        void* data) noexcept;
WatchdogRep* purlin_watchdog_start(std::int64_t older_than_ns, std::int32_t action, PurlinStallSink sink,
                                   const StatusRep** error) noexcept;
void purlin_watchdog_stop(WatchdogRep* watchdog) noexcept;

/// An AllocOptions.
struct PurlinAllocOptions {
  std::size_t struct_size;
  const char* label;
  std::size_t alignment_bytes;
  EventHeader* after;
  std::int32_t oom;
};

const RawBufferRep* purlin_raw_buffer_allocate(const MemorySpaceRep* space, std::size_t size_bytes,
                                               const PurlinAllocOptions* options, PurlinLocation location,
                                               const StatusRep** error) noexcept;
const RawBufferRep* purlin_raw_buffer_import(const MemorySpaceRep* space, void* address, std::size_t size_bytes,
                                             std::int32_t mutability, const Callback* on_release,
                                             const StatusRep** error) noexcept;
const StatusRep* purlin_raw_buffer_slices(const RawBufferRep* buffer, const ByteRange* ranges, std::size_t count,
                                          const RawBufferRep** slices) noexcept;

const StatusRep* purlin_raw_buffer_create_channel(const MemorySpaceRep* space, std::size_t size_bytes,
                                                  const PurlinAllocOptions* options, PurlinLocation location,
                                                  const RawBufferRep** buffer, RawBufferPromiseRep** promise) noexcept;
const StatusRep* purlin_raw_buffer_promise_fulfil(RawBufferPromiseRep* promise, const RawBufferRep* memory) noexcept;
const StatusRep* purlin_raw_buffer_promise_allocate(RawBufferPromiseRep* promise, std::int32_t oom) noexcept;
const StatusRep* purlin_raw_buffer_promise_fail(RawBufferPromiseRep* promise, const StatusRep* status) noexcept;
void purlin_raw_buffer_promise_release(RawBufferPromiseRep* promise) noexcept;

/// A std::function on the heap, or none.
struct PurlinMemoryHook {
  void* data;
  bool (*call)(void* data, const void* report) noexcept;
  void (*destroy)(void* data) noexcept;
};

/// A HostMemoryAllocator that is kept, or none.
struct PurlinHostMemoryAllocator {
  void* data;
  void* (*allocate)(void* data, std::size_t size_bytes, std::size_t alignment_bytes) noexcept;
  void (*deallocate)(void* data, void* address, std::size_t size_bytes, std::size_t alignment_bytes) noexcept;
  void (*release)(void* data) noexcept;
};

/// A ClientOptions.
struct PurlinClientOptions {
  std::size_t struct_size;
  const char* platform;
  std::size_t platform_size_bytes;
  std::size_t memory_limit_bytes;
  std::int32_t device_count;
  std::int32_t worker_count;
  bool check_frozen_memory;
  bool has_process_index;
  std::int32_t process_index;
  bool shuts_down_at_end;
  std::uint32_t shutdown_mode;
  std::int64_t deadline_ns;
  PurlinMemoryHook on_out_of_memory;
  PurlinHostMemoryAllocator host_memory_allocator;
};
const ClientRep* purlin_client_create(PurlinClientOptions options, const StatusRep** error) noexcept;
const StatusRep* purlin_client_shutdown(const ClientRep* client, std::uint32_t mode, std::int64_t deadline_ns) noexcept;

DmaMappingRep* purlin_client_dma_map(const ClientRep* client, const std::uint8_t* address, std::size_t size_bytes,
                                     const StatusRep** error) noexcept;
void purlin_dma_mapping_range(const DmaMappingRep* mapping, const std::uint8_t** address,
                              std::size_t* size_bytes) noexcept;
std::size_t purlin_dma_mapping_in_flight(const DmaMappingRep* mapping) noexcept;
const StatusRep* purlin_dma_mapping_unmap(DmaMappingRep* mapping) noexcept;
void purlin_dma_mapping_release(DmaMappingRep* mapping) noexcept;

/// A Shape.
struct PurlinShape {
  const std::int64_t* dims;
  std::size_t rank;
  const std::uint8_t* dynamic;
  std::size_t dynamic_count;
  std::uint8_t dtype;
};
/// Of a Shape.
struct PurlinShapeSizes {
  std::size_t element_count;
  std::size_t on_device_size_bytes;
  std::size_t host_size_bytes;
};
const StatusRep* purlin_shape_sizes(const PurlinShape* shape, PurlinShapeSizes* sizes) noexcept;

/// A Layout.
struct PurlinLayout {
  const std::int64_t* minor_to_major;
  std::size_t rank;
};

/// An array in the memory of the host.
struct PurlinHostArray {
  const std::uint8_t* data;
  const std::int64_t* dims;
  std::size_t rank;
  const std::int64_t* byte_strides;
  std::size_t stride_count;
  bool has_byte_strides;
  std::uint8_t dtype;
};
const BufferRep* purlin_buffer_from_host_array(const PurlinHostArray* array, const MemorySpaceRep* space,
                                               std::int32_t semantics, const PurlinLayout* layout,
                                               const PurlinAllocOptions* alloc, const Callback* on_done,
                                               PurlinLocation location, bool* is_aliased,
                                               const StatusRep** error) noexcept;

/// A HostShard.
struct PurlinHostShard {
  PurlinHostArray array;
  PurlinLayout layout;
  bool has_layout;
  const MemorySpaceRep* space;
  const Callback* on_done;
};
const StatusRep* purlin_buffer_from_host_shards(const PurlinHostShard* shards, std::size_t count,
                                                std::int32_t semantics, const PurlinAllocOptions* alloc,
                                                PurlinLocation location, const BufferRep** buffers) noexcept;

const BufferRep* purlin_buffer_from_host(const std::uint8_t* data, std::size_t size_bytes, std::uint8_t dtype,
                                         const std::int64_t* dims, std::size_t rank, const MemorySpaceRep* space,
                                         std::int32_t semantics, PurlinLocation location,
                                         const StatusRep** error) noexcept;
const BufferRep* purlin_buffer_create_uninitialized(const PurlinShape* shape, const PurlinLayout* layout,
                                                    const MemorySpaceRep* space, const PurlinAllocOptions* options,
                                                    PurlinLocation location, const StatusRep** error) noexcept;
const BufferRep* purlin_buffer_create_error(const StatusRep* status, const PurlinShape* shape,
                                            const MemorySpaceRep* space, const StatusRep** error) noexcept;
const BufferRep* purlin_buffer_create_token(const MemorySpaceRep* space, EventHeader* ready, PurlinLocation location,
                                            const StatusRep** error) noexcept;
const BufferRep* purlin_buffer_from_raw(const RawBufferRep* memory, const PurlinShape* shape,
                                        const PurlinLayout* layout, EventHeader* ready,
                                        const StatusRep** error) noexcept;
bool purlin_buffer_dynamic(const BufferRep* buffer, bool* flags) noexcept;
void purlin_buffer_layout(const BufferRep* buffer, std::int64_t* minor_to_major) noexcept;
const StatusRep* purlin_buffer_logical_dims(const BufferRep* buffer, std::int64_t* dims) noexcept;
EventHeader* purlin_buffer_copy_to_host_strided(const BufferRep* buffer, std::uint8_t* destination,
                                                const std::int64_t* byte_strides, std::size_t count) noexcept;
EventHeader* purlin_buffer_copy_raw_to_host_when(const BufferRep* buffer, std::size_t offset_bytes,
                                                 std::size_t size_bytes, HostAddressRep** address) noexcept;
void purlin_host_address_set(HostAddressRep* address, std::uint8_t* destination, const StatusRep* error) noexcept;
const BufferRep* purlin_buffer_copy_to_device(const BufferRep* buffer, const DeviceRep* device, PurlinLocation location,
                                              const StatusRep** error) noexcept;
const BufferRep* purlin_buffer_copy_to_memory_space(const BufferRep* buffer, const MemorySpaceRep* space,
                                                    PurlinLocation location, const StatusRep** error) noexcept;
const BufferRep* purlin_buffer_copy_into(const BufferRep* buffer, const BufferRep* destination, PurlinLocation location,
                                         const StatusRep** error) noexcept;
const BufferRep* purlin_buffer_donate_after(const BufferRep* buffer, EventHeader* event, PurlinLocation location,
                                            const StatusRep** error) noexcept;
const BufferRep* purlin_buffer_bitcast(const BufferRep* buffer, const PurlinShape* shape, const PurlinLayout* layout,
                                       PurlinLocation location, const StatusRep** error) noexcept;
void purlin_buffer_hold_counts(const BufferRep* buffer, std::uint32_t* usage, std::uint32_t* external) noexcept;
void purlin_buffer_delete(const BufferRep* buffer, PurlinLocation location) noexcept;
const RawBufferRep* purlin_buffer_release_memory(const BufferRep* buffer, PurlinLocation location,
                                                 EventHeader** free) noexcept;
const RawBufferRep* purlin_buffer_release_ownership(const BufferRep* buffer, bool waits, PurlinLocation location,
                                                    const StatusRep** error) noexcept;

UsageHoldRep* purlin_buffer_usage_hold(const BufferRep* buffer, bool waits, const StatusRep** error) noexcept;
const RawBufferRep* purlin_usage_hold_memory(const UsageHoldRep* hold) noexcept;
EventHeader* purlin_usage_hold_ready_event(const UsageHoldRep* hold) noexcept;
void purlin_usage_hold_release(UsageHoldRep* hold) noexcept;
void purlin_usage_hold_release_after(UsageHoldRep* hold, EventHeader* event) noexcept;
ExternalReferenceRep* purlin_buffer_external_reference(const BufferRep* buffer, const StatusRep** error) noexcept;
const RawBufferRep* purlin_external_reference_memory(const ExternalReferenceRep* reference) noexcept;
EventHeader* purlin_external_reference_ready_event(const ExternalReferenceRep* reference) noexcept;
void purlin_external_reference_release(ExternalReferenceRep* reference) noexcept;
DonationHoldRep* purlin_buffer_donate(const BufferRep* buffer, const char* by, bool waits, PurlinLocation location,
                                      const StatusRep** error) noexcept;
const RawBufferRep* purlin_donation_hold_memory(const DonationHoldRep* hold) noexcept;
EventHeader* purlin_donation_hold_ready_event(const DonationHoldRep* hold) noexcept;
EventHeader* purlin_donation_hold_free_event(const DonationHoldRep* hold) noexcept;
const RawBufferRep* purlin_donation_hold_confirm(DonationHoldRep* hold) noexcept;
void purlin_donation_hold_release(DonationHoldRep* hold) noexcept;

const StatusRep* purlin_buffer_create_channel(const PurlinShape* shape, const PurlinLayout* layout,
                                              const MemorySpaceRep* space, PurlinLocation location,
                                              const BufferRep** buffer, BufferPromiseRep** promise) noexcept;
const StatusRep* purlin_buffer_promise_fulfil(BufferPromiseRep* promise, const BufferRep* source,
                                              PurlinLocation location) noexcept;
const StatusRep* purlin_buffer_promise_fail(BufferPromiseRep* promise, const StatusRep* status) noexcept;
void purlin_buffer_promise_release(BufferPromiseRep* promise) noexcept;

/// A TransferSpec.
struct PurlinTransferSpec {
  PurlinShape shape;
  PurlinLayout layout;
  bool has_layout;
};
const TransferRep* purlin_transfer_create(const PurlinTransferSpec* specs, std::size_t count,
                                          const MemorySpaceRep* space, const PurlinAllocOptions* options,
                                          PurlinLocation location, const StatusRep** error) noexcept;
void purlin_transfer_release(const TransferRep* transfer) noexcept;
std::size_t purlin_transfer_buffer_count(const TransferRep* transfer) noexcept;
const MemorySpaceRep* purlin_transfer_memory_space(const TransferRep* transfer) noexcept;
std::size_t purlin_transfer_buffer_size(const TransferRep* transfer, std::size_t index,
                                        const StatusRep** error) noexcept;
const BufferRep* purlin_transfer_retrieve(const TransferRep* transfer, std::size_t index,
                                          const StatusRep** error) noexcept;
const StatusRep* purlin_transfer_array(const TransferRep* transfer, std::size_t index, const PurlinHostArray* array,
                                       const Callback* on_done) noexcept;
const StatusRep* purlin_transfer_whole(const TransferRep* transfer, std::size_t index, const void* data,
                                       std::size_t size_bytes, const Callback* on_done) noexcept;
const StatusRep* purlin_transfer_piece(const TransferRep* transfer, std::size_t index, const void* data,
                                       std::size_t offset_bytes, std::size_t size_bytes, bool is_last,
                                       const Callback* on_done) noexcept;
const StatusRep* purlin_transfer_set_error(const TransferRep* transfer, std::size_t index,
                                           const StatusRep* status) noexcept;
void purlin_transfer_add_metadata(const TransferRep* transfer, const char* key, std::size_t key_size_bytes,
                                  const char* value, std::size_t value_size_bytes) noexcept;
void purlin_transfer_metadata(const TransferRep* transfer,
                              void (*take)(void* data, const char* key, std::size_t key_size_bytes, const char* value,
                                           std::size_t value_size_bytes) noexcept,
                              void* data) noexcept;
EventHeader* purlin_transfer_ready_event(const TransferRep* transfer) noexcept;

/// A StagingOptions.
struct PurlinStagingOptions {
  std::size_t struct_size;
  std::size_t lease_bytes;
  std::size_t lease_count;
  const char* label;
};
const StagingPoolRep* purlin_staging_pool_create(const MemorySpaceRep* space, const PurlinStagingOptions* options,
                                                 PurlinLocation location, const StatusRep** error) noexcept;
void purlin_staging_pool_retain(const StagingPoolRep* pool) noexcept;
void purlin_staging_pool_release(const StagingPoolRep* pool) noexcept;
std::size_t purlin_staging_pool_lease_bytes(const StagingPoolRep* pool) noexcept;
std::size_t purlin_staging_pool_lease_count(const StagingPoolRep* pool) noexcept;
std::size_t purlin_staging_pool_free_count(const StagingPoolRep* pool) noexcept;
const MemorySpaceRep* purlin_staging_pool_memory_space(const StagingPoolRep* pool) noexcept;
StagingLeaseRep* purlin_staging_pool_try_acquire(const StagingPoolRep* pool, const StatusRep** error) noexcept;
StagingLeaseRep* purlin_staging_pool_acquire(const StagingPoolRep* pool, const CancelTokenRep* cancel,
                                             const StatusRep** error) noexcept;
void purlin_staging_pool_acquire_async(const StagingPoolRep* pool, const CancelTokenRep* cancel,
                                       Callback callback) noexcept;
std::uint8_t* purlin_staging_lease_range(const StagingLeaseRep* lease, std::size_t* size_bytes) noexcept;
const RawBufferRep* purlin_staging_lease_memory(const StagingLeaseRep* lease) noexcept;
void purlin_staging_lease_release(StagingLeaseRep* lease) noexcept;
const StagingCopierRep* purlin_staging_copier_new(const StagingPoolRep* pool) noexcept;
void purlin_staging_copier_release(const StagingCopierRep* copier) noexcept;
EventHeader* purlin_staging_copier_read(const StagingCopierRep* copier, const RawBufferRep* source,
                                        EventHeader* const* dependencies, std::size_t count, PieceCallback on_piece,
                                        PurlinLocation location) noexcept;
EventHeader* purlin_staging_copier_read_buffer(const StagingCopierRep* copier, const BufferRep* buffer,
                                               PieceCallback on_piece, PurlinLocation location,
                                               const StatusRep** error) noexcept;
const StagingSinkRep* purlin_staging_sink_new(const RawBufferRep* destination, PurlinLocation location,
                                              EventHeader** event) noexcept;
void purlin_staging_sink_release(const StagingSinkRep* sink) noexcept;
const StatusRep* purlin_staging_sink_put(const StagingSinkRep* sink, std::size_t offset_bytes, std::size_t size_bytes,
                                         StagingLeaseRep* lease) noexcept;
const StatusRep* purlin_staging_sink_poison(const StagingSinkRep* sink, const StatusRep* status) noexcept;
std::size_t purlin_staging_sink_begun_bytes(const StagingSinkRep* sink) noexcept;

const char* purlin_version() noexcept;
void purlin_report_exception(const char* place, const char* what) noexcept;

}  // extern "C"

inline PurlinLocation ToRust(SourceLocation location) noexcept { return {location.file(), location.line()}; }

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_ABI_RUST_H_
