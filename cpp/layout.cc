#include "purlin/layout.h"

#include <string>
#include <vector>

#include "cpp/internal/shape.h"

namespace purlin {
inline namespace v0 {

Layout Layout::RowMajor(std::size_t rank) {
  std::vector<std::int64_t> minor_to_major;
  minor_to_major.reserve(rank);
  for (std::size_t left = rank; left > 0; --left) minor_to_major.push_back(static_cast<std::int64_t>(left - 1));
  return Layout(minor_to_major);
}

std::string Layout::ToString() const {
  std::string text = "{";
  for (const std::int64_t axis : minor_to_major()) {
    if (text.size() > 1) text += ',';
    internal::AppendNumber(text, axis);
  }
  return text += '}';
}

}  // namespace v0
}  // namespace purlin
