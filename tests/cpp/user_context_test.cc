#include "purlin/user_context.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/event.h"
#include "purlin/executor.h"

namespace purlin {
namespace {

std::string PayloadOf(const Status& error) { return error.GetPayload(kUserContextPayload).value_or("(none)"); }

ThreadPoolAsyncWorkRunner Pool(std::size_t threads) { return *ThreadPoolAsyncWorkRunner::Create({threads, "context"}); }

TEST(UserContextTest, NoneIsNothing) {
  const UserContext none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.id(), 0U);
  EXPECT_EQ(none.DebugString(), "");
  EXPECT_EQ(CurrentUserContext(), none);
  EXPECT_EQ(UserContext::Lookup(0), none);
}

TEST(UserContextTest, KindsReadAsDocumented) {
  const UserContext line = UserContext::Create("main.py:3");
  const UserContext call = UserContext::Annotated(line, std::string("copy"));
  const UserContext chain = UserContext::Chained(call, UserContext::Create([] { return std::string("kernel 7"); }));
  EXPECT_EQ(line.DebugString(), "main.py:3");
  EXPECT_EQ(call.DebugString(), "copy (in main.py:3)");
  EXPECT_EQ(chain.DebugString(), "copy (in main.py:3) -> kernel 7");
  const std::array<UserContext, 3> several = {line, UserContext(), call};
  EXPECT_EQ(UserContext::Fused(several).DebugString(), "fused(main.py:3 | copy (in main.py:3))");
}

TEST(UserContextTest, NonesInKindsGiveTheOthersThemselves) {
  const UserContext none;
  const UserContext line = UserContext::Create("line");
  EXPECT_EQ(UserContext::Annotated(none, "basic").DebugString(), "basic");
  EXPECT_EQ(UserContext::Chained(none, line), line);
  EXPECT_EQ(UserContext::Chained(line, none), line);
  EXPECT_EQ(UserContext::Chained(none, none), none);
  EXPECT_EQ(UserContext::Fused({}), none);
  const std::array<UserContext, 3> one = {none, line, none};
  EXPECT_EQ(UserContext::Fused(one), line);
}

TEST(UserContextTest, TextThatIsNotUtf8IsReplaced) {
  EXPECT_EQ(UserContext::Create("a\xff").DebugString(), "a\xEF\xBF\xBD");
  EXPECT_EQ(UserContext::Create([] { return "b\xff"; }).DebugString(), "b\xEF\xBF\xBD");
}

TEST(UserContextTest, AnOriginIsRenderedExactlyWhenAskedAndDestroyedWithItsContext) {
  auto renders = std::make_shared<int>(0);
  UserContext context = UserContext::Create([renders] { return "render " + std::to_string((*renders)++); });
  Status error;
  {
    const UserContextScope scope(context);
    EventPromise promise("p");
    EXPECT_TRUE(promise.SetError(InternalError("x")));
    error = promise.event().error();
  }
  EXPECT_EQ(*renders, 0);
  EXPECT_EQ(context.DebugString(), "render 0");
  EXPECT_EQ(ExpandUserContexts(error).message(), "x\n  in user context " + std::to_string(context.id()) + ": render 1");
  EXPECT_EQ(*renders, 2);
  const std::uint64_t id = context.id();
  context = UserContext();
  EXPECT_EQ(renders.use_count(), 1);
  EXPECT_FALSE(UserContext::Lookup(id));
  EXPECT_EQ(ExpandUserContexts(error).message(), "x\n  in user context " + std::to_string(id) + ", which has expired");
}

TEST(UserContextTest, CopiesAreTheSameContextAndMovedFromIsNone) {
  UserContext a = UserContext::Create("a");
  UserContext b = a;
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.id(), b.id());
  EXPECT_NE(a, UserContext::Create("a"));
  const UserContext c = std::move(a);
  EXPECT_EQ(a, UserContext());  // NOLINT(bugprone-use-after-move)
  b = c;
  EXPECT_EQ(b, c);
}

TEST(UserContextTest, NumbersAreUniqueAmongThreadsAndFindTheirContexts) {
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  std::vector<std::vector<UserContext>> made(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<UserContext>& mine : made) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < kEach; ++i) mine.push_back(UserContext::Create("x"));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint64_t> ids;
  for (const std::vector<UserContext>& some : made) {
    for (const UserContext& context : some) {
      ids.insert(context.id());
      EXPECT_EQ(UserContext::Lookup(context.id()), context);
    }
  }
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(kThreads * kEach));
  std::set<std::uint64_t> all;
  for (const UserContext& context : UserContext::LookupAll()) all.insert(context.id());
  for (const std::uint64_t id : ids) EXPECT_EQ(all.count(id), 1U);
  made.clear();
  for (const UserContext& context : UserContext::LookupAll()) EXPECT_EQ(ids.count(context.id()), 0U);
}

TEST(UserContextTest, ANumberFromElsewhereFindsTheLivingOrMakesOne) {
  std::optional<UserContext> first = *UserContext::WithId(7, "from the wire");
  EXPECT_EQ(first->id(), 7U);
  EXPECT_EQ(*UserContext::WithId(7, "ignored"), *first);
  first.reset();
  EXPECT_EQ(UserContext::WithId(7, "anew")->DebugString(), "anew");
  const StatusOr<UserContext> zero = UserContext::WithId(0, "x");
  EXPECT_EQ(zero.status().code(), StatusCode::kInvalidArgument);
}

TEST(UserContextScopeTest, ScopesNestAndRestore) {
  const UserContext a = UserContext::Create("a");
  const UserContext b = UserContext::Create("b");
  {
    const UserContextScope outer(a);
    EXPECT_EQ(CurrentUserContext(), a);
    {
      const UserContextScope inner(b);
      EXPECT_EQ(CurrentUserContext(), b);
      const UserContextScope none((UserContext()));
      EXPECT_EQ(CurrentUserContext(), UserContext());
    }
    EXPECT_EQ(CurrentUserContext(), a);
  }
  EXPECT_EQ(CurrentUserContext(), UserContext());
}

TEST(UserContextScopeTest, TheScopeHoldsItsContext) {
  const UserContextScope scope(UserContext::Create("held by the scope"));
  EXPECT_EQ(CurrentUserContext().DebugString(), "held by the scope");
}

TEST(UserContextScopeTest, AScopeBelongsToItsThread) {
  const UserContext context = UserContext::Create("here");
  const UserContextScope scope(context);
  UserContext plain = context;
  UserContext carried;
  std::thread([&plain] { plain = CurrentUserContext(); }).join();
  std::thread(WithUserContext(context, [&carried] { carried = CurrentUserContext(); })).join();
  EXPECT_EQ(plain, UserContext());
  EXPECT_EQ(carried, context);
}

TEST(UserContextScopeTest, WithUserContextCallsAsTheClosureIsCalled) {
  const UserContext context = UserContext::Create("c");
  auto add = WithUserContext(context, [](int a, int b) { return CurrentUserContext() ? a + b : 0; });
  EXPECT_EQ(add(1, 2) + add(3, 4), 10);
  static_assert(std::is_copy_constructible_v<decltype(add)>, "as the closure");
  auto owner = WithUserContext(context, [owned = std::make_unique<int>(5)] { return *owned; });
  auto moved = std::move(owner);
  EXPECT_EQ(moved(), 5);
  static_assert(!std::is_copy_constructible_v<decltype(moved)>, "as the closure");
}

TEST(UserContextHopTest, AWaiterRunsInTheContextWhereItWasAttached) {
  const UserContext attacher = UserContext::Create("attacher");
  const UserContext setter = UserContext::Create("setter");
  std::vector<UserContext> seen;
  const auto report = [&seen] { seen.push_back(CurrentUserContext()); };
  // One waiter alone is run inline, several by the library.
  for (const int waiters : {1, 3}) {
    seen.clear();
    EventPromise with("with");
    EventPromise without("without");
    {
      const UserContextScope scope(attacher);
      for (int i = 0; i < waiters; ++i) with.OnReady([&](const Status& status) { status.ok() ? report() : void(); });
    }
    for (int i = 0; i < waiters; ++i) without.OnReady(report);
    const UserContextScope scope(setter);
    EXPECT_TRUE(with.SetReady());
    EXPECT_TRUE(without.SetReady());
    EXPECT_EQ(CurrentUserContext(), setter);
    with.OnReady(report);  // At once.
    std::vector<UserContext> expected(static_cast<std::size_t>(waiters), attacher);
    expected.resize(static_cast<std::size_t>(2 * waiters));
    expected.push_back(setter);
    EXPECT_EQ(seen, expected);
  }
}

TEST(UserContextHopTest, AContextLivesAsLongAsTheWorkThatCarriesIt) {
  const auto lives = std::make_shared<int>(0);
  EventPromise promise("p");
  ThreadPoolAsyncWorkRunner pool = Pool(1);
  std::vector<std::string> seen;
  {
    const UserContextScope scope(UserContext::Create([lives] { return "context"; }));
    promise.OnReady([&seen, large = std::array<char, 200>()] {
      seen.push_back(CurrentUserContext().DebugString() + std::string(large.data()));
    });
    ASSERT_TRUE(
        pool.ScheduleWhenReady({promise.event()}, [&seen] { seen.push_back(CurrentUserContext().DebugString()); })
            .ok());
  }
  EXPECT_GT(lives.use_count(), 1);
  EXPECT_TRUE(promise.SetReady());
  EXPECT_TRUE(pool.Shutdown().ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"context", "context"}));
  EXPECT_EQ(lives.use_count(), 1);
}

TEST(UserContextHopTest, ChainsThroughEventsAndAPoolKeepTheContextAndBoundTheStack) {
  constexpr int kLinks = 10000;
  ThreadPoolAsyncWorkRunner pool = Pool(2);
  const UserContext context = UserContext::Create("chain");
  std::atomic<int> right{0};
  std::vector<EventPromise> promises;
  for (int i = 0; i <= kLinks; ++i) promises.emplace_back("link");
  const Event last = promises.back().event();
  {
    const UserContextScope scope(context);
    for (std::size_t i = 0; i < kLinks; ++i) {
      auto next = [&right, &promises, &context, i] {
        if (CurrentUserContext() == context) ++right;
        promises[i + 1].SetReady();
      };
      if (i % 100 == 0) {
        ASSERT_TRUE(pool.ScheduleWhenReady({promises[i].event()}, next).ok());
      } else {
        promises[i].OnReady(next);
      }
    }
  }
  promises[0].SetReady();
  EXPECT_TRUE(last.Wait().ok());
  EXPECT_TRUE(pool.Shutdown().ok());
  EXPECT_EQ(right.load(), kLinks);
}

TEST(UserContextHopTest, TasksRunInTheContextWhereTheyWereMadeAndInNoOther) {
  const UserContext maker = UserContext::Create("maker");
  std::vector<UserContext> seen;
  const auto report = [&seen] { seen.push_back(CurrentUserContext()); };
  Task plain(report);
  const UserContextScope scope(maker);
  Task small(report);
  Task large([&report, padding = std::array<char, 100>()] { padding[0] == 0 ? report() : void(); });
  const UserContextScope runner(UserContext::Create("runner"));
  std::move(plain).Run();
  std::move(small).Run();
  std::move(large).Run();
  EXPECT_EQ(seen, (std::vector<UserContext>{UserContext(), maker, maker}));
  EXPECT_EQ(CurrentUserContext().DebugString(), "runner");
}

TEST(UserContextHopTest, WhatATaskOrAWaiterOwnsIsDestroyedBeforeItsContext) {
  std::vector<std::string> ended;
  const auto tells = [&ended](const char* text) {
    return std::shared_ptr<void>(
        nullptr, [&ended, text](void*) { ended.push_back(text + (": " + CurrentUserContext().DebugString())); });
  };
  EventPromise promise("p");
  std::optional<Task> run;
  std::optional<Task> dropped;
  {
    const UserContextScope scope(UserContext::Create([end = tells("context")] { return "context"; }));
    run.emplace([end = tells("run")] {});
    dropped.emplace([end = tells("dropped")] {});
    promise.OnReady([end = tells("waiter")] {});
  }
  EXPECT_TRUE(ended.empty());
  std::move(*run).Run();
  EXPECT_EQ(ended, (std::vector<std::string>{"run: context"}));
  dropped.reset();
  EXPECT_EQ(ended, (std::vector<std::string>{"run: context", "dropped: "}));
  promise.SetReady();
  EXPECT_EQ(ended, (std::vector<std::string>{"run: context", "dropped: ", "waiter: context", "context: "}));
}

TEST(UserContextHopTest, AParallelLoopRunsInItsCallersContext) {
  ThreadPoolAsyncWorkRunner pool = Pool(2);
  const UserContext context = UserContext::Create("loop");
  const UserContextScope scope(context);
  std::atomic<int> right{0};
  EXPECT_TRUE(
      pool.ParallelFor(64, Grain(1), [&](std::size_t, std::size_t) { right += CurrentUserContext() == context; }).ok());
  EXPECT_EQ(right.load(), 64);
}

TEST(UserContextStatusTest, AnErrorNamesTheContextOfItsEvent) {
  const UserContext maker = UserContext::Create("maker");
  const UserContext setter = UserContext::Create("setter");
  const auto make = WithUserContext(maker, [] { return EventPromise("p"); });
  EventPromise elsewhere("made in none");
  const UserContextScope scope(setter);
  Event abandoned;
  {
    auto copy = make;
    const EventPromise promise = copy();
    abandoned = promise.event();
  }
  EXPECT_EQ(PayloadOf(abandoned.error()), std::to_string(maker.id()));
  const Status survivor = abandoned.error();
  EXPECT_EQ(PayloadOf(survivor), std::to_string(maker.id()));

  auto copy = make;
  EventPromise failed = copy();
  EXPECT_TRUE(failed.SetError(DataLossError("x")));
  EXPECT_EQ(PayloadOf(failed.event().error()), std::to_string(maker.id()));
  EXPECT_TRUE(elsewhere.SetError(failed.event().error()));
  EXPECT_EQ(PayloadOf(elsewhere.event().error()), std::to_string(maker.id()));
  EXPECT_EQ(PayloadOf(Event::Error(AbortedError("x")).error()), std::to_string(setter.id()));
}

TEST(UserContextStatusTest, OkAndErrorsOutsideContextsStayAsTheyAre) {
  EventPromise promise("p");
  EXPECT_TRUE(promise.SetError(AbortedError("x")));
  EXPECT_EQ(PayloadOf(promise.event().error()), "(none)");
  const UserContext context = UserContext::Create("c");
  EXPECT_TRUE(AnnotateWithUserContext(OkStatus(), context).ok());
  EXPECT_EQ(AnnotateWithUserContext(AbortedError("x"), UserContext()), AbortedError("x"));
  EXPECT_TRUE(ExpandUserContexts(OkStatus()).ok());
  EXPECT_EQ(ExpandUserContexts(AbortedError("x")), AbortedError("x"));
}

TEST(UserContextStatusTest, AChainIsNamedOuterFirst) {
  const UserContext outer = UserContext::Create("outer");
  const UserContext inner = UserContext::Create("inner");
  Status error = AnnotateWithUserContext(NotFoundError("x"), UserContext::Chained(outer, inner));
  EXPECT_EQ(PayloadOf(error), std::to_string(outer.id()) + "," + std::to_string(inner.id()));
  error = AnnotateWithUserContext(error, inner);
  EXPECT_EQ(PayloadOf(error), std::to_string(outer.id()) + "," + std::to_string(inner.id()));
  const Status shown = ExpandUserContexts(error);
  EXPECT_EQ(shown.code(), StatusCode::kNotFound);
  EXPECT_EQ(shown.message(), "x\n  in user context " + std::to_string(outer.id()) + ": outer\n  in user context " +
                                 std::to_string(inner.id()) + ": inner");
  EXPECT_EQ(PayloadOf(shown), "(none)");
}

}  // namespace
}  // namespace purlin
