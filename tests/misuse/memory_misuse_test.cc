// Client, Device, MemorySpace, AllocOptions, HostMemoryAllocator, RawBuffer, RawBufferPromise, DmaMapping,
// MemoryReport.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/client.h"
#include "purlin/raw_buffer.h"
#include "purlin/stall.h"
#include "tests/cpp/raw_bytes.h"
#include "tests/cpp/testing.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kMiB = std::size_t{1} << 20;

StatusOr<Client> With(void (*change)(ClientOptions&)) {
  ClientOptions options;
  change(options);
  return Client::Create(options);
}

// Client --------------------------------------------------------------------------------------------------------------

TEST(ClientMisuse, NumbersOutOfRangeAreRefusedByValue) {
  // What a negative number becomes.
  constexpr auto kMinusOne = static_cast<std::size_t>(-1);
  EXPECT_TRUE(Fails(With([](ClientOptions& o) { o.device_count = 0; }), StatusCode::kInvalidArgument, {"0"}));
  EXPECT_TRUE(Fails(With([](ClientOptions& o) { o.device_count = kMinusOne; }), StatusCode::kInvalidArgument,
                    {"18446744073709551615"}));
  EXPECT_TRUE(Fails(With([](ClientOptions& o) { o.device_count = 1025; }), StatusCode::kInvalidArgument, {"1025"}));
  EXPECT_TRUE(Fails(With([](ClientOptions& o) { o.device_count = std::numeric_limits<std::size_t>::max() / 2 + 1; }),
                    StatusCode::kInvalidArgument, {"9223372036854775808"}));
  EXPECT_TRUE(Fails(With([](ClientOptions& o) { o.worker_count = kMinusOne; }), StatusCode::kInvalidArgument,
                    {"18446744073709551615"}));
  EXPECT_TRUE(Fails(With([](ClientOptions& o) { o.worker_count = 4097; }), StatusCode::kInvalidArgument, {"4097"}));
  EXPECT_TRUE(Fails(With([](ClientOptions& o) { o.process_index = -5; }), StatusCode::kInvalidArgument, {"-5"}));
}

TEST(ClientMisuse, AnUnknownPlatformNamesThoseThatExist) {
  for (const char* platform : {"", "cuba", "HOST", "host ", "\xFF"}) {
    ClientOptions options;
    options.platform = platform;
    EXPECT_TRUE(Fails(Client::Create(options), StatusCode::kNotFound, {"host", "null", "sim"})) << platform;
  }
}

TEST(ClientMisuse, AStructSizeThatNoVersionHasIsRefused) {
  EXPECT_TRUE(Fails(With([](ClientOptions& o) { o.struct_size = 0; }), StatusCode::kInvalidArgument, {"struct_size"}));
  EXPECT_TRUE(Fails(With([](ClientOptions& o) { o.struct_size = 3; }), StatusCode::kInvalidArgument, {"3"}));
  EXPECT_TRUE(Fails(With([](ClientOptions& o) { o.struct_size = kMost; }), StatusCode::kInvalidArgument));
}

TEST(ClientMisuse, AnAllocatorForAnotherPlatformIsRefused) {
  struct Never final : HostMemoryAllocator {
    void* Allocate(std::size_t, std::size_t) override { return nullptr; }
    void Deallocate(void*, std::size_t, std::size_t) override {}
  };
  ClientOptions options;
  options.host_memory_allocator = std::make_shared<Never>();
  options.platform = "null";
  EXPECT_TRUE(Fails(Client::Create(options), StatusCode::kInvalidArgument, {"null"}));
}

TEST(ClientMisuse, ASeedThatIsNoNumberIsRefused) {
  setenv("PURLIN_SIM_SEED", "seven", 1);
  EXPECT_TRUE(Fails(With([](ClientOptions& o) { o.platform = "sim"; }), StatusCode::kInvalidArgument, {"seven"}));
  unsetenv("PURLIN_SIM_SEED");
}

TEST(ClientMisuse, AnUnknownModeAtTheEndIsRefused) {
  EXPECT_TRUE(Fails(With([](ClientOptions& o) {
                      o.shutdown_at_end = ShutdownOptions();
                      o.shutdown_at_end->mode = static_cast<ShutdownMode>(5);
                    }),
                    StatusCode::kInvalidArgument, {"5"}));
}

TEST(ClientMisuse, AnUnknownShutdownModeChangesNothing) {
  const Client client = HostClient();
  ShutdownOptions options;
  options.mode = static_cast<ShutdownMode>(255);
  EXPECT_TRUE(Fails(client.Shutdown(options), StatusCode::kInvalidArgument, {"255"}));
  EXPECT_TRUE(Ok(RawBuffer::Allocate(SpaceOf(client), 64)));
}

TEST(ClientMisuse, ADeviceThatIsNotThereNamesTheCount) {
  const Client client = HostClient(3);
  for (const int id : {-1, 3, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    EXPECT_TRUE(Fails(client.LookupDevice(id), StatusCode::kNotFound, {std::to_string(id), "3"}));
  }
}

TEST(ClientMisuse, AMemoryKindThatIsNotThereNamesTheOthers) {
  const Client client = HostClient();
  EXPECT_TRUE(Fails(client.devices()[0].memory_space("vram"), StatusCode::kNotFound, {"vram", "pinned_host"}));
  EXPECT_TRUE(Fails(client.devices()[0].memory_space(""), StatusCode::kNotFound));
  EXPECT_TRUE(Fails(client.devices()[0].memory_space("\xFF"), StatusCode::kNotFound));
}

TEST(ClientMisuse, NoProcessIndexIsGuessed) {
  EXPECT_TRUE(Fails(HostClient().process_index(), StatusCode::kFailedPrecondition));
}

TEST(ClientMisuse, AssignmentsOfNothingAndOfTooMuch) {
  const Client client = HostClient(4);
  const std::size_t max = std::numeric_limits<std::size_t>::max();
  EXPECT_TRUE(Fails(client.GetDefaultDeviceAssignment(0, 1), StatusCode::kInvalidArgument, {"0"}));
  EXPECT_TRUE(Fails(client.GetDefaultDeviceAssignment(1, static_cast<std::size_t>(-2)), StatusCode::kInvalidArgument,
                    {"18446744073709551614"}));
  EXPECT_TRUE(Fails(client.GetDefaultDeviceAssignment(5, 1), StatusCode::kInvalidArgument, {"5", "4"}));
  EXPECT_TRUE(Fails(client.GetDefaultDeviceAssignment(max, max), StatusCode::kInvalidArgument));
}

TEST(ClientMisuse, ShuttingDownFromItsOwnRunnerIsRefused) {
  const Client client = HostClient();
  std::promise<Status> answer;
  ASSERT_TRUE(Ok(client.runner().Schedule([&] { answer.set_value(client.Shutdown()); })));
  EXPECT_TRUE(Fails(answer.get_future().get(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Ok(RawBuffer::Allocate(SpaceOf(client), 64)));
}

TEST(ClientMisuse, AfterShutdownWorkIsRefusedAndHandlesAnswer) {
  const Client client = HostClient();
  const MemorySpace space = SpaceOf(client);
  const RawBuffer memory = FilledIn(space, {1, 2, 3});
  EventPromise gate("gate");
  EXPECT_TRUE(Ok(client.Shutdown()));
  const std::string_view why = "the client has been shut down";
  std::uint8_t byte = 9;
  EXPECT_TRUE(Fails(RawBuffer::Allocate(space, 64), StatusCode::kFailedPrecondition, {why}));
  EXPECT_TRUE(Fails(memory.CopyFromHost(&byte, 0, 1), StatusCode::kFailedPrecondition, {why}));
  EXPECT_TRUE(Fails(memory.CopyToHost(&byte, 0, 1), StatusCode::kFailedPrecondition, {why}));
  EXPECT_TRUE(Fails(memory.CopyTo(memory), StatusCode::kFailedPrecondition, {why}));
  EXPECT_TRUE(Fails(client.runner().Schedule([] {}), StatusCode::kCancelled));
  EXPECT_EQ(memory.on_device_size_bytes(), 3U);
  EXPECT_EQ(static_cast<const std::uint8_t*>(memory.host_pointer())[1], 2);
  EXPECT_TRUE(Ok(memory.Slice(1, 1)));
  EXPECT_EQ(client.devices().size(), 1U);
  EXPECT_TRUE(Ok(client.Shutdown()));
  gate.SetReady();
}

TEST(ClientMisuse, TheLastHandleMayGoOnItsOwnRunner) {
  std::promise<void> gone;
  {
    auto client = std::make_shared<Client>(HostClient());
    ThreadPoolAsyncWorkRunner runner = client->runner();
    ASSERT_TRUE(Ok(runner.Schedule([&gone, kept = client]() mutable {
      while (kept.use_count() > 1) std::this_thread::yield();
      kept.reset();
      gone.set_value();
    })));
  }
  gone.get_future().wait();
}

TEST(ClientMisuse, EightThreadsShutDownWhileOthersAllocateAndCopy) {
  for (int round = 0; round < 20; ++round) {
    const Client client = HostClient(2);
    const MemorySpace space = SpaceOf(client);
    std::vector<std::uint8_t> bytes(100000, 7);
    Together(8, [&](int i) {
      if (i < 2) {
        EXPECT_TRUE(Ok(client.Shutdown()));
        return;
      }
      for (int j = 0; j < 20; ++j) {
        const StatusOr<RawBuffer> memory = RawBuffer::Allocate(space, bytes.size());
        if (!memory.ok()) {
          EXPECT_TRUE(Fails(memory, StatusCode::kFailedPrecondition, {"shut down"}));
          return;
        }
        const Status copied = memory->CopyFromHost(bytes.data(), 0, bytes.size()).Wait();
        EXPECT_TRUE(copied.ok() || IsFailedPrecondition(copied) || IsCancelled(copied)) << copied;
      }
    });
    EXPECT_EQ(space.Stats().bytes_in_use, 0U);
  }
}

// Allocation ----------------------------------------------------------------------------------------------------------

TEST(AllocationMisuse, SizesThatNoMachineHas) {
  const MemorySpace space = SpaceOf(HostClient());
  for (const std::size_t size : {kMost, kMost - 63, kMost / 2, std::size_t{1} << 62}) {
    EXPECT_TRUE(Fails(RawBuffer::Allocate(space, size), StatusCode::kResourceExhausted, {std::to_string(size)}));
  }
  EXPECT_EQ(space.Stats().bytes_in_use, 0U);
}

TEST(AllocationMisuse, BeyondTheLimitSaysWhoHoldsIt) {
  const MemorySpace space = SpaceOf(HostClient(1, 1, kMiB));
  AllocOptions options;
  options.label = "the greedy one";
  const auto held = RawBuffer::Allocate(space, kMiB - 4096, options);
  ASSERT_TRUE(Ok(held));
  const auto refused = RawBuffer::Allocate(space, 8192);
  EXPECT_TRUE(Fails(refused, StatusCode::kResourceExhausted, {"8192", "the greedy one", "memory_misuse_test.cc"}));
  EXPECT_TRUE(refused.status().GetPayload(kMemoryReportTypeUrl).has_value());
}

TEST(AllocationMisuse, AlignmentsThatAreNone) {
  const MemorySpace space = SpaceOf(HostClient());
  for (const std::size_t alignment : {std::size_t{3}, std::size_t{96}, std::size_t{1} << 31, kMost}) {
    AllocOptions options;
    options.alignment_bytes = alignment;
    EXPECT_TRUE(
        Fails(RawBuffer::Allocate(space, 64, options), StatusCode::kInvalidArgument, {std::to_string(alignment)}));
  }
}

TEST(AllocationMisuse, AnUnknownPolicyIsRefusedByNumber) {
  const MemorySpace space = SpaceOf(HostClient());
  AllocOptions options;
  options.oom = static_cast<OomPolicy>(-9);
  EXPECT_TRUE(Fails(RawBuffer::Allocate(space, 64, options), StatusCode::kInvalidArgument, {"-9"}));
  EXPECT_TRUE(Fails(RawBuffer::CreateChannel(space, 64, options), StatusCode::kInvalidArgument, {"-9"}));
}

TEST(AllocationMisuse, AStructSizeThatNoVersionHasIsRefused) {
  const MemorySpace space = SpaceOf(HostClient());
  AllocOptions options;
  options.struct_size = 1;
  EXPECT_TRUE(Fails(RawBuffer::Allocate(space, 64, options), StatusCode::kInvalidArgument, {"struct_size"}));
  EXPECT_TRUE(Fails(RawBuffer::CreateChannel(space, 64, options), StatusCode::kInvalidArgument, {"struct_size"}));
}

TEST(AllocationMisuse, WaitingForMoreThanThereWillEverBeFailsAtOnce) {
  const MemorySpace space = SpaceOf(HostClient(1, 1, kMiB));
  const auto held = RawBuffer::Allocate(space, 4096);
  AllocOptions options;
  options.oom = OomPolicy::kWait;
  EXPECT_TRUE(Fails(RawBuffer::Allocate(space, 2 * kMiB, options), StatusCode::kResourceExhausted));
}

TEST(AllocationMisuse, WaitingWhileNobodyHoldsAnythingFailsAtOnce) {
  const MemorySpace space = SpaceOf(HostClient(1, 1, kMiB));
  AllocOptions options;
  options.oom = OomPolicy::kWait;
  EXPECT_TRUE(Fails(RawBuffer::Allocate(space, kMiB + 1, options), StatusCode::kResourceExhausted));
}

TEST(AllocationMisuse, AnAllocationThatWaitsAndIsDroppedIsCancelled) {
  const MemorySpace space = SpaceOf(HostClient(1, 1, kMiB));
  auto held = RawBuffer::Allocate(space, kMiB);
  ASSERT_TRUE(Ok(held));
  AllocOptions options;
  options.oom = OomPolicy::kWait;
  Event coming;
  {
    const auto waiting = RawBuffer::Allocate(space, kMiB, options);
    ASSERT_TRUE(Ok(waiting));
    coming = waiting->allocation_event();
    EXPECT_FALSE(coming.IsReady());
    EXPECT_EQ(waiting->host_pointer(), nullptr);
    EXPECT_TRUE(Fails(waiting->device_pointer(), StatusCode::kFailedPrecondition));
  }
  EXPECT_TRUE(Fails(coming, StatusCode::kCancelled));
}

TEST(AllocationMisuse, AfterAnEventThatFailedFails) {
  const MemorySpace space = SpaceOf(HostClient());
  AllocOptions options;
  options.after = Event::Error(DataLossError("upstream"));
  EXPECT_TRUE(Fails(RawBuffer::Allocate(space, 64, options), StatusCode::kDataLoss, {"upstream"}));
  EventPromise later("later");
  options.after = later.event();
  const auto memory = RawBuffer::Allocate(space, 64, options);
  ASSERT_TRUE(Ok(memory));
  later.SetError(AbortedError("too late"));
  EXPECT_TRUE(Fails(memory->allocation_event(), StatusCode::kAborted, {"too late"}));
}

TEST(AllocationMisuse, AHookThatAllocatesAndFreesInsideItself) {
  ClientOptions options;
  options.memory_limit_bytes = kMiB;
  auto held = std::make_shared<std::optional<RawBuffer>>();
  auto space = std::make_shared<std::optional<MemorySpace>>();
  int calls = 0, inner_failures = 0;
  options.on_out_of_memory = [&](const MemoryReport& report) {
    ++calls;
    EXPECT_EQ(report.requested_bytes, kMiB);
    inner_failures += RawBuffer::Allocate(**space, 4 * kMiB).ok() ? 0 : 1;
    static_cast<void>((*space)->Report().DebugString());
    static_cast<void>(DumpStalls());
    const bool freed = held->has_value();
    held->reset();
    return freed;
  };
  const Client client = Client::Create(options).value();
  space->emplace(SpaceOf(client));
  held->emplace(RawBuffer::Allocate(**space, 512 * 1024).value());
  AllocOptions retry;
  retry.oom = OomPolicy::kRetry;
  EXPECT_TRUE(Ok(RawBuffer::Allocate(**space, kMiB, retry)));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(inner_failures, 1);
  space->reset();
}

TEST(AllocationMisuse, AHookThatAlwaysSaysYesDoesNotAskForEver) {
  ClientOptions options;
  options.memory_limit_bytes = kMiB;
  int calls = 0;
  options.on_out_of_memory = [&calls](const MemoryReport&) {
    ++calls;
    return true;
  };
  const Client client = Client::Create(options).value();
  AllocOptions retry;
  retry.oom = OomPolicy::kRetry;
  EXPECT_TRUE(Fails(RawBuffer::Allocate(SpaceOf(client), 2 * kMiB, retry), StatusCode::kResourceExhausted));
  EXPECT_LE(calls, 1);
  const auto held = RawBuffer::Allocate(SpaceOf(client), kMiB / 2);
  EXPECT_TRUE(Fails(RawBuffer::Allocate(SpaceOf(client), kMiB, retry), StatusCode::kResourceExhausted));
}

// An allocator of the user's ------------------------------------------------------------------------------------------

class Bad final : public HostMemoryAllocator {
 public:
  explicit Bad(std::uintptr_t offset) : offset_(offset) {}
  void* Allocate(std::size_t size_bytes, std::size_t alignment_bytes) override {
    if (offset_ == 0) return nullptr;
    ++live;
    auto* const base =
        static_cast<char*>(std::aligned_alloc(alignment_bytes, (size_bytes / alignment_bytes + 2) * alignment_bytes));
    return base + offset_;
  }
  void Deallocate(void* address, std::size_t, std::size_t) override {
    --live;
    std::free(static_cast<char*>(address) - offset_);
  }
  std::atomic<int> live{0};

 private:
  std::uintptr_t offset_;
};

TEST(HostMemoryAllocatorMisuse, NullIsNoMemory) {
  ClientOptions options;
  options.host_memory_allocator = std::make_shared<Bad>(0);
  const Client client = Client::Create(options).value();
  EXPECT_TRUE(Fails(RawBuffer::Allocate(SpaceOf(client), 64), StatusCode::kResourceExhausted));
  EXPECT_EQ(SpaceOf(client).Stats().bytes_in_use, 0U);
}

TEST(HostMemoryAllocatorMisuse, AnAddressThatIsNotAlignedIsGivenBack) {
  const auto allocator = std::make_shared<Bad>(8);
  ClientOptions options;
  options.host_memory_allocator = allocator;
  const Client client = Client::Create(options).value();
  EXPECT_TRUE(Fails(RawBuffer::Allocate(SpaceOf(client), 64), StatusCode::kInternal));
  EXPECT_EQ(allocator->live.load(), 0);
  EXPECT_EQ(SpaceOf(client).Stats().bytes_in_use, 0U);
}

// RawBuffer -----------------------------------------------------------------------------------------------------------

class RawBufferMisuse : public testing::Test {
 protected:
  Client client_ = HostClient(2);
  MemorySpace space_ = SpaceOf(client_);
  RawBuffer sixteen_ = FilledIn(space_, Bytes(16, 1));
  std::uint8_t out_[64] = {};
};

TEST_F(RawBufferMisuse, RangesPastTheEndNameTheirNumbers) {
  EXPECT_TRUE(Fails(sixteen_.Slice(0, 17), StatusCode::kOutOfRange, {"17", "16"}));
  EXPECT_TRUE(Fails(sixteen_.Slice(17, 0), StatusCode::kOutOfRange, {"17", "16"}));
  EXPECT_TRUE(Fails(sixteen_.Slice(kMost, 2), StatusCode::kOutOfRange, {"18446744073709551615", "2", "16"}));
  EXPECT_TRUE(Fails(sixteen_.CopyToHost(out_, 10, 7), StatusCode::kOutOfRange, {"10", "7", "16"}));
  EXPECT_TRUE(Fails(sixteen_.CopyToHost(out_, kMost, kMost), StatusCode::kOutOfRange));
  EXPECT_TRUE(Fails(sixteen_.CopyFromHost(out_, 1, kMost), StatusCode::kOutOfRange, {"16"}));
  EXPECT_TRUE(Fails(sixteen_.CopyRangeTo(8, sixteen_, 9, 8), StatusCode::kOutOfRange, {"9", "8", "16"}));
  EXPECT_TRUE(Fails(sixteen_.CopyRangeTo(9, sixteen_, 8, 8), StatusCode::kOutOfRange, {"9", "8", "16"}));
}

TEST_F(RawBufferMisuse, NothingAtTheEndIsFine) {
  EXPECT_EQ(sixteen_.Slice(16, 0)->on_device_size_bytes(), 0U);
  EXPECT_TRUE(Ok(sixteen_.CopyToHost(nullptr, 16, 0)));
  EXPECT_TRUE(Ok(sixteen_.CopyFromHost(nullptr, 0, 0)));
  EXPECT_TRUE(Ok(RawBuffer::Allocate(space_, 0)));
}

TEST_F(RawBufferMisuse, NullIsRefused) {
  EXPECT_TRUE(Fails(sixteen_.CopyFromHost(nullptr, 0, 1), StatusCode::kInvalidArgument, {"null"}));
  EXPECT_TRUE(Fails(sixteen_.CopyToHost(nullptr, 0, 1), StatusCode::kInvalidArgument, {"null"}));
}

TEST_F(RawBufferMisuse, SlicesAreAllOrNone) {
  EXPECT_TRUE(Fails(sixteen_.Slices({{0, 4}, {14, 4}, {99, 1}}), StatusCode::kOutOfRange, {"14", "4", "16"}));
  EXPECT_EQ(sixteen_.Slices({})->size(), 0U);
}

TEST_F(RawBufferMisuse, IntoSomethingSmallerOrOfAnotherClient) {
  const RawBuffer eight = RawBuffer::Allocate(space_, 8).value();
  EXPECT_TRUE(Fails(sixteen_.CopyTo(eight), StatusCode::kInvalidArgument, {"16", "8"}));
  const Client other = HostClient();
  const RawBuffer strange = RawBuffer::Allocate(SpaceOf(other), 16).value();
  EXPECT_TRUE(Fails(sixteen_.CopyTo(strange), StatusCode::kInvalidArgument, {"client"}));
  EXPECT_TRUE(Fails(sixteen_.CopyRangeTo(0, strange, 0, 1), StatusCode::kInvalidArgument, {"client"}));
}

TEST_F(RawBufferMisuse, OntoItselfOverlapping) {
  const RawBuffer memory = FilledIn(space_, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_TRUE(Ok(memory.CopyTo(memory)));
  EXPECT_TRUE(Ok(memory.CopyRangeTo(0, memory, 2, 6)));
  EXPECT_EQ(BytesIn(memory), (Bytes{1, 2, 1, 2, 3, 4, 5, 6}));
}

TEST_F(RawBufferMisuse, AFailedDependencyCopiesNothing) {
  const Event failed = Event::Error(AbortedError("upstream"));
  EXPECT_TRUE(Fails(sixteen_.CopyFromHost(out_, 0, 16, {failed}), StatusCode::kAborted, {"upstream"}));
  EXPECT_EQ(BytesIn(sixteen_), Bytes(16, 1));
  Event dropped;
  {
    const EventPromise promise("dropped dependency");
    dropped = sixteen_.CopyFromHost(out_, 0, 16, {promise.event()});
  }
  EXPECT_TRUE(Fails(dropped, StatusCode::kInternal, {"'dropped dependency'"}));
  EXPECT_EQ(BytesIn(sixteen_), Bytes(16, 1));
}

TEST_F(RawBufferMisuse, ACopyThatWaitsForItselfThroughItsOwnWaiterEnds) {
  EventPromise gate("gate");
  const Event first = sixteen_.CopyToHost(out_, 0, 16, {gate.event()});
  Status inside = InternalError("not called");
  std::promise<void> told;
  first.OnReady([&] {
    inside = sixteen_.CopyToHost(out_, 0, 16, {first}).Wait();
    told.set_value();
  });
  gate.SetReady();
  told.get_future().wait();
  EXPECT_TRUE(Ok(inside));
}

TEST_F(RawBufferMisuse, AHandleThatGoesWhileItsCopyRuns) {
  EventPromise gate("gate");
  std::vector<std::uint8_t> bytes(300000, 5);
  Event copied;
  {
    const RawBuffer memory = RawBuffer::Allocate(space_, bytes.size()).value();
    copied = memory.CopyFromHost(bytes.data(), 0, bytes.size(), {gate.event()});
  }
  EXPECT_GE(space_.Stats().bytes_in_use, bytes.size());
  gate.SetReady();
  EXPECT_TRUE(Ok(copied));
}

TEST_F(RawBufferMisuse, AssigningAHandleToItself) {
  RawBuffer memory = sixteen_;
  RawBuffer& same = memory;
  memory = same;
  memory = std::move(same);
  EXPECT_EQ(memory.on_device_size_bytes(), 16U);
}

TEST_F(RawBufferMisuse, ImportsOfNothingAndOfOddPlacesAreRefused) {
  alignas(64) static char bytes[128];
  EXPECT_TRUE(
      Fails(RawBuffer::Import(space_, nullptr, 16, Mutability::kMutable), StatusCode::kInvalidArgument, {"null"}));
  EXPECT_TRUE(
      Fails(RawBuffer::Import(space_, bytes + 1, 16, Mutability::kMutable), StatusCode::kInvalidArgument, {"16"}));
  EXPECT_TRUE(
      Fails(RawBuffer::Import(space_, bytes, 16, static_cast<Mutability>(2)), StatusCode::kInvalidArgument, {"2"}));
}

TEST_F(RawBufferMisuse, AnImportPastTheEndOfTheAddressSpaceIsRefused) {
  alignas(64) static char bytes[64];
  EXPECT_TRUE(Fails(RawBuffer::Import(space_, bytes, kMost, Mutability::kMutable), StatusCode::kInvalidArgument,
                    {"18446744073709551615"}));
  // NOLINTNEXTLINE(performance-no-int-to-ptr): never followed.
  void* const last = reinterpret_cast<void*>(kMost - 63);
  EXPECT_TRUE(Fails(RawBuffer::Import(space_, last, 128, Mutability::kMutable), StatusCode::kInvalidArgument));
}

TEST_F(RawBufferMisuse, AReleaseOfARefusedImportIsDestroyedUncalled) {
  NoLeak no_leak;
  bool called = false;
  EXPECT_FALSE(RawBuffer::Import(space_, nullptr, 16, Mutability::kMutable, [&called, kept = Counted(1)] {
                 called = true;
               }).ok());
  EXPECT_FALSE(called);
}

TEST_F(RawBufferMisuse, WhatWasImportedReadOnlyIsNotWritten) {
  alignas(64) char bytes[64] = "constant";
  const RawBuffer memory = RawBuffer::Import(space_, bytes, 64, Mutability::kImmutable).value();
  EXPECT_FALSE(memory.is_mutable());
  EXPECT_FALSE(memory.Slice(1, 2)->is_mutable());
  EXPECT_TRUE(Fails(memory.CopyFromHost(out_, 0, 4), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(memory.Slice(0, 8)->CopyFromHost(out_, 0, 4), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(sixteen_.CopyTo(memory), StatusCode::kInvalidArgument));
  EXPECT_STREQ(bytes, "constant");
}

TEST_F(RawBufferMisuse, AReleaseHookMayShutTheClientDown) {
  alignas(64) static char bytes[64];
  Status answer = InternalError("not called");
  std::promise<void> released;
  auto memory = RawBuffer::Import(space_, bytes, 64, Mutability::kMutable, [&] {
    answer = client_.Shutdown();
    released.set_value();
  });
  ASSERT_TRUE(Ok(memory));
  *memory = sixteen_;
  released.get_future().wait();
  EXPECT_TRUE(answer.ok() || IsFailedPrecondition(answer)) << answer;
}

TEST_F(RawBufferMisuse, AReleaseHookMayAllocateAndImport) {
  alignas(64) static char bytes[64];
  int released = 0;
  {
    const auto memory = RawBuffer::Import(space_, bytes, 64, Mutability::kMutable, [&] {
      EXPECT_TRUE(Ok(RawBuffer::Allocate(space_, 4096)));
      EXPECT_TRUE(Ok(RawBuffer::Import(space_, bytes, 64, Mutability::kMutable, [&released] { ++released; })));
      ++released;
    });
  }
  EXPECT_EQ(released, 2);
}

TEST_F(RawBufferMisuse, MemoryKeptUntilAnEventThatIsDroppedGoes) {
  const std::uint64_t before = space_.Stats().bytes_in_use;
  {
    const EventPromise promise("dropped keeper");
    RawBuffer::Allocate(space_, 4096)->RetainUntil(promise.event());
    EXPECT_EQ(space_.Stats().bytes_in_use, before + 4096);
  }
  EXPECT_EQ(space_.Stats().bytes_in_use, before);
}

TEST_F(RawBufferMisuse, OnANullPlatformNoBytesAreRead) {
  ClientOptions options;
  options.platform = "null";
  const Client null = Client::Create(options).value();
  const RawBuffer memory = RawBuffer::Allocate(SpaceOf(null), 16).value();
  EXPECT_EQ(memory.host_pointer(), nullptr);
  EXPECT_TRUE(Fails(memory.CopyToHost(out_, 0, 16), StatusCode::kUnimplemented));
}

// Channels ------------------------------------------------------------------------------------------------------------

class ChannelMisuse : public RawBufferMisuse {
 protected:
  std::pair<RawBuffer, RawBufferPromise> Channel(std::size_t size = 16) const {
    return std::move(RawBuffer::CreateChannel(space_, size).value());
  }
};

TEST_F(ChannelMisuse, ADroppedPromiseFailsTheBuffer) {
  std::optional<RawBuffer> buffer;
  {
    buffer = Channel().first;
  }
  EXPECT_TRUE(Fails(buffer->allocation_event(), StatusCode::kInternal));
  EXPECT_TRUE(Fails(buffer->CopyToHost(out_, 0, 16), StatusCode::kInternal));
  EXPECT_TRUE(Fails(buffer->device_pointer(), StatusCode::kInternal));
}

TEST_F(ChannelMisuse, ASpentPromiseSaysSo) {
  auto [buffer, promise] = Channel();
  EXPECT_TRUE(Ok(promise.Fulfil(sixteen_)));
  EXPECT_TRUE(Fails(promise.Fulfil(sixteen_), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(promise.Allocate(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(promise.Fail(InternalError("late")), StatusCode::kFailedPrecondition));
  RawBufferPromise taken = std::move(promise);
  EXPECT_TRUE(Fails(promise.Allocate(), StatusCode::kFailedPrecondition));
}

TEST_F(ChannelMisuse, AnotherSizeOrSpaceLeavesItOpen) {
  auto [buffer, promise] = Channel(8);
  EXPECT_TRUE(Fails(promise.Fulfil(sixteen_), StatusCode::kInvalidArgument, {"16", "8"}));
  const RawBuffer elsewhere = RawBuffer::Allocate(SpaceOf(client_, 1), 8).value();
  EXPECT_TRUE(Fails(promise.Fulfil(elsewhere), StatusCode::kInvalidArgument, {"host:1"}));
  EXPECT_TRUE(Fails(promise.Allocate(static_cast<OomPolicy>(8)), StatusCode::kInvalidArgument, {"8"}));
  EXPECT_FALSE(buffer.allocation_event().IsReady());
  EXPECT_TRUE(Ok(promise.Allocate()));
  EXPECT_TRUE(Ok(buffer.allocation_event()));
}

TEST_F(ChannelMisuse, FailingWithOkIsInternal) {
  auto [buffer, promise] = Channel();
  EXPECT_TRUE(Ok(promise.Fail(OkStatus())));
  EXPECT_TRUE(Fails(buffer.allocation_event(), StatusCode::kInternal));
}

TEST_F(ChannelMisuse, FulfilledWithItsOwnBufferItFails) {
  auto [buffer, promise] = Channel();
  const Status status = promise.Fulfil(buffer);
  EXPECT_FALSE(status.ok() && buffer.allocation_event().WaitFor(std::chrono::seconds(20)).ok());
  EXPECT_TRUE(!status.ok() || buffer.allocation_event().IsReady());
}

TEST_F(ChannelMisuse, MoreThanThereIsFailsTheBuffer) {
  const Client small = HostClient(1, 1, kMiB);
  auto channel = RawBuffer::CreateChannel(SpaceOf(small), 4 * kMiB);
  ASSERT_TRUE(Ok(channel));
  EXPECT_TRUE(Fails(channel->second.Allocate(), StatusCode::kResourceExhausted));
  EXPECT_TRUE(Fails(channel->first.allocation_event(), StatusCode::kResourceExhausted));
}

TEST_F(ChannelMisuse, AClientThatEndsFailsWhatWasPromised) {
  auto [buffer, promise] = Channel();
  ShutdownOptions options;
  options.mode = ShutdownMode::kCancelPending;
  static_cast<void>(client_.Shutdown(options).ok());
  EXPECT_FALSE(buffer.allocation_event().Wait().ok());
  static_cast<void>(promise.Fulfil(sixteen_).ok());
  EXPECT_FALSE(buffer.allocation_event().Wait().ok());
  auto late = RawBuffer::CreateChannel(space_, 8);
  EXPECT_TRUE(!late.ok() || Fails(late->first.allocation_event(), StatusCode::kFailedPrecondition));
}

TEST_F(ChannelMisuse, TenThousandChannelsEachFulfilledWithTheLast) {
  OnSmallStack([this] {
    RawBuffer last = sixteen_;
    for (int i = 0; i < 10000; ++i) {
      auto [buffer, promise] = Channel();
      ASSERT_TRUE(Ok(promise.Fulfil(last)));
      last = buffer;
    }
    EXPECT_EQ(BytesIn(last), Bytes(16, 1));
  });
}

TEST_F(ChannelMisuse, TwoChannelsFulfilledWithEachOther) {
  auto [a, promise_a] = Channel();
  auto [b, promise_b] = Channel();
  EXPECT_TRUE(Ok(promise_a.Fulfil(b)));
  EXPECT_FALSE(promise_b.Fulfil(a).ok());
  {
    const RawBufferPromise gone = std::move(promise_b);
  }
  EXPECT_TRUE(Fails(a.allocation_event().WaitFor(std::chrono::seconds(20)), StatusCode::kInternal));
}

// Mappings ------------------------------------------------------------------------------------------------------------

class DmaMisuse : public RawBufferMisuse {};

TEST_F(DmaMisuse, RangesThatAreNone) {
  EXPECT_TRUE(Fails(client_.DmaMap(nullptr, 8), StatusCode::kInvalidArgument, {"0x0"}));
  EXPECT_TRUE(Fails(client_.DmaMap(out_, 0), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(client_.DmaMap(out_, kMost), StatusCode::kInvalidArgument));
}

TEST_F(DmaMisuse, WhatIsMappedIsNotMappedAgain) {
  const auto mapping = client_.DmaMap(out_, 32);
  ASSERT_TRUE(Ok(mapping));
  EXPECT_TRUE(Fails(client_.DmaMap(out_ + 31, 8), StatusCode::kAlreadyExists));
  EXPECT_TRUE(Ok(client_.DmaMap(out_ + 32, 8)));
}

TEST_F(DmaMisuse, UnmappedTwiceAndMovedFrom) {
  DmaMapping mapping = client_.DmaMap(out_, 32).value();
  DmaMapping taken = std::move(mapping);
  EXPECT_EQ(mapping.data(), nullptr);
  EXPECT_EQ(mapping.size_bytes(), 0U);
  EXPECT_EQ(mapping.in_flight(), 0U);
  EXPECT_TRUE(Fails(mapping.Unmap(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Ok(taken.Unmap()));
  EXPECT_TRUE(Fails(taken.Unmap(), StatusCode::kFailedPrecondition));
}

TEST_F(DmaMisuse, InFlightItStaysMapped) {
  DmaMapping mapping = client_.DmaMap(out_, 64).value();
  EventPromise gate("gate");
  const Event copied = sixteen_.CopyToHost(out_, 0, 16, {gate.event()});
  EXPECT_TRUE(Fails(mapping.Unmap(), StatusCode::kFailedPrecondition, {"1"}));
  gate.SetReady();
  EXPECT_TRUE(Ok(copied));
}

// Reports -------------------------------------------------------------------------------------------------------------

TEST(MemoryReportMisuse, AReportOfAnything) {
  MemoryReport report;
  report.memory_space = "\xFF\"\\\n";
  report.reason = std::string(100000, '"');
  report.requested_bytes = std::numeric_limits<std::uint64_t>::max();
  report.fragmentation_percent = 255;
  report.holders.resize(1000);
  report.holders[0].label = std::string("\0\x01", 2);
  EXPECT_FALSE(report.DebugString().empty());
  const std::string json = report.ToJson();
  EXPECT_EQ(json.front(), '{');
  EXPECT_EQ(json.find('\x01'), std::string::npos);
  EXPECT_EQ(json.find('\xFF'), std::string::npos);
}

}  // namespace
}  // namespace purlin
