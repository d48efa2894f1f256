#include "purlin/buffer_holds.h"

#include <utility>

#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "purlin-bridge/src/buffer_holds.rs.h"

namespace purlin {
inline namespace v0 {

// A callback that is notified of a hold's end may destroy the hold: nothing of it is touched after the call.

RawBuffer UsageHold::memory() const {
  if (rep_ == nullptr) return RawBuffer::Adopt(nullptr);
  return RawBuffer::Adopt(ffi::usage_hold_memory(*rep_));
}

Event UsageHold::ready_event() const noexcept {
  if (rep_ == nullptr) return internal::GoneEvent("UsageHold");
  return Event::Adopt(ffi::usage_hold_ready_event(*rep_));
}

void UsageHold::Release() noexcept {
  if (internal::UsageHoldRep* rep = std::exchange(rep_, nullptr)) ffi::usage_hold_release(rep);
}

void UsageHold::ReleaseAfter(const Event& event) {
  if (internal::UsageHoldRep* rep = std::exchange(rep_, nullptr)) {
    ffi::usage_hold_release_after(rep, event.header());
  }
}

RawBuffer ExternalReference::memory() const {
  if (rep_ == nullptr) return RawBuffer::Adopt(nullptr);

  return RawBuffer::Adopt(ffi::external_reference_memory(*rep_));
}

Event ExternalReference::ready_event() const noexcept {
  if (rep_ == nullptr) return internal::GoneEvent("ExternalReference");

  return Event::Adopt(ffi::external_reference_ready_event(*rep_));
}

void ExternalReference::Release() noexcept {
  if (internal::ExternalReferenceRep* rep = std::exchange(rep_, nullptr)) {
    ffi::external_reference_release(rep);
  }
}

RawBuffer DonationHold::memory() const {
  if (rep_ == nullptr) return RawBuffer::Adopt(nullptr);
  return RawBuffer::Adopt(ffi::donation_hold_memory(*rep_));
}

Event DonationHold::ready_event() const noexcept {
  if (rep_ == nullptr) return internal::GoneEvent("DonationHold");

  return Event::Adopt(ffi::donation_hold_ready_event(*rep_));
}

Event DonationHold::free_event() const {
  if (rep_ == nullptr) return internal::GoneEvent("DonationHold");
  return Event::Adopt(ffi::donation_hold_free_event(*rep_));
}

StatusOr<RawBuffer> DonationHold::Confirm() {
  internal::DonationHoldRep* rep = std::exchange(rep_, nullptr);
  if (rep == nullptr) {
    return FailedPreconditionError("this donation has been confirmed or given back already, or moved from");
  }
  return RawBuffer::Adopt(ffi::donation_hold_confirm(rep));
}

void DonationHold::Release() noexcept {
  if (internal::DonationHoldRep* rep = std::exchange(rep_, nullptr)) ffi::donation_hold_release(rep);
}

}  // namespace v0
}  // namespace purlin
