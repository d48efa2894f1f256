#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/internal/alloc_options.h"
#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/shape.h"
#include "purlin/buffer.h"
#include "purlin/host_buffer.h"

namespace purlin {
inline namespace v0 {

StatusOr<std::vector<Buffer>> Buffer::FromHostShardsRaw(Span<const HostShard> shards,
                                                        Span<const internal::Callback* const> on_done,
                                                        HostBufferSemantics semantics, const AllocOptions& alloc,
                                                        SourceLocation location) {
  for (const HostShard& shard : shards) {
    if (shard.memory_space.rep() != nullptr) continue;
    for (const internal::Callback* each : on_done) internal::GoneAndTold("MemorySpace", each).IgnoreError();
    return internal::Gone("MemorySpace");
  }

  std::vector<internal::RawHostShard> raw;
  raw.reserve(shards.size());
  for (const HostShard& shard : shards) {
    internal::RawHostShard& entry = raw.emplace_back();
    entry.array = internal::ToRust(shard.data, shard.dtype, shard.dims, shard.byte_strides);
    entry.has_layout = shard.device_layout.has_value();
    if (shard.device_layout) {
      entry.layout = {shard.device_layout->minor_to_major().data(), shard.device_layout->rank()};
    }
    entry.space = shard.memory_space.rep();
    entry.on_done = on_done[raw.size() - 1];
  }
  const internal::RawAllocOptions options = internal::ToRust(alloc);
  std::vector<const internal::BufferRep*> made(raw.size());
  const internal::StatusRep* error = internal::purlin_buffer_from_host_shards(
      raw.data(), raw.size(), static_cast<std::int32_t>(semantics), &options, location, made.data());
  if (error != nullptr) return Status::FromRep(error);
  std::vector<Buffer> buffers;
  buffers.reserve(made.size());
  for (const internal::BufferRep* rep : made) buffers.push_back(Adopt(rep));
  return buffers;
}

}  // namespace v0
}  // namespace purlin
