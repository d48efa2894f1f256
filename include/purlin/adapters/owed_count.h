// Purlin's count of what other code uses for a time: closures given to a pool (owed_work.h), memory of an FFI call
// (xla_ffi.h). It has no other side; it is for the adapters beside it.
#ifndef PURLIN_ADAPTERS_OWED_COUNT_H_
#define PURLIN_ADAPTERS_OWED_COUNT_H_

#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

#include "purlin/event.h"
#include "purlin/label.h"
#include "purlin/source_location.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace adapters {
namespace internal {

/// Counts shares: one of the owner, one of each object in use. A holder of a share can take another one. Dropping the
/// last one completes the event of Close(), and deletes this.
class OwedCount final {
 public:
  OwedCount() = default;
  OwedCount(const OwedCount&) = delete;
  OwedCount& operator=(const OwedCount&) = delete;

  void Take() noexcept { shares_.fetch_add(1, std::memory_order_relaxed); }
  /// Acquire and release: the waiting thread sees what all holders did.
  void Leave() noexcept {
    if (shares_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  /// Drops the owner's share; the event happens when all other shares have been dropped. If there are none, it is ready
  /// already and costs nothing, because no holder is left that could take a share.
  Event Close(Label label, SourceLocation location = SourceLocation::Current()) {
    Event all_gone = Event::Ready();
    if (shares_.load(std::memory_order_acquire) != 1) {
      all_gone_.emplace(EventPromise::Guarding(label, location));
      all_gone = all_gone_->event();
    }
    Leave();
    return all_gone;
  }

 private:
  ~OwedCount() {
    if (all_gone_.has_value()) all_gone_->SetReady();
  }

  std::atomic<std::size_t> shares_{1};
  std::optional<EventPromise> all_gone_;
};

/// Blocks until the event of Close() has happened, even where other waits would end with an error: the caller then
/// frees memory that was in use.
inline void AwaitAllGone(const Event& all_gone) noexcept {
  while (!all_gone.IsReady()) all_gone.Wait().IgnoreError();
}

/// A share, or none.
class OwedShare final {
 public:
  explicit OwedShare(OwedCount* count) noexcept : count_(count) {
    if (count_ != nullptr) count_->Take();
  }
  OwedShare(OwedShare&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  OwedShare& operator=(OwedShare&&) = delete;
  ~OwedShare() { Leave(); }

  void Leave() noexcept {
    if (OwedCount* const count = std::exchange(count_, nullptr)) count->Leave();
  }

 private:
  OwedCount* count_;
};

}  // namespace internal
}  // namespace adapters
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ADAPTERS_OWED_COUNT_H_
