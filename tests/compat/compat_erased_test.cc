// References without a type: RCReference<AsyncValue>, AsyncValue*, untyped indirect values. See api.h.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/compat/api.h"

namespace {

using tsl::AsyncValue;
using tsl::AsyncValueRef;
using tsl::MakeAvailableAsyncValueRef;
using tsl::MakeConstructedAsyncValueRef;
using tsl::MakeUnconstructedAsyncValueRef;
using tsl::RCReference;

absl::Status Broken() { return absl::AbortedError("broken"); }

TEST(CompatErasedTest, AReferenceLosesItsTypeAndGetsItBack) {
  AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(3);
  RCReference<AsyncValue> erased = value.CopyRCRef();
  EXPECT_FALSE(value.IsUnique());
  EXPECT_EQ(erased->get<int>(), 3);
  const AsyncValueRef<int> again(std::move(erased));
  EXPECT_EQ(*again, 3);
  EXPECT_TRUE(again == value);
}

TEST(CompatErasedTest, ReleaseRCRefGivesTheReferenceAway) {
  AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(3);
  const RCReference<AsyncValue> erased = value.ReleaseRCRef();
  EXPECT_FALSE(value);
  EXPECT_TRUE(erased->IsUnique());
}

TEST(CompatErasedTest, AnRvalueConverts) {
  RCReference<AsyncValue> erased = MakeUnconstructedAsyncValueRef<std::string>();
  EXPECT_TRUE(erased->IsUnavailable());
  erased->emplace<std::string>("text");
  EXPECT_TRUE(erased->IsConcrete());
  EXPECT_EQ(erased->get<std::string>(), "text");
}

TEST(CompatErasedTest, IsFailedAndAsked) {
  const RCReference<AsyncValue> erased = MakeUnconstructedAsyncValueRef<int>();
  erased->SetError(Broken());
  EXPECT_TRUE(erased->IsError());
  EXPECT_TRUE(erased->IsAvailable());
  EXPECT_EQ(erased->GetError(), Broken());
}

TEST(CompatErasedTest, PublishesWhatWasConstructed) {
  const RCReference<AsyncValue> erased = MakeConstructedAsyncValueRef<int>(4);
  EXPECT_TRUE(erased->IsConstructed());
  erased->SetStateConcrete();
  EXPECT_EQ(erased->get<int>(), 4);
}

TEST(CompatErasedTest, KnowsItsType) {
  const AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(4);
  EXPECT_TRUE(value.GetAsyncValue()->IsType<int>());
  EXPECT_FALSE(value.GetAsyncValue()->IsType<std::string>());
}

TEST(CompatErasedTest, ReferencesAreCountedByHand) {
  const AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(4);
  AsyncValue* const pointer = value.GetAsyncValue();
  EXPECT_EQ(pointer->NumRef(), 1U);
  EXPECT_EQ(pointer->AddRef(), pointer);
  pointer->AddRef(2);
  EXPECT_EQ(pointer->NumRef(), 4U);
  pointer->DropRef();
  pointer->DropRef(2);
  EXPECT_TRUE(pointer->IsUnique());
}

TEST(CompatErasedTest, WaitersRun) {
  const AsyncValueRef<int> value = MakeUnconstructedAsyncValueRef<int>();
  int calls = 0;
  value.GetAsyncValue()->AndThen([&] { ++calls; });
  EXPECT_TRUE(value.GetAsyncValue()->HasWaiter());
  LaterExecutor executor;
  value.GetAsyncValue()->AndThen(executor, [&] { calls += 10; });
  value.emplace(1);
  EXPECT_EQ(calls, 1);
  executor.RunAll();
  EXPECT_EQ(calls, 11);
}

TEST(CompatErasedTest, BlocksUntilReady) {
  const AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(1);
  tsl::BlockUntilReady(value.GetAsyncValue());
  EXPECT_TRUE(value.IsConcrete());
}

TEST(CompatErasedTest, APointerGivesAReference) {
  const AsyncValueRef<int> value = MakeAvailableAsyncValueRef<int>(5);
  const tsl::AsyncValuePtr<int> ptr(value.GetAsyncValue());
  EXPECT_EQ(ptr.value(), value.GetAsyncValue());
  EXPECT_EQ(*ptr, 5);
  const RCReference<AsyncValue> copy = tsl::FormRef(ptr.value());
  EXPECT_EQ(copy->NumRef(), 2U);
}

TEST(CompatErasedTest, RunWhenReadyTakesPointersAndReferences) {
  const AsyncValueRef<int> a = MakeUnconstructedAsyncValueRef<int>();
  const AsyncValueRef<std::string> b = MakeUnconstructedAsyncValueRef<std::string>();
  const std::vector<AsyncValue*> pointers = {a.GetAsyncValue(), b.GetAsyncValue()};
  const std::vector<RCReference<AsyncValue>> references = {a.CopyRCRef(), b.CopyRCRef()};
  int calls = 0;
  tsl::RunWhenReady(absl::Span<AsyncValue* const>(pointers), [&] { ++calls; });
  tsl::RunWhenReady(absl::Span<const RCReference<AsyncValue>>(references), [&] { ++calls; });
  a.emplace(1);
  EXPECT_EQ(calls, 0);
  b.SetError(Broken());
  EXPECT_EQ(calls, 2);
}

TEST(CompatErasedTest, AnErrorHasAReferenceOfItsOwn) {
  RCReference<tsl::ErrorAsyncValue> error = tsl::MakeErrorAsyncValueRef(Broken());
  EXPECT_EQ(error->GetError(), Broken());
  const AsyncValueRef<int> value = std::move(error);
  EXPECT_TRUE(value.IsError());
}

TEST(CompatIndirectTest, ShowsWhatItIsForwardedTo) {
  RCReference<tsl::IndirectAsyncValue> indirect = tsl::MakeIndirectAsyncValue();
  const AsyncValueRef<int> shown{RCReference<AsyncValue>(indirect)};
  EXPECT_TRUE(indirect->IsUnresolvedIndirect());
  EXPECT_TRUE(shown.IsUnavailable());
  indirect->ForwardTo(MakeAvailableAsyncValueRef<int>(6));
  EXPECT_TRUE(shown.IsConcrete());
  EXPECT_EQ(*shown, 6);
  EXPECT_FALSE(indirect->IsUnresolvedIndirect());
  EXPECT_TRUE(indirect->IsIndirect());
}

TEST(CompatIndirectTest, ShowsALaterValueLater) {
  RCReference<tsl::IndirectAsyncValue> indirect = tsl::MakeIndirectAsyncValue();
  const AsyncValueRef<int> shown{RCReference<AsyncValue>(indirect)};
  const AsyncValueRef<int> later = MakeUnconstructedAsyncValueRef<int>();
  indirect->ForwardTo(later.CopyRCRef());
  int calls = 0;
  shown.AndThen([&] { ++calls; });
  EXPECT_EQ(calls, 0);
  later.emplace(7);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(*shown, 7);
}

TEST(CompatIndirectTest, ShowsAnError) {
  RCReference<tsl::IndirectAsyncValue> indirect = tsl::MakeIndirectAsyncValue();
  const AsyncValueRef<int> shown{RCReference<AsyncValue>(indirect)};
  indirect->ForwardTo(tsl::MakeErrorAsyncValueRef(Broken()));
  EXPECT_TRUE(shown.IsError());
  EXPECT_EQ(shown.GetError(), Broken());
}

TEST(CompatIndirectTest, MayHaveAType) {
  struct Base {};
  struct Derived : Base {};
  const AsyncValueRef<Base> shown{RCReference<AsyncValue>(tsl::MakeIndirectAsyncValue<Derived>())};
  EXPECT_TRUE(tsl::Isa<Derived>(shown));
}

TEST(CompatIndirectTest, AChainShowsItsEnd) {
  RCReference<tsl::IndirectAsyncValue> first = tsl::MakeIndirectAsyncValue();
  RCReference<tsl::IndirectAsyncValue> second = tsl::MakeIndirectAsyncValue();
  const AsyncValueRef<int> shown{RCReference<AsyncValue>(first)};
  first->ForwardTo(RCReference<AsyncValue>(second));
  EXPECT_TRUE(shown.IsUnavailable());
  second->ForwardTo(MakeAvailableAsyncValueRef<int>(8));
  EXPECT_EQ(*shown, 8);
}

/// An object of the caller's that is counted.
class Object : public tsl::ReferenceCounted<Object> {
 public:
  explicit Object(int* ends) : ends_(ends) {}
  ~Object() { ++*ends_; }

 private:
  int* ends_;
};

TEST(CompatReferenceTest, TheLastOneDestroysTheObject) {
  int ends = 0;
  RCReference<Object> first = tsl::MakeRef<Object>(&ends);
  EXPECT_TRUE(first->IsUnique());
  RCReference<Object> second = first;
  EXPECT_EQ(first->NumRef(), 2U);
  first.reset();
  EXPECT_FALSE(first);
  EXPECT_EQ(ends, 0);
  second.reset();
  EXPECT_EQ(ends, 1);
}

TEST(CompatReferenceTest, TakeRefTakesAndFormRefAdds) {
  int ends = 0;
  auto* const object = new Object(&ends);
  {
    const RCReference<Object> formed = tsl::FormRef(object);
    EXPECT_EQ(object->NumRef(), 2U);
  }
  const RCReference<Object> taken = tsl::TakeRef(object);
  EXPECT_EQ(taken.get(), object);
  EXPECT_TRUE(taken->IsUnique());
}

TEST(CompatReferenceTest, MovesSwapsAndCompares) {
  int ends = 0;
  RCReference<Object> a = tsl::MakeRef<Object>(&ends);
  RCReference<Object> b;
  EXPECT_TRUE(b == nullptr);
  b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): the contract.
  EXPECT_TRUE(b);
  a.swap(b);
  EXPECT_TRUE(a != b);
  Object* const released = a.release();
  EXPECT_EQ(ends, 0);
  released->DropRef();
  EXPECT_EQ(ends, 1);
}

}  // namespace
