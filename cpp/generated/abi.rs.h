#pragma once
#include <string>

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdollar-in-identifier-extension"
#endif // __clang__

namespace purlin {
namespace ffi {
// Appends Rust's view of the shared memory, as `name=value` lines.
void abi_layout(::std::string &text) noexcept;
} // namespace ffi
} // namespace purlin

#ifdef __clang__
#pragma clang diagnostic pop
#endif // __clang__
