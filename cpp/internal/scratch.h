// Purlin: an array for the time of a call, of which few elements need no allocation.
#ifndef PURLIN_CPP_INTERNAL_SCRATCH_H_
#define PURLIN_CPP_INTERNAL_SCRATCH_H_

#include <cstddef>
#include <memory>

#include "cpp/internal/convert.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// `size` zeros of a type of numbers.
template <typename T>
class Scratch {
 public:
  explicit Scratch(std::size_t size) : size_(size) {
    if (size > kFew) many_ = std::make_unique<T[]>(size);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() = default;

  T* data() noexcept { return many_ ? many_.get() : few_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  static constexpr std::size_t kFew = 8;

  std::size_t size_;
  T few_[kFew] = {};
  std::unique_ptr<T[]> many_;
};

/// For Rust to write.
template <typename T>
rust::Slice<T> Writable(Scratch<T>& values) noexcept {
  return {values.data(), values.size()};
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_SCRATCH_H_
