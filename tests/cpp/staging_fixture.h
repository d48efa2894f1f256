// What tests of staging share: a pool of pinned memory, raw bytes on devices, and a record of the pieces reported.
#ifndef PURLIN_TESTS_CPP_STAGING_FIXTURE_H_
#define PURLIN_TESTS_CPP_STAGING_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "buffer_fixture.h"
#include "purlin/staging.h"

namespace purlin {

inline Bytes Pattern(std::size_t size, std::uint8_t first) {
  Bytes bytes(size);
  std::iota(bytes.begin(), bytes.end(), first);
  return bytes;
}

inline Bytes BytesOf(const StagedPiece& piece) {
  const auto* data = static_cast<const std::uint8_t*>(piece.data());
  return Bytes(data, data + piece.size_bytes());
}

/// What the callback of a read was called with.
class Pieces {
  struct PiecesState {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<StatusOr<StagedPiece>> told;
    bool is_over = false;
  };

 public:
  /// Move-only, like a closure with a unique_ptr.
  class OnPiece {
   public:
    explicit OnPiece(const Pieces& pieces) : state_(pieces.state_) {}
    OnPiece(OnPiece&&) noexcept = default;
    OnPiece& operator=(OnPiece&&) = delete;
    ~OnPiece() {
      if (state_ == nullptr) return;
      const std::lock_guard<std::mutex> lock(state_->mutex);
      state_->is_over = true;
      state_->changed.notify_all();
    }
    void operator()(StatusOr<StagedPiece> piece) {
      const std::lock_guard<std::mutex> lock(state_->mutex);
      state_->told.push_back(std::move(piece));
      state_->changed.notify_all();
    }

   private:
    std::shared_ptr<PiecesState> state_;
  };

  /// Once.
  OnPiece Callback() const { return OnPiece(*this); }
  /// What is reported next; none, once the callback was destroyed. Blocks until then.
  std::optional<StatusOr<StagedPiece>> Next() const {
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->changed.wait(lock, [this] { return state_->is_over || !state_->told.empty(); });
    if (state_->told.empty()) return std::nullopt;
    StatusOr<StagedPiece> next = std::move(state_->told.front());
    state_->told.pop_front();
    return next;
  }
  /// The piece that is reported next.
  StagedPiece NextPiece() const { return std::move(*Next()).value(); }
  /// Whether a report is there that the test has not taken.
  bool HasNext() const {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    return !state_->told.empty();
  }
  /// The bytes of all pieces; each begins where the one before ended.
  Bytes All() const {
    Bytes bytes;
    bool has_ended = false;
    while (std::optional<StatusOr<StagedPiece>> piece = Next()) {
      if (!piece->ok()) {
        ADD_FAILURE() << piece->status();
        break;
      }
      EXPECT_FALSE(has_ended) << "nothing comes after the last piece";
      EXPECT_EQ((*piece)->offset_bytes(), bytes.size());
      const Bytes more = BytesOf(**piece);
      bytes.insert(bytes.end(), more.begin(), more.end());
      has_ended = (*piece)->is_last();
    }
    EXPECT_TRUE(has_ended || bytes.empty());
    return bytes;
  }
  /// The one error, and nothing else.
  Status Error() const {
    const std::optional<StatusOr<StagedPiece>> told = Next();
    EXPECT_TRUE(told.has_value() && !told->ok());
    EXPECT_FALSE(Next().has_value()) << "an error is the last that is told";
    return told.has_value() ? told->status() : OkStatus();
  }

 private:
  std::shared_ptr<PiecesState> state_ = std::make_shared<PiecesState>();
};

class StagingFixture : public BufferFixture {
 protected:
  static MemorySpace PinnedOf(const Client& client) { return client.devices()[0].memory_space("pinned_host").value(); }

  static StagingPool PoolOf(const Client& client, std::size_t lease_bytes, std::size_t lease_count) {
    StagingOptions options;
    options.lease_bytes = lease_bytes;
    options.lease_count = lease_count;
    return StagingPool::Create(PinnedOf(client), options).value();
  }
  StagingPool PoolOf(std::size_t lease_bytes, std::size_t lease_count) const {
    return PoolOf(client_, lease_bytes, lease_count);
  }

  RawBuffer Filled(const Bytes& bytes) const { return FilledIn(space_, bytes); }

  /// Puts the bytes [first, last) of `bytes` where they belong.
  static Status Put(StagingSink& sink, const StagingPool& pool, const Bytes& bytes, std::size_t first,
                    std::size_t last) {
    StagingLease lease = pool.Acquire().value();
    std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(first), bytes.begin() + static_cast<std::ptrdiff_t>(last),
              static_cast<std::uint8_t*>(lease.data()));
    return sink.Put(first, last - first, std::move(lease));
  }

  /// Returns when all leases are back. A lease that was asked for in vain may come back a moment after the read's
  /// event.
  static void AwaitAll(const StagingPool& pool) {
    while (pool.free_count() < pool.lease_count()) std::this_thread::yield();
  }
};

}  // namespace purlin

#endif  // PURLIN_TESTS_CPP_STAGING_FIXTURE_H_
