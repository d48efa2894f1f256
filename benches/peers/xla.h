// What the peers that are XLA's share.
#ifndef PURLIN_BENCHES_PEERS_XLA_H_
#define PURLIN_BENCHES_PEERS_XLA_H_

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

/// The value; nothing can be measured without it.
template <typename T>
T Need(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "purlin_bench: XLA: %s\n", value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}
inline void Need(const absl::Status& status) {
  Need(status.ok() ? absl::StatusOr<int>(0) : absl::StatusOr<int>(status));
}

#endif  // PURLIN_BENCHES_PEERS_XLA_H_
