#include "purlin/version.h"

#include "cpp/internal/functions.h"

namespace purlin {
inline namespace v0 {

std::uint32_t AbiVersion() noexcept { return kAbiVersion; }

const char* VersionString() noexcept { return internal::purlin_version(); }

}  // namespace v0
}  // namespace purlin
