/* Purlin: the layouts of the objects that XLA's plugins pass to each other, in C.
 *
 * Facts about XLA's headers xla/pjrt/c/pjrt_c_api.h, pjrt_c_api_device_event.h and pjrt_c_api_raw_buffer_extension.h as
 * of August 2026 (PJRT 0.114 and 0.115). The names are ours, so that a file may include both; sizes and offsets are the
 * same. XLA calls the last two experimental and may change them. What each slot of Purlin's tables does, and
 * which side owns what, is said here; purlin/adapters/pjrt_tables.h makes and takes such objects.
 *
 * Every table begins with its size in bytes. Purlin's own are whole: no slot is null. Of a foreign one, Purlin reads
 * no more than that size, and needs only the slots that are marked "needed". Functions may be called from every thread.
 *
 * Words: "owned" means that the receiver has a reference, or the object, to give up; "lent" that it has not. */
#ifndef PURLIN_ADAPTERS_PJRT_ABI_H_
#define PURLIN_ADAPTERS_PJRT_ABI_H_

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NOLINTBEGIN(modernize-use-using): C has no other. */
#ifdef __cplusplus
extern "C" {
#endif

/* Errors (PJRT_Error, since 0.112). Null is OK. ------------------------------------------------------------------- */

typedef struct PurlinPjrtErrorTable PurlinPjrtErrorTable;

/** PJRT_Error: what can be seen of it. */
typedef struct PurlinPjrtError {
  const PurlinPjrtErrorTable* table; /**< Its functions. */
} PurlinPjrtError;

/** Is shown a payload; the bytes are lent for the call. */
typedef void (*PurlinPjrtPayloadVisitor)(const char* key, size_t key_size, const char* value, size_t value_size,
                                         void* user_arg);

/** PJRT_Error_FunctionTable. */
struct PurlinPjrtErrorTable {
  size_t struct_size; /**< Bytes of this struct. */
  /** sizeof(PurlinPjrtError). */
  size_t instance_size;
  void* extension_start; /**< Extensions; null in Purlin's. */
  /** Ends an owned error; null is ignored. */
  void (*destroy)(PurlinPjrtError* error);
  /** UTF-8 without a NUL, lent for the life of the error. */
  void (*message)(const PurlinPjrtError* error, const char** message, size_t* message_size);
  /** absl's number, 1 to 16. */
  int (*get_code)(const PurlinPjrtError* error);
  /** Calls `visitor` for each payload, here and now. */
  void (*for_each_payload)(const PurlinPjrtError* error, PurlinPjrtPayloadVisitor visitor, void* user_arg);
};

/* Events (PJRT_DeviceEvent) --------------------------------------------------------------------------------------- */

typedef struct PurlinPjrtDeviceEventTable PurlinPjrtDeviceEventTable;

/** PJRT_DeviceEvent. A null `event` is no event; Purlin takes it for one that has happened, and never gives one. */
typedef struct PurlinPjrtDeviceEvent {
  const PurlinPjrtDeviceEventTable* table; /**< Its functions. */
  void* event;                             /**< What the functions take. */
} PurlinPjrtDeviceEvent;

/** PJRT_DeviceEvent_State. */
enum { kPurlinPjrtUnavailable = 0, kPurlinPjrtReady = 1, kPurlinPjrtError = 2 };

/** PJRT_DeviceEvent_FunctionTable. */
struct PurlinPjrtDeviceEventTable {
  size_t struct_size;    /**< Bytes of this struct. */
  void* extension_start; /**< Extensions; null in Purlin's. */
  /** One more owned reference. */
  void (*inc_ref)(void* event);
  /** Ends an owned reference. Needed. */
  void (*dec_ref)(void* event);
  /** Calls `callback(user_arg)` once when the event has happened or failed: on the thread that completes it, or here
   * and now. Purlin's always completes. Needed. */
  void (*and_then)(void* event, void (*callback)(void* user_arg), void* user_arg);
  /** 1 and the error, whose message is lent for the life of the event, if it has failed; else 0, also while pending. */
  int (*get_error_if_present)(void* event, int* code, const char** message, size_t* message_size);
  /** The table of a type that `event` also is. Null in Purlin's; where it leads to Purlin's table, `event` is taken for
   * one of Purlin's. */
  const PurlinPjrtDeviceEventTable* parent;
  /** kPurlinPjrt... */
  int (*get_state)(void* event);
  /** The platform's handle of the stream that defines the event and its place there, or 0. */
  intptr_t (*get_definition_stream)(void* event, uint64_t* sequence_number);
};

/** PJRT_DeviceEventVector: the receiver moves the owned elements out and leaves it zeroed. */
typedef struct PurlinPjrtDeviceEventVector {
  PurlinPjrtDeviceEvent* data; /**< The elements. */
  size_t size;                 /**< How many there are. */
  size_t capacity;             /**< How many have room. */
  /** Frees the array, not what its elements own. */
  void (*destroy)(PurlinPjrtDeviceEvent* data);
} PurlinPjrtDeviceEventVector;

/* Promises (PJRT_DeviceEventPromise) ------------------------------------------------------------------------------ */

typedef struct PurlinPjrtDeviceEventPromiseTable PurlinPjrtDeviceEventPromiseTable;

/** PJRT_DeviceEventPromise: what can be seen of it. */
typedef struct PurlinPjrtDeviceEventPromise {
  const PurlinPjrtDeviceEventPromiseTable* table; /**< Its functions. */
} PurlinPjrtDeviceEventPromise;

/** PJRT_DeviceEventPromise_FunctionTable. The first set decides; Purlin's ignores later ones but for what they own. */
struct PurlinPjrtDeviceEventPromiseTable {
  size_t struct_size; /**< Bytes of this struct. */
  /** sizeof(PurlinPjrtDeviceEventPromise). */
  size_t instance_size;
  void* extension_start; /**< Extensions; null in Purlin's. */
  /** One more owned reference. */
  void (*inc_ref)(PurlinPjrtDeviceEventPromise* promise);
  /** Ends an owned reference. The last fails Purlin's event with kInternal, if it is not set. Needed. */
  void (*dec_ref)(PurlinPjrtDeviceEventPromise* promise);
  /** The event, lent for the life of the promise. */
  PurlinPjrtDeviceEvent (*event)(PurlinPjrtDeviceEventPromise* promise);
  /** Makes the event follow `event`, which is given up. */
  void (*set)(PurlinPjrtDeviceEventPromise* promise, PurlinPjrtDeviceEvent event);
  /** Makes it fail with `error`, which is given up. Needed. */
  void (*set_error)(PurlinPjrtDeviceEventPromise* promise, PurlinPjrtError* error);
  /** Makes it happen. Needed. */
  void (*set_ready)(PurlinPjrtDeviceEventPromise* promise);
};

/* Raw buffers (PJRT_RawBuffer) ------------------------------------------------------------------------------------ */

typedef struct PurlinPjrtRawBufferTable PurlinPjrtRawBufferTable;

/** PJRT_RawBuffer: what can be seen of it. */
typedef struct PurlinPjrtRawBuffer {
  const PurlinPjrtRawBufferTable* table; /**< Its functions. */
} PurlinPjrtRawBuffer;

/** PJRT_RawBuffer_FunctionTable. Errors that are returned are owned. Offsets and sizes are bytes; where a range is not
 * within the buffer, or negative, there is an error, in what is returned or in the event. `dependencies` may be null;
 * its elements are moved out whatever is returned. Null buffers and places are errors, sizes and pointers of them 0. */
struct PurlinPjrtRawBufferTable {
  size_t struct_size; /**< Bytes of this struct. */
  /** sizeof(PurlinPjrtRawBuffer). */
  size_t instance_size;
  void* extension_start; /**< Extensions; null in Purlin's. */
  /** One more owned reference. Needed of a destination. */
  void (*inc_ref)(PurlinPjrtRawBuffer* buffer);
  /** Ends an owned reference. The memory stays until copies in flight are done. Needed of a destination. */
  void (*dec_ref)(PurlinPjrtRawBuffer* buffer);
  size_t (*get_on_device_size_in_bytes)(const PurlinPjrtRawBuffer* buffer); /**< Bytes. */
  /** PJRT_Memory*, lent: what ToPjrt was given. */
  void* (*get_memory_space)(const PurlinPjrtRawBuffer* buffer);
  /** Null if the host does not reach the memory, or it is not there yet. */
  void* (*get_host_pointer)(const PurlinPjrtRawBuffer* buffer);
  /** `source` is lent until the event, which is owned. Needed of a destination. */
  PurlinPjrtError* (*copy_raw_host_to_device_and_return_event)(PurlinPjrtRawBuffer* buffer, const void* source,
                                                               int64_t offset, int64_t transfer_size,
                                                               PurlinPjrtDeviceEventVector* dependencies,
                                                               PurlinPjrtDeviceEvent* event);
  /** `destination` is lent until the event, which is owned. */
  PurlinPjrtError* (*copy_raw_device_to_host_and_return_event)(PurlinPjrtRawBuffer* buffer, void* destination,
                                                               int64_t offset, int64_t transfer_size,
                                                               PurlinPjrtDeviceEventVector* dependencies,
                                                               PurlinPjrtDeviceEvent* event);
  /** The device's address; null while the memory is not there. Purlin's does not wait for it, as XLA's does. */
  void* (*opaque_device_memory_data_pointer)(const PurlinPjrtRawBuffer* buffer);
  /** When the memory is there; owned. */
  PurlinPjrtError* (*make_allocation_ready_event)(PurlinPjrtRawBuffer* buffer, PurlinPjrtDeviceEvent* event);
  /** The same, lent for the life of the buffer. */
  PurlinPjrtError* (*get_raw_buffer_async_value)(PurlinPjrtRawBuffer* buffer, PurlinPjrtDeviceEvent* event);
  bool (*is_mutable)(const PurlinPjrtRawBuffer* buffer); /**< Whether it may be written. */
  /** Shares the memory; owned. Null on an error. */
  PurlinPjrtError* (*slice)(PurlinPjrtRawBuffer* buffer, int64_t offset, int64_t slice_size,
                            PurlinPjrtRawBuffer** slice);
  /** Copies all of `source` to the beginning of `destination` when the dependencies have happened. Both buffers are
   * lent for the call. `on_allocated` is called once, before the destination is touched, with an owned error or null.
   * Both promises are owned, and set when all is done, by set_ready or set_error; either may be null. If a dependency
   * fails, nothing is copied, and all three get its error. A destination may be of another table than the source.
   */
  void (*schedule_copy_to)(PurlinPjrtRawBuffer* source, PurlinPjrtDeviceEventVector* dependencies,
                           PurlinPjrtRawBuffer* destination, PurlinPjrtDeviceEventPromise* definition_event_promise,
                           PurlinPjrtDeviceEventPromise* source_usage_event_promise,
                           void (*on_allocated)(PurlinPjrtError* error, void* user_data), void* user_data);
};

/* The functions of a plugin (PJRT_Api), as far as Purlin calls them -------------------------------------------------
 */

/** PJRT_Error_Destroy_Args, PJRT_Event_Destroy_Args, PJRT_Event_Error_Args: the error or event that it is about. */
typedef struct PurlinPjrtArgs {
  size_t struct_size;    /**< Bytes of this struct. */
  void* extension_start; /**< Extensions; null in Purlin's. */
  void* subject;         /**< In: the error or event. */
} PurlinPjrtArgs;

/** PJRT_Error_Message_Args. */
typedef struct PurlinPjrtMessageArgs {
  size_t struct_size;    /**< Bytes of this struct. */
  void* extension_start; /**< Extensions; null in Purlin's. */
  const void* error;     /**< In: the error. */
  const char* message;   /**< Out: lent for its life. */
  size_t message_size;   /**< Out: bytes of that. */
} PurlinPjrtMessageArgs;

/** PJRT_Error_GetCode_Args. */
typedef struct PurlinPjrtGetCodeArgs {
  size_t struct_size;    /**< Bytes of this struct. */
  void* extension_start; /**< Extensions; null in Purlin's. */
  const void* error;     /**< In: the error. */
  int code;              /**< Out: absl's number. */
} PurlinPjrtGetCodeArgs;

/** PJRT_Error_ForEachPayload_Args. */
typedef struct PurlinPjrtForEachPayloadArgs {
  size_t struct_size;               /**< Bytes of this struct. */
  void* extension_start;            /**< Extensions; null in Purlin's. */
  const void* error;                /**< In: the error. */
  PurlinPjrtPayloadVisitor visitor; /**< In: called for each. */
  void* user_arg;                   /**< In: what it is given. */
} PurlinPjrtForEachPayloadArgs;

/** PJRT_Event_IsReady_Args. */
typedef struct PurlinPjrtIsReadyArgs {
  size_t struct_size;    /**< Bytes of this struct. */
  void* extension_start; /**< Extensions; null in Purlin's. */
  void* event;           /**< In: the event. */
  bool is_ready;         /**< Out. */
} PurlinPjrtIsReadyArgs;

/** PJRT_Event_OnReady_Args: the callback owns the error. */
typedef struct PurlinPjrtOnReadyArgs {
  size_t struct_size;                            /**< Bytes of this struct. */
  void* extension_start;                         /**< Extensions; null in Purlin's. */
  void* event;                                   /**< In: the event. */
  void (*callback)(void* error, void* user_arg); /**< In: called once. */
  void* user_arg;                                /**< In: what it is given. */
} PurlinPjrtOnReadyArgs;

/** PJRT_Api. Functions return a PJRT_Error*, owned, or null. */
typedef struct PurlinPjrtApi {
  size_t struct_size;    /**< Bytes of this struct. */
  void* extension_start; /**< Extensions; null in Purlin's. */
  /** PJRT_Api_Version, 24 bytes. */
  size_t version_struct_size;
  void* version_extension_start; /**< Part of that. */
  int major_version;             /**< Part of that. */
  int minor_version;             /**< Part of that. */
  /** Needed. */
  void (*error_destroy)(PurlinPjrtArgs* args);
  void (*error_message)(PurlinPjrtMessageArgs* args);   /**< Needed. */
  void* (*error_get_code)(PurlinPjrtGetCodeArgs* args); /**< Needed. */
  void* plugin_functions[2];                            /**< Not called. */
  /** Needed. */
  void* (*event_destroy)(PurlinPjrtArgs* args);
  void* (*event_is_ready)(PurlinPjrtIsReadyArgs* args); /**< Needed. */
  void* (*event_error)(PurlinPjrtArgs* args);           /**< Needed. */
  void* event_await;                                    /**< Not called. */
  /** Needed. */
  void* (*event_on_ready)(PurlinPjrtOnReadyArgs* args);
  /** From PJRT_Client_Create to PJRT_Buffer_Bitcast. */
  void* other_functions[122];
  /** Not in older plugins. */
  void* (*error_for_each_payload)(PurlinPjrtForEachPayloadArgs* args);
} PurlinPjrtApi;

static_assert(sizeof(void*) == 8 && sizeof(size_t) == 8 && sizeof(int) == 4,
              "these are the layouts of 64-bit platforms");
static_assert(sizeof(PurlinPjrtError) == 8, "layout");
static_assert(offsetof(PurlinPjrtError, table) == 0, "layout");
static_assert(sizeof(PurlinPjrtErrorTable) == 56, "layout");
static_assert(offsetof(PurlinPjrtErrorTable, struct_size) == 0, "layout");
static_assert(offsetof(PurlinPjrtErrorTable, instance_size) == 8, "layout");
static_assert(offsetof(PurlinPjrtErrorTable, extension_start) == 16, "layout");
static_assert(offsetof(PurlinPjrtErrorTable, destroy) == 24, "layout");
static_assert(offsetof(PurlinPjrtErrorTable, message) == 32, "layout");
static_assert(offsetof(PurlinPjrtErrorTable, get_code) == 40, "layout");
static_assert(offsetof(PurlinPjrtErrorTable, for_each_payload) == 48, "layout");
static_assert(sizeof(PurlinPjrtDeviceEvent) == 16, "layout");
static_assert(offsetof(PurlinPjrtDeviceEvent, table) == 0, "layout");
static_assert(offsetof(PurlinPjrtDeviceEvent, event) == 8, "layout");
static_assert(sizeof(PurlinPjrtDeviceEventTable) == 72, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventTable, struct_size) == 0, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventTable, extension_start) == 8, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventTable, inc_ref) == 16, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventTable, dec_ref) == 24, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventTable, and_then) == 32, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventTable, get_error_if_present) == 40, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventTable, parent) == 48, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventTable, get_state) == 56, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventTable, get_definition_stream) == 64, "layout");
static_assert(sizeof(PurlinPjrtDeviceEventVector) == 32, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventVector, data) == 0, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventVector, size) == 8, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventVector, capacity) == 16, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventVector, destroy) == 24, "layout");
static_assert(sizeof(PurlinPjrtDeviceEventPromise) == 8, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventPromise, table) == 0, "layout");
static_assert(sizeof(PurlinPjrtDeviceEventPromiseTable) == 72, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventPromiseTable, struct_size) == 0, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventPromiseTable, instance_size) == 8, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventPromiseTable, extension_start) == 16, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventPromiseTable, inc_ref) == 24, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventPromiseTable, dec_ref) == 32, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventPromiseTable, event) == 40, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventPromiseTable, set) == 48, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventPromiseTable, set_error) == 56, "layout");
static_assert(offsetof(PurlinPjrtDeviceEventPromiseTable, set_ready) == 64, "layout");
static_assert(sizeof(PurlinPjrtRawBuffer) == 8, "layout");
static_assert(offsetof(PurlinPjrtRawBuffer, table) == 0, "layout");
static_assert(sizeof(PurlinPjrtRawBufferTable) == 128, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, struct_size) == 0, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, instance_size) == 8, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, extension_start) == 16, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, inc_ref) == 24, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, dec_ref) == 32, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, get_on_device_size_in_bytes) == 40, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, get_memory_space) == 48, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, get_host_pointer) == 56, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, copy_raw_host_to_device_and_return_event) == 64, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, copy_raw_device_to_host_and_return_event) == 72, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, opaque_device_memory_data_pointer) == 80, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, make_allocation_ready_event) == 88, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, get_raw_buffer_async_value) == 96, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, is_mutable) == 104, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, slice) == 112, "layout");
static_assert(offsetof(PurlinPjrtRawBufferTable, schedule_copy_to) == 120, "layout");
static_assert(sizeof(PurlinPjrtArgs) == 24, "layout");
static_assert(offsetof(PurlinPjrtArgs, struct_size) == 0, "layout");
static_assert(offsetof(PurlinPjrtArgs, extension_start) == 8, "layout");
static_assert(offsetof(PurlinPjrtArgs, subject) == 16, "layout");
static_assert(sizeof(PurlinPjrtMessageArgs) == 40, "layout");
static_assert(offsetof(PurlinPjrtMessageArgs, struct_size) == 0, "layout");
static_assert(offsetof(PurlinPjrtMessageArgs, extension_start) == 8, "layout");
static_assert(offsetof(PurlinPjrtMessageArgs, error) == 16, "layout");
static_assert(offsetof(PurlinPjrtMessageArgs, message) == 24, "layout");
static_assert(offsetof(PurlinPjrtMessageArgs, message_size) == 32, "layout");
static_assert(sizeof(PurlinPjrtGetCodeArgs) == 32, "layout");
static_assert(offsetof(PurlinPjrtGetCodeArgs, struct_size) == 0, "layout");
static_assert(offsetof(PurlinPjrtGetCodeArgs, extension_start) == 8, "layout");
static_assert(offsetof(PurlinPjrtGetCodeArgs, error) == 16, "layout");
static_assert(offsetof(PurlinPjrtGetCodeArgs, code) == 24, "layout");
static_assert(sizeof(PurlinPjrtForEachPayloadArgs) == 40, "layout");
static_assert(offsetof(PurlinPjrtForEachPayloadArgs, struct_size) == 0, "layout");
static_assert(offsetof(PurlinPjrtForEachPayloadArgs, extension_start) == 8, "layout");
static_assert(offsetof(PurlinPjrtForEachPayloadArgs, error) == 16, "layout");
static_assert(offsetof(PurlinPjrtForEachPayloadArgs, visitor) == 24, "layout");
static_assert(offsetof(PurlinPjrtForEachPayloadArgs, user_arg) == 32, "layout");
static_assert(sizeof(PurlinPjrtIsReadyArgs) == 32, "layout");
static_assert(offsetof(PurlinPjrtIsReadyArgs, struct_size) == 0, "layout");
static_assert(offsetof(PurlinPjrtIsReadyArgs, extension_start) == 8, "layout");
static_assert(offsetof(PurlinPjrtIsReadyArgs, event) == 16, "layout");
static_assert(offsetof(PurlinPjrtIsReadyArgs, is_ready) == 24, "layout");
static_assert(sizeof(PurlinPjrtOnReadyArgs) == 40, "layout");
static_assert(offsetof(PurlinPjrtOnReadyArgs, struct_size) == 0, "layout");
static_assert(offsetof(PurlinPjrtOnReadyArgs, extension_start) == 8, "layout");
static_assert(offsetof(PurlinPjrtOnReadyArgs, event) == 16, "layout");
static_assert(offsetof(PurlinPjrtOnReadyArgs, callback) == 24, "layout");
static_assert(offsetof(PurlinPjrtOnReadyArgs, user_arg) == 32, "layout");
static_assert(sizeof(PurlinPjrtApi) == 1104, "layout");
static_assert(offsetof(PurlinPjrtApi, struct_size) == 0, "layout");
static_assert(offsetof(PurlinPjrtApi, extension_start) == 8, "layout");
static_assert(offsetof(PurlinPjrtApi, version_struct_size) == 16, "layout");
static_assert(offsetof(PurlinPjrtApi, version_extension_start) == 24, "layout");
static_assert(offsetof(PurlinPjrtApi, major_version) == 32, "layout");
static_assert(offsetof(PurlinPjrtApi, minor_version) == 36, "layout");
static_assert(offsetof(PurlinPjrtApi, error_destroy) == 40, "layout");
static_assert(offsetof(PurlinPjrtApi, error_message) == 48, "layout");
static_assert(offsetof(PurlinPjrtApi, error_get_code) == 56, "layout");
static_assert(offsetof(PurlinPjrtApi, plugin_functions) == 64, "layout");
static_assert(offsetof(PurlinPjrtApi, event_destroy) == 80, "layout");
static_assert(offsetof(PurlinPjrtApi, event_is_ready) == 88, "layout");
static_assert(offsetof(PurlinPjrtApi, event_error) == 96, "layout");
static_assert(offsetof(PurlinPjrtApi, event_await) == 104, "layout");
static_assert(offsetof(PurlinPjrtApi, event_on_ready) == 112, "layout");
static_assert(offsetof(PurlinPjrtApi, other_functions) == 120, "layout");
static_assert(offsetof(PurlinPjrtApi, error_for_each_payload) == 1096, "layout");

#ifdef __cplusplus
} /* extern "C" */
#endif
/* NOLINTEND(modernize-use-using) */

#endif /* PURLIN_ADAPTERS_PJRT_ABI_H_ */
