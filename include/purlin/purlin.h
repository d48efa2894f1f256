// Purlin: everything at once. Smaller headers compile faster.
#ifndef PURLIN_PURLIN_H_
#define PURLIN_PURLIN_H_

// IWYU pragma: begin_exports
#include "purlin/async_value.h"
#include "purlin/async_value_cast.h"
#include "purlin/async_value_storage.h"
#include "purlin/async_value_verbs.h"
#include "purlin/buffer.h"
#include "purlin/cancel.h"
#include "purlin/client.h"
#include "purlin/coroutine.h"
#include "purlin/count_down.h"
#include "purlin/device.h"
#include "purlin/dtype.h"
#include "purlin/elastic_pool.h"
#include "purlin/error_policy.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/inline_executor.h"
#include "purlin/join_events.h"
#include "purlin/join_futures.h"
#include "purlin/label.h"
#include "purlin/promise.h"
#include "purlin/raw_buffer.h"
#include "purlin/run_when_ready.h"
#include "purlin/semaphore.h"
#include "purlin/serial_queue.h"
#include "purlin/source_location.h"
#include "purlin/span.h"
#include "purlin/stall.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/stream_event_map.h"
#include "purlin/task_options.h"
#include "purlin/timer.h"
#include "purlin/trace.h"
#include "purlin/user_context.h"
#include "purlin/version.h"
// IWYU pragma: end_exports

#endif  // PURLIN_PURLIN_H_
