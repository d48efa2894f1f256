// What the tests of buffers share: a client of two devices, arrays of bytes, and a record of callbacks.
#ifndef PURLIN_TESTS_CPP_BUFFER_FIXTURE_H_
#define PURLIN_TESTS_CPP_BUFFER_FIXTURE_H_

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/buffer.h"
#include "purlin/client.h"
#include "tests/cpp/raw_bytes.h"

namespace purlin {

using Dims = std::vector<std::int64_t>;

inline bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// The place of the line above the one where this is called, as messages name it.
inline std::string LineAbove(SourceLocation here = SourceLocation::Current()) {
  return std::string(here.file()) + ":" + std::to_string(here.line() - 1);
}

/// Collects the statuses that an on_done is called with.
class DoneLog {
 public:
  /// Move-only, like a closure with a unique_ptr.
  auto OnDone() const {
    return [statuses = statuses_, only = std::make_unique<int>(0)](Status status) {
      const std::lock_guard<std::mutex> lock(statuses->mutex);
      statuses->all.push_back(std::move(status));
      statuses->changed.notify_all();
    };
  }
  std::vector<Status> all() const {
    const std::lock_guard<std::mutex> lock(statuses_->mutex);
    return statuses_->all;
  }
  /// Blocks until there is a status.
  void Wait() const {
    std::unique_lock<std::mutex> lock(statuses_->mutex);
    statuses_->changed.wait(lock, [this] { return !statuses_->all.empty(); });
  }
  std::size_t count() const { return all().size(); }
  /// Whether no callback is left that could add one.
  bool IsOver() const { return statuses_.use_count() == 1; }

 private:
  struct Statuses {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Status> all;
  };
  std::shared_ptr<Statuses> statuses_ = std::make_shared<Statuses>();
};

/// Keeps the threads of the client's runner until it is destroyed. They do not wait for events, so no spare thread
/// replaces them.
class Occupied {
 public:
  explicit Occupied(const Client& client) {
    const std::size_t threads = client.runner().NumThreads();
    std::vector<std::promise<void>> begun(threads);
    std::vector<std::future<void>> all;
    for (std::promise<void>& one : begun) all.push_back(one.get_future());
    for (std::promise<void>& one : begun) {
      const Status status = client.runner().Schedule([released = released_, &one] {
        one.set_value();
        released.wait();
      });
      EXPECT_TRUE(status.ok()) << status;
    }
    for (std::future<void>& one : all) one.wait();
  }
  ~Occupied() { release_.set_value(); }

 private:
  std::promise<void> release_;
  std::shared_future<void> released_ = release_.get_future().share();
};

class BufferFixture : public testing::Test {
 protected:
  static Client MakeClient(std::string_view platform = "host") {
    ClientOptions options;
    options.device_count = 2;
    options.worker_count = 2;
    options.platform = platform;
    return Client::Create(options).value();
  }

  Buffer Of(const Bytes& bytes, const Dims& dims) const {
    return Buffer::FromHost(bytes.data(), bytes.size(), DType::kU8, dims, space_).value();
  }
  /// [[1, 2, 3], [4, 5, 6]]
  Buffer Six() const { return Of({1, 2, 3, 4, 5, 6}, {2, 3}); }

  /// The elements in row-major order.
  static Bytes Read(const Buffer& buffer) {
    Bytes bytes(buffer.shape().host_size_bytes().value());
    const Status status = buffer.CopyToHost(bytes.data(), bytes.size()).Wait();
    EXPECT_TRUE(status.ok()) << status;
    return bytes;
  }
  /// The bytes on the device.
  static Bytes ReadRaw(const Buffer& buffer) {
    Bytes bytes(buffer.on_device_size_bytes());
    const Status status = buffer.CopyRawToHost(bytes.data(), 0, bytes.size()).Wait();
    EXPECT_TRUE(status.ok()) << status;
    return bytes;
  }
  static void* Address(const Buffer& buffer) { return buffer.RawAlias().value().host_pointer(); }
  std::uint64_t InUse() const { return space_.Stats().bytes_in_use; }

  Client client_ = MakeClient();
  MemorySpace space_ = client_.devices()[0].default_memory_space();
};

}  // namespace purlin

#endif  // PURLIN_TESTS_CPP_BUFFER_FIXTURE_H_
