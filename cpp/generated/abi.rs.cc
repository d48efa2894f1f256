#include <string>

#ifdef __clang__
#pragma clang diagnostic ignored "-Wdollar-in-identifier-extension"
#endif // __clang__

namespace purlin {
namespace ffi {
extern "C" {
void purlin$ffi$cxxbridge1$205$abi_layout(::std::string &text) noexcept;
} // extern "C"

// Appends Rust's view of the shared memory, as `name=value` lines.
void abi_layout(::std::string &text) noexcept {
  purlin$ffi$cxxbridge1$205$abi_layout(text);
}
} // namespace ffi
} // namespace purlin
