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
//
// Conversions, comparisons and assignments are those of absl::StatusOr.
#ifndef PURLIN_STATUS_OR_H_
#define PURLIN_STATUS_OR_H_

#include <initializer_list>
#include <type_traits>
#include <utility>

#include "purlin/export.h"
#include "purlin/internal/borrowing_optional.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

template <typename T>
class StatusOr;

namespace internal {
/// Prints the error and ends the process: `value()` was called on an error, which is a bug of the caller.
[[noreturn]] PURLIN_API void DieOfBadStatusOrAccess(const Status& status) noexcept;

/// True for a StatusOr.
template <typename U>
struct IsStatusOr : std::false_type {};
template <typename U>
struct IsStatusOr<StatusOr<U>> : std::true_type {};

/// Whether a `T` can be made of some StatusOr<U>. Then a StatusOr<U> is a value for a StatusOr<T>, and is not taken
/// apart.
template <typename T, typename U>
struct TakesStatusOr
    : std::disjunction<std::is_constructible<T, StatusOr<U>&>, std::is_constructible<T, const StatusOr<U>&>,
                       std::is_constructible<T, StatusOr<U>&&>, std::is_convertible<StatusOr<U>&, T>,
                       std::is_convertible<const StatusOr<U>&, T>, std::is_convertible<StatusOr<U>&&, T>> {};

/// Whether a StatusOr<T> may be made of a StatusOr<U>, taken apart, whose value is given as a `V`. Last, what is
/// costly.
template <typename T, typename U, typename V>
struct IsFromStatusOr : std::conjunction<std::negation<std::is_same<T, U>>, std::is_constructible<T, V>,
                                         std::negation<TakesStatusOr<T, U>>> {};

/// Whether a `U` is a value for a StatusOr<T>: no Status, no StatusOr that is taken apart, and a T can be made of it.
template <typename T, typename U, typename Plain = std::remove_cv_t<std::remove_reference_t<U>>>
struct IsValueFor
    : std::conjunction<std::negation<std::is_same<Plain, StatusOr<T>>>, std::negation<std::is_same<Plain, Status>>,
                       std::negation<std::is_same<Plain, std::in_place_t>>,
                       std::disjunction<std::is_same<Plain, T>, std::negation<IsStatusOr<Plain>>>,
                       std::is_constructible<T, U>> {};

/// Whether a `U` is an error for a StatusOr<T> although it is no Status: it converts to one, and to no T.
template <typename T, typename U, typename Plain = std::remove_cv_t<std::remove_reference_t<U>>>
struct IsErrorFor : std::conjunction<std::negation<std::is_same<Plain, Status>>, std::negation<IsStatusOr<Plain>>,
                                     std::negation<std::is_same<Plain, std::in_place_t>>,
                                     std::is_convertible<U, Status>, std::negation<std::is_constructible<T, U>>> {};

/// A value that a StatusOr shows and does not hold.
template <typename T>
struct Shown {
  T* value;
};
}  // namespace internal

/// Holds a `T`, or a Status that is not OK.
template <typename T>
class [[nodiscard]] StatusOr {
 public:
  /// The type of the value.
  using value_type = T;

  /// kUnknown: no value was given.
  StatusOr() : status_(StatusCode::kUnknown, "StatusOr was default-constructed") {}
  /// An error. OK counts as kInternal, made at `location`.
  StatusOr(Status status, SourceLocation location = SourceLocation::Current())  // NOLINT(google-explicit-constructor)
      : status_(status.ok() ? internal::OkAsError("a StatusOr without a value", location) : std::move(status)) {}
  /// An error, of what converts to a Status.
  template <typename U, std::enable_if_t<internal::IsErrorFor<T, U>::value, int> = 0>
  StatusOr(U&& error, SourceLocation location = SourceLocation::Current())  // NOLINT(google-explicit-constructor)
      : StatusOr(static_cast<Status>(std::forward<U>(error)), location) {}
  /// A value, of what a T is made of.
  template <typename U = T,
            std::enable_if_t<internal::IsValueFor<T, U&&>::value && std::is_convertible_v<U&&, T>, int> = 0>
  StatusOr(U&& value) : value_(std::in_place, std::forward<U>(value)) {}  // NOLINT(google-explicit-constructor)
  /// As above, where T says that it must be asked for explicitly.
  template <typename U = T,
            std::enable_if_t<internal::IsValueFor<T, U&&>::value && !std::is_convertible_v<U&&, T>, int> = 0>
  explicit StatusOr(U&& value) : value_(std::in_place, std::forward<U>(value)) {}
  /// A value that is constructed in place.
  template <typename... Args, std::enable_if_t<std::is_constructible_v<T, Args...>, int> = 0>
  explicit StatusOr(std::in_place_t, Args&&... args) : value_(std::in_place, std::forward<Args>(args)...) {}
  /// As above, of a list and more.
  template <typename U, typename... Args,
            std::enable_if_t<std::is_constructible_v<T, std::initializer_list<U>&, Args...>, int> = 0>
  explicit StatusOr(std::in_place_t, std::initializer_list<U> list, Args&&... args)
      : value_(std::in_place, list, std::forward<Args>(args)...) {}
  /// The error, or a T made of the value.
  template <typename U,
            std::enable_if_t<internal::IsFromStatusOr<T, U, const U&>::value && std::is_convertible_v<const U&, T>,
                             int> = 0>
  StatusOr(const StatusOr<U>& other) : status_(other.status()) {  // NOLINT(google-explicit-constructor)
    if (other.ok()) value_.emplace(*other);
  }
  /// See above.
  template <
      typename U,
      std::enable_if_t<internal::IsFromStatusOr<T, U, const U&>::value && !std::is_convertible_v<const U&, T>, int> = 0>
  explicit StatusOr(const StatusOr<U>& other) : status_(other.status()) {
    if (other.ok()) value_.emplace(*other);
  }
  /// See above; takes the value.
  template <typename U,
            std::enable_if_t<internal::IsFromStatusOr<T, U, U&&>::value && std::is_convertible_v<U&&, T>, int> = 0>
  StatusOr(StatusOr<U>&& other) {  // NOLINT(google-explicit-constructor)
    Take(std::move(other));
  }
  /// See above; takes the value.
  template <typename U,
            std::enable_if_t<internal::IsFromStatusOr<T, U, U&&>::value && !std::is_convertible_v<U&&, T>, int> = 0>
  explicit StatusOr(StatusOr<U>&& other) {
    Take(std::move(other));
  }

  /// True when there is a value (also one that was moved out of).
  [[nodiscard]] bool ok() const noexcept { return value_.has_value(); }
  /// OK, or the error, unless that was moved out.
  const Status& status() const& noexcept { return status_; }
  /// OK, or the error, taken.
  Status status() && noexcept { return std::move(status_); }
  /// Does nothing; says that an error is ignored on purpose.
  void IgnoreError() const noexcept {}

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
  /// See above.
  const T&& value() const&& {
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
  const T&& operator*() const&& { return std::move(*this).value(); }
  /// See above.
  T* operator->() { return &value(); }
  /// See above.
  const T* operator->() const { return &value(); }

  /// Destroys what was here, constructs a value out of `args`, and returns it.
  template <typename... Args, std::enable_if_t<std::is_constructible_v<T, Args...>, int> = 0>
  T& emplace(Args&&... args) {
    T& value = value_.emplace(std::forward<Args>(args)...);
    status_ = Status();  // Now, as the arguments may be parts of it.
    return value;
  }
  /// As above, of a list and more.
  template <typename U, typename... Args,
            std::enable_if_t<std::is_constructible_v<T, std::initializer_list<U>&, Args...>, int> = 0>
  T& emplace(std::initializer_list<U> list, Args&&... args) {
    T& value = value_.emplace(list, std::forward<Args>(args)...);
    status_ = Status();
    return value;
  }

  /// For Purlin's own files: see ShownStatusOr.
  explicit StatusOr(internal::Shown<T> shown) noexcept : value_(internal::BorrowingOptional<T>::Of(*shown.value)) {}

 private:
  static_assert(!std::is_same<std::remove_cv_t<T>, Status>::value, "StatusOr<Status> says the same thing twice");
  static_assert(!std::is_reference<T>::value, "StatusOr holds values");

  template <typename U>
  void Take(StatusOr<U>&& other) {
    if (other.ok()) {
      value_.emplace(*std::move(other));
    } else {
      status_ = std::move(other).status();
    }
  }

  void Check() const noexcept {
    if (!ok()) internal::DieOfBadStatusOrAccess(status_);
  }

  Status status_;
  internal::StatusOrValue<T> value_;
};

namespace internal {

/// A StatusOr that shows a move-only value of another object's, which outlives it. It cannot be moved or returned as a
/// StatusOr, and the value cannot be moved out of it.
template <typename T>
class [[nodiscard]] ShownStatusOr final : public StatusOr<T> {
 public:
  explicit ShownStatusOr(T& value) noexcept : StatusOr<T>(Shown<T>{&value}) {}
  ShownStatusOr(Status error) : StatusOr<T>(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  ShownStatusOr(const ShownStatusOr&) = delete;
  ShownStatusOr& operator=(const ShownStatusOr&) = delete;

  const T& value() const { return StatusOr<T>::value(); }
  const T& operator*() const { return value(); }
  const T* operator->() const { return &value(); }
};

template <typename T>
struct IsStatusOr<ShownStatusOr<T>> : std::true_type {};

}  // namespace internal

/// Equal values, or equal errors. Templates, so that nothing else converts to be compared.
template <typename T>
bool operator==(const StatusOr<T>& a, const StatusOr<T>& b) {
  return a.ok() && b.ok() ? *a == *b : a.ok() == b.ok() && a.status() == b.status();
}
/// Not equal.
template <typename T>
bool operator!=(const StatusOr<T>& a, const StatusOr<T>& b) {
  return !(a == b);
}

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_STATUS_OR_H_
