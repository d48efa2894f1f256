#include "purlin/span.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

namespace purlin {
namespace {

int Sum(Span<const int> values) {
  int sum = 0;
  for (const int value : values) sum += value;
  return sum;
}

TEST(SpanTest, IsEmptyByDefault) {
  const Span<int> span;
  EXPECT_TRUE(span.empty());
  EXPECT_EQ(span.size(), 0U);
  EXPECT_EQ(span.begin(), span.end());
}

TEST(SpanTest, TakesWhatIsContiguous) {
  const std::vector<int> vector = {1, 2, 3};
  const std::array<int, 2> array = {4, 5};
  int c_array[] = {6, 7};
  EXPECT_EQ(Sum(vector), 6);
  EXPECT_EQ(Sum(array), 9);
  EXPECT_EQ(Sum(c_array), 13);
  EXPECT_EQ(Sum({8, 9}), 17);
  EXPECT_EQ(Sum({vector.data(), 2}), 3);
  EXPECT_EQ(Sum({}), 0);
  EXPECT_EQ(Span<const char>(std::string("abc")).size(), 3U);
}

TEST(SpanTest, WritesThroughToTheElements) {
  std::vector<int> vector = {1, 2, 3};
  const Span<int> span = vector;
  span[1] = 20;
  *span.begin() = 10;
  EXPECT_EQ(vector, (std::vector<int>{10, 20, 3}));
  EXPECT_EQ(span.data(), vector.data());
}

TEST(SpanTest, MutableBecomesConstAndNeverTheOtherWayRound) {
  std::vector<int> vector = {1, 2};
  const Span<int> span = vector;
  EXPECT_EQ(Sum(span), 3);
  static_assert(std::is_convertible_v<Span<int>, Span<const int>>);
  static_assert(!std::is_convertible_v<Span<const int>, Span<int>>);
  static_assert(!std::is_convertible_v<const std::vector<int>&, Span<int>>);
}

TEST(SpanTest, GivesParts) {
  const std::vector<int> numbers = {1, 2, 3, 4};
  const Span<const int> all = numbers;
  EXPECT_EQ(all.front(), 1);
  EXPECT_EQ(all.back(), 4);
  EXPECT_EQ(all.subspan(1).size(), 3U);
  EXPECT_EQ(all.subspan(1, 2).back(), 3);
  EXPECT_EQ(all.subspan(1, 100).back(), 4);
  EXPECT_TRUE(all.subspan(4).empty());
  EXPECT_TRUE(all.subspan(5, 1).empty());
  EXPECT_EQ(all.first(2).back(), 2);
  EXPECT_EQ(all.first(9).size(), 4U);
  EXPECT_EQ(all.last(1).front(), 4);
  EXPECT_EQ(all.last(9).size(), 4U);
}

TEST(SpanTest, RefusesOtherElementTypes) {
  struct Base {};
  struct Derived : Base {
    int more;
  };
  static_assert(!std::is_convertible_v<std::vector<Derived>&, Span<Base>>, "the elements have another size");
  static_assert(!std::is_convertible_v<std::vector<int>&, Span<const long>>);
  static_assert(std::is_trivially_copyable_v<Span<int>>);
}

}  // namespace
}  // namespace purlin
