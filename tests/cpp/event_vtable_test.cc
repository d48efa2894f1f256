// Foreign events: cells and vtables that the library has not made. Here they are made by hand, in memory of the test's
// own, as another language or another shared object would make them; the library only sees the header and the vtable.
//
// What holds: every verb works on them as on its own events, completion may race with attaching, joining, waiting and
// letting go, and `free` is called once, with the last reference.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/cell.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

/// A vtable with a slot that this version of the library does not know.
struct LargerVTable {
  internal::EventVTable event;
  void (*unknown)();
};

/// An event with a payload of its own behind the cell.
struct ForeignEvent {
  internal::EventCell cell;
  int payload;

  static inline std::atomic<int> freed{0};

  /// Pending, with one reference.
  static Event New(const internal::EventVTable* vtable, int payload) {
    auto* self = new ForeignEvent();
    self->payload = payload;
    internal::WriteCell(&self->cell, 1, vtable, offsetof(ForeignEvent, payload), 0, Label("foreign"),
                        SourceLocation("foreign.cc", 7));
    return Event::Adopt(&self->cell.header);
  }
  static int PayloadOf(const Event& event) { return *static_cast<int*>(internal::PayloadOf(event.header())); }
  /// What the vtable's owner does with the last reference: notifies the waiters left, then frees its own memory.
  static void Free(internal::EventHeader* event) noexcept {
    if (internal::HasWaiters(event)) {
      event->refs.store(1, std::memory_order_relaxed);
      internal::EventAbandon(event);
      return internal::EventRelease(event);
    }
    internal::DropError(event);
    freed.fetch_add(1);
    delete reinterpret_cast<ForeignEvent*>(event);
  }
};

constexpr internal::EventVTable kVTable{sizeof(internal::EventVTable), &ForeignEvent::Free, nullptr};
constexpr LargerVTable kLargerVTable{{sizeof(LargerVTable), &ForeignEvent::Free, nullptr}, nullptr};

/// Completes a foreign event, as its owner does; OK makes it ready.
bool Complete(const Event& event, Status status) {
  if (status.ok()) return internal::TrySetReady(event.header());
  return internal::TrySetError(event.header(), std::move(status));
}

TEST(EventVTableTest, EveryVerbWorksOnAForeignEvent) {
  auto pool = ThreadPoolAsyncWorkRunner::Create({1, "foreign"}).value();
  for (const internal::EventVTable* vtable : {&kVTable, &kLargerVTable.event}) {
    for (const Status& result : {OkStatus(), AbortedError("x")}) {
      const int freed = ForeignEvent::freed.load();
      {
        const Event event = ForeignEvent::New(vtable, 42);
        EXPECT_EQ(event.label(), "foreign");
        EXPECT_EQ(event.location().line(), 7U);
        EXPECT_FALSE(event.definition_stream().has_value());
        const Status late = event.WaitFor(std::chrono::nanoseconds(0));
        EXPECT_TRUE(IsDeadlineExceeded(late)) << late;
        EXPECT_NE(late.message().find("'foreign'"), std::string::npos) << late;

        std::string order;
        Status seen = UnknownError("not called");
        event.OnReady([&order] { order += 'a'; });
        event.OnReady([&order, &seen](const Status& status) {
          order += 'b';
          seen = status;
        });
        const Event joined = WhenAll({event, Event()});
        EventPromise follower("follower");
        const Event followed = follower.event();
        std::move(follower).Forward(event);
        const Future<> future = MakeFutureWhenReady(event);
        EventPromise task("task");
        const Event ran = task.event();
        ASSERT_TRUE(pool.ScheduleWhenReady({event}, [&task](const Status& status) { task.Set(status); }).ok());
        EXPECT_FALSE(joined.IsReady() || followed.IsReady() || future.IsReady() || ran.IsReady());

        EXPECT_TRUE(Complete(event, result));
        EXPECT_FALSE(Complete(event, InternalError("late"))) << "the first set wins";
        EXPECT_EQ(order, "ab") << "in the order in which they came";
        EXPECT_EQ(seen, result);
        EXPECT_EQ(event.state(), result.ok() ? EventState::kReady : EventState::kError);
        EXPECT_EQ(event.Wait(), result);
        EXPECT_EQ(joined.Wait(), result);
        EXPECT_EQ(followed.Wait(), result);
        EXPECT_EQ(future.Await(), result);
        EXPECT_EQ(ran.Wait(), result);
        EXPECT_EQ(ForeignEvent::PayloadOf(event), 42);
        while (event.NumRef() > 1) std::this_thread::yield();  // The pool lets go of it after the task.
        EXPECT_EQ(ForeignEvent::freed.load(), freed);
      }
      EXPECT_EQ(ForeignEvent::freed.load(), freed + 1);
    }
  }
}

TEST(EventVTableTest, WaitersOfAForeignEventThatIsDroppedPendingAreTold) {
  const int freed = ForeignEvent::freed.load();
  Event event = ForeignEvent::New(&kVTable, 1);
  Status seen;
  event.OnReady([&seen](const Status& status) { seen = status; });
  const Event joined = WhenAll({event, Event()});
  event = Event();
  EXPECT_TRUE(IsInternal(seen)) << seen;
  EXPECT_NE(seen.message().find("'foreign'"), std::string::npos) << seen;
  EXPECT_EQ(joined.Wait(), seen);
  EXPECT_EQ(ForeignEvent::freed.load(), freed + 1);
}

TEST(EventVTableTest, CompletingAttachingJoiningAndLettingGoRace) {
  constexpr std::size_t kRounds = 1'000;
  const int freed = ForeignEvent::freed.load();
  std::vector<std::vector<Event>> references(4);
  for (std::size_t i = 0; i < kRounds; ++i) {
    const Event event = ForeignEvent::New(i % 2 == 0 ? &kVTable : &kLargerVTable.event, static_cast<int>(i));
    for (std::vector<Event>& mine : references) mine.push_back(event);
  }
  std::vector<std::atomic<int>> told(kRounds);
  Together(4, [&](int index) {
    for (std::size_t i = 0; i < kRounds; ++i) {
      const Event event = std::move(references[static_cast<std::size_t>(index)][i]);
      const Status result = i % 3 == 0 ? AbortedError("x") : OkStatus();
      const auto tell = [&told, i, result](const Status& status) { told[i].fetch_add(status == result ? 1 : 100); };
      if (index == 0) {
        EXPECT_TRUE(Complete(event, result));
      } else if (index == 1) {
        event.OnReady(tell);
      } else if (index == 2) {
        WhenAll({Event(), event}).OnReady(tell);
      } else {
        EXPECT_EQ(event.Wait(), result);
      }
    }
  });
  for (std::size_t i = 0; i < kRounds; ++i) ASSERT_EQ(told[i].load(), 2) << i;
  EXPECT_EQ(ForeignEvent::freed.load(), freed + static_cast<int>(kRounds));
}

}  // namespace
}  // namespace purlin
