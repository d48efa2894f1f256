// Purlin: MemoryReport between the types of std and those of cxx.
#ifndef PURLIN_CPP_INTERNAL_MEMORY_REPORT_H_
#define PURLIN_CPP_INTERNAL_MEMORY_REPORT_H_

#include "purlin-bridge/src/memory_report.rs.h"
#include "purlin/memory_report.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

MemoryReport FromRust(const ffi::MemoryReport& report);
/// Replaces what is not UTF-8.
ffi::MemoryReport ToRust(const MemoryReport& report);

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_MEMORY_REPORT_H_
