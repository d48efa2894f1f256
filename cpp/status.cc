#include "purlin/status.h"

#include <array>
#include <cstddef>
#include <utility>

#include "cpp/internal/functions.h"
#include "purlin-bridge/src/status.rs.h"

namespace purlin {
inline namespace v0 {
namespace {

constexpr std::array<std::string_view, 17> kCodeNames = {
    "OK",        "CANCELLED",       "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS",  "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",    "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED",
};

}  // namespace

std::string_view StatusCodeToString(StatusCode code) noexcept {
  const auto index = static_cast<std::size_t>(code);  // A negative code becomes a large index.
  return index < kCodeNames.size() ? kCodeNames[index] : std::string_view();
}

std::ostream& operator<<(std::ostream& os, StatusCode code) { return os << StatusCodeToString(code); }

std::ostream& operator<<(std::ostream& os, const Status& status) { return os << status.ToString(); }

std::string Status::ToString() const {
  std::string text;
  ffi::status_to_string(rep_, text);
  return text;
}

std::optional<std::string> Status::GetPayload(std::string_view type_url) const {
  const internal::Bytes payload = internal::purlin_status_payload(rep_, type_url.data(), type_url.size());
  if (payload.data == nullptr) return std::nullopt;
  return std::string(internal::FromRust(payload));
}

void Status::SetPayload(std::string_view type_url, std::string_view payload) {
  rep_ = internal::purlin_status_set_payload(rep_, type_url.data(), type_url.size(), payload.data(), payload.size());
}

bool Status::ErasePayload(std::string_view type_url) {
  return internal::purlin_status_erase_payload(&rep_, type_url.data(), type_url.size());
}

const internal::StatusRep* Status::New(StatusCode code, std::string_view message, SourceLocation location) {
  return internal::purlin_status_new(static_cast<int>(code), message.data(), message.size(), location);
}

void Status::Retain(const internal::StatusRep* rep) noexcept { internal::purlin_status_retain(rep); }

void Status::Release(const internal::StatusRep* rep) noexcept { internal::purlin_status_release(rep); }

StatusCode Status::CodeOf(const internal::StatusRep* rep) noexcept {
  return static_cast<StatusCode>(internal::purlin_status_code(rep));
}

std::string_view Status::MessageOf(const internal::StatusRep* rep) noexcept {
  return internal::FromRust(internal::purlin_status_message(rep));
}

SourceLocation Status::LocationOf(const internal::StatusRep* rep) noexcept {
  return internal::purlin_status_location(rep);
}

bool Status::PayloadAt(const internal::StatusRep* rep, std::size_t index, std::string_view* type_url,
                       std::string_view* payload) noexcept {
  internal::Bytes key{};
  internal::Bytes value{};
  if (!internal::purlin_status_payload_at(rep, index, &key, &value)) return false;
  *type_url = internal::FromRust(key);
  *payload = internal::FromRust(value);
  return true;
}

bool Status::Equal(const internal::StatusRep* a, const internal::StatusRep* b) noexcept {
  return internal::purlin_status_equal(a, b);
}

}  // namespace v0
}  // namespace purlin
