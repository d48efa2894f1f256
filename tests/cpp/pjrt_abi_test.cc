// purlin/adapters/pjrt_abi.h: this compiler lays out every struct as the table says from which the header was written
// (rust/pjrt-abi). tests/interop/pjrt_abi_test.cc compares the same list with XLA's header and a live plugin.
#include <gtest/gtest.h>

#include <cstddef>

#include "purlin/adapters/pjrt_abi.h"

namespace {

#define STRUCT(theirs, ours, size, struct_size) static_assert(sizeof(ours) == (size), #ours);
#define FIELD(theirs, ours, their_field, our_field, offset) \
  static_assert(offsetof(ours, our_field) == (offset), #ours "." #our_field);
#define VALUE(theirs, value)
#define SLOT(index, theirs, ours, offset, arguments) static_assert(offsetof(PurlinPjrtApi, ours) == (offset), #ours);
#define EXTENSION(type, theirs, ours, their_slot, our_slot, offset, function, arguments) \
  static_assert(offsetof(ours, our_slot) == (offset), #ours "." #our_slot);
#define NEWER_STRUCT STRUCT
#define NEWER_FIELD FIELD
#define NEWER_VALUE VALUE
#define NEWER_SLOT SLOT
#define NEWER_EXTENSION EXTENSION
#include "tests/cpp/pjrt_abi.inc"
#undef SLOT

TEST(PjrtAbi, HasTheSlotsOfVersion0_115) {
  int slots = 0;
#undef STRUCT
#undef FIELD
#undef EXTENSION
#define STRUCT(theirs, ours, size, struct_size)
#define FIELD(theirs, ours, their_field, our_field, offset)
#define EXTENSION(type, theirs, ours, their_slot, our_slot, offset, function, arguments)
#define SLOT(index, theirs, ours, offset, arguments) EXPECT_EQ(slots++, index);
#include "tests/cpp/pjrt_abi.inc"
  EXPECT_EQ(slots, 138);
  EXPECT_EQ(sizeof(PurlinPjrtApi), 1144U);
}

}  // namespace
