#include "purlin/status.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace purlin {
namespace {

using Payloads = std::vector<std::pair<std::string, std::string>>;

Payloads PayloadsOf(const Status& status) {
  Payloads payloads;
  status.ForEachPayload([&](std::string_view type_url, std::string_view payload) {
    payloads.emplace_back(std::string(type_url), std::string(payload));
  });
  return payloads;
}

TEST(StatusTest, DefaultIsOk) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kOk);
  EXPECT_EQ(status.raw_code(), 0);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.ToString(), "OK");
  EXPECT_EQ(status.location().line(), 0U);
  EXPECT_STREQ(status.location().file(), "");
  EXPECT_EQ(status, OkStatus());
}

TEST(StatusTest, CodeOkDropsTheMessage) {
  const Status status(StatusCode::kOk, "ignored");
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.message(), "");
}

TEST(StatusTest, ErrorKeepsCodeMessageAndPlace) {
  const Status status = InvalidArgumentError("dims[1] is -3");
  const std::uint32_t line = __LINE__ - 1;
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "dims[1] is -3");
  EXPECT_STREQ(status.location().file(), __FILE__);
  EXPECT_EQ(status.location().line(), line);
  EXPECT_EQ(status.ToString(), "INVALID_ARGUMENT: dims[1] is -3 (at " __FILE__ ":" + std::to_string(line) + ")");
}

TEST(StatusTest, PlaceMayBeGiven) {
  const Status status(StatusCode::kAborted, "x", SourceLocation("elsewhere.cc", 7));
  EXPECT_EQ(status.ToString(), "ABORTED: x (at elsewhere.cc:7)");
  const Status nowhere(StatusCode::kAborted, "x", SourceLocation());
  EXPECT_EQ(nowhere.ToString(), "ABORTED: x");
}

struct Canonical {
  Status (*make)(std::string_view, SourceLocation);
  bool (*is)(const Status&) noexcept;
  int number;
  std::string_view name;
};

const Canonical kCanonical[] = {
    {CancelledError, IsCancelled, 1, "CANCELLED"},
    {UnknownError, IsUnknown, 2, "UNKNOWN"},
    {InvalidArgumentError, IsInvalidArgument, 3, "INVALID_ARGUMENT"},
    {DeadlineExceededError, IsDeadlineExceeded, 4, "DEADLINE_EXCEEDED"},
    {NotFoundError, IsNotFound, 5, "NOT_FOUND"},
    {AlreadyExistsError, IsAlreadyExists, 6, "ALREADY_EXISTS"},
    {PermissionDeniedError, IsPermissionDenied, 7, "PERMISSION_DENIED"},
    {ResourceExhaustedError, IsResourceExhausted, 8, "RESOURCE_EXHAUSTED"},
    {FailedPreconditionError, IsFailedPrecondition, 9, "FAILED_PRECONDITION"},
    {AbortedError, IsAborted, 10, "ABORTED"},
    {OutOfRangeError, IsOutOfRange, 11, "OUT_OF_RANGE"},
    {UnimplementedError, IsUnimplemented, 12, "UNIMPLEMENTED"},
    {InternalError, IsInternal, 13, "INTERNAL"},
    {UnavailableError, IsUnavailable, 14, "UNAVAILABLE"},
    {DataLossError, IsDataLoss, 15, "DATA_LOSS"},
    {UnauthenticatedError, IsUnauthenticated, 16, "UNAUTHENTICATED"},
};

TEST(StatusTest, CodesNamesAndPredicatesAreThoseOfAbsl) {
  for (const Canonical& row : kCanonical) {
    const Status status = row.make("why", SourceLocation());
    EXPECT_EQ(status.raw_code(), row.number);
    EXPECT_EQ(StatusCodeToString(status.code()), row.name);
    EXPECT_EQ(status.ToString(), std::string(row.name) + ": why");
    for (const Canonical& other : kCanonical) EXPECT_EQ(other.is(status), &other == &row) << row.name;
    EXPECT_FALSE(row.is(OkStatus()));
  }
}

TEST(StatusTest, NumbersOutsideTheCodesHaveNoNameAndBecomeUnknown) {
  for (const int number : {-1, 17, 1000}) {
    EXPECT_EQ(StatusCodeToString(static_cast<StatusCode>(number)), "");
    EXPECT_EQ(Status(static_cast<StatusCode>(number), "x").code(), StatusCode::kUnknown);
  }
  EXPECT_EQ(StatusCodeToString(StatusCode::kOk), "OK");
}

TEST(StatusTest, PrintsItself) {
  std::ostringstream os;
  os << Status(StatusCode::kNotFound, "m", SourceLocation()) << " " << StatusCode::kDataLoss << " " << OkStatus();
  EXPECT_EQ(os.str(), "NOT_FOUND: m DATA_LOSS OK");
}

TEST(StatusTest, BytesThatAreNotUtf8AreReplaced) {
  const Status status = InternalError(
      "a\xff"
      "b");
  EXPECT_EQ(status.message(),
            "a\xEF\xBF\xBD"
            "b");
  const Status nul = InternalError(std::string_view("a\0b", 3));
  EXPECT_EQ(nul.message(), std::string_view("a\0b", 3));
}

TEST(StatusTest, CopiesShareTheRecord) {
  Status copy;
  {
    const Status original = NotFoundError("gone");
    copy = original;
    EXPECT_EQ(copy.message().data(), original.message().data()) << "one record";
  }
  EXPECT_EQ(copy.message(), "gone") << "outlives the first";
}

TEST(StatusTest, MovedFromIsOk) {
  Status from = NotFoundError("gone");
  Status to = std::move(from);
  EXPECT_TRUE(from.ok());  // NOLINT(bugprone-use-after-move): the contract.
  EXPECT_TRUE(IsNotFound(to));
  from = std::move(to);
  EXPECT_TRUE(to.ok());  // NOLINT(bugprone-use-after-move): the contract.
  EXPECT_TRUE(IsNotFound(from));
}

TEST(StatusTest, SelfAssignmentChangesNothing) {
  Status status = AbortedError("again");
  Status& same = status;
  status = same;
  EXPECT_EQ(status.message(), "again");
  status = std::move(same);
  EXPECT_EQ(status.message(), "again");
}

TEST(StatusTest, AssignmentLetsTheOldErrorGo) {
  Status status = AbortedError("old");
  status = InternalError("new");
  EXPECT_EQ(status.message(), "new");
  status = OkStatus();
  EXPECT_TRUE(status.ok());
  Status a = AbortedError("a");
  swap(status, a);
  EXPECT_TRUE(a.ok());
  EXPECT_EQ(status.message(), "a");
}

TEST(StatusTest, UpdateKeepsTheFirstError) {
  Status status;
  status.Update(OkStatus());
  EXPECT_TRUE(status.ok());
  status.Update(AbortedError("first"));
  status.Update(InternalError("second"));
  status.Update(OkStatus());
  EXPECT_EQ(status.message(), "first");
}

TEST(StatusTest, EqualityIsCodeMessageAndPayloadsButNeitherPlaceNorOrder) {
  const Status a(StatusCode::kAborted, "m", SourceLocation("a.cc", 1));
  const Status b(StatusCode::kAborted, "m", SourceLocation("b.cc", 2));
  EXPECT_EQ(a, b);
  EXPECT_NE(a, AbortedError("n"));
  EXPECT_NE(a, InternalError("m"));
  EXPECT_NE(a, OkStatus());
  EXPECT_NE(OkStatus(), a);
  Status c = b;
  c.SetPayload("t", "1");
  EXPECT_NE(a, c);
  EXPECT_EQ(c, Status(c));
  Status d = b;
  c.SetPayload("u", "2");
  d.SetPayload("u", "2");
  EXPECT_NE(c, d);
  d.SetPayload("t", "1");
  EXPECT_EQ(c, d);
}

TEST(StatusTest, PayloadsAreSetReplacedAndErased) {
  Status status = InternalError("x");
  EXPECT_EQ(status.GetPayload("t/a"), std::nullopt);
  status.SetPayload("t/a", "1");
  status.SetPayload("t/b", std::string_view("\0\xff", 2));
  EXPECT_EQ(status.GetPayload("t/a"), "1");
  EXPECT_EQ(status.GetPayload("t/b"), std::string("\0\xff", 2));
  status.SetPayload("t/a", "2");
  EXPECT_EQ(PayloadsOf(status), (Payloads{{"t/a", "2"}, {"t/b", std::string("\0\xff", 2)}}));
  EXPECT_TRUE(status.ErasePayload("t/a"));
  EXPECT_FALSE(status.ErasePayload("t/a"));
  EXPECT_EQ(PayloadsOf(status), (Payloads{{"t/b", std::string("\0\xff", 2)}}));
}

TEST(StatusTest, AnEmptyPayloadIsThere) {
  Status status = InternalError("x");
  status.SetPayload("", "");
  EXPECT_EQ(status.GetPayload(""), "");
  EXPECT_EQ(PayloadsOf(status), (Payloads{{"", ""}}));
}

TEST(StatusTest, PayloadsOfCopiesAreTheirOwn) {
  Status status = InternalError("x");
  status.SetPayload("t", "1");
  const Status copy = status;
  status.SetPayload("t", "2");
  EXPECT_EQ(copy.GetPayload("t"), "1");
  EXPECT_EQ(status.GetPayload("t"), "2");
  Status third = copy;
  EXPECT_TRUE(third.ErasePayload("t"));
  EXPECT_EQ(copy.GetPayload("t"), "1");
}

TEST(StatusTest, OkTakesNoPayload) {
  Status status;
  status.SetPayload("t", "1");
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.GetPayload("t"), std::nullopt);
  EXPECT_FALSE(status.ErasePayload("t"));
  EXPECT_EQ(PayloadsOf(status), Payloads());
}

TEST(StatusTest, PayloadsArePartOfTheText) {
  Status status(StatusCode::kInternal, "x", SourceLocation("f.cc", 3));
  status.SetPayload("t", "a\n");
  EXPECT_EQ(status.ToString(), "INTERNAL: x [t='a\\n'] (at f.cc:3)");
}

TEST(StatusTest, ThreadsShareARecord) {
  const Status status = DataLossError("shared");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&status] {
      for (int i = 0; i < 10'000; ++i) {
        Status copy = status;
        ASSERT_EQ(copy.message(), "shared");
        if (i % 100 == 0) copy.SetPayload("t", "mine");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(status.GetPayload("t"), std::nullopt);
}

}  // namespace
}  // namespace purlin
