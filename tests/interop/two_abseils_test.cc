// The abseil of Debian and that of TensorFlow in one program: errors go through either and through both.
#include <gtest/gtest.h>

#include <string>

#include "purlin/status.h"

purlin::Status ThroughDebian(const purlin::Status& status, std::string* said);
purlin::Status ThroughWheel(const purlin::Status& status, std::string* said);

namespace purlin {
namespace {

TEST(TwoAbseilsTest, EachConvertsWithItsOwn) {
  Status error = DataLossError("lost");
  error.SetPayload("url", "bytes");
  std::string said[2];
  EXPECT_EQ(ThroughDebian(ThroughWheel(error, &said[0]), &said[1]), error);
  EXPECT_EQ(said[0], "DATA_LOSS: lost [url='bytes']");
  EXPECT_EQ(said[1], said[0]);
  EXPECT_EQ(ThroughWheel(ThroughDebian(error, &said[0]), &said[1]), error);
}

}  // namespace
}  // namespace purlin
