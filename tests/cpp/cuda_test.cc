// The platform "cuda" and its compiler where there is neither GPU nor nvrtc: each says what is missing. tests/cuda has
// them on the fakes.

#include "purlin/cuda.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "purlin/client.h"
#include "purlin/device.h"
#include "purlin/event.h"
#include "purlin/status.h"
#include "purlin/status_or.h"

namespace purlin {
namespace {

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

TEST(CudaTest, WhatIsMissingIsSaid) {
  ClientOptions options;
  options.platform = "cuda";
  const StatusOr<Client> client = Client::Create(options);
  if (client.ok()) GTEST_SKIP() << "this machine has a driver and a GPU";
  EXPECT_EQ(client.status().code(), StatusCode::kUnavailable) << client.status();
  const std::string_view message = client.status().message();
  EXPECT_TRUE(Contains(message, "CUDA") || Contains(message, "libcuda")) << client.status();
  EXPECT_EQ(CudaAvailability().ToString(), client.status().ToString());
}

TEST(CudaStreamTest, OtherPlatformsAndEmptyHandlesAreRefused) {
  StatusOr<Client> client = Client::Create(ClientOptions());
  ASSERT_TRUE(client.ok()) << client.status();
  Device device = client->devices()[0];
  const auto refused = [&device](StatusCode code, std::string_view part) {
    for (const Status& status : {EventOfCudaStream(device, 0).Wait(), EventOfCudaEvent(device, 8).Wait(),
                                 HaveCudaStreamWait(device, 0, Event()), CudaComputeStream(device).status()}) {
      EXPECT_EQ(status.code(), code) << status;
      EXPECT_TRUE(Contains(status.message(), part)) << status;
    }
  };
  refused(StatusCode::kUnimplemented, "the platform host has no streams");
  const Device moved = std::move(device);
  refused(StatusCode::kFailedPrecondition, "Device");
}

TEST(KernelSourceTest, WhatIsNoSourceIsRefused) {
  const auto refused = [](const KernelSource& source, std::string_view part) {
    const Status status = CompileKernelSource(source).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(Contains(status.message(), part)) << status;
  };
  const KernelSource good = {"a.cu", "// nothing", "7.5", {}, {}, {}};
  KernelSource source = good;
  source.name = "";
  refused(source, "has no name");
  source = good;
  source.target = "new";
  refused(source, "a.cu: ");
  source = good;
  source.text = "\xff";
  refused(source, "a.cu: ");
  source = good;
  source.options = {"-w", "-arch=sm_90"};
  refused(source, "a.cu: the option '-arch=sm_90' is refused");
  source = good;
  source.headers = {{"h", "x"}, {"", "y"}};
  refused(source, "a.cu: a header has no name");
  source = good;
  source.name_expressions = {" "};
  refused(source, "a.cu: a name expression is empty");
}

TEST(KernelSourceTest, WithoutACompilerEveryNameThatWasLookedForIsSaid) {
  const StatusOr<Ptx> ptx = CompileKernelSource({"a.cu", "extern \"C\" __global__ void a() {}", "7.5", {}, {}, {}});
  if (ptx.ok()) GTEST_SKIP() << "this machine has nvrtc";
  EXPECT_EQ(ptx.status().code(), StatusCode::kUnimplemented) << ptx.status();
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"}) {
    EXPECT_TRUE(Contains(ptx.status().message(), name)) << ptx.status();
  }
}

TEST(KernelSourceTest, AKernelIsLoadedByTheNameThatItsExpressionHas) {
  const Ptx ptx = {".version 8.2", "", {{"twice<float>", "_Z5twiceIfEvPT_"}}};
  EXPECT_EQ(ptx.LoaderSpec("twice<float>", 1).kernel_name, "_Z5twiceIfEvPT_");
  const KernelLoaderSpec plain = ptx.LoaderSpec("plain", 3);
  EXPECT_EQ(plain.kernel_name, "plain");
  EXPECT_EQ(plain.code, ptx.text);
  EXPECT_EQ(plain.arity, 3U);
  EXPECT_EQ(plain.payload, KernelPayload::kPtx);
}

}  // namespace
}  // namespace purlin
