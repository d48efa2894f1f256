// Purlin: a semaphore of units that are acquired and given back: it limits launches or bytes in flight.
//
// ```cpp
// purlin::Semaphore launches("launches", 32);
// purlin::StatusOr<purlin::Permit> permit = launches.Acquire(1);  // blocks until a unit is free
// if (!permit.ok()) return permit.status();
// permit->Release();  // the permit's destructor would do so, too
// ```
//
// Acquisitions are served in their order: one that could be granted still waits behind an earlier, larger one, so large
// ones do not starve. Units return only by destroying their Permit, so there are never more than the capacity.
#ifndef PURLIN_SEMAPHORE_H_
#define PURLIN_SEMAPHORE_H_

#include <chrono>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "purlin/cancel.h"
#include "purlin/export.h"
#include "purlin/internal/callback.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/handle.h"
#include "purlin/label.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

namespace internal {
struct PermitRep;
struct SemaphoreRep;
}  // namespace internal

/// Units that were granted. Move-only, one word; may outlive every handle to the semaphore.
class [[nodiscard]] Permit final : public internal::Handle<Permit, internal::PermitRep> {
 public:
  /// Leaves `other` without units.
  Permit(Permit&& other) noexcept = default;
  /// Gives back the units that were here.
  Permit& operator=(Permit&& other) noexcept = default;
  /// As Release().
  ~Permit() { Release(); }

  /// How many units it stands for; 0 once moved from or released.
  [[nodiscard]] PURLIN_API std::size_t amount() const noexcept;
  /// Gives the units back, which may grant waiting acquisitions: their callbacks run on this thread. A second call does
  /// nothing.
  PURLIN_API void Release() noexcept;

 private:
  using Handle::Handle;
};

/// A handle; copies share the units. Any thread. In a child made by fork(), which may lack the threads of holders and
/// waiters, an acquisition that would have to wait fails with kFailedPrecondition.
class Semaphore final : public internal::Handle<Semaphore, const internal::SemaphoreRep> {
 public:
  /// `capacity` units, all free. `label` (static storage) names it in errors.
  PURLIN_API explicit Semaphore(Label label, std::size_t capacity) noexcept;
  /// Another handle to the same units.
  PURLIN_API Semaphore(const Semaphore& other) noexcept;
  /// Leaves `other` empty, see purlin.h.
  Semaphore(Semaphore&& other) noexcept = default;
  /// See the constructors.
  Semaphore& operator=(const Semaphore& other) noexcept = default;
  /// See the constructors.
  Semaphore& operator=(Semaphore&& other) noexcept = default;
  PURLIN_API ~Semaphore();

  /// All units, taken or not.
  [[nodiscard]] PURLIN_API std::size_t capacity() const noexcept;
  /// Units that are free now; another thread may take them first.
  [[nodiscard]] PURLIN_API std::size_t available() const noexcept;
  /// Acquisitions in the queue now.
  [[nodiscard]] PURLIN_API std::size_t waiting() const noexcept;

  /// Takes `amount` units now, never blocks. kUnavailable: too few are free, or another acquisition waits already;
  /// kInvalidArgument: amount > capacity(); kCancelled: closed.
  PURLIN_API StatusOr<Permit> TryAcquire(std::size_t amount) const;
  /// Takes `amount` units and blocks until it has them. kInvalidArgument: amount > capacity(); kCancelled: closed, or
  /// `cancel` was cancelled, before or while this waited.
  PURLIN_API StatusOr<Permit> Acquire(std::size_t amount, const CancelToken& cancel = CancelToken()) const;
  /// As Acquire, for at most `timeout` (negative counts as zero) of the monotonic clock; then kDeadlineExceeded.
  PURLIN_API StatusOr<Permit> AcquireFor(std::size_t amount, std::chrono::nanoseconds timeout,
                                         const CancelToken& cancel = CancelToken()) const;

  /// Joins the queue and calls `callback(purlin::StatusOr<purlin::Permit>)` exactly once, with what Acquire would
  /// return: on the thread that gave the units back, closed or cancelled, or on this thread before it returns. Never
  /// blocks. Nesting is bounded as for waiters of events. If the callback throws, that is reported and the units
  /// return. An empty std::function or a null function pointer is ignored.
  template <typename F>
  void AcquireAsync(std::size_t amount, F&& callback, const CancelToken& cancel = CancelToken()) const {
    using Closure = std::decay_t<F>;
    static_assert(std::is_invocable_v<Closure&, StatusOr<Permit>>, "called as f(purlin::StatusOr<purlin::Permit>)");
    if (internal::IsEmptyCallable(callback)) return;
    AcquireAsyncRaw(amount, cancel,
                    internal::MakeCallback([closure = Closure(std::forward<F>(callback))](
                                               const internal::StatusRep* error, const void* value) mutable {
                      if (error != nullptr) return closure(StatusOr<Permit>(Status::FromRep(error)));
                      auto* permit = const_cast<internal::PermitRep*>(static_cast<const internal::PermitRep*>(value));
                      return closure(StatusOr<Permit>(Permit::Adopt(permit)));
                    }));
  }

  /// Fails waiting and later acquisitions with kCancelled; callbacks run on this thread. Permits stay valid. A second
  /// call does nothing.
  PURLIN_API void Close() const noexcept;

 private:
  using Handle::Handle;

  PURLIN_API void AcquireAsyncRaw(std::size_t amount, const CancelToken& cancel, internal::Callback callback) const;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_SEMAPHORE_H_
