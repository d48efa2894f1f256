// purlin/adapters/pjrt_tables.h: promises, driven through their table as a foreign caller does, and foreign ones.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "purlin/adapters/pjrt_tables.h"
#include "tests/cpp/pjrt_fixture.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

using adapters::EventOf;
using adapters::MakePjrtPromise;
using adapters::ToPjrt;

Status WithPayload() {
  Status status = DataLossError("half a file");
  status.SetPayload("a/b", std::string_view("x\0y", 3));
  return status;
}

TEST(PjrtPromiseTest, EverySetCompletesItsEvent) {
  const PurlinPjrtDeviceEventPromiseTable* const table = adapters::PjrtDeviceEventPromiseTable();
  EXPECT_EQ(table->struct_size, sizeof(PurlinPjrtDeviceEventPromiseTable));
  EXPECT_EQ(table->instance_size, sizeof(PurlinPjrtDeviceEventPromise));
  PurlinPjrtDeviceEventPromise* const ready = MakePjrtPromise("ready");
  ASSERT_EQ(ready->table, table);
  const Event happened = EventOf(ready);
  EXPECT_EQ(happened.label(), "ready");
  table->set_ready(ready);
  EXPECT_TRUE(happened.Wait().ok());
  table->dec_ref(ready);

  PurlinPjrtDeviceEventPromise* const error = MakePjrtPromise();
  const Event failed = EventOf(error);
  table->set_error(error, ForeignError::Make(15, "half a file", {{"a/b", std::string("x\0y", 3)}}));
  EXPECT_EQ(failed.Wait(), WithPayload());
  table->dec_ref(error);

  PurlinPjrtDeviceEventPromise* const chained = MakePjrtPromise();
  const Event follower = EventOf(chained);
  ForeignEvent theirs;
  table->set(chained, theirs.Give());
  table->dec_ref(chained);
  EXPECT_FALSE(follower.IsReady()) << "whom it follows has not happened, and it is not forgotten";
  theirs.Complete(3, "bad");
  EXPECT_EQ(follower.Wait(), InvalidArgumentError("bad"));
  EXPECT_EQ(theirs.refs, 1);
}

TEST(PjrtPromiseTest, ItsEventIsLent) {
  PurlinPjrtDeviceEventPromise* const promise = MakePjrtPromise();
  const Event event = EventOf(promise);
  const std::size_t before = event.NumRef();
  const PurlinPjrtDeviceEvent lent = promise->table->event(promise);
  EXPECT_EQ(lent.event, promise->table->event(promise).event);
  EXPECT_EQ(event.NumRef(), before);
  promise->table->set_ready(promise);
  EXPECT_EQ(lent.table->get_state(lent.event), kPurlinPjrtDeviceEventState_Ready);
  promise->table->dec_ref(promise);
}

TEST(PjrtPromiseTest, TheFirstSetDecidesAndLaterOnesOnlyLetGo) {
  PurlinPjrtDeviceEventPromise* const promise = MakePjrtPromise();
  const Event event = EventOf(promise);
  ForeignEvent first, second;
  promise->table->set(promise, first.Give());
  promise->table->set(promise, second.Give());
  promise->table->set_error(promise, ForeignError::Make(13, "too late"));
  promise->table->set_ready(promise);
  EXPECT_FALSE(event.IsReady());
  EXPECT_EQ(ForeignError::alive, 0);
  first.Complete(10, "first");
  EXPECT_EQ(event.Wait(), AbortedError("first"));
  second.Complete(0, "");
  promise->table->dec_ref(promise);
  EXPECT_EQ(first.refs + second.refs, 2);
}

TEST(PjrtPromiseTest, TheLastReferenceFailsAnUnsetEvent) {
  PurlinPjrtDeviceEventPromise* const promise = MakePjrtPromise("forgotten");
  const Event event = EventOf(promise);
  promise->table->inc_ref(promise);
  promise->table->dec_ref(promise);
  EXPECT_FALSE(event.IsReady());
  promise->table->dec_ref(promise);
  EXPECT_EQ(event.Wait().code(), StatusCode::kInternal);
  EXPECT_NE(event.Wait().message().find("forgotten"), std::string_view::npos) << event.Wait();
}

TEST(PjrtPromiseTest, NullIsBorne) {
  const PurlinPjrtDeviceEventPromiseTable* const table = adapters::PjrtDeviceEventPromiseTable();
  table->inc_ref(nullptr);
  table->dec_ref(nullptr);
  table->set_ready(nullptr);
  table->set_error(nullptr, ForeignError::Make(13, "owned all the same"));
  EXPECT_EQ(ForeignError::alive, 0);
  ForeignEvent theirs;
  theirs.Complete(0, "");
  table->set(nullptr, theirs.Give());
  EXPECT_EQ(theirs.refs, 1);
  EXPECT_EQ(table->event(nullptr).event, nullptr);
  EXPECT_EQ(EventOf(nullptr).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(ToPjrt(Event::Ready(), static_cast<PurlinPjrtDeviceEventPromise*>(nullptr)).code(),
            StatusCode::kInvalidArgument);
  PurlinPjrtDeviceEventPromise* const promise = MakePjrtPromise();
  const Event event = EventOf(promise);
  table->set_error(promise, nullptr);
  EXPECT_EQ(event.Wait().code(), StatusCode::kInternal) << "set_error without an error is the caller's bug";
  table->dec_ref(promise);
}

TEST(PjrtPromiseTest, AnEventFollowsItself) {
  PurlinPjrtDeviceEventPromise* const promise = MakePjrtPromise();
  const Event event = EventOf(promise);
  promise->table->set(promise, ToPjrt(event));
  EXPECT_EQ(event.Wait().code(), StatusCode::kInternal) << "it would never complete";
  promise->table->dec_ref(promise);
}

TEST(PjrtPromiseTest, OneOfTheirsIsFilledBySetReadyAndSetError) {
  ForeignPromise theirs;
  EventPromise copied;
  EXPECT_TRUE(ToPjrt(copied.event(), &theirs.visible).ok());
  EXPECT_EQ(theirs.sets, 0);
  copied.SetReady();
  EXPECT_EQ(theirs.sets, 1);
  EXPECT_TRUE(theirs.status.ok());
  EXPECT_EQ(theirs.refs, 0) << "the reference that was given up";
  ForeignPromise fails;
  EXPECT_TRUE(ToPjrt(Event::Error(WithPayload()), &fails.visible).ok());
  EXPECT_EQ(fails.status, WithPayload());
  EXPECT_EQ(fails.sets, 1);
  EXPECT_EQ(fails.refs, 0);
}

TEST(PjrtPromiseTest, OneWithTooSmallATableIsRefusedAndGivenBack) {
  PurlinPjrtDeviceEventPromiseTable small = *ForeignPromise::Table();
  small.struct_size = offsetof(PurlinPjrtDeviceEventPromiseTable, set_error);
  ForeignPromise theirs;
  theirs.visible.table = &small;
  const Status refused = ToPjrt(Event::Ready(), &theirs.visible);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("struct_size 56"), std::string_view::npos) << refused;
  EXPECT_EQ(theirs.refs, 0);
  EXPECT_EQ(theirs.sets, 0);
  PurlinPjrtDeviceEventPromiseTable large = *ForeignPromise::Table();
  large.struct_size += 64;
  ForeignPromise newer;
  newer.visible.table = &large;
  EXPECT_TRUE(ToPjrt(Event::Ready(), &newer.visible).ok());
  EXPECT_EQ(newer.sets, 1);
}

TEST(PjrtPromiseTest, TheirSideCompletesOurPromise) {
  EventPromise ours("ours");
  const Event event = ours.event();
  PurlinPjrtDeviceEventPromise* const theirs = ToPjrt(std::move(ours));
  EXPECT_FALSE(event.IsReady());
  theirs->table->set_error(theirs, ToPjrt(WithPayload()));
  theirs->table->dec_ref(theirs);
  EXPECT_EQ(event.Wait(), WithPayload());
  EventPromise dropped;
  const Event abandoned = dropped.event();
  PurlinPjrtDeviceEventPromise* const forgotten = ToPjrt(std::move(dropped));
  forgotten->table->dec_ref(forgotten);
  EXPECT_EQ(abandoned.Wait().code(), StatusCode::kInternal);
}

TEST(PjrtPromiseTest, AChainOfCrossingsRunsOnASmallStack) {
  OnSmallStack([] {
    EventPromise promise;
    Event last = promise.event();
    for (int i = 0; i < 100'000; ++i) {
      PurlinPjrtDeviceEventPromise* const link = MakePjrtPromise();
      Event next = EventOf(link);
      link->table->set(link, ToPjrt(last));
      link->table->dec_ref(link);
      last = std::move(next);
    }
    promise.SetReady();
    EXPECT_TRUE(last.Wait().ok());
  });
}

}  // namespace
}  // namespace purlin
