#include "purlin/npy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "buffer_fixture.h"

namespace purlin {
namespace {

ReadNpyOptions With(DType dtype, FileAccess access = FileAccess::kRead) {
  ReadNpyOptions options;
  options.dtype = dtype;
  options.access = access;
  return options;
}

class NpyTest : public BufferFixture {
 protected:
  NpyTest() { ::close(::mkstemp(path_.data())); }
  ~NpyTest() override { std::remove(path_.c_str()); }

  void Put(std::string_view content) const { std::ofstream(path_, std::ios::binary) << content; }
  std::string Content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  Status Failure(const ReadNpyOptions& options = {}) const { return ReadNpy(path_, space_, options).status(); }

  std::string path_ = testing::TempDir() + "purlin-npy-XXXXXX";
};

TEST_F(NpyTest, AnArrayIsReadAsItWasWrittenByEitherAccess) {
  for (const bool is_durable : {false, true}) {
    WriteFileOptions options;
    options.is_durable = is_durable;
    ASSERT_TRUE(WriteNpy(path_, Six(), options).ok());
    for (const FileAccess access : {FileAccess::kRead, FileAccess::kMapped}) {
      const StatusOr<FromHostResult> read = ReadNpy(path_, space_, With(DType::kInvalid, access));
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->buffer.shape(), Shape(DType::kU8, {2, 3}));
      EXPECT_EQ(Read(read->buffer), Bytes({1, 2, 3, 4, 5, 6}));
      EXPECT_EQ(read->aliasing, access == FileAccess::kMapped ? Aliasing::kAliased : Aliasing::kCopied);
    }
  }
}

TEST_F(NpyTest, TheFileIsNumPys) {
  ASSERT_TRUE(WriteNpy(path_, Six()).ok());
  const std::string content = Content();
  ASSERT_EQ(content.size(), 134U);
  EXPECT_EQ(content.substr(0, 69),
            std::string("\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }", 69));
  EXPECT_EQ(content.substr(127), "\n\1\2\3\4\5\6");
}

TEST_F(NpyTest, ABufferOutlivesItsFile) {
  ASSERT_TRUE(WriteNpy(path_, Six()).ok());
  const StatusOr<FromHostResult> read = ReadNpy(path_, space_, With(DType::kInvalid, FileAccess::kMapped));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_TRUE(WriteNpy(path_, Of({9}, {1})).ok()) << "a rename, so the mapping stays";
  std::remove(path_.c_str());
  EXPECT_EQ(Read(read->buffer), Bytes({1, 2, 3, 4, 5, 6}));
}

TEST_F(NpyTest, WhatNumPyDoesNotKnowMustBeNamed) {
  const std::array<std::uint16_t, 2> ones = {0x3f80, 0x3f80};
  const Buffer buffer = Buffer::FromHost(ones.data(), sizeof ones, DType::kBF16, {2}, space_).value();
  ASSERT_TRUE(WriteNpy(path_, buffer).ok());
  const Status unnamed = Failure();
  EXPECT_EQ(unnamed.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Contains(unnamed.message(), ", byte 20: ")) << unnamed;
  EXPECT_EQ(Failure(With(DType::kF32)).code(), StatusCode::kInvalidArgument);
  const StatusOr<FromHostResult> named = ReadNpy(path_, space_, With(DType::kBF16));
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->buffer.dtype(), DType::kBF16);
  EXPECT_EQ(Read(named->buffer), Bytes({0x80, 0x3f, 0x80, 0x3f}));
}

TEST_F(NpyTest, ADamagedFileIsRefusedWithNameAndByte) {
  const std::string head = std::string("\x93NUMPY\x01\x00", 8) + '\x46' + '\0';
  Put(head + "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" + std::string(11, ' ') + "short");
  const Status truncated = Failure();
  EXPECT_EQ(truncated.code(), StatusCode::kDataLoss);
  EXPECT_EQ(truncated.message(), path_ + ", byte 85: the file ends after 5 of the 24 bytes of f32[2,3]");
  Put("not a file of NumPy's");
  EXPECT_EQ(Failure().code(), StatusCode::kDataLoss);
  Put(head + "{'descr': '|O', 'fortran_order': False, 'shape': (), }" + std::string(16, ' ') + "pickle");
  EXPECT_EQ(Failure().code(), StatusCode::kUnimplemented);
  Put("");
  EXPECT_EQ(Failure(With(DType::kInvalid, FileAccess::kMapped)).message(),
            path_ + ", byte 0: no .npy file: it goes on with \"\" instead of \"\\x93NUMPY\"");
}

TEST_F(NpyTest, WhatIsNoFileIsRefused) {
  EXPECT_EQ(ReadNpy(path_ + ".none", space_).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadNpy("/", space_).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReadNpy("/dev/zero", space_).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReadNpy("", space_).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadNpy(std::string_view("a\0b", 3), space_).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteNpy("/dev/null", Six()).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(WriteNpy(path_ + ".none/a", Six()).code(), StatusCode::kNotFound);
}

TEST_F(NpyTest, OptionsThatAreNoneAreRefused) {
  ASSERT_TRUE(WriteNpy(path_, Six()).ok());
  EXPECT_EQ(Failure(With(static_cast<DType>(200))).message(), "200 is no DType");
  EXPECT_EQ(Failure(With(DType::kInvalid, static_cast<FileAccess>(2))).message(),
            "the FileAccess is 2; it must be one of kRead (0), kMapped (1)");
}

TEST_F(NpyTest, WhatCannotBeWrittenLeavesTheFileAsItWas) {
  Put("old");
  const Shape shape(DType::kF32, {2});
  EXPECT_EQ(WriteNpy(path_, Buffer::CreateError(AbortedError("no such luck"), shape, space_).value()).code(),
            StatusCode::kAborted);
  const Buffer gone = Six();
  gone.Delete();
  EXPECT_EQ(WriteNpy(path_, gone).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteNpy(path_, Buffer::CreateToken(space_, Event()).value()).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Content(), "old");
}

TEST_F(NpyTest, TheSimulatorsArraysMakeTheJourney) {
  const Client client = MakeClient("sim");
  const MemorySpace space = client.devices()[0].default_memory_space();
  const Bytes bytes = {1, 2, 3};
  const Buffer buffer = Buffer::FromHost(bytes.data(), bytes.size(), DType::kU8, {3}, space).value();
  ASSERT_TRUE(WriteNpy(path_, buffer).ok());
  EXPECT_EQ(Content().substr(128), "\1\2\3");
  const StatusOr<FromHostResult> read = ReadNpy(path_, space, With(DType::kU8, FileAccess::kMapped));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Read(read->buffer), bytes);
}

}  // namespace
}  // namespace purlin
