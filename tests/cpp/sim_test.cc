// The platform "sim" seen from C++: it works like a device, and finds what other platforms let pass.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

#include "purlin/client.h"
#include "purlin/join_events.h"
#include "purlin/raw_buffer.h"

namespace purlin {
namespace {

using Bytes = std::vector<std::uint8_t>;

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

class SimTest : public testing::Test {
 protected:
  static Client MakeClient() {
    ClientOptions options;
    options.device_count = 2;
    options.worker_count = 1;
    options.platform = "sim";
    return Client::Create(options).value();
  }

  RawBuffer Allocate(std::size_t size) const { return RawBuffer::Allocate(space_, size).value(); }

  Client client_ = MakeClient();
  MemorySpace space_ = client_.devices()[0].default_memory_space();
};

TEST_F(SimTest, BytesComeBackInTheOrderOfEvents) {
  Bytes bytes(100'000);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
  Bytes back(bytes.size());
  const RawBuffer here = Allocate(bytes.size());
  const RawBuffer there = RawBuffer::Allocate(client_.devices()[1].default_memory_space(), bytes.size()).value();
  const Event sent = here.CopyFromHost(bytes.data(), 0, bytes.size());
  const Event moved = here.CopyTo(there, {sent});
  EXPECT_TRUE(there.CopyToHost(back.data(), 0, back.size(), {moved}).Wait().ok());
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(here.host_pointer(), nullptr);
}

TEST_F(SimTest, AMissingWaitFailsAndNamesBothCopies) {
  const Bytes ones(64, 1);
  const Bytes twos(64, 2);
  const RawBuffer buffer = Allocate(64);
  // Both wait for one copy, so neither can be over when the other is asked for.
  EventPromise gate("gate");
  const Event before = Allocate(64).CopyFromHost(ones.data(), 0, 64, {gate.event()});
  const Event first = buffer.CopyFromHost(ones.data(), 0, 64, {before});
  const Event second = buffer.CopyFromHost(twos.data(), 0, 64, {before});
  gate.SetReady();
  EXPECT_TRUE(first.Wait().ok());
  const Status status = second.Wait();
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  for (const std::string_view part : {"unordered writes of 64 bytes", "copy #1", "copy #2", "no event orders"}) {
    EXPECT_TRUE(Contains(status.message(), part)) << status;
  }
}

TEST_F(SimTest, TheMissingEventMendsIt) {
  const Bytes ones(64, 1);
  const Bytes twos(64, 2);
  const RawBuffer buffer = Allocate(64);
  EventPromise gate("gate");
  const Event first = buffer.CopyFromHost(ones.data(), 0, 64, {gate.event()});
  const Event second = buffer.CopyFromHost(twos.data(), 0, 64, {gate.event(), first});
  gate.SetReady();
  EXPECT_TRUE(second.Wait().ok());
}

TEST_F(SimTest, UnwrittenMemoryDoesNotReachTheHost) {
  Bytes bytes(16);
  const Status status = Allocate(16).CopyToHost(bytes.data(), 0, 16).Wait();
  EXPECT_TRUE(IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "read before write of 16 bytes")) << status;
}

}  // namespace
}  // namespace purlin
