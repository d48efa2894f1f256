// Purlin: a view of contiguous elements. `std::span` for C++17, with the conversions that absl::Span users expect.
//
// ```cpp
// #include <vector>
//
// int Sum(purlin::Span<const int> numbers) {
//   int sum = 0;
//   for (const int number : numbers) sum += number;
//   return sum;
// }
// const std::vector<int> numbers = {1, 2};
// const int ten = Sum(numbers) + Sum({3, 4});
// ```
#ifndef PURLIN_SPAN_H_
#define PURLIN_SPAN_H_

#include <array>
#include <cstddef>
#include <initializer_list>
#include <type_traits>

#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// `size()` elements at `data()`, not owned: their owner must keep them alive while the span is used. As a parameter it
/// takes a vector, an array, a `{a, b}` list (const elements only) or a pointer and a count.
template <typename T>
class Span {
 public:
  /// The element type without `const`.
  using value_type = std::remove_cv_t<T>;
  /// Iterators are plain pointers.
  using iterator = T*;

  /// No elements.
  constexpr Span() noexcept = default;
  /// The elements `data[0] .. data[size - 1]`.
  constexpr Span(T* data, std::size_t size) noexcept : data_(data), size_(size) {}
  /// All of a C array.
  template <std::size_t N>
  constexpr Span(T (&array)[N]) noexcept : data_(array), size_(N) {}  // NOLINT(google-explicit-constructor)
  /// All of a container with `data()` and `size()`: a vector, a std::array, a string, another span.
  template <typename C, typename = std::enable_if_t<std::is_convertible<
                            std::remove_pointer_t<decltype(std::declval<C&>().data())> (*)[], T (*)[]>::value>>
  constexpr Span(C&& container) noexcept  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : data_(container.data()), size_(container.size()) {}
  /// A list such as `{a, b}`; it lives until the end of the full expression, so use it for parameters only.
  template <typename U = T, typename = std::enable_if_t<std::is_const<U>::value>>
  constexpr Span(std::initializer_list<value_type> list) noexcept  // NOLINT(google-explicit-constructor)
      : Span(list.begin(), list.size()) {}

  /// First element; any value when `empty()`.
  constexpr T* data() const noexcept { return data_; }
  /// Number of elements.
  constexpr std::size_t size() const noexcept { return size_; }
  /// `size() == 0`.
  constexpr bool empty() const noexcept { return size_ == 0; }
  /// Element `index`, where `index < size()`; unchecked.
  constexpr T& operator[](std::size_t index) const noexcept { return data_[index]; }
  /// Element 0, where the span is not empty; unchecked.
  constexpr T& front() const noexcept { return data_[0]; }
  /// The last element, where the span is not empty; unchecked.
  constexpr T& back() const noexcept { return data_[size_ - 1]; }
  /// The elements `offset .. offset + count - 1`, or, if there are fewer, to the end; none where `offset > size()`.
  constexpr Span subspan(std::size_t offset, std::size_t count = static_cast<std::size_t>(-1)) const noexcept {
    if (offset > size_) return Span();
    return Span(data_ + offset, count < size_ - offset ? count : size_ - offset);
  }
  /// The first `count` elements, or all.
  constexpr Span first(std::size_t count) const noexcept { return subspan(0, count); }
  /// The last `count` elements, or all.
  constexpr Span last(std::size_t count) const noexcept { return subspan(count < size_ ? size_ - count : 0); }
  /// Iteration.
  constexpr iterator begin() const noexcept { return data_; }
  /// Iteration.
  constexpr iterator end() const noexcept { return data_ + size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_SPAN_H_
