// Purlin: transfers between devices and a transport, piece by piece through a pool of host memory.
//
// ```cpp
// purlin::Status Collect(const purlin::RawBuffer& source, const purlin::MemorySpace& pinned, std::string& bytes) {
//   purlin::StatusOr<purlin::StagingPool> pool = purlin::StagingPool::Create(pinned);
//   if (!pool.ok()) return pool.status();
//   purlin::StagingCopier copier(*pool);
//   const auto on_piece = [&bytes](const purlin::StatusOr<purlin::StagedPiece>& piece) {
//     if (!piece.ok()) return;  // the event has the error, too
//     const char* data = static_cast<const char*>(piece->data());
//     bytes.append(data, piece->size_bytes());
//   };
//   return copier.Read(source, on_piece).Wait();
// }
// ```
//
// A StagingPool is a block of host memory, cut into leases of one size. A StagingCopier reads device memory into
// leases, several at a time, and delivers them in order. A StagingSink takes leases in any order and completes when
// device memory has all their bytes. The size of the pool limits the bytes in flight: code that keeps leases slows
// other transfers of the pool down, and has no other effect.
//
// A lease returns to the pool when it is destroyed, on every path: delivered, refused, failed, cancelled, thrown. If an
// acquisition waits, its callback and small copies then run on the same thread. Each object keeps what it needs alive:
// a lease its pool, the pool its client, a copy in flight its lease.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_STAGING_H_
#define PURLIN_STAGING_H_

#include <cstddef>
#include <type_traits>
#include <utility>

#include "purlin/buffer.h"
#include "purlin/cancel.h"
#include "purlin/device.h"
#include "purlin/event.h"
#include "purlin/export.h"
#include "purlin/internal/callback.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/guard.h"
#include "purlin/internal/handle.h"
#include "purlin/internal/piece_callback.h"
#include "purlin/label.h"
#include "purlin/raw_buffer.h"
#include "purlin/source_location.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct StagingCopierRep;
struct StagingPoolRep;
struct StagingSinkRep;
}  // namespace internal

/// How a StagingPool is made.
struct StagingOptions {
  /// For versioning: leave it alone.
  std::size_t struct_size = sizeof(StagingOptions);
  /// Bytes of each lease, >= 1.
  std::size_t lease_bytes = std::size_t{4} << 20;
  /// How many leases there are, >= 1.
  std::size_t lease_count = 16;
  /// What the memory is called in reports and errors.
  Label label = Label("staging");
};

/// StagingPool::lease_bytes() bytes of host memory for one owner at a time. Move-only, one word; one thread at a time.
/// May outlive every handle to its pool.
class [[nodiscard]] StagingLease final : public internal::Handle<StagingLease, internal::StagingLeaseRep> {
 public:
  /// Leaves `other` without memory.
  StagingLease(StagingLease&& other) noexcept = default;
  /// Gives back what was here.
  StagingLease& operator=(StagingLease&& other) noexcept = default;
  /// As Release().
  ~StagingLease() { Release(); }

  /// The bytes, to be read and written: [data(), data() + size_bytes()). Bytes that were not written since they were
  /// leased are what an earlier lease left. Null once released or moved from.
  [[nodiscard]] void* data() noexcept { return const_cast<void*>(Range(nullptr)); }
  /// As above, to be read.
  [[nodiscard]] const void* data() const noexcept { return Range(nullptr); }
  /// How many; 0 once released or moved from.
  [[nodiscard]] std::size_t size_bytes() const noexcept {
    std::size_t size_bytes = 0;
    Range(&size_bytes);
    return size_bytes;
  }
  /// The same bytes, for copies. They belong to this lease only while it exists, so keep it until the copies have
  /// ended. Once released or moved from: an empty RawBuffer.
  [[nodiscard]] PURLIN_API RawBuffer memory() const noexcept;
  /// Gives the memory back, which may run callbacks of waiting acquisitions: see the top of this file. A second call
  /// does nothing.
  PURLIN_API void Release() noexcept;

  /// For Purlin's own files: gives up the memory; null if there is none.
  internal::StagingLeaseRep* ReleaseRep() && noexcept { return std::exchange(rep_, nullptr); }

 private:
  using Handle::Handle;

  /// The first byte; writes how many there are, unless `size_bytes` is null.
  PURLIN_API const void* Range(std::size_t* size_bytes) const noexcept;
};

/// A handle; copies share the memory, which is freed with the last of them and the last lease. Any thread.
class StagingPool final : public internal::Handle<StagingPool, const internal::StagingPoolRep> {
 public:
  /// A pool in `memory_space`, all of whose memory is taken now and kept. A lease's bytes are touched, by writing
  /// zeros, when it is leased for the first time. A lease that was used before is preferred to one that never was, so
  /// pages that were never needed at the same time are never taken from the system. `location` names the memory in
  /// reports. kInvalidArgument, naming the values: no leases, leases of no bytes, more bytes than can be counted,
  /// memory that the host does not reach, or a struct_size that no version has. kResourceExhausted: no memory.
  PURLIN_API static StatusOr<StagingPool> Create(const MemorySpace& memory_space,
                                                 const StagingOptions& options = StagingOptions(),
                                                 SourceLocation location = SourceLocation::Current());

  /// Another handle to the same memory.
  PURLIN_API StagingPool(const StagingPool& other) noexcept;
  /// Leaves `other` empty, see purlin.h.
  StagingPool(StagingPool&& other) noexcept = default;
  /// See the constructors.
  StagingPool& operator=(const StagingPool& other) noexcept = default;
  /// See the constructors.
  StagingPool& operator=(StagingPool&& other) noexcept = default;
  PURLIN_API ~StagingPool();

  /// Bytes of each lease.
  [[nodiscard]] PURLIN_API std::size_t lease_bytes() const noexcept;
  /// All leases, in use or not.
  [[nodiscard]] PURLIN_API std::size_t lease_count() const noexcept;
  /// Leases that are free now; another thread may take them first.
  [[nodiscard]] PURLIN_API std::size_t free_count() const noexcept;
  /// Where the memory is.
  [[nodiscard]] PURLIN_API MemorySpace memory_space() const noexcept;

  /// A lease, now; never blocks. kUnavailable: all are in use, or another acquisition waits already.
  PURLIN_API StatusOr<StagingLease> TryAcquire() const;
  /// A lease; blocks until one is free. Acquisitions are served in their order. kCancelled, with the reason of
  /// `cancel`: it was cancelled, before or while this waited.
  PURLIN_API StatusOr<StagingLease> Acquire(const CancelToken& cancel = CancelToken()) const;
  /// As Acquire, without blocking: calls `callback(purlin::StatusOr<purlin::StagingLease>)` exactly once, with what
  /// Acquire would return, on the thread that gave a lease back or cancelled, or on this thread before it returns.
  /// Nesting is bounded as for waiters of events. If the callback throws, that is reported and the lease returns to the
  /// pool. An empty std::function or a null function pointer is ignored. `Mode` keeps translation units with and
  /// without exceptions apart: leave it alone.
  template <typename F, typename Mode = internal::WithExceptions>
  void AcquireAsync(F&& callback, const CancelToken& cancel = CancelToken()) const {
    using Closure = std::decay_t<F>;
    static_assert(std::is_invocable_v<Closure&, StatusOr<StagingLease>>,
                  "called as f(purlin::StatusOr<purlin::StagingLease>)");
    if (internal::IsEmptyCallable(callback)) return;
    AcquireAsyncRaw(
        cancel, internal::MakeCallback([closure = Closure(std::forward<F>(callback))](const internal::StatusRep* error,
                                                                                      const void* value) mutable {
          internal::Guarded("callback of a staging pool", [&] {
            if (error != nullptr) return Tell(closure, Status::FromRep(error));
            auto* lease = const_cast<internal::StagingLeaseRep*>(static_cast<const internal::StagingLeaseRep*>(value));
            return Tell(closure, StagingLease::Adopt(lease));
          });
        }));
  }

 private:
  using Handle::Handle;

  template <typename Closure>
  static void Tell(Closure& closure, StatusOr<StagingLease> lease) {
    static_cast<void>(closure(std::move(lease)));
  }
  PURLIN_API void AcquireAsyncRaw(const CancelToken& cancel, internal::Callback callback) const;
};

/// A piece of a read: the bytes [offset_bytes(), offset_bytes() + size_bytes()) of what is read, in a lease. Move-only;
/// one thread at a time.
class [[nodiscard]] StagedPiece final {
 public:
  /// Leaves `other` without bytes.
  StagedPiece(StagedPiece&& other) noexcept
      : lease_(std::move(other.lease_)),
        offset_bytes_(other.offset_bytes_),
        size_bytes_(std::exchange(other.size_bytes_, 0)),
        is_last_(other.is_last_) {}
  /// Gives back what was here.
  StagedPiece& operator=(StagedPiece&& other) noexcept {
    StagedPiece taken(std::move(other));  // First, as it may be this.
    offset_bytes_ = taken.offset_bytes_;
    size_bytes_ = taken.size_bytes_;
    is_last_ = taken.is_last_;
    lease_ = std::move(taken.lease_);
    return *this;
  }
  ~StagedPiece() = default;

  /// The offset of its first byte in what is read.
  [[nodiscard]] std::size_t offset_bytes() const noexcept { return offset_bytes_; }
  /// How many bytes it has, <= StagingPool::lease_bytes(); 0 once moved from.
  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_bytes_; }
  /// Whether it is the last piece of the read.
  [[nodiscard]] bool is_last() const noexcept { return is_last_; }
  /// The first byte; null once moved from.
  [[nodiscard]] const void* data() const noexcept { return lease_.data(); }
  /// The lease, whose first bytes are the piece's. Leaves this without bytes.
  [[nodiscard]] StagingLease TakeLease() && noexcept {
    size_bytes_ = 0;
    return std::move(lease_);
  }

  /// For Purlin's own files.
  StagedPiece(StagingLease lease, std::size_t offset_bytes, std::size_t size_bytes, bool is_last) noexcept
      : lease_(std::move(lease)), offset_bytes_(offset_bytes), size_bytes_(size_bytes), is_last_(is_last) {}

 private:
  StagingLease lease_;
  std::size_t offset_bytes_;
  std::size_t size_bytes_;
  bool is_last_;
};

/// Reads device memory into the leases of a pool, as many at a time as it can get. Reads begin in the order of the
/// calls, and their pieces are delivered in that order; their copies end in any. Move-only, one word. Every function
/// but a move may be called from every thread, also several at once. None blocks, unless it says so; small copies run
/// inside a call that starts a read or gives a lease back.
///
/// `on_piece(purlin::StatusOr<purlin::StagedPiece>)` of a read is called with each piece in order, and then destroyed;
/// the read's event completes after that, when no copy reads the source any more. An error is the argument of the last
/// call, in place of the piece that failed, and is the event's error. on_piece is called on any thread, in the user
/// context in which the read was started, under no lock, one call at a time for all reads of a copier; it need not be
/// copyable. It may start further reads, and destroy the copier. If it waits for the copier's events, or for what
/// follows them, the wait returns kFailedPrecondition, because they complete after it has returned. An exception from
/// it is reported, and ends the read with kInternal. An on_piece that keeps pieces keeps their leases; so a slow reader
/// slows the copier down.
class [[nodiscard]] StagingCopier final : public internal::Handle<StagingCopier, const internal::StagingCopierRep> {
 public:
  /// A copier that shares the leases of `pool` with all other acquisitions of the pool.
  PURLIN_API explicit StagingCopier(const StagingPool& pool) noexcept;

  /// Leaves `other` without a pool: its reads fail.
  StagingCopier(StagingCopier&& other) noexcept = default;
  /// As if destroying what was here.
  StagingCopier& operator=(StagingCopier&& other) noexcept = default;
  /// Pieces that wait for a lease are cancelled; those whose copies have begun are still delivered. Does not wait for
  /// them: each read completes, here or later.
  PURLIN_API ~StagingCopier();

  /// Reads all bytes of `source`, after `dependencies`. From then until the event is terminal, they must not be
  /// written. `location` is the event's place. A read of no bytes completes the event without a call of on_piece. The
  /// event fails, and on_piece is called with the same error: that of a dependency or a copy; kInvalidArgument:
  /// `source` is of another client than the pool; kCancelled: the copier was destroyed first, or the client has shut
  /// down; kInternal: on_piece threw; kFailedPrecondition: the copier was moved from. kInvalidArgument, of the event
  /// alone: on_piece is an empty std::function or a null function pointer. `Mode` keeps translation units with and
  /// without exceptions apart: leave it alone.
  template <typename F, typename Mode = internal::WithExceptions>
  [[nodiscard]] Event Read(const RawBuffer& source, F&& on_piece, Span<const Event> dependencies = {},
                           SourceLocation location = SourceLocation::Current()) {
    return Event::Adopt(ReadRaw(source, dependencies, ToCallback<Mode>(std::forward<F>(on_piece)), location));
  }
  /// As Read, the bytes of `buffer` as they stand on the device, once it is ready; a usage hold keeps it from being
  /// donated until the event. Blocks while it is being donated. After an error on_piece is destroyed uncalled. The
  /// errors of Buffer::AcquireUsageHold; kFailedPrecondition: the copier was moved from; kInvalidArgument: on_piece is
  /// empty.
  template <typename F, typename Mode = internal::WithExceptions>
  StatusOr<Event> ReadBuffer(const Buffer& buffer, F&& on_piece, SourceLocation location = SourceLocation::Current()) {
    const internal::StatusRep* error = nullptr;
    internal::EventHeader* event = ReadBufferRaw(buffer, ToCallback<Mode>(std::forward<F>(on_piece)), location, &error);
    if (error != nullptr) return Status::FromRep(error);
    return Event::Adopt(event);
  }

 private:
  using Handle::Handle;

  template <typename Mode, typename F>
  static internal::PieceCallback ToCallback(F&& on_piece) {
    using Closure = std::decay_t<F>;
    static_assert(std::is_invocable_v<Closure&, StatusOr<StagedPiece>>,
                  "called as on_piece(purlin::StatusOr<purlin::StagedPiece>)");
    if (internal::IsEmptyCallable(on_piece)) return {nullptr, nullptr, nullptr};
    const auto call = [](void* data, const internal::StatusRep* error, internal::StagingLeaseRep* lease,
                         std::size_t offset_bytes, std::size_t size_bytes, bool is_last) noexcept {
      auto& closure = *static_cast<Closure*>(data);
      return internal::GuardedOk(
          "on_piece of a staged read",
          [&] {
            if (error != nullptr) return Tell(closure, Status::FromRep(error));
            return Tell(closure, StagedPiece(StagingLease::Adopt(lease), offset_bytes, size_bytes, is_last));
          },
          Mode());
    };
    return {new Closure(std::forward<F>(on_piece)), call,
            [](void* data) noexcept { delete static_cast<Closure*>(data); }};
  }

  template <typename Closure>
  static void Tell(Closure& closure, StatusOr<StagedPiece> piece) {
    static_cast<void>(closure(std::move(piece)));
  }

  // Each takes over `on_piece`.
  PURLIN_API internal::EventHeader* ReadRaw(const RawBuffer& source, Span<const Event> dependencies,
                                            internal::PieceCallback on_piece, SourceLocation location);
  PURLIN_API internal::EventHeader* ReadBufferRaw(const Buffer& buffer, internal::PieceCallback on_piece,
                                                  SourceLocation location, const internal::StatusRep** error);
};

/// Device memory that is filled by leases. States: filling, until every byte has a piece; then it waits for the copies
/// in flight, and is done. Or failed: by Poison, by a copy that failed, or because it was destroyed first; then only
/// copies in flight still write. Its event completes when the last of these has ended: from then on the sink writes no
/// more. Move-only, one word. Every function but a move may be called from every thread, also several at once. None
/// blocks; waiters of the event may run here.
class [[nodiscard]] StagingSink final : public internal::Handle<StagingSink, const internal::StagingSinkRep> {
 public:
  /// A sink for all bytes of `destination`, and the event that happens when they are there: at once, if there are none.
  /// Until the event is terminal, no other code may touch them. `location` is the event's place.
  static std::pair<StagingSink, Event> Create(const RawBuffer& destination,
                                              SourceLocation location = SourceLocation::Current()) {
    internal::EventHeader* event = nullptr;
    StagingSink sink(CreateRaw(destination, location, &event));
    return {std::move(sink), Event::Adopt(event)};
  }

  /// Leaves `other` without a destination: it takes no pieces.
  StagingSink(StagingSink&& other) noexcept = default;
  /// As if destroying what was here.
  StagingSink& operator=(StagingSink&& other) noexcept = default;
  /// If some bytes have no piece, the event fails with kCancelled, naming the number of those that have one. Does not
  /// wait for copies in flight.
  PURLIN_API ~StagingSink();

  /// Copies the first `size_bytes` bytes of `lease` to [offset_bytes, offset_bytes + size_bytes) of the destination.
  /// The lease returns to its pool when the copy has ended; if the piece is refused, before this returns. Pieces may be
  /// given in any order; after an error the sink is as it was. kOutOfRange, naming the numbers, unless size_bytes <=
  /// lease.size_bytes() and offset_bytes + size_bytes <= destination.on_device_size_bytes(). kInvalidArgument, naming
  /// them: bytes that had a piece already; or a lease without memory. kFailedPrecondition: the sink was moved from. Or
  /// the sink's error.
  PURLIN_API Status Put(std::size_t offset_bytes, std::size_t size_bytes, StagingLease lease);
  /// Accepts no further piece, and fails the event with `error`, unless every byte has a piece already; the first error
  /// stays. OK counts as kInternal, made at `location`. kFailedPrecondition: the sink was moved from.
  PURLIN_API Status Poison(Status error, SourceLocation location = SourceLocation::Current());
  /// Bytes that have a piece, copied or in flight; 0 once moved from.
  [[nodiscard]] PURLIN_API std::size_t begun_bytes() const noexcept;

 private:
  using Handle::Handle;

  PURLIN_API static const internal::StagingSinkRep* CreateRaw(const RawBuffer& destination, SourceLocation location,
                                                              internal::EventHeader** event);
};

static_assert(sizeof(StagingLease) == sizeof(void*), "a StagingLease is one word");
static_assert(sizeof(StagingPool) == sizeof(void*), "a StagingPool is one word");
static_assert(sizeof(StagingCopier) == sizeof(void*), "a StagingCopier is one word");
static_assert(sizeof(StagingSink) == sizeof(void*), "a StagingSink is one word");

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_STAGING_H_
