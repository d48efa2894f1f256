// Purlin: the place in the source where something was made. `std::source_location` for C++17.
//
// ```cpp
// #include <cstdio>
//
// void Trace(const char* text, purlin::SourceLocation caller = purlin::SourceLocation::Current()) {
//   std::printf("%s:%u: %s\n", caller.file(), caller.line(), text);
// }
// ```
#ifndef PURLIN_SOURCE_LOCATION_H_
#define PURLIN_SOURCE_LOCATION_H_

#include <cstdint>

#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// A file and a line. As a default argument, `SourceLocation::Current()` is the place of the caller.
class SourceLocation {
 public:
  /// No place: file "", line 0.
  constexpr SourceLocation() noexcept = default;

  /// `file` must have static storage duration, in code that is never unloaded (label.h), and end with a NUL, as
  /// `__FILE__` does; it is not copied. Null counts as "".
  constexpr SourceLocation(const char* file, std::uint32_t line) noexcept
      : file_(file == nullptr ? "" : file), line_(line) {}

  /// The place where this default argument is evaluated.
  static constexpr SourceLocation Current(const char* file = __builtin_FILE(),
                                          std::uint32_t line = __builtin_LINE()) noexcept {
    return SourceLocation(file, line);
  }

  /// Path as the compiler was given it; never null.
  constexpr const char* file() const noexcept { return file_; }
  /// Line from 1; 0 when unknown.
  constexpr std::uint32_t line() const noexcept { return line_; }

 private:
  const char* file_ = "";
  std::uint32_t line_ = 0;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_SOURCE_LOCATION_H_
