// Purlin: traces of what ran when, as a file for chrome://tracing or ui.perfetto.dev.
//
// ```cpp
// purlin::Status status = purlin::StartTrace("trace.json");
// if (!status.ok()) return status;
// {
//   const purlin::TraceSpan span("load");  // until the end of this block
// }
// return purlin::StopTrace();
// ```
//
// Purlin opens spans for schedule, run, copy and wait. They cost one relaxed load each while no trace is recorded. On
// the platform "cuda", each launch and copy of a GPU is a span on a lane of its stream, too: by the GPU's own times,
// with kernels, bytes and label. What is under way when the recording ends is left out.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_TRACE_H_
#define PURLIN_TRACE_H_

#include <cstdint>
#include <string_view>

#include "purlin/export.h"
#include "purlin/label.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// Begins to record the spans of the whole process in memory; StopTrace() writes it to `path` in Chrome's JSON format.
/// This call checks that the file can be written: kInvalidArgument (an empty or overlong path), kNotFound,
/// kPermissionDenied, kResourceExhausted, kFailedPrecondition (a directory, a pipe, a socket, a device, ...) or
/// kUnknown, naming the path and the system's reason. A relative path is resolved in the current working folder now.
/// kFailedPrecondition also: a trace is being recorded or still being written, or the host program (in Rust) has
/// installed a `tracing` subscriber of its own; the first call installs Purlin's, for good.
PURLIN_API Status StartTrace(std::string_view path);

/// Ends the recording and writes the file, as purlin/file_options.h says of writing: as a whole, so a failure leaves
/// the old file. kFailedPrecondition: no trace is being recorded, or the path does not lead to a regular file any more.
/// Otherwise the system's reason, naming the path. The recording is lost if this fails. Blocks for the write, but for
/// no other program.
PURLIN_API Status StopTrace();

/// A span of the user's own, from construction to destruction, on this thread; `name` as it appears in the trace.
class [[nodiscard]] TraceSpan final {
 public:
  /// Begins the span, if a trace is being recorded.
  explicit TraceSpan(Label name) noexcept : id_(Begin(name.c_str())) {}
  ~TraceSpan() {
    if (id_ != 0) End(id_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  PURLIN_API static std::uint64_t Begin(const char* name) noexcept;
  PURLIN_API static void End(std::uint64_t id) noexcept;
  std::uint64_t id_;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_TRACE_H_
