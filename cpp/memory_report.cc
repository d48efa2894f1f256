#include "purlin/memory_report.h"

#include <string>

#include "cpp/internal/memory_report.h"
#include "purlin-bridge/src/memory_report.rs.h"

namespace purlin {
inline namespace v0 {
namespace internal {

MemoryReport FromRust(const ffi::MemoryReport& report) {
  MemoryReport out;
  out.memory_space = std::string(report.memory_space);
  if (report.has_requested_bytes) out.requested_bytes = report.requested_bytes;
  out.reason = std::string(report.reason);
  out.bytes_in_use = report.bytes_in_use;
  if (report.has_bytes_limit) out.bytes_limit = report.bytes_limit;
  out.pool_bytes = report.pool_bytes;
  out.free_bytes = report.free_bytes;
  out.largest_free_block_bytes = report.largest_free_block_bytes;
  out.fragmentation_percent = report.fragmentation_percent;
  out.pending_free_bytes = report.pending_free_bytes;
  out.holder_count = report.holder_count;
  out.waiting_count = report.waiting_count;
  out.holders.reserve(report.holders.size());
  for (const ffi::MemoryHolder& holder : report.holders) {
    out.holders.push_back(
        {holder.size_bytes, std::string(holder.label), std::string(holder.place), holder.age_ms, holder.is_going});
  }
  return out;
}

ffi::MemoryReport ToRust(const MemoryReport& report) {
  ffi::MemoryReport out;
  out.memory_space = rust::String::lossy(report.memory_space);
  out.requested_bytes = report.requested_bytes.value_or(0);
  out.has_requested_bytes = report.requested_bytes.has_value();
  out.reason = rust::String::lossy(report.reason);
  out.bytes_in_use = report.bytes_in_use;
  out.bytes_limit = report.bytes_limit.value_or(0);
  out.has_bytes_limit = report.bytes_limit.has_value();
  out.pool_bytes = report.pool_bytes;
  out.free_bytes = report.free_bytes;
  out.largest_free_block_bytes = report.largest_free_block_bytes;
  out.fragmentation_percent = report.fragmentation_percent;
  out.pending_free_bytes = report.pending_free_bytes;
  out.holder_count = report.holder_count;
  out.waiting_count = report.waiting_count;
  out.holders.reserve(report.holders.size());
  for (const MemoryHolder& holder : report.holders) {
    out.holders.push_back({holder.size_bytes, rust::String::lossy(holder.label), rust::String::lossy(holder.place),
                           holder.age_ms, holder.is_going});
  }
  return out;
}

}  // namespace internal

std::string MemoryReport::DebugString() const {
  std::string text;
  ffi::memory_report_to_string(internal::ToRust(*this), text);
  return text;
}

std::string MemoryReport::ToJson() const {
  std::string text;
  ffi::memory_report_to_json(internal::ToRust(*this), text);
  return text;
}

}  // namespace v0
}  // namespace purlin
