// Purlin: C++ closures that are called with the pieces of a staged read. Not for users.
#ifndef PURLIN_INTERNAL_PIECE_CALLBACK_H_
#define PURLIN_INTERNAL_PIECE_CALLBACK_H_

#include <cstddef>

#include "purlin/internal/abi.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {

struct StagingLeaseRep;

/// A closure on the heap that is called again and again, one call at a time, until `destroy`. `data` null: there is
/// none.
struct PieceCallback {
  void* data;
  /// Gives it an error, or a piece in a lease; `error` or `lease` is null, and it owns the other. False if it threw.
  bool (*call)(void* data, const StatusRep* error, StagingLeaseRep* lease, std::size_t offset_bytes,
               std::size_t size_bytes, bool is_last) noexcept;
  void (*destroy)(void* data) noexcept;
};

static_assert(sizeof(PieceCallback) == 24 && offsetof(PieceCallback, data) == 0 && offsetof(PieceCallback, call) == 8 &&
                  offsetof(PieceCallback, destroy) == 16,
              "PieceCallback ABI");

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_INTERNAL_PIECE_CALLBACK_H_
