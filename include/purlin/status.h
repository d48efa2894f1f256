// Purlin: how calls fail. The 17 canonical codes, names and habits of absl::Status, in one word, without abseil.
//
// ```cpp
// #include <iostream>
//
// purlin::Status CheckSize(std::size_t size_bytes) {
//   if (size_bytes == 0) return purlin::InvalidArgumentError("size_bytes is 0");
//   return purlin::OkStatus();
// }
// const purlin::Status status = CheckSize(0);
// if (!status.ok()) std::cerr << status << "\n";
// ```
//
// An OK status is a null pointer. An error is a shared, immutable record of code, message, payloads and the place where
// it was made, so that one error can reach a thousand waiters for the price of a reference count. Copying, moving,
// destroying and reading are thread-safe as for a shared_ptr: distinct objects freely, one object by one writer.
//
// What fails with OK (an Event::Error, a promise, a StatusOr without a value, a buffer, a sink, a transfer) is a bug of
// the caller, and has one answer everywhere: it fails with kInternal, "SetError was given an OK status", at the
// caller's place.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_STATUS_H_
#define PURLIN_STATUS_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "purlin/export.h"
#include "purlin/internal/abi.h"
#include "purlin/source_location.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// absl's canonical codes, same numbers. Choose by what the caller should do next.
enum class StatusCode : int {
  /// No error.
  kOk = 0,
  /// The operation was cancelled, usually by its caller or because its runner has shut down.
  kCancelled = 1,
  /// Nothing better is known.
  kUnknown = 2,
  /// The arguments are wrong whatever the state of the system.
  kInvalidArgument = 3,
  /// A time limit passed first; the operation may still finish.
  kDeadlineExceeded = 4,
  /// The requested object does not exist.
  kNotFound = 5,
  /// What was to be made exists already.
  kAlreadyExists = 6,
  /// The caller may not do this.
  kPermissionDenied = 7,
  /// Memory, threads or a quota are used up.
  kResourceExhausted = 8,
  /// The system is not in the state that this needs; do something else first.
  kFailedPrecondition = 9,
  /// Lost a race; retry at a higher level.
  kAborted = 10,
  /// Past the valid range.
  kOutOfRange = 11,
  /// Not supported here.
  kUnimplemented = 12,
  /// An invariant is broken; a bug.
  kInternal = 13,
  /// Not now; retry the same call.
  kUnavailable = 14,
  /// Data is lost or damaged beyond repair.
  kDataLoss = 15,
  /// The caller is not known.
  kUnauthenticated = 16,
};

/// The code's name, such as "INVALID_ARGUMENT"; "" for a number outside 0..16. Static storage.
PURLIN_API std::string_view StatusCodeToString(StatusCode code) noexcept;
/// Prints the code's name.
PURLIN_API std::ostream& operator<<(std::ostream& os, StatusCode code);

/// OK, or an error with a code, a message, payloads and the place where it was made. One word; OK is null.
class [[nodiscard]] Status final {
 public:
  /// OK.
  constexpr Status() noexcept = default;
  /// An error made here. `kOk` gives OK and ignores the message; a code outside 0..16 becomes kUnknown.
  /// `message` is copied; bytes that are not UTF-8 are replaced.
  Status(StatusCode code, std::string_view message, SourceLocation location = SourceLocation::Current())
      : rep_(New(code, message, location)) {}

  /// Shares the record.
  Status(const Status& other) noexcept : rep_(other.rep_) {
    if (rep_ != nullptr) Retain(rep_);
  }
  /// Leaves `other` OK.
  Status(Status&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}
  /// Shares the record.
  Status& operator=(const Status& other) noexcept {
    Status copy(other);
    std::swap(rep_, copy.rep_);
    return *this;
  }
  /// Leaves `other` OK, unless it is this.
  Status& operator=(Status&& other) noexcept {
    Status taken(std::move(other));
    std::swap(rep_, taken.rep_);
    return *this;
  }
  ~Status() {
    if (rep_ != nullptr) Release(rep_);
  }

  /// True when there is no error.
  [[nodiscard]] bool ok() const noexcept { return rep_ == nullptr; }
  /// `kOk` when ok().
  [[nodiscard]] StatusCode code() const noexcept { return rep_ == nullptr ? StatusCode::kOk : CodeOf(rep_); }
  /// code() as a number.
  [[nodiscard]] int raw_code() const noexcept { return static_cast<int>(code()); }
  /// "" when ok(). Lives as long as any copy of this status.
  [[nodiscard]] std::string_view message() const noexcept {
    return rep_ == nullptr ? std::string_view() : MessageOf(rep_);
  }
  /// Where the error was made; line() is 0 when ok(). The file name lives as long as any copy of this status.
  [[nodiscard]] SourceLocation location() const noexcept {
    return rep_ == nullptr ? SourceLocation() : LocationOf(rep_);
  }

  /// "OK", or "CODE: message [type_url='bytes'] (at file:line)".
  [[nodiscard]] PURLIN_API std::string ToString() const;

  /// Takes `new_status` if this is ok(); an error that is already here stays.
  void Update(const Status& new_status) noexcept {
    if (ok()) *this = new_status;
  }
  /// Does nothing; says that the status is ignored on purpose.
  void IgnoreError() const noexcept {}

  /// The bytes stored under `type_url`, if any.
  [[nodiscard]] PURLIN_API std::optional<std::string> GetPayload(std::string_view type_url) const;
  /// Stores `payload` under `type_url` in this status only (copies elsewhere keep what they had). Nothing on OK.
  PURLIN_API void SetPayload(std::string_view type_url, std::string_view payload);
  /// Removes a payload; false if there was none.
  PURLIN_API bool ErasePayload(std::string_view type_url);
  /// Calls `visitor(type_url, payload)` for each payload, in the order in which they were first set.
  template <typename F>
  void ForEachPayload(F&& visitor) const {
    std::string_view type_url;
    std::string_view payload;
    for (std::size_t i = 0; rep_ != nullptr && PayloadAt(rep_, i, &type_url, &payload); ++i) {
      visitor(type_url, payload);
    }
  }

  /// Equal code, message and payloads; neither the place nor the order of the payloads counts, as in absl.
  friend bool operator==(const Status& a, const Status& b) noexcept {
    return a.rep_ == b.rep_ || Equal(a.rep_, b.rep_);
  }
  /// Not equal.
  friend bool operator!=(const Status& a, const Status& b) noexcept { return !(a == b); }
  /// Swaps two words.
  friend void swap(Status& a, Status& b) noexcept { std::swap(a.rep_, b.rep_); }

  /// For Purlin's own files: takes over one reference.
  static Status FromRep(const internal::StatusRep* rep) noexcept {
    Status status;
    status.rep_ = rep;
    return status;
  }
  /// For Purlin's own files: shares the record.
  static Status FromBorrowedRep(const internal::StatusRep* rep) noexcept {
    if (rep != nullptr) Retain(rep);
    return FromRep(rep);
  }
  /// For Purlin's own files: gives up the reference.
  const internal::StatusRep* ReleaseRep() && noexcept { return std::exchange(rep_, nullptr); }

 private:
  PURLIN_API static const internal::StatusRep* New(StatusCode code, std::string_view message, SourceLocation location);
  PURLIN_API static void Retain(const internal::StatusRep* rep) noexcept;
  PURLIN_API static void Release(const internal::StatusRep* rep) noexcept;
  PURLIN_API static StatusCode CodeOf(const internal::StatusRep* rep) noexcept;
  PURLIN_API static std::string_view MessageOf(const internal::StatusRep* rep) noexcept;
  PURLIN_API static SourceLocation LocationOf(const internal::StatusRep* rep) noexcept;
  PURLIN_API static bool PayloadAt(const internal::StatusRep* rep, std::size_t index, std::string_view* type_url,
                                   std::string_view* payload) noexcept;
  PURLIN_API static bool Equal(const internal::StatusRep* a, const internal::StatusRep* b) noexcept;

  const internal::StatusRep* rep_ = nullptr;
};

static_assert(sizeof(Status) == sizeof(void*), "a Status is one word");

/// Prints ToString().
PURLIN_API std::ostream& operator<<(std::ostream& os, const Status& status);

/// OK.
inline Status OkStatus() noexcept { return Status(); }

/// An error of the code in the name, made at the caller's place.
inline Status CancelledError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kCancelled, message, location);
}
/// As above, without a message.
inline Status CancelledError(SourceLocation location = SourceLocation::Current()) {
  return CancelledError(std::string_view(), location);
}
/// See CancelledError.
inline Status UnknownError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kUnknown, message, location);
}
/// See CancelledError.
inline Status InvalidArgumentError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kInvalidArgument, message, location);
}
/// See CancelledError.
inline Status DeadlineExceededError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kDeadlineExceeded, message, location);
}
/// See CancelledError.
inline Status NotFoundError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kNotFound, message, location);
}
/// See CancelledError.
inline Status AlreadyExistsError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kAlreadyExists, message, location);
}
/// See CancelledError.
inline Status PermissionDeniedError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kPermissionDenied, message, location);
}
/// See CancelledError.
inline Status ResourceExhaustedError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kResourceExhausted, message, location);
}
/// See CancelledError.
inline Status FailedPreconditionError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kFailedPrecondition, message, location);
}
/// See CancelledError.
inline Status AbortedError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kAborted, message, location);
}
/// See CancelledError.
inline Status OutOfRangeError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kOutOfRange, message, location);
}
/// See CancelledError.
inline Status UnimplementedError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kUnimplemented, message, location);
}
/// See CancelledError.
inline Status InternalError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kInternal, message, location);
}
/// See CancelledError.
inline Status UnavailableError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kUnavailable, message, location);
}
/// See CancelledError.
inline Status DataLossError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kDataLoss, message, location);
}
/// See CancelledError.
inline Status UnauthenticatedError(std::string_view message, SourceLocation location = SourceLocation::Current()) {
  return Status(StatusCode::kUnauthenticated, message, location);
}

namespace internal {
/// What `function` fails with that was given OK, by a caller at `location`. Out of line, for the callers' size.
[[gnu::cold]] __attribute__((noinline)) inline Status OkAsError(const char* function, SourceLocation location) {
  return InternalError(std::string(function).append(" was given an OK status"), location);
}
/// `error`, with which something is to fail; OkAsError() if it is OK.
inline Status NotOk(Status error, const char* function, SourceLocation location) {
  if (error.ok()) return OkAsError(function, location);
  return error;
}
}  // namespace internal

/// Whether the code is the one in the name.
inline bool IsCancelled(const Status& status) noexcept { return status.code() == StatusCode::kCancelled; }
/// See IsCancelled.
inline bool IsUnknown(const Status& status) noexcept { return status.code() == StatusCode::kUnknown; }
/// See IsCancelled.
inline bool IsInvalidArgument(const Status& status) noexcept { return status.code() == StatusCode::kInvalidArgument; }
/// See IsCancelled.
inline bool IsDeadlineExceeded(const Status& status) noexcept { return status.code() == StatusCode::kDeadlineExceeded; }
/// See IsCancelled.
inline bool IsNotFound(const Status& status) noexcept { return status.code() == StatusCode::kNotFound; }
/// See IsCancelled.
inline bool IsAlreadyExists(const Status& status) noexcept { return status.code() == StatusCode::kAlreadyExists; }
/// See IsCancelled.
inline bool IsPermissionDenied(const Status& status) noexcept { return status.code() == StatusCode::kPermissionDenied; }
/// See IsCancelled.
inline bool IsResourceExhausted(const Status& status) noexcept {
  return status.code() == StatusCode::kResourceExhausted;
}
/// See IsCancelled.
inline bool IsFailedPrecondition(const Status& status) noexcept {
  return status.code() == StatusCode::kFailedPrecondition;
}
/// See IsCancelled.
inline bool IsAborted(const Status& status) noexcept { return status.code() == StatusCode::kAborted; }
/// See IsCancelled.
inline bool IsOutOfRange(const Status& status) noexcept { return status.code() == StatusCode::kOutOfRange; }
/// See IsCancelled.
inline bool IsUnimplemented(const Status& status) noexcept { return status.code() == StatusCode::kUnimplemented; }
/// See IsCancelled.
inline bool IsInternal(const Status& status) noexcept { return status.code() == StatusCode::kInternal; }
/// See IsCancelled.
inline bool IsUnavailable(const Status& status) noexcept { return status.code() == StatusCode::kUnavailable; }
/// See IsCancelled.
inline bool IsDataLoss(const Status& status) noexcept { return status.code() == StatusCode::kDataLoss; }
/// See IsCancelled.
inline bool IsUnauthenticated(const Status& status) noexcept { return status.code() == StatusCode::kUnauthenticated; }

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_STATUS_H_
