#include "purlin/cancel.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace purlin {
namespace {

TEST(CancelTest, R1TheFirstCancelWinsAndTheSecondIsToldSo) {
  const CancelSource source("s");
  const CancelToken token = source.token();
  EXPECT_FALSE(token.IsCancelled());
  EXPECT_TRUE(token.status().ok());
  EXPECT_TRUE(source.Cancel(AbortedError("first")));
  EXPECT_FALSE(source.Cancel(InternalError("second")));
  EXPECT_TRUE(token.IsCancelled());
  EXPECT_EQ(token.status(), AbortedError("first"));
  EXPECT_TRUE(token.event().Wait().ok());
}

TEST(CancelTest, WithoutAReasonTheSourceIsNamed) {
  const CancelSource source("training");
  source.Cancel();
  EXPECT_EQ(source.token().status(), CancelledError("'training' was cancelled"));
}

TEST(CancelTest, CallbacksRunInOrderAndLateOnesAtOnce) {
  const CancelSource source;
  const CancelToken token = source.token();
  std::vector<std::string> notes;
  const CancelRegistration a = token.OnCancel([&](const Status& reason) { notes.emplace_back(reason.message()); });
  CancelRegistration b = token.OnCancel([&] { notes.emplace_back("never"); });
  const CancelRegistration c = token.OnCancel([&] { notes.emplace_back("c"); });
  EXPECT_TRUE(b.Unregister());
  EXPECT_FALSE(b.Unregister());
  source.Cancel(AbortedError("x"));
  EXPECT_EQ(notes, (std::vector<std::string>{"x", "c"}));
  const CancelRegistration late = token.OnCancel([&] { notes.emplace_back("late"); });
  EXPECT_EQ(notes.back(), "late");
}

TEST(CancelTest, ACallbackIsDestroyedWithItsRegistrationAndMayBeMoveOnly) {
  const CancelSource source;
  auto witness = std::make_shared<int>(0);
  {
    CancelRegistration moved;
    moved = source.token().OnCancel([owned = std::make_unique<std::shared_ptr<int>>(witness)] { ++**owned; });
    EXPECT_EQ(witness.use_count(), 2);
  }
  EXPECT_EQ(witness.use_count(), 1);
  source.Cancel();
  EXPECT_EQ(*witness, 0);
}

TEST(CancelTest, ChildrenFollowTheirParentAndNotTheOtherWayRound) {
  const CancelSource parent;
  const CancelSource child(parent.token(), "child");
  const CancelSource sibling(parent.token());
  child.Cancel(AbortedError("child only"));
  EXPECT_FALSE(parent.token().IsCancelled());
  parent.Cancel(InternalError("all"));
  EXPECT_EQ(sibling.token().status(), InternalError("all"));
  EXPECT_EQ(child.token().status(), AbortedError("child only"));
}

TEST(CancelTest, R2ATokenWithoutSourcesLetsItsWaitersGo) {
  auto witness = std::make_shared<int>(0);
  CancelToken token;
  CancelRegistration registration;
  {
    CancelSource source("gone");
    const CancelSource copy = source;
    CancelSource moved = std::move(source);
    token = moved.token();
    registration = token.OnCancel([witness] { ++*witness; });
    EXPECT_FALSE(token.IsRetired());
  }
  EXPECT_TRUE(IsFailedPrecondition(token.event().Wait()));
  EXPECT_TRUE(token.IsRetired());
  EXPECT_EQ(witness.use_count(), 1);
  EXPECT_EQ(*witness, 0);
}

TEST(CancelTest, TheDefaultTokenIsNeverCancelled) {
  const CancelToken token;
  EXPECT_FALSE(token.IsCancelled());
  EXPECT_TRUE(token.IsRetired());
  EXPECT_TRUE(IsFailedPrecondition(token.event().Wait()));
  EXPECT_FALSE(token.OnCancel([] {}).Unregister());
}

}  // namespace
}  // namespace purlin
