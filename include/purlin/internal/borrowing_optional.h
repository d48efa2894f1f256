// Purlin: an optional value that may also show one which another object owns. Not for users; see status_or.h.
#ifndef PURLIN_INTERNAL_BORROWING_OPTIONAL_H_
#define PURLIN_INTERNAL_BORROWING_OPTIONAL_H_

#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// Whether a T can be copied, also where std::is_copy_constructible only says that it looks so.
template <typename T>
struct IsCopyable : std::is_copy_constructible<T> {};
template <>
struct IsCopyable<void> : std::true_type {};
template <typename T, typename A>
struct IsCopyable<std::vector<T, A>> : IsCopyable<T> {};
template <typename... Ts>
struct IsCopyable<std::tuple<Ts...>> : std::conjunction<IsCopyable<Ts>...> {};

/// As std::optional, for a T that can be moved and not copied, and as large where T is aligned as a pointer is. One
/// that shows another object's value keeps the address; moving it moves no value.
template <typename T>
class BorrowingOptional final {
 public:
  BorrowingOptional() noexcept {}  // NOLINT(modernize-use-equals-default): for the union.
  template <typename... Args>
  explicit BorrowingOptional(std::in_place_t, Args&&... args) {
    Construct(std::forward<Args>(args)...);
  }
  BorrowingOptional(const BorrowingOptional&) = delete;
  BorrowingOptional& operator=(const BorrowingOptional&) = delete;
  BorrowingOptional(BorrowingOptional&& other) noexcept(std::is_nothrow_move_constructible_v<T>) {
    if (other.Owns()) {
      Construct(std::move(other.own_));
    } else {
      at_ = other.at_;
    }
  }
  BorrowingOptional& operator=(BorrowingOptional&& other) noexcept(std::is_nothrow_move_constructible_v<T>) {
    if (this == &other) return *this;
    reset();
    if (other.Owns()) {
      Construct(std::move(other.own_));
    } else {
      at_ = other.at_;
    }
    return *this;
  }
  ~BorrowingOptional() { reset(); }

  /// Shows `value`, which outlives this.
  static BorrowingOptional Of(T& value) noexcept {
    BorrowingOptional shown;
    shown.at_ = std::addressof(value);
    return shown;
  }

  bool has_value() const noexcept { return at_ != nullptr; }
  T& operator*() & noexcept { return *at_; }
  const T& operator*() const& noexcept { return *at_; }
  T&& operator*() && noexcept { return std::move(*at_); }
  const T&& operator*() const&& noexcept { return std::move(*static_cast<const T*>(at_)); }
  template <typename... Args>
  T& emplace(Args&&... args) {
    reset();
    Construct(std::forward<Args>(args)...);
    return own_;
  }
  void reset() noexcept {
    if (Owns()) own_.~T();
    at_ = nullptr;
  }

 private:
  bool Owns() const noexcept { return at_ == std::addressof(own_); }
  template <typename... Args>
  void Construct(Args&&... args) {
    ::new (static_cast<void*>(std::addressof(own_))) T(std::forward<Args>(args)...);
    at_ = std::addressof(own_);
  }

  T* at_ = nullptr;
  union {
    T own_;
  };
};

/// What a StatusOr<T> keeps its value in.
template <typename T>
using StatusOrValue = std::conditional_t<!IsCopyable<T>::value && std::is_move_constructible_v<T>, BorrowingOptional<T>,
                                         std::optional<T>>;

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_BORROWING_OPTIONAL_H_
