// Purlin: a list of numbers of which up to four stand in place. Not for users.
#ifndef PURLIN_INTERNAL_FEW_NUMBERS_H_
#define PURLIN_INTERNAL_FEW_NUMBERS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "purlin/span.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// A value that is made once and not changed but by assignment; a moved-from one is empty.
class FewNumbers final {
 public:
  explicit FewNumbers(Span<const std::int64_t> numbers) : size_(numbers.size()) {
    if (size_ > kFew) many_ = std::make_unique<std::int64_t[]>(size_);
    std::copy(numbers.begin(), numbers.end(), many_ ? many_.get() : few_);
  }
  FewNumbers(const FewNumbers& other) : FewNumbers(other.span()) {}
  FewNumbers(FewNumbers&& other) noexcept : size_(std::exchange(other.size_, 0)), many_(std::move(other.many_)) {
    std::copy(other.few_, other.few_ + kFew, few_);
  }
  FewNumbers& operator=(const FewNumbers& other) { return *this = FewNumbers(other); }
  FewNumbers& operator=(FewNumbers&& other) noexcept {
    many_ = std::move(other.many_);
    size_ = std::exchange(other.size_, 0);
    std::copy(other.few_, other.few_ + kFew, few_);
    return *this;
  }
  ~FewNumbers() = default;

  /// Lives as long as this, unchanged.
  [[nodiscard]] Span<const std::int64_t> span() const noexcept { return {many_ ? many_.get() : few_, size_}; }

  friend bool operator==(const FewNumbers& a, const FewNumbers& b) noexcept {
    return std::equal(a.span().begin(), a.span().end(), b.span().begin(), b.span().end());
  }

 private:
  static constexpr std::size_t kFew = 4;

  std::size_t size_;
  std::int64_t few_[kFew] = {};
  std::unique_ptr<std::int64_t[]> many_;
};

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_FEW_NUMBERS_H_
