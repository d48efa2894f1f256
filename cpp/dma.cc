#include "purlin/dma.h"

#include <cstddef>
#include <cstdint>

#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "purlin-bridge/src/dma.rs.h"
#include "purlin/client.h"

namespace purlin {
inline namespace v0 {

StatusOr<DmaMapping> Client::DmaMap(const void* data, std::size_t size_bytes) const {
  if (rep_ == nullptr) return internal::Gone("Client");

  const internal::StatusRep* error = nullptr;
  internal::DmaMappingRep* rep = ffi::client_dma_map(*rep_, static_cast<const std::uint8_t*>(data), size_bytes, error);
  if (error != nullptr) return Status::FromRep(error);
  return DmaMapping::Adopt(rep);
}

DmaMapping::~DmaMapping() { internal::GiveUp<ffi::dma_mapping_release>(rep_); }

const void* DmaMapping::data() const noexcept { return rep_ == nullptr ? nullptr : ffi::dma_mapping_address(*rep_); }

std::size_t DmaMapping::size_bytes() const noexcept { return rep_ == nullptr ? 0 : ffi::dma_mapping_size_bytes(*rep_); }

std::size_t DmaMapping::in_flight() const noexcept { return rep_ == nullptr ? 0 : ffi::dma_mapping_in_flight(*rep_); }

Status DmaMapping::Unmap() { return Status::FromRep(ffi::dma_mapping_unmap(rep_)); }

}  // namespace v0
}  // namespace purlin
