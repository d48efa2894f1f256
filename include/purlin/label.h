// Purlin: the name of an event or a task, as it appears in errors, reports and traces.
#ifndef PURLIN_LABEL_H_
#define PURLIN_LABEL_H_

#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// A string that outlives the program's events: write a literal. One word; not copied, never freed.
class Label final {
 public:
  /// "".
  constexpr Label() noexcept = default;
  /// `text` has static storage duration and ends with a NUL; null counts as "".
  constexpr Label(const char* text) noexcept  // NOLINT(google-explicit-constructor)
      : text_(text == nullptr ? "" : text) {}
  /// Never null.
  constexpr const char* c_str() const noexcept { return text_; }

 private:
  const char* text_ = "";
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_LABEL_H_
