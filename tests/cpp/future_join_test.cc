// Joins of futures.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "purlin/join_futures.h"

namespace purlin {
namespace {

struct Pair {
  Pair(int number, std::string text) : number(number), text(std::move(text)) {}
  int number;
  std::string text;
};

std::pair<std::vector<Promise<>>, std::vector<Future<>>> Several(std::size_t count) {
  std::vector<Promise<>> promises;
  std::vector<Future<>> futures;
  for (std::size_t i = 0; i < count; ++i) {
    auto [promise, future] = MakePromise<>("member");
    promises.push_back(std::move(promise));
    futures.push_back(std::move(future));
  }
  return {std::move(promises), std::move(futures)};
}

TEST(JoinFuturesTest, OfNoneOneOrReadyOnes) {
  EXPECT_TRUE(JoinFutures(Span<const Future<>>()).Await().ok());
  auto [promises, one] = Several(1);
  EXPECT_EQ(JoinFutures(one).async_value(), one[0].async_value()) << "the same future";
  promises[0].Set();
  const std::vector<Future<>> ready{Future<>(OkStatus()), Future<>(OkStatus())};
  EXPECT_TRUE(JoinFutures(ready).Await().ok());
  EXPECT_TRUE(JoinFutures(std::vector<Future<int>>()).Await().value().empty());
}

TEST(JoinFuturesTest, WithAnInvalidMemberIsInvalid) {
  const std::vector<Future<>> futures{Future<>(OkStatus()), Future<>()};
  EXPECT_FALSE(JoinFutures(futures).IsValid());
  EXPECT_FALSE(JoinFutures(std::vector<Future<int>>{Future<int>(1), Future<int>()}).IsValid());
  EXPECT_FALSE(JoinFutures(Future<int>(1), Future<>()).IsValid());
}

TEST(JoinFuturesTest, WaitsForAllAndTakesTheErrorThatThePolicyNames) {
  const std::vector<std::pair<ErrorPolicy, std::string>> expected{
      {ErrorPolicy::kFirstByIndex, "zero"},
      {ErrorPolicy::kFirstInTime, "two"},
      {ErrorPolicy::kLastInTime, "zero"},
      {ErrorPolicy::kAll, "2 of 3 failed: [0] ABORTED: zero; [2] DATA_LOSS: two"}};
  for (const auto& [policy, message] : expected) {
    auto [promises, futures] = Several(3);
    JoinOptions options;
    options.policy = policy;
    Future<> all = JoinFutures(futures, options);
    promises[2].Set(DataLossError("two"));
    promises[1].Set();
    EXPECT_FALSE(all.IsReady()) << "without fail_fast a join waits for all";
    promises[0].Set(AbortedError("zero"));
    EXPECT_EQ(all.Await().message(), message);
  }
}

TEST(JoinFuturesTest, FailsFastIfAsked) {
  auto [promises, futures] = Several(2);
  JoinOptions options;
  options.fail_fast = true;
  Future<> all = JoinFutures(futures, options);
  promises[1].Set(DataLossError("first"));
  EXPECT_TRUE(IsDataLoss(all.Await()));
  promises[0].Set();
  Future<> again = JoinFutures(futures, options);
  EXPECT_TRUE(IsDataLoss(again.Await()));
}

TEST(JoinFuturesTest, KeepsTheOrderOfValues) {
  auto [first, a] = MakePromise<int>("a");
  auto [second, b] = MakePromise<int>("b");
  Future<std::vector<int>> all = JoinFutures(std::vector<Future<int>>{a, b});
  second.Set(2);
  first.Set(1);
  EXPECT_EQ(*all.Await(), (std::vector<int>{1, 2}));
  EXPECT_EQ(*JoinFutures(std::vector<Future<int>>{b, a}).Await(), (std::vector<int>{2, 1}));
}

TEST(JoinFuturesTest, MovesMoveOnlyValues) {
  std::vector<Future<std::unique_ptr<int>>> futures;
  auto [promise, future] = MakePromise<std::unique_ptr<int>>("p");
  futures.push_back(std::move(future));
  futures.push_back(Future<std::unique_ptr<int>>(std::make_unique<int>(2)));
  Future<std::vector<std::unique_ptr<int>>> all = JoinFutures(std::move(futures));
  promise.Set(std::make_unique<int>(1));
  StatusOr<std::vector<std::unique_ptr<int>>> values = std::move(all).Await();
  EXPECT_EQ(*(*values)[0] + *(*values)[1], 3);
}

/// Other holders of a future still want its value.
TEST(JoinFuturesTest, CopiesOutOfFuturesThatAreSharedAndMovesNothing) {
  const std::string text(100, 'x');
  for (const bool pending : {false, true}) {
    auto [promise, shared] = MakePromise<std::string>("shared");
    if (!pending) promise.Set(std::string(text));
    const std::vector<Future<std::string>> several{shared, shared};
    std::vector<Future<std::string>> given_away{shared, shared};
    const Future<std::vector<std::string>> of_a_vector = JoinFutures(several);
    const Future<std::vector<std::string>> of_a_span = JoinFutures(Span<const Future<std::string>>(several));
    const Future<std::vector<std::string>> of_what_was_taken = JoinFutures(Span<Future<std::string>>(given_away));
    const Future<std::tuple<std::string, std::string>> of_arguments = JoinFutures(shared, shared);
    const Future<Pair> of_a_named_type = JoinFuturesTo<Pair>(JoinOptions(), Future<int>(1), shared);
    if (pending) promise.Set(std::string(text));
    for (const auto* all : {&of_a_vector, &of_a_span, &of_what_was_taken}) {
      EXPECT_EQ(*all->Await(), (std::vector<std::string>{text, text})) << pending;
    }
    EXPECT_EQ(*of_arguments.Await(), std::make_tuple(text, text)) << pending;
    EXPECT_EQ(of_a_named_type.Await()->text, text) << pending;
    EXPECT_EQ(*shared.Await(), text) << "the value is still there; pending: " << pending;
  }
}

TEST(JoinFuturesTest, JoinsNoneOrOneToATuple) {
  const Future<std::tuple<>> none = JoinFutures();
  EXPECT_TRUE(none.Await().ok());
  const Future<std::tuple<int>> one = JoinFutures(Future<int>(3));
  EXPECT_EQ(*one.Await(), std::make_tuple(3));
  EXPECT_TRUE(IsAborted(JoinFutures(Future<int>(AbortedError("x"))).Await().status()));
  EXPECT_FALSE(JoinFutures(Future<int>()).IsValid());
}

TEST(JoinFuturesTest, JoinsToATypeThatIsNamed) {
  struct Sum {
    explicit Sum(int only) : value(only) {}
    Sum(int a, int b) : value(a + b) {}
    int value;
  };
  EXPECT_EQ(JoinFutures<Sum>(Future<int>(3), Future<int>(4)).Await()->value, 7);
  EXPECT_EQ(JoinFutures<Sum>(Future<int>(3)).Await()->value, 3);
  EXPECT_EQ(*JoinFutures<int>(Future<int>(3)).Await(), 3);
}

TEST(JoinFuturesTest, JoinsDifferentTypes) {
  auto [promise, number] = MakePromise<int>("number");
  Future<std::tuple<int, std::string, Chain>> all =
      JoinFutures(number, Future<std::string>(std::string("text")), Future<>(OkStatus()));
  Future<Pair> pair = JoinFuturesTo<Pair>(JoinOptions(), number, Future<std::string>(std::string("made")));
  promise.Set(7);
  EXPECT_EQ(std::get<0>(*all.Await()), 7);
  EXPECT_EQ(pair.Await()->text, "made");
  EXPECT_TRUE(IsAborted(JoinFutures(number, Future<int>(AbortedError("x"))).Await().status()));
}

TEST(JoinFuturesTest, R3CallbacksMayJoinAgain) {
  auto [promises, futures] = Several(2);
  Future<> all = JoinFutures(futures);
  bool inner = false;
  all.OnReady([&, futures = futures](Status) { inner = JoinFutures(futures).Await().ok(); });
  promises[0].Set();
  promises[1].Set();
  EXPECT_TRUE(inner);
}

TEST(JoinFuturesTest, CompletesOnceWhenMembersRace) {
  for (int round = 0; round < 50; ++round) {
    auto [promises, futures] = Several(4);
    Future<> all = JoinFutures(futures);
    std::vector<std::thread> threads;
    for (Promise<>& promise : promises) {
      threads.emplace_back([promise = std::move(promise)]() mutable { promise.Set(); });
    }
    EXPECT_TRUE(all.Await().ok());
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(JoinFuturesTest, R2ADroppedMemberFailsTheJoin) {
  auto [promises, futures] = Several(2);
  Future<> all = JoinFutures(futures);
  promises[0].Set();
  promises.clear();
  EXPECT_TRUE(IsInternal(all.Await()));
}

TEST(MakeFutureWhenReadyTest, JoinsEvents) {
  EventPromise a("a");
  EventPromise b("b");
  const std::vector<Event> events{a.event(), b.event()};
  Future<> all = MakeFutureWhenReady(events);
  b.SetError(AbortedError("b"));
  EXPECT_FALSE(all.IsReady());
  a.SetReady();
  EXPECT_EQ(all.Await().message(), "b");
}

}  // namespace
}  // namespace purlin
