// Client::Shutdown and ClientOptions::shutdown_at_end, on every platform.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "buffer_fixture.h"
#include "purlin/transfer.h"
#include "testing.h"

namespace purlin {
namespace {

/// More than is copied inside a call.
constexpr std::size_t kLarge = 300'000;

ShutdownOptions ByTimeout(std::chrono::milliseconds timeout) {
  ShutdownOptions options;
  options.timeout_ns = std::chrono::nanoseconds(timeout).count();
  return options;
}

ShutdownOptions Cancelling() {
  ShutdownOptions options;
  options.mode = ShutdownMode::kCancelPending;
  return options;
}

class ClientShutdownTest : public testing::TestWithParam<std::string_view> {
 protected:
  static Client Make(std::optional<ShutdownOptions> at_end = std::nullopt) {
    ClientOptions options;
    options.platform = GetParam();
    options.worker_count = 2;
    options.memory_limit_bytes = std::size_t{8} << 20;
    options.shutdown_at_end = at_end;
    return Client::Create(options).value();
  }
  static MemorySpace SpaceOf(const Client& client) { return client.devices()[0].default_memory_space(); }

  /// A copy of `bytes_` into new memory of `space` after `gate`.
  Event CopyAfter(const MemorySpace& space, const Event& gate) const {
    const RawBuffer target = RawBuffer::Allocate(space, bytes_.size()).value();
    return target.CopyFromHost(bytes_.data(), 0, bytes_.size(), {gate});
  }
  /// What was let go of comes back a moment after its event.
  static void ExpectBecomesFree(const MemorySpace& space) {
    while (space.Stats().bytes_in_use > 0) std::this_thread::yield();
  }

  Bytes bytes_ = Bytes(kLarge, 7);
};

TEST_P(ClientShutdownTest, AnIdleClientEndsAtOnceAndAgain) {
  const Client client = Make();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(client.Shutdown().ok());
    EXPECT_TRUE(client.Shutdown(Cancelling()).ok());
    EXPECT_TRUE(client.Shutdown(ByTimeout(std::chrono::milliseconds(0))).ok());
  }
}

TEST_P(ClientShutdownTest, WhatIsInFlightIsDrained) {
  const Client client = Make();
  const MemorySpace space = SpaceOf(client);
  EventPromise gate("gate");
  const Event copied = CopyAfter(space, gate.event());
  const Event behind = CopyAfter(space, copied);
  std::future<Status> ended = std::async(std::launch::async, [&client] { return client.Shutdown(); });
  while (RawBuffer::Allocate(space, 1).ok()) std::this_thread::yield();
  EXPECT_FALSE(copied.IsReady());
  gate.SetReady();
  const Status status = ended.get();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(copied.IsReady() && copied.Wait().ok()) << copied.Wait();
  EXPECT_TRUE(behind.IsReady() && behind.Wait().ok()) << behind.Wait();
  ExpectBecomesFree(space);
}

TEST_P(ClientShutdownTest, ACopyBehindAnEventThatNeverComesFailsAtTheDeadlineByName) {
  const Client client = Make();
  const MemorySpace space = SpaceOf(client);
  EventPromise gate("gradient");
  const std::string line = LineAbove();
  const Event copied = CopyAfter(space, gate.event());
  const Event behind = CopyAfter(space, copied);
  const Status status = client.Shutdown(ByTimeout(std::chrono::milliseconds(1)));
  EXPECT_TRUE(IsDeadlineExceeded(status)) << status;
  const std::string name = std::string(GetParam()) + ":0/device, which waited for 'gradient' (made at " + line + ")";
  EXPECT_TRUE(Contains(status.message(), "the copy of 300000 bytes from host to " + name)) << status;
  for (const Event& event : {copied, behind}) {
    EXPECT_TRUE(IsDeadlineExceeded(event.Wait())) << event.Wait();
  }
  EXPECT_TRUE(Contains(copied.Wait().message(), name)) << copied.Wait();
  ExpectBecomesFree(space);
  EXPECT_FALSE(gate.event().IsReady()) << "a stranger's event is left alone";
  gate.SetReady();
}

TEST_P(ClientShutdownTest, AllocationsAndDefinitionsFailAtTheDeadlineToo) {
  const Client client = Make();
  const MemorySpace space = SpaceOf(client);
  EventPromise gate("gradient");
  AllocOptions after;
  after.after = gate.event();
  AllocOptions waits;
  waits.oom = OomPolicy::kWait;
  const Shape shape(DType::kU8, {10});
  const Buffer later = Buffer::CreateUninitialized(shape, space, nullptr, after).value();
  const Buffer defined = Buffer::FromRaw(RawBuffer::Allocate(space, 10).value(), shape, nullptr, gate.event()).value();
  const Buffer token = Buffer::CreateToken(space, gate.event()).value();
  const Buffer donated = Buffer::CreateUninitialized(shape, space).value().DonateAfter(gate.event()).value();
  const RawBuffer most = RawBuffer::Allocate(space, std::size_t{7} << 20).value();
  const RawBuffer waiting = RawBuffer::Allocate(space, std::size_t{7} << 20, waits).value();
  const Event copied = waiting.CopyFromHost(bytes_.data(), 0, bytes_.size());
  const Status status = client.Shutdown(ByTimeout(std::chrono::milliseconds(1)));
  EXPECT_TRUE(IsDeadlineExceeded(status)) << status;
  const std::pair<Event, std::string_view> failed[] = {
      {later.ready_event(), "the allocation of 10 bytes"},
      {defined.ready_event(), "'definition of a buffer', which waited for 'gradient'"},
      {token.ready_event(), "'definition of a buffer'"},
      {donated.ready_event(), "'definition of a buffer', which waited for 'gradient'"},
      {waiting.allocation_event(), "waited for memory"},
      {copied, ""},
  };
  for (const auto& [event, says] : failed) {
    EXPECT_TRUE(IsDeadlineExceeded(event.Wait())) << event.Wait();
    EXPECT_TRUE(Contains(event.Wait().message(), says)) << event.Wait();
  }
}

TEST_P(ClientShutdownTest, WhoWaitsForPromisedMemoryIsToldAtTheDeadline) {
  const Client client = Make();
  const MemorySpace space = SpaceOf(client);
  const auto [memory, promise] = RawBuffer::CreateChannel(space, 10).value();
  const Buffer array = Buffer::FromRaw(memory, Shape(DType::kU8, {10})).value();
  std::future<Status> waits = std::async(std::launch::async, [&array] { return array.ready_event().Wait(); });
  EXPECT_TRUE(IsDeadlineExceeded(client.Shutdown(ByTimeout(std::chrono::milliseconds(1)))));
  for (const Status& status : {memory.allocation_event().Wait(), waits.get()}) {
    EXPECT_TRUE(IsDeadlineExceeded(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "did not end within 1ms")) << status;
    EXPECT_TRUE(Contains(status.message(), "'memory of a channel', which waited for 'memory'")) << status;
  }
  const RawBuffer late = RawBuffer::CreateChannel(space, 10).value().first;
  EXPECT_TRUE(IsFailedPrecondition(late.allocation_event().Wait())) << late.allocation_event().Wait();
}

TEST_P(ClientShutdownTest, WhoWaitsForTheEndOfUsesIsToldAtTheDeadlineAndTheUsersKeepTheMemory) {
  const Client client = Make();
  const MemorySpace space = SpaceOf(client);
  EventPromise kernel("kernel");
  const auto used = [&] {
    const Shape shape(DType::kU8, {10});
    Buffer array = Buffer::FromRaw(RawBuffer::Allocate(space, 10).value(), shape).value();
    array.AcquireUsageHold().value().ReleaseAfter(kernel.event());
    return array;
  };
  std::optional<DonationHold> donation = used().Donate("step").value();
  std::optional<ReleasedBuffer> released = used().Release();
  ASSERT_TRUE(released.has_value());
  const Event free = donation->free_event();
  std::future<Status> waits =
      std::async(std::launch::async, [array = used()] { return array.ReleaseDeviceMemoryOwnership(true).status(); });
  const Status ended = client.Shutdown(ByTimeout(std::chrono::milliseconds(1)));
  EXPECT_TRUE(IsDeadlineExceeded(ended)) << ended;
  EXPECT_TRUE(Contains(ended.message(), "'use of a buffer', which waited for")) << ended;
  for (const Status& status : {free.Wait(), released->free_event.Wait(), waits.get()}) {
    EXPECT_TRUE(IsDeadlineExceeded(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "did not end within 1ms")) << status;
  }
  donation.reset();
  released.reset();
  EXPECT_EQ(space.Stats().bytes_in_use, 30U) << "who uses the memory still has it";
  kernel.SetReady();
  ExpectBecomesFree(space);
}

TEST_P(ClientShutdownTest, UsesThatEndBeforeTheDeadlineAreWaitedFor) {
  const Client client = Make();
  const MemorySpace space = SpaceOf(client);
  EventPromise kernel("kernel");
  const Buffer array = Buffer::FromRaw(RawBuffer::Allocate(space, 10).value(), Shape(DType::kU8, {10})).value();
  array.AcquireUsageHold().value().ReleaseAfter(kernel.event());
  const std::optional<ReleasedBuffer> released = array.Release();
  ASSERT_TRUE(released.has_value());
  std::future<Status> ended = std::async(std::launch::async, [&client] { return client.Shutdown(); });
  while (RawBuffer::Allocate(space, 1).ok()) std::this_thread::yield();
  EXPECT_FALSE(released->free_event.IsReady());
  kernel.SetReady();
  const Status status = ended.get();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(released->free_event.Wait().ok()) << released->free_event.Wait();
}

TEST_P(ClientShutdownTest, EveryOnDoneIsCalledOnce) {
  const NoLeak check;
  const Client client = Make();
  const MemorySpace space = SpaceOf(client);
  EventPromise gate("gate");
  AllocOptions after;
  after.after = gate.event();
  FromHostOptions options;
  options.semantics = HostBufferSemantics::kImmutableUntilTransferCompletes;
  options.alloc = after;
  const std::vector<DoneLog> told(2);
  const Buffer buffer =
      Buffer::FromHost(bytes_.data(), DType::kU8, {static_cast<std::int64_t>(kLarge)}, space, options,
                       [on_done = told[0].OnDone(), payload = Counted(1)](Status s) { on_done(std::move(s)); })
          .value()
          .buffer;
  const Shape shape(DType::kU8, {static_cast<std::int64_t>(kLarge)});
  AsyncHostToDeviceTransferManager manager = AsyncHostToDeviceTransferManager::Create({{shape}}, space, after).value();
  ASSERT_TRUE(manager.TransferRawDataToBuffer(0, bytes_.data(), kLarge, told[1].OnDone()).ok());
  EXPECT_TRUE(IsDeadlineExceeded(client.Shutdown(ByTimeout(std::chrono::milliseconds(1)))));
  EXPECT_TRUE(IsDeadlineExceeded(buffer.ready_event().Wait()));
  EXPECT_TRUE(IsDeadlineExceeded(manager.RetrieveBuffer(0).value().ready_event().Wait()));
  for (const DoneLog& one : told) {
    one.Wait();
    EXPECT_TRUE(IsDeadlineExceeded(one.all()[0])) << one.all()[0];
  }
  gate.SetReady();
  for (const DoneLog& one : told) EXPECT_EQ(one.count(), 1U);
}

TEST_P(ClientShutdownTest, WhatWaitsIsCancelledAtOnceIfThatIsTheMode) {
  const Client client = Make();
  EventPromise gate("gate");
  const Event copied = CopyAfter(SpaceOf(client), gate.event());
  const Status status = client.Shutdown(Cancelling());
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(IsCancelled(copied.Wait())) << copied.Wait();
  EXPECT_TRUE(Contains(copied.Wait().message(), "'gate'")) << copied.Wait();
  gate.SetReady();
}

TEST_P(ClientShutdownTest, NothingNewBegins) {
  const Client client = Make();
  const MemorySpace space = SpaceOf(client);
  const Bytes four(4);
  const Buffer buffer = Buffer::FromHost(four.data(), 4, DType::kU8, {4}, space).value();
  const RawBuffer memory = RawBuffer::Allocate(space, 4).value();
  ASSERT_TRUE(client.Shutdown().ok());
  Bytes back(4);
  EventPromise gate("gate");
  const Status refused[] = {
      memory.CopyFromHost(four.data(), 0, 4).Wait(),
      memory.CopyFromHost(four.data(), 0, 4, {gate.event()}).Wait(),
      memory.CopyTo(memory).Wait(),
      buffer.CopyToHost(back.data(), 4).Wait(),
      buffer.CopyToDevice(client.devices()[0]).status(),
      RawBuffer::Allocate(space, 4).status(),
      Buffer::FromHost(four.data(), 4, DType::kU8, {4}, space).status(),
      Buffer::CreateToken(space, gate.event()).status(),
      Buffer::FromHostShards({{four.data(), DType::kU8, {4}, space}}).status(),
      AsyncHostToDeviceTransferManager::Create({{Shape(DType::kU8, {4})}}, space).status(),
  };
  for (const Status& status : refused) {
    EXPECT_TRUE(IsFailedPrecondition(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "the client has been shut down")) << status;
  }
  EXPECT_TRUE(IsCancelled(client.runner().Schedule([] {})));
  EXPECT_EQ(client.devices().size(), 1U) << "handles stay valid";
}

TEST_P(ClientShutdownTest, ATaskOfTheRunnerCannotShutItsClientDown) {
  const Client client = Make();
  std::promise<Status> told;
  ASSERT_TRUE(client.runner().Schedule([&] { told.set_value(client.Shutdown()); }).ok());
  const Status status = told.get_future().get();
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(RawBuffer::Allocate(SpaceOf(client), 4).ok()) << "nothing has happened";
}

TEST_P(ClientShutdownTest, ATaskThatStillRunsIsNamedAndEndsByItself) {
  const Client client = Make();
  std::promise<void> begun;
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  ASSERT_TRUE(client.runner()
                  .Schedule(
                      [&begun, released] {
                        begun.set_value();
                        released.wait();
                      },
                      Label("stubborn"))
                  .ok());
  begun.get_future().wait();
  const Status status = client.Shutdown(ByTimeout(std::chrono::milliseconds(1)));
  EXPECT_TRUE(IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "'stubborn'")) << status;
  release.set_value();
}

TEST_P(ClientShutdownTest, TheLastHandleEndsTheClientAsItsOptionsSay) {
  for (const bool cancels : {false, true}) {
    std::optional<Client> client = Make(cancels ? Cancelling() : ByTimeout(std::chrono::milliseconds(1)));
    const MemorySpace space = SpaceOf(*client);
    std::optional<Client> other = *client;
    EventPromise gate("gate");
    const Event copied = CopyAfter(space, gate.event());
    client.reset();
    EXPECT_FALSE(copied.IsReady()) << "there is another handle";
    other.reset();
    EXPECT_EQ(copied.Wait().code(), cancels ? StatusCode::kCancelled : StatusCode::kDeadlineExceeded) << copied.Wait();
    ExpectBecomesFree(space);
    EXPECT_TRUE(IsFailedPrecondition(RawBuffer::Allocate(space, 1).status()));
  }
}

TEST_P(ClientShutdownTest, WithoutOptionsWorkGoesOnBehindTheLastHandle) {
  std::optional<Client> client = Make();
  EventPromise gate("gate");
  const Event copied = CopyAfter(SpaceOf(*client), gate.event());
  client.reset();
  gate.SetReady();
  EXPECT_TRUE(copied.Wait().ok()) << copied.Wait();
}

TEST_P(ClientShutdownTest, ManyThreadsShutDownWhileOthersBegin) {
  const Client client = Make();
  const MemorySpace space = SpaceOf(client);
  EventPromise gate("gate");
  std::vector<std::vector<Event>> events(4);
  Together(4, [&](int thread) {
    if (thread == 3) {
      const Status status = client.Shutdown(ByTimeout(std::chrono::milliseconds(1)));
      EXPECT_TRUE(status.ok() || IsDeadlineExceeded(status)) << status;
      return;
    }
    for (int i = 0; i < 200; ++i) {
      const StatusOr<RawBuffer> target = RawBuffer::Allocate(space, 100);
      if (!target.ok()) break;
      events[static_cast<std::size_t>(thread)].push_back(target->CopyFromHost(bytes_.data(), 0, 100, {gate.event()}));
    }
  });
  const Status again = client.Shutdown(ByTimeout(std::chrono::seconds(60)));
  EXPECT_TRUE(again.ok() || IsDeadlineExceeded(again)) << again;
  for (const std::vector<Event>& of_thread : events) {
    for (const Event& event : of_thread) EXPECT_FALSE(event.Wait().ok()) << "the gate never came";
  }
  ExpectBecomesFree(space);
}

INSTANTIATE_TEST_SUITE_P(Platforms, ClientShutdownTest, testing::Values("host", "null", "sim"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace purlin
