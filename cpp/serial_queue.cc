#include "purlin/serial_queue.h"

#include <utility>

#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "purlin-bridge/src/serial_queue.rs.h"

namespace purlin {
inline namespace v0 {

const internal::SerialQueueRep* SerialQueue::New(internal::ExecutorRef executor, Label label) noexcept {
  return internal::purlin_serial_queue_new(label.c_str(), executor);
}

SerialQueue::SerialQueue(const ThreadPoolAsyncWorkRunner& pool, Label label) noexcept
    : rep_(pool.rep_ == nullptr ? nullptr : ffi::serial_queue_new_on_pool(label.c_str(), *pool.rep_)) {}

SerialQueue::SerialQueue(const SerialQueue& other) noexcept : Executor(other), rep_(other.rep_) {
  if (rep_ != nullptr) ffi::serial_queue_retain(rep_);
}

SerialQueue::SerialQueue(SerialQueue&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}

SerialQueue& SerialQueue::operator=(const SerialQueue& other) noexcept {
  SerialQueue copy(other);
  std::swap(rep_, copy.rep_);
  return *this;
}

SerialQueue& SerialQueue::operator=(SerialQueue&& other) noexcept {
  SerialQueue taken(std::move(other));
  std::swap(rep_, taken.rep_);
  return *this;
}

SerialQueue::~SerialQueue() { internal::GiveUp<ffi::serial_queue_release>(rep_); }

Status SerialQueue::Execute(Task task) {
  if (rep_ == nullptr) return internal::Gone("SerialQueue");

  return Status::FromRep(internal::purlin_serial_queue_execute(rep_, std::move(task).Release()));
}

Event SerialQueue::Drained() const noexcept {
  if (rep_ == nullptr) return internal::GoneEvent("SerialQueue");
  return Event::Adopt(ffi::serial_queue_drained(*rep_));
}

Status SerialQueue::Drain() const noexcept {
  if (rep_ == nullptr) return internal::Gone("SerialQueue");
  return Status::FromRep(ffi::serial_queue_drain(*rep_));
}

bool SerialQueue::HasBacklog() const noexcept {
  if (rep_ == nullptr) return false;
  return ffi::serial_queue_has_backlog(*rep_);
}

Status SerialQueue::Shutdown(const ShutdownOptions& options) const noexcept {
  if (rep_ == nullptr) return internal::Gone("SerialQueue");

  return Status::FromRep(
      ffi::serial_queue_shutdown(*rep_, static_cast<std::uint32_t>(options.mode), options.timeout_ns));
}

void SerialQueue::Close() const noexcept {
  if (rep_ == nullptr) return;
  ffi::serial_queue_close(*rep_);
}

std::size_t SerialQueue::CancelPending() const noexcept {
  if (rep_ == nullptr) return 0;
  return ffi::serial_queue_cancel_pending(*rep_);
}

}  // namespace v0
}  // namespace purlin
