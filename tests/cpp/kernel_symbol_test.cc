// Names of kernels that are in this process. They are the process's, so each test has names of its own.
#include "purlin/kernel_symbol.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "purlin/loaded_kernel.h"
#include "tests/cpp/buffer_fixture.h"

namespace purlin {
namespace {

void* Three(const KernelFrame* frame) {
  *static_cast<std::uint8_t*>(frame->args[0].data) = 3;
  return nullptr;
}

void* Four(const KernelFrame* frame) {
  *static_cast<std::uint8_t*>(frame->args[0].data) = 4;
  return nullptr;
}

class KernelSymbolTest : public BufferFixture {
 protected:
  static void Refused(const Status& status, StatusCode code, std::string_view message) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(status.message(), message);
  }
};

TEST_F(KernelSymbolTest, EachPlatformLaunchesTheOneThatIsRegisteredForIt) {
  ASSERT_TRUE(RegisterKernelFunction("number", "host", &Three).ok());
  ASSERT_TRUE(RegisterKernelFunction("number", "sim", &Four).ok());
  for (const auto& [platform, number] : {std::pair("host", 3), std::pair("sim", 4)}) {
    const Client client = MakeClient(platform);
    const StatusOr<KernelLoaderSpec> spec = FindKernelSymbol("number", client.platform_name(), 1);
    ASSERT_TRUE(spec.ok()) << spec.status();
    const StatusOr<LoadedKernel> kernel = LoadedKernel::Load(client.devices()[0], *spec);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_EQ(kernel->name(), "number");
    const StatusOr<KernelLaunch> launch = kernel->Bind(LaunchDimensions(), {{OperandAccess::kWrite, 1}});
    ASSERT_TRUE(launch.ok()) << launch.status();
    const RawBuffer memory = RawBuffer::Allocate(client.devices()[0].default_memory_space(), 1).value();
    std::uint8_t byte = 0;
    ASSERT_TRUE(memory.CopyToHost(&byte, 0, 1, {launch->Start({memory}).value()}).Wait().ok());
    EXPECT_EQ(byte, number) << platform;
  }
}

TEST_F(KernelSymbolTest, ANameIsGivenOnce) {
  ASSERT_TRUE(RegisterKernelFunction("once", "host", &Three).ok());
  Refused(RegisterKernelFunction("once", "host", &Four), StatusCode::kAlreadyExists,
          "the kernel symbol 'once' is already registered for the platform 'host'");
  EXPECT_EQ(FindKernelSymbol("once", "host", 1)->address, reinterpret_cast<void*>(&Three));
}

TEST_F(KernelSymbolTest, WhatIsNotThereOrNoNameIsTold) {
  ASSERT_TRUE(RegisterKernelFunction("there", "host", &Three).ok());
  Refused(FindKernelSymbol("there", "sim", 1).status(), StatusCode::kNotFound,
          "no kernel symbol 'there' is registered for the platform 'sim'; it is registered for host");
  Refused(FindKernelSymbol("nowhere", "sim", 1).status(), StatusCode::kNotFound,
          "no kernel symbol 'nowhere' is registered for the platform 'sim'; it is registered for no platform");
  Refused(RegisterKernelSymbol("null", "host", nullptr), StatusCode::kInvalidArgument,
          "the address of the kernel symbol 'null' is null");
  Refused(RegisterKernelFunction("", "host", &Three), StatusCode::kInvalidArgument,
          "a kernel symbol is registered with an empty persistent_name");
  Refused(RegisterKernelFunction("three", "", &Three), StatusCode::kInvalidArgument,
          "a kernel symbol is registered with an empty platform");
  Refused(RegisterKernelFunction("a\xff", "host", &Three), StatusCode::kInvalidArgument,
          "the name of a kernel symbol: \"a\xEF\xBF\xBD\" is not UTF-8");
  Refused(FindKernelSymbol("there", "\xff", 1).status(), StatusCode::kInvalidArgument,
          "the platform of a kernel symbol: \"\xEF\xBF\xBD\" is not UTF-8");
}

}  // namespace
}  // namespace purlin
