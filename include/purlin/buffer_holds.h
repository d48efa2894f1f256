// Purlin: rights to a buffer's memory, each ended by its destructor.
//
//   usage hold          I start work that reads it: until I have, it is not donated.   many at a time
//   external reference  somebody outside Purlin uses it: it stays, undonated.          many at a time
//   donation hold       I take it over: nobody else may use it meanwhile.              one, and nothing beside it
//
// Usage holds are short: they last while work is started, not while it runs; ReleaseAfter says when it is over. So
// waiting for them is short, too. All of them are move-only, one word, used by one thread at a time, and may outlive
// every reference to the buffer. A moved-from or released hold is empty, see purlin.h. No function here blocks; giving
// memory back may run others' callbacks here.
#ifndef PURLIN_BUFFER_HOLDS_H_
#define PURLIN_BUFFER_HOLDS_H_

#include <cstdint>
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

/// Usage holds and external references of a buffer, as Buffer::hold_counts answers them.
struct HoldCounts {
  /// Usage holds.
  std::uint32_t usage = 0;
  /// External references.
  std::uint32_t external = 0;
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

  /// Ends the hold: nothing was started, or it is over. Again: nothing happens.
  PURLIN_API void Release() noexcept;
  /// Ends the hold. The memory stays until `event` is terminal, with whatever outcome, and whoever gets it by donation
  /// is told to wait for that (DonationHold::free_event). Once released: nothing happens.
  PURLIN_API void ReleaseAfter(const Event& event);

 private:
  using Handle::Handle;
};

/// Somebody outside Purlin uses a buffer's memory: it stays as long as this exists, also when the buffer is deleted or
/// its last reference goes, and cannot be donated. Made by Buffer::AcquireExternalReference.
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
  /// Lets the memory go. Again: nothing happens.
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
  /// Happens when the bytes may be overwritten: the buffer's own producer and all who have used it are done, whether
  /// they succeeded or failed. Fails only if the client ends first (Client::Shutdown), with its name: then nobody
  /// knows.
  [[nodiscard]] PURLIN_API Event free_event() const;

  /// The buffer is gone, for all its references; its memory is the caller's, who waits for free_event(), asked for
  /// before, until writing it. kFailedPrecondition: confirmed, given back or moved from already.
  [[nodiscard]] PURLIN_API StatusOr<RawBuffer> Confirm();
  /// Gives the buffer back as it was, or deleted if somebody has deleted it meanwhile. Once confirmed: nothing happens.
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
