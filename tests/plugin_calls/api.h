// The functions of a PJRT plugin, called as a C program calls them: arguments in a struct that says its size, an error
// or null as the answer.
#ifndef PURLIN_TESTS_PLUGIN_CALLS_API_H_
#define PURLIN_TESTS_PLUGIN_CALLS_API_H_

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "purlin/adapters/pjrt_abi.h"

inline const PurlinPjrtApi* api = nullptr;

/// Where a thread is, to be said of a failure.
struct Place {
  std::uint64_t seed = 0, thread = 0, call = 0;
};
inline thread_local Place here;

[[noreturn]] inline void Fail(const std::string& what) {
  std::fprintf(stderr, "plugin_calls: seed %" PRIu64 ", thread %" PRIu64 ", call %" PRIu64 ": %s\n", here.seed,
               here.thread, here.call, what.c_str());
  std::abort();
}

struct Outcome {
  PurlinPjrtErrorCode code = kPurlinPjrtErrorCode_OK;
  std::string message;
  bool ok() const { return code == kPurlinPjrtErrorCode_OK; }
};

/// What an error says; it ends here. Null is no error.
inline Outcome Take(PurlinPjrtError* error) {
  Outcome outcome;
  if (error == nullptr) return outcome;
  PurlinPjrtErrorGetCodeArgs code{};
  code.struct_size = kPurlinPjrtErrorGetCodeArgsSize;
  code.error = error;
  if (api->error_get_code(&code) != nullptr) Fail("an error has no code");
  PurlinPjrtErrorMessageArgs message{};
  message.struct_size = kPurlinPjrtErrorMessageArgsSize;
  message.error = error;
  api->error_message(&message);
  outcome.code = code.code;
  outcome.message.assign(message.message, message.message_size);
  PurlinPjrtErrorDestroyArgs destroy{};
  destroy.struct_size = kPurlinPjrtErrorDestroyArgsSize;
  destroy.error = error;
  api->error_destroy(&destroy);
  if (outcome.ok()) Fail("an error has the code OK");
  return outcome;
}

// PURLIN_CALL(name, Type, function, statements): `name` has the arguments of `function` after the call, and
// name_outcome how it ended. The statements set its fields.
#define PURLIN_CALL(name, Type, function, ...)    \
  PurlinPjrt##Type##Args name{};                  \
  name.struct_size = kPurlinPjrt##Type##ArgsSize; \
  __VA_ARGS__;                                    \
  [[maybe_unused]] const Outcome name##_outcome = Take(api->function(&name))

/// As PURLIN_CALL, where the call must succeed.
#define PURLIN_MUST(name, Type, function, ...)    \
  PURLIN_CALL(name, Type, function, __VA_ARGS__); \
  if (!name##_outcome.ok()) Fail(#function ": " + name##_outcome.message)

inline void EndEvent(PurlinPjrtEvent* event) { PURLIN_MUST(end, EventDestroy, event_destroy, end.event = event); }

inline bool IsReady(PurlinPjrtEvent* event) {
  PURLIN_MUST(asked, EventIsReady, event_is_ready, asked.event = event);
  return asked.is_ready;
}

/// Waits for an event, which ends here.
inline Outcome Await(PurlinPjrtEvent* event) {
  PURLIN_CALL(await, EventAwait, event_await, await.event = event);
  PURLIN_CALL(again, EventError, event_error, again.event = event);
  if (again_outcome.code != await_outcome.code) Fail("an event has two outcomes");
  EndEvent(event);
  return await_outcome;
}

#endif  // PURLIN_TESTS_PLUGIN_CALLS_API_H_
