#include "purlin/dtype.h"

#include "cpp/internal/convert.h"
#include "purlin-bridge/src/dtype.rs.h"

namespace purlin {
inline namespace v0 {

std::string_view DTypeName(DType dtype) noexcept {
  return internal::FromRust(ffi::dtype_name(static_cast<std::uint8_t>(dtype)));
}

}  // namespace v0
}  // namespace purlin
