#pragma once
#include "purlin/internal/abi.h"
#include <string>

#ifdef __clang__
#pragma clang diagnostic push
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
// Appends the status as text.
void status_to_string(::purlin::v0::internal::StatusRep const *status, ::std::string &text) noexcept;
} // namespace ffi
} // namespace purlin

#ifdef __clang__
#pragma clang diagnostic pop
#endif // __clang__
