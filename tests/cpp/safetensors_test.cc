#include "purlin/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "buffer_fixture.h"

namespace purlin {
namespace {

using Texts = std::vector<std::pair<std::string_view, std::string_view>>;

class SafetensorsTest : public BufferFixture {
 protected:
  SafetensorsTest() { ::close(::mkstemp(path_.data())); }
  ~SafetensorsTest() override { std::remove(path_.c_str()); }

  /// A file of that header, whose length is less than 256.
  void Put(std::string_view header, std::string_view data) const {
    std::ofstream(path_, std::ios::binary)
        << static_cast<char>(static_cast<unsigned char>(header.size())) << std::string(7, '\0') << header << data;
  }
  Status Failure() const { return SafetensorsFile::Open(path_).status(); }
  static Dims Of(Span<const std::int64_t> dims) { return {dims.begin(), dims.end()}; }
  using BufferFixture::Of;

  std::string path_ = testing::TempDir() + "purlin-safetensors-XXXXXX";
};

TEST_F(SafetensorsTest, ArraysAreReadAsTheyWereWritten) {
  const double pi = 3.14;
  const Buffer scalar = Buffer::FromHost(&pi, sizeof pi, DType::kF64, {}, space_).value();
  const Texts texts = {{"format", "pt"}, {"who", "me"}};
  ASSERT_TRUE(WriteSafetensors(path_, {{"six", Six()}, {"\u00e9 \"pi\"", scalar}, {"", Of({}, {0, 4})}}, texts).ok());
  for (const FileAccess access : {FileAccess::kRead, FileAccess::kMapped}) {
    const StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path_, access);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->metadata(), texts);
    const std::vector<SafetensorsEntry> entries = file->entries();
    ASSERT_EQ(entries.size(), 3U);
    EXPECT_EQ(entries[0].name, "\u00e9 \"pi\"") << "the widest elements come first";
    EXPECT_EQ(entries[0].dtype, DType::kF64);
    EXPECT_EQ(entries[0].dtype_name, "F64");
    EXPECT_EQ(entries[0].offset_bytes % 64, 0U);
    EXPECT_EQ(entries[0].size_bytes, 8U);
    EXPECT_EQ(Of(entries[2].dims), Dims({2, 3}));
    const StatusOr<FromHostResult> six = file->Read("six", space_);
    ASSERT_TRUE(six.ok()) << six.status();
    EXPECT_EQ(Read(six->buffer), Bytes({1, 2, 3, 4, 5, 6}));
    const StatusOr<FromHostResult> read = file->Read("\u00e9 \"pi\"", space_);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->buffer.shape(), Shape(DType::kF64, {}));
    EXPECT_EQ(read->aliasing, access == FileAccess::kMapped ? Aliasing::kAliased : Aliasing::kCopied);
    EXPECT_EQ(file->Read("", space_)->buffer.shape(), Shape(DType::kU8, {0, 4}));
  }
}

TEST_F(SafetensorsTest, CopiesReferToTheSameFileAndBuffersOutliveThemAll) {
  ASSERT_TRUE(WriteSafetensors(path_, {{"six", Six()}}).ok());
  SafetensorsFile first = SafetensorsFile::Open(path_, FileAccess::kMapped).value();
  SafetensorsFile second = first;
  first = second;
  SafetensorsFile third = std::move(second);
  second = third;
  EXPECT_EQ(second.entries()[0].name.data(), third.entries()[0].name.data());
  Buffer six = third.Read("six", space_)->buffer;
  first = second = third = SafetensorsFile::Open(path_).value();
  std::remove(path_.c_str());
  EXPECT_EQ(Read(six), Bytes({1, 2, 3, 4, 5, 6}));
}

TEST_F(SafetensorsTest, ANameThatIsNotThereIsNotFound) {
  Put("{}", "");
  const SafetensorsFile file = SafetensorsFile::Open(path_).value();
  EXPECT_TRUE(file.entries().empty());
  EXPECT_TRUE(file.metadata().empty());
  EXPECT_EQ(file.Read("six", space_).status().message(), path_ + " has no array \"six\"");
  EXPECT_EQ(file.Read("six", space_).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(file.Read("\xff", space_).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(SafetensorsTest, WhatNoBufferHoldsIsListedAndCannotBeRead) {
  Put(R"({"six":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}})", "abc");
  const SafetensorsFile file = SafetensorsFile::Open(path_).value();
  EXPECT_EQ(file.entries()[0].dtype, DType::kInvalid);
  EXPECT_EQ(file.entries()[0].dtype_name, "F6_E2M3");
  const Status status = file.Read("six", space_).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_TRUE(Contains(status.message(), ", byte 15: ")) << status;
}

TEST_F(SafetensorsTest, ADamagedFileIsRefusedWithNameAndByte) {
  Put(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,3]}})", "abc");
  EXPECT_EQ(Failure().code(), StatusCode::kDataLoss);
  EXPECT_EQ(Failure().message(), path_ + ", byte 13: \"a\": u8[2] is 2 bytes, but 3 are said to be its own");
  Put(R"({"a":1})", "");
  EXPECT_EQ(Failure().message(), path_ + ", byte 13: \"1\" instead of an object");
  Put("{}", "abc");
  EXPECT_EQ(Failure().message(), path_ + ", byte 10: 3 bytes follow that are no array's");
  std::ofstream(path_, std::ios::binary) << "short";
  EXPECT_EQ(Failure().code(), StatusCode::kDataLoss);
  EXPECT_EQ(SafetensorsFile::Open(path_ + ".none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(SafetensorsFile::Open(path_, static_cast<FileAccess>(9)).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(SafetensorsTest, WhatTheFormatCannotHoldIsNotWritten) {
  Put("old", "");
  const Buffer six = Six();
  const Buffer gone = Six();
  gone.Delete();
  const Buffer failed = Buffer::CreateError(AbortedError("no such luck"), Shape(DType::kF32, {2}), space_).value();
  EXPECT_EQ(WriteSafetensors(path_, {{"a", six}, {"a", six}}).message(), "a second array \"a\"");
  EXPECT_EQ(WriteSafetensors(path_, {{"__metadata__", six}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteSafetensors(path_, {{"\xff", six}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteSafetensors(path_, {{"a", six}}, {{"\xff", ""}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteSafetensors(path_, {{"a", six}}, {{"k", ""}, {"k", ""}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteSafetensors(path_, {{"a", six}, {"b", gone}}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(WriteSafetensors(path_, {{"a", six}, {"b", failed}}).message(), "array \"b\": no such luck");
  EXPECT_EQ(Failure().message(), path_ + ", byte 8: \"old\" instead of the brace that begins the header");
}

}  // namespace
}  // namespace purlin
