// Digits: random numbers that are the same everywhere, which the standard library's distributions are not.
#ifndef DIGITS_RANDOM_H_
#define DIGITS_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace digits {

/// splitmix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
  }

  /// Fisher and Yates. The remainder's bias is below count / 2^64.
  template <typename T>
  void Shuffle(std::vector<T>& items) {
    for (std::size_t count = items.size(); count > 1; --count) std::swap(items[count - 1], items[Next() % count]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace digits

#endif  // DIGITS_RANDOM_H_
