// purlin/adapters/absl.h, with whichever abseil this is compiled against.
#include "purlin/adapters/absl.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/promise.h"
#include "purlin/user_context.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

using adapters::FromAbsl;
using adapters::ToAbsl;

TEST(AbslStatusTest, EveryCodeCrossesBothWaysWithItsMessage) {
  for (int code = 1; code <= 16; ++code) {
    const Status ours(static_cast<StatusCode>(code), "message " + std::to_string(code));
    const absl::Status theirs = ToAbsl(ours);
    EXPECT_EQ(theirs, absl::Status(static_cast<absl::StatusCode>(code), "message " + std::to_string(code)));
    EXPECT_EQ(absl::StatusCodeToString(theirs.code()), StatusCodeToString(ours.code()));
    EXPECT_EQ(FromAbsl(theirs), ours);
  }
  EXPECT_TRUE(ToAbsl(OkStatus()).ok());
  EXPECT_TRUE(FromAbsl(absl::OkStatus()).ok());
}

TEST(AbslStatusTest, ACodeThatIsNoneBecomesUnknownAndKeepsTheRest) {
  absl::Status theirs(static_cast<absl::StatusCode>(4711), "odd");
  theirs.SetPayload("url", absl::Cord("bytes"));
  const Status ours = FromAbsl(theirs);
  EXPECT_EQ(ours.code(), StatusCode::kUnknown);
  EXPECT_EQ(ours.message(), "odd");
  EXPECT_EQ(ours.GetPayload("url"), "bytes");
}

TEST(AbslStatusTest, EveryPayloadCrossesBothWays) {
  const std::string binary("\0\xff\x80 bytes", 9);
  absl::Cord in_pieces;
  for (int piece = 0; piece < 100; ++piece)
    in_pieces.Append(absl::string_view(std::string(1000, static_cast<char>(piece))));
  absl::Status theirs = absl::DataLossError("lost");
  theirs.SetPayload("type.googleapis.com/a", absl::Cord(binary));
  theirs.SetPayload("type.googleapis.com/b", absl::Cord());
  theirs.SetPayload("type.googleapis.com/c", in_pieces);
  const Status ours = FromAbsl(theirs);
  EXPECT_EQ(ours.GetPayload("type.googleapis.com/a"), binary);
  EXPECT_EQ(ours.GetPayload("type.googleapis.com/b"), "");
  EXPECT_EQ(ours.GetPayload("type.googleapis.com/c"), std::string(in_pieces));
  int payloads = 0;
  ours.ForEachPayload([&](std::string_view, std::string_view) { ++payloads; });
  EXPECT_EQ(payloads, 3);
  EXPECT_EQ(ToAbsl(ours), theirs);
}

TEST(AbslStatusTest, BytesThatAreNotUtf8AreReplacedInTheMessage) {
  EXPECT_EQ(FromAbsl(absl::InternalError("a\xff"
                                         "b"))
                .message(),
            "a\xEF\xBF\xBD"
            "b");
}

TEST(AbslStatusTest, TheUserContextCrosses) {
  const UserContext context = UserContext::Create("train.py:42");
  const UserContextScope scope(context);
  EventPromise promise("work");
  const Event event = promise.event();
  promise.SetError(AbortedError("stopped"));
  const absl::Status theirs = ToAbsl(event.error());
  const auto payload = theirs.GetPayload(absl::string_view(kUserContextPayload.data(), kUserContextPayload.size()));
  ASSERT_TRUE(payload.has_value());
  EXPECT_EQ(std::string(*payload), std::to_string(context.id()));
  const std::string shown = ExpandUserContexts(FromAbsl(theirs)).ToString();
  EXPECT_NE(shown.find("train.py:42"), std::string::npos) << shown;
}

TEST(AbslStatusTest, ThePlaceIsThatOfTheCrossing) {
  const Status ours = FromAbsl(absl::InternalError("x"));
  EXPECT_NE(std::string(ours.location().file()).find("absl_test.cc"), std::string::npos);
}

TEST(AbslStatusOrTest, ValuesAndErrorsCrossBothWays) {
  EXPECT_EQ(*ToAbsl(StatusOr<std::string>(std::string("value"))), "value");
  EXPECT_EQ(*FromAbsl(absl::StatusOr<std::string>("value")), "value");
  absl::Status error = absl::NotFoundError("nowhere");
  error.SetPayload("url", absl::Cord("bytes"));
  const StatusOr<int> ours = FromAbsl(absl::StatusOr<int>(error));
  EXPECT_EQ(ours.status(), FromAbsl(error));
  EXPECT_EQ(ToAbsl(ours).status(), error);
}

TEST(AbslStatusOrTest, AMoveOnlyValueIsMoved) {
  const NoLeak no_leak;
  absl::StatusOr<std::unique_ptr<Counted>> theirs = std::make_unique<Counted>(7);
  Counted* const address = theirs->get();
  StatusOr<std::unique_ptr<Counted>> ours = FromAbsl(std::move(theirs));
  EXPECT_EQ(ours->get(), address);
  EXPECT_EQ(ToAbsl(std::move(ours))->get(), address);
}

TEST(AbslAnyInvocableTest, IsATaskThatIsCalledOnceWhateverItsQualifiers) {
  const NoLeak no_leak;
  CountingExecutor executor;
  int calls = 0;
  const auto closure = [&calls, counted = Counted(1)] { calls += counted.value; };
  EXPECT_TRUE(executor.Execute(FromAbsl(absl::AnyInvocable<void()>(closure))).ok());
  EXPECT_TRUE(executor.Execute(FromAbsl(absl::AnyInvocable<void() &&>(closure))).ok());
  EXPECT_TRUE(executor.Execute(FromAbsl(absl::AnyInvocable<void() const>(closure))).ok());
  EXPECT_TRUE(executor.Execute(FromAbsl(absl::AnyInvocable<void() const&>(closure))).ok());
  EXPECT_EQ(calls, 4);
}

TEST(AbslAnyInvocableTest, RunsOnAPool) {
  auto pool = ThreadPoolAsyncWorkRunner::Create({});
  ASSERT_TRUE(pool.ok()) << pool.status();
  EventPromise promise("ran");
  const Event ran = promise.event();
  absl::AnyInvocable<void() &&> task = [promise = std::move(promise)]() mutable { promise.SetReady(); };
  EXPECT_TRUE(pool->Schedule(FromAbsl(std::move(task))).ok());
  EXPECT_TRUE(ran.Wait().ok());
}

TEST(AbslAnyInvocableTest, ThatIsRefusedIsDestroyedUncalled) {
  RefusingExecutor executor;
  EventPromise promise("owed");
  const Event owed = promise.event();
  absl::AnyInvocable<void() &&> task = [promise = std::move(promise)]() mutable { promise.SetReady(); };
  EXPECT_EQ(executor.Execute(FromAbsl(std::move(task))).code(), StatusCode::kUnavailable);
  EXPECT_EQ(owed.state(), EventState::kError) << "what it owed is told";
}

TEST(AbslAnyInvocableTest, IsAWaiterThatIsToldAbslsStatus) {
  EventPromise promise("p");
  absl::Status heard;
  promise.OnReady(FromAbsl(absl::AnyInvocable<void(absl::Status) &&>([&](absl::Status s) { heard = std::move(s); })));
  absl::Status heard_by_reference;
  promise.OnReady(
      FromAbsl(absl::AnyInvocable<void(const absl::Status&)>([&](const absl::Status& s) { heard_by_reference = s; })));
  Status error = DeadlineExceededError("late");
  error.SetPayload("url", "bytes");
  promise.SetError(error);
  EXPECT_EQ(heard, ToAbsl(error));
  EXPECT_EQ(heard_by_reference, ToAbsl(error));
}

TEST(AbslAnyInvocableTest, IsACallbackOfAFuture) {
  auto [promise, future] = MakePromise<std::unique_ptr<int>>("p");
  int heard = 0;
  using Callback = absl::AnyInvocable<void(absl::StatusOr<std::unique_ptr<int>>) &&>;
  std::move(future).OnReady(FromAbsl(Callback([&](absl::StatusOr<std::unique_ptr<int>> result) { heard = **result; })));
  promise.Set(std::make_unique<int>(7));
  EXPECT_EQ(heard, 7);
}

TEST(AbslAnyInvocableTest, AnEmptyOneDoesNothing) {
  CountingExecutor executor;
  EXPECT_TRUE(executor.Execute(FromAbsl(absl::AnyInvocable<void() &&>())).ok());
  EXPECT_EQ(executor.tasks, 1);
  Event().OnReady(FromAbsl(absl::AnyInvocable<void(absl::Status)>()));
}

TEST(AbslSpanTest, CrossesBothWays) {
  EventPromise a("a");
  EventPromise b("b");
  const std::vector<Event> events{a.event(), b.event()};
  const absl::Span<const Event> theirs = absl::MakeConstSpan(events);
  const Event all = WhenAll(FromAbsl(theirs));
  const Event implicitly = WhenAll(theirs);
  a.SetReady();
  b.SetReady();
  EXPECT_TRUE(all.IsReady() && implicitly.IsReady());
  EXPECT_EQ(ToAbsl(Span<const Event>(events)).data(), events.data());
  EXPECT_EQ(ToAbsl(Span<const Event>(events)).size(), 2U);
}

}  // namespace
}  // namespace purlin
