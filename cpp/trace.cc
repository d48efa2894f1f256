#include "purlin/trace.h"

#include "cpp/internal/convert.h"
#include "purlin-bridge/src/trace.rs.h"

namespace purlin {
inline namespace v0 {

Status StartTrace(std::string_view path) { return Status::FromRep(ffi::trace_start(internal::ToRust(path))); }

Status StopTrace() { return Status::FromRep(ffi::trace_stop()); }

std::uint64_t TraceSpan::Begin(const char* name) noexcept { return ffi::trace_begin_span(name); }

void TraceSpan::End(std::uint64_t id) noexcept { ffi::trace_end_span(id); }

}  // namespace v0
}  // namespace purlin
