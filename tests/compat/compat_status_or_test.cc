// absl::StatusOr and what else of abseil tsl's API speaks. See api.h.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/compat/api.h"

namespace {

using absl::StatusOr;

absl::Status Broken() { return absl::AbortedError("broken"); }

StatusOr<int> Half(int number) {
  if (number % 2 != 0) return absl::InvalidArgumentError("odd");
  return number / 2;
}

struct Animal {
  virtual ~Animal() = default;
};
struct Dog final : Animal {};

TEST(CompatStatusOrTest, HoldsAValueOrAnError) {
  EXPECT_EQ(*Half(4), 2);
  EXPECT_EQ(Half(4).status(), absl::OkStatus());
  EXPECT_TRUE(absl::IsInvalidArgument(Half(3).status()));
  EXPECT_EQ(Half(3).value_or(7), 7);
  EXPECT_TRUE(absl::IsUnknown(StatusOr<int>().status()));
}

TEST(CompatStatusOrTest, ValuesConvert) {
  const StatusOr<std::string> text = "text";
  EXPECT_EQ(*text, "text");
  const StatusOr<std::unique_ptr<Animal>> animal = std::make_unique<Dog>();
  EXPECT_TRUE(animal.ok());
  const StatusOr<std::optional<int>> none = std::nullopt;
  EXPECT_FALSE(none->has_value());
  static_assert(!std::is_convertible_v<int, StatusOr<std::vector<int>>>);
  static_assert(std::is_constructible_v<StatusOr<std::vector<int>>, int>);
}

TEST(CompatStatusOrTest, OtherStatusOrsConvert) {
  StatusOr<std::unique_ptr<Dog>> dog = std::make_unique<Dog>();
  const StatusOr<std::unique_ptr<Animal>> animal = std::move(dog);
  EXPECT_NE(*animal, nullptr);
  Dog other;
  const StatusOr<Dog*> pointer = &other;
  const StatusOr<Animal*> base = pointer;
  EXPECT_EQ(*base, &other);
  const StatusOr<double> failed = StatusOr<int>(Broken());
  EXPECT_EQ(failed.status(), Broken());
}

TEST(CompatStatusOrTest, IsAssigned) {
  StatusOr<std::string> text;
  text = "one";
  EXPECT_EQ(*text, "one");
  text = Broken();
  EXPECT_EQ(text.status(), Broken());
  text = StatusOr<const char*>("two");
  EXPECT_EQ(*text, "two");
}

TEST(CompatStatusOrTest, IsMadeInPlace) {
  StatusOr<std::vector<int>> values(std::in_place, {1, 2, 3});
  EXPECT_EQ(values->size(), 3U);
  EXPECT_EQ(values.emplace(2U, 5), std::vector<int>(2, 5));
  StatusOr<std::vector<int>> failed = Broken();
  failed.emplace({4});
  EXPECT_EQ(failed.status(), absl::OkStatus());
}

TEST(CompatStatusOrTest, Compares) {
  EXPECT_EQ(Half(4), Half(4));
  EXPECT_NE(Half(4), Half(2));
  EXPECT_NE(Half(4), Half(3));
  EXPECT_EQ(Half(3), Half(5));
}

TEST(CompatStatusOrTest, MovesItsValueOut) {
  StatusOr<std::unique_ptr<int>> owned = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = *std::move(owned);
  EXPECT_EQ(*taken, 3);
  EXPECT_EQ(*StatusOr<std::unique_ptr<int>>(Broken()).value_or(std::make_unique<int>(4)), 4);
}

TEST(CompatStatusOrTest, AnErrorIsIgnoredOnPurpose) {
  Half(3).IgnoreError();
  Broken().IgnoreError();
}

TEST(CompatStatusTest, UpdateKeepsTheFirstError) {
  absl::Status status;
  status.Update(absl::OkStatus());
  EXPECT_TRUE(status.ok());
  status.Update(Broken());
  status.Update(absl::NotFoundError("second"));
  EXPECT_EQ(status, Broken());
}

TEST(CompatStatusTest, CodesHaveTheirNumbersAndNames) {
  EXPECT_EQ(static_cast<int>(absl::StatusCode::kAborted), 10);
  EXPECT_EQ(Broken().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(absl::StatusCodeToString(absl::StatusCode::kResourceExhausted), "RESOURCE_EXHAUSTED");
  EXPECT_EQ(absl::Status(absl::StatusCode::kOk, "ignored"), absl::OkStatus());
  EXPECT_EQ(absl::Status(absl::StatusCode::kDataLoss, "lost"), absl::DataLossError("lost"));
  EXPECT_EQ(absl::Status(absl::StatusCode::kCancelled, ""), absl::CancelledError());
}

TEST(CompatStatusTest, PayloadsAreKeptAndCompared) {
  absl::Status status = Broken();
  const absl::Status before = status;
  status.SetPayload("url", std::decay_t<decltype(*status.GetPayload("url"))>("bytes"));
  EXPECT_NE(status, before);
  EXPECT_TRUE(status.GetPayload("url").has_value());
  EXPECT_FALSE(status.GetPayload("other").has_value());
  EXPECT_TRUE(status.ErasePayload("url"));
  EXPECT_FALSE(status.ErasePayload("url"));
  EXPECT_EQ(status, before);
}

TEST(CompatMacroTest, ReturnIfErrorReturnsTheError) {
  const auto check = [](int number) -> absl::Status {
    TF_RETURN_IF_ERROR(Half(number).status());
    return absl::OkStatus();
  };
  EXPECT_EQ(check(2), absl::OkStatus());
  EXPECT_TRUE(absl::IsInvalidArgument(check(3)));
}

TEST(CompatMacroTest, AssignOrReturnAssignsOrReturns) {
  const auto quarter = [](int number) -> StatusOr<int> {
    TF_ASSIGN_OR_RETURN(const int half, Half(number));
    int result = 0;
    TF_ASSIGN_OR_RETURN(result, Half(half));
    return result;
  };
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_TRUE(absl::IsInvalidArgument(quarter(6).status()));
}

TEST(CompatMacroTest, ReturnIfErrorReturnsAFuture) {
  const auto make = [](int number) -> tsl::Future<int> {
    TF_RETURN_IF_ERROR(Half(number).status());
    return number;
  };
  EXPECT_EQ(*make(2).Await(), 2);
  EXPECT_TRUE(absl::IsInvalidArgument(make(3).Await().status()));
}

TEST(CompatSpanTest, GivesParts) {
  const std::vector<int> numbers = {1, 2, 3, 4};
  const absl::Span<const int> all = numbers;
  EXPECT_EQ(all.subspan(1, 2).front(), 2);
  EXPECT_EQ(all.subspan(1).back(), 4);
  EXPECT_EQ(all.first(2).size(), 2U);
  EXPECT_EQ(all.last(3).front(), 2);
  EXPECT_FALSE(all.empty());
}

}  // namespace
