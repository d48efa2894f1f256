// The platform "cuda" where there is no GPU: it says what is missing. tests/cuda has it on the fake driver.

#include <gtest/gtest.h>

#include <string_view>

#include "purlin/client.h"

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
}

}  // namespace
}  // namespace purlin
