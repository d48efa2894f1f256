// Handlers of custom calls, given to a load from C++. These know the layout of XLA's FFI by heart, so that no header of
// XLA's is needed; handlers that are compiled with it are called by tests/interop/xla_ffi_load_test.cc.
#include "purlin/xla_ffi_host.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla_cpu_fixture.h"

// Parts of XLA's structs, version 0.3.
struct XLA_FFI_Error;
struct XLA_FFI_Buffer {
  std::size_t struct_size;
  void* extensions;
  int dtype;
  float* data;
  std::int64_t rank;
  std::int64_t* dims;
};
struct XLA_FFI_Operands {
  std::size_t struct_size;
  void* extensions;
  std::int64_t count;
  int* kinds;
  XLA_FFI_Buffer** buffers;
};
struct XLA_FFI_Metadata {
  std::size_t struct_size;
  std::size_t version_size;
  void* version_extensions;
  int major;
  int minor;
};
struct XLA_FFI_MetadataExtension {
  std::size_t struct_size;
  int kind;
  void* next;
  XLA_FFI_Metadata* metadata;
};
struct XLA_FFI_ContextGet {
  std::size_t struct_size;
  void* extensions;
  void* context;
  const std::int64_t* type_id;
  void* data;
};
struct XLA_FFI_ErrorCreate {
  std::size_t struct_size;
  void* extensions;
  const char* message;
  int code;
};
struct XLA_FFI_Api {
  std::size_t struct_size;
  void* extensions;
  std::size_t version[3];
  void* internal;
  XLA_FFI_Error* (*error_create)(XLA_FFI_ErrorCreate*);
  void* not_used_here[5];
  XLA_FFI_Error* (*context_get)(XLA_FFI_ContextGet*);
};
struct XLA_FFI_CallFrame {
  std::size_t struct_size;
  XLA_FFI_MetadataExtension* extension;
  const XLA_FFI_Api* api;
  void* context;
  int stage;
  XLA_FFI_Operands arguments;
  XLA_FFI_Operands results;
};
static_assert(offsetof(XLA_FFI_Api, context_get) == 96 && offsetof(XLA_FFI_CallFrame, results) == 80, "XLA's layout");

namespace purlin {
namespace {

constexpr int kInvalidArgumentCode = 3;
constexpr std::int64_t kFactorType = std::int64_t{1} << 40;

/// Answers the question for the version; true if it was asked.
bool Describe(const XLA_FFI_CallFrame* frame, int minor = 3) {
  if (frame->extension == nullptr) return false;
  frame->extension->metadata->major = 0;
  frame->extension->metadata->minor = minor;
  frame->extension->metadata->version_size = 24;
  return true;
}

XLA_FFI_Error* Fail(const XLA_FFI_CallFrame* frame, const char* message) {
  XLA_FFI_ErrorCreate create = {sizeof(XLA_FFI_ErrorCreate), nullptr, message, kInvalidArgumentCode};
  return frame->api->error_create(&create);
}

/// y = factor * x, where the factor is a value of the run if x begins with a negative number, else 2.
XLA_FFI_Error* Scale(XLA_FFI_CallFrame* frame) {
  if (Describe(frame)) return nullptr;
  XLA_FFI_ContextGet get = {sizeof(XLA_FFI_ContextGet), nullptr, frame->context, &kFactorType, nullptr};
  float factor = 2;
  if (frame->arguments.buffers[0]->data[0] < 0) {
    if (XLA_FFI_Error* error = frame->api->context_get(&get)) return error;
    factor = *static_cast<const float*>(get.data);
  }
  for (int i = 0; i < 4; ++i) frame->results.buffers[0]->data[i] = factor * frame->arguments.buffers[0]->data[i];
  return nullptr;
}
XLA_FFI_Error* Refuse(XLA_FFI_CallFrame* frame) { return Describe(frame) ? nullptr : Fail(frame, "it refuses"); }
XLA_FFI_Error* OfTheFuture(XLA_FFI_CallFrame* frame) {
  Describe(frame, 4);
  return nullptr;
}
XLA_FFI_Error* Silent(XLA_FFI_CallFrame*) { return nullptr; }

std::atomic<int> instantiated{0};
XLA_FFI_Error* Instantiate(XLA_FFI_CallFrame* frame) {
  if (!Describe(frame)) ++instantiated;
  return nullptr;
}

#if defined(__x86_64__)

class XlaFfiHostTest : public XlaCpuFixture {
 protected:
  static StatusOr<Executable> LoadCall(std::string_view target, const XlaFfiHandlers& handlers) {
    LoadXlaCpuOptions options = Trusted();
    options.handlers = &handlers;
    return LoadXlaCpu(CopyingExecutable(CustomCallThunk(target, "{}")), options);
  }
  Buffer Floats(const std::vector<float>& numbers) const {
    return Buffer::FromHost(numbers.data(), numbers.size() * sizeof(float), DType::kF32, {4}, space_).value();
  }
  static std::vector<float> Numbers(const Buffer& buffer) {
    std::vector<float> numbers(4);
    EXPECT_TRUE(buffer.CopyToHost(numbers.data(), sizeof(float) * 4).Wait().ok());
    return numbers;
  }
};

TEST_F(XlaFfiHostTest, AHandlerIsCalledByARun) {
  XlaFfiHandlers handlers;
  ASSERT_TRUE(handlers.Register("scale", Scale).ok());
  const StatusOr<Executable> executable = LoadCall("scale", handlers);
  ASSERT_TRUE(executable.ok()) << executable.status();
  const LoadedExecutable loaded = LoadedExecutable::Load(*executable, {client_.devices()[0]}).value();
  const Execution execution = loaded.Execute({Floats({1, 2, 3, 4})}).value();
  EXPECT_EQ(Numbers(execution.outputs[0]), (std::vector<float>{2, 4, 6, 8}));
}

TEST_F(XlaFfiHostTest, AHandlerAsksForAValueOfTheRun) {
  XlaFfiHandlers handlers;
  ASSERT_TRUE(handlers.Register("scale", Scale).ok());
  const LoadedExecutable loaded =
      LoadedExecutable::Load(LoadCall("scale", handlers).value(), {client_.devices()[0]}).value();
  const Buffer argument = Floats({-1, 2, 3, 4});
  const Status without = loaded.Execute({argument}).value().done.Wait();
  EXPECT_TRUE(IsNotFound(without)) << without;

  ExecuteContext context;
  auto factor = std::make_shared<float>(10.0F);
  const std::weak_ptr<float> observed = factor;
  ASSERT_TRUE(context.Insert(kFactorType, std::move(factor)).ok());
  ExecuteOptions options;
  options.context = &context;
  EXPECT_EQ(Numbers(loaded.Execute({argument}, options).value().outputs[0]), (std::vector<float>{-10, 20, 30, 40}));
  const Span<const Buffer> shard = {&argument, 1};
  EXPECT_EQ(Numbers(loaded.ExecuteSharded({&shard, 1}, options).value()[0].outputs[0]),
            (std::vector<float>{-10, 20, 30, 40}));

  ASSERT_TRUE(loaded.Quiesce().ok());
  ASSERT_TRUE(context.Insert(kFactorType, std::make_shared<float>(3.0F)).ok());
  EXPECT_TRUE(observed.expired()) << "it was replaced, and no run needs it";
  EXPECT_EQ(Numbers(loaded.Execute({argument}, options).value().outputs[0]), (std::vector<float>{-3, 6, 9, 12}));
}

TEST_F(XlaFfiHostTest, AValueIsRefusedByItsType) {
  ExecuteContext context;
  const Status status = context.Insert(0, std::make_shared<float>(1.0F));
  EXPECT_EQ(status, InvalidArgumentError("user data of type 0: ids of types are positive"));
  EXPECT_EQ(context.Insert(7, nullptr), InvalidArgumentError("user data of type 7: the value is null"));
}

TEST_F(XlaFfiHostTest, TheOwnerOfAHandlerLivesAsLongAsItsExecutables) {
  auto owner = std::make_shared<int>(1);
  const std::weak_ptr<int> observed = owner;
  XlaFfiHandlers handlers;
  ASSERT_TRUE(handlers.Register("scale", Scale, std::move(owner)).ok());
  StatusOr<Executable> executable = LoadCall("scale", handlers);
  ASSERT_TRUE(executable.ok()) << executable.status();
  handlers = XlaFfiHandlers();
  EXPECT_FALSE(observed.expired());
  executable = InternalError("no executable");
  EXPECT_TRUE(observed.expired());
}

TEST_F(XlaFfiHostTest, AStageIsCalledWhenTheExecutableIsLoaded) {
  XlaFfiHandlers handlers;
  XlaFfiBundle bundle;
  bundle.instantiate = Instantiate;
  bundle.execute = Scale;
  ASSERT_TRUE(handlers.Register("scale", bundle).ok());
  const int before = instantiated.load();
  EXPECT_TRUE(LoadCall("scale", handlers).ok());
  EXPECT_EQ(instantiated.load(), before + 1);

  bundle.instantiate = Refuse;
  ASSERT_TRUE(handlers.Register("refuse", bundle).ok());
  const Status refused = LoadCall("refuse", handlers).status();
  EXPECT_TRUE(IsInvalidArgument(refused) && Contains(refused.message(), "it refuses")) << refused;
}

TEST_F(XlaFfiHostTest, TheErrorOfAHandlerIsTheRunsError) {
  XlaFfiHandlers handlers;
  ASSERT_TRUE(handlers.Register("refuse", Refuse).ok());
  const LoadedExecutable loaded =
      LoadedExecutable::Load(LoadCall("refuse", handlers).value(), {client_.devices()[0]}).value();
  const Status status = loaded.Execute({Floats({1, 2, 3, 4})}).value().done.Wait();
  EXPECT_TRUE(IsInvalidArgument(status) && Contains(status.message(), "it refuses")) << status;
}

TEST_F(XlaFfiHostTest, ATargetWithoutAHandlerIsAReason) {
  const Status status = LoadCall("scale", XlaFfiHandlers()).status();
  EXPECT_TRUE(IsUnimplemented(status)) << status;
  EXPECT_TRUE(Contains(status.message(), "custom call target 'scale' is not registered")) << status;
}

#endif

TEST(XlaFfiHandlersTest, NamesAreThoseThatWereRegistered) {
  XlaFfiHandlers handlers;
  EXPECT_TRUE(handlers.names().empty());
  EXPECT_TRUE(handlers.Register("scale", Scale).ok() && handlers.Register("refuse", Refuse).ok());
  EXPECT_EQ(handlers.names(), (std::vector<std::string>{"refuse", "scale"}));
  EXPECT_TRUE(IsAlreadyExists(handlers.Register("scale", Refuse)));
}

TEST(XlaFfiHandlersTest, UnsoundHandlersAreRefused) {
  XlaFfiHandlers handlers;
  EXPECT_EQ(handlers.Register("none", nullptr),
            InvalidArgumentError("custom call target 'none': the bundle has no 'execute'"));
  EXPECT_EQ(handlers.Register("\xff", Scale),
            InvalidArgumentError("the name of a custom call target is not UTF-8: '\\xff'"));
  EXPECT_TRUE(IsUnimplemented(handlers.Register("new", OfTheFuture))) << handlers.Register("new", OfTheFuture);
  EXPECT_TRUE(IsInvalidArgument(handlers.Register("silent", Silent))) << handlers.Register("silent", Silent);
  EXPECT_TRUE(handlers.names().empty());
}

TEST(XlaFfiHandlersTest, TheTableIsThatOfTheHost) {
  ASSERT_NE(XlaFfiHostApi(), nullptr);
  EXPECT_EQ(XlaFfiHostApi()->struct_size, 192U);
}

}  // namespace
}  // namespace purlin
