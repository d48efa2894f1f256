// Purlin: what purlin/internal/abi.h declares and no other file defines.
#include "purlin/internal/abi.h"

#include <string>

#include "purlin-bridge/src/abi.rs.h"

namespace purlin {
inline namespace v0 {
namespace internal {

void ReportException(const char* place, const char* what) noexcept { ffi::report_exception(place, what); }

std::string RustAbiLayout() {
  std::string text;
  ffi::abi_layout(text);
  return text;
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin
