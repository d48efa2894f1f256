// Purlin: a report of all holders of a space's memory, for an allocation that failed or at any other time.
//
// ```cpp
// #include <iostream>
//
// #include "purlin/device.h"
//
// void PrintHolders(const purlin::Device& device) {
//   const purlin::MemoryReport report = device.default_memory_space().Report();
//   for (const purlin::MemoryHolder& holder : report.holders) {
//     std::cerr << holder.size_bytes << " bytes for '" << holder.label << "', allocated at " << holder.place << "\n";
//   }
// }
// ```
//
// The error of an allocation that failed has the report as its message, and as JSON in its payload
// kMemoryReportTypeUrl.
#ifndef PURLIN_MEMORY_REPORT_H_
#define PURLIN_MEMORY_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "purlin/export.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// The payload of an error of an allocation that found no room: the report as JSON (MemoryReport::ToJson).
inline constexpr std::string_view kMemoryReportTypeUrl = "purlin.dev/memory-report";

/// A live allocation.
struct MemoryHolder {
  /// As requested.
  std::uint64_t size_bytes = 0;
  /// What it is for (AllocOptions::label).
  std::string label;
  /// Where it was requested: "file:line".
  std::string place;
  /// How long ago; an upper bound, exact to the second or so.
  std::uint32_t age_ms = 0;
  /// Only copies in flight and pending events still hold it.
  bool is_going = false;
};

/// The memory of one space at one time. A value: it keeps nothing alive.
struct MemoryReport {
  /// The space, such as "host:0/device".
  std::string memory_space;
  /// The size of the allocation that failed, if the report is about one.
  std::optional<std::uint64_t> requested_bytes;
  /// Why it failed.
  std::string reason;
  /// Bytes of live allocations, as requested.
  std::uint64_t bytes_in_use = 0;
  /// The most bytes that the space takes from the system; nothing: no limit.
  std::optional<std::uint64_t> bytes_limit;
  /// Bytes taken from the system.
  std::uint64_t pool_bytes = 0;
  /// Of those, bytes that are free.
  std::uint64_t free_bytes = 0;
  /// The largest allocation that can be had without freeing another; without a limit, and without asking the system.
  std::uint64_t largest_free_block_bytes = 0;
  /// Which part of the free bytes is not in the largest free block, in percent, 0..100.
  std::uint8_t fragmentation_percent = 0;
  /// Bytes that only copies in flight and pending events still hold: they are freed when these have ended.
  std::uint64_t pending_free_bytes = 0;
  /// How many allocations are live.
  std::size_t holder_count = 0;
  /// How many allocations wait for memory.
  std::size_t waiting_count = 0;
  /// The largest live allocations, at most ten, the largest first.
  std::vector<MemoryHolder> holders;

  /// A few lines, the first of which says what failed. Bytes that are not UTF-8 are replaced. Never blocks.
  [[nodiscard]] PURLIN_API std::string DebugString() const;
  /// One JSON object, whose members are named as the fields; an absent one is null. Bytes that are not UTF-8 are
  /// replaced. Never blocks.
  [[nodiscard]] PURLIN_API std::string ToJson() const;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_MEMORY_REPORT_H_
