#include "purlin/trace.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include "purlin/client.h"
#include "purlin/event.h"
#include "purlin/raw_buffer.h"

namespace purlin {
namespace {

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool Exists(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0;
}

int Count(std::string_view text, std::string_view part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// A folder of the test's own.
class TraceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/purlin_trace_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/trace.json";
  }
  void TearDown() override {
    std::remove(path_.c_str());
    EXPECT_EQ(rmdir(folder_.c_str()), 0) << "no other file is left in " << folder_;
  }
  std::string folder_;
  std::string path_;
};

TEST_F(TraceTest, RecordsSpansOfTheProgramAndOfPurlin) {
  ASSERT_TRUE(StartTrace(path_).ok());
  {
    const TraceSpan outer("outer \"quoted\"");
    const TraceSpan inner("inner");
    ClientOptions options;
    options.worker_count = 1;
    const Client client = Client::Create(options).value();
    const RawBuffer buffer = RawBuffer::Allocate(client.devices()[0].default_memory_space(), 8).value();
    const char bytes[8] = {};
    ASSERT_TRUE(buffer.CopyFromHost(bytes, 0, 8).Wait().ok());
    EventPromise done("work done");
    ASSERT_TRUE(client.runner().Schedule([&done] { done.SetReady(); }, "my work").ok());
    ASSERT_TRUE(done.event().Wait().ok());
    ASSERT_TRUE(client.runner().Shutdown().ok());
  }
  EXPECT_FALSE(Exists(path_)) << "nothing is written before the end";
  const Status stopped = StopTrace();
  ASSERT_TRUE(stopped.ok()) << stopped;
  const std::string text = Read(path_);
  EXPECT_NE(text.find("outer \\\"quoted\\\""), std::string::npos) << text;
  EXPECT_EQ(Count(text, "\"inner\""), 1) << text;
  EXPECT_NE(text.find("\"copy\""), std::string::npos) << text;
  EXPECT_NE(text.find("my work"), std::string::npos) << text;
}

TEST_F(TraceTest, SpansOutsideARecordingAreNotThere) {
  const TraceSpan open("opened before");
  {
    const TraceSpan before("before");
  }
  ASSERT_TRUE(StartTrace(path_).ok());
  {
    const TraceSpan during("during");
  }
  ASSERT_TRUE(StopTrace().ok());
  {
    const TraceSpan after("after");
  }
  const std::string text = Read(path_);
  EXPECT_EQ(Count(text, "\"during\""), 1) << text;
  EXPECT_EQ(Count(text, "\"before\"") + Count(text, "\"after\"") + Count(text, "\"opened before\""), 0) << text;
}

TEST_F(TraceTest, MayBeginAgain) {
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(StartTrace(path_).ok());
    {
      const TraceSpan span("again");
    }
    ASSERT_TRUE(StopTrace().ok());
    EXPECT_EQ(Count(Read(path_), "\"again\""), 1) << "each recording is its own";
  }
}

TEST_F(TraceTest, ThreadsHaveSpansOfTheirOwn) {
  ASSERT_TRUE(StartTrace(path_).ok());
  std::thread a([] { const TraceSpan span("thread a"); });
  std::thread b([] { const TraceSpan span("thread b"); });
  a.join();
  b.join();
  ASSERT_TRUE(StopTrace().ok());
  const std::string text = Read(path_);
  EXPECT_EQ(Count(text, "\"thread a\""), 1) << text;
  EXPECT_EQ(Count(text, "\"thread b\""), 1) << text;
}

TEST_F(TraceTest, ASecondRecordingIsRefused) {
  ASSERT_TRUE(StartTrace(path_).ok());
  EXPECT_TRUE(IsFailedPrecondition(StartTrace(folder_ + "/other.json")));
  EXPECT_TRUE(StopTrace().ok());
}

TEST_F(TraceTest, StoppingWhatWasNotBegunIsRefused) { EXPECT_TRUE(IsFailedPrecondition(StopTrace())); }

TEST_F(TraceTest, AnEmptyPathIsInvalid) {
  EXPECT_TRUE(IsInvalidArgument(StartTrace("")));
  EXPECT_TRUE(IsFailedPrecondition(StopTrace())) << "nothing is recorded";
}

TEST_F(TraceTest, PathsThatCannotBeWrittenAreNamed) {
  const std::string missing = folder_ + "/no such folder/trace.json";
  for (const std::string& path : {missing, folder_, std::string("/dev/null")}) {
    const Status status = StartTrace(path);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(path), std::string::npos) << status;
    EXPECT_TRUE(IsFailedPrecondition(StopTrace())) << "nothing is recorded";
  }
  EXPECT_TRUE(IsNotFound(StartTrace(missing)));
  EXPECT_TRUE(IsFailedPrecondition(StartTrace(folder_)));
}

TEST_F(TraceTest, PathsNeedNotBeUtf8) {
  const std::string path = folder_ + "/\xff.json";
  ASSERT_TRUE(StartTrace(path).ok());
  ASSERT_TRUE(StopTrace().ok());
  EXPECT_TRUE(Exists(path));
  EXPECT_EQ(std::remove(path.c_str()), 0);
}

TEST_F(TraceTest, AFailureAtTheEndLeavesWhatWasThere) {
  std::ofstream(path_) << "precious";
  const std::string moved = folder_ + "_moved";
  ASSERT_TRUE(StartTrace(path_).ok());
  ASSERT_EQ(std::rename(folder_.c_str(), moved.c_str()), 0);
  const Status status = StopTrace();
  ASSERT_EQ(std::rename(moved.c_str(), folder_.c_str()), 0);
  EXPECT_TRUE(IsNotFound(status)) << status;
  EXPECT_EQ(Read(path_), "precious");
  EXPECT_TRUE(IsFailedPrecondition(StopTrace())) << "the recording is over";
}

}  // namespace
}  // namespace purlin
