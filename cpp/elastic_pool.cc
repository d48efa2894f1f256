#include "purlin/elastic_pool.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cpp/internal/convert.h"
#include "cpp/internal/deadline.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "cpp/internal/pin.h"
#include "purlin-bridge/src/elastic_pool.rs.h"

namespace purlin {
inline namespace v0 {

StatusOr<ElasticPool> ElasticPool::Create(const ElasticPoolOptions& options) {
  internal::Pin(__builtin_return_address(0));
  const internal::StatusRep* error = nullptr;
  const internal::ElasticPoolRep* rep = ffi::elastic_pool_new(
      {options.max_threads, options.idle_timeout.count(), options.stack_size_bytes, internal::ToRust(options.name)},
      error);
  if (rep == nullptr) return Status::FromRep(error);
  return ElasticPool(rep);
}

ElasticPool::ElasticPool(const ElasticPool& other) noexcept : Executor(other), rep_(other.rep_) {
  if (rep_ != nullptr) ffi::elastic_pool_retain(rep_);
}

ElasticPool::ElasticPool(ElasticPool&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}

ElasticPool& ElasticPool::operator=(const ElasticPool& other) noexcept {
  ElasticPool copy(other);
  std::swap(rep_, copy.rep_);
  return *this;
}

ElasticPool& ElasticPool::operator=(ElasticPool&& other) noexcept {
  ElasticPool taken(std::move(other));
  std::swap(rep_, taken.rep_);
  return *this;
}

ElasticPool::~ElasticPool() { internal::GiveUp<ffi::elastic_pool_release>(rep_); }

Status ElasticPool::Execute(Task task) {
  if (rep_ == nullptr) return internal::Gone("ElasticPool");

  return Status::FromRep(internal::purlin_elastic_pool_execute(rep_, std::move(task).Release()));
}

std::size_t ElasticPool::NumThreads() const noexcept {
  if (rep_ == nullptr) return 0;
  return ffi::elastic_pool_num_threads(*rep_);
}

std::size_t ElasticPool::NumIdle() const noexcept {
  if (rep_ == nullptr) return 0;
  return ffi::elastic_pool_num_idle(*rep_);
}

Status ElasticPool::Shutdown(const ShutdownOptions& options) {
  if (rep_ == nullptr) return internal::Gone("ElasticPool");

  return Status::FromRep(
      ffi::elastic_pool_shutdown(*rep_, static_cast<std::uint32_t>(options.mode), options.timeout_ns));
}

Status ElasticPool::ShutdownCancelPending() { return Shutdown({ShutdownMode::kCancelPending}); }

Status ElasticPool::ShutdownBy(std::chrono::steady_clock::time_point deadline) {
  return Shutdown({ShutdownMode::kDrain, std::max<std::int64_t>(internal::NanosecondsUntil(deadline), 0)});
}

}  // namespace v0
}  // namespace purlin
