// Purlin: the name of an event or a task, as it appears in errors, reports and traces.
//
// ```cpp
// constexpr purlin::Label kLabel("weights copied");  // a literal: the text is not copied
// ```
#ifndef PURLIN_LABEL_H_
#define PURLIN_LABEL_H_

#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// A string that outlives the program's events: write a literal. One word; not copied, never freed.
///
/// "Static storage", here and in all headers, means storage in code that is never unloaded: events, tasks and reports
/// keep the addresses of labels, of places (source_location.h) and of the code of closures, and read them after
/// dlclose(). So a shared library that uses Purlin is never unloaded. Link it with `-Wl,-z,nodelete`, as the CMake
/// targets, the Bazel target and pkg-config say, whichever libpurlin it has; code that makes a client, a pool or a
/// watchdog is pinned besides, by the library. dlclose() then returns at once, and statics are destroyed when the
/// process ends (docs/ffi.md).
class Label final {
 public:
  /// "".
  constexpr Label() noexcept = default;
  /// `text` has static storage duration, in code that is never unloaded, and ends with a NUL; null counts as "".
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
