// Purlin: executables that stock XLA compiled for CPUs, run without XLA.
//
// ```cpp
// // `bytes` as jaxlib's serialize() or PJRT_Executable_Serialize gave them, by a channel that the caller trusts.
// purlin::StatusOr<purlin::LoadedExecutable> Load(std::string_view bytes, const purlin::Device& device) {
//   purlin::LoadXlaCpuOptions options;
//   options.trust_code = true;
//   purlin::StatusOr<purlin::Executable> executable = purlin::LoadXlaCpu(bytes, options);
//   if (!executable.ok()) return executable.status();  // kUnimplemented: run it with XLA instead
//   return purlin::LoadedExecutable::Load(*executable, {device});
// }
// ```
//
// The bytes are untrusted: every number in them is checked before it is used. Their machine code cannot be checked, and
// runs with all rights of the process; so the caller must vouch for it. docs/programs.md says what can run,
// SECURITY.md what the caller's word means. On x86-64 alone; elsewhere every call returns kUnimplemented.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_XLA_CPU_H_
#define PURLIN_XLA_CPU_H_

#include <cstddef>
#include <string_view>

#include "purlin/executable.h"
#include "purlin/export.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"
#include "purlin/xla_ffi_host.h"

namespace purlin {
inline namespace v0 {

/// How an executable of XLA:CPU is loaded.
struct LoadXlaCpuOptions {
  /// For versioning: leave it alone.
  std::size_t struct_size = sizeof(LoadXlaCpuOptions);
  /// The caller's promise that the executable's machine code may run in this process, with all its rights: it comes
  /// from a compiler that the caller trusts, through a channel on which no other party could change it. Without the
  /// promise nothing is loaded.
  bool trust_code = false;
  /// Whether to register the code's unwind tables, so that a backtrace from inside a kernel is complete. The unwinder
  /// then searches them at every unwinding in the process.
  bool unwind_tables = false;
  /// Whether to append the addresses, sizes and names of the code's functions to `/tmp/perf-PID.map`, where PID is the
  /// number of this process: `perf report` shows their names then. The lines stay when the code is unmapped.
  bool perf_map = false;
  /// The handlers of the executable's custom calls; null: none. Read during the call.
  const XlaFfiHandlers* handlers = nullptr;
};

/// The executable of `bytes`, which are not needed afterwards. Loading runs none of its code, and blocks for a few
/// microseconds per kernel. The handlers of its custom calls are asked to instantiate, if they have that stage. The
/// code stays mapped as long as the executable, what is loaded of it, or a run of it lives.
///
/// kFailedPrecondition: `options.trust_code` is false. kDataLoss: the bytes are no such executable, or a damaged one;
/// an error of parsing names the offset. kUnimplemented: it is sound, but a part of it cannot run here; the message
/// lists up to 20 reasons, such as a custom call without a handler, and the number of the others. Any code: the error
/// of a handler that cannot instantiate. Up to here nothing was mapped. kResourceExhausted: no memory for the code.
/// kPermissionDenied: the system forbids executable pages. kPermissionDenied, kUnavailable: the file of `perf_map` is
/// another user's, or cannot be written. kInvalidArgument: a struct_size that no version has. Any thread may call it.
[[nodiscard]] PURLIN_API StatusOr<Executable> LoadXlaCpu(std::string_view bytes, const LoadXlaCpuOptions& options = {});

/// Whether LoadXlaCpu without handlers could load these bytes, without mapping code, and without trust in it: kDataLoss
/// or kUnimplemented, as there, with the same text. Any thread may call it; never blocks.
[[nodiscard]] PURLIN_API Status CheckXlaCpu(std::string_view bytes);

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_XLA_CPU_H_
