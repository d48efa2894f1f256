// .npy files, safetensors files and traces where files cannot be: wrong places, links, pipes, full disks, damage.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/npy.h"
#include "purlin/safetensors.h"
#include "purlin/trace.h"
#include "tests/cpp/buffer_fixture.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

namespace fs = std::filesystem;
constexpr auto kNoAccess = static_cast<FileAccess>(9);

class FileMisuse : public BufferFixture {
 protected:
  FileMisuse() { fs::create_directories(folder_); }
  ~FileMisuse() override { fs::remove_all(folder_); }
  std::string At(const std::string& name) const { return folder_ + "/" + name; }
  static void Put(const std::string& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }
  static std::string Get(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
    return names;
  }
  Status Npy(const std::string& path) const { return ReadNpy(path, space_).status(); }
  static Status Tensors(const std::string& path) { return SafetensorsFile::Open(path).status(); }

  std::string folder_ = testing::TempDir() + "purlin_file_misuse_" + std::to_string(getpid());
};

// Places --------------------------------------------------------------------------------------------------------------

TEST_F(FileMisuse, AFileThatIsNotThere) {
  EXPECT_TRUE(Fails(Npy(At("none.npy")), StatusCode::kNotFound, {"none.npy"}));
  EXPECT_TRUE(Fails(Tensors(At("none.safetensors")), StatusCode::kNotFound, {"none.safetensors"}));
  EXPECT_FALSE(Npy("").ok());
  EXPECT_FALSE(Tensors("").ok());
}

TEST_F(FileMisuse, AFolderIsNoFile) {
  EXPECT_TRUE(Fails(Npy(folder_), StatusCode::kFailedPrecondition, {folder_}));
  EXPECT_TRUE(Fails(Tensors(folder_), StatusCode::kFailedPrecondition, {folder_}));
  EXPECT_FALSE(WriteNpy(folder_, Six()).ok());
  EXPECT_TRUE(fs::is_directory(folder_));
}

TEST_F(FileMisuse, APathWithANulOrWithoutAnEnd) {
  const std::string_view nul("a\0b.npy", 7);
  EXPECT_FALSE(ReadNpy(nul, space_).ok());
  EXPECT_FALSE(WriteNpy(nul, Six()).ok());
  EXPECT_FALSE(SafetensorsFile::Open(nul).ok());
  const std::string endless(100000, 'x');
  EXPECT_FALSE(Npy(endless).ok());
  EXPECT_FALSE(WriteNpy(endless, Six()).ok());
}

TEST_F(FileMisuse, APipeDoesNotBlock) {
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(Fails(Npy(At("pipe")), StatusCode::kFailedPrecondition, {"pipe"}));
  EXPECT_TRUE(Fails(Tensors(At("pipe")), StatusCode::kFailedPrecondition, {"pipe"}));
  EXPECT_FALSE(StartTrace(At("pipe")).ok());
}

TEST_F(FileMisuse, ADeviceIsNoFile) {
  EXPECT_TRUE(Fails(Npy("/dev/zero"), StatusCode::kFailedPrecondition, {"/dev/zero"}));
  EXPECT_TRUE(Fails(Tensors("/dev/zero"), StatusCode::kFailedPrecondition, {"/dev/zero"}));
  EXPECT_TRUE(Fails(Npy("/dev/null"), StatusCode::kFailedPrecondition, {"/dev/null"}));
  EXPECT_FALSE(WriteNpy("/dev/full", Six()).ok());
  EXPECT_FALSE(StartTrace("/dev/full").ok());
}

TEST_F(FileMisuse, AFolderThatIsNotThereIsNotMade) {
  EXPECT_TRUE(Fails(WriteNpy(At("none/x.npy"), Six()), StatusCode::kNotFound, {"none/x.npy"}));
  EXPECT_TRUE(Fails(WriteSafetensors(At("none/x"), {}), StatusCode::kNotFound, {"none/x"}));
  EXPECT_TRUE(Names().empty());
}

TEST_F(FileMisuse, ALinkInACircle) {
  ASSERT_EQ(symlink("b", At("a").c_str()), 0);
  ASSERT_EQ(symlink("a", At("b").c_str()), 0);
  EXPECT_FALSE(Npy(At("a")).ok());
  EXPECT_FALSE(Tensors(At("a")).ok());
}

TEST_F(FileMisuse, AccessesThatAreNone) {
  ReadNpyOptions options;
  options.access = kNoAccess;
  ASSERT_TRUE(Ok(WriteNpy(At("six.npy"), Six())));
  EXPECT_TRUE(Fails(ReadNpy(At("six.npy"), space_, options), StatusCode::kInvalidArgument, {"9"}));
  EXPECT_TRUE(Fails(SafetensorsFile::Open(At("six.npy"), kNoAccess), StatusCode::kInvalidArgument, {"9"}));
}

// What is written -----------------------------------------------------------------------------------------------------

TEST_F(FileMisuse, ABufferThatIsGoneOrFailedWritesNothing) {
  const Buffer gone = Six();
  gone.Delete();
  EXPECT_TRUE(Fails(WriteNpy(At("x.npy"), gone), StatusCode::kInvalidArgument, {"deleted"}));
  const Buffer failed = Buffer::CreateError(DataLossError("rotten"), Shape(DType::kU8, {6}), space_).value();
  EXPECT_TRUE(Fails(WriteNpy(At("x.npy"), failed), StatusCode::kDataLoss, {"rotten"}));
  EXPECT_TRUE(Fails(WriteNpy(At("x.npy"), Buffer::CreateToken(space_).value()), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(WriteSafetensors(At("x"), {{{"gone", gone}}}), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Names().empty());
}

TEST_F(FileMisuse, AFailureLeavesWhatWasThere) {
  Put(At("x.npy"), "precious");
  const Buffer failed = Buffer::CreateError(DataLossError("rotten"), Shape(DType::kU8, {6}), space_).value();
  EXPECT_FALSE(WriteNpy(At("x.npy"), failed).ok());
  EXPECT_FALSE(WriteSafetensors(At("x.npy"), {{{"__metadata__", Six()}}}).ok());
  EXPECT_EQ(Get(At("x.npy")), "precious");
  EXPECT_EQ(Names().size(), 1U);
}

TEST_F(FileMisuse, NamesThatSafetensorsCannotHold) {
  const Buffer six = Six();
  EXPECT_TRUE(Fails(WriteSafetensors(At("x"), {{{"a", six}, {"a", six}}}), StatusCode::kInvalidArgument, {"a"}));
  EXPECT_TRUE(Fails(WriteSafetensors(At("x"), {{{"__metadata__", six}}}), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(WriteSafetensors(At("x"), {{{"\xFF", six}}}), StatusCode::kInvalidArgument));
  const std::pair<std::string_view, std::string_view> twice[] = {{"k", "1"}, {"k", "2"}};
  EXPECT_TRUE(Fails(WriteSafetensors(At("x"), {{{"a", six}}}, twice), StatusCode::kInvalidArgument, {"k"}));
  const std::pair<std::string_view, std::string_view> odd[] = {{"k", "\xC3"}};
  EXPECT_TRUE(Fails(WriteSafetensors(At("x"), {{{"a", six}}}, odd), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Names().empty());
}

TEST_F(FileMisuse, NothingAtAllIsAFileOfNothing) {
  ASSERT_TRUE(Ok(WriteSafetensors(At("nothing"), {})));
  const auto file = SafetensorsFile::Open(At("nothing"));
  ASSERT_TRUE(Ok(file));
  EXPECT_EQ(file->entries().size(), 0U);
  EXPECT_TRUE(Fails(file->Read("", space_), StatusCode::kNotFound));
  EXPECT_TRUE(Fails(file->Read("\xFF", space_), StatusCode::kInvalidArgument, {"UTF-8"}));
}

TEST_F(FileMisuse, TheFileThatIsReadIsReplacedByItself) {
  ASSERT_TRUE(Ok(WriteNpy(At("six.npy"), Six())));
  ReadNpyOptions options;
  options.access = FileAccess::kMapped;
  const auto mapped = ReadNpy(At("six.npy"), space_, options);
  ASSERT_TRUE(Ok(mapped));
  EXPECT_TRUE(Ok(WriteNpy(At("six.npy"), mapped->buffer)));
  EXPECT_EQ(Read(mapped->buffer), (Bytes{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Read(ReadNpy(At("six.npy"), space_)->buffer), (Bytes{1, 2, 3, 4, 5, 6}));
}

TEST_F(FileMisuse, AFileThatIsRemovedWhileItIsMapped) {
  ASSERT_TRUE(Ok(WriteSafetensors(At("six"), {{{"six", Six()}}})));
  const auto file = SafetensorsFile::Open(At("six"), FileAccess::kMapped);
  ASSERT_TRUE(Ok(file));
  fs::remove(At("six"));
  EXPECT_EQ(Read(file->Read("six", space_)->buffer), (Bytes{1, 2, 3, 4, 5, 6}));
}

TEST_F(FileMisuse, EightThreadsWriteOneFile) {
  const Buffer six = Six();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 20; ++j) EXPECT_TRUE(Ok(WriteNpy(At("raced.npy"), six)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Names(), std::vector<std::string>{"raced.npy"});
  EXPECT_EQ(Read(ReadNpy(At("raced.npy"), space_)->buffer), (Bytes{1, 2, 3, 4, 5, 6}));
}

TEST_F(FileMisuse, ASecretStaysASecret) {
  Put(At("secret.npy"), "old");
  ASSERT_EQ(chmod(At("secret.npy").c_str(), 0600), 0);
  ASSERT_TRUE(Ok(WriteNpy(At("secret.npy"), Six())));
  struct stat found{};
  ASSERT_EQ(stat(At("secret.npy").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600U);
}

TEST_F(FileMisuse, ALinkToNothingIsFollowed) {
  ASSERT_EQ(symlink("target.npy", At("link.npy").c_str()), 0);
  EXPECT_TRUE(Fails(Npy(At("link.npy")), StatusCode::kNotFound, {"link.npy"}));
  ASSERT_TRUE(Ok(WriteNpy(At("link.npy"), Six())));
  EXPECT_TRUE(fs::is_symlink(At("link.npy")));
  EXPECT_EQ(Read(ReadNpy(At("target.npy"), space_)->buffer), (Bytes{1, 2, 3, 4, 5, 6}));
}

TEST_F(FileMisuse, APipeThatIsWrittenToStaysAPipe) {
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(Fails(WriteNpy(At("pipe"), Six()), StatusCode::kFailedPrecondition, {"pipe"}));
  EXPECT_TRUE(fs::is_fifo(At("pipe")));
  EXPECT_EQ(Names().size(), 1U);
}

// Damage --------------------------------------------------------------------------------------------------------------

TEST_F(FileMisuse, NoBytesAndTheWrongOnes) {
  for (const std::string_view text : {"", "\x93", "\x93NUMPY", "not a file of ours at all", "\x93NUMPY\x01"}) {
    Put(At("damaged"), text);
    EXPECT_TRUE(Fails(Npy(At("damaged")), StatusCode::kDataLoss, {"damaged"})) << text;
    EXPECT_TRUE(Fails(Tensors(At("damaged")), StatusCode::kDataLoss, {"damaged"})) << text;
  }
}

TEST_F(FileMisuse, AVersionAndAHeaderThatAreNone) {
  Put(At("v9.npy"), std::string("\x93NUMPY\x09\x00\x10\x00", 10) + std::string(100, ' '));
  EXPECT_FALSE(Npy(At("v9.npy")).ok());
  Put(At("long.npy"), std::string("\x93NUMPY\x02\x00\xFF\xFF\xFF\xFF", 12));
  EXPECT_TRUE(Fails(Npy(At("long.npy")), StatusCode::kDataLoss, {"long.npy"}));
  Put(At("long"), std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10));
  EXPECT_TRUE(Fails(Tensors(At("long")), StatusCode::kDataLoss, {"long"}));
  Put(At("deep"), std::string("\x88\x13\0\0\0\0\0\0", 8) + std::string(5000, '['));
  EXPECT_TRUE(Fails(Tensors(At("deep")), StatusCode::kDataLoss, {"deep"}));
}

TEST_F(FileMisuse, EveryTruncationIsRefused) {
  ASSERT_TRUE(Ok(WriteNpy(At("whole.npy"), Six())));
  ASSERT_TRUE(Ok(WriteSafetensors(At("whole"), {{{"six", Six()}}})));
  const std::string npy = Get(At("whole.npy")), tensors = Get(At("whole"));
  for (std::size_t size = 0; size < npy.size(); ++size) {
    Put(At("cut"), std::string_view(npy).substr(0, size));
    EXPECT_TRUE(Fails(Npy(At("cut")), StatusCode::kDataLoss)) << size;
  }
  for (std::size_t size = 0; size < tensors.size(); ++size) {
    Put(At("cut"), std::string_view(tensors).substr(0, size));
    EXPECT_TRUE(Fails(Tensors(At("cut")), StatusCode::kDataLoss)) << size;
  }
}

TEST_F(FileMisuse, BytesBehindTheArrayAreRefused) {
  ASSERT_TRUE(Ok(WriteNpy(At("x.npy"), Six())));
  Put(At("more.npy"), Get(At("x.npy")) + "!");
  EXPECT_TRUE(Fails(Npy(At("more.npy")), StatusCode::kDataLoss, {"more.npy"}));
}

TEST_F(FileMisuse, AnotherTypeThanIsAskedFor) {
  ASSERT_TRUE(Ok(WriteNpy(At("x.npy"), Six())));
  ReadNpyOptions options;
  options.dtype = DType::kF32;
  EXPECT_TRUE(Fails(ReadNpy(At("x.npy"), space_, options), StatusCode::kInvalidArgument, {"f32"}));
  options.dtype = static_cast<DType>(99);
  EXPECT_TRUE(Fails(ReadNpy(At("x.npy"), space_, options), StatusCode::kInvalidArgument, {"99"}));
}

}  // namespace
}  // namespace purlin
