#include "purlin/cancel.h"

#include <utility>

#include "cpp/internal/functions.h"
#include "cpp/internal/handle.h"
#include "purlin-bridge/src/cancel.rs.h"

namespace purlin {
inline namespace v0 {

bool CancelRegistration::Unregister() noexcept {
  internal::CancelRegistrationRep* rep = std::exchange(rep_, nullptr);
  return rep != nullptr && ffi::cancel_registration_release(rep);
}

CancelToken::CancelToken(const CancelToken& other) noexcept
    : Handle(internal::Shared<ffi::cancel_token_retain>(other.rep_)) {}

CancelToken::~CancelToken() { internal::GiveUp<ffi::cancel_token_release>(rep_); }

bool CancelToken::IsCancelled() const noexcept { return rep_ != nullptr && ffi::cancel_token_is_cancelled(*rep_); }

bool CancelToken::IsRetired() const noexcept { return rep_ == nullptr || ffi::cancel_token_is_retired(*rep_); }

Status CancelToken::status() const noexcept {
  return rep_ == nullptr ? OkStatus() : Status::FromRep(ffi::cancel_token_status(*rep_));
}

Event CancelToken::event() const noexcept { return Event::Adopt(ffi::cancel_token_event(rep_)); }

CancelRegistration CancelToken::OnCancelRaw(internal::Callback callback) const {
  if (rep_ == nullptr) {
    callback.invoke(callback.data, false, nullptr, nullptr);
    return CancelRegistration();
  }
  return CancelRegistration::Adopt(internal::purlin_cancel_token_on_cancel(rep_, callback));
}

CancelSource::CancelSource(const CancelToken& parent, Label label) noexcept
    : Handle(ffi::cancel_source_new(parent.rep(), label.c_str())) {}

CancelSource::CancelSource(const CancelSource& other) noexcept
    : Handle(internal::Shared<ffi::cancel_source_retain>(other.rep_)) {}

CancelSource::~CancelSource() { internal::GiveUp<ffi::cancel_source_release>(rep_); }

CancelToken CancelSource::token() const noexcept {
  return rep_ == nullptr ? CancelToken() : CancelToken::Adopt(ffi::cancel_source_token(*rep_));
}

bool CancelSource::Cancel(Status reason) const noexcept {
  return rep_ != nullptr && ffi::cancel_source_cancel(*rep_, std::move(reason).ReleaseRep());
}

}  // namespace v0
}  // namespace purlin
