#include "purlin/status_macros.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "purlin/async_value.h"
#include "purlin/future.h"

namespace purlin {
namespace {

int calls = 0;

StatusOr<int> Half(int number) {
  ++calls;
  if (number % 2 != 0) return InvalidArgumentError(std::to_string(number) + " is odd");
  return number / 2;
}

Status CheckHalf(int number) {
  PURLIN_RETURN_IF_ERROR(Half(number).status());
  return OkStatus();
}

StatusOr<int> Quarter(int number) {
  PURLIN_ASSIGN_OR_RETURN(const int half, Half(number));
  int quarter = 0;
  PURLIN_ASSIGN_OR_RETURN(quarter, Half(half));
  return quarter;
}

TEST(StatusMacrosTest, ReturnTheFirstErrorAndEvaluateOnce) {
  calls = 0;
  EXPECT_TRUE(CheckHalf(2).ok());
  EXPECT_EQ(CheckHalf(3).message(), "3 is odd");
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().message(), "3 is odd");
  EXPECT_EQ(Quarter(5).status().message(), "5 is odd");
}

TEST(StatusMacrosTest, AnElseBelongsToTheIfBefore) {
  const auto answer = [](bool check) -> Status {
    if (check)
      PURLIN_RETURN_IF_ERROR(CheckHalf(3));
    else
      return AbortedError("not checked");
    return OkStatus();
  };
  EXPECT_TRUE(IsInvalidArgument(answer(true)));
  EXPECT_TRUE(IsAborted(answer(false)));
}

TEST(StatusMacrosTest, ValuesAreMovedAndMayBeTakenApart) {
  const auto length = [](StatusOr<std::pair<std::unique_ptr<std::string>, int>> made) -> StatusOr<std::size_t> {
    PURLIN_ASSIGN_OR_RETURN((auto [text, more]), std::move(made));
    return text->size() + static_cast<std::size_t>(more);
  };
  EXPECT_EQ(*length(std::make_pair(std::make_unique<std::string>("four"), 1)), 5U);
  EXPECT_TRUE(IsAborted(length(AbortedError("x")).status()));
}

TEST(StatusMacrosTest, LeaveFunctionsOfValuesAndFutures) {
  const auto value = [](int number) -> AsyncValueRef<int> {
    PURLIN_ASSIGN_OR_RETURN(int half, Half(number));
    return MakeAvailableAsyncValueRef<int>(half);
  };
  EXPECT_EQ(*value(4), 2);
  EXPECT_TRUE(IsInvalidArgument(value(3).GetError()));
  const auto future = [](int number) -> Future<int> {
    PURLIN_RETURN_IF_ERROR(CheckHalf(number));
    return number;
  };
  EXPECT_EQ(*future(4).Await(), 4);
  EXPECT_TRUE(IsInvalidArgument(future(3).Await().status()));
}

}  // namespace
}  // namespace purlin
