// purlin/adapters/pjrt_tables.h: errors, device events and vectors of them, driven through their tables as a foreign
// caller does, and foreign ones that are imported.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/adapters/pjrt_tables.h"
#include "tests/cpp/pjrt_fixture.h"

namespace purlin {
namespace {

using adapters::FromPjrt;
using adapters::PjrtCast;
using adapters::ToPjrt;

/// What XLA's headers declare, in its shape.
struct TheirDeviceEvent {
  const void* vtable;
  void* device_event;
};

Status WithPayload() {
  Status status = DataLossError("half a file");
  status.SetPayload("a/b", std::string_view("x\0y", 3));
  return status;
}

/// What get_error_if_present says.
Status ErrorOf(PurlinPjrtDeviceEvent event) {
  int code = -1;
  const char* message = nullptr;
  std::size_t size = 0;
  if (event.table->get_error_if_present(event.event, &code, &message, &size) == 0) return OkStatus();
  return Status(static_cast<StatusCode>(code), std::string_view(message, size));
}

TEST(PjrtErrorTest, EverySlotSaysWhatTheStatusSays) {
  PurlinPjrtError* const error = ToPjrt(WithPayload());
  ASSERT_EQ(error->table, adapters::PjrtErrorTable());
  EXPECT_EQ(error->table->struct_size, sizeof(PurlinPjrtErrorTable));
  EXPECT_EQ(error->table->instance_size, sizeof(PurlinPjrtError));
  const char* message = nullptr;
  std::size_t size = 0;
  error->table->message(error, &message, &size);
  EXPECT_EQ(std::string_view(message, size), "half a file");
  EXPECT_EQ(error->table->get_code(error), 15);
  std::vector<std::pair<std::string, std::string>> payloads;
  error->table->for_each_payload(
      error,
      [](const char* key, std::size_t key_size, const char* value, std::size_t value_size, void* seen) {
        static_cast<decltype(payloads)*>(seen)->emplace_back(std::string(key, key_size),
                                                             std::string(value, value_size));
      },
      &payloads);
  EXPECT_EQ(payloads, (decltype(payloads){{"a/b", std::string("x\0y", 3)}}));
  error->table->destroy(error);
}

TEST(PjrtErrorTest, ThereAndBackIsEqual) {
  EXPECT_EQ(FromPjrt(ToPjrt(WithPayload())), WithPayload());
  EXPECT_EQ(ToPjrt(OkStatus()), nullptr);
  EXPECT_TRUE(FromPjrt(static_cast<PurlinPjrtError*>(nullptr)).ok());
}

TEST(PjrtErrorTest, AForeignErrorKeepsItsPayloadsAndIsDestroyed) {
  EXPECT_EQ(FromPjrt(ForeignError::Make(15, "half a file", {{"a/b", std::string("x\0y", 3)}})), WithPayload());
  EXPECT_EQ(FromPjrt(ForeignError::Make(4711, "odd")), UnknownError("odd"));
  EXPECT_EQ(FromPjrt(ForeignError::Make(0, "fine")).code(), StatusCode::kInternal) << "an error is never OK";
  EXPECT_EQ(ForeignError::alive, 0);
}

TEST(PjrtErrorTest, NullIsBorne) {
  const PurlinPjrtErrorTable* const table = adapters::PjrtErrorTable();
  table->destroy(nullptr);
  EXPECT_EQ(table->get_code(nullptr), 0);
  const char* message = nullptr;
  std::size_t size = 7;
  table->message(nullptr, &message, &size);
  EXPECT_EQ(size, 0u);
  table->for_each_payload(nullptr, nullptr, nullptr);
  PurlinPjrtError without_table{nullptr};
  EXPECT_EQ(FromPjrt(&without_table).code(), StatusCode::kInternal);
}

TEST(PjrtDeviceEventTest, StatesErrorsAndReferences) {
  EventPromise promise("copy");
  const PurlinPjrtDeviceEvent event = ToPjrt(promise.event());
  ASSERT_EQ(event.table, adapters::PjrtDeviceEventTable());
  EXPECT_EQ(event.table->struct_size, sizeof(PurlinPjrtDeviceEventTable));
  EXPECT_EQ(event.table->parent, nullptr);
  EXPECT_EQ(event.table->get_state(event.event), kPurlinPjrtDeviceEventState_Unavailable);
  EXPECT_TRUE(ErrorOf(event).ok()) << "polled while pending";
  EXPECT_EQ(promise.event().NumRef(), 3u);
  event.table->inc_ref(event.event);
  EXPECT_EQ(promise.event().NumRef(), 4u);
  promise.SetError(NotFoundError("no such device"));
  EXPECT_EQ(event.table->get_state(event.event), kPurlinPjrtDeviceEventState_Error);
  EXPECT_EQ(ErrorOf(event), NotFoundError("no such device"));
  event.table->dec_ref(event.event);
  EXPECT_EQ(promise.event().NumRef(), 3u);
  event.table->dec_ref(event.event);
  EXPECT_EQ(promise.event().NumRef(), 2u);
}

TEST(PjrtDeviceEventTest, AnEventThatHasAlwaysHappenedIsNotNull) {
  const PurlinPjrtDeviceEvent event = ToPjrt(Event::Ready());
  ASSERT_NE(event.event, nullptr) << "XLA drops callbacks of null events";
  EXPECT_EQ(event.table->get_state(event.event), kPurlinPjrtDeviceEventState_Ready);
  event.table->inc_ref(event.event);
  event.table->dec_ref(event.event);
  int calls = 0;
  event.table->and_then(event.event, [](void* count) { ++*static_cast<int*>(count); }, &calls);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(FromPjrt(event), Event::Ready());
}

TEST(PjrtDeviceEventTest, CallbacksRunOnceOnEveryEnd) {
  for (const bool fails : {false, true}) {
    EventPromise promise;
    const PurlinPjrtDeviceEvent event = ToPjrt(promise.event());
    std::vector<int> calls;
    std::pair<std::vector<int>*, int> first(&calls, 1), second(&calls, 2), late(&calls, 3);
    const auto call = [](void* arg) {
      auto* const pair = static_cast<std::pair<std::vector<int>*, int>*>(arg);
      pair->first->push_back(pair->second);
    };
    event.table->and_then(event.event, call, &first);
    event.table->and_then(event.event, call, &second);
    EXPECT_TRUE(calls.empty());
    if (fails) promise.SetError(AbortedError("x"));
    if (!fails) promise.SetReady();
    event.table->and_then(event.event, call, &late);
    EXPECT_EQ(calls, (std::vector<int>{1, 2, 3}));
    event.table->dec_ref(event.event);
  }
}

TEST(PjrtDeviceEventTest, AnAbandonedEventCallsBackToo) {
  int calls = 0;
  PurlinPjrtDeviceEvent event;
  {
    EventPromise promise("forgotten");
    event = ToPjrt(promise.event());
    event.table->and_then(event.event, [](void* count) { ++*static_cast<int*>(count); }, &calls);
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(ErrorOf(event).code(), StatusCode::kInternal);
  event.table->dec_ref(event.event);
}

TEST(PjrtDeviceEventTest, TheDefinitionStreamCrosses) {
  EventPromise promise(DefinitionStream{0x1234, 7}, "on a stream");
  const PurlinPjrtDeviceEvent event = ToPjrt(promise.event());
  std::uint64_t number = 0;
  EXPECT_EQ(event.table->get_definition_stream(event.event, &number), 0x1234);
  EXPECT_EQ(number, 7u);
  EXPECT_EQ(event.table->get_definition_stream(event.event, nullptr), 0x1234);
  promise.SetReady();
  event.table->dec_ref(event.event);
  const PurlinPjrtDeviceEvent without = ToPjrt(Event::Error(AbortedError("x")));
  EXPECT_EQ(without.table->get_definition_stream(without.event, &number), 0);
  EXPECT_EQ(number, 0u);
  without.table->dec_ref(without.event);
}

TEST(PjrtDeviceEventTest, NullIsAnEventThatHasHappened) {
  const PurlinPjrtDeviceEventTable* const table = adapters::PjrtDeviceEventTable();
  table->inc_ref(nullptr);
  table->dec_ref(nullptr);
  EXPECT_EQ(table->get_state(nullptr), kPurlinPjrtDeviceEventState_Ready);
  EXPECT_EQ(table->get_error_if_present(nullptr, nullptr, nullptr, nullptr), 0);
  EXPECT_EQ(table->get_definition_stream(nullptr, nullptr), 0);
  int calls = 0;
  table->and_then(nullptr, [](void* count) { ++*static_cast<int*>(count); }, &calls);
  EXPECT_EQ(calls, 1);
  EventPromise promise;
  const PurlinPjrtDeviceEvent event = ToPjrt(promise.event());
  table->and_then(event.event, nullptr, nullptr);
  promise.SetError(AbortedError("x"));
  EXPECT_EQ(table->get_error_if_present(event.event, nullptr, nullptr, nullptr), 1);
  EXPECT_EQ(FromPjrt(event).error(), AbortedError("x"));
  EXPECT_EQ(FromPjrt(PurlinPjrtDeviceEvent{nullptr, nullptr}), Event::Ready());
  EXPECT_EQ(FromPjrt(PurlinPjrtDeviceEvent{nullptr, &calls}).error().code(), StatusCode::kInvalidArgument);
}

TEST(PjrtDeviceEventTest, OneOfOursComesBackAsItself) {
  EventPromise promise;
  EXPECT_EQ(FromPjrt(ToPjrt(promise.event())), promise.event());
  const auto theirs = PjrtCast<TheirDeviceEvent>(ToPjrt(promise.event()));
  EXPECT_EQ(theirs.vtable, adapters::PjrtDeviceEventTable());
  EXPECT_EQ(FromPjrt(PjrtCast<PurlinPjrtDeviceEvent>(theirs)), promise.event());
  EXPECT_EQ(promise.event().NumRef(), 2u);
  promise.SetReady();
}

TEST(PjrtForeignEventTest, CompletesAsTheirsDoesOnTheirThread) {
  ForeignEvent theirs;
  Event event = FromPjrt(theirs.Give());
  EXPECT_FALSE(event.IsReady());
  EXPECT_EQ(event.label(), "PJRT event");
  EXPECT_EQ(theirs.refs, 2) << "kept until it has called back";
  std::thread::id ran_on;
  event.OnReady([&ran_on] { ran_on = std::this_thread::get_id(); });
  std::thread completer([&theirs] { theirs.Complete(5, "not here"); });
  const std::thread::id expected = completer.get_id();
  completer.join();
  EXPECT_EQ(event.Wait(), NotFoundError("not here"));
  EXPECT_EQ(ran_on, expected);
  EXPECT_EQ(theirs.refs, 1);
}

TEST(PjrtForeignEventTest, OneThatIsTerminalIsTakenAtOnce) {
  ForeignEvent happened;
  happened.Complete(0, "");
  EXPECT_EQ(FromPjrt(happened.Give()), Event::Ready());
  EXPECT_EQ(happened.refs, 1);
  ForeignEvent failed;
  failed.Complete(8, "no more memory");
  EXPECT_EQ(FromPjrt(failed.Give()).error(), ResourceExhaustedError("no more memory"));
  EXPECT_EQ(failed.refs, 1);
}

TEST(PjrtVectorTest, OursIsReadAndFreedByTheirs) {
  EventPromise promise;
  const std::vector<Event> events = {Event::Ready(), promise.event(), Event::Error(AbortedError("x"))};
  PurlinPjrtDeviceEventVector vector = ToPjrt(Span<const Event>(events));
  ASSERT_EQ(vector.size, 3u);
  ASSERT_GE(vector.capacity, 3u);
  EXPECT_EQ(vector.data[0].table->get_state(vector.data[0].event), kPurlinPjrtDeviceEventState_Ready);
  EXPECT_EQ(vector.data[1].table->get_state(vector.data[1].event), kPurlinPjrtDeviceEventState_Unavailable);
  EXPECT_EQ(ErrorOf(vector.data[2]), AbortedError("x"));
  EXPECT_EQ(promise.event().NumRef(), 4u);
  // As XLA consumes one: references, then the array.
  for (std::size_t i = 0; i < vector.size; ++i) vector.data[i].table->dec_ref(vector.data[i].event);
  vector.destroy(vector.data);
  EXPECT_EQ(promise.event().NumRef(), 3u);
  promise.SetReady();
}

TEST(PjrtVectorTest, TheirsIsMovedOutOnce) {
  static int destroyed;
  destroyed = 0;
  ForeignEvent first, second;
  auto* const data = new PurlinPjrtDeviceEvent[4]{first.Give(), second.Give(), {nullptr, nullptr}, {nullptr, nullptr}};
  PurlinPjrtDeviceEventVector vector = {data, 3, 4, [](PurlinPjrtDeviceEvent* array) {
                                          ++destroyed;
                                          delete[] array;
                                        }};
  const std::vector<Event> events = FromPjrt(&vector);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(vector.data, nullptr);
  EXPECT_EQ(vector.size, 0u);
  EXPECT_TRUE(FromPjrt(&vector).empty()) << "a second time";
  EXPECT_EQ(destroyed, 1);
  first.Complete(0, "");
  second.Complete(1, "stop");
  EXPECT_EQ(WhenAll(events).Wait(), CancelledError("stop"));
  EXPECT_EQ(first.refs + second.refs, 2);
}

TEST(PjrtVectorTest, EmptyNullAndBroken) {
  PurlinPjrtDeviceEventVector empty = ToPjrt(Span<const Event>());
  EXPECT_EQ(empty.size, 0u);
  empty.destroy(empty.data);
  EXPECT_TRUE(FromPjrt(&empty).empty());
  EXPECT_TRUE(FromPjrt(static_cast<PurlinPjrtDeviceEventVector*>(nullptr)).empty());
  PurlinPjrtDeviceEventVector broken = {nullptr, 1000000, 0, nullptr};
  const std::vector<Event> events = FromPjrt(&broken);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].error().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace purlin
