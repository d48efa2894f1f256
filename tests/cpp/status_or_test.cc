#include "purlin/status_or.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace purlin {
namespace {

StatusOr<int> Half(int number) {
  if (number % 2 != 0) return InvalidArgumentError(std::to_string(number) + " is odd");
  return number / 2;
}

TEST(StatusOrTest, HoldsAValue) {
  StatusOr<int> half = Half(10);
  ASSERT_TRUE(half.ok());
  EXPECT_TRUE(half.status().ok());
  EXPECT_EQ(*half, 5);
  EXPECT_EQ(half.value(), 5);
  *half = 6;
  EXPECT_EQ(half.value_or(0), 6);
}

TEST(StatusOrTest, HoldsAnError) {
  const StatusOr<int> half = Half(3);
  EXPECT_FALSE(half.ok());
  EXPECT_EQ(half.status().message(), "3 is odd");
  EXPECT_EQ(half.value_or(-1), -1);
}

TEST(StatusOrTest, DefaultIsUnknown) {
  const StatusOr<std::string> nothing;
  EXPECT_TRUE(IsUnknown(nothing.status()));
}

TEST(StatusOrTest, AnOkStatusIsNoValue) {
  const StatusOr<int> wrong = OkStatus();
  const std::uint32_t line = __LINE__ - 1;
  ASSERT_FALSE(wrong.ok());
  EXPECT_TRUE(IsInternal(wrong.status()));
  EXPECT_EQ(wrong.status().location().line(), line) << "the place of whoever made it";
}

TEST(StatusOrTest, ValuesMoveInAndOut) {
  StatusOr<std::unique_ptr<int>> owner = std::make_unique<int>(7);
  ASSERT_TRUE(owner.ok());
  EXPECT_EQ(**owner, 7);
  const std::unique_ptr<int> taken = *std::move(owner);
  EXPECT_EQ(*taken, 7);
  StatusOr<std::unique_ptr<int>> error = AbortedError("x");
  EXPECT_EQ(*std::move(error).value_or(std::make_unique<int>(8)), 8);
}

TEST(StatusOrTest, ArrowReachesMembers) {
  StatusOr<std::vector<int>> values = std::vector<int>{1, 2};
  values->push_back(3);
  EXPECT_EQ(values->size(), 3U);
  const StatusOr<std::vector<int>>& same = values;
  EXPECT_EQ(same->back(), 3);
}

TEST(StatusOrTest, CopiesAndMovesAreWhole) {
  const StatusOr<std::string> original = std::string("text");
  StatusOr<std::string> copy = original;
  EXPECT_EQ(*copy, *original);
  copy = NotFoundError("no");
  EXPECT_TRUE(IsNotFound(copy.status()));
  copy = original;
  EXPECT_EQ(*copy, "text");
  EXPECT_TRUE(IsNotFound(StatusOr<int>(NotFoundError("no")).status()));
}

TEST(StatusOrTest, AnErrorThatWasMovedOutIsStillNoValue) {
  StatusOr<int> from = Half(3);
  const StatusOr<int> to = std::move(from);
  EXPECT_FALSE(to.ok());
  EXPECT_FALSE(from.ok());  // NOLINT(bugprone-use-after-move): the contract.
  StatusOr<int> half = Half(5);
  EXPECT_EQ(std::move(half).status().message(), "5 is odd");
  EXPECT_FALSE(half.ok());  // NOLINT(bugprone-use-after-move): the contract.
  EXPECT_EQ(half.value_or(-1), -1);
}

TEST(StatusOrDeathTest, ValueOfAnErrorEndsTheProcessAndSaysWhy) {
  const StatusOr<int> half = Half(3);
  EXPECT_DEATH(static_cast<void>(half.value()),
               "value\\(\\) of a StatusOr without a value: INVALID_ARGUMENT: 3 is odd");
  EXPECT_DEATH(static_cast<void>(*half), "3 is odd");
}

}  // namespace
}  // namespace purlin
