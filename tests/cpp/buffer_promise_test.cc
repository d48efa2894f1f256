#include "purlin/buffer_promise.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "buffer_fixture.h"
#include "purlin/buffer.h"

namespace purlin {
namespace {

using Channel = std::pair<Buffer, BufferPromise>;

class BufferPromiseTest : public BufferFixture {
 protected:
  Channel Open(const Dims& dims) const { return Buffer::CreateChannel(Shape(DType::kU8, dims), space_).value(); }
};

TEST_F(BufferPromiseTest, AnArrayMayBeProvidedLater) {
  Channel channel = Open({2, 3});
  auto& [later, promise] = channel;
  EXPECT_EQ(later.shape(), Shape(DType::kU8, {2, 3}));
  const Buffer copy = later.CopyToDevice(client_.devices()[1]).value();
  EXPECT_FALSE(later.ready_event().IsReady());
  EXPECT_FALSE(copy.ready_event().IsReady());
  const Buffer source = Six();
  ASSERT_TRUE(promise.Fulfil(source).ok());
  const std::string line = LineAbove();
  EXPECT_TRUE(source.IsDeleted());
  EXPECT_TRUE(Contains(source.RawAlias().status().message(), "'FulfilBuffer' at " + line))
      << source.RawAlias().status();
  EXPECT_EQ(Read(copy), (Bytes{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Read(later), (Bytes{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(IsFailedPrecondition(promise.Fulfil(Six())));
  EXPECT_TRUE(IsFailedPrecondition(promise.Fail(AbortedError("late"))));
}

TEST_F(BufferPromiseTest, WhatDoesNotFitIsRefusedAndThePromiseStays) {
  Channel channel = Open({6});
  auto& [later, promise] = channel;
  const Buffer elsewhere = Of(Bytes(6), {6}).CopyToMemorySpace(client_.devices()[1].default_memory_space()).value();
  const Buffer deleted = Of(Bytes(6), {6});
  deleted.Delete();
  const Buffer referenced = Of(Bytes(6), {6});
  const ExternalReference reference = referenced.AcquireExternalReference().value();
  const Buffer other_shape = Six();
  for (const Buffer& wrong : {other_shape, elsewhere, deleted, referenced}) {
    const Status status = promise.Fulfil(wrong);
    EXPECT_TRUE(IsInvalidArgument(status)) << status;
    EXPECT_EQ(wrong.hold_counts().usage, 0U);
  }
  EXPECT_FALSE(other_shape.IsDeleted());
  EXPECT_FALSE(elsewhere.IsDeleted());
  EXPECT_FALSE(later.ready_event().IsReady());
  ASSERT_TRUE(promise.Fulfil(Of({9, 8, 7, 6, 5, 4}, {6})).ok());
  EXPECT_EQ(Read(later), (Bytes{9, 8, 7, 6, 5, 4}));
}

TEST_F(BufferPromiseTest, FailedArraysFailWhatWaits) {
  Channel channel = Open({6});
  auto& [later, promise] = channel;
  const Buffer copy = later.CopyToDevice(client_.devices()[1]).value();
  ASSERT_TRUE(promise.Fail(UnavailableError("nothing fits")).ok());
  for (const Event& event : {later.ready_event(), copy.ready_event()}) {
    EXPECT_TRUE(IsUnavailable(event.Wait()));
    EXPECT_TRUE(Contains(event.error().message(), "nothing fits"));
  }
  EXPECT_TRUE(IsFailedPrecondition(promise.Fail(AbortedError("again"))));
  Channel ok = Open({6});
  ASSERT_TRUE(ok.second.Fail(Status()).ok());
  EXPECT_TRUE(IsInternal(ok.first.ready_event().Wait())) << "OK is no error";
}

TEST_F(BufferPromiseTest, AFailedArrayMayBeProvided) {
  Channel channel = Open({2, 3});
  const Buffer poisoned = Six().DonateAfter(Event::Error(AbortedError("upstream"))).value();
  ASSERT_TRUE(channel.second.Fulfil(poisoned).ok());
  EXPECT_TRUE(IsAborted(channel.first.ready_event().Wait()));
}

TEST_F(BufferPromiseTest, APromiseThatGoesFailsItsArray) {
  std::optional<Channel> channel = Open({6});
  const Buffer later = channel->first;
  const Buffer copy = later.CopyToDevice(client_.devices()[1]).value();
  channel.reset();
  EXPECT_TRUE(IsInternal(later.ready_event().Wait()));
  EXPECT_TRUE(IsInternal(copy.ready_event().Wait()));
}

TEST_F(BufferPromiseTest, MovesCarryTheDuty) {
  Channel a = Open({6});
  Channel b = Open({6});
  BufferPromise promise = std::move(a.second);
  EXPECT_TRUE(IsFailedPrecondition(a.second.Fail(AbortedError("moved from"))));
  promise = std::move(b.second);
  EXPECT_TRUE(IsInternal(a.first.ready_event().Wait())) << "what was here goes";
  ASSERT_TRUE(promise.Fulfil(Of(Bytes(6, 3), {6})).ok());
  EXPECT_EQ(Read(b.first), Bytes(6, 3));
}

TEST_F(BufferPromiseTest, AWaiterMayDestroyThePromise) {
  auto channel = std::make_unique<Channel>(Open({6}));
  Channel* const raw = channel.get();
  const Event ready = raw->first.ready_event();
  ready.OnReady([&channel](const Status&) { channel.reset(); });
  EXPECT_TRUE(raw->second.Fail(AbortedError("gone with it")).ok());
  EXPECT_EQ(channel, nullptr);
}

TEST_F(BufferPromiseTest, UnsoundShapesAreInvalid) {
  EXPECT_TRUE(IsInvalidArgument(Buffer::CreateChannel(Shape(DType::kU8, {-1}), space_).status()));
}

}  // namespace
}  // namespace purlin
