#include "purlin/cancel.h"

#include <utility>

#include "cpp/internal/functions.h"

namespace purlin {
inline namespace v0 {

bool CancelRegistration::Unregister() noexcept {
  internal::CancelRegistrationRep* rep = std::exchange(rep_, nullptr);
  return rep != nullptr && internal::purlin_cancel_registration_release(rep);
}

CancelToken::CancelToken(const CancelToken& other) noexcept : rep_(other.rep_) {
  if (rep_ != nullptr) internal::purlin_cancel_token_retain(rep_);
}

CancelToken::~CancelToken() {
  if (rep_ != nullptr) internal::purlin_cancel_token_release(rep_);
}

bool CancelToken::IsCancelled() const noexcept {
  return rep_ != nullptr && internal::purlin_cancel_token_is_cancelled(rep_);
}

bool CancelToken::IsRetired() const noexcept {
  return rep_ == nullptr || internal::purlin_cancel_token_is_retired(rep_);
}

Status CancelToken::status() const noexcept {
  return rep_ == nullptr ? OkStatus() : Status::FromRep(internal::purlin_cancel_token_status(rep_));
}

Event CancelToken::event() const noexcept { return Event::Adopt(internal::purlin_cancel_token_event(rep_)); }

CancelRegistration CancelToken::OnCancelRaw(internal::Callback callback) const {
  if (rep_ == nullptr) {
    callback.invoke(callback.data, false, nullptr, nullptr);
    return CancelRegistration();
  }
  return CancelRegistration::Adopt(internal::purlin_cancel_token_on_cancel(rep_, callback));
}

CancelSource::CancelSource(const CancelToken& parent, Label label) noexcept
    : rep_(internal::purlin_cancel_source_new(parent.rep(), label.c_str())) {}

CancelSource::CancelSource(const CancelSource& other) noexcept : rep_(other.rep_) {
  if (rep_ != nullptr) internal::purlin_cancel_source_retain(rep_);
}

CancelSource::~CancelSource() {
  if (rep_ != nullptr) internal::purlin_cancel_source_release(rep_);
}

CancelToken CancelSource::token() const noexcept {
  return rep_ == nullptr ? CancelToken() : CancelToken::Adopt(internal::purlin_cancel_source_token(rep_));
}

bool CancelSource::Cancel(Status reason) const noexcept {
  return rep_ != nullptr && internal::purlin_cancel_source_cancel(rep_, std::move(reason).ReleaseRep());
}

}  // namespace v0
}  // namespace purlin
