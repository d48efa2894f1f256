#include "purlin/version.h"

#include "purlin-bridge/src/abi.rs.h"

namespace purlin {
inline namespace v0 {

std::uint32_t AbiVersion() noexcept { return kAbiVersion; }

const char* VersionString() noexcept { return ffi::version(); }

}  // namespace v0
}  // namespace purlin
