#include "purlin/semaphore.h"

#include <cstdint>
#include <utility>

#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "purlin-bridge/src/semaphore.rs.h"

namespace purlin {
inline namespace v0 {
namespace {

StatusOr<Permit> ToPermit(internal::PermitRep* rep, const internal::StatusRep* error) {
  if (rep == nullptr) return Status::FromRep(error);
  return Permit::Adopt(rep);
}

}  // namespace

std::size_t Permit::amount() const noexcept { return rep_ == nullptr ? 0 : ffi::permit_amount(*rep_); }

void Permit::Release() noexcept {
  if (internal::PermitRep* rep = std::exchange(rep_, nullptr)) ffi::permit_release(rep);
}

Semaphore::Semaphore(Label label, std::size_t capacity) noexcept
    : Handle(ffi::semaphore_new(label.c_str(), capacity)) {}

Semaphore::Semaphore(const Semaphore& other) noexcept : Handle(internal::Shared<ffi::semaphore_retain>(other.rep_)) {}

Semaphore::~Semaphore() { internal::GiveUp<ffi::semaphore_release>(rep_); }

std::size_t Semaphore::capacity() const noexcept {
  if (rep_ == nullptr) return 0;
  return ffi::semaphore_capacity(*rep_);
}

std::size_t Semaphore::available() const noexcept {
  if (rep_ == nullptr) return 0;
  return ffi::semaphore_available(*rep_);
}

std::size_t Semaphore::waiting() const noexcept {
  if (rep_ == nullptr) return 0;
  return ffi::semaphore_waiting(*rep_);
}

StatusOr<Permit> Semaphore::TryAcquire(std::size_t amount) const {
  if (rep_ == nullptr) return internal::Gone("Semaphore");

  const internal::StatusRep* error = nullptr;
  internal::PermitRep* permit = ffi::semaphore_try_acquire(*rep_, amount, error);
  return ToPermit(permit, error);
}

StatusOr<Permit> Semaphore::Acquire(std::size_t amount, const CancelToken& cancel) const {
  if (rep_ == nullptr) return internal::Gone("Semaphore");

  const internal::StatusRep* error = nullptr;
  internal::PermitRep* permit = ffi::semaphore_acquire(*rep_, amount, -1, cancel.rep(), error);
  return ToPermit(permit, error);
}

StatusOr<Permit> Semaphore::AcquireFor(std::size_t amount, std::chrono::nanoseconds timeout,
                                       const CancelToken& cancel) const {
  if (rep_ == nullptr) return internal::Gone("Semaphore");

  const internal::StatusRep* error = nullptr;
  const std::int64_t timeout_ns = timeout.count() < 0 ? 0 : timeout.count();
  internal::PermitRep* permit = ffi::semaphore_acquire(*rep_, amount, timeout_ns, cancel.rep(), error);
  return ToPermit(permit, error);
}

void Semaphore::AcquireAsyncRaw(std::size_t amount, const CancelToken& cancel, internal::Callback callback) const {
  if (rep_ == nullptr) return internal::GoneAndTold("Semaphore", &callback).IgnoreError();

  internal::purlin_semaphore_acquire_async(rep_, amount, cancel.rep(), callback);
}

void Semaphore::Close() const noexcept {
  if (rep_ == nullptr) return;
  ffi::semaphore_close(*rep_);
}

}  // namespace v0
}  // namespace purlin
