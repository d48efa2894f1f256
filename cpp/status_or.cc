#include "purlin/status_or.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace purlin {
inline namespace v0 {
namespace internal {

void DieOfBadStatusOrAccess(const Status& status) noexcept {
  const std::string text = status.ToString();
  std::fprintf(stderr, "purlin: value() of a StatusOr without a value: %s\n", text.c_str());
  std::abort();
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin
