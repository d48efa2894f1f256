// Purlin: custom calls of XLA:CPU's executables. Handlers that are compiled against XLA's own FFI header, such as
// jaxlib's LAPACK or a user's, run in executables that Purlin loads (xla_cpu.h).
//
// ```cpp
// #include "purlin/xla_cpu.h"
//
// // `scale` as XLA_FFI_DEFINE_HANDLER_SYMBOL defines it, and `bytes` of an executable that calls it.
// purlin::StatusOr<purlin::Executable> LoadWithHandler(std::string_view bytes, purlin::XlaFfiHandler* scale) {
//   purlin::XlaFfiHandlers handlers;
//   const purlin::Status registered = handlers.Register("scale", scale);
//   if (!registered.ok()) return registered;
//   purlin::LoadXlaCpuOptions options;
//   options.trust_code = true;
//   options.handlers = &handlers;
//   return purlin::LoadXlaCpu(bytes, options);
// }
// ```
//
// This header needs nothing of XLA's: it declares the names that XLA's C header defines. Purlin has version 0.3 of that
// header. A handler that was compiled with an earlier minor version runs, too. docs/programs.md says what a handler can
// ask for.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_XLA_FFI_HOST_H_
#define PURLIN_XLA_FFI_HOST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "purlin/export.h"
#include "purlin/internal/handle.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

// XLA's, of xla/ffi/api/c_api.h.
struct XLA_FFI_Api;
struct XLA_FFI_CallFrame;
struct XLA_FFI_Error;

namespace purlin {
inline namespace v0 {
namespace internal {
struct ExecuteContextRep;
struct XlaFfiHandlersRep;
}  // namespace internal

/// A function that is a handler: XLA's type XLA_FFI_Handler.
using XlaFfiHandler = XLA_FFI_Error*(XLA_FFI_CallFrame*);

/// The functions of one handler, by stage, as XLA_FFI_Handler_Bundle has them. Only `execute` must be there.
struct XlaFfiBundle {
  /// Called once for each custom call of an executable, when it is loaded. It may set a state, which lives as long as
  /// the executable.
  XlaFfiHandler* instantiate = nullptr;
  /// Called in each run, before `initialize`. It may set a state, which lives until `execute` is over.
  XlaFfiHandler* prepare = nullptr;
  /// Called in each run, before `execute`. It may set a state, which lives until `execute` is over.
  XlaFfiHandler* initialize = nullptr;
  /// Does the work.
  XlaFfiHandler* execute = nullptr;
};

/// Handlers by the names of their custom call targets, for LoadXlaCpuOptions::handlers. Move-only, one word; many
/// readers or one writer.
class XlaFfiHandlers final : public internal::Handle<XlaFfiHandlers, internal::XlaFfiHandlersRep> {
 public:
  /// No handlers.
  PURLIN_API XlaFfiHandlers();
  /// Leaves `other` empty, see purlin.h.
  XlaFfiHandlers(XlaFfiHandlers&& other) noexcept = default;
  /// As if destroying what was here.
  XlaFfiHandlers& operator=(XlaFfiHandlers&& other) noexcept = default;
  /// Executables keep the handlers that they name.
  PURLIN_API ~XlaFfiHandlers();

  /// Adds a handler under the name of its target. Each of its functions is asked for its version, on this thread.
  /// `owner` (null: none is needed) keeps the code, such as a library that dlopen() opened; it is dropped on any
  /// thread, after the last executable that names the handler, and the states of the handler, are gone.
  ///
  /// The caller promises: the functions are handlers as XLA's header defines them, for the platform "cpu". Any thread
  /// may call them, several at once. They access only what their call frames give them, until they return or complete
  /// the future that they return, and throw nothing. A function that blocks until a task that it scheduled has run,
  /// instead of returning a future, needs a second thread of the client's runner.
  ///
  /// After an error nothing has changed. kAlreadyExists: the name has a handler. kInvalidArgument: there is no
  /// `execute`, the name is not UTF-8, or a function does not answer the question for its version. kUnimplemented: a
  /// function was compiled for another major version of XLA's FFI, or for a later minor one. Any other code: the error
  /// of the function, such as kFailedPrecondition if the type of its state is not registered.
  PURLIN_API Status Register(std::string_view name, const XlaFfiBundle& bundle,
                             std::shared_ptr<const void> owner = nullptr);
  /// As above; a handler of one stage.
  PURLIN_API Status Register(std::string_view name, XlaFfiHandler* execute,
                             std::shared_ptr<const void> owner = nullptr);

  /// The names that have a handler, in their order.
  [[nodiscard]] PURLIN_API std::vector<std::string> names() const;

 private:
  using Handle::Handle;
};

/// The table of functions that handlers are given: for code that registers types before it is called, as
/// XLA_FFI_REGISTER_TYPE does. It lives as long as the process. Any thread.
[[nodiscard]] PURLIN_API const XLA_FFI_Api* XlaFfiHostApi() noexcept;

/// Values that a run gives to handlers, by the ids of their types: `ffi::UserData<T>` of XLA's header. For
/// ExecuteOptions::context. Move-only, one word; many readers or one writer.
class ExecuteContext final : public internal::Handle<ExecuteContext, internal::ExecuteContextRep> {
 public:
  /// Without values.
  PURLIN_API ExecuteContext();
  /// Leaves `other` empty, see purlin.h.
  ExecuteContext(ExecuteContext&& other) noexcept = default;
  /// As if destroying what was here.
  ExecuteContext& operator=(ExecuteContext&& other) noexcept = default;
  /// Runs in flight keep what they were started with.
  PURLIN_API ~ExecuteContext();

  /// Gives `value` to handlers that ask for a value of that type, whose id XLA_FFI_REGISTER_TYPE has written. An
  /// earlier value of the type is replaced; runs in flight keep it. `value` is dropped on any thread, after the last
  /// run that may use it. The caller promises that it is what handlers expect of the type, and that any thread may use
  /// it. kInvalidArgument: `type_id` is not positive, or `value` is null.
  PURLIN_API Status Insert(std::int64_t type_id, std::shared_ptr<void> value);

 private:
  using Handle::Handle;
};

static_assert(sizeof(XlaFfiBundle) == 32 && sizeof(XlaFfiHandlers) == sizeof(void*) &&
                  sizeof(ExecuteContext) == sizeof(void*),
              "XLA_FFI_Handler_Bundle; handles are one word");

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_XLA_FFI_HOST_H_
