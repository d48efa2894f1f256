// What a watchdog that poisons leaves alone while its work goes on: arrays from the host, transfers, the uses of
// memory, the ends of clients, pools and queues, and joins.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/buffer.h"
#include "purlin/buffer_holds.h"
#include "purlin/client.h"
#include "purlin/elastic_pool.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/raw_buffer.h"
#include "purlin/serial_queue.h"
#include "purlin/staging.h"
#include "purlin/transfer.h"
#include "tests/cpp/poisoner.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

constexpr std::int64_t kBytes = 1 << 20;

class PoisonWorkTest : public testing::Test {
 protected:
  static AllocOptions After(const Event& event) {
    AllocOptions options;
    options.after = event;
    return options;
  }
  static Client MakeClient() {
    ClientOptions options;
    options.worker_count = 2;
    return Client::Create(options).value();
  }

  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(kBytes, 7);
  const std::vector<std::int64_t> dims_ = {kBytes};
  Client client_ = MakeClient();
  MemorySpace space_ = client_.devices()[0].default_memory_space();
  /// Sets `start` on a thread of its own, where whatever waited for it may run.
  class Starter final {
   public:
    explicit Starter(EventPromise start) : thread_([start = std::move(start)]() mutable { start.SetReady(); }) {}
    ~Starter() { thread_.join(); }

   private:
    std::thread thread_;
  };

  EventPromise start_{"start"};
  AllocOptions after_start_ = After(start_.event());
  EventPromise gate_ = EventPromise::Guarding("gate");
  Event open_ = gate_.event();
};

TEST_F(PoisonWorkTest, AnArrayFromTheHostWhoseOnDoneGoesOn) {
  ExpectNotPoisoned("from host", std::move(gate_), [this] {
    FromHostOptions options;
    options.semantics = HostBufferSemantics::kImmutableUntilTransferCompletes;
    options.alloc = after_start_;
    const StatusOr<FromHostResult> made = Buffer::FromHost(bytes_.data(), DType::kU8, dims_, space_, options,
                                                           [open = open_](const Status&) { Block(open); });
    ASSERT_TRUE(made.ok()) << made.status();
    const Starter starter(std::move(start_));
    EXPECT_TRUE(made->buffer.ready_event().Wait().ok());
    EXPECT_TRUE(open_.IsReady());
  });
}

TEST_F(PoisonWorkTest, ATransferWhoseOnDoneGoesOn) {
  const TransferSpec specs[] = {{Shape(DType::kU8, dims_)}};
  StatusOr<AsyncHostToDeviceTransferManager> transfer =
      AsyncHostToDeviceTransferManager::Create(specs, space_, after_start_);
  ASSERT_TRUE(transfer.ok()) << transfer.status();
  const Event ready = transfer->RetrieveBuffer(0)->ready_event();
  ExpectNotPoisoned(std::string(ready.label()), std::move(gate_), [&] {
    const auto on_done = [open = open_](const Status&) { Block(open); };
    EXPECT_TRUE(transfer->TransferRawDataToBuffer(0, bytes_.data(), bytes_.size(), on_done).ok());
    const Starter starter(std::move(start_));
    EXPECT_TRUE(ready.Wait().ok());
    EXPECT_TRUE(open_.IsReady());
  });
}

TEST_F(PoisonWorkTest, WhatADonatedBufferIsReadUntil) {
  StatusOr<Buffer> buffer = Buffer::FromHost(bytes_.data(), bytes_.size(), DType::kU8, dims_, space_);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  std::vector<std::uint8_t> out(kBytes);
  {
    StatusOr<UsageHold> hold = buffer->AcquireUsageHold();
    ASSERT_TRUE(hold.ok()) << hold.status();
    hold->ReleaseAfter(hold->memory().CopyToHost(out.data(), 0, out.size(), {open_}));
  }
  const StatusOr<DonationHold> donation = buffer->Donate("a donee");
  ASSERT_TRUE(donation.ok()) << donation.status();
  const Event freed = donation->free_event();
  ASSERT_FALSE(freed.IsReady());
  ExpectNotPoisoned(std::string(freed.label()), std::move(gate_), [&] {
    EXPECT_TRUE(freed.Wait().ok());
    EXPECT_TRUE(open_.IsReady());
  });
}

TEST_F(PoisonWorkTest, AStagedReadWhoseOnPieceGoesOn) {
  const StatusOr<RawBuffer> memory = RawBuffer::Allocate(space_, kBytes);
  ASSERT_TRUE(memory.ok()) << memory.status();
  ASSERT_TRUE(memory->CopyFromHost(bytes_.data(), 0, bytes_.size()).Wait().ok());
  const StatusOr<StagingPool> leases = StagingPool::Create(space_);
  ASSERT_TRUE(leases.ok()) << leases.status();
  StagingCopier copier(*leases);
  ExpectNotPoisoned("staged read", std::move(gate_), [&] {
    std::promise<void> begun;
    bool first = true;
    const Event started = start_.event();
    const Event read = copier.Read(*memory,
                                   [&](StatusOr<StagedPiece> piece) {
                                     EXPECT_TRUE(piece.ok()) << piece.status();
                                     if (std::exchange(first, false)) begun.set_value();
                                     Block(open_);
                                   },
                                   {&started, 1});
    const Starter starter(std::move(start_));
    begun.get_future().wait();
    EXPECT_TRUE(read.Wait().ok());
    EXPECT_TRUE(open_.IsReady());
  });
}

TEST_F(PoisonWorkTest, TheEndOfAClientWhoseOnDoneGoesOn) {
  ExpectNotPoisoned("client shutdown", std::move(gate_), [this] {
    FromHostOptions options;
    options.semantics = HostBufferSemantics::kImmutableUntilTransferCompletes;
    options.alloc = after_start_;
    std::promise<void> begun;
    const StatusOr<FromHostResult> made =
        Buffer::FromHost(bytes_.data(), DType::kU8, dims_, space_, options, [&, open = open_](const Status&) {
          begun.set_value();
          Block(open);
        });
    ASSERT_TRUE(made.ok()) << made.status();
    const Starter starter(std::move(start_));
    begun.get_future().wait();
    EXPECT_TRUE(client_.Shutdown().ok());
    EXPECT_TRUE(open_.IsReady());
  });
}

TEST_F(PoisonWorkTest, TheEndOfAPoolWhoseTaskGoesOn) {
  ExpectNotPoisoned("pool ended", std::move(gate_), [this] {
    StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({1, "ending"});
    EXPECT_TRUE(pool->Schedule([open = open_] { Block(open); }).ok());
    EXPECT_TRUE(pool->Shutdown().ok());
    EXPECT_TRUE(open_.IsReady());
  });
}

TEST_F(PoisonWorkTest, AQueueWhoseTaskGoesOn) {
  ExpectNotPoisoned("SerialQueue drained", std::move(gate_), [this] {
    SerialQueue queue(client_.runner(), "poison: queue");
    EXPECT_TRUE(queue.Schedule([open = open_] { Block(open); }).ok());
    EXPECT_TRUE(queue.Drain().ok());
    EXPECT_TRUE(open_.IsReady());
  });
}

TEST_F(PoisonWorkTest, AJoinWhoseOtherHalfGoesOn) {
  ExpectNotPoisoned("Join", std::move(gate_), [this] {
    int on_the_callers_stack = 0;
    StatusOr<ThreadPoolAsyncWorkRunner> pool = ThreadPoolAsyncWorkRunner::Create({2, "join"});
    EXPECT_TRUE(pool->Join([this] { Block(open_); }, [&on_the_callers_stack] { on_the_callers_stack = 1; }).ok());
    EXPECT_TRUE(open_.IsReady());
    EXPECT_EQ(on_the_callers_stack, 1);
  });
}

}  // namespace
}  // namespace purlin
