// Purlin: the operations that are linked into the bench program: Purlin's own, and those of the standard library.
#ifndef PURLIN_BENCHES_OURS_H_
#define PURLIN_BENCHES_OURS_H_

#include <vector>

#include "op.h"

struct OpList {
  const Op* ops;
  std::size_t count;
};

OpList EventOps();
OpList ValueOps();
OpList FutureOps();
OpList PoolOps();
OpList StdEventOps();
OpList StdPoolOps();

/// All of them; the order is that of the report.
inline std::vector<OpList> OwnOps() {
  return {PoolOps(), EventOps(), ValueOps(), FutureOps(), StdEventOps(), StdPoolOps()};
}

#endif  // PURLIN_BENCHES_OURS_H_
