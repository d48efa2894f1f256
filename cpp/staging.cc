#include "purlin/staging.h"

#include <cstdint>
#include <utility>

#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "purlin-bridge/src/staging.rs.h"

namespace purlin {
inline namespace v0 {
namespace {

/// Rust knows the first version's size, so that no field of that one needs a look at struct_size before it is read.
ffi::RawStagingOptions ToRust(const StagingOptions& options) noexcept {
  static_assert(sizeof(StagingOptions) == 32, "a field was added: read it only if struct_size reaches past it");
  return {options.struct_size, options.lease_bytes, options.lease_count, options.label.c_str()};
}

StatusOr<StagingLease> ToLease(internal::StagingLeaseRep* rep, const internal::StatusRep* error) {
  if (error != nullptr) return Status::FromRep(error);
  return StagingLease::Adopt(rep);
}

}  // namespace

const void* StagingLease::Range(std::size_t* size_bytes) const noexcept {
  return ffi::staging_lease_range(rep_, size_bytes);
}

RawBuffer StagingLease::memory() const noexcept {
  return RawBuffer::Adopt(rep_ == nullptr ? nullptr : ffi::staging_lease_memory(*rep_));
}

void StagingLease::Release() noexcept {
  if (internal::StagingLeaseRep* rep = std::exchange(rep_, nullptr)) ffi::staging_lease_release(rep);
}

StatusOr<StagingPool> StagingPool::Create(const MemorySpace& memory_space, const StagingOptions& options,
                                          SourceLocation location) {
  if (memory_space.rep() == nullptr) return internal::Gone("MemorySpace");

  const internal::StatusRep* error = nullptr;
  const ffi::RawStagingOptions raw = ToRust(options);
  const internal::StagingPoolRep* rep = ffi::staging_pool_create(*memory_space.rep(), raw, location, error);
  return internal::ToStatusOr<StagingPool>(rep, error);
}

StagingPool::StagingPool(const StagingPool& other) noexcept
    : Handle(internal::Shared<ffi::staging_pool_retain>(other.rep_)) {}

StagingPool::~StagingPool() { internal::GiveUp<ffi::staging_pool_release>(rep_); }

std::size_t StagingPool::lease_bytes() const noexcept {
  if (rep_ == nullptr) return 0;
  return ffi::staging_pool_lease_bytes(*rep_);
}

std::size_t StagingPool::lease_count() const noexcept {
  if (rep_ == nullptr) return 0;
  return ffi::staging_pool_lease_count(*rep_);
}

std::size_t StagingPool::free_count() const noexcept {
  if (rep_ == nullptr) return 0;
  return ffi::staging_pool_free_count(*rep_);
}

MemorySpace StagingPool::memory_space() const noexcept {
  if (rep_ == nullptr) return MemorySpace::Adopt(nullptr);

  return MemorySpace::Adopt(ffi::staging_pool_memory_space(*rep_));
}

StatusOr<StagingLease> StagingPool::TryAcquire() const {
  if (rep_ == nullptr) return internal::Gone("StagingPool");

  const internal::StatusRep* error = nullptr;
  internal::StagingLeaseRep* lease = ffi::staging_pool_try_acquire(*rep_, error);
  return ToLease(lease, error);
}

StatusOr<StagingLease> StagingPool::Acquire(const CancelToken& cancel) const {
  if (rep_ == nullptr) return internal::Gone("StagingPool");

  const internal::StatusRep* error = nullptr;
  internal::StagingLeaseRep* lease = ffi::staging_pool_acquire(*rep_, cancel.rep(), error);
  return ToLease(lease, error);
}

void StagingPool::AcquireAsyncRaw(const CancelToken& cancel, internal::Callback callback) const {
  if (rep_ == nullptr) return internal::GoneAndTold("StagingPool", &callback).IgnoreError();

  internal::purlin_staging_pool_acquire_async(rep_, cancel.rep(), callback);
}

StagingCopier::StagingCopier(const StagingPool& pool) noexcept
    : Handle(pool.rep() == nullptr ? nullptr : ffi::staging_copier_new(*pool.rep())) {}

StagingCopier::~StagingCopier() { internal::GiveUp<ffi::staging_copier_release>(rep_); }

internal::EventHeader* StagingCopier::ReadRaw(const RawBuffer& source, Span<const Event> dependencies,
                                              internal::PieceCallback on_piece, SourceLocation location) {
  if (source.rep() == nullptr) {
    if (on_piece.data != nullptr) on_piece.destroy(on_piece.data);
    return internal::purlin_event_new_error(internal::Gone("RawBuffer").ReleaseRep(), location);
  }

  return internal::purlin_staging_copier_read(rep_, source.rep(), internal::ToRust(dependencies), dependencies.size(),
                                              on_piece, location);
}

internal::EventHeader* StagingCopier::ReadBufferRaw(const Buffer& buffer, internal::PieceCallback on_piece,
                                                    SourceLocation location, const internal::StatusRep** error) {
  if (buffer.rep() == nullptr) {
    if (on_piece.data != nullptr) on_piece.destroy(on_piece.data);
    *error = internal::Gone("Buffer").ReleaseRep();
    return nullptr;
  }

  return internal::purlin_staging_copier_read_buffer(rep_, buffer.rep(), on_piece, location, error);
}

const internal::StagingSinkRep* StagingSink::CreateRaw(const RawBuffer& destination, SourceLocation location,
                                                       internal::EventHeader** event) {
  if (destination.rep() == nullptr) {
    *event = internal::purlin_event_new_error(internal::Gone("RawBuffer").ReleaseRep(), location);
    return nullptr;
  }

  return ffi::staging_sink_new(*destination.rep(), location, *event);
}

StagingSink::~StagingSink() { internal::GiveUp<ffi::staging_sink_release>(rep_); }

Status StagingSink::Put(std::size_t offset_bytes, std::size_t size_bytes, StagingLease lease) {
  return Status::FromRep(ffi::staging_sink_put(rep_, offset_bytes, size_bytes, std::move(lease).ReleaseRep()));
}

Status StagingSink::Poison(Status error, SourceLocation location) {
  error = internal::NotOk(std::move(error), "StagingSink::Poison", location);
  return Status::FromRep(ffi::staging_sink_poison(rep_, std::move(error).ReleaseRep()));
}

std::size_t StagingSink::begun_bytes() const noexcept {
  return rep_ == nullptr ? 0 : ffi::staging_sink_begun_bytes(*rep_);
}

}  // namespace v0
}  // namespace purlin
