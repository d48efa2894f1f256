// Purlin: a value, or the error that explains why there is none. Names and habits of absl::StatusOr.
//
// ```cpp
// purlin::StatusOr<int> Half(int number) {
//   if (number % 2 != 0) return purlin::InvalidArgumentError("the number is odd");
//   return number / 2;
// }
// const purlin::StatusOr<int> half = Half(6);
// if (!half.ok()) return half.status();
// const int three = *half;
// ```
#ifndef PURLIN_STATUS_OR_H_
#define PURLIN_STATUS_OR_H_

#include <optional>
#include <type_traits>
#include <utility>

#include "purlin/export.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

namespace internal {
/// Prints the error and ends the process: `value()` was called on an error, which is a bug of the caller.
[[noreturn]] PURLIN_API void DieOfBadStatusOrAccess(const Status& status) noexcept;
}  // namespace internal

/// Holds a `T`, or a Status that is not OK.
template <typename T>
class [[nodiscard]] StatusOr final {
 public:
  /// The type of the value.
  using value_type = T;

  /// kUnknown: no value was given.
  StatusOr() : status_(StatusCode::kUnknown, "StatusOr was default-constructed") {}
  /// An error. OK counts as kInternal, made at `location`.
  StatusOr(Status status, SourceLocation location = SourceLocation::Current())  // NOLINT(google-explicit-constructor)
      : status_(status.ok() ? internal::OkAsError("a StatusOr without a value", location) : std::move(status)) {}
  /// A value.
  StatusOr(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)

  /// True when there is a value (also one that was moved out of).
  [[nodiscard]] bool ok() const noexcept { return value_.has_value(); }
  /// OK, or the error, unless that was moved out.
  const Status& status() const& noexcept { return status_; }
  /// OK, or the error, taken.
  Status status() && noexcept { return std::move(status_); }

  /// The value. On an error: prints it and ends the process, as absl does without exceptions.
  T& value() & {
    Check();
    return *value_;
  }
  /// See above.
  const T& value() const& {
    Check();
    return *value_;
  }
  /// See above; moves the value out.
  T&& value() && {
    Check();
    return *std::move(value_);
  }
  /// The value, or `fallback` on an error.
  template <typename U>
  T value_or(U&& fallback) const& {
    return ok() ? *value_ : static_cast<T>(std::forward<U>(fallback));
  }
  /// See above; moves the value out.
  template <typename U>
  T value_or(U&& fallback) && {
    return ok() ? *std::move(value_) : static_cast<T>(std::forward<U>(fallback));
  }

  /// The value, where ok(); see value().
  T& operator*() & { return value(); }
  /// See above.
  const T& operator*() const& { return value(); }
  /// See above.
  T&& operator*() && { return std::move(*this).value(); }
  /// See above.
  T* operator->() { return &value(); }
  /// See above.
  const T* operator->() const { return &value(); }

 private:
  static_assert(!std::is_same<std::remove_cv_t<T>, Status>::value, "StatusOr<Status> says the same thing twice");
  static_assert(!std::is_reference<T>::value, "StatusOr holds values");

  void Check() const noexcept {
    if (!ok()) internal::DieOfBadStatusOrAccess(status_);
  }

  Status status_;
  std::optional<T> value_;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_STATUS_OR_H_
