// What the bench's own columns do with an error: the measurement ends.
#ifndef PURLIN_BENCHES_NEED_H_
#define PURLIN_BENCHES_NEED_H_

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "purlin/status.h"
#include "purlin/status_or.h"

template <typename T>
inline T Need(purlin::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "purlin_bench: purlin: %s\n", value.status().ToString().c_str());
    std::abort();
  }
  return *std::move(value);
}
inline void Need(const purlin::Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "purlin_bench: purlin: %s\n", status.ToString().c_str());
    std::abort();
  }
}

#endif  // PURLIN_BENCHES_NEED_H_
