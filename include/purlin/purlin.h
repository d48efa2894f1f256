// Purlin: everything at once. Smaller headers compile faster.
//
// ```cpp
// purlin::StatusOr<purlin::Client> client = purlin::Client::Create();
// if (!client.ok()) return client.status();
// const purlin::MemorySpace memory = client->devices()[0].default_memory_space();
// const float values[] = {1, 2, 3, 4};
// auto buffer = purlin::Buffer::FromHost(values, sizeof(values), purlin::DType::kF32, {4}, memory);
// if (!buffer.ok()) return buffer.status();
// return buffer->ready_event().Wait();
// ```
//
// One rule for handles. A handle that was moved from, released, given away or default-constructed is empty. An empty
// handle may be assigned to and destroyed, and every function of it may be called. A function that can fail returns
// kFailedPrecondition, naming the class that was empty; an event that it returns has failed with that error; a value
// that it returns is the empty one (0, false, "", none, null, -1 for an id, another empty handle); a function without a
// result does nothing. A callback argument is called with that error, or destroyed uncalled if it takes no error; a
// task is destroyed uncalled. The same holds for an empty handle as an argument. Some empty handles have a meaning: an
// empty Status is OK, an empty Event has happened, an empty CancelToken is never cancelled, an empty UserContext is
// none, the setters of an empty Promise return false. Only functions that read a value in place (get(), operator*,
// operator->, StatusOr::value()) must not be called without one.
#ifndef PURLIN_PURLIN_H_
#define PURLIN_PURLIN_H_

// IWYU pragma: begin_exports
#include "purlin/alloc_options.h"
#include "purlin/async_value.h"
#include "purlin/async_value_cast.h"
#include "purlin/async_value_storage.h"
#include "purlin/async_value_verbs.h"
#include "purlin/buffer.h"
#include "purlin/buffer_holds.h"
#include "purlin/buffer_promise.h"
#include "purlin/cancel.h"
#include "purlin/client.h"
#include "purlin/collective.h"
#include "purlin/coroutine.h"
#include "purlin/count_down.h"
#include "purlin/device.h"
#include "purlin/dma.h"
#include "purlin/dtype.h"
#include "purlin/elastic_pool.h"
#include "purlin/error_policy.h"
#include "purlin/event.h"
#include "purlin/executable.h"
#include "purlin/executor.h"
#include "purlin/file_options.h"
#include "purlin/future.h"
#include "purlin/host_buffer.h"
#include "purlin/host_memory_allocator.h"
#include "purlin/inline_executor.h"
#include "purlin/join_events.h"
#include "purlin/join_futures.h"
#include "purlin/kernel.h"
#include "purlin/kernel_loader_spec.h"
#include "purlin/kernel_symbol.h"
#include "purlin/label.h"
#include "purlin/layout.h"
#include "purlin/loaded_kernel.h"
#include "purlin/memory_report.h"
#include "purlin/program.h"
#include "purlin/promise.h"
#include "purlin/raw_buffer.h"
#include "purlin/raw_buffer_promise.h"
#include "purlin/run_when_ready.h"
#include "purlin/semaphore.h"
#include "purlin/serial_queue.h"
#include "purlin/shape.h"
#include "purlin/source_location.h"
#include "purlin/span.h"
#include "purlin/staging.h"
#include "purlin/stall.h"
#include "purlin/status.h"
#include "purlin/status_macros.h"
#include "purlin/status_or.h"
#include "purlin/stream_event_map.h"
#include "purlin/task_options.h"
#include "purlin/timer.h"
#include "purlin/trace.h"
#include "purlin/transfer.h"
#include "purlin/user_context.h"
#include "purlin/version.h"
// What a build without the feature `interchange` leaves out.
#if __has_include("purlin/npy.h")
#include "purlin/dlpack.h"
#include "purlin/npy.h"
#include "purlin/safetensors.h"
#endif
// And one without `xla-cpu`.
#if __has_include("purlin/xla_cpu.h")
#include "purlin/xla_cpu.h"
#endif
// IWYU pragma: end_exports

#endif  // PURLIN_PURLIN_H_
