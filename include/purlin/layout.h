// Purlin: in which order the elements of an array stand in the memory of a device.
//
// ```cpp
// const purlin::Layout row_major = purlin::Layout::RowMajor(2);  // {1,0}
// const purlin::Layout column_major({0, 1});
// ```
//
// A permutation of the dimensions, the fastest first, as XLA writes it: {1,0} of f32[2,3] is row-major (neighbours
// along dimension 1 are neighbours in memory), {0,1} column-major. Arrays on a device are dense, and types narrower
// than a byte share bytes along that order. There are no tiles.
//
// A Layout is not checked when it is made. The calls that take it fail with kInvalidArgument, naming the entry, if it
// is no permutation of the shape's dimensions. "An unsound layout" stands for that.
#ifndef PURLIN_LAYOUT_H_
#define PURLIN_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "purlin/export.h"
#include "purlin/internal/few_numbers.h"
#include "purlin/span.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// A value: copies are independent. Many readers or one writer, as for any value.
class Layout final {
 public:
  /// Dimensions from minor (contiguous) to major, each once. Nothing is checked.
  explicit Layout(Span<const std::int64_t> minor_to_major) : minor_to_major_(minor_to_major) {}
  /// The last dimension contiguous, the first outermost: {rank-1,...,1,0}. The layout of calls that are given none.
  PURLIN_API static Layout RowMajor(std::size_t rank);

  /// As given. The span lives as long as the layout, unchanged.
  [[nodiscard]] Span<const std::int64_t> minor_to_major() const noexcept { return minor_to_major_.span(); }
  /// Number of dimensions.
  [[nodiscard]] std::size_t rank() const noexcept { return minor_to_major_.span().size(); }

  /// As XLA writes it: "{1,0}".
  [[nodiscard]] PURLIN_API std::string ToString() const;

  /// The same permutation.
  friend bool operator==(const Layout& a, const Layout& b) noexcept { return a.minor_to_major_ == b.minor_to_major_; }
  /// Another one.
  friend bool operator!=(const Layout& a, const Layout& b) noexcept { return !(a == b); }

 private:
  internal::FewNumbers minor_to_major_;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_LAYOUT_H_
