// purlin/adapters/cuda.h, with NVIDIA's <cuda.h>, on the fake driver: its detector ends the program where an order is
// missing.
#include "purlin/adapters/cuda.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "purlin/buffer.h"
#include "purlin/buffer_holds.h"
#include "purlin/client.h"
#include "purlin/device.h"
#include "purlin/dtype.h"
#include "purlin/event.h"
#include "purlin/raw_buffer.h"
#include "purlin/status.h"
#include "purlin/status_or.h"

namespace purlin {
namespace {

using adapters::FromCuda;
using adapters::ToCuda;
using adapters::WaitOnCuda;

constexpr std::size_t kBytes = 1 << 20;

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// A client, and a program of the driver API beside it, which has the primary context of the GPU current.
class CudaAdapterTest : public testing::Test {
 protected:
  static Client Create() {
    ClientOptions options;
    options.device_count = 2;
    options.worker_count = 2;
    options.platform = "cuda";
    return Client::Create(options).value();
  }

  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&theirs_, kBytes), CUDA_SUCCESS);
  }

  void TearDown() override {
    EXPECT_EQ(cuMemFree(theirs_), CUDA_SUCCESS);
    EXPECT_EQ(cuEventDestroy(event_), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamDestroy(stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  }

  /// Their stream, by each of its names.
  [[nodiscard]] std::array<CUstream, 4> Streams() const {
    return {nullptr, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, stream_};
  }

  [[nodiscard]] RawBuffer Allocate(const char* kind) const {
    return RawBuffer::Allocate(device_.memory_space(kind).value(), kBytes).value();
  }

  static void IsFilled(const RawBuffer& pinned, std::uint8_t byte) {
    const std::vector<std::uint8_t> expected(kBytes, byte);
    EXPECT_EQ(std::memcmp(pinned.host_pointer(), expected.data(), kBytes), 0) << int{byte};
  }

  Client client_ = Create();
  Device device_ = client_.devices()[0];
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
  CUdeviceptr theirs_ = 0;
};

TEST_F(CudaAdapterTest, OursComesBehindTheirStreamsAndEventsWithoutAThread) {
  const RawBuffer ours = Allocate("device");
  const RawBuffer pinned = Allocate("pinned_host");
  const CUdeviceptr address = ToCuda(ours).value();
  std::uint8_t byte = 1;
  for (CUstream stream : Streams()) {
    ASSERT_EQ(cuMemsetD8Async(address, byte, kBytes, stream), CUDA_SUCCESS);
    Status status = ours.CopyTo(pinned, {FromCuda(device_, stream)}).Wait();
    ASSERT_TRUE(status.ok()) << status;
    IsFilled(pinned, byte++);

    ASSERT_EQ(cuMemsetD8Async(address, byte, kBytes, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuEventRecord(event_, stream), CUDA_SUCCESS);
    const Event filled = FromCuda(device_, event_);
    // What becomes of the event afterwards is its owner's business.
    ASSERT_EQ(cuEventDestroy(event_), CUDA_SUCCESS);
    ASSERT_EQ(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    status = ours.CopyTo(pinned, {filled}).Wait();
    ASSERT_TRUE(status.ok()) << status;
    IsFilled(pinned, byte++);
  }
}

TEST_F(CudaAdapterTest, TheirStreamsComeBehindOurs) {
  const RawBuffer ours = Allocate("device");
  const RawBuffer pinned = Allocate("pinned_host");
  const CUdeviceptr address = ToCuda(ours).value();
  std::uint8_t byte = 1;
  for (CUstream stream : Streams()) {
    std::memset(pinned.host_pointer(), byte, kBytes);
    const Event written = pinned.CopyTo(ours);
    ASSERT_TRUE(WaitOnCuda(device_, stream, written).ok());
    ASSERT_EQ(cuMemcpyDtoDAsync(theirs_, address, kBytes, stream), CUDA_SUCCESS);
    std::vector<std::uint8_t> back(kBytes);
    ASSERT_EQ(cuMemcpyDtoHAsync(back.data(), theirs_, kBytes, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(back, std::vector<std::uint8_t>(kBytes, byte++));
  }
  const Status aborted = WaitOnCuda(device_, stream_, Event::Error(AbortedError("planned")));
  EXPECT_EQ(aborted.code(), StatusCode::kAborted) << aborted;
}

TEST_F(CudaAdapterTest, WorkOnOurStreamIsInOrderWithTheirs) {
  const CUstream ours = ToCuda(device_, 1).value();
  EXPECT_NE(ours, ToCuda(device_).value());
  const RawBuffer pinned = Allocate("pinned_host");
  const RawBuffer block = Allocate("device");
  ASSERT_EQ(cuMemsetD8Async(ToCuda(block).value(), 9, kBytes, ours), CUDA_SUCCESS);
  const Status status = block.CopyTo(pinned, {FromCuda(device_, ours)}).Wait();
  ASSERT_TRUE(status.ok()) << status;
  IsFilled(pinned, 9);
}

TEST_F(CudaAdapterTest, TheirMemoryIsOursUntilItsOwnerIsTold) {
  const MemorySpace space = device_.default_memory_space();
  const RawBuffer pinned = Allocate("pinned_host");
  int told = 0;
  {
    const StatusOr<RawBuffer> taken = FromCuda(space, theirs_, kBytes, Mutability::kMutable, [&told] { ++told; });
    ASSERT_TRUE(taken.ok()) << taken.status();
    ASSERT_EQ(cuMemsetD8Async(theirs_, 4, kBytes, stream_), CUDA_SUCCESS);
    const Status status = taken->CopyTo(pinned, {FromCuda(device_, stream_)}).Wait();
    ASSERT_TRUE(status.ok()) << status;
    IsFilled(pinned, 4);
    EXPECT_EQ(told, 0);
    EXPECT_EQ(ToCuda(*taken).value(), theirs_);
  }
  EXPECT_EQ(told, 1);
  const MemorySpace other = client_.devices()[1].default_memory_space();
  for (const StatusOr<RawBuffer>& refused :
       {FromCuda(other, theirs_, kBytes, Mutability::kMutable, [&told] { ++told; }),
        FromCuda(other, theirs_, kBytes, Mutability::kImmutable)}) {
    EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument) << refused.status();
    EXPECT_TRUE(Contains(refused.status().message(), "memory of GPU 0")) << refused.status();
  }
  EXPECT_EQ(told, 1);
}

TEST_F(CudaAdapterTest, OurMemoryIsTheirsUnderAHold) {
  const MemorySpace space = device_.default_memory_space();
  const std::vector<std::uint8_t> sevens(kBytes, 7);
  const Buffer buffer = Buffer::FromHost(sevens.data(), kBytes, DType::kU8, {kBytes}, space).value();
  UsageHold hold = buffer.AcquireUsageHold().value();
  ASSERT_TRUE(WaitOnCuda(device_, stream_, hold.ready_event()).ok());
  ASSERT_EQ(cuMemcpyDtoDAsync(theirs_, ToCuda(hold.memory()).value(), kBytes, stream_), CUDA_SUCCESS);
  hold.ReleaseAfter(FromCuda(device_, stream_));
  // The memory goes to the next that asks for it, behind their copy.
  buffer.Delete();
  const RawBuffer pinned = Allocate("pinned_host");
  std::memset(pinned.host_pointer(), 1, kBytes);
  const Status status = pinned.CopyTo(Allocate("device")).Wait();
  ASSERT_TRUE(status.ok()) << status;
  std::vector<std::uint8_t> back(kBytes);
  ASSERT_EQ(cuMemcpyDtoHAsync(back.data(), theirs_, kBytes, stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  EXPECT_EQ(back, sevens);
}

TEST_F(CudaAdapterTest, WhatTheDriverDoesNotKnowIsSaidWithItsHandle) {
  const CUstream no_stream = reinterpret_cast<CUstream>(std::uintptr_t{0xbad0});
  const CUevent no_event = reinterpret_cast<CUevent>(std::uintptr_t{0xbad0});
  for (const Event& event : {FromCuda(device_, no_stream), FromCuda(device_, no_event)}) {
    const Status status = event.Wait();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(Contains(status.message(), "0xbad0")) << status;
    EXPECT_TRUE(Contains(status.message(), "cuda_test.cc")) << status;
  }
}

}  // namespace
}  // namespace purlin
