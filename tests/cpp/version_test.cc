#include "purlin/version.h"

#include <gtest/gtest.h>

#include <string>

namespace {

TEST(VersionTest, LibraryHasTheVersionOfTheHeaders) {
  EXPECT_STREQ(purlin::VersionString(), PURLIN_VERSION_STRING);
  EXPECT_EQ(purlin::AbiVersion(), purlin::kAbiVersion);
}

TEST(VersionTest, NumbersAndTextAgree) {
  EXPECT_EQ(std::to_string(PURLIN_VERSION_MAJOR) + "." + std::to_string(PURLIN_VERSION_MINOR) + "." +
                std::to_string(PURLIN_VERSION_PATCH),
            PURLIN_VERSION_STRING);
}

}  // namespace
