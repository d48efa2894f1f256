// Values of classes: bases, casts at run time, and payloads that lie elsewhere than their base.
#include "purlin/async_value_cast.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "purlin/async_value.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

template <std::size_t kAlign>
void ExpectBaseReadable() {
  struct alignas(kAlign) Base {
    explicit Base(int32_t v) : value(v) {}
    int32_t value;
  };
  struct Derived : Base {
    using Base::Base;
  };
  AsyncValueRef<Base> value = MakeAvailableAsyncValueRef<Derived>(42);
  EXPECT_EQ(value->value, 42);
  EXPECT_EQ(value.AsPtr()->value, 42);
}

TEST(AsyncValueCastTest, AlignedPayload) {
  ExpectBaseReadable<16>();
  ExpectBaseReadable<32>();
  ExpectBaseReadable<64>();
}

struct A {
  explicit A(int v) : value(v) {}
  int value;
};
struct B : A {
  using A::A;
};
struct C : B {
  using B::B;
};
struct D : A {
  using A::A;
};

TEST(AsyncValueCastTest, Isa) {
  EXPECT_FALSE(Isa<A>(AsyncValueRef<A>())) << "null is nothing";

  auto error = AsyncValueRef<A>(InternalError("error"));
  EXPECT_TRUE(Isa<A>(error));
  EXPECT_TRUE(Isa<B>(error));
  EXPECT_TRUE(Isa<std::string>(error));

  auto b = MakeConstructedAsyncValueRef<B>(1);
  AsyncValueRef<A> a = b;
  EXPECT_TRUE(Isa<A>(b));
  EXPECT_TRUE(Isa<A>(a));
  EXPECT_TRUE(Isa<B>(a));
  EXPECT_FALSE(Isa<C>(a));
  EXPECT_FALSE(Isa<D>(a));
  EXPECT_FALSE(Isa<int>(a));

  AsyncValueRef<A> c = MakeConstructedAsyncValueRef<C>(1);
  EXPECT_TRUE(Isa<C>(c));
  EXPECT_FALSE(Isa<B>(c)) << "classes in between are not known";

  AsyncValueRef<A> typed = MakeIndirectAsyncValueRef<B>();
  EXPECT_TRUE(Isa<B>(typed)) << "even before it is resolved";
  auto indirect = MakeIndirectAsyncValueRef<A>();
  EXPECT_TRUE(Isa<A>(indirect));
  EXPECT_FALSE(Isa<B>(indirect));
  indirect.ForwardTo(b);
  EXPECT_FALSE(Isa<B>(indirect)) << "the value is not available";
  b.SetStateConcrete();
  EXPECT_TRUE(Isa<B>(indirect));
  EXPECT_FALSE(Isa<C>(indirect));
}

TEST(AsyncValueCastTest, DynCast) {
  auto b = MakeAvailableAsyncValueRef<B>(1);
  AsyncValueRef<A> a = b;
  EXPECT_TRUE(DynCast<A>(a));
  EXPECT_EQ(DynCast<B>(a), b);
  EXPECT_FALSE(DynCast<C>(a));
  EXPECT_FALSE(DynCast<D>(a));
  EXPECT_FALSE(DynCastOrNull<B>(AsyncValueRef<A>()));
  auto indirect = MakeIndirectAsyncValueRef<A>();
  EXPECT_FALSE(DynCast<B>(indirect));
  indirect.ForwardTo(a);
  EXPECT_EQ(DynCast<B>(indirect), b) << "what is shown";
  auto error = AsyncValueRef<A>(InternalError("error"));
  EXPECT_EQ(DynCast<C>(error).GetError(), InternalError("error"));
}

TEST(AsyncValueCastTest, Cast) {
  AsyncValueRef<A> a = MakeAvailableAsyncValueRef<B>(1);
  AsyncValueRef<B> b = Cast<B>(a);
  EXPECT_EQ(b->value, 1);
  EXPECT_EQ(Cast<A>(b)->value, 1);
  EXPECT_EQ(a.NumRef(), 2U);
  EXPECT_FALSE(Cast<D>(a)) << "null, never a wrong type";
}

TEST(AsyncValueCastTest, ValueCheckThroughABaseAndBack) {
  const auto whole = MakeAvailableAsyncValueRef<B>(42);
  const AsyncValueRef<A> base = whole;
  const AsyncValueRef<B> back = Cast<B>(base);
  EXPECT_EQ(base.get().value, 42);
  EXPECT_EQ(base->value, 42);
  EXPECT_EQ((*base).value, 42);
  EXPECT_EQ(back.get().value, 42);
  EXPECT_EQ(back->value, 42);
  EXPECT_EQ((*back).value, 42);
  EXPECT_EQ(&back.get(), &whole.get()) << "one payload under three references";
  EXPECT_EQ(whole.NumRef(), 3U);
}

struct KeptB : KeepOnError {
  int value = 7;
};

TEST(AsyncValueCastTest, AnErrorWithAPayloadCastToAnotherTypeHasNone) {
  auto kept = MakeConstructedAsyncValueRef<KeptB>();
  kept.SetError(AbortedError("x"));
  AsyncValueRef<std::string> other = DynCast<std::string>(kept);
  EXPECT_EQ(other.GetError(), AbortedError("x"));
  EXPECT_EQ(other.GetIfConstructed(), nullptr);
  EXPECT_FALSE(DynCast<std::string>(kept.AsPtr()));
  EXPECT_EQ(kept.Map([](KeptB&) { return std::string(); }).GetIfConstructed(), nullptr);
}

TEST(AsyncValueCastTest, EmplaceThroughABaseDoesNotFit) {
  NoLeak no_leak;
  auto b = MakeUnconstructedAsyncValueRef<B>();
  AsyncValueRef<A> a = b;
  EXPECT_FALSE(a.emplace(1)) << "it would make an A where everybody expects a B";
  EXPECT_TRUE(b.emplace(2));
  EXPECT_EQ(a->value, 2);
  struct Derived : Counted {
    using Counted::Counted;
    Counted more{1};
  };
  AsyncValueRef<Counted> base = MakeConstructedAsyncValueRef<Derived>(1);
  base.SetError(AbortedError("the whole payload is destroyed, not the base"));
}

struct Other {
  virtual ~Other() = default;
  int other = 1;
};
struct Second {
  explicit Second(int v) : counted(v) {}
  Counted counted;
};
struct Both : Other, Second {
  explicit Both(int v) : Second(v) {}
};
struct Virtual : virtual Second {
  explicit Virtual(int v) : Second(v) {}
};

TEST(AsyncValueCastTest, BasesThatDoNotBeginTheObjectAreShownAtTheirPlace) {
  NoLeak no_leak;
  auto both = MakeUnconstructedAsyncValueRef<Both>();
  AsyncValueRef<Second> second = both;
  AsyncValueRef<Other> other = both;
  EXPECT_FALSE(second.IsAvailable());
  both.emplace(42);
  EXPECT_EQ(second->counted.value, 42);
  EXPECT_EQ(&second.get(), static_cast<Second*>(&both.get()));
  EXPECT_EQ(other->other, 1);
  EXPECT_EQ(DynCast<Both>(second), both);
  both.reset();
  EXPECT_EQ(second->counted.value, 42);

  AsyncValueRef<Second> from_virtual = MakeAvailableAsyncValueRef<Virtual>(43);
  EXPECT_EQ(from_virtual->counted.value, 43);
  AsyncValueRef<Second> failed = AsyncValueRef<Both>(AbortedError("x"));
  EXPECT_EQ(failed.GetError(), AbortedError("x"));
}

}  // namespace
}  // namespace purlin
