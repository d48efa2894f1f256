// purlin/adapters/pjrt_tables.h: every slot of PJRT_RawBuffer, driven through the table as a foreign caller does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/adapters/pjrt_tables.h"
#include "purlin/client.h"
#include "tests/cpp/pjrt_fixture.h"
#include "tests/cpp/raw_bytes.h"

namespace purlin {
namespace {

using adapters::EventOf;
using adapters::FromPjrt;
using adapters::MakePjrtPromise;
using adapters::ToPjrt;

Bytes Numbers(std::size_t size) {
  Bytes bytes(size);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  return bytes;
}

Client MakeClient(std::string_view platform) {
  ClientOptions options;
  options.device_count = 1;
  options.worker_count = 1;
  options.platform = platform;
  return Client::Create(options).value();
}

/// A buffer with a table of its own, into which the host can copy; nothing else is asked of a destination.
struct ForeignBuffer {
  PurlinPjrtRawBuffer visible{Table()};
  Bytes bytes;
  std::atomic<int> refs{1};
  int refuses_with = 0;
  ForeignEvent copied;

  static ForeignBuffer* Of(PurlinPjrtRawBuffer* buffer) { return reinterpret_cast<ForeignBuffer*>(buffer); }
  static const PurlinPjrtRawBufferTable* Table() {
    static const PurlinPjrtRawBufferTable table = [] {
      PurlinPjrtRawBufferTable made{};
      made.struct_size = offsetof(PurlinPjrtRawBufferTable, copy_raw_device_to_host_and_return_event);
      made.inc_ref = [](PurlinPjrtRawBuffer* buffer) { Of(buffer)->refs.fetch_add(1); };
      made.dec_ref = [](PurlinPjrtRawBuffer* buffer) { EXPECT_GT(Of(buffer)->refs.fetch_sub(1), 0); };
      made.copy_raw_host_to_device_and_return_event =
          [](PurlinPjrtRawBuffer* buffer, const void* source, std::int64_t offset, std::int64_t size,
             PurlinPjrtDeviceEventVector* dependencies, PurlinPjrtDeviceEvent* event) -> PurlinPjrtError* {
        EXPECT_EQ(offset, 0);
        EXPECT_EQ(dependencies, nullptr);
        if (Of(buffer)->refuses_with != 0) return ForeignError::Make(Of(buffer)->refuses_with, "no room");
        const auto* const first = static_cast<const std::uint8_t*>(source);
        Of(buffer)->bytes.assign(first, first + size);
        *event = Of(buffer)->copied.Give();
        return nullptr;
      };
      return made;
    }();
    return &table;
  }
};

/// What on_allocated was called with.
struct Allocated {
  int calls = 0;
  Status status = UnknownError("not told");
  static void Tell(PurlinPjrtError* error, void* self) {
    ++static_cast<Allocated*>(self)->calls;
    static_cast<Allocated*>(self)->status = FromPjrt(error);
  }
};

class PjrtRawBufferTest : public testing::Test {
 protected:
  RawBuffer Allocate(std::size_t size) const { return RawBuffer::Allocate(space_, size).value(); }
  RawBuffer Filled(const Bytes& bytes) const { return FilledIn(space_, bytes); }
  const PurlinPjrtRawBufferTable* const table_ = adapters::PjrtRawBufferTable();
  Client client_ = MakeClient("host");
  MemorySpace space_ = client_.devices()[0].default_memory_space();
};

TEST_F(PjrtRawBufferTest, QueriesAnswerAsTheBufferDoes) {
  EXPECT_EQ(table_->struct_size, sizeof(PurlinPjrtRawBufferTable));
  EXPECT_EQ(table_->instance_size, sizeof(PurlinPjrtRawBuffer));
  const RawBuffer buffer = Allocate(100);
  int memory = 0;
  PurlinPjrtRawBuffer* const theirs = ToPjrt(buffer, &memory);
  ASSERT_EQ(theirs->table, table_);
  EXPECT_EQ(table_->get_on_device_size_in_bytes(theirs), 100u);
  EXPECT_EQ(table_->get_memory_space(theirs), reinterpret_cast<PurlinPjrtMemory*>(&memory));
  EXPECT_EQ(table_->get_host_pointer(theirs), buffer.host_pointer());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(table_->opaque_device_memory_data_pointer(theirs)),
            buffer.device_pointer().value());
  EXPECT_TRUE(table_->is_mutable(theirs));
  table_->dec_ref(theirs);
  const Bytes constant(64);
  alignas(64) static std::uint8_t imported[64];
  const RawBuffer immutable = RawBuffer::Import(space_, imported, 64, Mutability::kImmutable).value();
  PurlinPjrtRawBuffer* const read_only = ToPjrt(immutable, nullptr);
  EXPECT_FALSE(table_->is_mutable(read_only));
  EXPECT_EQ(table_->get_memory_space(read_only), nullptr);
  table_->dec_ref(read_only);
}

TEST_F(PjrtRawBufferTest, TheLastReferenceLetsTheMemoryGo) {
  alignas(64) static std::uint8_t memory[64];
  int released = 0;
  PurlinPjrtRawBuffer* theirs = nullptr;
  {
    const RawBuffer buffer =
        RawBuffer::Import(space_, memory, 64, Mutability::kMutable, [&released] { ++released; }).value();
    theirs = ToPjrt(buffer, nullptr);
  }
  table_->inc_ref(theirs);
  table_->dec_ref(theirs);
  EXPECT_EQ(released, 0);
  table_->dec_ref(theirs);
  EXPECT_EQ(released, 1);
}

TEST_F(PjrtRawBufferTest, CopiesBothWaysAfterTheirDependencies) {
  PurlinPjrtRawBuffer* const buffer = ToPjrt(Allocate(100), nullptr);
  const Bytes numbers = Numbers(50);
  ForeignEvent ready;
  PurlinPjrtDeviceEventVector dependencies = ToPjrt(Span<const Event>({FromPjrt(ready.Give())}));
  PurlinPjrtDeviceEvent written{nullptr, nullptr};
  ASSERT_EQ(table_->copy_raw_host_to_device_and_return_event(buffer, numbers.data(), 10, 50, &dependencies, &written),
            nullptr);
  EXPECT_EQ(dependencies.data, nullptr) << "moved from";
  EXPECT_EQ(dependencies.size, 0u);
  EXPECT_EQ(written.table->get_state(written.event), kPurlinPjrtDeviceEventState_Unavailable);
  Bytes read(50);
  PurlinPjrtDeviceEventVector after = ToPjrt(Span<const Event>({FromPjrt(written)}));
  PurlinPjrtDeviceEvent done{nullptr, nullptr};
  ASSERT_EQ(table_->copy_raw_device_to_host_and_return_event(buffer, read.data(), 10, 50, &after, &done), nullptr);
  ready.Complete(0, "");
  EXPECT_TRUE(FromPjrt(done).Wait().ok());
  EXPECT_EQ(read, numbers);
  EXPECT_EQ(ready.refs, 1);
  table_->dec_ref(buffer);
}

TEST_F(PjrtRawBufferTest, ADependencysErrorIsTheCopys) {
  PurlinPjrtRawBuffer* const buffer = ToPjrt(Allocate(8), nullptr);
  Bytes bytes(8);
  for (const bool to_host : {false, true}) {
    PurlinPjrtDeviceEventVector failed = ToPjrt(Span<const Event>({Event::Error(DataLossError("x"))}));
    PurlinPjrtDeviceEvent event{nullptr, nullptr};
    PurlinPjrtError* const error =
        to_host ? table_->copy_raw_device_to_host_and_return_event(buffer, bytes.data(), 0, 8, &failed, &event)
                : table_->copy_raw_host_to_device_and_return_event(buffer, bytes.data(), 0, 8, &failed, &event);
    ASSERT_EQ(error, nullptr);
    EXPECT_EQ(FromPjrt(event).Wait(), DataLossError("x"));
  }
  table_->dec_ref(buffer);
}

TEST_F(PjrtRawBufferTest, RangesAreChecked) {
  PurlinPjrtRawBuffer* const buffer = ToPjrt(Allocate(8), nullptr);
  Bytes bytes(16);
  const auto copy = [&](std::int64_t offset, std::int64_t size, bool to_host) {
    PurlinPjrtDeviceEvent event{nullptr, nullptr};
    PurlinPjrtError* const error =
        to_host ? table_->copy_raw_device_to_host_and_return_event(buffer, bytes.data(), offset, size, nullptr, &event)
                : table_->copy_raw_host_to_device_and_return_event(buffer, bytes.data(), offset, size, nullptr, &event);
    if (error == nullptr) return FromPjrt(event).Wait().code();
    EXPECT_EQ(event.event, nullptr);
    return FromPjrt(error).code();
  };
  for (const bool to_host : {false, true}) {
    EXPECT_EQ(copy(0, 8, to_host), StatusCode::kOk);
    EXPECT_EQ(copy(8, 0, to_host), StatusCode::kOk);
    EXPECT_EQ(copy(1, 8, to_host), StatusCode::kOutOfRange);
    EXPECT_EQ(copy(INT64_MAX, INT64_MAX, to_host), StatusCode::kOutOfRange);
    EXPECT_EQ(copy(-1, 1, to_host), StatusCode::kInvalidArgument);
    EXPECT_EQ(copy(0, -1, to_host), StatusCode::kInvalidArgument);
  }
  table_->dec_ref(buffer);
}

TEST_F(PjrtRawBufferTest, SlicesShareTheMemory) {
  const RawBuffer whole = Filled(Numbers(20));
  int memory = 0;
  PurlinPjrtRawBuffer* const buffer = ToPjrt(whole, &memory);
  PurlinPjrtRawBuffer* part = nullptr;
  ASSERT_EQ(table_->slice(buffer, 5, 10, &part), nullptr);
  table_->dec_ref(buffer);
  EXPECT_EQ(table_->get_on_device_size_in_bytes(part), 10u);
  EXPECT_EQ(table_->get_memory_space(part), reinterpret_cast<PurlinPjrtMemory*>(&memory));
  EXPECT_EQ(table_->get_host_pointer(part), static_cast<std::uint8_t*>(whole.host_pointer()) + 5);
  PurlinPjrtRawBuffer* none = part;
  EXPECT_EQ(FromPjrt(table_->slice(part, 5, 6, &none)).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(FromPjrt(table_->slice(part, -1, 1, &none)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FromPjrt(table_->slice(part, 0, 1, nullptr)).code(), StatusCode::kInvalidArgument);
  table_->dec_ref(part);
}

TEST_F(PjrtRawBufferTest, AllocationEventsAreOwnedAndLent) {
  auto [buffer, promise] = RawBuffer::CreateChannel(space_, 8).value();
  PurlinPjrtRawBuffer* const theirs = ToPjrt(buffer, nullptr);
  EXPECT_EQ(table_->get_host_pointer(theirs), nullptr) << "not there yet";
  EXPECT_EQ(table_->opaque_device_memory_data_pointer(theirs), nullptr) << "does not block";
  PurlinPjrtDeviceEvent owned{nullptr, nullptr}, lent{nullptr, nullptr};
  ASSERT_EQ(table_->make_allocation_ready_event(theirs, &owned), nullptr);
  ASSERT_EQ(table_->get_raw_buffer_async_value(theirs, &lent), nullptr);
  EXPECT_EQ(owned.event, lent.event);
  EXPECT_EQ(lent.table->get_state(lent.event), kPurlinPjrtDeviceEventState_Unavailable);
  EXPECT_TRUE(std::move(promise).Allocate().ok());
  EXPECT_EQ(lent.table->get_state(lent.event), kPurlinPjrtDeviceEventState_Ready);
  EXPECT_TRUE(FromPjrt(owned).Wait().ok());
  EXPECT_NE(table_->get_host_pointer(theirs), nullptr);
  table_->dec_ref(theirs);
}

TEST_F(PjrtRawBufferTest, NullIsBorne) {
  table_->inc_ref(nullptr);
  table_->dec_ref(nullptr);
  EXPECT_EQ(table_->get_on_device_size_in_bytes(nullptr), 0u);
  EXPECT_EQ(table_->get_memory_space(nullptr), nullptr);
  EXPECT_EQ(table_->get_host_pointer(nullptr), nullptr);
  EXPECT_EQ(table_->opaque_device_memory_data_pointer(nullptr), nullptr);
  EXPECT_FALSE(table_->is_mutable(nullptr));
  PurlinPjrtDeviceEvent event{nullptr, nullptr};
  PurlinPjrtRawBuffer* slice = nullptr;
  EXPECT_EQ(FromPjrt(table_->make_allocation_ready_event(nullptr, &event)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FromPjrt(table_->get_raw_buffer_async_value(nullptr, &event)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FromPjrt(table_->slice(nullptr, 0, 0, &slice)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FromPjrt(table_->make_allocation_ready_event(nullptr, nullptr)).code(), StatusCode::kInvalidArgument);
  ForeignEvent dependency;
  dependency.Complete(0, "");
  auto* const data = new PurlinPjrtDeviceEvent[1]{dependency.Give()};
  PurlinPjrtDeviceEventVector vector = {data, 1, 1, [](PurlinPjrtDeviceEvent* array) { delete[] array; }};
  EXPECT_EQ(FromPjrt(table_->copy_raw_host_to_device_and_return_event(nullptr, nullptr, 0, 0, &vector, &event)).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(dependency.refs, 1) << "dependencies are moved out all the same";
  PurlinPjrtRawBuffer* const buffer = ToPjrt(Allocate(8), nullptr);
  EXPECT_EQ(FromPjrt(table_->copy_raw_device_to_host_and_return_event(buffer, nullptr, 0, 8, nullptr, nullptr)).code(),
            StatusCode::kInvalidArgument);
  ASSERT_EQ(table_->copy_raw_device_to_host_and_return_event(buffer, nullptr, 0, 8, nullptr, &event), nullptr);
  EXPECT_EQ(FromPjrt(event).Wait().code(), StatusCode::kInvalidArgument);
  table_->dec_ref(buffer);
}

TEST_F(PjrtRawBufferTest, CopiesToAnotherOfOursWhenTheDependenciesHaveHappened) {
  const RawBuffer destination = Allocate(30);
  PurlinPjrtRawBuffer* const source = ToPjrt(Filled(Numbers(20)), nullptr);
  PurlinPjrtRawBuffer* const to = ToPjrt(destination, nullptr);
  PurlinPjrtDeviceEventPromise* const definition = MakePjrtPromise("definition");
  const Event defined = EventOf(definition);
  ForeignPromise used;
  Allocated allocated;
  ForeignEvent ready;
  PurlinPjrtDeviceEventVector dependencies = ToPjrt(Span<const Event>({FromPjrt(ready.Give())}));
  table_->schedule_copy_to(source, &dependencies, to, definition, &used.visible, &Allocated::Tell, &allocated);
  EXPECT_EQ(dependencies.size, 0u);
  // The caller's references may go at once.
  table_->dec_ref(source);
  table_->dec_ref(to);
  EXPECT_EQ(allocated.calls, 0);
  EXPECT_FALSE(defined.IsReady());
  ready.Complete(0, "");
  EXPECT_TRUE(defined.Wait().ok());
  EXPECT_EQ(allocated.calls, 1);
  EXPECT_TRUE(allocated.status.ok());
  const Bytes read = BytesIn(destination);
  EXPECT_EQ(Bytes(read.begin(), read.begin() + 20), Numbers(20));
  EXPECT_EQ(used.sets, 1);
  EXPECT_TRUE(used.status.ok());
  EXPECT_EQ(used.refs, 0);
}

TEST_F(PjrtRawBufferTest, WithoutDependenciesASmallCopyIsDoneOnReturn) {
  const RawBuffer destination = Allocate(20);
  PurlinPjrtRawBuffer* const source = ToPjrt(Filled(Numbers(20)), nullptr);
  PurlinPjrtRawBuffer* const to = ToPjrt(destination, nullptr);
  ForeignPromise defined, used;
  table_->schedule_copy_to(source, nullptr, to, &defined.visible, &used.visible, nullptr, nullptr);
  EXPECT_EQ(defined.sets, 1);
  EXPECT_EQ(used.sets, 1);
  EXPECT_TRUE(defined.status.ok());
  EXPECT_EQ(BytesIn(destination), Numbers(20));
  table_->schedule_copy_to(source, nullptr, to, nullptr, nullptr, nullptr, nullptr);
  table_->dec_ref(source);
  table_->dec_ref(to);
}

TEST_F(PjrtRawBufferTest, AnErrorIsToldToAllThreeAndNothingIsCopied) {
  const RawBuffer destination = Filled(Bytes(20));
  PurlinPjrtRawBuffer* const source = ToPjrt(Filled(Numbers(20)), nullptr);
  PurlinPjrtRawBuffer* const to = ToPjrt(destination, nullptr);
  ForeignPromise defined, used;
  Allocated allocated;
  PurlinPjrtDeviceEventVector failed = ToPjrt(Span<const Event>({Event::Error(DataLossError("x"))}));
  table_->schedule_copy_to(source, &failed, to, &defined.visible, &used.visible, &Allocated::Tell, &allocated);
  EXPECT_EQ(allocated.status, DataLossError("x"));
  EXPECT_EQ(defined.status, DataLossError("x"));
  EXPECT_EQ(used.status, DataLossError("x"));
  EXPECT_EQ(allocated.calls + defined.sets + used.sets, 3);
  EXPECT_EQ(BytesIn(destination), Bytes(20));
  for (PurlinPjrtRawBuffer* missing : {source, to}) {
    ForeignPromise definition, usage;
    Allocated told;
    table_->schedule_copy_to(missing == source ? nullptr : source, nullptr, missing == to ? nullptr : to,
                             &definition.visible, &usage.visible, &Allocated::Tell, &told);
    EXPECT_EQ(told.status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(definition.status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(told.calls + definition.sets + usage.sets, 3);
    EXPECT_EQ(definition.refs + usage.refs, 0);
  }
  table_->dec_ref(source);
  table_->dec_ref(to);
}

TEST_F(PjrtRawBufferTest, AnAllocationThatWaitsForItsCallbackIsNotADeadlock) {
  // As XLA's CopyToMemorySpace: the call of on_allocated lets the destination's memory be allocated.
  auto [destination, promise] = RawBuffer::CreateChannel(space_, 20).value();
  PurlinPjrtRawBuffer* const source = ToPjrt(Filled(Numbers(20)), nullptr);
  PurlinPjrtRawBuffer* const to = ToPjrt(destination, nullptr);
  PurlinPjrtDeviceEventPromise* const definition = MakePjrtPromise();
  const Event defined = EventOf(definition);
  table_->schedule_copy_to(
      source, nullptr, to, definition, nullptr,
      [](PurlinPjrtError* error, void* owed) {
        EXPECT_TRUE(FromPjrt(error).ok());
        EXPECT_TRUE(std::move(*static_cast<RawBufferPromise*>(owed)).Allocate().ok());
      },
      &promise);
  table_->dec_ref(source);
  table_->dec_ref(to);
  EXPECT_TRUE(defined.Wait().ok());
  EXPECT_EQ(BytesIn(destination), Numbers(20));
}

TEST_F(PjrtRawBufferTest, CopiesToSomebodyElsesByTheirOwnTable) {
  PurlinPjrtRawBuffer* const source = ToPjrt(Filled(Numbers(20)), nullptr);
  ForeignBuffer theirs;
  ForeignPromise defined, used;
  Allocated allocated;
  table_->schedule_copy_to(source, nullptr, &theirs.visible, &defined.visible, &used.visible, &Allocated::Tell,
                           &allocated);
  table_->dec_ref(source);
  EXPECT_EQ(allocated.calls, 1);
  EXPECT_EQ(theirs.bytes, Numbers(20));
  EXPECT_EQ(theirs.refs, 2) << "kept while it copies";
  EXPECT_EQ(defined.sets, 0);
  theirs.copied.Complete(0, "");
  EXPECT_EQ(defined.sets + used.sets, 2);
  EXPECT_TRUE(defined.status.ok());
  EXPECT_EQ(theirs.refs, 1);
}

TEST_F(PjrtRawBufferTest, SomebodyElsesRefusalAndSmallTableAreErrors) {
  PurlinPjrtRawBuffer* const source = ToPjrt(Filled(Numbers(20)), nullptr);
  ForeignBuffer refuses;
  refuses.refuses_with = 8;
  ForeignPromise defined, used;
  table_->schedule_copy_to(source, nullptr, &refuses.visible, &defined.visible, &used.visible, nullptr, nullptr);
  EXPECT_EQ(defined.status, ResourceExhaustedError("no room"));
  EXPECT_EQ(used.sets, 1);
  EXPECT_EQ(refuses.refs, 1);
  EXPECT_EQ(ForeignError::alive, 0);
  PurlinPjrtRawBufferTable small = *ForeignBuffer::Table();
  small.struct_size = offsetof(PurlinPjrtRawBufferTable, copy_raw_host_to_device_and_return_event);
  ForeignBuffer old;
  old.visible.table = &small;
  ForeignPromise definition;
  table_->schedule_copy_to(source, nullptr, &old.visible, &definition.visible, nullptr, nullptr, nullptr);
  EXPECT_EQ(definition.status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(old.refs, 1);
  table_->dec_ref(source);
}

TEST_F(PjrtRawBufferTest, MemoryThatTheHostDoesNotReachIsReadFirst) {
  // Not there yet, so there is no pointer to copy from.
  auto [buffer, promise] = RawBuffer::CreateChannel(space_, 20).value();
  PurlinPjrtRawBuffer* const source = ToPjrt(buffer, nullptr);
  ForeignBuffer theirs;
  PurlinPjrtDeviceEventPromise* const definition = MakePjrtPromise();
  const Event defined = EventOf(definition);
  table_->schedule_copy_to(source, nullptr, &theirs.visible, definition, nullptr, nullptr, nullptr);
  EXPECT_TRUE(std::move(promise).Fulfil(Filled(Numbers(20))).ok());
  theirs.copied.Complete(0, "");
  EXPECT_TRUE(defined.Wait().ok());
  EXPECT_EQ(theirs.bytes, Numbers(20));
  table_->dec_ref(source);
  // The null backend has no bytes to give.
  const Client null = MakeClient("null");
  PurlinPjrtRawBuffer* const imaginary =
      ToPjrt(RawBuffer::Allocate(null.devices()[0].default_memory_space(), 8).value(), nullptr);
  ForeignBuffer never;
  PurlinPjrtDeviceEventPromise* const fails = MakePjrtPromise();
  const Event failed = EventOf(fails);
  table_->schedule_copy_to(imaginary, nullptr, &never.visible, fails, nullptr, nullptr, nullptr);
  EXPECT_EQ(failed.Wait().code(), StatusCode::kUnimplemented);
  table_->dec_ref(imaginary);
}

/// Takes copies of any part, at once, and notes how long the longest was.
struct Gathering {
  PurlinPjrtRawBuffer visible{Table()};
  Bytes bytes;
  std::int64_t longest = 0;
  int copies = 0;

  static const PurlinPjrtRawBufferTable* Table() {
    static const PurlinPjrtRawBufferTable table = [] {
      PurlinPjrtRawBufferTable made{};
      made.struct_size = offsetof(PurlinPjrtRawBufferTable, copy_raw_device_to_host_and_return_event);
      made.inc_ref = made.dec_ref = [](PurlinPjrtRawBuffer*) {};
      made.copy_raw_host_to_device_and_return_event =
          [](PurlinPjrtRawBuffer* buffer, const void* source, std::int64_t offset, std::int64_t size,
             PurlinPjrtDeviceEventVector*, PurlinPjrtDeviceEvent* event) -> PurlinPjrtError* {
        auto* const self = reinterpret_cast<Gathering*>(buffer);
        if (offset + size > static_cast<std::int64_t>(self->bytes.size())) return ForeignError::Make(11, "too far");
        std::memcpy(self->bytes.data() + offset, source, static_cast<std::size_t>(size));
        self->longest = std::max(self->longest, size);
        ++self->copies;
        *event = ToPjrt(Event());
        return nullptr;
      };
      return made;
    }();
    return &table;
  }
};

TEST_F(PjrtRawBufferTest, MemoryThatTheHostDoesNotReachIsReadByPieces) {
  const Client simulated = MakeClient("sim");
  const std::size_t size = (std::size_t{10} << 20) + 3;
  PurlinPjrtRawBuffer* const source =
      ToPjrt(FilledIn(simulated.devices()[0].default_memory_space(), Numbers(size)), nullptr);
  ASSERT_EQ(table_->get_host_pointer(source), nullptr);
  Gathering theirs;
  theirs.bytes.resize(size);
  PurlinPjrtDeviceEventPromise* const definition = MakePjrtPromise();
  const Event defined = EventOf(definition);
  table_->schedule_copy_to(source, nullptr, &theirs.visible, definition, nullptr, nullptr, nullptr);
  EXPECT_TRUE(defined.Wait().ok());
  EXPECT_TRUE(theirs.bytes == Numbers(size));
  EXPECT_LE(theirs.longest, std::int64_t{4} << 20);
  EXPECT_EQ(theirs.copies, 3);
  Gathering small;
  small.bytes.resize(std::size_t{5} << 20);
  PurlinPjrtDeviceEventPromise* const refused = MakePjrtPromise();
  const Event failed = EventOf(refused);
  table_->schedule_copy_to(source, nullptr, &small.visible, refused, nullptr, nullptr, nullptr);
  EXPECT_EQ(failed.Wait(), OutOfRangeError("too far"));
  EXPECT_EQ(small.copies, 1) << "nothing is copied after an error";
  table_->dec_ref(source);
}

TEST_F(PjrtRawBufferTest, MemoryLargerThanTheHostsIsNoReasonToEnd) {
  const Client null = MakeClient("null");
  PurlinPjrtRawBuffer* const imaginary =
      ToPjrt(RawBuffer::Allocate(null.devices()[0].default_memory_space(), std::size_t{1} << 40).value(), nullptr);
  Gathering never;
  PurlinPjrtDeviceEventPromise* const fails = MakePjrtPromise();
  const Event failed = EventOf(fails);
  table_->schedule_copy_to(imaginary, nullptr, &never.visible, fails, nullptr, nullptr, nullptr);
  EXPECT_EQ(failed.Wait().code(), StatusCode::kUnimplemented);
  table_->dec_ref(imaginary);
}

}  // namespace
}  // namespace purlin
