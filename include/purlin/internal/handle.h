// Purlin: what all handles are. Not for users.
#ifndef PURLIN_INTERNAL_HANDLE_H_
#define PURLIN_INTERNAL_HANDLE_H_

#include <utility>

#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// One pointer to an object of Rust's; null: the handle is empty. A move empties the other handle. `Self` is the class
/// of the handle: its copy constructor, if it has one, takes a reference, and its destructor gives it up.
template <typename Self, typename Rep>
class Handle {
 public:
  /// For Purlin itself: takes over a reference.
  static Self Adopt(Rep* rep) noexcept { return Self(rep); }
  /// For Purlin itself.
  Rep* rep() const noexcept { return rep_; }

 protected:
  constexpr Handle() noexcept = default;                       // NOLINT(bugprone-crtp-constructor-accessibility)
  explicit constexpr Handle(Rep* rep) noexcept : rep_(rep) {}  // NOLINT(bugprone-crtp-constructor-accessibility)
  Handle(Handle&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}  // NOLINT(bugprone-crtp*)
  Handle& operator=(const Handle& other) noexcept {  // NOLINT(bugprone-unhandled-self-assignment): copied first
    Self copy(static_cast<const Self&>(other));
    std::swap(rep_, copy.rep_);
    return *this;
  }
  Handle& operator=(Handle&& other) noexcept {
    Self taken(static_cast<Self&&>(other));  // First, as it may be this.
    std::swap(rep_, taken.rep_);
    return *this;
  }
  ~Handle() = default;

  Rep* rep_ = nullptr;
};

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_HANDLE_H_
