// What purlin/file_options.h promises of files, by whichever call they are read and written. Every test ends the
// process if it takes two minutes: what hangs is not to wait for ctest.
#include "purlin/file_options.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "buffer_fixture.h"
#include "purlin/npy.h"
#include "purlin/safetensors.h"
#include "purlin/trace.h"
#include "tests/cpp/sanitizers.h"

namespace purlin {
namespace {

namespace fs = std::filesystem;
using Call = std::pair<const char*, std::function<Status(const std::string&)>>;

class FileOptionsTest : public BufferFixture {
 protected:
  FileOptionsTest() {
    ::alarm(120);
    std::string pattern = testing::TempDir() + "/purlin_files_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    fs::permissions(folder_, fs::perms::all);
  }
  ~FileOptionsTest() override {
    std::error_code ignored;
    fs::permissions(folder_, fs::perms::all, ignored);
    fs::remove_all(folder_, ignored);
    ::alarm(0);
  }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Holding(const std::string& name, std::string_view content, mode_t mode = 0644) const {
    std::ofstream(Path(name), std::ios::binary) << content;
    EXPECT_EQ(::chmod(Path(name).c_str(), mode), 0);
    return Path(name);
  }
  static std::string Content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  static struct stat Of(const std::string& path) {
    struct stat found{};
    EXPECT_EQ(::lstat(path.c_str(), &found), 0) << path;
    return found;
  }
  static mode_t Mode(const std::string& path) { return Of(path).st_mode & 07777; }
  std::vector<std::string> Names(const std::string& folder) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
    return names;
  }

  /// All that read.
  std::vector<Call> Readers() const {
    ReadNpyOptions mapped;
    mapped.access = FileAccess::kMapped;
    return {
        {"ReadNpy", [this](const std::string& path) { return ReadNpy(path, space_).status(); }},
        {"ReadNpy, mapped", [=](const std::string& path) { return ReadNpy(path, space_, mapped).status(); }},
        {"SafetensorsFile::Open", [](const std::string& path) { return SafetensorsFile::Open(path).status(); }},
        {"SafetensorsFile::Open, mapped",
         [](const std::string& path) { return SafetensorsFile::Open(path, FileAccess::kMapped).status(); }},
    };
  }
  /// All that write.
  std::vector<Call> Writers() {
    WriteFileOptions durable;
    durable.is_durable = true;
    return {
        {"WriteNpy", [this](const std::string& path) { return WriteNpy(path, Six()); }},
        {"WriteNpy, durable", [=](const std::string& path) { return WriteNpy(path, Six(), durable); }},
        {"WriteSafetensors", [this](const std::string& path) { return WriteSafetensors(path, {{"six", Six()}}); }},
        {"StartTrace",
         [](const std::string& path) {
           const Status started = StartTrace(path);
           return started.ok() ? StopTrace() : started;
         }},
    };
  }

  std::string folder_;
};

/// This thread has the user `nobody` for the file system, if it was root.
class AsNobody {
 public:
  AsNobody() : group_(::setfsgid(65534)), user_(::setfsuid(65534)) {}
  ~AsNobody() {
    ::setfsuid(static_cast<uid_t>(user_));
    ::setfsgid(static_cast<gid_t>(group_));
  }

 private:
  int group_;
  int user_;
};

TEST_F(FileOptionsTest, WhatIsNoRegularFileIsRefusedByItsKind) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0666), 0);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", Path("socket").c_str());
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  fs::create_symlink("pipe", Path("link"));
  const std::vector<std::pair<std::string, std::string>> kinds = {{folder_, "a directory"},
                                                                  {"/", "a directory"},
                                                                  {Path("pipe"), "a pipe"},
                                                                  {Path("link"), "a pipe"},
                                                                  {Path("socket"), "a socket"},
                                                                  {"/dev/zero", "a character device"},
                                                                  {"/dev/full", "a character device"},
                                                                  {"/dev/null", "a character device"}};
  std::vector<Call> calls = Readers();
  for (Call& call : Writers()) calls.push_back(std::move(call));
  for (const auto& [path, kind] : kinds) {
    for (const auto& [name, call] : calls) {
      const Status status = call(path);
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << name << ": " << status;
      EXPECT_TRUE(Contains(status.message(), path + ": it is no regular file: it is " + kind))
          << name << ": " << status;
    }
  }
  ::close(listener);
}

// The look and the opening are two steps, and another process may act between them.
TEST_F(FileOptionsTest, APipeThatTakesTheFilesPlaceHangsNobody) {
  const std::string path = Path("file");
  ASSERT_TRUE(WriteNpy(path, Six()).ok());
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0666), 0);
  std::atomic<bool> is_over = false;
  std::thread exchanger([&] {
    while (!is_over) ::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, Path("pipe").c_str(), RENAME_EXCHANGE);
  });
  const std::vector<Call> readers = Readers();
  int files = 0;
  int pipes = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto& [name, read] = readers[static_cast<std::size_t>(i) % readers.size()];
    const Status status = read(path);
    // The file is no safetensors file.
    if (IsFailedPrecondition(status)) {
      ++pipes;
    } else {
      ++files;
      EXPECT_TRUE(status.ok() || IsDataLoss(status)) << name << ": " << status;
    }
  }
  for (int i = 0; i < 500; ++i) {
    const Status status = StartTrace(path);
    if (status.ok()) static_cast<void>(StopTrace());
  }
  is_over = true;
  exchanger.join();
  EXPECT_TRUE(files > 0 && pipes > 0) << files << " files, " << pipes << " pipes";
}

TEST_F(FileOptionsTest, AFileThatIsOverwrittenKeepsModeAndOwner) {
  for (const auto& [name, write] : Writers()) {
    for (const mode_t mode : {0600U, 0640U, 0604U}) {
      const std::string path = Holding("old", "old", mode);
      const bool is_root = ::geteuid() == 0;
      if (is_root) {
        ASSERT_EQ(::chown(path.c_str(), 1234, 5678), 0);
      }
      ASSERT_TRUE(write(path).ok()) << name;
      EXPECT_EQ(Mode(path), mode) << name;
      EXPECT_NE(Content(path), "old") << name;
      EXPECT_TRUE(!is_root || (Of(path).st_uid == 1234 && Of(path).st_gid == 5678)) << name;
      ASSERT_EQ(Names(folder_).size(), 1U) << name;
      fs::remove(path);
    }
  }
}

TEST_F(FileOptionsTest, ANewFileHasTheModeThatTheUsersMaskLeaves) {
  for (const mode_t mask : {0U, 022U, 077U, 0777U}) {
    const mode_t before = ::umask(mask);
    for (const auto& [name, write] : Writers()) {
      const Status written = write(Path("new"));
      EXPECT_TRUE(written.ok()) << name << ": " << written;
      EXPECT_EQ(Mode(Path("new")), 0666 & ~mask) << name;
      fs::remove(Path("new"));
    }
    ::umask(before);
  }
}

TEST_F(FileOptionsTest, AFileThatMayNotBeWrittenIsNotReplaced) {
  Holding("read only", "old", 0444);
  for (const auto& [name, write] : Writers()) {
    const AsNobody as_nobody;
    EXPECT_EQ(write(Path("read only")).code(), StatusCode::kPermissionDenied) << name;
    EXPECT_EQ(Content(Path("read only")), "old");
  }
  EXPECT_EQ(Names(folder_), std::vector<std::string>{"read only"});
}

TEST_F(FileOptionsTest, ALinkStaysALinkAlsoWhereNothingIsYet) {
  fs::create_directory(Path("deep"));
  for (const auto& [name, write] : Writers()) {
    fs::create_symlink("deep/file", Path("link"));
    for (int i = 0; i < 2; ++i) {
      const Status written = write(Path("link"));
      EXPECT_TRUE(written.ok()) << name << ": " << written;
      EXPECT_EQ(
          fs::read_symlink(fs::symlink_status(Path("link")).type() == fs::file_type::symlink ? Path("link") : "."),
          "deep/file")
          << name;
      EXPECT_TRUE(fs::is_regular_file(Path("deep/file"))) << name;
    }
    fs::remove(Path("link"));
    fs::remove(Path("deep/file"));
  }
  EXPECT_EQ(Names(folder_).size(), 1U);
}

TEST_F(FileOptionsTest, ADurableWriteWhoseFolderCannotBeOpenedSaysThatTheFileIsThere) {
  fs::permissions(folder_, fs::perms(0333));
  Status status;
  {
    const AsNobody as_nobody;
    status = Writers()[1].second(Path("new"));
  }
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(Contains(status.message(), Path("new") + " is written whole and in its place")) << status;
  EXPECT_TRUE(ReadNpy(Path("new"), space_).ok());
  fs::permissions(folder_, fs::perms::all);
  EXPECT_EQ(Names(folder_).size(), 1U);
}

// In a namespace of the thread's own, where it may mount.
TEST_F(FileOptionsTest, AFullOrReadOnlyFileSystemLeavesTheOldFileWholeAndNothingBeside) {
  std::string skipped;
  std::thread([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", folder_.c_str(), "tmpfs", 0, "size=64k") != 0) {
      skipped = std::string("skipped: no file system of a few pages can be mounted: ") + std::strerror(errno);
      return;
    }
    const Bytes many(1 << 20, 1);
    const Buffer large = Buffer::FromHost(many.data(), many.size(), DType::kU8, {1 << 20}, space_).value();
    const std::string path = Holding("old", "old");
    for (const bool is_durable : {false, true}) {
      WriteFileOptions options;
      options.is_durable = is_durable;
      EXPECT_EQ(WriteNpy(path, large, options).code(), StatusCode::kResourceExhausted);
      EXPECT_EQ(WriteSafetensors(path, {{"large", large}}, {}, options).code(), StatusCode::kResourceExhausted);
    }
    EXPECT_EQ(Content(path), "old");
    EXPECT_EQ(Names(folder_), std::vector<std::string>{"old"});
    ASSERT_EQ(::mount("none", folder_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr), 0);
    for (const auto& [name, write] : Writers()) {
      EXPECT_EQ(write(path).code(), StatusCode::kFailedPrecondition) << name << " over a file";
      EXPECT_EQ(write(Path("new")).code(), StatusCode::kFailedPrecondition) << name << " of a new one";
    }
    // A file that is mounted by itself, as containers have them.
    ASSERT_EQ(::mount("none", folder_.c_str(), "tmpfs", MS_REMOUNT, nullptr), 0);
    Holding("mounted", "theirs");
    ASSERT_EQ(::mount(Path("mounted").c_str(), path.c_str(), nullptr, MS_BIND, nullptr), 0);
    for (const auto& [name, write] : Writers()) {
      const Status status = write(path);
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << name << ": " << status;
      EXPECT_EQ(Content(path), "theirs");
    }
    EXPECT_EQ(Names(folder_).size(), 2U);
  }).join();
  if (!skipped.empty()) GTEST_SKIP() << skipped;
}

TEST_F(FileOptionsTest, AHugeFileOfAnotherKindIsRefusedByItsFirstBytes) {
  constexpr off_t kTebibyte = off_t{1} << 40;
  for (const char* const content :
       {"", "no array, but a long text", "\x93NUMPZ", "PK\3\4", "{\"json\":", "\x89HDF\r\n"}) {
    const std::string path = Holding("huge", content);
    ASSERT_EQ(::truncate(path.c_str(), kTebibyte), 0);
    for (const auto& [name, read] : Readers()) {
      const Status status = read(path);
      EXPECT_EQ(status.code(), StatusCode::kDataLoss) << name << ": " << status;
    }
  }
}

TEST_F(FileOptionsTest, AHugeFileWhoseHeaderIsNoneIsRefusedByTheHeader) {
  constexpr off_t kTebibyte = off_t{1} << 40;
  // A header of 2 MiB, and one of 50 MB of zeros.
  const std::string npy = Holding("npy", std::string("\x93NUMPY\x02\x00\x00\x00\x20\x00{", 13));
  const std::string tensors = Holding("safetensors", std::string("\x80\xf0\xfa\x02\0\0\0\0{", 9));
  for (const std::string& path : {npy, tensors}) {
    ASSERT_EQ(::truncate(path.c_str(), kTebibyte), 0);
    for (const auto& [name, read] : Readers()) EXPECT_EQ(read(path).code(), StatusCode::kDataLoss) << name;
  }
  EXPECT_EQ(ReadNpy(npy, space_).status().message(),
            npy + ", byte 8: the header is said to be 2097152 bytes long; the most is 1048576");
}

TEST_F(FileOptionsTest, AHugeFileThatIsSoundNeedsMemoryUnlessItIsMapped) {
  const std::string text = "{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,), }";
  const std::string header = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text;
  const std::string path = Holding("huge", header);
  ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(header.size()) + (off_t{1} << 40)), 0);
  std::string policy = Content("/proc/sys/vm/overcommit_memory");
  if (policy != "1\n") {
    const Status status = ReadNpy(path, space_).status();
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
    EXPECT_TRUE(Contains(status.message(), path)) << status;
  }
  ReadNpyOptions mapped;
  mapped.access = FileAccess::kMapped;
  mapped.dtype = DType::kU16;
  EXPECT_EQ(ReadNpy(path, space_, mapped).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(FileOptionsTest, FilesThatTheKernelWritesAreRefusedAndHangNobody) {
  for (const char* const path :
       {"/proc/self/mem", "/proc/kmsg", "/proc/version", "/proc/self/maps", "/proc/self/environ",
        "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/self/exe"}) {
    for (const auto& [name, read] : Readers()) {
      const Status status = read(path);
      EXPECT_FALSE(status.ok()) << name << " of " << path;
      EXPECT_TRUE(Contains(status.message(), path)) << name << ": " << status;
    }
  }
}

TEST_F(FileOptionsTest, WhatWasReadStaysWhenTheFileIsTruncated) {
  const std::string path = Path("file");
  const Bytes many(1 << 16, 7);
  const Buffer large = Buffer::FromHost(many.data(), many.size(), DType::kU8, {1 << 16}, space_).value();
  ASSERT_TRUE(WriteSafetensors(path, {{"large", large}}).ok());
  const SafetensorsFile file = SafetensorsFile::Open(path).value();
  ASSERT_EQ(::truncate(path.c_str(), 0), 0);
  EXPECT_EQ(Read(file.Read("large", space_)->buffer), many);
  ASSERT_TRUE(WriteNpy(path, large).ok());
  const FromHostResult read = ReadNpy(path, space_).value();
  EXPECT_EQ(read.aliasing, Aliasing::kCopied);
  ASSERT_EQ(::truncate(path.c_str(), 0), 0);
  EXPECT_EQ(Read(read.buffer), many);
}

// Neither a crash nor an array that was never written.
TEST_F(FileOptionsTest, AFileThatGrowsAndShrinksWhileItIsReadIsReadWholeOrRefused) {
  const std::string path = Path("file");
  const Bytes many(1 << 20, 7);
  const Buffer large = Buffer::FromHost(many.data(), many.size(), DType::kU8, {1 << 20}, space_).value();
  ASSERT_TRUE(WriteNpy(path, large).ok());
  const off_t size = static_cast<off_t>(fs::file_size(path));
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  std::atomic<bool> is_over = false;
  std::thread changer([&] {
    while (!is_over) {
      for (const off_t length : {size + 4096, size, size / 2}) EXPECT_EQ(::ftruncate(file, length), 0);
      EXPECT_EQ(::pwrite(file, many.data(), many.size(), size - static_cast<off_t>(many.size())),
                static_cast<ssize_t>(many.size()));
    }
  });
  for (int i = 0; i < 300; ++i) {
    const StatusOr<FromHostResult> read = ReadNpy(path, space_);
    if (read.ok()) {
      EXPECT_EQ(Read(read->buffer).size(), many.size());
    } else {
      EXPECT_TRUE(IsAborted(read.status()) || IsDataLoss(read.status())) << read.status();
    }
  }
  is_over = true;
  changer.join();
  ::close(file);
}

TEST_F(FileOptionsTest, StrangePathsAreErrors) {
  const std::string long_path(5000, 'x');
  const std::string deep = [] {
    std::string path;
    for (int i = 0; i < 2400; ++i) path += "a/";
    return path;
  }();
  Holding("file", "old");
  const std::vector<std::string> paths = {"",
                                          std::string("a\0b", 3),
                                          std::string("\0", 1),
                                          long_path,
                                          Path(std::string(256, 'n')),
                                          deep,
                                          ".",
                                          "..",
                                          "./",
                                          "/",
                                          "//",
                                          "/.",
                                          Path("file/"),
                                          Path("file/."),
                                          Path("file/.."),
                                          Path("file/file"),
                                          Path("new/"),
                                          Path("new/."),
                                          Path("missing/new"),
                                          "/proc/self/fd/77777",
                                          "/proc/self/new",
                                          "/sys/new",
                                          "/dev/stdin/x"};
  std::vector<Call> calls = Readers();
  for (Call& call : Writers()) calls.push_back(std::move(call));
  for (const std::string& path : paths) {
    for (const auto& [name, call] : calls) {
      const Status status = call(path);
      EXPECT_FALSE(status.ok()) << name << " of '" << path << "'";
      EXPECT_NE(status.code(), StatusCode::kInternal) << status;
      EXPECT_GT(status.message().size(), path.size()) << "it names the path: " << status;
    }
  }
  EXPECT_EQ(Content(Path("file")), "old");
  EXPECT_EQ(Names(folder_).size(), 1U);
}

TEST_F(FileOptionsTest, ARelativePathIsOfTheWorkingFolderAndItsEndIsAnError) {
  const fs::path before = fs::current_path();
  fs::create_directory(Path("here"));
  fs::create_directory(Path("gone"));
  fs::current_path(Path("here"));
  ASSERT_TRUE(WriteNpy("a", Six()).ok());
  EXPECT_TRUE(ReadNpy("./a", space_).ok());
  ASSERT_TRUE(StartTrace("trace").ok());
  fs::current_path(Path("gone"));
  ASSERT_TRUE(StopTrace().ok());
  EXPECT_TRUE(fs::exists(Path("here/trace")));
  EXPECT_EQ(Names(Path("here")).size(), 2U);
  fs::remove(Path("gone"));
  for (const auto& [name, write] : Writers()) EXPECT_EQ(write("a").code(), StatusCode::kNotFound) << name;
  for (const auto& [name, read] : Readers()) EXPECT_EQ(read("a").code(), StatusCode::kNotFound) << name;
  fs::current_path(before);
}

TEST_F(FileOptionsTest, APipeInTheTracesPlaceIsNotReplaced) {
  ASSERT_TRUE(StartTrace(Path("trace")).ok());
  ASSERT_EQ(::mkfifo(Path("trace").c_str(), 0666), 0);
  const Status status = StopTrace();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Contains(status.message(), "it is a pipe")) << status;
  EXPECT_TRUE(fs::is_fifo(Path("trace")));
}

// A descriptor is refused at each place in turn.
TEST_F(FileOptionsTest, WithoutDescriptorsNothingIsWrittenAndNothingLeft) {
  const std::string path = Holding("old", "old");
  const std::string array = Path("array");
  ASSERT_TRUE(WriteNpy(array, Six()).ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(0);
  ::close(next);
  std::vector<Call> calls = Writers();
  for (Call& call : Readers()) calls.push_back(std::move(call));
  for (const auto& [name, call] : calls) {
    for (int spare = 0; spare < 4; ++spare) {
      rlimit few = before;
      few.rlim_cur = static_cast<rlim_t>(next + spare);
      ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
      const Status status = call(std::string_view(name).find("Read") == 0 ? array : path);
      ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
      EXPECT_TRUE(status.ok() || IsResourceExhausted(status) || IsDataLoss(status))
          << name << ", " << spare << ": " << status;
      EXPECT_TRUE(spare > 0 || IsResourceExhausted(status)) << name << ": " << status;
      EXPECT_TRUE(status.ok() || Content(path) == "old" || Contains(status.message(), "in its place"))
          << name << ": " << status;
      EXPECT_EQ(Names(folder_).size(), 2U) << name << ", " << spare;
      if (Content(path) != "old") Holding("old", "old");
    }
  }
}

TEST_F(FileOptionsTest, AFileThatMayNotGrowSoLongLeavesTheOldOne) {
  const Bytes many(1 << 20, 1);
  const Buffer large = Buffer::FromHost(many.data(), many.size(), DType::kU8, {1 << 20}, space_).value();
  const std::string path = Holding("old", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit short_files = before;
  short_files.rlim_cur = 4096;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &short_files), 0);
  const Status status = WriteNpy(path, large);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(Content(path), "old");
  EXPECT_EQ(Names(folder_).size(), 1U);
}

TEST_F(FileOptionsTest, SignalsInterruptNeitherReadingNorWriting) {
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) {};  // Without SA_RESTART.
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
  const itimerval often = {{0, 200}, {0, 200}};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
  const Bytes many(4 << 20, 1);
  const Buffer large = Buffer::FromHost(many.data(), many.size(), DType::kU8, {4 << 20}, space_).value();
  for (int i = 0; i < 20; ++i) {
    const Status written = WriteNpy(Path("file"), large);
    EXPECT_TRUE(written.ok()) << written;
    const Status read = ReadNpy(Path("file"), space_).status();
    EXPECT_TRUE(read.ok()) << read;
  }
  const itimerval never = {};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
}

TEST_F(FileOptionsTest, AHostileHeaderIsRefusedWithoutManyTimesItsMemory) {
  std::string header = "{";
  while (header.size() < 90'000'000) header += "\"\":{},";
  header.back() = '}';
  const auto size = static_cast<std::uint64_t>(header.size());
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
  const std::string path = Holding("hostile", bytes + header);
  bytes = header = {};
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  for (const FileAccess access : {FileAccess::kRead, FileAccess::kMapped}) {
    EXPECT_EQ(SafetensorsFile::Open(path, access).status().code(), StatusCode::kDataLoss);
  }
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  // Sanitizers keep what is freed, and notes on all of it.
  if (!kSanitizer) {
    EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 300'000) << "KiB";
  }
}

TEST_F(FileOptionsTest, DeepAndStrangeHeadersAreRefusedOrRead) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const auto with = [&](const std::string& header, std::string_view data) {
    const auto size = static_cast<std::uint64_t>(header.size());
    std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
    return SafetensorsFile::Open(Holding("file", bytes + header + std::string(data)));
  };
  const std::string plain = R"("dtype":"U8","shape":[1],"data_offsets":[0,1])";
  EXPECT_TRUE(IsDataLoss(with(R"({"a":)" + deep + "}", "").status()));
  EXPECT_TRUE(IsDataLoss(with(R"({"__metadata__":)" + deep + "}", "").status()));
  EXPECT_TRUE(IsDataLoss(with(R"({"a":{"dtype":"U8","shape":)" + deep + "}}", "").status()));
  // What is not known is passed over, however deep; it costs no stack.
  const StatusOr<SafetensorsFile> passed = with(R"({"a":{"x":)" + deep + "," + plain + "}}", "x");
  EXPECT_TRUE(passed.ok() || IsDataLoss(passed.status())) << passed.status();
  EXPECT_TRUE(IsDataLoss(with(R"({"a":{)" + plain + R"(},"a":{)" + plain + "}}", "xx").status()));
  EXPECT_TRUE(IsDataLoss(with(R"({"\ud800":{)" + plain + "}}", "x").status())) << "half of a pair";
  EXPECT_TRUE(IsDataLoss(with("{\"\xff\":{" + plain + "}}", "x").status())) << "no UTF-8";
  EXPECT_TRUE(IsDataLoss(with(std::string("{\"\0\":{", 6) + plain + "}}", "x").status())) << "a control character";
  const StatusOr<SafetensorsFile> nul = with(R"({"\u0000":{)" + plain + "}}", "x");
  ASSERT_TRUE(nul.ok()) << nul.status();
  EXPECT_EQ(nul->entries()[0].name, std::string_view("\0", 1));
  EXPECT_TRUE(nul->Read(std::string_view("\0", 1), space_).ok());
  for (const char* const number : {"1e400", "-0", "1.0", "18446744073709551616", "00", "+1", "0x1", "true", "null"}) {
    const std::string shape = R"({"a":{"dtype":"U8","shape":[)" + std::string(number) + R"(],"data_offsets":[0,1]}})";
    EXPECT_TRUE(IsDataLoss(with(shape, "x").status())) << number;
  }
}

TEST_F(FileOptionsTest, AnotherHardLinkKeepsTheOldContent) {
  for (const auto& [name, write] : Writers()) {
    const std::string path = Holding("one", "old");
    fs::create_hard_link(path, Path("other"));
    EXPECT_TRUE(write(path).ok()) << name;
    EXPECT_EQ(Content(Path("other")), "old") << name;
    fs::remove(Path("other"));
  }
}

}  // namespace
}  // namespace purlin
