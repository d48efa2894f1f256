// Purlin: abseil's names for what Purlin has under the same names, without abseil.
//
// ```cpp
// namespace absl = purlin::compat::absl;  // where the real one is not included
//
// absl::StatusOr<int> Half(int number) {
//   if (number % 2 != 0) return absl::InvalidArgumentError("odd");
//   return number / 2;
// }
// const absl::Status status = Half(3).status();
// if (!absl::IsInvalidArgument(status)) return status;
// ```
//
// Names only: docs/adopting.md, "What behaves differently, and why", has what differs.
#ifndef PURLIN_COMPAT_ABSL_H_
#define PURLIN_COMPAT_ABSL_H_

#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace compat {
namespace absl {

using ::purlin::OkStatus;
using ::purlin::Span;
using ::purlin::Status;
using ::purlin::StatusCode;
using ::purlin::StatusCodeToString;
using ::purlin::StatusOr;

using ::purlin::AbortedError;
using ::purlin::AlreadyExistsError;
using ::purlin::CancelledError;
using ::purlin::DataLossError;
using ::purlin::DeadlineExceededError;
using ::purlin::FailedPreconditionError;
using ::purlin::InternalError;
using ::purlin::InvalidArgumentError;
using ::purlin::NotFoundError;
using ::purlin::OutOfRangeError;
using ::purlin::PermissionDeniedError;
using ::purlin::ResourceExhaustedError;
using ::purlin::UnauthenticatedError;
using ::purlin::UnavailableError;
using ::purlin::UnimplementedError;
using ::purlin::UnknownError;

using ::purlin::IsAborted;
using ::purlin::IsAlreadyExists;
using ::purlin::IsCancelled;
using ::purlin::IsDataLoss;
using ::purlin::IsDeadlineExceeded;
using ::purlin::IsFailedPrecondition;
using ::purlin::IsInternal;
using ::purlin::IsInvalidArgument;
using ::purlin::IsNotFound;
using ::purlin::IsOutOfRange;
using ::purlin::IsPermissionDenied;
using ::purlin::IsResourceExhausted;
using ::purlin::IsUnauthenticated;
using ::purlin::IsUnavailable;
using ::purlin::IsUnimplemented;
using ::purlin::IsUnknown;

}  // namespace absl
}  // namespace compat
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_COMPAT_ABSL_H_
