// purlin/adapters/pjrt_abi.h beside XLA's headers, of version 0.90, and beside a live plugin, of 0.115: both must see
// the layouts that the table of rust/pjrt-abi says, by the list that is written from it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <strings.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "purlin/adapters/pjrt_abi.h"
#include "xla/pjrt/c/pjrt_c_api.h"
#include "xla/pjrt/c/pjrt_c_api_ffi_extension.h"
#include "xla/pjrt/c/pjrt_c_api_layouts_extension.h"
#include "xla/pjrt/c/pjrt_c_api_memory_descriptions_extension.h"

namespace {

// The header ---------------------------------------------------------------------------------------------------------

static_assert(PJRT_API_MAJOR == 0 && PJRT_API_MINOR == 90, "the list says what this version has");

#define SAME(theirs, ours, their_field, our_field, offset)                                                      \
  static_assert(                                                                                                \
      offsetof(theirs, their_field) == (offset) && offsetof(ours, our_field) == (offset) &&                     \
          sizeof(static_cast<theirs*>(nullptr)->their_field) == sizeof(static_cast<ours*>(nullptr)->our_field), \
      #theirs "." #their_field);
#define STRUCT(theirs, ours, size, struct_size) \
  static_assert(sizeof(theirs) == (size) && sizeof(ours) == (size), #theirs);
#define FIELD SAME
#define VALUE(theirs, value) static_assert(static_cast<int>(theirs) == (value), #theirs);
#define SLOT(index, theirs, ours, offset, arguments) SAME(PJRT_Api, PurlinPjrtApi, theirs, ours, offset)
#define EXTENSION(type, theirs, ours, their_slot, our_slot, offset, function, arguments) \
  SAME(theirs, ours, their_slot, our_slot, offset)
// What this header does not know, the compiler never sees.
#define NEWER_STRUCT(theirs, ours, size, struct_size)
#define NEWER_FIELD(theirs, ours, their_field, our_field, offset)
#define NEWER_VALUE(theirs, value)
#define NEWER_SLOT(index, theirs, ours, offset, arguments)
#define NEWER_EXTENSION(type, theirs, ours, their_slot, our_slot, offset, function, arguments)
#include "tests/cpp/pjrt_abi.inc"
SAME(PJRT_Api, PurlinPjrtApi, struct_size, struct_size, 0)
SAME(PJRT_Api, PurlinPjrtApi, extension_start, extension_start, 8)
SAME(PJRT_Api, PurlinPjrtApi, pjrt_api_version, version, 16)
#undef STRUCT
#undef FIELD
#undef VALUE
#undef SLOT
#undef EXTENSION
#undef NEWER_SLOT
#undef NEWER_EXTENSION
#define NEWER_SLOT SLOT
#define NEWER_EXTENSION EXTENSION

// The plugin ---------------------------------------------------------------------------------------------------------

const PurlinPjrtApi* Plugin() {
  static const auto* const api = [] {
    void* const library = dlopen(PURLIN_INTEROP_PJRT_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    void* const get = library == nullptr ? nullptr : dlsym(library, "GetPjrtApi");
    return get == nullptr ? nullptr : reinterpret_cast<const PurlinPjrtApi* (*)()>(get)();
  }();
  return api;
}

// An error's message; the error is destroyed.
std::string Message(PurlinPjrtError* error) {
  if (error == nullptr) return "no error";
  PurlinPjrtErrorMessageArgs said{};
  said.struct_size = kPurlinPjrtErrorMessageArgsSize;
  said.error = error;
  Plugin()->error_message(&said);
  std::string message(said.message, said.message_size);
  PurlinPjrtErrorDestroyArgs args{};
  args.struct_size = kPurlinPjrtErrorDestroyArgsSize;
  args.error = error;
  Plugin()->error_destroy(&args);
  return message;
}

// The plugin's extension of a type; null: it has none.
const PurlinPjrtExtensionBase* Extension(PurlinPjrtExtensionType type) {
  const PurlinPjrtExtensionBase* of = Plugin()->extension_start;
  while (of != nullptr && of->type != type) of = of->next;
  return of;
}

// A function of a table of functions is called with arguments that are all zero and too short by one byte. The plugin
// must say so, with the name and the size of its struct: "Unexpected PJRT_Error_GetCode_Args size: expected 28,
// got 27." Some of its names lack "_Args", or differ in case.
void RefusesTooShort(const void* table, std::size_t offset, const std::string& name, std::size_t struct_size) {
  alignas(8) unsigned char zeros[512] = {};
  *reinterpret_cast<std::size_t*>(zeros) = struct_size - 1;
  const auto* const slot = static_cast<const unsigned char*>(table) + offset;
  const std::string said = Message((*reinterpret_cast<PurlinPjrtError* (*const*)(void*)>(slot))(zeros));
  const std::string begin = "Unexpected " + name;
  const std::string end =
      " size: expected " + std::to_string(struct_size) + ", got " + std::to_string(struct_size - 1) + ".";
  EXPECT_EQ(strncasecmp(said.c_str(), begin.c_str(), begin.size()), 0) << name << ": " << said;
  EXPECT_NE(said.find(end), std::string::npos) << name << end << " expected: " << said;
}

// The name of the struct and the size that it must have, as the plugin has them.
struct Refusal {
  const char* name;
  std::size_t struct_size;
};

// What a plugin of XLA says otherwise than by the names and sizes of the header.
Refusal Expected(int slot, const char* name, std::size_t struct_size) {
  switch (slot) {
    case 21:
      return {"PJRT_Client_DefaultAssignment", struct_size};
    case 96:
      return {name, 112};  // It does without what came after 0.72.
    case 114:
      return {"PJRT_TopologyDescription_Attributes", struct_size};
    default:
      return {name, struct_size};
  }
}

// Slots that do not look at the size: they return nothing, need none, or refuse everything on this platform. The last
// one aborts the process.
bool LooksAtItsSize(int slot) { return slot != 0 && slot != 1 && slot != 3 && slot != 57 && slot != 82 && slot != 93; }

TEST(PjrtAbi, EverySlotOfAPluginHasTheArgumentsOfTheTable) {
  ASSERT_NE(Plugin(), nullptr);
  ASSERT_EQ(Plugin()->struct_size, sizeof(PurlinPjrtApi));
  ASSERT_EQ(Plugin()->version.struct_size, kPurlinPjrtApiVersionSize + std::size_t{0});
  ASSERT_EQ(Plugin()->version.major_version, 0);
  ASSERT_EQ(Plugin()->version.minor_version, 115);
  int compared = 0;
  const auto compare = [&compared](int slot, const char* name, std::size_t offset, std::size_t struct_size) {
    if (!LooksAtItsSize(slot)) return;
    const Refusal expected = Expected(slot, name, struct_size);
    RefusesTooShort(Plugin(), offset, expected.name, expected.struct_size);
    ++compared;
  };
#define STRUCT(theirs, ours, size, struct_size)
#define FIELD(theirs, ours, their_field, our_field, offset)
#define VALUE(theirs, value)
#define EXTENSION(type, theirs, ours, their_slot, our_slot, offset, function, arguments)
#define SLOT(index, theirs, ours, offset, arguments) compare(index, #theirs, offset, k##arguments##Size);
#include "tests/cpp/pjrt_abi.inc"
  EXPECT_EQ(compared, 132);
}

TEST(PjrtAbi, EverySlotOfAnExtensionHasTheArgumentsOfTheTable) {
  ASSERT_NE(Plugin(), nullptr);
  int compared = 0;
  const auto compare = [&compared](int type, std::size_t size, const char* name, std::size_t offset,
                                   std::size_t struct_size) {
    const PurlinPjrtExtensionBase* const extension = Extension(type);
    ASSERT_NE(extension, nullptr) << name;
    ASSERT_EQ(extension->struct_size, size) << name;
    RefusesTooShort(extension, offset, name, struct_size);
    ++compared;
  };
#undef SLOT
#undef EXTENSION
#define SLOT(index, theirs, ours, offset, arguments)
#define EXTENSION(type, theirs, ours, their_slot, our_slot, offset, function, arguments) \
  compare(kPurlinPjrtExtensionType_##type, sizeof(ours), #function, offset, k##arguments##Size);
#include "tests/cpp/pjrt_abi.inc"
  EXPECT_EQ(compared, 14);
}

// A caller that knows more than the plugin: its structs are longer.
TEST(PjrtAbi, APluginTakesLongerArguments) {
  ASSERT_NE(Plugin(), nullptr);
  struct Longer {
    PurlinPjrtPluginAttributesArgs args;
    std::uint64_t newer;
  } longer{};
  longer.args.struct_size = sizeof(longer);
  EXPECT_EQ(Message(Plugin()->plugin_attributes(&longer.args)), "no error");
  EXPECT_GT(longer.args.num_attributes, 0U);
}

}  // namespace
