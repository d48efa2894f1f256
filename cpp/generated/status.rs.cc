#include "purlin/internal/abi.h"
#include <string>

#ifdef __clang__
#pragma clang diagnostic ignored "-Wdollar-in-identifier-extension"
#endif // __clang__

namespace purlin {
  inline namespace v0 {
    namespace internal {
      using StatusRep = ::purlin::v0::internal::StatusRep;
    }
  }
}

namespace purlin {
namespace ffi {
extern "C" {
void purlin$ffi$cxxbridge1$205$status_to_string(::purlin::v0::internal::StatusRep const *status, ::std::string &text) noexcept;
} // extern "C"

// Appends the status as text.
void status_to_string(::purlin::v0::internal::StatusRep const *status, ::std::string &text) noexcept {
  purlin$ffi$cxxbridge1$205$status_to_string(status, text);
}
} // namespace ffi
} // namespace purlin
