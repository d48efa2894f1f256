#include "purlin/host_buffer.h"

#include <cstdint>

#include "cpp/internal/alloc_options.h"
#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/shape.h"
#include "purlin/buffer.h"

namespace purlin {
inline namespace v0 {

StatusOr<FromHostResult> Buffer::FromHostRaw(const void* data, DType dtype, Span<const std::int64_t> dims,
                                             const std::optional<Span<const std::int64_t>>& byte_strides,
                                             const MemorySpace& memory_space, HostBufferSemantics semantics,
                                             const Layout* device_layout, const AllocOptions& alloc,
                                             const internal::Callback* on_done, SourceLocation location) {
  if (memory_space.rep() == nullptr) return internal::GoneAndTold("MemorySpace", on_done);

  const internal::RawHostArray array = internal::ToRust(data, dtype, dims, byte_strides);
  const internal::RawAllocOptions options = internal::ToRust(alloc);
  const internal::OptionalLayout layout(device_layout);
  bool is_aliased = false;
  const internal::StatusRep* error = nullptr;
  const internal::BufferRep* rep =
      internal::purlin_buffer_from_host_array(&array, memory_space.rep(), static_cast<std::int32_t>(semantics),
                                              layout.get(), &options, on_done, location, &is_aliased, &error);
  if (error != nullptr) return Status::FromRep(error);
  return FromHostResult{Adopt(rep), is_aliased ? Aliasing::kAliased : Aliasing::kCopied};
}

}  // namespace v0
}  // namespace purlin
