#include "purlin/dma.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "buffer_fixture.h"

namespace purlin {
namespace {

class DmaTest : public BufferFixture {
 protected:
  /// A copy from `bytes` that is in flight until `gate`.
  Event CopyAfter(const EventPromise& gate, const Bytes& bytes) const {
    const RawBuffer target = RawBuffer::Allocate(space_, bytes.size()).value();
    return target.CopyFromHost(bytes.data(), 0, bytes.size(), {gate.event()});
  }

  Bytes bytes_ = Bytes(4096, 7);
};

TEST_F(DmaTest, AMappingKnowsItsMemoryUntilItIsUnmapped) {
  for (const std::string_view platform : {"host", "null", "sim"}) {
    const Client client = MakeClient(platform);
    StatusOr<DmaMapping> mapping = client.DmaMap(bytes_.data(), bytes_.size());
    ASSERT_TRUE(mapping.ok()) << mapping.status();
    EXPECT_EQ(mapping->data(), bytes_.data());
    EXPECT_EQ(mapping->size_bytes(), bytes_.size());
    EXPECT_EQ(mapping->in_flight(), 0U);
    EXPECT_TRUE(mapping->Unmap().ok());
    EXPECT_EQ(mapping->data(), nullptr);
    EXPECT_EQ(mapping->size_bytes(), 0U);
    EXPECT_EQ(mapping->in_flight(), 0U);
    const Status again = mapping->Unmap();
    EXPECT_TRUE(IsFailedPrecondition(again)) << again;
    EXPECT_TRUE(client.DmaMap(bytes_.data(), bytes_.size()).ok()) << "it is free again";
  }
}

TEST_F(DmaTest, WhatIsNoRangeIsInvalid) {
  const auto* const high = reinterpret_cast<const void*>(std::numeric_limits<std::uintptr_t>::max());
  const std::pair<const void*, std::size_t> cases[] = {{nullptr, 8}, {bytes_.data(), 0}, {high, 2}};
  for (const auto& [data, size_bytes] : cases) {
    const Status status = client_.DmaMap(data, size_bytes).status();
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "cannot map " + std::to_string(size_bytes) + " bytes")) << status;
  }
}

TEST_F(DmaTest, RangesOfOneClientDoNotOverlap) {
  const DmaMapping first = client_.DmaMap(&bytes_[1000], 1000).value();
  const std::pair<std::size_t, std::size_t> overlapping[] = {{1000, 1000}, {0, 1001}, {1999, 10}, {1200, 1}, {0, 4096}};
  for (const auto& [offset, size_bytes] : overlapping) {
    const Status status = client_.DmaMap(&bytes_[offset], size_bytes).status();
    EXPECT_TRUE(IsAlreadyExists(status)) << status;
    EXPECT_TRUE(Contains(status.message(), "overlap the 1000 bytes")) << status;
  }
  EXPECT_TRUE(client_.DmaMap(&bytes_[0], 1000).ok());
  EXPECT_TRUE(client_.DmaMap(&bytes_[2000], 1000).ok());
  EXPECT_TRUE(MakeClient().DmaMap(&bytes_[1000], 1000).ok()) << "another client's accounting";
}

TEST_F(DmaTest, NothingIsUnmappedInFlight) {
  DmaMapping mapping = client_.DmaMap(bytes_.data(), bytes_.size()).value();
  EventPromise gate("gate");
  const Event copied = CopyAfter(gate, bytes_);
  EXPECT_EQ(mapping.in_flight(), 1U);
  const Status status = mapping.Unmap();
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "1 copies in flight use the 4096 bytes")) << status;
  EXPECT_EQ(mapping.data(), bytes_.data()) << "it stays mapped";
  gate.SetReady();
  ASSERT_TRUE(copied.Wait().ok());
  // The use ends with a waiter of the copy's event, which may come a moment after it is ready.
  while (mapping.in_flight() > 0) std::this_thread::yield();
  EXPECT_TRUE(mapping.Unmap().ok());
}

TEST_F(DmaTest, AMappingThatIsDestroyedEndsWithItsLastCopy) {
  EventPromise gate("gate");
  std::optional<DmaMapping> mapping = client_.DmaMap(bytes_.data(), bytes_.size()).value();
  const Event copied = CopyAfter(gate, bytes_);
  mapping.reset();
  EXPECT_TRUE(client_.DmaMap(bytes_.data(), bytes_.size()).ok()) << "its range is free";
  gate.SetReady();
  EXPECT_TRUE(copied.Wait().ok());
}

TEST_F(DmaTest, MovingHandsTheMappingOn) {
  DmaMapping first = client_.DmaMap(&bytes_[0], 10).value();
  DmaMapping second(std::move(first));
  EXPECT_EQ(first.data(), nullptr);  // NOLINT(bugprone-use-after-move): the contract says what it is.
  EXPECT_EQ(first.size_bytes(), 0U);
  EXPECT_EQ(first.in_flight(), 0U);
  EXPECT_TRUE(IsFailedPrecondition(first.Unmap()));
  second = client_.DmaMap(&bytes_[10], 10).value();
  EXPECT_EQ(second.data(), &bytes_[10]);
  EXPECT_TRUE(client_.DmaMap(&bytes_[0], 10).ok()) << "what was assigned over is unmapped";
}

TEST_F(DmaTest, AMappingOutlivesItsClient) {
  std::optional<Client> client = MakeClient();
  DmaMapping mapping = client->DmaMap(bytes_.data(), bytes_.size()).value();
  client.reset();
  EXPECT_TRUE(mapping.Unmap().ok());
}

}  // namespace
}  // namespace purlin
