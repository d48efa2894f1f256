#include "purlin/dlpack.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "buffer_fixture.h"

// What DLPack's header defines and ours only names.
extern "C" {
struct DLPackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};
struct DLDevice {
  std::int32_t device_type;
  std::int32_t device_id;
};
struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;
}

namespace purlin {
namespace {

/// A struct of another library, over memory of its own, which counts its ends.
struct Stranger {
  Stranger(Dims dims, Dims steps) : shape(std::move(dims)), strides(std::move(steps)) {
    managed.version = {1, 3};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensorVersioned* self) { ++static_cast<Stranger*>(self->manager_ctx)->ends; };
    managed.dl_tensor = {bytes,     {1, 0},       static_cast<std::int32_t>(shape.size()),
                         {1, 8, 1}, shape.data(), strides.empty() ? nullptr : strides.data(),
                         0};
  }
  /// Waits until it was ended.
  void Wait() const {
    while (ends.load() == 0) std::this_thread::yield();
  }

  alignas(64) std::uint8_t bytes[6] = {1, 2, 3, 4, 5, 6};
  Dims shape;
  Dims strides;
  DLManagedTensorVersioned managed{};
  std::atomic<int> ends{0};
};

class DLPackTest : public BufferFixture {
 protected:
  Status Failure(Stranger& stranger) const {
    const Status status = FromDLPack(&stranger.managed, space_).status();
    EXPECT_EQ(stranger.ends.load(), 0) << "it stays the caller's";
    return status;
  }
};

TEST_F(DLPackTest, ABufferIsExportedWhereItIs) {
  const Buffer six = Six();
  DLManagedTensorVersioned* tensor = ToDLPack(six).value();
  EXPECT_EQ(tensor->version.major, 1U);
  EXPECT_EQ(tensor->flags, 1U) << "read-only";
  const DLTensor& array = tensor->dl_tensor;
  EXPECT_EQ(array.data, Address(six));
  EXPECT_EQ(array.device.device_type, 1);
  EXPECT_EQ(std::vector<int>({array.dtype.code, array.dtype.bits, array.dtype.lanes}), std::vector<int>({1, 8, 1}));
  ASSERT_EQ(array.ndim, 2);
  EXPECT_EQ(Dims(array.shape, array.shape + 2), Dims({2, 3}));
  EXPECT_EQ(Dims(array.strides, array.strides + 2), Dims({3, 1}));
  tensor->deleter(tensor);
}

TEST_F(DLPackTest, TheMemoryStaysUntilTheDeleterAlsoWithoutTheClient) {
  DLManagedTensorVersioned* tensor = nullptr;
  {
    const Client client = MakeClient();
    const Bytes bytes = {7, 8, 9};
    const MemorySpace space = client.devices()[0].default_memory_space();
    const Buffer buffer = Buffer::FromHost(bytes.data(), bytes.size(), DType::kU8, {3}, space).value();
    tensor = ToDLPack(buffer).value();
    EXPECT_EQ(buffer.hold_counts().external, 1U);
    EXPECT_TRUE(Contains(buffer.Donate("test").status().message(), "external reference"));
    buffer.Delete();
  }
  EXPECT_EQ(static_cast<std::uint8_t*>(tensor->dl_tensor.data)[2], 9);
  std::thread([tensor] { tensor->deleter(tensor); }).join();
}

TEST_F(DLPackTest, WhatGoesOutComesBackWhereItIs) {
  const Buffer six = Six();
  void* address = Address(six);
  {
    const StatusOr<FromHostResult> back = FromDLPack(ToDLPack(six).value(), space_);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->aliasing, Aliasing::kAliased);
    EXPECT_EQ(Address(back->buffer), address);
    EXPECT_EQ(six.hold_counts().external, 1U);
  }
  EXPECT_EQ(six.hold_counts().external, 0U);
}

TEST_F(DLPackTest, WhatCannotBeExportedSaysWhy) {
  const Shape shape(DType::kU8, {2});
  auto [pending, promise] = Buffer::CreateChannel(shape, space_).value();
  EXPECT_EQ(ToDLPack(pending).status().code(), StatusCode::kFailedPrecondition);
  const Buffer failed = Buffer::CreateError(AbortedError("no such luck"), shape, space_).value();
  EXPECT_EQ(ToDLPack(failed).status().code(), StatusCode::kAborted);
  EXPECT_EQ(ToDLPack(Buffer::CreateToken(space_, Event()).value()).status().code(), StatusCode::kInvalidArgument);
  const Buffer gone = Six();
  gone.Delete();
  EXPECT_EQ(ToDLPack(gone).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(DLPackTest, StreamsAreForMemoryOfGpus) {
  const Buffer six = Six();
  for (const std::int64_t stream : {0, -2, 1, 2}) {
    EXPECT_EQ(ToDLPack(six, stream).status().code(), StatusCode::kInvalidArgument) << stream;
    Stranger stranger({2, 3}, {});
    EXPECT_EQ(FromDLPack(&stranger.managed, space_, stream).status().code(), StatusCode::kInvalidArgument) << stream;
  }
  {
    const StatusOr<FromHostResult> back = FromDLPack(ToDLPack(six, -1).value(), space_, -1);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(Address(back->buffer), Address(six));
  }
  auto [pending, promise] = Buffer::CreateChannel(Shape(DType::kU8, {2}), space_).value();
  EXPECT_EQ(ToDLPack(pending, -1).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(DLPackTest, AStrangersArrayIsUsedWhereItIsAndEndedOnce) {
  Stranger stranger({2, 3}, {});
  {
    const StatusOr<FromHostResult> made = FromDLPack(&stranger.managed, space_);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->aliasing, Aliasing::kAliased);
    EXPECT_EQ(Address(made->buffer), stranger.bytes);
    EXPECT_EQ(Read(made->buffer), Bytes({1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(stranger.ends.load(), 0);
  }
  stranger.Wait();
  EXPECT_EQ(stranger.ends.load(), 1);
}

TEST_F(DLPackTest, AnArrayInAnotherOrderIsCopiedAndEndedAtOnce) {
  Stranger stranger({3, 2}, {1, 3});
  const StatusOr<FromHostResult> made = FromDLPack(&stranger.managed, space_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->aliasing, Aliasing::kCopied);
  EXPECT_EQ(Read(made->buffer), Bytes({1, 4, 2, 5, 3, 6}));
  stranger.Wait();
  EXPECT_EQ(stranger.ends.load(), 1);
}

TEST_F(DLPackTest, AnArrayThatIsRefusedStaysTheCallers) {
  Stranger newer({2, 3}, {});
  newer.managed.version.major = 2;
  EXPECT_EQ(Failure(newer).code(), StatusCode::kInvalidArgument);
  Stranger far({2, 3}, {});
  far.managed.dl_tensor.device.device_type = 2;
  EXPECT_EQ(Failure(far).code(), StatusCode::kUnimplemented);
  Stranger vector({2, 3}, {});
  vector.managed.dl_tensor.dtype.lanes = 2;
  EXPECT_EQ(Failure(vector).code(), StatusCode::kUnimplemented);
  Stranger negative({2, -3}, {});
  EXPECT_TRUE(Contains(Failure(negative).message(), "is negative: -3"));
  Stranger empty({2, 3}, {});
  empty.managed.dl_tensor.data = nullptr;
  EXPECT_EQ(Failure(empty).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FromDLPack(nullptr, space_).status().message(), "the DLPack tensor is null");
}

}  // namespace
}  // namespace purlin
