#include "purlin/status_or.h"

#include <gtest/gtest.h>

#include <any>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
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

struct Animal {
  virtual ~Animal() = default;
};
struct Dog final : Animal {
  int legs = 4;
};

StatusOr<std::unique_ptr<Animal>> Adopt(bool there) {
  if (!there) return NotFoundError("no dog");
  return std::make_unique<Dog>();
}

TEST(StatusOrTest, AValueConverts) {
  EXPECT_NE(*Adopt(true), nullptr) << "a pointer to a derived class";
  EXPECT_TRUE(IsNotFound(Adopt(false).status()));
  const StatusOr<std::string> text = "text";
  EXPECT_EQ(*text, "text");
  const StatusOr<std::optional<int>> maybe = 3;
  EXPECT_EQ(**maybe, 3);
  const StatusOr<std::optional<int>> none = std::nullopt;
  EXPECT_FALSE(none->has_value());
  const auto list = []() -> StatusOr<std::vector<int>> { return {{1, 2, 3}}; };
  EXPECT_EQ(list()->size(), 3U);
  static_assert(!std::is_convertible_v<int, StatusOr<std::vector<int>>>, "a constructor that is explicit stays so");
  EXPECT_EQ(StatusOr<std::vector<int>>(4)->size(), 4U);
  static_assert(!std::is_constructible_v<StatusOr<int>, std::string>);
}

TEST(StatusOrTest, AStatusIsAnErrorWhateverTheValueCouldBeMadeOf) {
  const StatusOr<std::any> error = AbortedError("x");
  EXPECT_TRUE(IsAborted(error.status()));
  struct Failure {
    operator Status() const { return DataLossError("lost"); }  // NOLINT(google-explicit-constructor)
  };
  const StatusOr<int> converted = Failure();
  EXPECT_TRUE(IsDataLoss(converted.status()));
}

TEST(StatusOrTest, AnotherStatusOrConverts) {
  Dog dog;
  StatusOr<Dog*> derived = &dog;
  const StatusOr<Animal*> base = derived;
  EXPECT_EQ(*base, &dog);
  EXPECT_EQ(*derived, &dog);
  StatusOr<std::unique_ptr<Dog>> owner = std::make_unique<Dog>();
  StatusOr<std::unique_ptr<Animal>> taken = std::move(owner);
  EXPECT_NE(*taken, nullptr);
  EXPECT_EQ(*owner, nullptr);  // NOLINT(bugprone-use-after-move): taken.
  taken = StatusOr<std::unique_ptr<Dog>>(AbortedError("gone"));
  EXPECT_TRUE(IsAborted(taken.status()));
  StatusOr<std::string> text = StatusOr<const char*>("text");
  EXPECT_EQ(*text, "text");
  const StatusOr<int> number(UnavailableError("later"));
  const StatusOr<double> same = number;
  EXPECT_EQ(same.status(), number.status());
  static_assert(!std::is_convertible_v<StatusOr<int>, StatusOr<std::vector<int>>>);
  static_assert(std::is_constructible_v<StatusOr<std::vector<int>>, StatusOr<int>>);
  static_assert(!std::is_constructible_v<StatusOr<int>, StatusOr<std::string>>);
  static_assert(!std::is_constructible_v<StatusOr<std::any>, StatusOr<int>>, "it would be ambiguous");
}

TEST(StatusOrTest, AStatusOrMayBeAValue) {
  const StatusOr<StatusOr<int>> inner = StatusOr<int>(AbortedError("inner"));
  ASSERT_TRUE(inner.ok());
  EXPECT_TRUE(IsAborted(inner->status()));
}

TEST(StatusOrTest, IsAssignedValuesAndErrors) {
  StatusOr<std::string> text = AbortedError("x");
  text = "a literal";
  EXPECT_EQ(*text, "a literal");
  EXPECT_TRUE(text.status().ok());
  const std::string other = "other";
  text = other;
  EXPECT_EQ(*text, "other");
  text = CancelledError("y");
  EXPECT_TRUE(IsCancelled(text.status()));
  text = StatusOr<const char*>("z");
  EXPECT_EQ(*text, "z");
  StatusOr<std::unique_ptr<Animal>> owner;
  owner = std::make_unique<Dog>();
  EXPECT_TRUE(owner.ok());
}

TEST(StatusOrTest, IsMadeInPlace) {
  StatusOr<std::string> text(std::in_place, 3, 'x');
  EXPECT_EQ(*text, "xxx");
  const StatusOr<std::vector<int>> list(std::in_place, {1, 2});
  EXPECT_EQ(list->size(), 2U);
  EXPECT_EQ(text.emplace(2, 'y'), "yy");
  StatusOr<std::vector<int>> failed = AbortedError("x");
  EXPECT_EQ(failed.emplace({4, 5, 6}).size(), 3U);
  EXPECT_TRUE(failed.ok());
  EXPECT_TRUE(failed.status().ok());
  StatusOr<std::string> message = AbortedError("a message that is longer than a string holds in place");
  EXPECT_EQ(message.emplace(message.status().message()), "a message that is longer than a string holds in place");
}

TEST(StatusOrTest, ComparesValuesAndErrors) {
  EXPECT_EQ(Half(4), Half(4));
  EXPECT_NE(Half(4), Half(6));
  EXPECT_NE(Half(4), Half(3));
  EXPECT_EQ(Half(3), Half(3));
  EXPECT_NE(Half(3), Half(5));
  StatusOr<int> moved = Half(3);
  const Status taken = std::move(moved).status();
  EXPECT_NE(moved, Half(4)) << taken;  // NOLINT(bugprone-use-after-move): the contract.
}

TEST(StatusOrTest, AnErrorIsIgnoredOnPurpose) { Half(3).IgnoreError(); }

TEST(StatusOrTest, AConstRvalueIsRead) {
  const StatusOr<std::string> text = "text";
  EXPECT_EQ(*std::move(text), "text");         // NOLINT(performance-move-const-arg): the overload.
  EXPECT_EQ(std::move(text).value(), "text");  // NOLINT(performance-move-const-arg,bugprone-use-after-move)
}

TEST(StatusOrDeathTest, ValueOfAnErrorEndsTheProcessAndSaysWhy) {
  const StatusOr<int> half = Half(3);
  EXPECT_DEATH(static_cast<void>(half.value()),
               "value\\(\\) of a StatusOr without a value: INVALID_ARGUMENT: 3 is odd");
  EXPECT_DEATH(static_cast<void>(*half), "3 is odd");
}

}  // namespace
}  // namespace purlin
