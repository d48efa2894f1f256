#include "purlin/dma.h"

#include <cstddef>
#include <cstdint>

#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "purlin/client.h"

namespace purlin {
inline namespace v0 {

StatusOr<DmaMapping> Client::DmaMap(const void* data, std::size_t size_bytes) const {
  if (rep_ == nullptr) return internal::Gone("Client");

  const internal::StatusRep* error = nullptr;
  internal::DmaMappingRep* rep =
      internal::purlin_client_dma_map(rep_, static_cast<const std::uint8_t*>(data), size_bytes, &error);
  if (error != nullptr) return Status::FromRep(error);
  return DmaMapping::Adopt(rep);
}

DmaMapping::~DmaMapping() { internal::GiveUp<internal::purlin_dma_mapping_release>(rep_); }

const void* DmaMapping::data() const noexcept {
  if (rep_ == nullptr) return nullptr;
  const std::uint8_t* data = nullptr;
  std::size_t size_bytes = 0;
  internal::purlin_dma_mapping_range(rep_, &data, &size_bytes);
  return data;
}

std::size_t DmaMapping::size_bytes() const noexcept {
  if (rep_ == nullptr) return 0;
  const std::uint8_t* data = nullptr;
  std::size_t size_bytes = 0;
  internal::purlin_dma_mapping_range(rep_, &data, &size_bytes);
  return size_bytes;
}

std::size_t DmaMapping::in_flight() const noexcept {
  return rep_ == nullptr ? 0 : internal::purlin_dma_mapping_in_flight(rep_);
}

Status DmaMapping::Unmap() { return Status::FromRep(internal::purlin_dma_mapping_unmap(rep_)); }

}  // namespace v0
}  // namespace purlin
