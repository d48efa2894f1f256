// Purlin: rights to a buffer's memory, each ended by its destructor.
//
// ```cpp
// #include "purlin/buffer.h"
//
// purlin::Status Read(const purlin::Buffer& buffer, void* destination) {
//   purlin::StatusOr<purlin::UsageHold> hold = buffer.AcquireUsageHold();  // no donation begins while it is held
//   if (!hold.ok()) return hold.status();
//   const purlin::RawBuffer memory = hold->memory();
//   const purlin::Event read = memory.CopyToHost(destination, 0, memory.on_device_size_bytes(), {hold->ready_event()});
//   hold->ReleaseAfter(read);  // a later owner of the memory waits for `read` before it writes
//   return read.Wait();
// }
// ```
//
//   usage hold          its owner starts work that reads it: no donation meanwhile   many at a time
//   external reference  code outside Purlin uses it: it stays, undonated             many at a time
//   donation hold       its owner takes it over: no other use meanwhile              one, and no other hold
//
// Usage holds are short, and so is waiting for them: a hold lasts while work is started, not while it runs;
// ReleaseAfter names the event at which the work ends. All holds are move-only, one word, used by one thread at a time,
// and may outlive every reference to the buffer. A moved-from or released hold is empty, see purlin.h. No function here
// blocks; giving memory back may run callbacks of other users on this thread.
#ifndef PURLIN_BUFFER_HOLDS_H_
#define PURLIN_BUFFER_HOLDS_H_

#include <cstddef>
#include <utility>

#include "purlin/event.h"
#include "purlin/export.h"
#include "purlin/internal/handle.h"
#include "purlin/raw_buffer.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct DonationHoldRep;
struct ExternalReferenceRep;
struct UsageHoldRep;
}  // namespace internal

/// Usage holds and external references of a buffer, as Buffer::hold_counts returns them.
struct HoldCounts {
  /// Usage holds.
  std::size_t usage = 0;
  /// External references.
  std::size_t external = 0;
};

/// The right to start work that reads a buffer. Made by Buffer::AcquireUsageHold.
class [[nodiscard]] UsageHold final : public internal::Handle<UsageHold, internal::UsageHoldRep> {
 public:
  /// Leaves `other` released.
  UsageHold(UsageHold&& other) noexcept = default;
  /// Releases what was here.
  UsageHold& operator=(UsageHold&& other) noexcept = default;
  /// As Release().
  ~UsageHold() { Release(); }

  /// The memory. Read it only after ready_event().
  [[nodiscard]] PURLIN_API RawBuffer memory() const;
  /// Happens when the bytes are there; fails with why they will never be.
  [[nodiscard]] PURLIN_API Event ready_event() const noexcept;

  /// Ends the hold: no work was started, or it has ended. A second call does nothing.
  PURLIN_API void Release() noexcept;
  /// Ends the hold. The memory stays until `event` is terminal, with whatever outcome, and a new owner after a donation
  /// waits for that (DonationHold::free_event). Does nothing once released.
  PURLIN_API void ReleaseAfter(const Event& event);

 private:
  using Handle::Handle;
};

/// Keeps a buffer's memory for code outside Purlin: it stays as long as this exists, also when the buffer is deleted or
/// its last reference is dropped, and cannot be donated. Made by Buffer::AcquireExternalReference.
class [[nodiscard]] ExternalReference final
    : public internal::Handle<ExternalReference, internal::ExternalReferenceRep> {
 public:
  /// Leaves `other` released.
  ExternalReference(ExternalReference&& other) noexcept = default;
  /// Releases what was here.
  ExternalReference& operator=(ExternalReference&& other) noexcept = default;
  /// As Release().
  ~ExternalReference() { Release(); }

  /// The memory. Use it only after ready_event().
  [[nodiscard]] PURLIN_API RawBuffer memory() const;
  /// Happens when the bytes are there; fails with why they will never be.
  [[nodiscard]] PURLIN_API Event ready_event() const noexcept;
  /// Drops the memory. A second call does nothing.
  PURLIN_API void Release() noexcept;

 private:
  using Handle::Handle;
};

/// The right to take a buffer's memory over. Made by Buffer::Donate. States: held, then confirmed or given back.
class [[nodiscard]] DonationHold final : public internal::Handle<DonationHold, internal::DonationHoldRep> {
 public:
  /// Leaves `other` given back.
  DonationHold(DonationHold&& other) noexcept = default;
  /// Gives back what was here.
  DonationHold& operator=(DonationHold&& other) noexcept = default;
  /// As Release().
  ~DonationHold() { Release(); }

  /// The memory. Write it only after free_event().
  [[nodiscard]] PURLIN_API RawBuffer memory() const;
  /// Happens when the buffer's bytes are there; fails with why they never will be.
  [[nodiscard]] PURLIN_API Event ready_event() const noexcept;
  /// Happens when the bytes may be overwritten: the buffer's producer and all operations that have used it have ended,
  /// whether they succeeded or failed. Fails only if the client ends first (Client::Shutdown), naming the client: then
  /// it is not known when the uses end.
  [[nodiscard]] PURLIN_API Event free_event() const;

  /// Ends the buffer for all its references and hands its memory to the caller, which writes it only after
  /// free_event(), which must be called before this. kFailedPrecondition: confirmed, given back or moved from already.
  [[nodiscard]] PURLIN_API StatusOr<RawBuffer> Confirm();
  /// Gives the buffer back as it was, or deleted if it was deleted meanwhile. Does nothing once confirmed.
  PURLIN_API void Release() noexcept;

 private:
  using Handle::Handle;
};

static_assert(sizeof(UsageHold) == sizeof(void*), "a UsageHold is one word");
static_assert(sizeof(ExternalReference) == sizeof(void*), "an ExternalReference is one word");
static_assert(sizeof(DonationHold) == sizeof(void*), "a DonationHold is one word");

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_BUFFER_HOLDS_H_
