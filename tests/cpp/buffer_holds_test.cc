#include "purlin/buffer_holds.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "buffer_fixture.h"

namespace purlin {
namespace {

constexpr std::string_view kGone = "Buffer has been deleted or donated.";
constexpr std::string_view kInvalid = "Donation requested for invalid buffer.";
constexpr std::string_view kExternal = "Donation requested for buffer with external reference";

class BufferHoldsTest : public BufferFixture {
 protected:
  template <typename T>
  static void ExpectError(const StatusOr<T>& answer, StatusCode code, std::vector<std::string_view> parts) {
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.status().code(), code) << answer.status();
    for (const std::string_view part : parts) EXPECT_TRUE(Contains(answer.status().message(), part)) << answer.status();
  }
};

TEST_F(BufferHoldsTest, HoldsAreCounted) {
  const Buffer buffer = Six();
  UsageHold a = buffer.AcquireUsageHold().value();
  UsageHold b = buffer.TryAcquireUsageHold().value();
  ExternalReference reference = buffer.AcquireExternalReference().value();
  EXPECT_EQ(buffer.hold_counts().usage, 2U);
  EXPECT_EQ(buffer.hold_counts().external, 1U);
  EXPECT_EQ(a.memory().on_device_size_bytes(), 6U);
  EXPECT_TRUE(a.ready_event().Wait().ok());
  EXPECT_EQ(reference.memory().host_pointer(), b.memory().host_pointer());
  EXPECT_TRUE(reference.ready_event().Wait().ok());
  a.Release();
  a.Release();
  a.ReleaseAfter(Event());
  reference.Release();
  reference.Release();
  EXPECT_EQ(buffer.hold_counts().usage, 1U);
  EXPECT_EQ(buffer.hold_counts().external, 0U);
}

TEST_F(BufferHoldsTest, MovesCarryTheRight) {
  const Buffer first = Six();
  const Buffer second = Six();
  UsageHold hold = first.AcquireUsageHold().value();
  UsageHold moved = std::move(hold);
  EXPECT_EQ(first.hold_counts().usage, 1U);
  moved = second.AcquireUsageHold().value();
  EXPECT_EQ(first.hold_counts().usage, 0U) << "what was here is released";
  EXPECT_EQ(second.hold_counts().usage, 1U);
  ExternalReference reference = first.AcquireExternalReference().value();
  reference = second.AcquireExternalReference().value();
  EXPECT_EQ(first.hold_counts().external, 0U);
  reference.Release();
  DonationHold donation = first.Donate("step").value();
  moved.Release();
  donation = second.Donate("step").value();
  EXPECT_FALSE(first.IsDeleted()) << "it was given back";
  DonationHold taken = std::move(donation);
  EXPECT_TRUE(taken.Confirm().ok());
  EXPECT_TRUE(second.IsDeleted());
}

TEST_F(BufferHoldsTest, UsageKeepsDonationOut) {
  const Buffer buffer = Six();
  {
    const UsageHold hold = buffer.AcquireUsageHold().value();
    ExpectError(buffer.TryDonate("step"), StatusCode::kFailedPrecondition, {"1 usage holds"});
  }
  EXPECT_TRUE(buffer.TryDonate("step").value().Confirm().ok());
  EXPECT_TRUE(buffer.IsDeleted());
}

/// One that waits goes on once the holds are released, so that it is found and nothing hangs.
TEST_F(BufferHoldsTest, WhatOnlyTriesDoesNotWait) {
  const Buffer used = Six();
  const Buffer donated = Six();
  UsageHold hold = used.AcquireUsageHold().value();
  DonationHold donation = donated.Donate("step").value();
  std::vector<std::pair<const char*, std::future<StatusCode>>> answers;
  const auto ask = [&answers](const char* what, auto of) {
    answers.emplace_back(what, std::async(std::launch::async, [of] { return of().status().code(); }));
  };
  ask("a donation, for a usage hold", [&used] { return used.TryDonate("other"); });
  ask("a donation, for a donation", [&donated] { return donated.TryDonate("other"); });
  ask("a usage hold, for a donation", [&donated] { return donated.TryAcquireUsageHold(); });
  for (auto& [what, answer] : answers) {
    EXPECT_EQ(answer.wait_for(std::chrono::minutes(1)), std::future_status::ready) << "waits: " << what;
  }
  hold.Release();
  donation.Release();
  for (auto& [what, answer] : answers) EXPECT_EQ(answer.get(), StatusCode::kFailedPrecondition) << what;
}

TEST_F(BufferHoldsTest, DonationKeepsUsageOutAndSaysWhose) {
  const Buffer buffer = Six();
  DonationHold donation = buffer.Donate("step").value();
  const std::string line = LineAbove();
  ExpectError(buffer.TryAcquireUsageHold(), StatusCode::kFailedPrecondition, {"being donated by 'step'", line});
  ExpectError(buffer.TryDonate("other"), StatusCode::kFailedPrecondition, {"'step'", line});
  donation.Release();
  EXPECT_TRUE(buffer.TryAcquireUsageHold().ok()) << "it was given back";
  EXPECT_FALSE(buffer.IsDeleted());
  ExpectError(donation.Confirm(), StatusCode::kFailedPrecondition, {"given back already"});
}

TEST_F(BufferHoldsTest, DonationWaitsForUsage) {
  const Buffer buffer = Six();
  UsageHold hold = buffer.AcquireUsageHold().value();
  std::atomic<bool> is_held{true};
  std::thread donor([&] {
    DonationHold donation = buffer.Donate("step").value();
    EXPECT_FALSE(is_held.load());
    EXPECT_TRUE(donation.Confirm().ok());
  });
  EXPECT_FALSE(buffer.IsDeleted());
  is_held.store(false);
  hold.Release();
  donor.join();
  EXPECT_TRUE(buffer.IsDeleted());
}

TEST_F(BufferHoldsTest, UsageWaitsForDonation) {
  for (const bool confirms : {false, true}) {
    const Buffer buffer = Six();
    DonationHold donation = buffer.Donate("step").value();
    std::thread user([&] { EXPECT_EQ(buffer.AcquireUsageHold().ok(), !confirms); });
    if (confirms) {
      EXPECT_TRUE(donation.Confirm().ok());
    } else {
      donation.Release();
    }
    user.join();
  }
}

TEST_F(BufferHoldsTest, TheSecondDonationIsToldOfTheFirst) {
  const Buffer buffer = Six();
  const RawBuffer memory = buffer.Donate("train step").value().Confirm().value();
  const std::string line = LineAbove();
  EXPECT_EQ(static_cast<std::uint8_t*>(memory.host_pointer())[5], 6);
  for (const StatusOr<DonationHold>& refused : {buffer.Donate("other"), buffer.TryDonate("other")}) {
    ExpectError(refused, StatusCode::kInvalidArgument,
                {kInvalid, "It was donated by 'train step' at " + line, "ms ago"});
  }
  ExpectError(buffer.AcquireUsageHold(), StatusCode::kInvalidArgument, {kGone, "'train step' at " + line});
  ExpectError(buffer.AcquireExternalReference(), StatusCode::kInvalidArgument, {kGone});
}

TEST_F(BufferHoldsTest, AnExternalReferenceForbidsDonation) {
  const Buffer buffer = Six();
  ExternalReference reference = buffer.AcquireExternalReference().value();
  ExpectError(buffer.Donate("step"), StatusCode::kInvalidArgument, {kExternal});
  ExpectError(buffer.TryDonate("step"), StatusCode::kInvalidArgument, {kExternal});
  ExpectError(buffer.DonateAfter(Event()), StatusCode::kInvalidArgument, {kExternal});
  EXPECT_FALSE(buffer.IsDeleted());
  reference.Release();
  EXPECT_TRUE(buffer.Donate("step").ok());
}

TEST_F(BufferHoldsTest, AnExternalReferenceOutlivesItsBuffer) {
  std::optional<Buffer> buffer = Six();
  ExternalReference reference = buffer->AcquireExternalReference().value();
  buffer->Delete();
  buffer.reset();
  EXPECT_EQ(InUse(), 6U);
  EXPECT_TRUE(reference.ready_event().Wait().ok());
  EXPECT_EQ(static_cast<std::uint8_t*>(reference.memory().host_pointer())[0], 1);
  reference.Release();
  EXPECT_EQ(InUse(), 0U);
}

TEST_F(BufferHoldsTest, UsageOutlivesDeleteAndReferences) {
  std::optional<Buffer> buffer = Six();
  UsageHold hold = buffer->AcquireUsageHold().value();
  buffer->Delete();
  EXPECT_TRUE(buffer->IsDeleted());
  buffer.reset();
  EventPromise gate("gate");
  hold.ReleaseAfter(gate.event());
  EXPECT_EQ(InUse(), 6U) << "until its work is over";
  gate.SetError(AbortedError("it failed, which ends it too"));
  EXPECT_EQ(InUse(), 0U);
}

TEST_F(BufferHoldsTest, DeleteUnderADonationWaitsForItsEnd) {
  for (const bool confirms : {false, true}) {
    const Buffer buffer = Six();
    DonationHold donation = buffer.Donate("step").value();
    buffer.Delete();
    EXPECT_TRUE(buffer.IsDeleted());
    EXPECT_EQ(InUse(), 6U);
    std::optional<RawBuffer> memory;
    if (confirms) memory = donation.Confirm().value();
    donation.Release();
    EXPECT_EQ(InUse(), confirms ? 6U : 0U);
    ExpectError(buffer.AcquireUsageHold(), StatusCode::kInvalidArgument,
                {kGone, confirms ? "It was donated" : "It was deleted"});
  }
}

TEST_F(BufferHoldsTest, TheDoneeIsToldWhatStillUsesTheMemory) {
  EventPromise produced("produced");
  EventPromise used("used");
  const RawBuffer raw = RawBuffer::Allocate(space_, 4).value();
  const Buffer buffer = Buffer::FromRaw(raw, Shape(DType::kU8, {4}), nullptr, produced.event()).value();
  buffer.AcquireUsageHold().value().ReleaseAfter(used.event());
  DonationHold donation = buffer.Donate("step").value();
  const Event free = donation.free_event();
  EXPECT_FALSE(donation.ready_event().IsReady());
  EXPECT_EQ(donation.memory().host_pointer(), raw.host_pointer());
  EXPECT_TRUE(donation.Confirm().ok());
  used.SetError(AbortedError("a reader that failed has stopped reading"));
  EXPECT_FALSE(free.IsReady());
  produced.SetReady();
  EXPECT_TRUE(free.Wait().ok());
}

TEST_F(BufferHoldsTest, OfRacingDonationsOneWins) {
  for (int round = 0; round < 50; ++round) {
    const Buffer buffer = Six();
    std::atomic<int> winners{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        StatusOr<DonationHold> donation = buffer.Donate("race");
        if (donation.ok()) {
          EXPECT_TRUE(donation->Confirm().ok());
          winners.fetch_add(1);
        } else {
          EXPECT_TRUE(Contains(donation.status().message(), kInvalid)) << donation.status();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(winners.load(), 1);
  }
  EXPECT_EQ(InUse(), 0U);
}

TEST_F(BufferHoldsTest, NobodyReadsWhatADoneeWrites) {
  const Buffer buffer = Of(Bytes(64, 0), {64});
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        const UsageHold hold = buffer.AcquireUsageHold().value();
        const RawBuffer memory = hold.memory();
        const auto* bytes = static_cast<const std::uint8_t*>(memory.host_pointer());
        for (int at = 1; at < 64; ++at) ASSERT_EQ(bytes[at], bytes[0]);
      }
    });
    threads.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        const DonationHold hold = buffer.Donate("writer").value();
        ASSERT_TRUE(hold.free_event().Wait().ok());
        const RawBuffer memory = hold.memory();
        auto* bytes = static_cast<std::uint8_t*>(memory.host_pointer());
        for (int at = 0; at < 64; ++at) bytes[at] = static_cast<std::uint8_t>(bytes[at] + 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(buffer.hold_counts().usage, 0U);
  EXPECT_EQ(Read(buffer), Bytes(64, static_cast<std::uint8_t>(600)));
}

}  // namespace
}  // namespace purlin
